// SPDX-License-Identifier: Apache-2.0
#include "lb/route/chain_match.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CHAINS 8
#define MAX_ITEMS 4

// "A/n" as Envoy's CidrRange; NULL ends the lists.
struct chain {
	const char *to[MAX_ITEMS], *from[MAX_ITEMS];
	uint32_t ports[MAX_ITEMS]; // 0 ends it
	enum lb_source_type type;
	enum lb_chain_never never;
	bool raw;
};

struct confs {
	struct lb_chain_conf list[MAX_CHAINS];
	struct ip_prefix to[MAX_CHAINS][MAX_ITEMS], from[MAX_CHAINS][MAX_ITEMS];
	uint32_t n;
};

static uint32_t read_prefixes(const char *const text[MAX_ITEMS], struct ip_prefix *ret)
{
	uint32_t n = 0;
	for (; n < MAX_ITEMS && text[n]; n++) {
		char ip[64];
		const char *slash = strchr(text[n], '/');
		snprintf(ip, sizeof(ip), "%.*s", (int)(slash - text[n]), text[n]);
		assert_true(ip_parse(ip, &ret[n].ip));
		unsigned bits = (unsigned)atoi(slash + 1) + (strchr(ip, ':') ? 0 : IP_V4_BITS);
		ret[n].bits = (uint8_t)bits;
	}
	return n;
}

static void read_chains(struct confs *c, const struct chain *chains)
{
	memset(c, 0, sizeof(*c));
	for (uint32_t i = 0; i < MAX_CHAINS; i++) {
		const struct chain *in = &chains[i];
		struct lb_chain_conf *out = &c->list[i];
		*out = (struct lb_chain_conf){.destinations = c->to[i],
			.sources = c->from[i],
			.source_ports = in->ports,
			.source_type = in->type,
			.never = in->never,
			.raw_buffer = in->raw};
		out->n_destinations = read_prefixes(in->to, c->to[i]);
		out->n_sources = read_prefixes(in->from, c->from[i]);
		while (out->n_source_ports < MAX_ITEMS && in->ports[out->n_source_ports])
			out->n_source_ports++;
	}
}

#define NONE (-1)

struct ask {
	const char *local, *remote;
	uint16_t port;
	int chain;
};

static int find(const struct lb_chain_match *m, const struct ask *a)
{
	struct ip_addr local;
	struct ip_port remote = {.port = a->port};
	assert_true(ip_parse(a->local, &local) && ip_parse(a->remote, &remote.ip));
	uint32_t chain = lb_chain_match_find(m, &local, &remote);
	return chain == LB_NO_CHAIN ? NONE : (int)chain;
}

static void check_all(const struct chain *chains, uint32_t n, const struct ask *asks, size_t n_asks)
{
	struct confs c;
	struct lb_err err = {""};
	read_chains(&c, chains);
	struct lb_chain_match *m = lb_chain_match_new(c.list, n, &err);
	if (!m)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < n_asks; i++) {
		int got = find(m, &asks[i]);
		if (got != asks[i].chain)
			fail_msg("ask %zu: %s from %s:%u: chain %d instead of %d", i, asks[i].local,
				asks[i].remote, asks[i].port, got, asks[i].chain);
	}
	lb_chain_match_put(m);
}
#define CHECK_ALL(n) check_all(chains, n, asks, sizeof(asks) / sizeof(asks[0]))

// A36-20
static void the_destination_is_looked_at_first(void **state)
{
	static const struct chain chains[MAX_CHAINS] = {
		{.from = {"10.0.0.1/32"}},
		{.to = {"192.168.0.0/16"}},
		{.to = {"192.168.1.0/24", "fd00::/8"}, .from = {"10.2.0.0/16"}},
		{.to = {"0.0.0.0/0"}, .from = {"10.9.0.0/16"}},
	};
	static const struct ask asks[] = {
		{"192.168.1.9", "10.2.3.4", 1, 2},
		{"192.168.1.9", "10.3.3.4", 1, NONE}, // not chain 1, whose prefix is shorter
		{"192.168.2.9", "10.2.3.4", 1, 1},
		{"8.8.8.8", "10.9.3.4", 1, 3},
		{"8.8.8.8", "10.0.0.1", 1, NONE}, // an IPv4 prefix of 0 is more than none
		{"2001::1", "10.0.0.1", 1, 0},
		{"fd00::1", "10.2.0.1", 1, 2},
		{"fd00::1", "10.0.0.1", 1, NONE},
	};
	CHECK_ALL(4);
}

