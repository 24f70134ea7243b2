// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/assembled_frontend.h"

#include "ctrl/assemble/actions.h"
#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/draft.h"
#include "ctrl/assemble/frontend_clusters.h"
#include "ctrl/assemble/frontend_logs.h"
#include "ctrl/assemble/frontend_warnings.h"
#include "ctrl/assemble/listener_parts.h"
#include "ctrl/assemble/route_compile.h"
#include "ctrl/conf/config.h"
#include "ctrl/deps/config.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/chain_set.h"
#include "lb/live_frontend.h"
#include "lb/pick/access_set.h"
#include "lb/route/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// What could not be applied (too large, out of memory) is tried again this often: clusters that
// left may have made room.
#define RETRY_NS NS_PER_SECOND
// A configuration that waits for patterns has so much time before a newer one takes its place: with
// none a server that sends new patterns faster than they compile would never be heard, with more a
// mistake of ten thousand patterns would hold its correction up.
#define PATIENCE_NS NS_PER_SECOND

static bool set_text(char **text, const char *value)
{
	char *copy = strdup(value);
	if (!copy)
		return false;
	free(*text);
	*text = copy;
	return true;
}

static const char *name_of(const struct assembled_frontend *f)
{
	return f->env->config->frontends[f->owner].name;
}

static uint64_t now_ns(const struct assembled_frontend *f)
{
	return twheel_now(f->env->wheel);
}

bool assembled_frontend_init(
	struct assembled_frontend *f, struct assembled_frontend_env *env, uint32_t index)
{
	f->env = env;
	f->index = index;
	f->owner = index;
	f->refused_bit = 2 * index;
	f->error = strdup("no configuration has been received yet");
	f->refusal = strdup("");
	return f->error && f->refusal;
}

// Its first n entries hold their clusters.
static void drop(struct assembled_frontend *f, struct xds_config **config, uint32_t n)
{
	if (*config)
		frontend_clusters_release(f, *config, n);
	xds_config_put(*config);
	*config = NULL;
}

static void drop_job(struct assembled_frontend *f)
{
	route_job_free(f->job);
	compiled_routes_free(f->made_routes);
	actions_job_free(f->actions_job);
	f->job = NULL;
	f->made_routes = NULL;
	f->actions_job = NULL;
	f->goes_on = false;
}

static void drop_wanted(struct assembled_frontend *f)
{
	drop_job(f);
	drop(f, &f->wanted, f->n_held);
	f->n_held = 0;
	f->waits = false;
}

static void drop_whole(struct assembled_frontend *f, struct xds_config **config)
{
	drop(f, config, *config ? (*config)->n_clusters : 0);
}

static void free_parts(struct assembled_frontend *f)
{
	compiled_routes_free(f->routes);
	actions_free(f->actions);
	lb_filter_chain_put(f->filters);
	frontend_logs_drop(f);
	f->routes = NULL;
	f->actions = NULL;
	f->filters = NULL;
}

// Clusters go with it, or have never come.
void assembled_frontend_fini(struct assembled_frontend *f)
{
	drop_job(f);
	free_parts(f);
	lb_chain_set_put(f->chains);
	lb_live_frontend_put(f->live);
	xds_config_put(f->applied);
	xds_config_put(f->wanted);
	xds_config_put(f->newest);
	if (f->listener)
		xds_res_put(&f->listener->base);
	free(f->error);
	free(f->refusal);
}

void assembled_frontend_draft(const struct assembled_frontend *f)
{
	if (f->is_next)
		return;
	draft_set_frontend(f->env->draft, f->index,
		f->routes ? compiled_routes_table(f->routes) : NULL, f->error, f->filters,
		f->generation);
	draft_set_access(f->env->draft, f->index, f->access);
	draft_set_chains(f->env->draft, f->index, f->chains);
	draft_set_live(f->env->draft, f->index, f->live);
}

// What a configuration becomes. Parts whose resources are those that serve are NULL: they stay.
struct assembled {
	struct compiled_routes *routes;
	struct actions *actions;
	struct lb_filter_chain *filters;
	struct lb_access_set *access;
	bool same_routes, same_listener;
};

