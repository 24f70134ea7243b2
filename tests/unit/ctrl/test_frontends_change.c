// SPDX-License-Identifier: Apache-2.0
// Reloads of shunt.yaml to what workers read of its frontends.
#include "ctrl/assemble/assemble.h"
#include "ctrl/conf/config.h"
#include "ctrl/frontends.h"
#include "lb/live_frontend.h"
#include "lb/pick/link.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/reload_world.h"

#include <stdio.h>
#include <string.h>

static void set_uses(struct world *w, uint32_t i, uint64_t n)
{
	counter_set_to(&w->link->counters.frontend_uses[i], n);
}

// OPS-323
static void ops_323_a_new_one_listens_at_once_and_gets_its_routes(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	assert_non_null(row(&w, 0)->routes);
	again(&w, FRONTENDS WEB "  - {name: api, address: 10.81.0.10, port: 81, target: api}\n");
	assert_changed(&w, "frontends[1]");
	assert_null(row(&w, 0)->live);
	const struct lb_live_frontend *live = row(&w, 1)->live;
	assert_non_null(live);
	assert_int_equal(live->conf.port, 81);
	assert_false(live->is_left);
	assert_int_equal(live->owner, live->number);
	assert_null(row(&w, 1)->routes);
	assert_string_equal(row(&w, 1)->error, "no configuration has been received yet");
	assert_int_equal(row(&w, 1)->credential, LB_PLAIN_TEXT);
	assert_string_equal(frontends_waiting(w.frontends, 1), "listener api");
	assert_true(w.config->frontends[1].is_new);
	assert_true(w.config->frontends[1].since_ns > w.config->frontends[0].since_ns); // OPS-307
	hold_api_listener(&w, "api", "rc");
	settle(&w);
	assert_non_null(row(&w, 1)->routes);
	assert_true(config_serves(w.config, 1));
	assert_false(w.config->frontends[1].is_new);
	assert_int_equal(config_find_frontend(w.config, "api", &(struct lb_err){""}), 1);
	again(&w, FRONTENDS WEB "  - {name: api, address: 10.81.0.10, port: 81, target: api}\n");
	assert_changed(&w, "");
	tear_down(&w);
}

// OPS-323
static void ops_323_a_new_one_without_memory_is_tried_again(void **state)
{
	static const char with_api[] =
		FRONTENDS WEB "  - {name: api, address: 10.81.0.10, port: 81, target: web}\n";
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	fake.n_lacking = 12;
	again(&w, with_api);
	assert_changed(&w, "frontends[1]");
	pass(&w, 2 * TURN_NS);
	unsigned n_lacking = fake.n_lacking;
	uint64_t version = assembler_snapshot_version(w.assembler);
	pass(&w, NS_PER_SECOND / 4);
	assert_in_range(fake.n_lacking, 1, n_lacking - 1);
	assert_string_equal(row(&w, 1)->error, "out of memory");
	assert_int_equal(assembler_snapshot_version(w.assembler), version); // which takes memory
	settle(&w);
	assert_int_equal(fake.n_lacking, 0);
	assert_non_null(row(&w, 1)->routes);
	assert_false(w.config->frontends[1].is_new);
	tear_down(&w);
}

// OPS-325
static void ops_325_one_that_is_gone_serves_who_is_there_to_the_end(void **state)
{
	struct world w;
	set_up_web(
		&w, FRONTENDS WEB "  - {name: api, address: 10.81.0.10, port: 81, target: web}\n");
	set_uses(&w, 0, 2);
	set_uses(&w, 1, 1);
	again(&w, FRONTENDS "  - {name: api, address: 10.81.0.10, port: 81, target: web}\n");
	assert_changed(&w, "frontends[web]");
	assert_true(row(&w, 0)->live->is_left);
	assert_int_equal(row(&w, 0)->live->owner, 0);
	assert_non_null(row(&w, 0)->routes);
	set_uses(&w, 0, 1);
	pass(&w, 100 * NS_PER_SECOND);
	assert_non_null(row(&w, 0)->routes);
	assert_int_equal(w.config->frontends[0].row, CONFIG_ROW_LEAVES);
	// Meanwhile another of that name has a place of its own.
	again(&w, FRONTENDS WEB "  - {name: api, address: 10.81.0.10, port: 81, target: web}\n");
	assert_changed(&w, "frontends[0]");
	assert_false(row(&w, 2)->live->is_left);
	assert_true(row(&w, 0)->live->is_left);
	assert_int_equal(config_find_frontend(w.config, "web", &(struct lb_err){""}), 2);
	set_uses(&w, 0, 0);
	pass(&w, NS_PER_SECOND);
	assert_null(row(&w, 0)->routes);
	assert_string_equal(row(&w, 0)->error, "the frontend is gone");
	assert_int_equal(row(&w, 0)->credential, LB_NO_CREDENTIAL);
	assert_int_equal(w.config->frontends[0].row, CONFIG_ROW_SPARE);
	pass(&w, NS_PER_SECOND);
	assert_non_null(row(&w, 2)->routes);
	// The place is the next one's.
	again(&w, FRONTENDS WEB "  - {name: api, address: 10.81.0.10, port: 81, target: web}\n"
				"  - {name: x, address: 10.81.0.10, port: 83, target: web}\n");
	assert_changed(&w, "frontends[2]");
	assert_int_equal(row(&w, 0)->live->conf.port, 83);
	assert_int_equal(row(&w, 0)->live->owner, row(&w, 0)->live->number);
	settle(&w);
	assert_non_null(row(&w, 0)->routes);
	tear_down(&w);
}