// A36-21
static void the_source_type_is_any_where_none_is_of_its_own(void **state)
{
	static const struct chain chains[MAX_CHAINS] = {
		{.type = LB_SOURCE_ANY},
		{.type = LB_SOURCE_LOCAL},
		{.to = {"10.0.0.0/8"}, .type = LB_SOURCE_EXTERNAL, .from = {"10.1.0.0/16"}},
		{.to = {"10.0.0.0/8"}, .type = LB_SOURCE_ANY},
	};
	static const struct ask asks[] = {
		{"1.1.1.1", "1.1.1.1", 1, 1},
		{"1.1.1.1", "127.0.0.7", 1, 1},
		{"fd00::1", "::1", 1, 1},
		{"1.1.1.1", "1.1.1.2", 1, 0},
		{"10.0.0.1", "10.0.0.1", 1, 3},
		{"10.0.0.1", "10.1.0.1", 1, 2},
		{"10.0.0.1", "10.2.0.1", 1, NONE},
	};
	CHECK_ALL(4);
}

// A36-22, A36-23
static void the_source_and_then_its_port_are_looked_at_last(void **state)
{
	static const struct chain chains[MAX_CHAINS] = {
		{.from = {"10.0.0.0/8"}},
		{.from = {"10.1.0.0/16"}, .ports = {80, 90}},
		{.from = {"10.1.2.0/24"}},
		{.from = {"10.1.2.0/24"}, .ports = {443, 80}},
		{.from = {"10.1.2.3/32", "fd00::/64"}, .ports = {7}},
		{.ports = {65535}},
		{.from = {"::/0"}},
	};
	static const struct ask asks[] = {
		{"1.1.1.1", "10.9.0.1", 80, 0},
		{"1.1.1.1", "10.1.0.1", 80, 1},
		{"1.1.1.1", "10.1.0.1", 90, 1},
		{"1.1.1.1", "10.1.0.1", 81, NONE}, // not chain 0
		{"1.1.1.1", "10.1.2.1", 81, 2},
		{"1.1.1.1", "10.1.2.1", 80, 3},
		{"1.1.1.1", "10.1.2.1", 443, 3},
		{"1.1.1.1", "10.1.2.3", 7, 4},
		{"1.1.1.1", "10.1.2.3", 80, NONE},
		{"1.1.1.1", "11.0.0.1", 65535, 5},
		{"1.1.1.1", "11.0.0.1", 65534, NONE},
		{"1.1.1.1", "fd00::1", 7, 4},
		{"1.1.1.1", "fd00::1", 8, NONE},
		{"1.1.1.1", "fd01::1", 8, 6},
	};
	CHECK_ALL(7);
}

// A36-24, A36-25
static void chains_that_never_match_still_hide_others(void **state)
{
	static const struct chain chains[MAX_CHAINS] = {
		{.to = {"10.0.0.0/8"}},
		{.to = {"10.1.0.0/16"}, .never = LB_CHAIN_NEVER},
		{.to = {"10.2.0.0/16"}, .never = LB_CHAIN_NEVER_IN_PREFIX},
		{.to = {"10.3.0.0/16"}, .never = LB_CHAIN_NEVER_BY_ALPN},
		{.to = {"10.4.0.0/16"}, .never = LB_CHAIN_NEVER_BY_ALPN, .raw = true},
		{.to = {"10.4.0.0/16"}},
		{.to = {"10.5.0.0/16"}, .never = LB_CHAIN_NEVER_IN_PREFIX, .raw = true},
		{.to = {"10.5.0.0/16"}},
	};
	static const struct ask asks[] = {
		{"10.9.0.1", "1.1.1.1", 1, 0},
		{"10.1.0.1", "1.1.1.1", 1, 0},
		{"10.2.0.1", "1.1.1.1", 1, NONE},
		{"10.3.0.1", "1.1.1.1", 1, NONE},
		{"10.4.0.1", "1.1.1.1", 1, NONE},
		{"10.5.0.1", "1.1.1.1", 1, 7},
		{"11.0.0.1", "1.1.1.1", 1, NONE},
	};
	CHECK_ALL(8);
}

// A36-25
static void raw_buffer_goes_before_none_within_a_prefix(void **state)
{
	static const struct chain chains[MAX_CHAINS] = {
		{.from = {"1.1.1.1/32"}},
		{.raw = true},
		{.from = {"1.1.1.1/32"}}, // behind raw_buffer: never seen, and no duplicate
		{.to = {"10.0.0.0/8"}, .from = {"1.1.1.1/32"}},
	};
	static const struct ask asks[] = {
		{"11.0.0.1", "1.1.1.1", 1, 1},
		{"11.0.0.1", "1.1.1.2", 1, 1},
		{"10.0.0.1", "1.1.1.1", 1, 3},
		{"10.0.0.1", "1.1.1.2", 1, NONE},
	};
	CHECK_ALL(4);
}

