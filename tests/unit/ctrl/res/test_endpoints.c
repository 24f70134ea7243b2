// SPDX-License-Identifier: Apache-2.0
// What is made of a ClusterLoadAssignment, and of the addresses of a LOGICAL_DNS cluster.
#include "ctrl/res/endpoints.h"
#include "ctrl/res/endpoints_wire.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/res/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ONE(rest)                                                                                  \
	"{'clusterName':'e','endpoints':[{'locality':{},'loadBalancingWeight':1,'lbEndpoints':["   \
	"{'endpoint':{'address':{'socketAddress':{'address':'10.0.0.7','portValue':82}}" rest      \
	"}]}]}"

static struct lb_leaf_endpoint first(const struct res_endpoints *e)
{
	return lb_leaf_endpoints_at(e->list, 0);
}

// RH-01, gRFC A76.
static void the_hash_key_is_a_string_in_envoy_lb(void **state)
{
#define METADATA(rest) ONE("},'metadata':{'filterMetadata':{" rest "}}")
	static const char *const CASES[][2] = {
		{ONE("}"), ""},
		{METADATA("'envoy.lb':{'hash_key':'seven'}"), "seven"},
		{METADATA("'envoy.lb':{'other':1,'hash_key':'seven'},'x':{'hash_key':'eight'}"),
			"seven"},
		{METADATA("'envoy.lb':{'hash_key':''}"), ""},
		{METADATA("'envoy.lb':{'hash_key':7}"), ""},
		{METADATA("'envoy.lb':{'hash_key':null}"), ""},
		{METADATA("'envoy.lb':{'hash_key':['seven']}"), ""},
		{METADATA("'envoy.lb':{}"), ""},
		{METADATA("'envoy.lc':{'hash_key':'seven'}"), ""},
	};
	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		struct xds_res *r = res_decode(&res_type_endpoints, CASES[i][0]);
		const struct res_endpoints *e = res_endpoints_from(r);
		assert_true(str_eq(first(e).hash_key, str_from(CASES[i][1])));
		assert_int_equal(!e->list->hash_keys, !*CASES[i][1]);
		xds_res_put(r);
	}
}

// HC-04, HC-05.
static void the_proxy_is_an_address_in_typed_metadata(void **state)
{
#define PROXY_AT(type, value)                                                                      \
	"'" EDS_PROXY_KEY "':{'@type':'type.googleapis.com/envoy." type "'" value "}"
#define PROXY(address)                                                                             \
	PROXY_AT("config.core.v3.Address",                                                         \
		",'socketAddress':{'address':'" address "','portValue':3128}")
#define TYPED(rest) "'metadata':{'typedFilterMetadata':{" rest "}}"
#define OF_ENDPOINT(rest) ONE("}," TYPED(rest))
#define OF_LOCALITY(locality, endpoint)                                                            \
	"{'clusterName':'e','endpoints':[{'locality':{},'loadBalancingWeight':1," TYPED(           \
		locality) ",'lbEndpoints':[{'endpoint':{'address':{'socketAddress':{'address':"    \
			  "'10.0.0.7','portValue':82}}}," TYPED(endpoint) "}]}]}"
	static const char *const CASES[][2] = {
		{ONE("}"), NULL},
		{OF_ENDPOINT(""), NULL},
		{OF_ENDPOINT(PROXY("10.0.0.9")), "10.0.0.9:3128"},
		{OF_ENDPOINT(PROXY("fd00::9")), "[fd00::9]:3128"},
		{OF_ENDPOINT("'other':{'@type':'x/envoy.config.core.v3.Address'}"), NULL},
		{OF_ENDPOINT(PROXY_AT("extensions.transport_sockets.raw_buffer.v3.RawBuffer", "")),
			NULL},
		{OF_LOCALITY(PROXY("10.0.0.9"), ""), "10.0.0.9:3128"},
		{OF_LOCALITY(PROXY("10.0.0.9"), PROXY("10.0.0.10")), "10.0.0.10:3128"},
		{OF_LOCALITY(PROXY("10.0.0.9"),
			 PROXY_AT("extensions.transport_sockets.raw_buffer.v3.RawBuffer", "")),
			"10.0.0.9:3128"},
	};
	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		char text[IP_PORT_TEXT_MAX];
		struct xds_res *r = res_decode(&res_type_endpoints, CASES[i][0]);
		const struct res_endpoints *e = res_endpoints_from(r);
		const struct ip_port proxy = first(e).proxy;
		assert_int_equal(!proxy.port, !CASES[i][1]);
		assert_int_equal(!e->list->proxies, !CASES[i][1]);
		if (CASES[i][1])
			assert_string_equal(ip_port_print(&proxy, text), CASES[i][1]);
		xds_res_put(r);
	}
}

