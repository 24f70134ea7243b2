// SPDX-License-Identifier: Apache-2.0
// How much may be in a RouteConfiguration or a Listener (TH-136), so that no step of reading it
// takes long.
#include "ctrl/res/common.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "lb/pick/limits.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/res/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TYPE (&res_type_route_config)

struct bytes {
	uint8_t *p; // owned
	size_t len, size;
};

static void put(struct bytes *b, const void *bytes, size_t len)
{
	if (!len)
		return;
	if (b->len + len > b->size) {
		b->size = 2 * (b->len + len);
		b->p = realloc(b->p, b->size);
		assert_non_null(b->p);
	}
	memcpy(b->p + b->len, bytes, len);
	b->len += len;
}

static void put_field(struct bytes *b, uint32_t number, const void *bytes, size_t len)
{
	struct proto_head head = proto_head_of(number, len);
	put(b, head.bytes, head.len);
	put(b, bytes, len);
}

static void put_text(struct bytes *b, uint32_t number, const char *text)
{
	put_field(b, number, text, strlen(text));
}

// `n` virtual hosts from this number on, each with its domain and the bytes of `more` behind it.
static void put_hosts(struct bytes *ret, uint32_t first, uint32_t n, const struct bytes *more)
{
	for (uint32_t i = first; i < first + n; i++) {
		char text[16];
		snprintf(text, sizeof(text), "v%u", i);
		struct bytes host = {0};
		put_text(&host, 2, text);
		put(&host, more->p, more->len);
		put_field(ret, 2, host.p, host.len);
		free(host.p);
	}
}

static struct bytes config(uint32_t n, const struct bytes *more)
{
	struct bytes ret = {0};
	put_text(&ret, 1, "routes");
	put_hosts(&ret, 0, n, more);
	return ret;
}

static struct bytes repeated(uint32_t n, const void *bytes, size_t len)
{
	struct bytes ret = {0};
	for (uint32_t i = 0; i < n; i++)
		put(&ret, bytes, len);
	return ret;
}

static void refuse(struct bytes *b, const char *why)
{
	res_refuse_bytes(TYPE, b->p, b->len, why);
	free(b->p);
}

static void th_136_virtual_hosts_are_bounded_in_number(void **state)
{
	struct bytes nothing = repeated(0, "", 0);
	struct bytes most = config(LB_MAX_VHOSTS, &nothing);
	struct xds_res *res = res_decode_bytes(TYPE, most.p, most.len);
	assert_int_equal(res_route_config_from(res)->n_vhosts, LB_MAX_VHOSTS);
	xds_res_put(res);
	free(most.p);
	struct bytes more = config(LB_MAX_VHOSTS + 1, &nothing);
	refuse(&more, "virtual_hosts: more than 262144");
	free(nothing.p);
}

// match: {prefix: ""}
#define ROUTE "\x1a\4\x0a\2\x0a"
#define ROUTE_FIELDS 3

static void th_136_a_virtual_host_is_bounded(void **state)
{
	uint32_t n = (RES_FIELDS_MAX - 1) / ROUTE_FIELDS; // beside its domain
	struct bytes routes = repeated(n, ROUTE, sizeof(ROUTE));
	struct bytes b = config(1, &routes);
	struct xds_res *res = res_decode_bytes(TYPE, b.p, b.len);
	assert_int_equal(res_route_config_from(res)->vhosts[0].n_routes, n);
	xds_res_put(res);
	free(b.p);
	put(&routes, ROUTE, sizeof(ROUTE));
	b = config(1, &routes);
	refuse(&b, "virtual_hosts[0]: routes[87381]: more than 262144 fields");
	free(routes.p);
}

static void th_136_all_virtual_hosts_together_are_bounded(void **state)
{
	struct bytes unknown = repeated(250000, "\xf8\x3e\1", 3);
	struct bytes b = config(34, &unknown);
	refuse(&b, "virtual_hosts[33]: more than 8388608 fields in all of them");
	struct bytes nothing = {0};
	b = config(33, &unknown);
	put_hosts(&b, 33, 1, &nothing); // for which there is room
	struct xds_res *res = res_decode_bytes(TYPE, b.p, b.len);
	assert_int_equal(res_route_config_from(res)->n_vhosts, 34);
	xds_res_put(res);
	free(b.p);
	free(unknown.p);
}

