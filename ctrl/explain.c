// SPDX-License-Identifier: Apache-2.0
// `explain`: where a request would go and why, found by the workers' own lb_route_find() in the
// table that serves. No request is sent and nothing is counted.
#include "ctrl/actions.h"
#include "ctrl/assemble.h"
#include "ctrl/config.h"
#include "ctrl/deps/depmgr.h"
#include "ctrl/explain_args.h"
#include "ctrl/render.h"
#include "ctrl/res/route.h"
#include "ctrl/route_json.h"
#include "ctrl/show_impl.h"
#include "lb/base/twheel.h"
#include "lb/picker.h"
#include "lb/req.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEPS 1000 // routes told of
// Lookups until one goes past every route that takes only a fraction of the requests, and what they
// may cost: the loop has other work.
#define MAX_DRAWS 1000
#define MAX_LOOKED_AT 100000

struct trace {
	uint32_t n; // looked at
	struct lb_route_step steps[MAX_STEPS]; // the first ones, and the last one
};

struct explanation {
	const struct show *show;
	const struct explain_args *args;
	uint32_t frontend;
	struct assembler_routes of;
	struct lb_req req;
	struct rand rand;
	struct lb_route_result result;
	struct trace trace; // of the lookup that looked at the most
	const struct res_vhost *vhost; // NULL = none
	uint32_t vhost_index; // in the resource
	json_t *outcomes, *clusters, *effects, *filters;
};

static void hear(void *ctx, const struct lb_route_step *step)
{
	struct trace *t = ctx;
	t->steps[t->n < MAX_STEPS ? t->n : MAX_STEPS - 1] = *step;
	t->n++;
}

// The lookup, again and again until no draw of a fraction hides what comes behind it.
static bool look_up(struct explanation *e)
{
	struct trace *t = malloc(sizeof(*t));
	if (!t)
		return false;
	uint64_t looked_at = 0;
	for (int i = 0; i < MAX_DRAWS && looked_at < MAX_LOOKED_AT; i++) {
		struct lb_route_ctx ctx = {&e->rand, e->show->scratch, hear, t};
		t->n = 0;
		struct lb_route_result r = lb_route_find(e->of.table, &e->req, &ctx);
		looked_at += t->n;
		if (i && t->n <= e->trace.n)
			continue;
		e->result = r;
		e->trace = *t;
		if (r.kind == LB_ROUTE_NO_VHOST || r.kind == LB_ROUTE_NONE)
			break;
		e->vhost_index =
			e->of.config->vhost < 0 ? r.vhost_index : (uint32_t)e->of.config->vhost;
		const struct res_vhost *v = &e->of.config->routes->vhosts[e->vhost_index];
		if (v->routes[r.route_index].ppm == LB_PPM_ALWAYS)
			break;
	}
	free(t);
	if (e->result.kind != LB_ROUTE_NO_VHOST) {
		e->vhost_index = e->of.config->vhost < 0 ? e->result.vhost_index
		                                         : (uint32_t)e->of.config->vhost;
		e->vhost = &e->of.config->routes->vhosts[e->vhost_index];
	}
	return true;
}

// The domain that chose the virtual host, by the same rule: each domain as a host of its own.
static const char *matched_domain(const struct explanation *e)
{
	const struct res_vhost *v = e->vhost;
	struct lb_vhost_conf *confs = calloc((size_t)v->n_domains + 1, sizeof(*confs));
	struct str *domains = calloc((size_t)v->n_domains + 1, sizeof(*domains));
	int found = -1;
	if (confs && domains) {
		for (uint32_t i = 0; i < v->n_domains; i++) {
			domains[i] = str_from(v->domains[i]);
			confs[i] = (struct lb_vhost_conf){.domains = &domains[i], .n_domains = 1};
		}
		struct str authority = e->req.authority;
		found = lb_vhost_choose(confs, v->n_domains, authority);
		while (found < 0 && e->of.config->routes->ignore_port && authority.len) {
			authority.len--; // down to where the port is gone
			found = lb_vhost_choose(confs, v->n_domains, authority);
		}
	}
	free(confs);
	free(domains);
	return found < 0 ? "" : v->domains[found];
}

// What a matcher of this header compares: several fields joined (routing.md A28-H08, A28-H09).
static void print_value(FILE *f, const struct explanation *e, struct str name)
{
	bool found = false;
	for (size_t i = 0; i < e->req.n_fields; i++) {
		const struct field *at = &e->req.fields[i];
		if (!str_eq(at->name, name))
			continue;
		fputs(!found ? "; it is \"" : str_eq(name, STR("cookie")) ? "; " : ",", f);
		fprintf(f, "%.*s", (int)at->value.len, at->value.p);
		found = true;
	}
	fputs(found ? "\"" : "; the request has none", f);
	if (str_ends(name, STR("-bin")))
		fputs(" (as good as absent: its name ends in -bin)", f);
}

