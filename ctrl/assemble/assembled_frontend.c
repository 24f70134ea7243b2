// SPDX-License-Identifier: Apache-2.0
// One frontend's configurations: what serves, what is wanted instead, and why it does not yet.
#include "ctrl/assemble/actions.h"
#include "ctrl/assemble/assemble_state.h"
#include "ctrl/assemble/regex_cache.h"
#include "ctrl/assemble/route_compile.h"
#include "ctrl/conf/config.h"
#include "ctrl/deps/config.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/route/filter.h"
#include "lb/snapshot.h"

#include <stdlib.h>
#include <string.h>

// What could not be applied (too large, no memory) is tried again this often: clusters that left
// may have made room.
#define RETRY_NS NS_PER_SECOND
#define SWEEP_NS (10 * NS_PER_SECOND)
#define COMPILED_NS UINT64_C(100000000)
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

bool frontend_init(struct assembled_frontend *f)
{
	f->error = strdup("no configuration has been received yet");
	f->refusal = strdup("");
	return f->error && f->refusal;
}

// Its first n entries hold their clusters.
static void drop(struct assembler *a, struct xds_config **config, uint32_t n)
{
	if (*config)
		frontend_release_clusters(a, *config, n);
	xds_config_put(*config);
	*config = NULL;
}

static void drop_wanted(struct assembler *a, struct assembled_frontend *f)
{
	drop(a, &f->wanted, f->n_held);
	f->n_held = 0;
	f->waits = false;
}

static void drop_whole(struct assembler *a, struct xds_config **config)
{
	drop(a, config, *config ? (*config)->n_clusters : 0);
}

static void free_parts(struct assembled_frontend *f)
{
	compiled_routes_free(f->routes);
	actions_free(f->actions);
	lb_filter_chain_put(f->filters);
	f->routes = NULL;
	f->actions = NULL;
	f->filters = NULL;
}

// Clusters go with it, or have never come.
void frontend_fini(struct assembled_frontend *f)
{
	free_parts(f);
	xds_config_put(f->applied);
	xds_config_put(f->wanted);
	xds_config_put(f->newest);
	if (f->listener)
		xds_res_put(&f->listener->base);
	free(f->error);
	free(f->refusal);
}

void frontend_draft(struct assembler *a, uint32_t i)
{
	struct assembled_frontend *f = &a->frontends[i];
	struct lb_route_table *table = f->routes ? compiled_routes_table(f->routes) : NULL;
	struct lb_snapshot *s = assembler_draft(a);
	if (!s || lb_snapshot_set_frontend(s, i, table, table ? "" : f->error) ||
		lb_snapshot_set_filters(s, i, f->filters, f->generation))
		a->redraft = true;
}

// What a configuration becomes. Parts whose resources are those that serve are NULL: they stay.
struct assembled {
	struct compiled_routes *routes;
	struct actions *actions;
	struct lb_filter_chain *filters;
	bool same_routes, same_listener;
};

static void assembled_fini(struct assembled *n)
{
	compiled_routes_free(n->routes);
	actions_free(n->actions);
	lb_filter_chain_put(n->filters);
}

static struct route_compile_how how_of(
	const struct assembler *a, const struct assembled_frontend *f)
{
	const struct config_frontend *conf = &a->conf.config->frontends[f - a->frontends];
	return (struct route_compile_how){f->wanted->vhost, conf->grpc_headers == CONFIG_GRPC_ALL};
}