static void what_few_endpoints_have_stands_aside(void **state)
{
	struct xds_res *r = res_decode(&res_type_endpoints,
		ONE(",'hostname':'h','additionalAddresses':[{'address':{'socketAddress':"
		    "{'address':'fd00::7','portValue':83}}}]}"));
	const struct lb_leaf_endpoint e = first(res_endpoints_from(r));
	char text[IP_PORT_TEXT_MAX];
	assert_true(str_eq(e.hostname, STR("h")));
	assert_int_equal(e.hash_key.len, 0);
	assert_int_equal(e.n_addresses, 2);
	assert_string_equal(ip_port_print(&e.addresses[1], text), "[fd00::7]:83");
	xds_res_put(r);
}

// A55-V07.
static void a_health_that_nobody_knows_is_none_of_those_known(void **state)
{
	static const struct {
		const char *number;
		int health;
	} cases[] = {{"5", LB_LEAF_DEGRADED}, {"6", LB_LEAF_OTHER}, {"256", LB_LEAF_OTHER},
		{"257", LB_LEAF_OTHER}, {"-1", LB_LEAF_OTHER}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char json[256];
		snprintf(json, sizeof(json), ONE("},'healthStatus':%s"), cases[i].number);
		struct xds_res *r = res_decode(&res_type_endpoints, json);
		assert_int_equal(first(res_endpoints_from(r)).health, cases[i].health);
		xds_res_put(r);
	}
}

// A27-I02, WF-05.
static void drops_are_parts_of_a_million(void **state)
{
	struct xds_res *r = res_decode(&res_type_endpoints,
		"{'clusterName':'e','policy':{'dropOverloads':["
		"{'category':'a','dropPercentage':{'numerator':7}},"
		"{'category':'b','dropPercentage':{'numerator':7,'denominator':'TEN_THOUSAND'}},"
		"{'category':'c','dropPercentage':{'numerator':7,'denominator':'MILLION'}},"
		"{'category':'d','dropPercentage':{'numerator':100}},"
		"{'category':'e','dropPercentage':{'numerator':101}},"
		"{'category':'f','dropPercentage':{'numerator':4294967295}},"
		"{'category':'g','dropPercentage':{'denominator':'MILLION'}},"
		"{'category':'h','dropPercentage':{'numerator':10001,"
		"'denominator':'TEN_THOUSAND'}},"
		"{'category':'i','dropPercentage':{'numerator':999999,"
		"'denominator':'MILLION'}}]}}");
	static const uint32_t wanted[] = {
		70000, 700, 7, 1000000, 1000000, 1000000, 0, 1000000, 999999};
	const struct res_endpoints *e = res_endpoints_from(r);
	assert_int_equal(e->n_drops, 9);
	for (uint32_t i = 0; i < 9; i++) {
		assert_int_equal(e->drops[i].per_million, wanted[i]);
		assert_true(e->drops[i].category[0] == (char)('a' + i));
	}
	xds_res_put(r);
}

// The encoding by hand. Every part is below 128 bytes.

struct bytes {
	uint8_t b[128];
	size_t n;
};

