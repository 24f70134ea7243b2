// SPDX-License-Identifier: Apache-2.0
// Reloads of shunt.yaml to what workers read of its frontends.
#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_rows.h"
#include "ctrl/conf/reload.h"
#include "ctrl/frontends.h"
#include "ctrl/frontends_inside.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "lb/base/log.h"
#include "lb/base/twheel.h"
#include "lb/chain_set.h"
#include "lb/live_frontend.h"
#include "lb/pick/link.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "lb/vips.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/deps/deps_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TURN_NS (10 * NS_PER_MS)
#define HEAD                                                                                       \
	"eal: [--in-memory]\nworkers: [0]\nlistener_drain_s: 5\nports:\n"                          \
	"  - {device: net_a, addresses: [10.81.0.10/24]}\n"
#define FRONTENDS HEAD "frontends:\n"
#define WEB "  - {name: web, address: 10.81.0.10, port: 80, target: web}\n"
#define API "  - {name: api, address: 10.81.0.10, port: 81, target: web}\n"
#define OWN "  - {name: own, address: 10.81.0.10, port: 82, listener: sock}\n"
#define VIPS "vips: [{prefix: 10.9.0.0/24}]\n"
#define TLS_ID 7

struct world {
	struct deps_fixture deps; // its server, client and clock
	char path[32];
	struct config *config;
	char **names;
	struct lb_slot *slot;
	struct lb_shared *shared;
	struct lb_link *link;
	struct workers *workers;
	struct assembler *assembler;
	struct frontends *frontends;
	struct reload_report report; // of the last reload
};

// Stand-ins, so that certificates and memory are what a test says.
static struct {
	bool has_tls, tls_is_new;
	const char *tls_error;
	unsigned n_lacking; // sources that are not made
} fake;

int __real_frontends_check_providers(
	const struct config *, const struct xds_bootstrap *, struct lb_err *);
int __wrap_frontends_check_providers(
	const struct config *, const struct xds_bootstrap *, struct lb_err *);
int __wrap_frontends_check_providers(
	const struct config *c, const struct xds_bootstrap *b, struct lb_err *err)
{
	return fake.has_tls ? 0 : __real_frontends_check_providers(c, b, err);
}

uint32_t __real_assembler_take_tls(struct assembler *, const struct config_frontend_tls *);
uint32_t __wrap_assembler_take_tls(struct assembler *, const struct config_frontend_tls *);
uint32_t __wrap_assembler_take_tls(struct assembler *a, const struct config_frontend_tls *tls)
{
	return fake.has_tls && tls ? TLS_ID : __real_assembler_take_tls(a, tls);
}

bool __wrap_assembler_tls_is_new(const struct assembler *, uint32_t);
bool __wrap_assembler_tls_is_new(const struct assembler *a, uint32_t id)
{
	return id == TLS_ID && fake.tls_is_new;
}

const char *__wrap_assembler_tls_error(const struct assembler *, uint32_t);
const char *__wrap_assembler_tls_error(const struct assembler *a, uint32_t id)
{
	return id == TLS_ID ? fake.tls_error : "";
}

struct frontend_source *__real_frontend_source_new(
	struct frontend *, const struct config_frontend *, const char *);
struct frontend_source *__wrap_frontend_source_new(
	struct frontend *, const struct config_frontend *, const char *);
struct frontend_source *__wrap_frontend_source_new(
	struct frontend *f, const struct config_frontend *c, const char *listener)
{
	if (fake.n_lacking == 0)
		return __real_frontend_source_new(f, c, listener);
	fake.n_lacking--;
	return NULL;
}

static void on_event(void *ctx, uint32_t worker, const struct lb_event *event)
{
}