// Whatever length the Listener has.
static void th_136_filter_chains_are_bounded(void **state)
{
	struct bytes padding = repeated(4 << 20, "", 1), b = {0};
	struct bytes chains = repeated(RES_FIELDS_MAX + 1, "\x1a", 2);
	put_text(&b, 1, "listener");
	put_field(&b, 1000, padding.p, padding.len);
	put(&b, chains.p, chains.len);
	res_refuse_bytes(
		&res_type_listener, b.p, b.len, "filter_chains[262142]: more than 262144 fields");
	free(b.p);
	free(chains.p);
	free(padding.p);
}

#define FILTERS "type.googleapis.com/envoy.extensions.filters."
#define MANAGER FILTERS "network.http_connection_manager.v3.HttpConnectionManager"
#define ROUTER FILTERS "http.router.v3.Router"

// A good chain, but that its HttpConnectionManager has so many fields that nobody knows.
static void put_chain(struct bytes *listener, uint8_t port, uint32_t n_fields)
{
	const uint8_t match[] = {0x38, port}; // source_ports
	struct bytes router = {0}, http_filter = {0}, any = {0}, filter = {0}, chain = {0};
	struct bytes manager = repeated(n_fields, "\xf8\x7e\1", 3);
	put_text(&router, 1, ROUTER);
	put_text(&http_filter, 1, "router");
	put_field(&http_filter, 4, router.p, router.len);
	put_field(&manager, 3, "\x0a\2\x1a\0\x12\1r", 7); // rds: {config_source: {ads: {}}, …}
	put_field(&manager, 5, http_filter.p, http_filter.len);
	put_text(&any, 1, MANAGER);
	put_field(&any, 2, manager.p, manager.len);
	put_field(&filter, 4, any.p, any.len);
	put_field(&chain, 1, match, sizeof(match));
	put_field(&chain, 3, filter.p, filter.len);
	put_field(listener, 3, chain.p, chain.len);
	free(router.p);
	free(http_filter.p);
	free(manager.p);
	free(any.p);
	free(filter.p);
	free(chain.p);
}

static struct bytes listener_of(uint32_t n_fields)
{
	static const char address[] = "\x0a\x0b\x12\7"
				      "1.2.3.4"
				      "\x18\1";
	struct bytes b = {0};
	put_text(&b, 1, "listener");
	put_field(&b, 2, address, sizeof(address) - 1);
	put_chain(&b, 1, n_fields);
	put_chain(&b, 2, n_fields);
	return b;
}

static void th_136_the_managers_of_a_listener_are_bounded_together(void **state)
{
	struct bytes b = listener_of(RES_FIELDS_MAX / 2 - 100);
	struct xds_res *res = res_decode_bytes(&res_type_listener, b.p, b.len);
	assert_int_equal(res_listener_from(res)->socket->n_chains, 2);
	xds_res_put(res);
	free(b.p);
	b = listener_of(RES_FIELDS_MAX / 2);
	res_refuse_bytes(&res_type_listener, b.p, b.len,
		"filter_chains[1]: filters[0]: more than 262144 fields in all "
		"HttpConnectionManagers");
	free(b.p);
}

static void th_136_what_is_beside_virtual_hosts_is_bounded(void **state)
{
	struct bytes b = repeated(RES_FIELDS_MAX + 1, "\xf8\x3e\1", 3);
	refuse(&b, "RouteConfiguration: more than 262144 fields");
}

RUN_SUITE("res/route_size", cmocka_unit_test(th_136_virtual_hosts_are_bounded_in_number),
	cmocka_unit_test(th_136_a_virtual_host_is_bounded),
	cmocka_unit_test(th_136_all_virtual_hosts_together_are_bounded),
	cmocka_unit_test(th_136_filter_chains_are_bounded),
	cmocka_unit_test(th_136_the_managers_of_a_listener_are_bounded_together),
	cmocka_unit_test(th_136_what_is_beside_virtual_hosts_is_bounded))