// Why a route does not match, or that it does. NULL = no memory.
static json_t *verdict(const struct explanation *e, const struct lb_route_step *s)
{
	char *text = NULL, *header = NULL, percent[32];
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		return NULL;
	const struct res_route *r = &e->vhost->routes[s->route_index];
	switch (s->verdict) {
	case LB_VERDICT_MATCH:
		fputs("matches", f);
		break;
	case LB_VERDICT_HEADER:
		header = route_text_header(&r->headers[s->header]);
		fprintf(f, "no: %s", header ? header : "?");
		print_value(f, e, r->headers[s->header].name);
		break;
	case LB_VERDICT_FRACTION:
		fprintf(f, "matches %s %% of such requests, by a draw",
			route_text_percent(r->ppm / 1e6, percent));
		break;
	case LB_VERDICT_NOT_GRPC:
		fputs("no: for gRPC alone, and the request is not", f);
		break;
	}
	free(header);
	fclose(f);
	json_t *string = render_string(text);
	free(text);
	return string;
}

static json_t *steps_json(const struct explanation *e)
{
	json_t *rows = json_array();
	for (uint32_t i = 0; i < e->trace.n && i < MAX_STEPS; i++) {
		const struct lb_route_step *s = &e->trace.steps[i];
		const struct res_route *r = &e->vhost->routes[s->route_index];
		json_t *row = json_object(), *matchers = json_object();
		route_json_matchers(matchers, r);
		char *text = route_text_matchers(matchers);
		json_decref(matchers);
		show_set_u64(row, "route", r->index);
		show_set_text(row, "name", r->name);
		show_set_text(row, "matchers", text);
		json_object_set_new(row, "verdict", verdict(e, s));
		json_array_append_new(rows, row);
		free(text);
	}
	return rows;
}

// Where requests end up. `share` of all go this way.

static json_t *percent_json(double share)
{
	char text[32];
	return json_string(route_text_percent(share, text));
}

static void add_cluster(
	struct explanation *e, const struct res_route *r, const char *name, double share)
{
	struct assembler_cluster_info info;
	struct lb_pick pick = assembler_pick(e->show->conf.assembler, name, &e->req);
	json_t *row = json_object();
	bool known = assembler_find_cluster(e->show->conf.assembler, name, &info);
	show_set_u64(row, "route", r->index);
	show_set_text(row, "cluster", name);
	json_object_set_new(row, "percent", percent_json(share));
	show_set_text(row, "state", known ? lb_state_name(info.state) : "-");
	show_set_u64(row, "endpoints", known ? info.n_endpoints : 0);
	show_set_u64(row, "ready", known ? info.n_ready : 0);
	show_set_text(row, "pick",
		pick.kind == LB_PICK_FAIL    ? pick.text
		: pick.kind == LB_PICK_QUEUE ? "waits for a connection"
					     : pick.endpoint->text);
	json_array_append_new(e->clusters, row);
}

static void add_filters(
	struct explanation *e, const struct res_route *r, const struct res_weighted_cluster *c)
{
	const struct lb_route_result result = {
		.policy = &r->policy,
		.vhost_overrides = &e->vhost->overrides,
		.cluster_overrides = &c->overrides,
	};
	for (uint32_t i = 0; i < e->of.filters->n; i++) {
		json_t *filter = route_json_filter(lb_filter_effective(e->of.filters, i, &result));
		json_object_del(filter, "name");
		char *text = json_dumps(filter, JSON_COMPACT);
		json_t *row = json_object();
		show_set_u64(row, "route", r->index);
		show_set_text(row, "cluster", c->name);
		json_object_set_new(row, "filter", render_str(e->of.filters->filters[i].name));
		show_set_text(row, "config", text);
		json_array_append_new(e->filters, row);
		json_decref(filter);
		free(text);
	}
}

static void add_effects(struct explanation *e, const struct res_route *r)
{
	char text[64], duration[32];
	const struct lb_timeouts *t = &r->policy.timeouts;
	json_t *row = json_object();
	show_set_u64(row, "route", r->index);
	// Without a deadline of the client's; a shorter one counts (A31-T05).
	show_set_text(row, "time_limit",
		route_text_duration(lb_timeouts_effective(t, e->of.filters->max_stream_duration_ns,
					    LB_NO_TIMEOUT),
			duration));
	snprintf(text, sizeof(text), "%u attempts", r->policy.retry.max_attempts);
	show_set_text(row, "retries", r->policy.retry.statuses ? text : "none");
	show_set_text(row, "authority",
		r->policy.auto_host_rewrite && e->of.trusts_server ? "of the endpoint"
								   : "of the client");
	json_t *policy = route_json_policy(&r->policy, e->of.trusts_server);
	char *line = policy ? json_dumps(policy, JSON_COMPACT) : NULL;
	show_set_text(row, "policy", line ? line : "{}");
	json_array_append_new(e->effects, row);
	json_decref(policy);
	free(line);
}

