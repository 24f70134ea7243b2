// SPDX-License-Identifier: Apache-2.0
#include "lb/route/chain_match.h"

#include "lb/base/check.h"

#include <stddef.h>
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
	// LB_SOURCE_TYPES: only its destination counts, which no chain may be left for.
	uint32_t source_type;
	uint32_t port; // 0 = any
	uint32_t chain;
	uint32_t order; // in the Listener
	bool raw_buffer;
	bool behind; // it came when raw_buffer had been asked for
};

struct lb_chain_match {
	uint32_t n_refs;
	uint32_t n;
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

// Whether a connection can be for both.
static int compare_matches(const struct entry *a, const struct entry *b)
{
	int order = compare_keys(&a->destination, &b->destination);
	if (!order)
		order = compare_numbers(b->raw_buffer, a->raw_buffer);
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

static uint32_t at_least_one(uint32_t n)
{
	return n ? n : 1;
}

static uint64_t n_entries_of(const struct lb_chain_conf *c)
{
	if (c->never == LB_CHAIN_NEVER)
		return 0;
	uint64_t n = at_least_one(c->n_destinations);
	if (c->never == LB_CHAIN_POSSIBLE)
		n *= (uint64_t)at_least_one(c->n_sources) * at_least_one(c->n_source_ports);
	return n;
}

// UINT32_MAX = too many.
static uint32_t count(const struct lb_chain_conf *chains, uint32_t n, struct lb_err *reterr)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t n_more = n_entries_of(&chains[i]);
		if (n_more > LB_MAX_CHAIN_MATCHES || (sum += n_more) > LB_MAX_CHAIN_MATCHES) {
			lb_err_set(reterr, "more than %d prefixes and ports, multiplied",
				LB_MAX_CHAIN_MATCHES);
			return UINT32_MAX;
		}
	}
	return (uint32_t)sum;
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

static void add_chain(struct lb_chain_match *m, const struct lb_chain_conf *c, uint32_t index)
{
	if (c->never == LB_CHAIN_NEVER)
		return;
	for (uint32_t d = 0; d < at_least_one(c->n_destinations); d++) {
		struct entry e = {
			.destination = key_of(c->n_destinations ? &c->destinations[d] : NULL),
			.source_type = c->source_type,
			.chain = index,
			.raw_buffer = c->raw_buffer && c->never != LB_CHAIN_NEVER_IN_PREFIX,
		};
		if (c->never == LB_CHAIN_POSSIBLE) {
			add_sources(m, c, &e);
		} else {
			e.source_type = LB_SOURCE_TYPES;
			e.chain = LB_NO_CHAIN;
			add(m, &e);
		}
	}
}

// What comes behind a chain with raw_buffer is passed over before it is looked at for duplicates.
static void mark_behind(struct lb_chain_match *m)
{
	bool raw = false;
	qsort(m->entries, m->n, sizeof(m->entries[0]), by_destination);
	for (uint32_t i = 0; i < m->n; i++) {
		struct entry *e = &m->entries[i];
		if (i && compare_keys(&e->destination, &e[-1].destination) != 0)
			raw = false;
		raw = raw || e->raw_buffer;
		e->behind = raw && !e->raw_buffer;
	}
}

static void drop_behind(struct lb_chain_match *m)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < m->n; i++)
		if (!m->entries[i].behind || m->entries[i].chain == LB_NO_CHAIN)
			m->entries[n++] = m->entries[i];
	m->n = n;
}

// False = some are for the same connections.
static bool check(const struct lb_chain_match *m, struct lb_err *reterr)
{
	for (uint32_t i = 1; i < m->n; i++) {
		const struct entry *e = &m->entries[i];
		if (e->chain == LB_NO_CHAIN || compare_matches(e - 1, e) != 0)
			continue;
		lb_err_set(reterr, "filter_chains[%u] matches the same as filter_chains[%u]",
			e->chain, e[-1].chain);
		return false;
	}
	return true;
}