static void write_file(struct world *w, const char *text)
{
	FILE *f = fopen(w->path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void set_up(struct world *w, const char *text, const char *features)
{
	struct lb_err err = {""};
	*w = (struct world){.path = "/tmp/shunt-change-XXXXXX"};
	memset(&fake, 0, sizeof(fake));
	fake.tls_error = "";
	log_set_level(LOG_LEVEL_ERROR);
	close(mkstemp(w->path));
	write_file(w, text);
	deps_init(&w->deps, features, NULL);
	w->config = config_load(w->path, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(config_rows_reserve(w->config, &err), 0);
	assert_int_equal(
		frontends_name_listeners(w->config, w->deps.bootstrap, &w->names, &err), 0);
	uint32_t n = config_n_places(w->config);
	w->slot = lb_slot_new(lb_snapshot_new(n, "nothing yet"));
	w->link = lb_link_new(0, 0, w->shared = lb_shared_new());
	w->workers = workers_new(&w->link, 1, on_event, w);
	struct assembler_conf conf = {w->config, w->slot, w->workers, w->deps.wheel, 7};
	w->assembler = assembler_new(&conf);
	const struct frontends_conf frontends = {.config = w->config,
		.bootstrap = w->deps.bootstrap,
		.listener_names = w->names,
		.node_id = "me",
		.xds = w->deps.client,
		.dns = w->deps.resolver,
		.wheel = w->deps.wheel,
		.assembler = w->assembler};
	w->frontends = frontends_new(&frontends);
	assert_non_null(w->frontends);
}

static void tear_down(struct world *w)
{
	frontends_free(w->frontends);
	lb_slot_free(w->slot);
	assembler_free(w->assembler);
	workers_free(w->workers);
	lb_link_free(w->link);
	lb_shared_free(w->shared);
	frontends_free_names(w->config, w->names);
	config_free(w->config);
	unlink(w->path);
	deps_fini(&w->deps);
}

static void pass(struct world *w, uint64_t ns)
{
	for (uint64_t t = 0; t < ns; t += TURN_NS) {
		deps_pass_time(&w->deps, TURN_NS);
		workers_poll(w->workers);
		assembler_tick(w->assembler);
	}
}

static int prepare(
	void *ctx, const struct config *new, const struct reload_parts *parts, struct lb_err *err)
{
	return frontends_prepare(((struct world *)ctx)->frontends, new, parts->frontends, err);
}

static void apply(void *ctx, struct config *new, const struct reload_parts *parts)
{
	frontends_apply(((struct world *)ctx)->frontends, new, parts->frontends);
}

static void again(struct world *w, const char *text)
{
	const struct reloader r = {w->config, w->path, prepare, apply, w};
	write_file(w, text);
	reload(&r, "by=test", &w->report);
	pass(w, 20 * TURN_NS); // snapshots may be held back
}

// What the server has been told to hold is asked for and said.
static void settle(struct world *w)
{
	pass(w, 2 * TURN_NS);
	say_all(&w->deps);
	pass(w, NS_PER_SECOND);
}

static void hold_api_listener(struct world *w, const char *name, const char *routes)
{
	char json[1024];
	snprintf(json, sizeof(json),
		"{'name':'%s','apiListener':{'apiListener':{'@type':'type.googleapis.com/"
		"envoy.extensions.filters.network.http_connection_manager.v3."
		"HttpConnectionManager','rds':{'configSource':{'ads':{}},'routeConfigName':'%s'},"
		"'httpFilters':[{'name':'router','typedConfig':{'@type':'type.googleapis.com/"
		"envoy.extensions.filters.http.router.v3.Router'}}]}}}",
		name, routes);
	hold(&w->deps, &res_type_listener, name, json);
}

// web → rc → blue, all of it serves.
static void set_up_web_of(struct world *w, const char *text, const char *features)
{
	set_up(w, text, features);
	hold_api_listener(w, "web", "rc");
	hold_routes(&w->deps, "rc", "blue", NULL);
	hold_cluster(&w->deps, "blue", "e-blue");
	hold_endpoint(&w->deps, "e-blue", 1);
	settle(w);
}

static void set_up_web(struct world *w, const char *text)
{
	set_up_web_of(w, text, "");
}

static const struct lb_frontend *row(const struct world *w, uint32_t i)
{
	return lb_snapshot_frontend(lb_slot_current(w->slot), i);
}

static void set_uses(struct world *w, uint32_t i, uint64_t n)
{
	counter_set_to(&w->link->counters.frontend_uses[i], n);
}

static void assert_refused(struct world *w, const char *text, const char *error)
{
	uint64_t version = lb_slot_current(w->slot)->version;
	again(w, text);
	if (!strstr(w->report.err.text, error))
		fail_msg("'%s' instead of '%s'", w->report.err.text, error);
	assert_int_equal(lb_slot_current(w->slot)->version, version);
}

// All that "other" needs.
static void hold_other(struct world *w)
{
	hold_api_listener(w, "other", "rc");
	settle(w);
}

static void assert_changed(const struct world *w, const char *fields)
{
	assert_string_equal(w->report.err.text, "");
	assert_string_equal(w->report.changed.text, fields);
	assert_string_equal(w->report.needs_restart.text, "");
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

// OPS-324
static void ops_324_another_target_serves_once_it_is_complete(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	const struct lb_route_table *before = row(&w, 0)->routes;
	uint64_t generation = row(&w, 0)->generation;
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 90, target: other, "
			    "authority: a.test}\n");
	assert_changed(&w, "frontends[0].port, frontends[0].target, frontends[0].authority");
	pass(&w, 10 * NS_PER_SECOND);
	assert_ptr_equal(row(&w, 0)->routes, before);
	assert_null(row(&w, 0)->live);
	assert_string_equal(frontends_waiting(w.frontends, 0), "listener other");
	assert_int_equal(w.config->frontends[0].port, 80);
	hold_api_listener(&w, "other", "rc2");
	hold_routes(&w.deps, "rc2", "green", NULL);
	hold_cluster(&w.deps, "green", "e-green");
	hold_endpoint(&w.deps, "e-green", 2);
	settle(&w);
	assert_ptr_not_equal(row(&w, 0)->routes, before);
	assert_non_null(row(&w, 0)->live);
	assert_int_equal(row(&w, 0)->live->conf.port, 90);
	assert_string_equal(row(&w, 0)->live->conf.authority, "a.test");
	assert_true(row(&w, 0)->generation > generation); // who came to the other one leaves
	assert_int_equal(w.config->frontends[0].port, 90);
	assert_string_equal(frontends_waiting(w.frontends, 0), "");
	tear_down(&w);
}

// OPS-324
static void ops_324_one_that_never_comes_can_be_taken_back(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	const struct lb_route_table *before = row(&w, 0)->routes;
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: other}\n");
	pass(&w, 60 * NS_PER_SECOND);
	assert_string_not_equal(frontends_refused(w.frontends, 0), ""); // there is no such listener
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: other}\n");
	assert_changed(&w, "");
	again(&w, FRONTENDS WEB);
	assert_changed(&w, "frontends[0].target");
	assert_string_equal(frontends_refused(w.frontends, 0), "");
	assert_string_equal(frontends_waiting(w.frontends, 0), "");
	assert_ptr_equal(row(&w, 0)->routes, before);
	hold_endpoint(&w.deps, "e-blue", 3); // it is heard of as before
	say(&w.deps, &res_type_endpoints);
	pass(&w, NS_PER_SECOND);
	assert_ptr_equal(row(&w, 0)->routes, before);
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: other}\n");
	again(&w, HEAD "vips: [{prefix: 10.9.0.0/24}]\nfrontends:\n"
		       "  - {name: a, address: 10.81.0.10, port: 80, target: web}\n");
	assert_string_equal(w.report.changed.text, "vips, frontends[0], frontends[web]");
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

static void hold_socket(struct world *w, const char *name, const char *ip, unsigned port)
{
	char json[1024];
	snprintf(json, sizeof(json),
		"{'name':'%s','address':{'socketAddress':{'address':'%s','portValue':%u}},"
		"'defaultFilterChain':{'filters':[{'name':'h','typedConfig':{'@type':"
		"'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3."
		"HttpConnectionManager','routeConfig':{'name':'r'},'httpFilters':[{'name':'router',"
		"'typedConfig':{'@type':'type.googleapis.com/envoy.extensions.filters.http.router."
		"v3.Router'}}]}}]}}",
		name, ip, port);
	hold(&w->deps, &res_type_listener, name, json);
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

// OPS-326: who waits for its target or certificates is still at its address.
static void ops_326_nobody_comes_to_where_another_waits_to_leave(void **state)
{
	static const char *const held = "10.81.0.10:80 is still that of \"web\", until its target";
	struct world w;
	set_up_web(&w, FRONTENDS WEB API);
	// With another target one goes later than the other.
	assert_refused(&w,
		FRONTENDS "  - {name: web, address: 10.81.0.10, port: 81, target: other}\n"
			  "  - {name: api, address: 10.81.0.10, port: 80, target: web}\n",
		held);
	assert_refused(&w,
		FRONTENDS "  - {name: web, address: 10.81.0.10, port: 90, target: other}\n" API
			  "  - {name: new, address: 10.81.0.10, port: 80, target: web}\n",
		held);
	fake.has_tls = fake.tls_is_new = true;
	assert_refused(&w,
		FRONTENDS "  - {name: web, address: 10.81.0.10, port: 90, target: web, "
			  "tls: {certificate: c}}\n" API
			  "  - {name: new, address: 10.81.0.10, port: 80, target: web}\n",
		held);
	// Else they go at once, and in one snapshot.
	uint64_t version = lb_slot_current(w.slot)->version;
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 81, target: web}\n"
			    "  - {name: api, address: 10.81.0.10, port: 80, target: web}\n");
	assert_changed(&w, "frontends[0].port, frontends[1].port");
	assert_int_equal(lb_slot_current(w.slot)->version, version + 1);
	assert_int_equal(row(&w, 0)->live->conf.port, 81);
	assert_int_equal(row(&w, 1)->live->conf.port, 80);
	tear_down(&w);
}