static void assembled_fini(struct assembled *n)
{
	compiled_routes_free(n->routes);
	actions_free(n->actions);
	lb_filter_chain_put(n->filters);
	lb_access_set_put(n->access);
}

static bool wants_all_headers(const struct assembled_frontend *f)
{
	const struct config_frontend *row = &f->env->config->frontends[f->owner];
	return (f->is_next ? row->next : row)->grpc_headers == CONFIG_GRPC_ALL;
}

static struct route_compile_how how_of(const struct assembled_frontend *f)
{
	return (struct route_compile_how){f->wanted->vhost, wants_all_headers(f)};
}

static enum route_compile_outcome compile_routes(
	struct assembled_frontend *f, struct lb_err *reterr)
{
	if (f->made_routes)
		return ROUTE_COMPILED;
	if (!f->job)
		f->job = route_job_new(f->env->compiler, f->wanted->routes, how_of(f));
	return f->job ? route_job_run(f->job, &f->made_routes, reterr) : ROUTE_COMPILE_REFUSED;
}

static enum route_compile_outcome list_actions(struct assembled_frontend *f, struct actions **ret)
{
	struct slice *slice = &f->env->slice;
	slice_begin(slice);
	if (!f->actions_job)
		f->actions_job = actions_job_new(f->wanted->routes, f->wanted->vhost);
	if (!f->actions_job)
		return ROUTE_COMPILE_REFUSED;
	int rc = actions_job_run(f->actions_job, slice, f->actions, ret);
	if (rc == -EAGAIN)
		return ROUTE_COMPILE_GOES_ON;
	return rc ? ROUTE_COMPILE_REFUSED : ROUTE_COMPILED;
}

static enum route_compile_outcome make_routes(
	struct assembled_frontend *f, struct assembled *ret, struct lb_err *reterr)
{
	enum route_compile_outcome outcome = compile_routes(f, reterr);
	if (outcome == ROUTE_COMPILED)
		outcome = list_actions(f, &ret->actions);
	f->goes_on = outcome == ROUTE_COMPILE_GOES_ON;
	if (outcome == ROUTE_COMPILED) {
		ret->routes = f->made_routes;
		f->made_routes = NULL;
	}
	if (outcome == ROUTE_COMPILED || outcome == ROUTE_COMPILE_REFUSED)
		drop_job(f);
	return outcome;
}

static enum route_compile_outcome assemble(
	struct assembled_frontend *f, struct assembled *ret, struct lb_err *reterr)
{
	const struct xds_config *new = f->wanted, *old = f->applied;
	ret->same_routes = old && old->routes == new->routes && old->vhost == new->vhost &&
	                   f->has_all_headers == wants_all_headers(f);
	ret->same_listener = old && old->listener == new->listener;
	enum route_compile_outcome outcome = ROUTE_COMPILED;
	if (!ret->same_routes)
		outcome = make_routes(f, ret, reterr);
	if (outcome != ROUTE_COMPILED)
		return outcome;
	if (ret->same_listener)
		return ROUTE_COMPILED;
	ret->filters = listener_parts_filters(f, new->listener);
	if (ret->filters)
		ret->access = frontend_logs_want(f, new->listener);
	return ret->filters ? ROUTE_COMPILED : ROUTE_COMPILE_REFUSED;
}

// Whether any resource is another one.
static bool differs(const struct xds_config *a, const struct xds_config *b)
{
	if (a->listener != b->listener || a->routes != b->routes || a->n_clusters != b->n_clusters)
		return true;
	for (uint32_t i = 0; i < a->n_clusters; i++)
		if (a->clusters[i].cluster != b->clusters[i].cluster ||
			a->clusters[i].endpoints != b->clusters[i].endpoints)
			return true;
	return false;
}

static void note_listener(struct assembled_frontend *f, struct res_listener *listener)
{
	if (!f->listener || !xds_res_eq(&f->listener->base, &listener->base))
		f->generation++;
	xds_res_get(&listener->base);
	if (f->listener)
		xds_res_put(&f->listener->base);
	f->listener = listener;
}

