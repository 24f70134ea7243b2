// SPDX-License-Identifier: Apache-2.0
#include "lb/route/chain_match.h"

#include "lb/base/check.h"

#include <stdlib.h>
#include <string.h>

// A prefix as a key. Longer ones have higher ranks; 0 matches everything, unlike ::/0, which is 1.
struct key {
	uint32_t rank; // 1 + bits
	struct ip_addr ip; // masked
};

// Of the Cartesian product of a match's fields (A36).
struct entry {
	struct key destination, source;
	// Borrowed from `texts`. A name without the asterisk of its wildcard: ".example".
	struct str server_name, protocol;
	enum lb_transport transport;
	enum lb_source_type source_type;
	uint32_t port; // 0 = any
	uint32_t chain;
	uint32_t order; // in the Listener
	bool behind; // it came when raw_buffer had been asked for, and does not ask for it
};

struct lb_chain_match {
	uint32_t n_refs;
	uint32_t n;
	struct lb_inspector inspector;
	bool wants_hello;
	char *texts; // owned
	struct entry entries[]; // sorted
};

static void mask(struct ip_addr *ip, unsigned bits)
{
	for (unsigned i = 0; i < sizeof(ip->b); i++) {
		unsigned kept = bits >= 8 ? 8 : bits;
		ip->b[i] &= (uint8_t)(0xff00 >> kept);
		bits -= kept;
	}
}

static struct key key_of(const struct ip_prefix *p)
{
	struct key k = {p ? 1u + p->bits : 0, {{0}}};
	if (p)
		k.ip = p->ip;
	mask(&k.ip, p ? p->bits : 0);
	return k;
}

static int compare_numbers(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

// The most specific ones first.
static int compare_keys(const struct key *a, const struct key *b)
{
	int by_rank = compare_numbers(b->rank, a->rank);
	return by_rank ? by_rank : memcmp(&a->ip, &b->ip, sizeof(a->ip));
}

static int by_destination(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;
	int order = compare_keys(&a->destination, &b->destination);
	return order ? order : compare_numbers(a->order, b->order);
}

static int compare_texts(struct str a, struct str b)
{
	if (a.len != b.len)
		return a.len < b.len ? -1 : 1;
	return a.len ? memcmp(a.p, b.p, a.len) : 0;
}

// Whether a connection can be for both.
static int compare_matches(const struct entry *a, const struct entry *b)
{
	int order = compare_keys(&a->destination, &b->destination);
	if (!order)
		order = compare_texts(a->server_name, b->server_name);
	if (!order)
		order = compare_numbers(a->transport, b->transport);
	if (!order)
		order = compare_texts(a->protocol, b->protocol);
	if (!order)
		order = compare_numbers(a->source_type, b->source_type);
	if (!order)
		order = compare_keys(&a->source, &b->source);
	return order ? order : compare_numbers(a->port, b->port);
}

static int by_match(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;
	int order = compare_matches(a, b);
	return order ? order : compare_numbers(a->order, b->order);
}

// Building

static uint64_t at_least_one(uint32_t n)
{
	return n ? n : 1;
}

static uint64_t times(uint64_t a, uint32_t n)
{
	return a > LB_MAX_CHAIN_MATCHES ? a : a * at_least_one(n);
}

static uint64_t n_entries_of(const struct lb_chain_conf *c)
{
	uint64_t n =
		times(times(at_least_one(c->n_destinations), c->n_server_names), c->n_protocols);
	return c->never ? 0 : times(times(n, c->n_sources), c->n_source_ports);
}

// UINT32_MAX = too many.
static uint32_t count(const struct lb_chain_conf *chains, uint32_t n, struct lb_err *reterr)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t n_more = n_entries_of(&chains[i]);
		if (n_more > LB_MAX_CHAIN_MATCHES || (sum += n_more) > LB_MAX_CHAIN_MATCHES) {
			lb_err_set(reterr,
				"more than %d prefixes, names, protocols and ports, multiplied",
				LB_MAX_CHAIN_MATCHES);
			return UINT32_MAX;
		}
	}
	return (uint32_t)sum;
}