static enum route_compile_outcome assemble(struct assembler *a, const struct assembled_frontend *f,
	struct assembled *ret, struct lb_err *reterr)
{
	const struct xds_config *new = f->wanted, *old = f->applied;
	ret->same_routes = old && old->routes == new->routes && old->vhost == new->vhost;
	ret->same_listener = old && old->listener == new->listener;
	enum route_compile_outcome outcome = ROUTE_COMPILED;
	if (!ret->same_routes)
		outcome =
			route_compile(a->compiler, new->routes, how_of(a, f), &ret->routes, reterr);
	if (outcome != ROUTE_COMPILED)
		return outcome;
	lb_err_set(reterr, "out of memory");
	if (!ret->same_routes)
		ret->actions = actions_new(new->routes, new->vhost, f->actions);
	if (!ret->same_listener)
		ret->filters = lb_filter_chain_new(new->listener->filters, new->listener->n_filters,
			new->listener->max_stream_duration_ns);
	bool ok = (ret->same_routes || ret->actions) && (ret->same_listener || ret->filters);
	return ok ? ROUTE_COMPILED : ROUTE_COMPILE_REFUSED;
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

static bool has_warning(const struct res_warnings *w, const char *text)
{
	uint32_t i = 0;
	while (w && i < w->n && strcmp(w->list[i].text, text) != 0)
		i++;
	return w && i < w->n;
}

// What was not said of the version before (NULL = there was none), since some servers send one
// every few seconds, nor of this one for another frontend.
static void log_warnings(const struct assembler *a, uint32_t i, const struct xds_res *res,
	const struct res_warnings *before, struct res_warnings *now)
{
	for (uint32_t k = 0; k < now->n && !now->told; k++) {
		const struct res_warning *w = &now->list[k];
		struct lb_err text;
		lb_err_set(&text, "%s", w->text);
		if (*w->where)
			lb_err_within(&text, "%s", w->where);
		if (!has_warning(before, w->text))
			log_warn("resource", "frontend=%s type=%s name=%s warning=%s places=%u",
				log_quote(a->conf.config->frontends[i].name),
				log_quote(res->type->label), log_quote(res->name),
				log_quote(text.text), w->n);
	}
	now->told = true;
}

static void log_news(const struct assembler *a, uint32_t i)
{
	const struct assembled_frontend *f = &a->frontends[i];
	const struct xds_config *old = f->applied, *new = f->wanted;
	log_warnings(a, i, &new->listener->base, old ? &old->listener->warnings : NULL,
		&new->listener->warnings);
	log_warnings(a, i, &new->routes->base, old ? &old->routes->warnings : NULL,
		&new->routes->warnings);
	for (uint32_t k = 0; k < new->n_clusters; k++) {
		struct res_cluster *now = new->clusters[k].cluster;
		if (!now || !now->warnings.n || now->warnings.told)
			continue;
		const struct xds_cluster_config *before =
			old ? xds_config_find_cluster(old, new->clusters[k].name) : NULL;
		log_warnings(a, i, &now->base,
			before && before->cluster ? &before->cluster->warnings : NULL,
			&now->warnings);
	}
}

// `wanted` serves from now on.
static void apply(struct assembler *a, uint32_t i, struct assembled *n)
{
	struct assembled_frontend *f = &a->frontends[i];
	if (f->wanted == f->applied)
		return;
	bool changed = !f->applied || differs(f->applied, f->wanted);
	struct assembled old = {0};
	if (!n->same_routes) {
		old.routes = f->routes;
		old.actions = f->actions;
		f->routes = n->routes;
		f->actions = n->actions;
	}
	if (!n->same_listener) {
		old.filters = f->filters;
		f->filters = n->filters;
	}
	assembled_fini(&old);
	log_news(a, i);
	note_listener(f, f->wanted->listener);
	drop_whole(a, &f->applied);
	f->applied = xds_config_get(f->wanted);
	f->n_held = 0; // it is `applied` now that holds them
	f->waits = false;
	frontend_draft(a, i);
	// Notes about the server's health come as configurations, too: not worth a line each.
	log_write(changed ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG, "configuration",
		"frontend=%s clusters=%u", log_quote(a->conf.config->frontends[i].name),
		f->applied->n_clusters);
}

static void refuse(struct assembler *a, uint32_t i, const char *text)
{
	struct assembled_frontend *f = &a->frontends[i];
	f->waits = false;
	f->retry_ns = twheel_now(a->conf.wheel) + RETRY_NS;
	if (strcmp(f->refusal, text) != 0)
		log_error("configuration refused", "frontend=%s serves=%s error=%s",
			log_quote(a->conf.config->frontends[i].name),
			f->applied ? "the-last-good-one" : "nothing", log_quote(text));
	set_text(&f->refusal, text);
	if (!f->applied && set_text(&f->error, text))
		frontend_draft(a, i);
	frontend_follow_endpoints(a, i);
}

// What applies, but for clusters that do not follow it yet. "" = for none.
static void note_refused_clusters(struct assembler *a, uint32_t i, const char *text)
{
	struct assembled_frontend *f = &a->frontends[i];
	f->retry_ns = twheel_now(a->conf.wheel) + RETRY_NS;
	if (text[0] && strcmp(f->refusal, text) != 0)
		log_error("clusters refused", "frontend=%s error=%s",
			log_quote(a->conf.config->frontends[i].name), log_quote(text));
	set_text(&f->refusal, text);
	if (!text[0])
		drop_wanted(a, f);
}

// Meanwhile the applied one serves on.
static void wait_for_patterns(struct assembler *a, uint32_t i)
{
	struct assembled_frontend *f = &a->frontends[i];
	if (!f->waits) {
		f->waits_since_ns = twheel_now(a->conf.wheel);
		f->holds_endpoints = true;
	}
	f->waits = true;
	f->refusal[0] = 0;
	if (!f->applied && set_text(&f->error, "regular expressions are being compiled"))
		frontend_draft(a, i);
}

// Tries to make `wanted` the configuration that serves. On failure the applied one serves on, with
// the clusters that it had: a configuration takes effect as a whole (DM-28).
static void try_wanted(struct assembler *a, uint32_t i)
{
	struct assembled_frontend *f = &a->frontends[i];
	struct lb_err err = {.text = "out of memory"}, refused;
	struct assembled new = {0};
	enum route_compile_outcome outcome = ROUTE_COMPILE_REFUSED;
	f->n_held = frontend_hold_clusters(a, f->wanted, f->n_held, &err);
	if (f->n_held == f->wanted->n_clusters)
		outcome = assemble(a, f, &new, &err);
	if (outcome == ROUTE_COMPILED) {
		frontend_configure_clusters(a, i, &refused);
		apply(a, i, &new);
		note_refused_clusters(a, i, refused.text);
		return;
	}
	assembled_fini(&new);
	if (outcome == ROUTE_COMPILE_WAITS)
		wait_for_patterns(a, i);
	else
		refuse(a, i, err.text);
}

static bool has_patience(const struct assembler *a, const struct assembled_frontend *f)
{
	return f->waits && twheel_now(a->conf.wheel) - f->waits_since_ns < PATIENCE_NS;
}

// Nor do endpoints that came with it or after it wait longer than that for its patterns.
static void let_endpoints_through(struct assembler *a, uint32_t i)
{
	a->frontends[i].holds_endpoints = false;
	frontend_follow_endpoints(a, i);
}

// The newest one's turn, when the one before it serves, is refused, or has waited long enough.
static void try_newest(struct assembler *a, uint32_t i)
{
	struct assembled_frontend *f = &a->frontends[i];
	if (!f->newest || has_patience(a, f))
		return;
	drop_wanted(a, f);
	f->wanted = f->newest;
	f->n_held = f->wanted->n_clusters;
	f->newest = NULL;
	try_wanted(a, i);
	if (f->waits) // it has waited for its turn before
		let_endpoints_through(a, i);
}

void assembler_update(struct assembler *a, uint32_t frontend, struct xds_config *config)
{
	struct assembled_frontend *f = &a->frontends[frontend];
	struct xds_config *before = has_patience(a, f) ? xds_config_get(f->wanted) : NULL;
	uint64_t since_ns = f->waits_since_ns;
	// Before others are let go: what stays named is not leaving in between.
	uint32_t n_held = frontend_hold_clusters(a, config, 0, &(struct lb_err){0});
	drop_wanted(a, f);
	drop_whole(a, &f->newest);
	f->wanted = xds_config_get(config);
	f->n_held = n_held;
	try_wanted(a, frontend);
	if (f->waits &&
		before) { // first come, first served; of the others only the last one counts
		f->newest = f->wanted;
		f->wanted = xds_config_get(before);
		f->n_held = frontend_hold_clusters(a, before, 0, &(struct lb_err){0});
		f->waits_since_ns = since_ns;
	}
	xds_config_put(before);
	a->unsettled = true;
}

void assembler_fail(struct assembler *a, uint32_t frontend, const char *text)
{
	struct assembled_frontend *f = &a->frontends[frontend];
	set_text(&f->error, text[0] ? text : "no configuration"); // else an older reason stays
	f->refusal[0] = 0;
	free_parts(f);
	drop_whole(a, &f->applied);
	drop_wanted(a, f);
	drop_whole(a, &f->newest);
	frontend_draft(a, frontend);
}

// True = what waits for patterns may go on: all are there, or a while has passed since the last try
// (each one reads the whole configuration).
static bool patterns_came(struct assembler *a)
{
	uint64_t now = twheel_now(a->conf.wheel);
	if (now >= a->sweep_ns) {
		a->sweep_ns = now + SWEEP_NS;
		regex_cache_sweep(a->regexes);
	}
	a->patterns_came |= regex_cache_poll(a->regexes);
	if (!a->patterns_came || (regex_cache_count(a->regexes).n_pending && now < a->compiled_ns))
		return false;
	a->patterns_came = false;
	a->compiled_ns = now + COMPILED_NS;
	regex_cache_forget_unasked(a->regexes); // who waits asks for all of his each time
	return true;
}

void frontend_retry(struct assembler *a)
{
	bool came = patterns_came(a);
	if (!a->unsettled)
		return;
	a->unsettled = false;
	for (uint32_t i = 0; i < a->conf.config->n_frontends; i++) {
		struct assembled_frontend *f = &a->frontends[i];
		bool due = f->waits ? came : twheel_now(a->conf.wheel) >= f->retry_ns;
		if (f->wanted && due)
			try_wanted(a, i);
		if (f->waits && f->holds_endpoints && !has_patience(a, f))
			let_endpoints_through(a, i);
		try_newest(a, i);
		a->unsettled |= f->wanted || f->newest;
	}
}
