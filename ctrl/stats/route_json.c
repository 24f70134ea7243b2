// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/route_json.h"

#include "ctrl/base/printout.h"
#include "ctrl/res/route.h"
#include "ctrl/stats/render.h"
#include "lb/base/time.h"
#include "lb/route/rbac.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_STATUSES 17

static const char *const status_names[N_STATUSES] = {"ok", "cancelled", "unknown",
	"invalid-argument", "deadline-exceeded", "not-found", "already-exists", "permission-denied",
	"resource-exhausted", "failed-precondition", "aborted", "out-of-range", "unimplemented",
	"internal", "unavailable", "data-loss", "unauthenticated"};

static void set_str(json_t *o, const char *key, struct str value)
{
	json_object_set_new(o, key, render_str(value));
}

static void set_text(json_t *o, const char *key, const char *value)
{
	json_object_set_new(o, key, render_string(value));
}

const char *route_text_duration(uint64_t ns, char text[32])
{
	if (ns == LB_NO_TIMEOUT)
		snprintf(text, 32, "none");
	else
		snprintf(text, 32, "%.9gs", (double)ns / (double)NS_PER_SECOND);
	return text;
}

const char *route_text_percent(double share, char text[32])
{
	snprintf(text, 32, "%.7g", 100 * share);
	return text;
}

// Matchers.

static const char *const path_keys[] = {
	[LB_PATH_PREFIX] = "prefix", [LB_PATH_EXACT] = "path", [LB_PATH_REGEX] = "regex"};
static const char *const header_words[] = {
	[LB_HEADER_EXACT] = "exact",
	[LB_HEADER_PREFIX] = "prefix",
	[LB_HEADER_SUFFIX] = "suffix",
	[LB_HEADER_CONTAINS] = "contains",
	[LB_HEADER_REGEX] = "regex",
	[LB_HEADER_RANGE] = "range",
	[LB_HEADER_PRESENT] = "present",
};

static json_t *header_json(const struct lb_header_match_conf *h)
{
	json_t *o = json_object();
	char key[32];
	set_str(o, "name", h->name);
	snprintf(key, sizeof(key), "%s_match", header_words[h->kind]);
	if (h->kind == LB_HEADER_RANGE)
		json_object_set_new(o, key,
			json_pack("{sI sI}", "start", (json_int_t)h->start, "end",
				(json_int_t)h->end));
	else if (h->kind == LB_HEADER_PRESENT)
		json_object_set_new(o, key, json_boolean(h->present));
	else
		set_str(o, key, h->text);
	if (h->ignore_case)
		json_object_set_new(o, "ignore_case", json_true());
	if (h->invert)
		json_object_set_new(o, "invert_match", json_true());
	return o;
}

void route_json_matchers(json_t *o, const struct res_route *r)
{
	set_str(o, path_keys[r->path_kind], (struct str){r->path, r->path_len});
	if (!r->case_sensitive && r->path_kind != LB_PATH_REGEX)
		json_object_set_new(o, "case_sensitive", json_false());
	if (r->n_headers) {
		json_t *list = json_array();
		for (uint32_t i = 0; i < r->n_headers; i++)
			json_array_append_new(list, header_json(&r->headers[i]));
		json_object_set_new(o, "headers", list);
	}
	if (r->ppm != LB_PPM_ALWAYS)
		json_object_set_new(o, "match_fraction", json_integer(r->ppm));
	if (r->grpc_only)
		json_object_set_new(o, "grpc", json_true());
}