static size_t len_of_texts(const struct lb_chain_conf *c)
{
	size_t len = 0;
	for (uint32_t i = 0; i < c->n_server_names; i++)
		len += c->server_names[i].len;
	for (uint32_t i = 0; i < c->n_protocols; i++)
		len += c->protocols[i].len;
	return len;
}

// To *at, which moves on.
static struct str copy(char **at, struct str text)
{
	struct str ret = {*at, text.len};
	if (text.len)
		memcpy(*at, text.p, text.len);
	*at += text.len;
	return ret;
}

static void add(struct lb_chain_match *m, const struct entry *e)
{
	m->entries[m->n] = *e;
	m->entries[m->n].order = m->n;
	m->n++;
}

static void add_sources(struct lb_chain_match *m, const struct lb_chain_conf *c, struct entry *e)
{
	for (uint32_t s = 0; s < at_least_one(c->n_sources); s++) {
		e->source = key_of(c->n_sources ? &c->sources[s] : NULL);
		for (uint32_t p = 0; p < at_least_one(c->n_source_ports); p++) {
			e->port = c->n_source_ports ? c->source_ports[p] : 0;
			add(m, e);
		}
	}
}

static void add_destinations(
	struct lb_chain_match *m, const struct lb_chain_conf *c, struct entry *e)
{
	for (uint32_t d = 0; d < at_least_one(c->n_destinations); d++) {
		e->destination = key_of(c->n_destinations ? &c->destinations[d] : NULL);
		add_sources(m, c, e);
	}
}

static void add_chain(
	struct lb_chain_match *m, const struct lb_chain_conf *c, uint32_t index, char **texts)
{
	struct entry e = {.transport = c->transport, .source_type = c->source_type, .chain = index};
	if (c->never)
		return;
	char *protocols = *texts;
	for (uint32_t p = 0; p < c->n_protocols; p++)
		copy(texts, c->protocols[p]);
	for (uint32_t i = 0; i < at_least_one(c->n_server_names); i++) {
		bool any = !c->n_server_names;
		struct str name = any ? STR("") : copy(texts, c->server_names[i]);
		bool wild = name.len && name.p[0] == '*';
		e.server_name = (struct str){name.p + wild, name.len - wild};
		size_t at = 0;
		for (uint32_t p = 0; p < at_least_one(c->n_protocols); p++) {
			size_t len = c->n_protocols ? c->protocols[p].len : 0;
			e.protocol = (struct str){protocols + at, len};
			at += len;
			add_destinations(m, c, &e);
		}
	}
}

// Some connection may get it without having been asked.
static bool is_for_silent(const struct entry *e)
{
	return !e->server_name.len && !e->protocol.len && e->transport <= LB_TRANSPORT_RAW;
}

// gRPC passes over what comes behind a chain with raw_buffer before it looks for duplicates.
static void mark_behind(struct lb_chain_match *m)
{
	bool raw = false;
	qsort(m->entries, m->n, sizeof(m->entries[0]), by_destination);
	for (uint32_t i = 0; i < m->n; i++) {
		struct entry *e = &m->entries[i];
		if (i && compare_keys(&e->destination, &e[-1].destination) != 0)
			raw = false;
		bool asks = e->transport == LB_TRANSPORT_RAW && !e->server_name.len;
		raw = raw || asks;
		e->behind = raw && !asks;
	}
}

static void drop_behind(struct lb_chain_match *m)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < m->n; i++)
		if (!m->entries[i].behind)
			m->entries[n++] = m->entries[i];
	m->n = n;
}

// False = some are for the same connections.
static bool check(const struct lb_chain_match *m, bool inspects, struct lb_err *reterr)
{
	for (uint32_t i = 1; i < m->n; i++) {
		const struct entry *e = &m->entries[i];
		if (compare_matches(e - 1, e) != 0 || (!inspects && !is_for_silent(e)))
			continue;
		lb_err_set(reterr, "filter_chains[%u] matches the same as filter_chains[%u]",
			e->chain, e[-1].chain);
		return false;
	}
	return true;
}
static void fill(struct lb_chain_match *m, const struct lb_chain_conf *chains, uint32_t n)
{
	char *texts = m->texts;
	for (uint32_t i = 0; i < n; i++)
		add_chain(m, &chains[i], i, &texts);
}