static struct bytes join(struct bytes a, struct bytes b)
{
	assert_true(a.n + b.n <= sizeof(a.b));
	memcpy(a.b + a.n, b.b, b.n);
	a.n += b.n;
	return a;
}

static struct bytes inside(unsigned number, struct bytes in)
{
	return join((struct bytes){{(uint8_t)(number << 3 | 2), (uint8_t)in.n}, 2}, in);
}

static struct bytes text(unsigned number, const char *value)
{
	struct bytes in = {.n = strlen(value)};
	memcpy(in.b, value, in.n);
	return inside(number, in);
}

static struct bytes number(unsigned field, uint8_t value)
{
	return (struct bytes){{(uint8_t)(field << 3), value}, 2};
}

#define NOTHING ((struct bytes){{0}, 0})

static struct bytes ip_address(const char *ip, uint8_t port) // an Address
{
	return inside(1, join(text(2, ip), number(3, port)));
}

// The resource around one LbEndpoint.
static struct bytes around(struct bytes endpoint)
{
	struct bytes locality = inside(1, NOTHING);
	struct bytes weight = inside(3, number(1, 1));
	return inside(2, join(join(locality, inside(2, endpoint)), weight));
}

static struct xds_res *read_one(struct bytes endpoint)
{
	struct bytes all = around(endpoint);
	return res_decode_bytes(&res_type_endpoints, all.b, all.n);
}

static void refuse_one(struct bytes endpoint, const char *why)
{
	struct bytes all = around(endpoint);
	res_refuse_bytes(&res_type_endpoints, all.b, all.n, why);
}

static void expect_addr(struct bytes endpoint, const char *wanted)
{
	char printed[IP_PORT_TEXT_MAX];
	struct xds_res *r = read_one(endpoint);
	ip_port_print(&first(res_endpoints_from(r)).addresses[0], printed);
	assert_string_equal(printed, wanted);
	xds_res_put(r);
}

// WF-01.
static void a_message_that_is_there_twice_merges(void **state)
{
	struct bytes ip = text(2, "10.0.0.1"), port = number(3, 80);
	struct bytes two_sockets = join(inside(1, ip), inside(1, port));
	expect_addr(inside(1, inside(1, two_sockets)), "10.0.0.1:80");
	struct bytes two_addresses = join(inside(1, inside(1, ip)), inside(1, inside(1, port)));
	expect_addr(inside(1, two_addresses), "10.0.0.1:80");
	struct bytes two_endpoints =
		join(inside(1, inside(1, inside(1, ip))), inside(1, inside(1, inside(1, port))));
	expect_addr(two_endpoints, "10.0.0.1:80");
	struct bytes weight = join(inside(4, number(1, 7)), inside(4, NOTHING));
	struct xds_res *r =
		read_one(join(inside(1, inside(1, ip_address("10.0.0.1", 80))), weight));
	assert_int_equal(first(res_endpoints_from(r)).weight, 7);
	xds_res_put(r);
}

static void the_last_scalar_counts(void **state)
{
	struct bytes socket = join(
		join(text(2, "nonsense"), text(2, "10.0.0.1")), join(number(3, 0), number(3, 80)));
	expect_addr(inside(1, inside(1, inside(1, socket))), "10.0.0.1:80");
}

static void the_last_member_of_a_oneof_counts(void **state)
{
	struct bytes good = inside(1, inside(1, ip_address("10.0.0.1", 80)));
	refuse_one(join(good, text(5, "name")), "no endpoint");
	expect_addr(join(text(5, "name"), good), "10.0.0.1:80");
	// What stood before another member is gone.
	refuse_one(join(join(good, text(5, "name")), inside(1, NOTHING)), "no socket_address");
	struct bytes pipe = inside(2, NOTHING), socket = ip_address("10.0.0.1", 80);
	refuse_one(inside(1, inside(1, join(socket, pipe))), "no socket_address");
	refuse_one(inside(1, inside(1, join(join(socket, pipe), inside(1, number(3, 80))))),
		"\"\" is not an IP address");
	struct bytes named = join(text(2, "10.0.0.1"), join(number(3, 80), text(4, "http")));
	refuse_one(inside(1, inside(1, inside(1, named))), "no port_value");
}