// OPS-323
static void ops_323_what_needs_no_other_resources_changes_at_once(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	const struct lb_route_table *before = row(&w, 0)->routes;
	uint64_t generation = row(&w, 0)->generation;
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: web, "
			    "wait_for_ready: always, reply_details: true}\n");
	assert_changed(&w, "frontends[0].wait_for_ready, frontends[0].reply_details");
	assert_int_equal(row(&w, 0)->live->conf.wait_for_ready, LB_WAIT_ALWAYS);
	assert_int_equal(row(&w, 0)->live->owner, 0);
	assert_ptr_equal(row(&w, 0)->routes, before);
	assert_int_equal(row(&w, 0)->generation, generation);
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 8, target: web}\n");
	assert_int_equal(row(&w, 0)->live->conf.port, 8);
	assert_true(row(&w, 0)->generation > generation);
	// Other patterns for headers of gRPC mean other routes.
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 8, target: web, "
			    "grpc_headers: all}\n");
	assert_changed(&w, "frontends[0].grpc_headers");
	settle(&w);
	assert_ptr_not_equal(row(&w, 0)->routes, before);
	tear_down(&w);
}

// OPS-326
static void ops_326_what_cannot_be_is_refused_and_changes_nothing(void **state)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{FRONTENDS WEB OWN "  - {name: b, address: 10.81.0.10, port: 80, target: b}\n",
			"frontends[2]: port: 10.81.0.10:80 belongs to frontends[0] already"},
		{FRONTENDS WEB OWN "  - {name: b, address: 10.81.0.11, port: 81, target: b}\n",
			"frontends[2]: address: 10.81.0.11 is not an address of any port"},
		{FRONTENDS WEB OWN "  - {name: b, address: 10.81.0.10, port: 81, target: b, "
				   "tls: {certificate: nobody}}\n",
			"frontends[2]: tls.certificate: "},
		{FRONTENDS WEB OWN
			"  - {name: b, address: 10.81.0.10, port: 81, target: 'xds://nobody/a'}\n",
			"frontends[2]: target: "},
		// The Listener's stays where it is.
		{FRONTENDS WEB "  - {name: own, address: 10.81.0.10, port: 83, listener: sock}\n"
			       "  - {name: b, address: 10.81.0.10, port: 82, target: b}\n",
			"frontends[2]: port: 10.81.0.10:82 is still that of \"own\""},
		{"eal: [--in-memory]\nworkers: [0]\nports:\n"
		 "  - {device: net_a, addresses: [10.81.0.10/24, 10.83.0.1/24]}\nfrontends:\n" WEB
				OWN "  - {name: b, address: 10.83.0.1, port: 81, target: b}\n",
			"frontends[2]: address: 10.83.0.1 is of a port that needs a restart"},
	};
	struct world w;
	set_up_web(&w, FRONTENDS WEB OWN);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_refused(&w, rows[i].text, rows[i].error);
		assert_int_equal(config_n_serving(w.config), 2);
	}
	again(&w, FRONTENDS WEB OWN "  - {name: b, address: 10.81.0.10, port: 81, target: b}\n");
	assert_changed(&w, "frontends[2]");
	tear_down(&w);
}

// OPS-325: of a frontend whose Listener says all; there is room for chains.
static void ops_325_chains_of_one_that_is_gone_have_their_time(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB OWN);
	hold_socket(&w, "sock", "10.81.0.10", 82);
	settle(&w);
	assert_non_null(row(&w, 1)->chains);
	assert_string_equal(assembler_frontend_error(w.assembler, 1), "");
	uint64_t generations = lb_slot_current(w.slot)->n_generations;
	set_uses(&w, 1, 1);
	again(&w, FRONTENDS WEB);
	assert_changed(&w, "frontends[own]");
	assert_true(row(&w, 1)->live->is_left);
	assert_true(lb_slot_current(w.slot)->n_generations > generations);
	set_uses(&w, 1, 0);
	pass(&w, NS_PER_SECOND);
	assert_int_equal(w.config->frontends[1].row, CONFIG_ROW_LEAVES);
	pass(&w, 10 * NS_PER_SECOND);
	assert_int_equal(w.config->frontends[1].row, CONFIG_ROW_SPARE);
	assert_null(row(&w, 1)->chains);
	// One with a target in its place, and it anew in another.
	again(&w, FRONTENDS WEB "  - {name: b, address: 10.81.0.10, port: 81, target: web}\n" OWN);
	assert_changed(&w, "frontends[1], frontends[2]");
	settle(&w);
	assert_non_null(row(&w, 1)->routes);
	assert_int_equal(row(&w, 2)->live->conf.port, 82);
	assert_string_equal(assembler_frontend_error(w.assembler, 2), "");
	tear_down(&w);
}

