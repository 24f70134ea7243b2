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
	enum lb_transport transport;
	const char *names[MAX_ITEMS], *alpn[MAX_ITEMS];
	bool never;
};

struct confs {
	struct lb_chain_conf list[MAX_CHAINS];
	struct ip_prefix to[MAX_CHAINS][MAX_ITEMS], from[MAX_CHAINS][MAX_ITEMS];
	struct str names[MAX_CHAINS][MAX_ITEMS], alpn[MAX_CHAINS][MAX_ITEMS];
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

static uint32_t read_texts(const char *const text[MAX_ITEMS], struct str *ret)
{
	uint32_t n = 0;
	for (; n < MAX_ITEMS && text[n]; n++)
		ret[n] = str_from(text[n]);
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
			.server_names = c->names[i],
			.protocols = c->alpn[i],
			.transport = in->transport,
			.never = in->never};
		out->n_server_names = read_texts(in->names, c->names[i]);
		out->n_protocols = read_texts(in->alpn, c->alpn[i]);
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
	bool tls;
	const char *name, *alpn; // alpn: as on the wire
};

static int find(const struct lb_chain_match *m, const struct ask *a)
{
	struct ip_addr local;
	struct ip_port remote = {.port = a->port};
	assert_true(ip_parse(a->local, &local) && ip_parse(a->remote, &remote.ip));
	struct lb_chain_hello hello = {
		.tls = a->tls, .server_name = str_from(a->name), .protocols = str_from(a->alpn)};
	uint32_t chain = lb_chain_match_find(m, &local, &remote, &hello);
	return chain == LB_NO_CHAIN ? NONE : (int)chain;
}

static const struct lb_inspector without, with = {.on = true};

