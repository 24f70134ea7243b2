// SPDX-License-Identifier: Apache-2.0
// What JSON cannot say: fields that are unknown to us, texts with NULs, keys that are there twice.
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/xds/type.h"
#include "tests/support/check.h"
#include "tests/support/res_json.h"
#include "tests/unit/ctrl/res/decode.h"
#include "tests/unit/ctrl/res/json.h"

#include <stdlib.h>
#include <string.h>

#define TYPE (&res_type_route_config)

// Protobuf by hand, from the inside out; everything is shorter than 128 bytes.
struct bytes {
	uint8_t p[127];
	size_t len;
};

static void put(struct bytes *b, const void *bytes, size_t len)
{
	assert_true(b->len + len <= sizeof(b->p));
	memcpy(b->p + b->len, bytes, len);
	b->len += len;
}

static void put_field(struct bytes *b, unsigned number, const void *bytes, size_t len)
{
	unsigned tag = number << 3 | 2;
	uint8_t head[] = {(uint8_t)(tag & 0x7f), (uint8_t)(tag >> 7), (uint8_t)len};
	if (tag > 0x7f) {
		head[0] |= 0x80;
		put(b, head, 3);
	} else {
		put(b, head, 1);
		put(b, head + 2, 1);
	}
	put(b, bytes, len);
}

static void put_text(struct bytes *b, unsigned number, const char *text)
{
	put_field(b, number, text, strlen(text));
}

static struct bytes field(unsigned number, struct bytes in)
{
	struct bytes b = {.len = 0};
	put_field(&b, number, in.p, in.len);
	return b;
}

static struct bytes text_field(unsigned number, const char *text)
{
	struct bytes b = {.len = 0};
	put_text(&b, number, text);
	return b;
}

static struct bytes both(struct bytes a, struct bytes b)
{
	put(&a, b.p, b.len);
	return a;
}

// A configuration with one virtual host for all, with more in it.
static struct bytes config(struct bytes more)
{
	struct bytes vhost = both(text_field(1, "v"), text_field(2, "*"));
	return both(text_field(1, "r"), field(2, both(vhost, more)));
}

static struct bytes route(struct bytes match, struct bytes action)
{
	return config(field(3, both(field(1, match), field(2, action))));
}

static void the_old_regex_of_a_path_is_no_specifier(void **state) // A28-P03
{
	struct bytes b = route(text_field(3, "/a.*"), text_field(1, "c"));
	res_refuse_bytes(TYPE, b.p, b.len, "route 0: match: no path specifier");
}

static void the_old_regex_of_a_header_is_no_specifier(void **state) // A28-H14
{
	struct bytes header = both(text_field(1, "x"), text_field(5, "a.*"));
	struct bytes b = route(both(text_field(1, "/"), field(6, header)), text_field(1, "c"));
	res_refuse_bytes(TYPE, b.p, b.len, "headers[0]: no match specifier");
}

static void an_unknown_member_of_a_oneof_is_as_if_it_were_not_there(void **state)
{
	// A28-H14
	struct bytes header = both(text_field(1, "x"), text_field(99, "y"));
	struct bytes b = route(both(text_field(1, "/"), field(6, header)), text_field(1, "c"));
	res_refuse_bytes(TYPE, b.p, b.len, "headers[0]: no match specifier");

	b = route(text_field(99, "/"), text_field(1, "c")); // A28-P03
	res_refuse_bytes(TYPE, b.p, b.len, "match: no path specifier");

	b = route(text_field(1, "/"), text_field(99, "c")); // A28-V02
	struct xds_res *res = res_decode_bytes(TYPE, b.p, b.len);
	const struct res_vhost *v = &res_route_config_from(res)->vhosts[0];
	assert_int_equal(v->n_routes, 0);
	assert_string_equal(v->ignored[0].reason, "no cluster specifier that is known");
	xds_res_put(res);

	// A28-V04: an action that is unknown to us
	b = config(field(3, both(field(1, text_field(1, "/")), text_field(99, ""))));
	res = res_decode_bytes(TYPE, b.p, b.len);
	assert_int_equal(
		res_route_config_from(res)->vhosts[0].routes[0].action, LB_ACTION_UNSUPPORTED);
	xds_res_put(res);
}

// A28-O09: dynamic_metadata 13, filter_state 16, cookies 17.
static void criteria_that_a28_does_not_name_are_ignored(void **state)
{
	struct bytes match = both(text_field(1, "/"), text_field(13, "x"));
	match = both(match, both(text_field(16, "x"), text_field(17, "x")));
	struct bytes b = route(match, text_field(1, "c"));
	struct xds_res *res = res_decode_bytes(TYPE, b.p, b.len);
	assert_int_equal(res_route_config_from(res)->vhosts[0].n_routes, 1);
	xds_res_put(res);
}