static bool any_asks(const struct lb_chain_match *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (!is_for_silent(&m->entries[i]) || m->entries[i].transport)
			return true;
	return false;
}

struct lb_chain_match *lb_chain_match_new(const struct lb_chain_conf *chains, uint32_t n,
	const struct lb_inspector *inspector, struct lb_err *reterr)
{
	uint32_t n_entries = count(chains, n, reterr);
	if (n_entries == UINT32_MAX)
		return NULL;
	size_t len = 1;
	for (uint32_t i = 0; i < n; i++)
		len += len_of_texts(&chains[i]);
	struct lb_chain_match *m = calloc(1, sizeof(*m) + n_entries * sizeof(m->entries[0]));
	if (m)
		m->texts = malloc(len);
	if (!m || !m->texts) {
		free(m);
		return NULL;
	}
	m->n_refs = 1;
	fill(m, chains, n);
	DCHECK(m->n == n_entries);
	if (!inspector->on) {
		mark_behind(m);
		drop_behind(m);
	}
	qsort(m->entries, m->n, sizeof(m->entries[0]), by_match);
	if (!check(m, inspector->on, reterr)) {
		lb_chain_match_put(m);
		return NULL;
	}
	m->inspector = *inspector;
	m->wants_hello =
		inspector->on && (inspector->closes || inspector->max_hello || any_asks(m));
	return m;
}

struct lb_chain_match *lb_chain_match_get(struct lb_chain_match *m)
{
	m->n_refs++;
	return m;
}

void lb_chain_match_put(struct lb_chain_match *m)
{
	if (!m || --m->n_refs)
		return;
	free(m->texts);
	free(m);
}

const struct lb_inspector *lb_chain_match_inspector(const struct lb_chain_match *m)
{
	return m->wants_hello ? &m->inspector : NULL;
}

// Finding

// Entries in a row.
struct range {
	const struct entry *first, *end;
};

typedef int (*compare_fn)(const struct entry *, const void *wanted);

static int compare_destination(const struct entry *e, const void *wanted)
{
	return compare_keys(&e->destination, wanted);
}

static int compare_source(const struct entry *e, const void *wanted)
{
	return compare_keys(&e->source, wanted);
}

// The first entry that is not before what is wanted, or with `beyond` the first that is behind it.
static const struct entry *bound(
	struct range r, compare_fn compare, const void *wanted, bool beyond)
{
	while (r.first < r.end) {
		const struct entry *middle = r.first + (r.end - r.first) / 2;
		if (compare(middle, wanted) < (int)beyond)
			r.first = middle + 1;
		else
			r.end = middle;
	}
	return r.first;
}

static struct range equal(struct range r, compare_fn compare, const void *wanted)
{
	return (struct range){bound(r, compare, wanted, false), bound(r, compare, wanted, true)};
}

// Of a prefix that has the address's first bits: ::/0 has those of IPv4 addresses, too.
static bool is_of_family(const struct ip_addr *a, uint32_t rank)
{
	return rank == 0 || rank > IP_V4_BITS || !ip_is_v4(a);
}

// Those with the longest prefix of the address. Of each length there is, one search.
static struct range narrow(struct range r, bool by_source, const struct ip_addr *a)
{
	compare_fn compare = by_source ? compare_source : compare_destination;
	struct key last;
	memset(&last.ip, 0xff, sizeof(last.ip));
	while (r.first < r.end) {
		last.rank = by_source ? r.first->source.rank : r.first->destination.rank;
		struct key wanted = {last.rank, *a};
		mask(&wanted.ip, wanted.rank ? wanted.rank - 1 : 0);
		struct range same = {r.first, bound(r, compare, &last, true)};
		struct range found = equal(same, compare, &wanted);
		if (found.first < found.end && is_of_family(a, wanted.rank))
			return found;
		r.first = same.end;
	}
	return r;
}