// OPS-326: it was accepted by a reload before, and goes there still.
static void ops_326_nobody_comes_to_where_another_waits_to_go(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 90, target: other}\n");
	assert_changed(&w, "frontends[0].port, frontends[0].target");
	assert_refused(&w,
		FRONTENDS "  - {name: web, address: 10.81.0.10, port: 91, target: other, "
			  "proxy_protocol: {allow: [10.0.0.0/8]}}\n"
			  "  - {name: new, address: 10.81.0.10, port: 90, target: web}\n",
		"10.81.0.10:90 is still that of \"web\"");
	hold_other(&w);
	assert_int_equal(row(&w, 0)->live->conf.port, 90);
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

// OPS-324
static void ops_324_certificates_that_fail_later_leave_what_serves(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	fake.has_tls = fake.tls_is_new = true; // longer than a reload waits
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: web, "
			    "tls: {certificate: c}}\n");
	assert_changed(&w, "frontends[0].tls");
	assert_int_equal(row(&w, 0)->credential, LB_PLAIN_TEXT);
	fake.tls_is_new = false;
	fake.tls_error = "there is no key";
	pass(&w, NS_PER_SECOND);
	assert_int_equal(row(&w, 0)->credential, LB_PLAIN_TEXT);
	assert_string_equal(frontends_refused(w.frontends, 0), "there is no key");
	fake.tls_error = "";
	pass(&w, NS_PER_SECOND);
	assert_int_equal(row(&w, 0)->credential, TLS_ID);
	assert_string_equal(frontends_refused(w.frontends, 0), "");
	tear_down(&w);
}