// Five addresses are counted before endpoint_name takes them away.
static void additional_addresses_of_a_member_that_lost_are_gone(void **state)
{
	struct bytes more = inside(4, inside(1, ip_address("10.0.0.9", 9)));
	struct bytes host = inside(1, ip_address("10.0.0.1", 80));
	struct bytes before = join(more, join(more, more));
	struct bytes all = join(join(inside(1, before), text(5, "x")), inside(1, join(host, more)));
	struct xds_res *r = read_one(all);
	assert_int_equal(first(res_endpoints_from(r)).n_addresses, 2);
	xds_res_put(r);
}

static void fields_of_another_wire_type_are_unknown(void **state)
{
	struct bytes socket =
		join(ip_address("10.0.0.1", 80), inside(1, join(number(2, 5), text(3, "x"))));
	expect_addr(join(inside(1, inside(1, socket)), join(number(1, 1), text(2, "x"))),
		"10.0.0.1:80");
}

// An address, a drop or a name cut at each byte: refused wherever it stands, never read beyond.
static void what_is_cut_is_malformed(void **state)
{
	struct bytes all = join(text(1, "e"),
		join(around(inside(1, inside(1, ip_address("10.0.0.1", 80)))),
			inside(4, inside(2, join(text(1, "c"), inside(2, number(1, 5)))))));
	unsigned n_accepted = 0;
	for (size_t len = 0; len <= all.n; len++) {
		uint8_t *copy = malloc(len ? len : 1); // of its size, for sanitizers
		assert_non_null(copy);
		memcpy(copy, all.b, len);
		struct xds_decoded d = {0};
		res_type_endpoints.decode(copy, len, &d);
		n_accepted += d.res != NULL;
		assert_true(d.res || strstr(d.err.text, "malformed protobuf"));
		xds_res_put(d.res);
		free(d.name);
		free(copy);
	}
	assert_int_equal(n_accepted, 4); // nothing, after the name, the localities, the policy
}

static void a_skipped_locality_must_be_protobuf_all_the_same(void **state)
{
	struct bytes bad = inside(2, inside(2, inside(1, inside(1, inside(1, text(2, "\xff"))))));
	res_refuse_bytes(&res_type_endpoints, bad.b, bad.n,
		"endpoints[0]: lb_endpoints[0]: endpoint: address: socket_address: address: not "
		"UTF-8 text");
	bad = inside(2, inside(2, (struct bytes){{0x0a, 5}, 2}));
	res_refuse_bytes(&res_type_endpoints, bad.b, bad.n,
		"endpoints[0]: lb_endpoints[0]: malformed protobuf");
}