// `wanted` serves from now on; what is somebody's next could.
static void apply(struct assembled_frontend *f, struct assembled *n)
{
	if (f->wanted == f->applied)
		return;
	bool changed = !f->applied || differs(f->applied, f->wanted);
	struct assembled old = {0};
	if (!n->same_routes) {
		old.routes = f->routes;
		old.actions = f->actions;
		f->routes = n->routes;
		f->actions = n->actions;
		f->has_all_headers = wants_all_headers(f);
	}
	if (!n->same_listener) {
		old.filters = f->filters;
		old.access = f->access;
		f->filters = n->filters;
		f->access = n->access;
	}
	assembled_fini(&old);
	frontend_warnings_tell(f);
	note_listener(f, f->wanted->listener);
	drop_whole(f, &f->applied);
	f->applied = xds_config_get(f->wanted);
	f->n_held = 0; // it is `applied` now that holds them
	f->waits = false;
	assembled_frontend_draft(f);
	// Notes about the server's health come as configurations, too: not worth a line each. Nor
	// does a next one serve yet: that it does is told when it is taken.
	log_write(changed && !f->is_next ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG, "configuration",
		"frontend=%s clusters=%u", log_quote(name_of(f)), f->applied->n_clusters);
}

static const char *what_serves(const struct assembled_frontend *f)
{
	return f->is_next ? "as-before" : f->applied ? "the-last-good-one" : "nothing";
}

static void refuse(struct assembled_frontend *f, const char *text)
{
	f->waits = false;
	f->retry_ns = now_ns(f) + RETRY_NS;
	if (strcmp(f->refusal, text) != 0)
		log_error("configuration refused", "frontend=%s serves=%s error=%s",
			log_quote(name_of(f)), what_serves(f), log_quote(text));
	set_text(&f->refusal, text);
	if (!f->applied && set_text(&f->error, text))
		assembled_frontend_draft(f);
	frontend_clusters_follow_endpoints(f);
}

// What applies, but for clusters that do not follow it yet. "" = for none.
static void note_refused_clusters(struct assembled_frontend *f, const char *text)
{
	f->lacks_clusters = text[0];
	f->retry_ns = now_ns(f) + RETRY_NS;
	if (text[0] && strcmp(f->refusal, text) != 0)
		log_error("clusters refused", "frontend=%s error=%s", log_quote(name_of(f)),
			log_quote(text));
	set_text(&f->refusal, text);
	if (!text[0])
		drop_wanted(f);
}

// Meanwhile the applied one serves on.
static void wait_for_routes(struct assembled_frontend *f)
{
	if (!f->waits) {
		f->waits_since_ns = now_ns(f);
		f->holds_endpoints = true;
	}
	f->waits = true;
	f->refusal[0] = 0;
	if (!f->applied &&
		set_text(&f->error, f->goes_on ? "routes are being compiled"
					       : "regular expressions are being compiled"))
		assembled_frontend_draft(f);
}

// Tries to make `wanted` the configuration that serves. On failure the applied one serves on, with
// the clusters that it had: a configuration takes effect as a whole (DM-28).
static void try_wanted(struct assembled_frontend *f)
{
	struct lb_err err = {.text = "out of memory"}, refused;
	struct assembled new = {0};
	enum route_compile_outcome outcome = ROUTE_COMPILE_REFUSED;
	f->n_held = frontend_clusters_hold(f, f->wanted, f->n_held, &err);
	if (f->n_held == f->wanted->n_clusters)
		outcome = assemble(f, &new, &err);
	if (outcome == ROUTE_COMPILED) {
		frontend_clusters_configure(f, &refused);
		apply(f, &new);
		note_refused_clusters(f, refused.text);
		return;
	}
	assembled_fini(&new);
	if (outcome == ROUTE_COMPILE_WAITS || outcome == ROUTE_COMPILE_GOES_ON)
		wait_for_routes(f);
	else
		refuse(f, err.text);
}

static bool has_waited_long(const struct assembled_frontend *f)
{
	return f->waits && now_ns(f) - f->waits_since_ns >= PATIENCE_NS;
}

// What goes on by itself comes to its end.
static bool has_patience(const struct assembled_frontend *f)
{
	return f->waits && (f->goes_on || !has_waited_long(f));
}

