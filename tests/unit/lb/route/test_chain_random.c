// SPDX-License-Identifier: Apache-2.0
// test_lb_chain_random [CONNECTIONS [SEED]]: for that many random connections the sorted table and
// a naive twin, which has every product of every chain in a row and looks at all of them field by
// field, must choose the same chain; and refuse the same chains as duplicates.
#include "lb/base/rand.h"
#include "lb/route/chain_match.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_FORM 200000
#define ASKS 40 // of one set of chains
#define MAX_CHAINS 6
#define MAX_ITEMS 2 // of a list
#define MAX_PRODUCTS (MAX_CHAINS * 32)
#define LEN(list) (sizeof(list) / sizeof((list)[0]))

static uint64_t n_connections = SHORT_FORM, seed = 1;

static const struct {
	const char *ip;
	uint8_t bits;
} prefixes[] = {{"0.0.0.0", 96}, {"10.0.0.0", 104}, {"10.1.0.0", 112}, {"10.1.2.0", 120},
	{"10.1.2.3", 128}, {"::", 0}, {"fd00::", 8}, {"fd00::1", 128}};
static const char *const addresses[] = {
	"10.1.2.3", "10.1.2.4", "10.1.9.9", "10.9.9.9", "127.0.0.9", "fd00::1", "fd00::2", "::1"};
static const char *const names[] = {"", "a.test", "*.a.test", "*.test", "test", ".test", "*.b.test",
	"b.test", "*.", "*.*.test"};
static const char *const asked[] = {"", "a.test", "x.a.test", "y.x.a.test", "b.test", "x.b.test",
	"test", ".test", "a.test.", ".", "x.*.test", "other"};
static const char *const protocols[] = {"", "h2", "http/1.1", "h"};
static const char *const offered[] = {"", "\2h2", "\10http/1.1\2h2", "\1h\10http/1.1", "\2h3",
	"\2h3\2h2", "\3h2"}; // the last one goes beyond its end

struct lists {
	struct ip_prefix destinations[MAX_ITEMS], sources[MAX_ITEMS];
	struct str names[MAX_ITEMS], protocols[MAX_ITEMS];
	uint32_t ports[MAX_ITEMS];
};

struct chains {
	struct lb_chain_conf confs[MAX_CHAINS];
	struct lists lists[MAX_CHAINS];
	uint32_t n;
	bool inspects;
};

// NULL prefix = any.
struct product {
	const struct ip_prefix *destination, *source;
	struct str name, protocol;
	enum lb_transport transport;
	enum lb_source_type type;
	uint32_t port, chain;
};

struct ask {
	struct ip_addr local;
	struct ip_port remote;
	struct lb_chain_hello hello;
};

// Random chains and connections

static uint32_t random_n(struct rand *r)
{
	uint64_t n = rand_below(r, 5);
	return n < 3 ? 0 : (uint32_t)n - 2;
}

static uint32_t random_prefixes(struct rand *r, struct ip_prefix *ret)
{
	uint32_t n = random_n(r);
	for (uint32_t i = 0; i < n; i++) {
		size_t which = rand_below(r, LEN(prefixes));
		assert_true(ip_parse(prefixes[which].ip, &ret[i].ip));
		ret[i].bits = prefixes[which].bits;
	}
	return n;
}

static uint32_t random_texts(
	struct rand *r, const char *const *list, size_t n_list, struct str *ret)
{
	uint32_t n = random_n(r);
	for (uint32_t i = 0; i < n; i++)
		ret[i] = str_from(list[rand_below(r, n_list)]);
	return n;
}

static void random_chains(struct rand *r, struct chains *c)
{
	c->n = 1 + (uint32_t)rand_below(r, MAX_CHAINS);
	c->inspects = rand_below(r, 4);
	for (uint32_t i = 0; i < c->n; i++) {
		struct lists *l = &c->lists[i];
		struct lb_chain_conf *conf = &c->confs[i];
		*conf = (struct lb_chain_conf){.destinations = l->destinations,
			.sources = l->sources,
			.server_names = l->names,
			.protocols = l->protocols,
			.source_ports = l->ports};
		conf->n_destinations = random_prefixes(r, l->destinations);
		conf->n_sources = random_prefixes(r, l->sources);
		conf->n_server_names = random_texts(r, names, LEN(names), l->names);
		conf->n_protocols = random_texts(r, protocols, LEN(protocols), l->protocols);
		conf->n_source_ports = random_n(r);
		for (uint32_t k = 0; k < conf->n_source_ports; k++)
			l->ports[k] = (uint32_t)rand_below(r, 3);
		conf->source_type = rand_below(r, 2) ? LB_SOURCE_ANY : rand_below(r, 3);
		conf->transport = rand_below(r, 2) ? LB_TRANSPORT_ANY : rand_below(r, 4);
		conf->never = !rand_below(r, 16);
	}
}