static void add_outcome(struct explanation *e, const struct res_route *r, double share)
{
	json_t *row = json_object();
	json_object_set_new(row, "percent", percent_json(share));
	show_set_u64(row, "route", r->index);
	show_set_text(row, "name", r->name);
	int64_t action =
		actions_of(e->of.actions, e->vhost_index, (uint32_t)(r - e->vhost->routes));
	show_set_text(row, "action",
		action < 0 ? "none: fails (14, HTTP 503), its action is not supported"
			   : actions_at(e->of.actions, (uint32_t)action)->name);
	json_array_append_new(e->outcomes, row);
	if (action < 0)
		return;
	double sum = 0;
	for (uint32_t i = 0; i < r->n_clusters; i++)
		sum += r->clusters[i].weight;
	for (uint32_t i = 0; i < r->n_clusters; i++) {
		const struct res_weighted_cluster *c = &r->clusters[i];
		if (c->weight == 0)
			continue;
		add_cluster(e, r, c->name, share * c->weight / sum);
		add_filters(e, r, c);
	}
	add_effects(e, r);
}

static void add_failure(struct explanation *e, double share, const char *why)
{
	json_t *row = json_object();
	json_object_set_new(row, "percent", percent_json(share));
	json_object_set_new(row, "route", json_null());
	show_set_text(row, "name", "");
	show_set_text(row, "action", why);
	json_array_append_new(e->outcomes, row);
}

static void add_outcomes(struct explanation *e)
{
	double left = 1;
	if (!e->vhost) {
		add_failure(e, 1, "none: fails (14, HTTP 404), no virtual host");
		return;
	}
	for (uint32_t i = 0; i < e->trace.n && i < MAX_STEPS; i++) {
		const struct lb_route_step *s = &e->trace.steps[i];
		const struct res_route *r = &e->vhost->routes[s->route_index];
		if (s->verdict != LB_VERDICT_MATCH && s->verdict != LB_VERDICT_FRACTION)
			continue;
		double share = left * r->ppm / 1e6;
		add_outcome(e, r, share);
		left -= share;
	}
	if (e->result.kind == LB_ROUTE_NONE)
		add_failure(e, left, "none: fails (14, HTTP 404), no route matches");
	else if (left > 1e-12)
		add_failure(e, left, "not followed: every draw hit an earlier route");
}

static json_t *whole_json(const struct explanation *e)
{
	const struct explain_args *a = e->args;
	json_t *o = json_object();
	show_set_text(o, "frontend", e->show->conf.config->frontends[e->frontend].name);
	json_object_set_new(o, "authority", render_str(e->req.authority));
	show_set_text(o, "method", a->method);
	show_set_text(o, "path", a->path);
	json_object_set_new(o, "grpc", json_boolean(e->req.is_grpc));
	show_set_text(o, "routes", e->of.config->routes->base.name);
	show_set_text(o, "virtual_host", e->vhost ? e->vhost->name : NULL);
	show_set_text(o, "domain", e->vhost ? matched_domain(e) : NULL);
	json_object_set_new(o, "looked_at", e->vhost ? steps_json(e) : json_array());
	if (e->trace.n > MAX_STEPS)
		show_set_u64(o, "not_told", e->trace.n - MAX_STEPS);
	json_object_set(o, "outcomes", e->outcomes);
	json_object_set(o, "clusters", e->clusters);
	json_object_set(o, "effects", e->effects);
	json_object_set(o, "filters", e->filters);
	return o;
}

// The one that was asked for, or the only one.
static int find_frontend(const struct config *c, const char *name, struct lb_err *err)
{
	for (unsigned i = 0; name && i < c->n_frontends; i++)
		if (strcmp(c->frontends[i].name, name) == 0)
			return (int)i;
	if (name)
		return lb_err_set(err, "no frontend is called '%s'", name);
	if (c->n_frontends != 1)
		return lb_err_set(err, "there are %u frontends: which? (--frontend)",
			(unsigned)c->n_frontends);
	return 0;
}

static json_t *explain(struct explanation *e)
{
	if (!look_up(e))
		return NULL;
	e->outcomes = json_array();
	e->clusters = json_array();
	e->effects = json_array();
	e->filters = json_array();
	add_outcomes(e);
	json_t *whole = whole_json(e);
	json_decref(e->outcomes);
	json_decref(e->clusters);
	json_decref(e->effects);
	json_decref(e->filters);
	return whole;
}

json_t *show_explain(const struct show *s, struct show_args *args)
{
	struct explain_args a;
	if (explain_args_read(&a, args->words, args->n, &args->err))
		return NULL;
	args->json = a.json;
	int frontend = find_frontend(s->conf.config, a.frontend, &args->err);
	if (frontend < 0)
		return NULL;
	struct explanation *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->show = s;
	e->args = &a;
	e->frontend = (uint32_t)frontend;
	rand_init(&e->rand, twheel_now(s->conf.wheel));
	const char *pinned = s->conf.config->frontends[frontend].authority;
	e->req = (struct lb_req){
		.authority = pinned ? str_from(pinned) : a.authority,
		.path = str_from(a.path),
		.method = str_from(a.method),
		.scheme = STR("http"),
		.is_grpc = a.is_grpc,
		.fields = a.fields,
		.n_fields = a.n_fields,
	};
	json_t *whole = NULL;
	if (assembler_frontend_routes(s->conf.assembler, e->frontend, &e->of))
		whole = explain(e);
	else
		lb_err_set(&args->err, "no routes: %s",
			assembler_frontend_error(s->conf.assembler, e->frontend));
	free(e);
	return whole;
}