// Nor do endpoints that came with it or after it wait longer than that for its patterns.
static void let_endpoints_through(struct assembled_frontend *f)
{
	f->holds_endpoints = false;
	frontend_clusters_follow_endpoints(f);
}

// The newest one's turn, when the one before it serves, is refused, or has waited long enough.
static void try_newest(struct assembled_frontend *f)
{
	if (!f->newest || has_patience(f))
		return;
	drop_wanted(f);
	f->wanted = f->newest;
	f->n_held = f->wanted->n_clusters;
	f->newest = NULL;
	try_wanted(f);
	if (f->waits) // it has waited for its turn before
		let_endpoints_through(f);
}

// The routes of `wanted` are half made: that is not given up for what may come again and again.
static bool follow_later(struct assembled_frontend *f, struct xds_config *config)
{
	struct lb_err ignored;
	uint32_t n_held = f->goes_on ? frontend_clusters_hold(f, config, 0, &ignored) : 0;
	if (!f->goes_on || n_held < config->n_clusters) {
		frontend_clusters_release(f, config, n_held);
		return false;
	}
	drop_whole(f, &f->newest);
	if (config->routes != f->wanted->routes || config->vhost != f->wanted->vhost) {
		f->newest = xds_config_get(config);
		return true;
	}
	drop(f, &f->wanted, f->n_held); // the job goes on for the other one
	f->wanted = xds_config_get(config);
	f->n_held = n_held;
	return true;
}

void assembled_frontend_update(struct assembled_frontend *f, struct xds_config *config)
{
	if (follow_later(f, config))
		return;
	struct xds_config *before = has_patience(f) ? xds_config_get(f->wanted) : NULL;
	uint64_t since_ns = f->waits_since_ns;
	// Before others are let go: what stays named is not leaving in between.
	uint32_t n_held = frontend_clusters_hold(f, config, 0, &(struct lb_err){0});
	drop_wanted(f);
	drop_whole(f, &f->newest);
	f->wanted = xds_config_get(config);
	f->n_held = n_held;
	try_wanted(f);
	if (f->waits &&
		before) { // first come, first served; of the others only the last one counts
		drop_job(f);
		f->newest = f->wanted;
		f->wanted = xds_config_get(before);
		f->n_held = frontend_clusters_hold(f, before, 0, &(struct lb_err){0});
		f->waits_since_ns = since_ns;
	}
	xds_config_put(before);
}

void assembled_frontend_fail(struct assembled_frontend *f, const char *text)
{
	set_text(&f->error, text[0] ? text : "no configuration"); // else an older reason stays
	f->refusal[0] = 0;
	if (f->is_next) // nothing fails for it
		set_text(&f->refusal, text);
	free_parts(f);
	drop_whole(f, &f->applied);
	drop_wanted(f);
	drop_whole(f, &f->newest);
	assembled_frontend_draft(f);
}

void assembled_frontend_set_chains(
	struct assembled_frontend *f, struct lb_chain_set *chains, const char *error)
{
	f->serves_chains = !*error;
	if (*error)
		set_text(&f->error, error);
	lb_chain_set_put(f->chains);
	f->chains = lb_chain_set_get(chains);
	assembled_frontend_draft(f);
}

void assembled_frontend_send_away(struct assembled_frontend *f)
{
	f->generation++;
	assembled_frontend_draft(f);
}

void assembled_frontend_set_live(
	struct assembled_frontend *f, struct lb_live_frontend *live, bool sends_away)
{
	struct lb_live_frontend *old = f->live;
	f->live = lb_live_frontend_get(live);
	f->generation += sends_away;
	lb_live_frontend_put(old);
	assembled_frontend_draft(f);
}

bool assembled_frontend_retry(struct assembled_frontend *f, bool patterns_came)
{
	bool due = f->waits ? patterns_came || f->goes_on : now_ns(f) >= f->retry_ns;
	if (f->wanted && due)
		try_wanted(f);
	if (f->holds_endpoints && has_waited_long(f))
		let_endpoints_through(f);
	try_newest(f);
	frontend_logs_retry(f);
	return f->wanted || f->newest || f->lacks_logs;
}
