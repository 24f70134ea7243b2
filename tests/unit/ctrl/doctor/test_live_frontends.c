// SPDX-License-Identifier: Apache-2.0
// What the doctor says of frontends that leave to clients whom a request comes from.
#include "ctrl/doctor/live.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <stdlib.h>
#include <string.h>

#define NONE "0 errors, 0 warnings, 0 notes\n"
#define FOUND                                                                                      \
	"frontend web: x-forwarded-for and x-forwarded-client-cert pass as clients write them, "   \
	"as its listener says nothing of them; backends that trust them can be lied to; fix: "     \
	"use_remote_address in the listener's HttpConnectionManager: true at an edge, false "      \
	"behind a proxy that writes them\n"

// Its first frontend gets this listener, and routes to a cluster that is in error.
static void give(struct world *w, const char *version, struct lb_forwarding forwarding)
{
	static const char *const names[] = {"a"}, *const domains[] = {"*"};
	struct res_endpoints *const none[] = {NULL};
	static const struct res_weighted_cluster cluster = {.name = "a", .weight = 1};
	static const struct res_route to = {PREFIX(""), .clusters = &cluster, .n_clusters = 1};
	static const struct res_vhost vhost = {
		.name = "v", .domains = domains, .n_domains = 1, .routes = &to, .n_routes = 1};
	struct res_listener *listener = listener_of(version, NULL, 0);
	listener->forwarding = forwarding;
	struct res_route_config *routes = (struct res_route_config *)xds_res_new(
		&res_type_route_config, sizeof(*routes), "routes", NULL, 0);
	routes->vhosts = &vhost;
	routes->n_vhosts = 1;
	update(w, 0, config_of(listener, routes, names, none, 1));
	turns(w, 10);
	xds_res_put(&routes->base);
	xds_res_put(&listener->base);
}

static void expect(struct world *w, const char *expected)
{
	struct doctor_report report;
	uint32_t at = 0;
	while (strcmp(doctor_live_checks[at].id, "forwarded") != 0)
		at++;
	assert_true(doctor_report_init(&report));
	struct doctor_live live = {.config = &w->config,
		.assembler = w->assembler,
		.wheel = w->wheel,
		.report = &report,
		.at = at};
	assert_true(doctor_live_step(&live));
	json_t *tree = doctor_report_json(&report);
	char *text = doctor_report_text(tree);
	assert_string_equal(text, expected);
	free(text);
	json_decref(tree);
	doctor_report_fini(&report);
}

static void tls_259_a_listener_that_says_nothing_is_named(void **state)
{
	struct world *w = *state;
	expect(w, NONE); // nothing serves yet
	give(w, "1", (struct lb_forwarding){.on = false});
	expect(w, "note     " FOUND "0 errors, 0 warnings, 1 note\n");
	w->frontends[0].row = CONFIG_ROW_LEAVES; // a reload has taken it away
	expect(w, NONE);
	w->frontends[0].row = CONFIG_ROW_SERVES;
	give(w, "2", (struct lb_forwarding){.on = true});
	expect(w, NONE);
}

static void tls_259_where_clients_show_certificates_it_is_a_warning(void **state)
{
	struct world *w = *state;
	struct config_frontend_tls tls = {.certificate = (char[]){"own"}, .ca = (char[]){"ca"}};
	give(w, "1", (struct lb_forwarding){.on = false});
	w->frontends[0].tls = &tls;
	expect(w, "warning  " FOUND "0 errors, 1 warning, 0 notes\n");
	tls.ca = NULL;
	expect(w, "note     " FOUND "0 errors, 0 warnings, 1 note\n");
	w->frontends[0].tls = NULL;
}

RUN_SUITE("ctrl/doctor/live_frontends",
	cmocka_unit_test_setup_teardown(
		tls_259_a_listener_that_says_nothing_is_named, world_set_up, world_tear_down),
	cmocka_unit_test_setup_teardown(tls_259_where_clients_show_certificates_it_is_a_warning,
		world_set_up, world_tear_down))