static void print_header(FILE *f, const json_t *header)
{
	const char *key;
	json_t *value;
	const char *name = json_string_value(json_object_get(header, "name"));
	const json_t *range = json_object_get(header, "range_match");
	fprintf(f, "%s ", name);
	if (json_is_true(json_object_get(header, "invert_match")))
		fputs("not ", f);
	if (range)
		fprintf(f, "in [%" JSON_INTEGER_FORMAT ", %" JSON_INTEGER_FORMAT ")",
			json_integer_value(json_object_get(range, "start")),
			json_integer_value(json_object_get(range, "end")));
	json_object_foreach((json_t *)(uintptr_t)header, key, value)
	{
		size_t len = strlen(key) - strlen("_match"); // if that is how it ends
		if (strcmp(key, "present_match") == 0)
			fputs(json_is_true(value) ? "present" : "absent", f);
		else if (strcmp(key, "name") != 0 && json_is_string(value))
			fprintf(f, "%.*s \"%s\"", (int)len, key, json_string_value(value));
	}
	if (json_is_true(json_object_get(header, "ignore_case")))
		fputs(" in any case", f);
}

static void print_matchers(FILE *f, const json_t *route)
{
	for (size_t i = 0; i < sizeof(path_keys) / sizeof(path_keys[0]); i++) {
		const char *path = json_string_value(json_object_get(route, path_keys[i]));
		if (path)
			fprintf(f, "%s \"%s\"", path_keys[i], path);
	}
	if (json_is_false(json_object_get(route, "case_sensitive")))
		fputs(" in any case", f);
	size_t k;
	const json_t *header;
	json_array_foreach(json_object_get(route, "headers"), k, header)
	{
		fputs(", header ", f);
		print_header(f, header);
	}
	const json_t *fraction = json_object_get(route, "match_fraction");
	char text[32];
	if (fraction)
		fprintf(f, ", %s %% of the requests",
			route_text_percent((double)json_integer_value(fraction) / 1e6, text));
	if (json_is_true(json_object_get(route, "grpc")))
		fputs(", gRPC", f);
}

static char *printed(void (*print)(FILE *, const json_t *), const json_t *what)
{
	struct printout p;
	FILE *f = printout_begin(&p);
	if (!f)
		return NULL;
	print(f, what);
	return printout_end(&p);
}

char *route_text_matchers(const json_t *route)
{
	return printed(print_matchers, route);
}

char *route_text_header(const struct lb_header_match_conf *h)
{
	json_t *o = header_json(h);
	char *text = o ? printed(print_header, o) : NULL;
	json_decref(o);
	return text;
}

// Filters.

static json_t *share_text(const char *what, uint32_t numerator, uint32_t denominator)
{
	char text[128], percent[32];
	double share = denominator ? (double)numerator / denominator : 0;
	snprintf(text, sizeof(text), "%s, %s %% of the requests", what,
		route_text_percent(share > 1 ? 1 : share, percent));
	return render_string(text);
}

static void fault_json(json_t *o, const struct lb_fault *f)
{
	char text[64], duration[32];
	set_text(o, "type", "fault");
	snprintf(text, sizeof(text), "%s",
		f->delay == LB_DELAY_HEADER ? "as the request says"
					    : route_text_duration(f->delay_ns, duration));
	if (f->delay != LB_DELAY_NONE)
		json_object_set_new(
			o, "delay", share_text(text, f->delay_numerator, f->delay_denominator));
	if (f->abort == LB_ABORT_HEADER)
		snprintf(text, sizeof(text), "as the request says");
	else
		snprintf(text, sizeof(text), "%s %u",
			f->abort == LB_ABORT_HTTP ? "HTTP status" : "gRPC status", f->abort_status);
	if (f->abort != LB_ABORT_NONE)
		json_object_set_new(
			o, "abort", share_text(text, f->abort_numerator, f->abort_denominator));
	if (f->max_active != UINT32_MAX)
		json_object_set_new(o, "max_active_faults", json_integer(f->max_active));
}

static void session_json(json_t *o, const struct lb_session *s)
{
	set_text(o, "type", "stateful_session");
	json_object_set_new(o, "enabled", json_boolean(s->enabled));
	if (!s->enabled)
		return;
	set_str(o, "cookie", s->cookie);
	if (s->path.len)
		set_str(o, "path", s->path);
	if (s->ttl_s)
		json_object_set_new(o, "ttl_s", json_integer((json_int_t)s->ttl_s));
}