// Of each destination those without raw_buffer, if there are some with it.
static void drop_outranked(struct lb_chain_match *m)
{
	uint32_t n = 0;
	bool raw = false;
	for (uint32_t i = 0; i < m->n; i++) {
		const struct entry e = m->entries[i];
		if (!n || compare_keys(&e.destination, &m->entries[n - 1].destination) != 0)
			raw = e.raw_buffer; // these come first
		if (raw == e.raw_buffer)
			m->entries[n++] = e;
	}
	m->n = n;
}

struct lb_chain_match *lb_chain_match_new(
	const struct lb_chain_conf *chains, uint32_t n, struct lb_err *reterr)
{
	uint32_t n_entries = count(chains, n, reterr);
	if (n_entries == UINT32_MAX)
		return NULL;
	struct lb_chain_match *m = calloc(1, sizeof(*m) + n_entries * sizeof(m->entries[0]));
	if (!m)
		return NULL;
	m->n_refs = 1;
	for (uint32_t i = 0; i < n; i++)
		add_chain(m, &chains[i], i);
	DCHECK(m->n == n_entries);
	mark_behind(m);
	drop_behind(m);
	qsort(m->entries, m->n, sizeof(m->entries[0]), by_match);
	if (!check(m, reterr)) {
		free(m);
		return NULL;
	}
	drop_outranked(m);
	return m;
}

struct lb_chain_match *lb_chain_match_get(struct lb_chain_match *m)
{
	m->n_refs++;
	return m;
}

void lb_chain_match_put(struct lb_chain_match *m)
{
	if (m && --m->n_refs == 0)
		free(m);
}

// Finding

// Entries in a row.
struct range {
	const struct entry *first, *end;
};

// A field of an entry that is a key, by its offset.
static const struct key *key_at(const struct entry *e, size_t offset)
{
	return (const struct key *)((const char *)e + offset);
}

// The first entry whose key is not before this one, or with `beyond` the first that is behind it.
static const struct entry *bound(
	struct range r, size_t offset, const struct key *wanted, bool beyond)
{
	while (r.first < r.end) {
		const struct entry *middle = r.first + (r.end - r.first) / 2;
		if (compare_keys(key_at(middle, offset), wanted) < (int)beyond)
			r.first = middle + 1;
		else
			r.end = middle;
	}
	return r.first;
}

static bool is_of_family(const struct ip_addr *a, uint32_t rank)
{
	return rank == 0 || ip_is_v4(a) == (rank > IP_V4_BITS);
}

// Those with the longest prefix of the address. Of each length there is, one search.
static struct range narrow(struct range r, size_t offset, const struct ip_addr *a)
{
	struct key last;
	memset(&last.ip, 0xff, sizeof(last.ip));
	while (r.first < r.end) {
		last.rank = key_at(r.first, offset)->rank;
		struct key wanted = {last.rank, *a};
		mask(&wanted.ip, wanted.rank ? wanted.rank - 1 : 0);
		struct range same = {r.first, bound(r, offset, &last, true)};
		struct range found = {
			bound(same, offset, &wanted, false), bound(same, offset, &wanted, true)};
		if (found.first < found.end && is_of_family(a, wanted.rank))
			return found;
		r.first = same.end;
	}
	return r;
}

// The first one of this type, or of a later one.
static const struct entry *type_bound(struct range r, uint32_t type)
{
	while (r.first < r.end) {
		const struct entry *middle = r.first + (r.end - r.first) / 2;
		if (middle->source_type < type)
			r.first = middle + 1;
		else
			r.end = middle;
	}
	return r.first;
}

static struct range of_type(struct range r, uint32_t type)
{
	return (struct range){type_bound(r, type), type_bound(r, type + 1)};
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

uint32_t lb_chain_match_find(
	const struct lb_chain_match *m, const struct ip_addr *local, const struct ip_port *remote)
{
	struct range r = {m->entries, m->entries + m->n};
	bool is_local = ip_eq(local, &remote->ip) || is_loopback(&remote->ip);
	r = narrow(r, offsetof(struct entry, destination), local);
	struct range typed = of_type(r, is_local ? LB_SOURCE_LOCAL : LB_SOURCE_EXTERNAL);
	if (typed.first == typed.end)
		typed = of_type(r, LB_SOURCE_ANY);
	return by_port(narrow(typed, offsetof(struct entry, source), &remote->ip), remote->port);
}