// A36-12: in the normal form of A36.
static void chains_for_the_same_connections_are_refused(void **state)
{
#define SAME(a, b) "filter_chains[" #a "] matches the same as filter_chains[" #b "]"
	static const struct {
		uint32_t n;
		struct chain chains[MAX_CHAINS];
		const char *text; // "" = fine
	} rows[] = {
		{2, {{.type = LB_SOURCE_ANY}, {.type = LB_SOURCE_ANY}}, SAME(1, 0)},
		{2, {{.to = {"10.0.0.0/8"}}, {.to = {"10.9.9.9/8"}}}, SAME(1, 0)}, // low bits
		{2, {{.to = {"10.0.0.0/8"}}, {.to = {"10.0.0.0/9"}}}, ""},
		{2, {{.to = {"0.0.0.0/0"}}, {.to = {"::/0"}}}, ""},
		{2, {{.to = {"0.0.0.0/0"}}, {.type = LB_SOURCE_ANY}}, ""},
		{2,
			{{.to = {"192.168.0.0/24", "10.1.0.0/16"},
				 .from = {"192.168.1.0/24", "10.2.0.0/16"},
				 .type = LB_SOURCE_EXTERNAL},
				{.to = {"10.1.0.0/16"},
					.from = {"10.2.0.0/16"},
					.type = LB_SOURCE_EXTERNAL}},
			SAME(1, 0)},
		{2, {{.type = LB_SOURCE_EXTERNAL}, {.type = LB_SOURCE_ANY}}, ""},
		{2, {{.ports = {1, 2}}, {.ports = {3, 2}}}, SAME(1, 0)},
		{2, {{.ports = {1}}, {.type = LB_SOURCE_ANY}}, ""},
		{1, {{.ports = {7, 7}}}, SAME(0, 0)},
		{1, {{.to = {"10.0.0.0/8", "10.1.0.0/8"}}}, SAME(0, 0)},
		{2, {{.never = LB_CHAIN_NEVER}, {.never = LB_CHAIN_NEVER}}, ""},
		{2, {{.never = LB_CHAIN_NEVER_IN_PREFIX}, {.never = LB_CHAIN_NEVER_IN_PREFIX}}, ""},
		{2, {{.raw = true}, {.raw = true}}, SAME(1, 0)},
		{2, {{.type = LB_SOURCE_ANY}, {.raw = true}}, ""},
		{3, {{.raw = true}, {.type = LB_SOURCE_ANY}, {.type = LB_SOURCE_ANY}}, ""},
		{3, {{.type = LB_SOURCE_ANY}, {.type = LB_SOURCE_ANY}, {.raw = true}}, SAME(1, 0)},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct confs c;
		struct lb_err err = {""};
		read_chains(&c, rows[i].chains);
		struct lb_chain_match *m = lb_chain_match_new(c.list, rows[i].n, &err);
		if (strcmp(err.text, rows[i].text) != 0 || !m != (rows[i].text[0] != 0))
			fail_msg("row %zu: \"%s\"", i, err.text);
		lb_chain_match_put(m);
	}
}

// A36-13
static void a_listener_has_so_many_matches_at_most(void **state)
{
	uint32_t ports[256], more[257];
	struct ip_prefix sources[256];
	struct lb_err err = {""};
	for (uint32_t i = 0; i < 257; i++)
		more[i] = i + 1;
	memcpy(ports, more, sizeof(ports));
	for (uint32_t i = 0; i < 256; i++)
		sources[i] = (struct ip_prefix){ip_from_v4(i << 24), IP_V4_BITS + 8};
	struct lb_chain_conf c = {
		.sources = sources, .n_sources = 256, .source_ports = ports, .n_source_ports = 256};
	struct lb_chain_match *m = lb_chain_match_new(&c, 1, &err);
	assert_non_null(m);
	struct ip_addr local = {{0}};
	struct ip_port remote = {ip_from_v4(UINT32_C(0xff010203)), 256};
	assert_int_equal(lb_chain_match_find(m, &local, &remote), 0);
	remote.port = 257;
	assert_int_equal(lb_chain_match_find(m, &local, &remote), LB_NO_CHAIN);
	lb_chain_match_put(lb_chain_match_get(m));
	lb_chain_match_put(m);
	c.source_ports = more;
	c.n_source_ports = 257;
	assert_null(lb_chain_match_new(&c, 1, &err));
	assert_string_equal(err.text, "more than 65536 prefixes and ports, multiplied");
}

RUN_SUITE("lb/chain_match", cmocka_unit_test(the_destination_is_looked_at_first),
	cmocka_unit_test(the_source_type_is_any_where_none_is_of_its_own),
	cmocka_unit_test(the_source_and_then_its_port_are_looked_at_last),
	cmocka_unit_test(chains_that_never_match_still_hide_others),
	cmocka_unit_test(raw_buffer_goes_before_none_within_a_prefix),
	cmocka_unit_test(chains_for_the_same_connections_are_refused),
	cmocka_unit_test(a_listener_has_so_many_matches_at_most))
