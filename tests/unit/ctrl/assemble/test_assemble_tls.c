// SPDX-License-Identifier: Apache-2.0
// Clusters that ask for TLS: what their endpoints carry, and that nobody connects before there is a
// context, or the reason for its lack (TLS-160).
#include "ctrl/assemble/assemble_inside.h"
#include "ctrl/certs/certs.h"
#include "ctrl/certs/credentials.h"
#include "ctrl/res/tls.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/log.h"
#include "lb/base/twheel.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/certs/pki.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define BOUND_MS 20000

static const struct told_endpoint backend[] = {
	{{{{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}, 1}, LB_LEAF_HEALTHY, 1, NULL}};
static const struct told_locality locality = {"", "", "", 1, backend, 1};
static const struct told_priority priority = {&locality, 1};
static const struct res_vhost vhost = {
	"v", DOMAINS("*"), ROUTES({PREFIX(""), CLUSTERS({"blue", 1})})};

static char provider_name[] = "p";
static struct certs *certs;
static struct credentials *all;
static bool ends; // the assembler goes

static uint64_t wall_ns(void)
{
	return 1800000000 * NS_PER_SECOND;
}

static void on_credential(void *ctx, uint32_t id, struct lb_credential *c)
{
	struct world *w = ctx;
	if (!ends)
		assembler_credential(w->assembler, id, c);
}

static void start(struct world *w)
{
	static struct xds_cert_provider_conf p;
	static struct xds_bootstrap b;
	p = (struct xds_cert_provider_conf){.name = provider_name,
		.files = {.ca = (char *)(uintptr_t)pki_path("ca.crt"),
			.refresh_ns = 600 * NS_PER_SECOND}};
	b = (struct xds_bootstrap){.cert_providers = &p, .n_cert_providers = 1};
	struct certs_conf conf = {.bootstrap = &b, .wheel = w->wheel, .wall_ns = wall_ns};
	certs = certs_new(&conf);
	struct credentials_conf c = {
		.certs = certs, .wheel = w->wheel, .changed = on_credential, .ctx = w};
	all = credentials_new(&c);
	assert_non_null(all);
	w->assembler->conf.credentials = w->assembler->tree_env.credentials = all;
}

static int begin(void **state)
{
	pki_begin();
	ends = false;
	return world_set_up(state);
}

static int end(void **state)
{
	struct world *w = *state;
	struct twheel *wheel = w->wheel; // outlives those who have timers on it
	ends = true;
	w->wheel = NULL;
	int rc = world_tear_down(state);
	credentials_free(all);
	certs_free(certs);
	twheel_free(wheel);
	all = NULL;
	certs = NULL;
	pki_end();
	return rc;
}

// The cluster has this TLS from now on.
static void apply_tls(struct world *w, const struct res_tls *tls)
{
	struct res_endpoints *e = endpoints_of(&priority, 1);
	struct res_listener *l = listener_of("1", NULL, 0);
	struct res_route_config *r = routes_of(&vhost, 1);
	struct xds_config *c = config_of(l, r, (const char *[]){"blue"}, &e, 1);
	c->clusters[0].cluster->tls = tls;
	update(w, 0, c);
	xds_res_put(&e->base);
	xds_res_put(&r->base);
	xds_res_put(&l->base);
}

static const struct lb_endpoint *connected(struct world *w)
{
	struct lb_command c;
	if (!spsc_read(&w->link->commands, &c))
		return NULL;
	assert_int_equal(c.kind, LB_COMMAND_CONNECT);
	return c.endpoint;
}

static void without_credentials_tls_is_refused_and_never_plain(void **state)
{
	struct world *w = *state;
	const struct res_tls tls = {.ca = "p", .sni = "a.example"};
	apply_tls(w, &tls);
	turns(w, 1);
	const struct lb_endpoint *e = connected(w);
	assert_int_equal(lb_endpoint_credential(e), LB_NO_CREDENTIAL);
	assert_string_equal(lb_endpoint_server_name(e), "a.example");
	assert_null(lb_snapshot_credential(lb_slot_current(w->slot), LB_NO_CREDENTIAL));
}

static void wait_made(void)
{
	struct pollfd fd = {.fd = credentials_fd(all), .events = POLLIN};
	assert_int_equal(poll(&fd, 1, BOUND_MS), 1);
	credentials_dispatch(all);
}

static void wait_all_made(void)
{
	while (credentials_are_being_made(all))
		wait_made();
}

static void nobody_connects_before_the_context_is_published(void **state)
{
	struct world *w = *state;
	struct pki_cert ca = pki_make("ca", NULL, NULL, -1, 10);
	pki_write("ca.crt", pki_cert_pem(&ca));
	start(w);
	const struct res_tls tls = {.ca = "p", .sni = ""};
	apply_tls(w, &tls);
	turns(w, 3);
	assert_null(connected(w));
	wait_made();
	assert_null(connected(w));
	turns(w, 1);
	const struct lb_endpoint *e = connected(w);
	assert_non_null(e);
	uint32_t id = lb_endpoint_credential(e);
	assert_non_null(lb_snapshot_credential(lb_slot_current(w->slot), id));
	assert_null(connected(w));
}

static void without_files_the_attempt_is_made_and_fails(void **state)
{
	struct world *w = *state;
	start(w);
	const struct res_tls tls = {.ca = "p", .sni = ""};
	apply_tls(w, &tls);
	turns(w, 3);
	assert_null(connected(w));
	wait_made();
	turns(w, 1);
	const struct lb_endpoint *e = connected(w);
	assert_null(lb_snapshot_credential(lb_slot_current(w->slot), lb_endpoint_credential(e)));
	struct assembler_cluster_info info;
	assert_true(assembler_find_cluster(w->assembler, "blue", &info));
	assert_string_equal(info.tls, "tls");
	assert_string_equal(info.detail, "certificate provider \"p\": has nothing yet");
}

// All ids that are left. Returns how many.
static uint32_t take_the_rest(uint32_t ids[LB_MAX_CREDENTIALS])
{
	uint32_t n = 0;
	do {
		char name[32];
		const char *const names[] = {name};
		snprintf(name, sizeof(name), "n%u.example", n);
		const struct credential_want want = {.role = TLSHS_SERVER,
			.identity = "none",
			.server_names = names,
			.n_server_names = 1};
		ids[n] = credentials_take(all, &want);
	} while (ids[n++] != LB_NO_CREDENTIAL);
	return n - 1;
}

static void give_all(const uint32_t *ids, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		credentials_give(all, ids[i]);
	wait_all_made();
}

static void pass_minute(struct world *w)
{
	w->now += 62 * NS_PER_SECOND;
	turns(w, 2);
}

// TLS-280
static void a_cluster_that_finds_no_id_serves_as_before_and_is_tried_again(void **state)
{
	static const struct lb_san_matcher_conf newer_name = {
		LB_SAN_ALL, LB_SAN_EXACT, false, STR("b")};
	static uint32_t ids[LB_MAX_CREDENTIALS];
	struct world *w = *state;
	struct pki_cert ca = pki_make("ca", NULL, NULL, -1, 10);
	pki_write("ca.crt", pki_cert_pem(&ca));
	start(w);
	const struct res_tls tls = {.ca = "p", .sni = ""};
	const struct res_tls newer = {.ca = "p", .sni = "", .sans = &newer_name, .n_sans = 1};
	apply_tls(w, &tls);
	wait_made();
	turns(w, 3);
	const uint32_t before = lb_endpoint_credential(connected(w));
	log_set_level(LOG_LEVEL_ERROR);
	const uint32_t n = take_the_rest(ids);
	assert_int_equal(n, LB_NO_CREDENTIAL - 2);
	apply_tls(w, &newer);
	turns(w, 3);
	assert_null(connected(w));
	assert_non_null(lb_snapshot_credential(lb_slot_current(w->slot), before));
	assert_non_null(strstr(assembler_frontend_refusal(w->assembler, 0), "TLS contexts"));
	give_all(ids, n);
	pass_minute(w);
	wait_all_made();
	settle(w);
	struct lb_command c; // the attempt of before is not needed any more
	assert_true(spsc_read(&w->link->commands, &c) && c.kind != LB_COMMAND_CONNECT);
	const uint32_t after = lb_endpoint_credential(connected(w));
	assert_int_not_equal(after, before);
	assert_int_not_equal(after, LB_NO_CREDENTIAL);
	assert_non_null(lb_snapshot_credential(lb_slot_current(w->slot), after));
	assert_string_equal(assembler_frontend_refusal(w->assembler, 0), "");
}

// TLS-280
static void a_chain_that_finds_no_id_says_so_and_may_ask_again(void **state)
{
	static uint32_t ids[LB_MAX_CREDENTIALS];
	struct world *w = *state;
	start(w);
	const struct res_tls tls = {.identity = "p"};
	log_set_level(LOG_LEVEL_ERROR);
	const uint32_t n = take_the_rest(ids);
	assert_true(assembler_secure(w->assembler, 0, NULL));
	assert_false(assembler_secure(w->assembler, 0, &tls));
	assert_string_equal(assembler_frontend_tls_error(w->assembler, 0), "too many tls contexts");
	give_all(ids, n);
	pass_minute(w);
	assert_true(assembler_secure(w->assembler, 0, &tls));
	assert_true(assembler_is_securing(w->assembler, 0));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
RUN_SUITE("ctrl/assemble_tls", TEST(without_credentials_tls_is_refused_and_never_plain),
	TEST(nobody_connects_before_the_context_is_published),
	TEST(without_files_the_attempt_is_made_and_fails),
	TEST(a_cluster_that_finds_no_id_serves_as_before_and_is_tried_again),
	TEST(a_chain_that_finds_no_id_says_so_and_may_ask_again))