static struct ask random_ask(struct rand *r)
{
	struct ask a = {.remote.port = (uint16_t)rand_below(r, 4), .hello.tls = rand_below(r, 3)};
	assert_true(ip_parse(addresses[rand_below(r, LEN(addresses))], &a.local));
	assert_true(ip_parse(addresses[rand_below(r, LEN(addresses))], &a.remote.ip));
	if (a.hello.tls) {
		a.hello.server_name = str_from(asked[rand_below(r, LEN(asked))]);
		a.hello.protocols = str_from(offered[rand_below(r, LEN(offered))]);
	}
	return a;
}

// The twin

static struct str text_at(const struct str *list, uint32_t n, uint32_t i)
{
	return n ? list[i] : STR("");
}

static struct str without_asterisk(struct str name)
{
	bool wild = name.len && name.p[0] == '*';
	return (struct str){name.p + wild, name.len - wild};
}

// Of the chain's five lists: which item of each, by the digits of a number.
static uint32_t digit(uint32_t *number, uint32_t n)
{
	uint32_t base = n ? n : 1, ret = *number % base;
	*number /= base;
	return ret;
}

static uint32_t all_products(const struct chains *c, struct product *ret)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->n; i++) {
		const struct lb_chain_conf *f = &c->confs[i];
		for (uint32_t number = 0; !f->never; number++) {
			uint32_t rest = number, d = digit(&rest, f->n_destinations),
				 s = digit(&rest, f->n_sources),
				 name = digit(&rest, f->n_server_names),
				 alpn = digit(&rest, f->n_protocols),
				 port = digit(&rest, f->n_source_ports);
			if (rest)
				break;
			assert_true(n < MAX_PRODUCTS);
			ret[n++] = (struct product){
				.destination = f->n_destinations ? &f->destinations[d] : NULL,
				.source = f->n_sources ? &f->sources[s] : NULL,
				.name = without_asterisk(
					text_at(f->server_names, f->n_server_names, name)),
				.protocol = text_at(f->protocols, f->n_protocols, alpn),
				.transport = f->transport,
				.type = f->source_type,
				.port = f->n_source_ports ? f->source_ports[port] : 0,
				.chain = i};
		}
	}
	return n;
}

// How well a product matches in each field: the best ones go on to the next. -1 = not at all.

static int by_prefix(const struct ip_prefix *p, const struct ip_addr *a)
{
	if (!p)
		return 0;
	return ip_in_prefix(a, &p->ip, p->bits) ? 1 + p->bits : -1;
}

static int by_destination(const struct product *p, const struct ask *a)
{
	return by_prefix(p->destination, &a->local);
}

static int by_name(const struct product *p, const struct ask *a)
{
	struct str wanted = p->name, name = a->hello.server_name;
	if (!wanted.len || str_eq(wanted, name))
		return wanted.len ? 1000 : 0;
	bool is_end = wanted.len > 1 && wanted.len < name.len && wanted.p[0] == '.' &&
	              memcmp(name.p + name.len - wanted.len, wanted.p, wanted.len) == 0;
	return is_end ? (int)wanted.len : -1;
}

static int by_transport(const struct product *p, const struct ask *a)
{
	if (p->transport == LB_TRANSPORT_ANY)
		return 0;
	return p->transport == (a->hello.tls ? LB_TRANSPORT_TLS : LB_TRANSPORT_RAW) ? 1 : -1;
}

static int by_protocol(const struct product *p, const struct ask *a)
{
	struct str list = a->hello.protocols;
	for (size_t at = 0; p->protocol.len && at < list.len;) {
		size_t len = (uint8_t)list.p[at];
		if (at + 1 + len <= list.len &&
			str_eq(p->protocol, (struct str){list.p + at + 1, len}))
			return 1000 - (int)at;
		at += 1 + len;
	}
	return p->protocol.len ? -1 : 0;
}

