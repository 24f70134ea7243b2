// SPDX-License-Identifier: Apache-2.0
// `explain`: where a request would go and why, as tables. No request is sent and nothing is
// counted.
#include "ctrl/assemble/actions.h"
#include "ctrl/assemble/assemble.h"
#include "ctrl/base/printout.h"
#include "ctrl/base/stats_proto.h"
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_terms.h"
#include "ctrl/deps/config.h"
#include "ctrl/res/route.h"
#include "ctrl/stats/explain_args.h"
#include "ctrl/stats/explain_find.h"
#include "ctrl/stats/render.h"
#include "ctrl/stats/route_json.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "lb/base/twheel.h"
#include "lb/pick/picker.h"
#include "lb/route/header_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct explanation {
	const struct show *show;
	const struct explain_args *args;
	uint32_t frontend;
	struct explain_query query;
	struct rand rand;
	struct explain_found found;
	struct explain_outcome outcome[EXPLAIN_MAX_STEPS + 1];
	bool out_of_memory; // of memory
	json_t *outcomes, *clusters, *drops, *sessions, *effects, *filters;
	char text[2 * STATS_MAX_COMMAND]; // longer than any value that a command can hold
};

// Whether the request has such a header, to whomever it is shown.
static bool is_sent(const struct lb_req *req, struct str name)
{
	if (str_starts(name, STR(":")) || str_eq(name, STR("host")))
		return lb_header_source(name) != LB_HEADER_FIELDS;
	for (size_t i = 0; i < req->n_fields; i++)
		if (str_eq(req->fields[i].name, name))
			return true;
	return false;
}

// What a matcher of this header compares.
static void print_value(FILE *f, struct explanation *e, struct str name)
{
	const struct lb_req *req = &e->query.req;
	struct str value;
	bool hides = lb_route_hides_transport(e->query.of.table, req);
	if (lb_header_find(req, name, hides, e->text, sizeof(e->text), &value))
		fprintf(f, "; it is \"%.*s\"", (int)value.len, value.p);
	else
		fputs(is_sent(req, name) ? "; it is hidden from matchers"
					 : "; the request has none",
			f);
}

// Why a route does not match, or that it does. NULL = out of memory.
static json_t *verdict(struct explanation *e, const struct lb_route_step *s)
{
	char *header = NULL, percent[32];
	struct printout p;
	FILE *f = printout_begin(&p);
	if (!f)
		return NULL;
	const struct res_route *r = &e->found.vhost->routes[s->route_index];
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
	char *text = printout_end(&p);
	json_t *string = text ? render_string(text) : NULL;
	free(text);
	return string;
}

