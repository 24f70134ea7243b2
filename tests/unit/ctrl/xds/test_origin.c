// SPDX-License-Identifier: Apache-2.0
// Resources know who sent them: what "self" means (gRFC A47), and whether the server is trusted
// (gRFC A81).
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/federation_fixture.h"

#include <stdio.h>
#include <string.h>

#define TWO "{'xds_servers':[" ADS(0) "," ADS(1) "],'node':{'id':'me'}}"

// What a watcher keeps of the last value.
struct keeper {
	struct xds_watcher watcher; // first member
	unsigned n_values;
	char server[16];
};

static void on_event(struct xds_watcher *w, const struct xds_event *e)
{
	struct keeper *k = (struct keeper *)w;
	assert_int_not_equal(e->kind, XDS_EVENT_ERROR);
	if (e->kind != XDS_EVENT_RESOURCE)
		return;
	k->n_values++;
	snprintf(k->server, sizeof(k->server), "%s", e->res->server->uri);
}

static void keep(struct world *w, const struct xds_type *type, const char *name, struct keeper *k)
{
	*k = (struct keeper){.watcher.on_event = on_event};
	assert_int_equal(xds_federation_watch(w->federation, type, name, &k->watcher), 0);
}

static void expect_kept(const struct keeper *k, unsigned n_values, const char *server)
{
	assert_int_equal(k->n_values, n_values);
	assert_string_equal(k->server, server);
}

// The first server gives both, goes, and the second one is asked since a third name is unknown.
static void fe_09_the_same_content_from_another_server_is_an_update_where_self_is_meant(
	void **state)
{
	struct world w;
	struct keeper self, other;
	struct ear unknown;
	world_init(&w, TWO);
	xds_federation_begin(w.federation);
	keep(&w, &toy_origin, "x", &self);
	keep(&w, &toy_endpoints, "e", &other);
	xds_federation_end(w.federation);
	expect_request(&w.at[0], &toy_endpoints, "e", "", "");
	expect_request(&w.at[0], &toy_origin, "x", "", "");
	respond(&w.at[0], &toy_endpoints, "1", "n1", "e=1", NULL);
	respond(&w.at[0], &toy_origin, "1", "n1", "x=1", NULL);
	expect_request(&w.at[0], &toy_endpoints, "e", "1", "n1");
	expect_request(&w.at[0], &toy_origin, "x", "1", "n1");
	expect_kept(&self, 1, "ads:0");
	expect_kept(&other, 1, "ads:0");
	// SW-16: what the same server says again is no news.
	respond(&w.at[0], &toy_origin, "2", "n2", "x=1", NULL);
	expect_request(&w.at[0], &toy_origin, "x", "2", "n2");
	expect_kept(&self, 1, "ads:0");
	fake_ads_close(&w.at[0].server, "bye");
	world_pass(&w, 2 * S);
	fake_ads_settle(&w.at[0].server);
	w.at[0].server.n_read = w.at[0].server.n_sent;
	world_refuse(&w, 0);
	world_listen(&w, &toy_endpoints, "unknown", &unknown);
	expect_request(&w.at[1], &toy_endpoints, "e unknown", "", "");
	expect_request(&w.at[1], &toy_origin, "x", "", "");
	respond(&w.at[1], &toy_endpoints, "1", "n1", "e=1", "unknown=1", NULL);
	respond(&w.at[1], &toy_origin, "1", "n1", "x=1", NULL);
	expect_kept(&self, 2, "ads:1");
	expect_kept(&other, 1, "ads:0");
	assert_string_equal(heard(&unknown), "=1");
	world_fini(&w);
}

static void decode(const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
}

// gRFC A81: of two servers that are trusted, or not, either will do.
static void what_is_trusted_differs_from_what_is_not(void **state)
{
	static const struct xds_type routes = {.origin = XDS_ORIGIN_TRUST, .decode = decode};
	static const struct xds_type any = {.origin = XDS_ORIGIN_ANY, .decode = decode};
	static const struct xds_server_conf servers[] = {
		{.trusted = true}, {.trusted = true}, {.trusted = false}, {.trusted = false}};
	struct xds_res *r[6], *free_of_it[2];
	for (unsigned i = 0; i < 6; i++) {
		r[i] = xds_res_new(&routes, sizeof(struct xds_res), "r", (const uint8_t *)"1", 1);
		assert_non_null(r[i]);
		if (i < 4)
			xds_res_set_server(r[i], &servers[i]);
	}
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(xds_res_is_trusted(r[i]), i < 2);
		for (unsigned k = 0; k < 6; k++)
			assert_int_equal(xds_res_eq(r[i], r[k]), (i < 2) == (k < 2));
	}
	for (unsigned i = 0; i < 2; i++) {
		free_of_it[i] =
			xds_res_new(&any, sizeof(struct xds_res), "r", (const uint8_t *)"1", 1);
		xds_res_set_server(free_of_it[i], &servers[2 * i]);
	}
	assert_true(xds_res_eq(free_of_it[0], free_of_it[1]));
	for (unsigned i = 0; i < 6; i++)
		xds_res_put(r[i]);
	for (unsigned i = 0; i < 2; i++)
		xds_res_put(free_of_it[i]);
}

RUN_SUITE("xds/origin",
	cmocka_unit_test(
		fe_09_the_same_content_from_another_server_is_an_update_where_self_is_meant),
	cmocka_unit_test(what_is_trusted_differs_from_what_is_not))