static int by_type(const struct product *p, const struct ask *a)
{
	struct ip_addr loopback;
	assert_true(ip_parse("::1", &loopback));
	const struct ip_addr *from = &a->remote.ip;
	bool is_local = ip_eq(from, &a->local) || ip_eq(from, &loopback) ||
	                (ip_is_v4(from) && from->b[12] == 127);
	if (p->type == LB_SOURCE_ANY)
		return 0;
	return p->type == (is_local ? LB_SOURCE_LOCAL : LB_SOURCE_EXTERNAL) ? 1 : -1;
}

static int by_source(const struct product *p, const struct ask *a)
{
	return by_prefix(p->source, &a->remote.ip);
}

static int by_port(const struct product *p, const struct ask *a)
{
	if (!p->port)
		return 0;
	return p->port == a->remote.port ? 1 : -1;
}

static int (*const steps[])(const struct product *, const struct ask *) = {
	by_destination, by_name, by_transport, by_protocol, by_type, by_source, by_port};

static uint32_t twin_find(const struct chains *c, struct ask a)
{
	struct product left[MAX_PRODUCTS];
	uint32_t n = all_products(c, left);
	if (!c->inspects)
		a.hello = (struct lb_chain_hello){.tls = false};
	for (size_t s = 0; s < LEN(steps); s++) {
		int best = -1;
		uint32_t n_best = 0;
		for (uint32_t i = 0; i < n; i++)
			if (steps[s](&left[i], &a) > best)
				best = steps[s](&left[i], &a);
		for (uint32_t i = 0; best >= 0 && i < n; i++)
			if (steps[s](&left[i], &a) == best)
				left[n_best++] = left[i];
		n = n_best;
	}
	assert_true(n <= 1);
	return n ? left[0].chain : LB_NO_CHAIN;
}

static bool same_prefix(const struct ip_prefix *a, const struct ip_prefix *b)
{
	if (!a || !b)
		return a == b;
	return a->bits == b->bits && ip_eq(&a->ip, &b->ip);
}

static bool twin_has_duplicates(const struct chains *c)
{
	struct product all[MAX_PRODUCTS];
	uint32_t n = all_products(c, all);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < i; k++) {
			const struct product *a = &all[i], *b = &all[k];
			if (same_prefix(a->destination, b->destination) &&
				same_prefix(a->source, b->source) && str_eq(a->name, b->name) &&
				str_eq(a->protocol, b->protocol) && a->transport == b->transport &&
				a->type == b->type && a->port == b->port)
				return true;
		}
	return false;
}

static uint64_t check_chains(struct rand *r, const struct chains *c, struct lb_chain_match *m)
{
	uint64_t n_matched = 0;
	for (int i = 0; i < ASKS; i++) {
		struct ask a = random_ask(r);
		uint32_t got = lb_chain_match_find(m, &a.local, &a.remote, &a.hello);
		assert_int_equal(got, twin_find(c, a));
		n_matched += got != LB_NO_CHAIN;
	}
	return n_matched;
}

// A36-12, A36-20 to A36-25, A36-38, A36-39
static void random_chains_are_chosen_as_a_naive_twin_chooses_them(void **state)
{
	static struct chains c;
	struct rand r;
	uint64_t n_matched = 0, n_refused = 0, n = 0;
	rand_init(&r, seed);
	while (n < n_connections) {
		struct lb_err err = {""};
		random_chains(&r, &c);
		const struct lb_inspector inspector = {.on = c.inspects};
		struct lb_chain_match *m = lb_chain_match_new(c.confs, c.n, &inspector, &err);
		if (c.inspects) // else not every duplicate is looked at (A36-25)
			assert_int_equal(!m, twin_has_duplicates(&c));
		n_refused += !m;
		if (!m)
			continue;
		n_matched += check_chains(&r, &c, m);
		n += ASKS;
		lb_chain_match_put(m);
	}
	printf("%llu connections, seed %llu: %llu matched; %llu sets of chains refused\n",
		(unsigned long long)n, (unsigned long long)seed, (unsigned long long)n_matched,
		(unsigned long long)n_refused);
	assert_true(n_matched > n / 8 && n_matched < n && n_refused);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		n_connections = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10);
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(random_chains_are_chosen_as_a_naive_twin_chooses_them)};
	return cmocka_run_group_tests_name("lb/chain_match at random", suite, NULL, NULL);
}