// FLT-07: protobuf lets the last of two entries count.
static void the_last_of_two_overrides_with_one_key_counts(void **state)
{
	struct bytes once = text_field(1, "f"), twice = once;
	struct bytes any = text_field(1, "x/" FAULT_TYPE);
	put_field(&any, 2, "\x32\x02\x08\x07", 4); // max_active_faults 7
	once = field(15, both(once, field(2, any)));
	any = text_field(1, "x/nothing.that.is.Known");
	twice = field(15, both(twice, field(2, any)));
	struct bytes vhost = both(text_field(2, "*"), twice);
	// As two messages: each is within the 127 bytes.
	uint8_t whole[400];
	size_t len = vhost.len + once.len;
	assert_true(len < 128);
	whole[0] = 2 << 3 | 2;
	whole[1] = (uint8_t)len;
	memcpy(whole + 2, vhost.p, vhost.len);
	memcpy(whole + 2 + vhost.len, once.p, once.len);
	struct xds_res *res = res_decode_bytes(TYPE, whole, len + 2);
	const struct lb_filter_overrides *o = &res_route_config_from(res)->vhosts[0].overrides;
	assert_int_equal(o->n, 1);
	assert_int_equal(o->list[0].fault.max_active, 7);
	xds_res_put(res);

	memcpy(whole + 2, vhost.p, 3); // domain
	memcpy(whole + 5, once.p, once.len);
	memcpy(whole + 5 + once.len, twice.p, twice.len);
	res_refuse_bytes(TYPE, whole, len + 2, "nothing.that.is.Known\" is not supported");
}

// RX-10 and every other text: what C would cut short at the NUL is refused.
static void a_text_with_a_nul_is_refused_and_its_place_named(void **state)
{
	static const struct {
		const char *json; // with ~ for NUL
		const char *why;
	} rows[] = {
		{MATCH("'safeRegex':{'regex':'a~b'}"),
			"virtual_hosts[0]: routes[0]: match: safe_regex: regex: holds a NUL"},
		{MATCH("'prefix':'~'"), "virtual_hosts[0]: routes[0]: match: prefix: holds a NUL"},
		{MATCH("'path':'/a~'"), "virtual_hosts[0]: routes[0]: match: path: holds a NUL"},
		{HEADER("'name':'x','exactMatch':'a~'"),
			"match: headers[0]: exact_match: holds a NUL"},
		{MATCH("'prefix':'/','headers':[{'name':'y','presentMatch':true},"
		       "{'name':'x~','presentMatch':true}]"),
			"match: headers[1]: name: holds a NUL"},
		{STRING("'safeRegex':{'regex':'~'}"),
			"headers[0]: string_match: safe_regex: regex: holds a NUL"},
		{ACTION("'cluster':'c~'"), "routes[0]: route: cluster: holds a NUL"},
		{VHOST("'a','b~'", ""), "virtual_hosts[0]: domains[1]: holds a NUL"},
		{"{'name':'r~'}", "name: holds a NUL"},
		{WITH("'hashPolicy':[{'header':{'headerName':'x~'}}]"),
			"route: hash_policy[0]: header: header_name: holds a NUL"},
		{OVERRIDE(ANY(FAULT_TYPE, ",'upstreamCluster':'c~'")),
			"typed_per_filter_config[f]: upstream_cluster: holds a NUL"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t len;
		uint8_t *bytes = res_bytes_from_json(TYPE, rows[i].json, &len);
		uint8_t *nul = memchr(bytes, '~', len);
		assert_non_null(nul);
		*nul = 0;
		res_refuse_bytes(TYPE, bytes, len, rows[i].why);
		*nul = 0xc0; // not UTF-8
		res_refuse_bytes(TYPE, bytes, len, "not UTF-8 text");
		free(bytes);
	}
}

static void inline_routes_have_the_hashes_of_the_same_routes_by_name(void **state)
{
#define ROUTES MATCH("'prefix':'/a'")
	struct xds_res *l = res_decode(&res_type_listener, ROUTED("'routeConfig':" ROUTES));
	struct xds_res *r = res_decode(TYPE, ROUTES);
	const struct res_vhost *a = &res_listener_from(l)->routes->vhosts[0];
	const struct res_vhost *b = &res_route_config_from(r)->vhosts[0];
	assert_true(a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1]);
	xds_res_put(l);
	xds_res_put(r);
}

RUN_SUITE("res/route_bytes", cmocka_unit_test(the_old_regex_of_a_path_is_no_specifier),
	cmocka_unit_test(the_old_regex_of_a_header_is_no_specifier),
	cmocka_unit_test(an_unknown_member_of_a_oneof_is_as_if_it_were_not_there),
	cmocka_unit_test(criteria_that_a28_does_not_name_are_ignored),
	cmocka_unit_test(the_last_of_two_overrides_with_one_key_counts),
	cmocka_unit_test(a_text_with_a_nul_is_refused_and_its_place_named),
	cmocka_unit_test(inline_routes_have_the_hashes_of_the_same_routes_by_name))