static void check_all(const struct chain *chains, uint32_t n, const struct lb_inspector *inspector,
	const struct ask *asks, size_t n_asks)
{
	struct confs c;
	struct lb_err err = {""};
	read_chains(&c, chains);
	struct lb_chain_match *m = lb_chain_match_new(c.list, n, inspector, &err);
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
#define CHECK_ALL(n) check_all(chains, n, &without, asks, sizeof(asks) / sizeof(asks[0]))
#define CHECK_INSPECTED(n) check_all(chains, n, &with, asks, sizeof(asks) / sizeof(asks[0]))

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

// A36-20, A36-22: also such as have no fewer bits than an IPv4 prefix has here.
static void long_prefixes_of_ipv6_match_their_family_alone(void **state)
{
	static const struct chain chains[MAX_CHAINS] = {
		{.to = {"fd00::1/128"}},
		{.to = {"fd00::/96"}, .from = {"fd01::1/128", "fd02::/100"}},
		{.to = {"::/0"}},
		{.from = {"10.0.0.0/8"}},
	};
	static const struct ask asks[] = {
		{"fd00::1", "10.0.0.1", 1, 0},
		{"fd00::2", "fd01::1", 1, 1},
		{"fd00::2", "fd02::1", 1, 1},
		{"fd00::2", "fd01::2", 1, NONE},
		{"fd03::1", "fd01::2", 1, 2},
		{"1.1.1.1", "10.0.0.1", 1, 3},
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
		{.to = {"10.1.0.0/16"}, .never = true},
		{.to = {"10.2.0.0/16"}, .names = {"a.example"}},
		{.to = {"10.3.0.0/16"}, .alpn = {"h2"}},
		{.to = {"10.4.0.0/16"}, .alpn = {"h2"}, .transport = LB_TRANSPORT_RAW},
		{.to = {"10.4.0.0/16"}},
		{.to = {"10.5.0.0/16"}, .names = {"a.example"}, .transport = LB_TRANSPORT_RAW},
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
		{.transport = LB_TRANSPORT_RAW},
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

// A36-38
static void a_server_name_is_looked_at_behind_the_destination(void **state)
{
	static const struct chain chains[MAX_CHAINS] = {
		{.names = {"a.example", "b.example"}},
		{.names = {"*.example"}},
		{.names = {"*.deep.example"}},
		{.type = LB_SOURCE_ANY},
		{.to = {"10.0.0.0/8"}, .names = {"a.example"}},
		{.names = {"c.example"}, .from = {"10.0.0.0/8"}},
	};
	static const struct ask asks[] = {
		{"1.1.1.1", "1.1.1.2", 1, 0, true, "a.example"},
		{"1.1.1.1", "1.1.1.2", 1, 0, true, "b.example"},
		{"1.1.1.1", "1.1.1.2", 1, 1, true, "x.example"},
		{"1.1.1.1", "1.1.1.2", 1, 1, true, "y.x.example"},
		{"1.1.1.1", "1.1.1.2", 1, 2, true, "y.deep.example"},
		{"1.1.1.1", "1.1.1.2", 1, 2, true, "z.y.deep.example"},
		{"1.1.1.1", "1.1.1.2", 1, 1, true, "deep.example"},
		{"1.1.1.1", "1.1.1.2", 1, 3, true, "example"},
		{"1.1.1.1", "1.1.1.2", 1, 3, true, "x.example."},
		{"1.1.1.1", "1.1.1.2", 1, 1, true, ".example"}, // as Envoy
		{"1.1.1.1", "1.1.1.2", 1, 3, true, "."}, {"1.1.1.1", "1.1.1.2", 1, 3, true, ""},
		{"1.1.1.1", "1.1.1.2", 1, 3, false, ""},
		{"10.1.1.1", "1.1.1.2", 1, 4, true, "a.example"},
		{"10.1.1.1", "1.1.1.2", 1, NONE, true, "b.example"}, // not chain 0
		{"1.1.1.1", "10.1.1.2", 1, 5, true, "c.example"},
		{"1.1.1.1", "1.1.1.2", 1, NONE, true, "c.example"}, // not chain 1
	};
	CHECK_INSPECTED(6);
}

// A36-38
static void protocols_are_looked_at_behind_the_name(void **state)
{
	static const struct chain chains[MAX_CHAINS] = {
		{.transport = LB_TRANSPORT_TLS},
		{.transport = LB_TRANSPORT_RAW},
		{.transport = LB_TRANSPORT_TLS, .alpn = {"h2", "grpc-exp"}},
		{.alpn = {"http/1.1"}},
		{.names = {"a"}, .alpn = {"h2"}},
		{.names = {"b"}, .transport = LB_TRANSPORT_TLS},
		{.names = {"b"}, .transport = LB_TRANSPORT_ANY, .alpn = {"h2"}},
		{.names = {"a"}, .transport = LB_TRANSPORT_OTHER},
	};
	static const struct ask asks[] = {
		{"1.1.1.1", "1.1.1.2", 1, 0, true},
		{"1.1.1.1", "1.1.1.2", 1, 1, false},
		{"1.1.1.1", "1.1.1.2", 1, 2, true, "", "\2h2"},
		{"1.1.1.1", "1.1.1.2", 1, 2, true, "", "\10http/1.1\10grpc-exp"},
		{"1.1.1.1", "1.1.1.2", 1, 0, true, "", "\10http/1.1"}, // TLS comes before
		{"1.1.1.1", "1.1.1.2", 1, 0, true, "", "\11h2"}, // beyond the end
		{"1.1.1.1", "1.1.1.2", 1, 4, true, "a", "\2h3\2h2"},
		{"1.1.1.1", "1.1.1.2", 1, NONE, true, "a", "\2h3"},
		{"1.1.1.1", "1.1.1.2", 1, 5, true, "b", "\2h2"},
	};
	CHECK_INSPECTED(8);
}

static bool wants_hello(const struct chain *chain, const struct lb_inspector *inspector)
{
	static struct chain chains[MAX_CHAINS];
	struct confs c;
	struct lb_err err = {""};
	chains[0] = *chain;
	read_chains(&c, chains);
	struct lb_chain_match *m = lb_chain_match_new(c.list, 1, inspector, &err);
	assert_non_null(m);
	bool wants = lb_chain_match_inspector(m) != NULL;
	lb_chain_match_put(m);
	return wants;
}

// A36-38: whoever needs no hello waits for none.
static void a_hello_is_wanted_where_it_decides(void **state)
{
	const struct chain rows[] = {{.names = {"a"}}, {.alpn = {"h2"}},
		{.transport = LB_TRANSPORT_TLS}, {.transport = LB_TRANSPORT_RAW}};
	assert_false(wants_hello(&(struct chain){.to = {"10.0.0.0/8"}, .ports = {1}}, &with));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(wants_hello(&rows[i], &with));
		assert_false(wants_hello(&rows[i], &without));
	}
}

// A36-40, TLS-221: where no chain asks, too.
static void a_hello_is_wanted_where_the_inspector_says_who_is_served(void **state)
{
	const struct chain any = {.ports = {1}};
	assert_true(wants_hello(&any, &(struct lb_inspector){.on = true, .closes = true}));
	assert_true(wants_hello(&any, &(struct lb_inspector){.on = true, .max_hello = 256}));
	assert_false(wants_hello(&any, &(struct lb_inspector){.closes = true}));
}

// A36-25: without the inspector a hello says nothing.
static void a_hello_nobody_asked_for_does_not_count(void **state)
{
	static const struct chain chains[MAX_CHAINS] = {{.names = {"a"}},
		{.transport = LB_TRANSPORT_TLS}, {.alpn = {"h2"}}, {.ports = {7}}};
	static const struct ask asks[] = {
		{"1.1.1.1", "1.1.1.2", 7, 3, true, "a", "\2h2"},
		{"1.1.1.1", "1.1.1.2", 1, NONE, true, "a", "\2h2"},
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
		bool inspects;
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
		{2, {{.never = true}, {.never = true}}, ""},
		{2, {{.names = {"a"}}, {.names = {"a"}}}, ""},
		{2, {{.transport = LB_TRANSPORT_RAW}, {.transport = LB_TRANSPORT_RAW}}, SAME(1, 0)},
		{2, {{.names = {"a"}}, {.names = {"b", "a"}}}, SAME(1, 0), true}, // A36-39
		{2, {{.names = {"*.a"}}, {.names = {"a"}}}, "", true},
		{1, {{.names = {"a", "a"}}}, SAME(0, 0), true},
		{2, {{.alpn = {"h2"}}, {.alpn = {"h3", "h2"}}}, SAME(1, 0), true},
		{2, {{.alpn = {"h2"}}, {.names = {"a"}, .alpn = {"h2"}}}, "", true},
		{2, {{.transport = LB_TRANSPORT_TLS}, {.transport = LB_TRANSPORT_TLS}}, SAME(1, 0),
			true},
		{3,
			{{.transport = LB_TRANSPORT_RAW}, {.type = LB_SOURCE_ANY},
				{.type = LB_SOURCE_ANY}},
			SAME(2, 1), true},
		{2, {{.type = LB_SOURCE_ANY}, {.transport = LB_TRANSPORT_RAW}}, ""},
		{3,
			{{.transport = LB_TRANSPORT_RAW}, {.type = LB_SOURCE_ANY},
				{.type = LB_SOURCE_ANY}},
			""},
		{3,
			{{.type = LB_SOURCE_ANY}, {.type = LB_SOURCE_ANY},
				{.transport = LB_TRANSPORT_RAW}},
			SAME(1, 0)},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct confs c;
		struct lb_err err = {""};
		read_chains(&c, rows[i].chains);
		struct lb_chain_match *m = lb_chain_match_new(
			c.list, rows[i].n, rows[i].inspects ? &with : &without, &err);
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
	struct lb_chain_match *m = lb_chain_match_new(&c, 1, &without, &err);
	assert_non_null(m);
	struct ip_addr local = {{0}};
	const struct lb_chain_hello silent = {.tls = false};
	struct ip_port remote = {ip_from_v4(UINT32_C(0xff010203)), 256};
	assert_int_equal(lb_chain_match_find(m, &local, &remote, &silent), 0);
	remote.port = 257;
	assert_int_equal(lb_chain_match_find(m, &local, &remote, &silent), LB_NO_CHAIN);
	lb_chain_match_put(lb_chain_match_get(m));
	lb_chain_match_put(m);
	c.source_ports = more;
	c.n_source_ports = 257;
	assert_null(lb_chain_match_new(&c, 1, &without, &err));
	assert_string_equal(
		err.text, "more than 65536 prefixes, names, protocols and ports, multiplied");
}

RUN_SUITE("lb/chain_match", cmocka_unit_test(the_destination_is_looked_at_first),
	cmocka_unit_test(long_prefixes_of_ipv6_match_their_family_alone),
	cmocka_unit_test(the_source_type_is_any_where_none_is_of_its_own),
	cmocka_unit_test(the_source_and_then_its_port_are_looked_at_last),
	cmocka_unit_test(chains_that_never_match_still_hide_others),
	cmocka_unit_test(raw_buffer_goes_before_none_within_a_prefix),
	cmocka_unit_test(a_server_name_is_looked_at_behind_the_destination),
	cmocka_unit_test(protocols_are_looked_at_behind_the_name),
	cmocka_unit_test(a_hello_is_wanted_where_it_decides),
	cmocka_unit_test(a_hello_is_wanted_where_the_inspector_says_who_is_served),
	cmocka_unit_test(a_hello_nobody_asked_for_does_not_count),
	cmocka_unit_test(chains_for_the_same_connections_are_refused),
	cmocka_unit_test(a_listener_has_so_many_matches_at_most))
