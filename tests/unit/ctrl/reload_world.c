// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/reload_world.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/route_compile.h"
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_rows.h"
#include "ctrl/frontends.h"
#include "ctrl/frontends_inside.h"
#include "ctrl/res/listener.h"
#include "lb/base/log.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct reload_fake fake;

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

bool __real_frontend_start(struct frontend *);
bool __wrap_frontend_start(struct frontend *);
bool __wrap_frontend_start(struct frontend *f)
{
	if (fake.n_lacking == 0)
		return __real_frontend_start(f);
	fake.n_lacking--;
	return false;
}

void __real_frontend_source_free(struct frontend_source *);
void __wrap_frontend_source_free(struct frontend_source *);
void __wrap_frontend_source_free(struct frontend_source *s)
{
	fake.n_freed_amid_use += s && s->of->source == s;
	__real_frontend_source_free(s);
}

enum route_compile_outcome __real_route_job_run(
	struct route_job *, struct compiled_routes **, struct lb_err *);
enum route_compile_outcome __wrap_route_job_run(
	struct route_job *, struct compiled_routes **, struct lb_err *);
enum route_compile_outcome __wrap_route_job_run(
	struct route_job *job, struct compiled_routes **ret, struct lb_err *err)
{
	if (fake.holds_routes)
		return ROUTE_COMPILE_GOES_ON;
	if (!*fake.routes_error)
		return __real_route_job_run(job, ret, err);
	lb_err_set(err, "%s", fake.routes_error);
	return ROUTE_COMPILE_REFUSED;
}

static void write_file(struct world *w, const char *text)
{
	FILE *f = fopen(w->path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

void set_up(struct world *w, const char *text, const char *features)
{
	struct lb_err err = {""};
	*w = (struct world){.path = "/tmp/shunt-change-XXXXXX"};
	fake = (struct reload_fake){.tls_error = "", .routes_error = ""};
	log_set_level(LOG_LEVEL_ERROR);
	close(mkstemp(w->path));
	write_file(w, text);
	deps_init(&w->deps, features, NULL);
	w->config = config_load(w->path, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(config_rows_reserve(w->config, &err), 0);
	assert_int_equal(
		frontends_name_listeners(w->config, w->deps.bootstrap, &w->names, &err), 0);
	world_start(w, 0);
}

void tear_down(struct world *w)
{
	world_end(w);
	frontends_free_names(w->config, w->names);
	config_free(w->config);
	unlink(w->path);
	deps_fini(&w->deps);
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

void again(struct world *w, const char *text)
{
	const struct reloader r = {w->config, w->path, prepare, apply, w};
	write_file(w, text);
	reload(&r, "by=test", &w->report);
	pass(w, 20 * TURN_NS); // snapshots may be held back
}

void settle(struct world *w)
{
	pass(w, 2 * TURN_NS);
	say_all(&w->deps);
	pass(w, NS_PER_SECOND);
}

void hold_api_listener(struct world *w, const char *name, const char *routes)
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

void hold_socket(struct world *w, const char *name, const char *ip, unsigned port)
{
	hold_socket_with(w, name, ip, port, "");
}

void hold_socket_with(
	struct world *w, const char *name, const char *ip, unsigned port, const char *more)
{
	char json[1024];
	snprintf(json, sizeof(json),
		"{'name':'%s','address':{'socketAddress':{'address':'%s','portValue':%u}},"
		"'defaultFilterChain':{'filters':[{'name':'h','typedConfig':{'@type':"
		"'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3."
		"HttpConnectionManager','routeConfig':{'name':'r'},'httpFilters':[{'name':'router',"
		"'typedConfig':{'@type':'type.googleapis.com/envoy.extensions.filters.http.router."
		"v3.Router'}}]}}]}%s}",
		name, ip, port, more);
	hold(&w->deps, &res_type_listener, name, json);
}

void hold_other(struct world *w)
{
	hold_api_listener(w, "other", "rc2");
	hold_routes(&w->deps, "rc2", "green", NULL);
	hold_cluster(&w->deps, "green", "e-green");
	hold_endpoint(&w->deps, "e-green", 2);
	settle(w);
}

void set_up_web_of(struct world *w, const char *text, const char *features)
{
	set_up(w, text, features);
	hold_api_listener(w, "web", "rc");
	hold_routes(&w->deps, "rc", "blue", NULL);
	hold_cluster(&w->deps, "blue", "e-blue");
	hold_endpoint(&w->deps, "e-blue", 1);
	settle(w);
}

void set_up_web(struct world *w, const char *text)
{
	set_up_web_of(w, text, "");
}

const struct lb_frontend *row(const struct world *w, uint32_t i)
{
	return lb_snapshot_frontend(lb_slot_current(w->slot), i);
}

#define REAL_TURN_NS 500000
#define MAX_REAL_TURNS 20000

bool passes_until(struct world *w, bool (*is_so)(struct world *, const void *), const void *what)
{
	for (int i = 0; i < MAX_REAL_TURNS; i++) {
		if (is_so(w, what))
			return true;
		nanosleep(&(struct timespec){.tv_nsec = REAL_TURN_NS}, NULL);
		pass(w, TURN_NS);
	}
	return false;
}

// What left clusters is published once nobody can have their members from a snapshot any more.
static bool is_quiet(struct world *w, const void *what)
{
	uint64_t version = lb_slot_current(w->slot)->version;
	pass(w, 20 * TURN_NS); // more than the assembler takes to look for what has left
	return assembler_n_live_snapshots(w->assembler) == 1 &&
	       lb_slot_current(w->slot)->version == version;
}

void assert_refused(struct world *w, const char *text, const char *error)
{
	assert_true(passes_until(w, is_quiet, NULL));
	uint64_t version = lb_slot_current(w->slot)->version;
	again(w, text);
	if (!strstr(w->report.err.text, error))
		fail_msg("'%s' instead of '%s'", w->report.err.text, error);
	assert_int_equal(lb_slot_current(w->slot)->version, version);
}

void assert_changed(const struct world *w, const char *fields)
{
	assert_string_equal(w->report.err.text, "");
	assert_string_equal(w->report.changed.text, fields);
	assert_string_equal(w->report.needs_restart.text, "");
}