static json_t *steps_json(struct explanation *e)
{
	json_t *rows = json_array();
	for (uint32_t i = 0; i < e->found.n_steps && i < EXPLAIN_MAX_STEPS; i++) {
		const struct lb_route_step *s = &e->found.steps[i];
		const struct res_route *r = &e->found.vhost->routes[s->route_index];
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

struct drops_ctx {
	struct explanation *e;
	const struct res_route *route;
	const char *cluster;
	double share, left;
};

static void add_drop(void *ctx, const char *category, double chance)
{
	struct drops_ctx *d = ctx;
	json_t *row = json_object();
	show_set_u64(row, "route", d->route->index);
	show_set_text(row, "cluster", d->cluster);
	show_set_text(row, "category", category);
	json_object_set_new(row, "percent", percent_json(d->share * chance));
	json_array_append_new(d->e->drops, row);
	d->left -= d->share * chance;
}

static void add_cluster(
	struct explanation *e, const struct res_route *r, const char *name, double share)
{
	struct assembler_cluster_info info;
	struct lb_pick_hash hash = explain_hash(&e->query, &e->found, r);
	char address[IP_PORT_TEXT_MAX];
	struct lb_pick pick = assembler_pick(e->show->conf.assembler, name, &e->query.req, &hash);
	json_t *row = json_object();
	bool known = assembler_find_cluster(e->show->conf.assembler, name, &info);
	struct drops_ctx drops = {e, r, name, share, share};
	assembler_each_drop(e->show->conf.assembler, name, add_drop, &drops);
	show_set_u64(row, "route", r->index);
	show_set_text(row, "cluster", name);
	json_object_set_new(row, "percent", percent_json(share));
	json_object_set_new(row, "left", percent_json(drops.left > 0 ? drops.left : 0));
	show_set_text(row, "state", known ? lb_state_name(info.state) : "-");
	show_set_u64(row, "endpoints", known ? info.n_endpoints : 0);
	show_set_u64(row, "ready", known ? info.n_ready : 0);
	show_set_text(row, "pick",
		pick.kind == LB_PICK_FAIL    ? pick.text
		: pick.kind == LB_PICK_QUEUE ? "waits for a connection"
					     : ip_port_print(&pick.cell->endpoint->addr, address));
	json_array_append_new(e->clusters, row);
}

static void add_decision(struct explanation *e, json_t *to, const struct lb_filter *f)
{
	if (!f || f->kind != LB_FILTER_RBAC)
		return;
	char *text = explain_rbac(&e->query, f);
	e->out_of_memory = e->out_of_memory || !text;
	show_set_text(to, "decision", text);
	free(text);
}

static void add_filters(
	struct explanation *e, const struct res_route *r, const struct res_weighted_cluster *c)
{
	const struct lb_filter_chain *chain = e->query.of.filters;
	for (uint32_t i = 0; i < chain->n; i++) {
		const struct lb_filter *f = explain_filter(&e->query, &e->found, r, c, i);
		json_t *filter = f ? route_json_filter(f) : json_object();
		json_object_del(filter, "name");
		json_object_del(filter, "disabled"); // of the listener; what counts here is on
		if (!f)
			json_object_set_new(filter, "disabled", json_true());
		add_decision(e, filter, f);
		char *text = json_dumps(filter, JSON_COMPACT);
		json_t *row = json_object();
		show_set_u64(row, "route", r->index);
		show_set_text(row, "cluster", c->name);
		json_object_set_new(row, "filter", render_str(chain->filters[i].name));
		show_set_text(row, "config", text);
		json_array_append_new(e->filters, row);
		json_decref(filter);
		free(text);
	}
}

static void add_session(struct explanation *e, const struct res_route *r,
	const struct res_weighted_cluster *drawn, const struct explain_session *s)
{
	json_t *row = json_object();
	const char *cluster = s->to ? s->to->name : drawn->name;
	struct ip_port endpoint;
	char address[IP_PORT_TEXT_MAX];
	bool bound = assembler_session_endpoint(
		e->show->conf.assembler, cluster, s->cookie.addresses, &endpoint);
	show_set_u64(row, "route", r->index);
	show_set_text(row, "drawn", drawn->name);
	json_object_set_new(row, "cookie", render_str(s->filter->cookie));
	show_set_text(row, "cluster", cluster);
	show_set_text(row, "because",
		s->to                   ? "the cookie names it"
		: s->cookie.cluster.len ? "it is drawn, the route does not have the cookie's"
					: "it is drawn, the request has no such cookie");
	show_set_text(row, "endpoint", bound ? ip_port_print(&endpoint, address) : "as picked");
	json_array_append_new(e->sessions, row);
}

static void add_effects(struct explanation *e, const struct res_route *r)
{
	char text[64], duration[32];
	const struct lb_timeouts *t = &r->policy->timeouts;
	const struct lb_listener_timeouts *of = &e->query.of.filters->timeouts;
	json_t *row = json_object();
	show_set_u64(row, "route", r->index);
	// Without a deadline of the client's; a shorter one counts (A31-T05).
	show_set_text(row, "time_limit",
		route_text_duration(lb_timeouts_effective(t, of->max_ns, LB_NO_TIMEOUT), duration));
	uint64_t default_ns = config_terms(e->show->conf.config).stream_idle_ns;
	uint64_t idle_ns = lb_timeouts_idle(t, of, default_ns, e->query.req.is_grpc);
	show_set_text(row, "idle_limit", route_text_duration(idle_ns, duration));
	snprintf(text, sizeof(text), "%u attempts", r->policy->retry.max_attempts);
	show_set_text(row, "retries", r->policy->retry.statuses ? text : "none");
	bool is_trusted = xds_res_is_trusted(&e->query.of.config->routes->base);
	show_set_text(row, "authority",
		r->policy->auto_host_rewrite && is_trusted ? "of the endpoint" : "of the client");
	json_t *policy = route_json_policy(r->policy, is_trusted);
	char *line = policy ? json_dumps(policy, JSON_COMPACT) : NULL;
	show_set_text(row, "policy", line ? line : "{}");
	json_array_append_new(e->effects, row);
	json_decref(policy);
	free(line);
}

static void add_clusters(struct explanation *e, const struct res_route *r, double share)
{
	double *shares = calloc((size_t)r->n_clusters + 1, sizeof(*shares));
	if (!shares) {
		e->out_of_memory = true;
		return;
	}
	explain_shares(&e->query, &e->found, r, shares);
	struct explain_session session = {0};
	for (uint32_t i = 0; i < r->n_clusters; i++) {
		const struct res_weighted_cluster *c = &r->clusters[i];
		if (c->weight == 0)
			continue;
		explain_session(&e->query, &e->found, r, c, &session);
		if (session.filter)
			add_session(e, r, c, &session);
		add_filters(e, r, c);
	}
	for (uint32_t i = 0; i < r->n_clusters; i++)
		if (shares[i] > 0)
			add_cluster(e, r, r->clusters[i].name, share * shares[i]);
	free(shares);
}

static void add_outcome(struct explanation *e, const struct res_route *r, double share)
{
	json_t *row = json_object();
	json_object_set_new(row, "percent", percent_json(share));
	show_set_u64(row, "route", r->index);
	show_set_text(row, "name", r->name);
	int64_t action = actions_of(
		e->query.of.actions, e->found.vhost_index, (uint32_t)(r - e->found.vhost->routes));
	show_set_text(row, "action",
		action < 0 ? "none: fails (14, HTTP 503), its action is not supported"
			   : actions_at(e->query.of.actions, (uint32_t)action)->name);
	json_array_append_new(e->outcomes, row);
	if (action < 0)
		return;
	add_clusters(e, r, share);
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

static const char *why_none(const struct explanation *e)
{
	if (e->found.result.kind == LB_ROUTE_NO_VHOST)
		return "none: fails (14, HTTP 404), no virtual host";
	if (e->found.result.kind != LB_ROUTE_NONE)
		return "not followed: every draw hit an earlier route";
	return strcmp(e->args->method, "CONNECT") == 0
	               ? "none: fails (14, HTTP 404), CONNECT is never routed"
	               : "none: fails (14, HTTP 404), no route matches";
}

static void add_outcomes(struct explanation *e)
{
	uint32_t n = explain_outcomes(&e->found, e->outcome);
	for (uint32_t i = 0; i < n; i++) {
		if (e->outcome[i].route)
			add_outcome(e, e->outcome[i].route, e->outcome[i].share);
		else
			add_failure(e, e->outcome[i].share, why_none(e));
	}
}

static json_t *whole_json(struct explanation *e)
{
	const struct res_vhost *v = e->found.vhost;
	const struct explain_args *a = e->args;
	json_t *o = json_object();
	show_set_text(o, "frontend", e->show->conf.config->frontends[e->frontend].name);
	json_object_set_new(o, "authority", render_str(lb_req_host(&e->query.req)));
	show_set_text(o, "method", a->method);
	show_set_text(o, "path", a->path);
	json_object_set_new(o, "grpc", json_boolean(e->query.req.is_grpc));
	show_set_text(o, "routes", e->query.of.config->routes->base.name);
	show_set_text(o, "virtual_host", v ? v->name : NULL);
	show_set_text(o, "domain", v ? explain_domain(&e->query, &e->found) : NULL);
	json_object_set_new(o, "looked_at", v ? steps_json(e) : json_array());
	if (e->found.n_steps > EXPLAIN_MAX_STEPS)
		show_set_u64(o, "not_told", e->found.n_steps - EXPLAIN_MAX_STEPS);
	json_object_set(o, "outcomes", e->outcomes);
	json_object_set(o, "clusters", e->clusters);
	json_object_set(o, "drops", e->drops);
	json_object_set(o, "sessions", e->sessions);
	json_object_set(o, "effects", e->effects);
	json_object_set(o, "filters", e->filters);
	return o;
}

static json_t *explain(struct explanation *e)
{
	if (!explain_look_up(&e->query, &e->found))
		return NULL;
	e->outcomes = json_array();
	e->clusters = json_array();
	e->drops = json_array();
	e->sessions = json_array();
	e->effects = json_array();
	e->filters = json_array();
	add_outcomes(e);
	json_t *whole = e->out_of_memory ? NULL : whole_json(e);
	json_decref(e->outcomes);
	json_decref(e->clusters);
	json_decref(e->drops);
	json_decref(e->sessions);
	json_decref(e->effects);
	json_decref(e->filters);
	return whole;
}

static void set_no_routes(const struct show *s, uint32_t frontend, struct lb_err *reterr)
{
	const char *why = assembler_frontend_error(s->conf.assembler, frontend);
	lb_err_set(reterr, "no routes: %s", *why ? why : "they are those of its filter chains");
}

json_t *show_explain(const struct show *s, struct show_args *args)
{
	struct explain_args a;
	if (explain_args_read(&a, args->words, args->n, &args->err))
		return NULL;
	args->json = a.json;
	int frontend = config_find_frontend(s->conf.config, a.frontend, &args->err);
	if (frontend < 0)
		return NULL;
	struct explanation *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->show = s;
	e->args = &a;
	e->frontend = (uint32_t)frontend;
	rand_init(&e->rand, twheel_now(s->conf.wheel));
	const struct config_frontend *conf = &s->conf.config->frontends[frontend];
	const char *pinned = conf->authority;
	e->query = (struct explain_query){
		.req = {.authority = a.authority,
			.pinned = pinned ? str_from(pinned) : (struct str){0},
			.path = str_from(a.path),
			.method = str_from(a.method),
			.scheme = STR("http"),
			.is_grpc = a.is_grpc,
			.fields = a.fields,
			.n_fields = a.n_fields},
		.peer = {.direct = a.from,
			.source = a.from,
			.remote = a.from,
			.destination = {conf->address_ip, conf->port}},
		.rand = &e->rand,
		.scratch = s->scratch,
		.text = e->text,
		.text_size = sizeof(e->text),
	};
	json_t *whole = NULL;
	if (assembler_frontend_routes(s->conf.assembler, e->frontend, &e->query.of))
		whole = explain(e);
	else
		set_no_routes(s, e->frontend, &args->err);
	free(e);
	return whole;
}