static bool has_vip(const struct world *w, const char *ip, uint16_t port)
{
	const struct lb_vips *v = lb_slot_current(w->slot)->vips;
	char text[IP_PORT_TEXT_MAX];
	for (uint32_t i = 0; v && i < v->n; i++) {
		const struct lb_vip *vip = lb_vips_at(v, i);
		if (vip && vip->at.port == port && strcmp(ip_print(&vip->at.ip, text), ip) == 0)
			return true;
	}
	return false;
}

// OPS-324: Listeners by wildcard come to no address that one waits to go to, and to those that it
// has left.
static void ops_324_listeners_come_to_what_one_has_left_some_time_later(void **state)
{
#define ALL HEAD VIPS "listeners: wildcard\nfrontends:\n"
	struct world w;
	set_up_web(&w, ALL "  - {name: web, address: 10.9.0.1, port: 80, target: web}\n");
	again(&w, ALL "  - {name: web, address: 10.9.0.2, port: 80, target: other}\n");
	assert_changed(&w, "frontends[0].address, frontends[0].target");
	hold_socket(&w, "before", "10.9.0.1", 80);
	hold_socket(&w, "after", "10.9.0.2", 80);
	hold_socket(&w, "beside", "10.9.0.3", 80);
	settle(&w);
	assert_true(has_vip(&w, "10.9.0.3", 80));
	assert_false(has_vip(&w, "10.9.0.1", 80) || has_vip(&w, "10.9.0.2", 80));
	hold_other(&w);
	assert_int_equal(ip_to_v4(&row(&w, 0)->live->conf.address), 0x0a090002);
	assert_true(has_vip(&w, "10.9.0.1", 80));
	assert_false(has_vip(&w, "10.9.0.2", 80));
	tear_down(&w);
#undef ALL
}