// WT-04: localities are told apart, whatever their parts are made of.
static void localities_whose_parts_have_slashes_are_two(void **state)
{
	static const char *const cases[][4] = {
		{"'region':'a/b','zone':'c'", "a\\/b/c/", "'region':'a','zone':'b/c'", "a/b\\/c/"},
		{"'region':'a\\\\','zone':'b'", "a\\\\/b/", "'region':'a','zone':'\\\\b'",
			"a/\\\\b/"},
		{"'region':'a\\\\/b','subZone':'c'", "a\\\\\\/b//c",
			"'region':'a\\\\','zone':'b//c'", "a\\\\/b\\/\\/c/"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char json[512];
		snprintf(json, sizeof(json),
			"{'clusterName':'e','endpoints':[{'locality':{%s},'loadBalancingWeight':1},"
			"{'locality':{%s},'loadBalancingWeight':1}]}",
			cases[i][0], cases[i][2]);
		struct xds_res *r = res_decode(&res_type_endpoints, json);
		const struct lb_leaf_endpoints *l = res_endpoints_from(r)->list;
		for (int k = 0; k < 2; k++) {
			assert_int_equal(l->spans[k].name.len, strlen(cases[i][2 * k + 1]));
			assert_memory_equal(l->spans[k].name.p, cases[i][2 * k + 1],
				strlen(cases[i][2 * k + 1]));
		}
		xds_res_put(r);
	}
}

// As the load report tells them.
static void names_of_localities_come_apart(void **state)
{
	static const struct {
		struct str name;
		struct res_locality parts;
	} rows[] = {
		{STR("r/z/s"), {"r", "z", "s"}},
		{STR("//"), {"", "", ""}},
		{STR("/z/"), {"", "z", ""}},
		{STR("a\\/b/c/"), {"a/b", "c", ""}},
		{STR("a/b\\/c/\\\\"), {"a", "b/c", "\\"}},
		{STR("\\\\/\\//\\\\\\/"), {"\\", "/", "\\/"}},
		// No resource makes these.
		{STR(""), {"", "", ""}},
		{STR("r"), {"r", "", ""}},
		{STR("r/z/s/t"), {"r", "z", "s/t"}},
		{STR("r\\"), {"r\\", "", ""}},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *buf = malloc(rows[i].name.len + 1); // of this size, for whoever watches
		assert_non_null(buf);
		const struct res_locality l = res_locality_of(rows[i].name, buf);
		assert_string_equal(l.region, rows[i].parts.region);
		assert_string_equal(l.zone, rows[i].parts.zone);
		assert_string_equal(l.sub_zone, rows[i].parts.sub_zone);
		free(buf);
	}
}

static uint8_t *put_varint(uint8_t *to, size_t v)
{
	for (; v > 0x7f; v >>= 7)
		*to++ = (uint8_t)(v | 0x80);
	*to++ = (uint8_t)v;
	return to;
}

// More than balancing can find by their addresses are not taken, so that equal ones are always
// found (A27-V04).
static void more_addresses_than_are_found_are_refused(void **state)
{
	static const uint8_t endpoint[] = {0x12, 18, 0x0a, 16, 0x0a, 14, 0x0a, 12, 0x12, 8, '1',
		'0', '.', '0', '.', '0', '.', '1', 0x18, 80};
	static const uint8_t named[] = {0x0a, 0, 0x1a, 2, 0x08, 1}; // and of weight 1
	size_t len = sizeof(named) + ((size_t)LB_ADDRESS_INDEX_MAX + 1) * sizeof(endpoint);
	uint8_t *bytes = malloc(len + 10), *at = bytes;
	assert_non_null(bytes);
	*at++ = 0x12;
	at = put_varint(at, len);
	memcpy(at, named, sizeof(named));
	at += sizeof(named);
	for (uint32_t i = 0; i <= LB_ADDRESS_INDEX_MAX; i++, at += sizeof(endpoint))
		memcpy(at, endpoint, sizeof(endpoint));
	res_refuse_bytes(
		&res_type_endpoints, bytes, (size_t)(at - bytes), "more than 1048575 addresses");
	free(bytes);
}

static struct ip_port v4(uint8_t last)
{
	return (struct ip_port){ip_from_v4(0x0a000000 + last), 80};
}

// A61-D02.
static void all_addresses_of_a_name_are_one_endpoint(void **state)
{
	const struct ip_port list[] = {v4(1), v4(2), v4(1), v4(3)};
	struct res_endpoints *e = res_endpoints_of_addresses("c", list, 4, "h");
	assert_non_null(e);
	assert_string_equal(e->base.name, "c");
	assert_int_equal(e->list->n_priorities, 1);
	assert_int_equal(e->n_drops, 0);
	assert_int_equal(e->list->n_spans, 1);
	assert_true(str_eq(e->list->spans[0].name, STR("//")));
	assert_int_equal(e->list->spans[0].weight, 1);
	assert_int_equal(e->list->n_all, 1);
	const struct lb_leaf_endpoint only = first(e);
	assert_int_equal(only.weight, 1);
	assert_int_equal(only.health, LB_LEAF_UNKNOWN);
	assert_int_equal(only.n_addresses, 3);
	assert_true(ip_port_eq(&only.addresses[0], &list[0]));
	assert_true(ip_port_eq(&only.addresses[1], &list[1]));
	assert_true(ip_port_eq(&only.addresses[2], &list[3]));
	assert_true(str_eq(only.hostname, STR("h")));
	assert_int_equal(only.hash_key.len, 0);
	xds_res_put(&e->base);
}

static void one_address_without_a_host_name_needs_nothing_more(void **state)
{
	const struct ip_port a = v4(1);
	struct res_endpoints *e = res_endpoints_of_addresses("c", &a, 1, "");
	assert_non_null(e);
	assert_true(!e->list->firsts && !e->list->hostnames && !e->list->hash_keys);
	xds_res_put(&e->base);
}

// A27-V09, A37-D03.
static void no_address_is_no_priority(void **state)
{
	struct res_endpoints *e = res_endpoints_of_addresses("c", NULL, 0, "h");
	assert_non_null(e);
	assert_int_equal(e->list->n_priorities, 0);
	xds_res_put(&e->base);
}

static bool made_equal(const struct ip_port *a, uint32_t n_a, const char *hostname_a,
	const struct ip_port *b, uint32_t n_b, const char *hostname_b)
{
	struct res_endpoints *x = res_endpoints_of_addresses("c", a, n_a, hostname_a);
	struct res_endpoints *y = res_endpoints_of_addresses("c", b, n_b, hostname_b);
	assert_true(x && y);
	bool equal = xds_res_eq(&x->base, &y->base);
	xds_res_put(&x->base);
	xds_res_put(&y->base);
	return equal;
}

static void equal_answers_are_equal_resources(void **state)
{
	const struct ip_port a[] = {v4(1), v4(2)}, b[] = {v4(1), v4(2), v4(1)},
			     c[] = {v4(2), v4(1)};
	assert_true(made_equal(a, 2, "h", a, 2, "h"));
	assert_true(made_equal(a, 2, "h", b, 3, "h"));
	assert_false(made_equal(a, 2, "h", c, 2, "h"));
	assert_false(made_equal(a, 2, "h", a, 1, "h"));
	assert_false(made_equal(a, 2, "h", a, 2, ""));
	assert_false(made_equal(a, 2, "h", a, 0, "h"));
	assert_true(made_equal(a, 0, "h", NULL, 0, "h"));
}

RUN_SUITE("res/endpoints", cmocka_unit_test(the_hash_key_is_a_string_in_envoy_lb),
	cmocka_unit_test(the_proxy_is_an_address_in_typed_metadata),
	cmocka_unit_test(what_few_endpoints_have_stands_aside),
	cmocka_unit_test(a_health_that_nobody_knows_is_none_of_those_known),
	cmocka_unit_test(drops_are_parts_of_a_million),
	cmocka_unit_test(a_message_that_is_there_twice_merges),
	cmocka_unit_test(the_last_scalar_counts),
	cmocka_unit_test(the_last_member_of_a_oneof_counts),
	cmocka_unit_test(additional_addresses_of_a_member_that_lost_are_gone),
	cmocka_unit_test(fields_of_another_wire_type_are_unknown),
	cmocka_unit_test(what_is_cut_is_malformed),
	cmocka_unit_test(a_skipped_locality_must_be_protobuf_all_the_same),
	cmocka_unit_test(localities_whose_parts_have_slashes_are_two),
	cmocka_unit_test(names_of_localities_come_apart),
	cmocka_unit_test(more_addresses_than_are_found_are_refused),
	cmocka_unit_test(all_addresses_of_a_name_are_one_endpoint),
	cmocka_unit_test(one_address_without_a_host_name_needs_nothing_more),
	cmocka_unit_test(no_address_is_no_priority),
	cmocka_unit_test(equal_answers_are_equal_resources))