static json_t *rules_json(const struct lb_rbac_rules *r)
{
	static const char *const actions[] = {
		[LB_RBAC_ALLOW] = "ALLOW", [LB_RBAC_DENY] = "DENY", [LB_RBAC_LOG] = "LOG"};
	json_t *o = json_object(), *policies = json_array();
	set_text(o, "action", actions[r->action]);
	for (uint32_t i = 0; i < r->n; i++)
		json_array_append_new(policies, render_str(r->policies[i].name));
	json_object_set_new(o, "policies", policies);
	return o;
}

// Of a decoded resource; that of a chain is compiled.
static void rbac_json(json_t *o, const struct lb_rbac_conf *c)
{
	if (c && c->rules)
		json_object_set_new(o, "rules", rules_json(c->rules));
	if (c && c->shadow)
		json_object_set_new(o, "shadow_rules", rules_json(c->shadow));
}

json_t *route_json_filter(const struct lb_filter *f)
{
	json_t *o = json_object();
	set_str(o, "name", f->name);
	if (f->kind == LB_FILTER_FAULT)
		fault_json(o, &f->fault);
	else if (f->kind == LB_FILTER_RBAC)
		rbac_json(o, f->rbac.conf);
	else if (f->kind == LB_FILTER_SESSION)
		session_json(o, &f->session);
	if (f->disabled || f->kind == LB_FILTER_SWITCH)
		json_object_set_new(o, "disabled", json_boolean(f->disabled));
	return o;
}

json_t *route_json_filters(const struct lb_filter *list, uint32_t n)
{
	json_t *a = json_array();
	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(a, route_json_filter(&list[i]));
	return a;
}

// Policies.

static json_t *retry_json(const struct lb_retry *r)
{
	char text[32];
	json_t *o = json_object(), *on = json_array();
	for (int i = 0; i < N_STATUSES; i++)
		if (r->statuses >> i & 1)
			json_array_append_new(on, json_string(status_names[i]));
	json_object_set_new(o, "retry_on", on);
	json_object_set_new(o, "max_attempts", json_integer(r->max_attempts));
	set_text(o, "base_interval", route_text_duration(r->base_ns, text));
	set_text(o, "max_interval", route_text_duration(r->max_ns, text));
	return o;
}

static json_t *hash_json(const struct lb_hash_policy *h)
{
	json_t *o = json_object();
	if (h->kind == LB_HASH_HEADER)
		set_str(o, "header", h->header);
	else
		set_text(o, "filter_state", "io.grpc.channel_id");
	if (h->pattern.len) {
		json_t *rewrite = json_object();
		set_str(rewrite, "pattern", h->pattern);
		set_str(rewrite, "substitution", h->substitution);
		json_object_set_new(o, "regex_rewrite", rewrite);
	}
	if (h->terminal)
		json_object_set_new(o, "terminal", json_true());
	return o;
}

json_t *route_json_policy(const struct lb_route_policy *p, bool trusted)
{
	char text[32];
	json_t *o = json_object();
	if (p->timeouts.has_max)
		set_text(o, "max_stream_duration", route_text_duration(p->timeouts.max_ns, text));
	if (p->timeouts.has_header_max)
		set_text(o, "grpc_timeout_header_max",
			route_text_duration(p->timeouts.header_max_ns, text));
	if (p->timeouts.idle_ns)
		set_text(o, "idle_timeout", route_text_duration(p->timeouts.idle_ns, text));
	if (p->retry.statuses)
		json_object_set_new(o, "retry_policy", retry_json(&p->retry));
	if (p->n_hash) {
		json_t *list = json_array();
		for (uint32_t i = 0; i < p->n_hash; i++)
			json_array_append_new(list, hash_json(&p->hash[i]));
		json_object_set_new(o, "hash_policy", list);
	}
	if (p->auto_host_rewrite && trusted)
		json_object_set_new(o, "auto_host_rewrite", json_true());
	if (p->overrides.n)
		json_object_set_new(
			o, "filters", route_json_filters(p->overrides.list, p->overrides.n));
	if (json_object_size(o))
		return o;
	json_decref(o);
	return NULL;
}