static int compare_name(const struct entry *e, const void *wanted)
{
	return compare_texts(e->server_name, *(const struct str *)wanted);
}

static int compare_transport(const struct entry *e, const void *wanted)
{
	return compare_numbers(e->transport, *(const enum lb_transport *)wanted);
}

static int compare_protocol(const struct entry *e, const void *wanted)
{
	return compare_texts(e->protocol, *(const struct str *)wanted);
}

static int compare_type(const struct entry *e, const void *wanted)
{
	return compare_numbers(e->source_type, *(const enum lb_source_type *)wanted);
}

static bool is_empty(struct range r)
{
	return r.first == r.end;
}

// The name itself, else the longest of its ends that begin with a dot, else none. As Envoy's, an
// end is never at the name's first or last byte.
static struct range of_name(struct range r, struct str name)
{
	struct str none = STR("");
	struct range found = {r.first, r.first};
	if (name.len)
		found = equal(r, compare_name, &name);
	for (size_t i = 1; is_empty(found) && i + 1 < name.len; i++) {
		struct str end = {name.p + i, name.len - i};
		if (name.p[i] == '.')
			found = equal(r, compare_name, &end);
	}
	return is_empty(found) ? equal(r, compare_name, &none) : found;
}

static struct range of_transport(struct range r, bool tls)
{
	enum lb_transport any = LB_TRANSPORT_ANY, is = tls ? LB_TRANSPORT_TLS : LB_TRANSPORT_RAW;
	struct range found = equal(r, compare_transport, &is);
	return is_empty(found) ? equal(r, compare_transport, &any) : found;
}

// The client's first protocol that some chain asks for.
static struct range of_protocols(struct range r, struct str offered)
{
	struct str none = STR("");
	struct range found = {r.first, r.first};
	for (size_t i = 0; is_empty(found) && i < offered.len;) {
		struct str p = {offered.p + i + 1, (uint8_t)offered.p[i]};
		i += 1 + p.len;
		if (p.len && i <= offered.len)
			found = equal(r, compare_protocol, &p);
	}
	return is_empty(found) ? equal(r, compare_protocol, &none) : found;
}

static struct range of_type(struct range r, bool is_local)
{
	enum lb_source_type any = LB_SOURCE_ANY;
	enum lb_source_type is = is_local ? LB_SOURCE_LOCAL : LB_SOURCE_EXTERNAL;
	struct range found = equal(r, compare_type, &is);
	return is_empty(found) ? equal(r, compare_type, &any) : found;
}

// Of one source.
static uint32_t by_port(struct range r, uint32_t port)
{
	if (r.first == r.end)
		return LB_NO_CHAIN;
	uint32_t any = r.first->port == 0 ? r.first->chain : LB_NO_CHAIN;
	while (r.first < r.end) {
		const struct entry *middle = r.first + (r.end - r.first) / 2;
		if (middle->port == port)
			return middle->chain;
		if (middle->port < port)
			r.first = middle + 1;
		else
			r.end = middle;
	}
	return any;
}

static bool is_loopback(const struct ip_addr *a)
{
	static const struct ip_addr v6 = {{[15] = 1}};
	return ip_is_v4(a) ? a->b[12] == 127 : ip_eq(a, &v6);
}

uint32_t lb_chain_match_find(const struct lb_chain_match *m, const struct ip_addr *local,
	const struct ip_port *remote, const struct lb_chain_hello *hello)
{
	static const struct lb_chain_hello silent;
	struct range r = {m->entries, m->entries + m->n};
	hello = m->wants_hello ? hello : &silent;
	r = narrow(r, false, local);
	r = of_name(r, hello->server_name);
	r = of_transport(r, hello->tls);
	r = of_protocols(r, hello->protocols);
	r = of_type(r, ip_eq(local, &remote->ip) || is_loopback(&remote->ip));
	return by_port(narrow(r, true, &remote->ip), remote->port);
}