// OPS-306, PP-09: its Listener wants what nobody may say any more, until that comes back.
static void ops_306_a_listener_that_serves_is_judged_by_what_its_frontend_is_now(void **state)
{
	static const char taking[] =
		FRONTENDS "  - {name: own, address: 10.81.0.10, port: 82, listener: sock, "
			  "proxy_protocol: {allow: [10.0.0.0/8]}}\n";
	struct world w;
	set_up_web(&w, taking);
	hold_socket_with(&w, "sock", "10.81.0.10", 82,
		",'listenerFilters':[{'name':'p','typedConfig':{'@type':'type.googleapis.com/"
		"envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol'}}]");
	settle(&w);
	assert_string_equal(assembler_frontend_error(w.assembler, 0), "");
	again(&w, FRONTENDS OWN);
	assert_changed(&w, "frontends[0].proxy_protocol");
	settle(&w);
	assert_non_null(strstr(assembler_frontend_error(w.assembler, 0), "wants PROXY headers"));
	again(&w, taking);
	settle(&w);
	assert_string_equal(assembler_frontend_error(w.assembler, 0), "");
	tear_down(&w);
}

// OPS-326: a place or memory that a new one needs may not be there, and the old one serves on.
static void ops_326_nobody_leaves_an_address_to_one_that_cannot_come_yet(void **state)
{
	static const char *const nobody = "cannot be yet, and \"web\" would leave 10.81.0.10:80";
	char text[4096] = FRONTENDS API;
	struct world w;
	set_up_web(&w, FRONTENDS WEB API);
	assert_refused(&w,
		FRONTENDS API "  - {name: new, address: 10.81.0.10, port: 80, target: web, "
			      "proxy_protocol: {allow: [10.0.0.0/8]}}\n",
		nobody);
	assert_refused(&w,
		FRONTENDS API "  - {name: web, address: 10.81.0.10, port: 90, target: other}\n"
			      "  - {name: new, address: 10.81.0.10, port: 80, target: web, "
			      "proxy_protocol: {allow: [10.0.0.0/8]}}\n",
		nobody);
	for (int i = 0; i <= 16; i++)
		sprintf(text + strlen(text),
			"  - {name: n%d, address: 10.81.0.10, port: %d, target: web}\n", i,
			i < 16 ? 1000 + i : 80);
	assert_refused(&w, text, "frontends[17]: it cannot be yet");
	// Elsewhere it is named, and the rest takes effect.
	again(&w, FRONTENDS API "  - {name: new, address: 10.81.0.10, port: 90, target: web, "
				"proxy_protocol: {allow: [10.0.0.0/8]}}\n");
	assert_string_equal(w.report.err.text, "");
	assert_string_equal(w.report.changed.text, "frontends[web]");
	assert_string_equal(w.report.needs_restart.text, "frontends[1]");
	tear_down(&w);
}

// OPS-325: an operator drains it, so that workers take nobody already.
static void ops_325_one_without_clients_ends_when_workers_know(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB API);
	again(&w, FRONTENDS WEB);
	assert_changed(&w, "frontends[api]");
	assert_true(row(&w, 1)->live->is_left);
	assert_non_null(row(&w, 1)->routes);
	assert_int_equal(w.config->frontends[1].row, CONFIG_ROW_LEAVES);
	pass(&w, 2 * NS_PER_SECOND);
	assert_null(row(&w, 1)->routes);
	assert_int_equal(w.config->frontends[1].row, CONFIG_ROW_SPARE);
	tear_down(&w);
}

#define CASE(test) cmocka_unit_test(test)

RUN_SUITE("ctrl/frontends_change", CASE(ops_323_a_new_one_listens_at_once_and_gets_its_routes),
	CASE(ops_323_a_new_one_without_memory_is_tried_again),
	CASE(ops_325_one_that_is_gone_serves_who_is_there_to_the_end),
	CASE(ops_323_what_needs_no_other_resources_changes_at_once),
	CASE(ops_326_what_cannot_be_is_refused_and_changes_nothing),
	CASE(ops_325_chains_of_one_that_is_gone_have_their_time),
	CASE(ops_306_a_listener_that_serves_is_judged_by_what_its_frontend_is_now),
	CASE(ops_326_nobody_leaves_an_address_to_one_that_cannot_come_yet),
	CASE(ops_325_one_without_clients_ends_when_workers_know))