// OPS-324: what has come and is there no more serves nobody.
static void ops_324_a_target_that_goes_while_certificates_are_made_is_waited_for(void **state)
{
	struct world w;
	set_up_web_of(&w, FRONTENDS WEB, "\"fail_on_data_errors\""); // heeds deletions
	const struct lb_route_table *before = row(&w, 0)->routes;
	fake.has_tls = fake.tls_is_new = true;
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: other, "
			    "tls: {certificate: c}}\n");
	hold_other(&w);
	drop(&w.deps, &res_type_listener, "other");
	say(&w.deps, &res_type_listener);
	pass(&w, NS_PER_SECOND);
	assert_string_not_equal(frontends_refused(w.frontends, 0), "");
	fake.tls_is_new = false;
	pass(&w, NS_PER_SECOND);
	assert_string_equal(w.config->frontends[0].target, "web");
	assert_ptr_equal(row(&w, 0)->routes, before);
	hold_other(&w);
	assert_string_equal(w.config->frontends[0].target, "other");
	tear_down(&w);
}

// OPS-326
static void ops_326_a_prefix_stays_while_one_waits_to_leave_it(void **state)
{
	struct world w;
	set_up_web(&w, HEAD VIPS
		"frontends:\n  - {name: web, address: 10.9.0.1, port: 80, target: web}\n");
	assert_refused(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: x}\n",
		"vips: 10.9.0.1 is still the address of \"web\", until its target");
	again(&w, HEAD VIPS "frontends:\n"
			    "  - {name: web, address: 10.9.0.2, port: 80, target: other}\n");
	assert_changed(&w, "frontends[0].address, frontends[0].target");
	hold_other(&w);
	assert_int_equal(ip_to_v4(&row(&w, 0)->live->conf.address), 0x0a090002);
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: other}\n");
	assert_changed(&w, "vips, frontends[0].address");
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

// OPS-324
static void ops_324_one_without_memory_is_tried_again(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	fake.n_lacking = 2;
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: other}\n");
	assert_int_equal(fake.n_lacking, 0);
	hold_other(&w);
	assert_string_equal(w.config->frontends[0].target, "other");
	tear_down(&w);
}

#define CASE(test) cmocka_unit_test(test)

RUN_SUITE("ctrl/frontends_change", CASE(ops_323_a_new_one_listens_at_once_and_gets_its_routes),
	CASE(ops_325_one_that_is_gone_serves_who_is_there_to_the_end),
	CASE(ops_324_another_target_serves_once_it_is_complete),
	CASE(ops_324_one_that_never_comes_can_be_taken_back),
	CASE(ops_323_what_needs_no_other_resources_changes_at_once),
	CASE(ops_326_what_cannot_be_is_refused_and_changes_nothing),
	CASE(ops_325_chains_of_one_that_is_gone_have_their_time),
	CASE(ops_326_nobody_comes_to_where_another_waits_to_leave),
	CASE(ops_326_nobody_comes_to_where_another_waits_to_go),
	CASE(ops_326_nobody_leaves_an_address_to_one_that_cannot_come_yet),
	CASE(ops_324_certificates_that_fail_later_leave_what_serves),
	CASE(ops_324_listeners_come_to_what_one_has_left_some_time_later),
	CASE(ops_324_a_target_that_goes_while_certificates_are_made_is_waited_for),
	CASE(ops_326_a_prefix_stays_while_one_waits_to_leave_it),
	CASE(ops_325_one_without_clients_ends_when_workers_know),
	CASE(ops_324_one_without_memory_is_tried_again))
