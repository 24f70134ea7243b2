// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/show.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/load_report.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/base/stats_proto.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/render.h"
#include "ctrl/stats/show_impl.h"
#include "ctrl/xds/federation.h"
#include "lb/base/twheel.h"
#include "lb/base/words.h"
#include "lb/pick/link.h"
#include "lb/route/route.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Header lists longer than this are cut in lookups for operators: more than a command can hold.
#define MAX_TEXT ((size_t)2 * STATS_MAX_COMMAND)

struct command {
	const char *name; // its words
	const char *usage; // what may follow; NULL = nothing
	const char *help;
	json_t *(*build)(const struct show *, struct show_args *);
	const char *const *csv; // columns of the text form
	char *(*text)(json_t *); // the text form; neither = render_text()
};

struct show *show_new(const struct show_conf *conf)
{
	struct show *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->conf = *conf;
	s->state = "starting";
	s->started_ns = twheel_now(conf->wheel);
	s->scratch = lb_route_scratch_new(workers_count(conf->workers), MAX_TEXT);
	if (!s->scratch) {
		free(s);
		return NULL;
	}
	return s;
}

void show_free(struct show *s)
{
	if (!s)
		return;
	lb_route_scratch_free(s->scratch);
	free(s);
}

void show_set_state(struct show *s, const char *state)
{
	s->state = state;
}

void show_set_u64(json_t *o, const char *key, uint64_t value)
{
	json_object_set_new(o, key, json_integer((json_int_t)value));
}

void show_set_text(json_t *o, const char *key, const char *value)
{
	json_object_set_new(o, key, render_string(value));
}

json_t *show_causes(const uint64_t ended[LB_N_CAUSES])
{
	json_t *o = json_object();
	for (int i = 0; o && i < LB_N_CAUSES; i++)
		show_set_u64(o, lb_cause_info((enum lb_cause)i)->name, ended[i]);
	return o;
}

int show_find_frontend(const struct config *c, const char *name, struct lb_err *err)
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

// show info

static void set_loads(json_t *o, const struct load_report *loads)
{
	struct load_report_info i;
	load_report_info(loads, &i);
	show_set_text(o, "lrs_server", i.stream.uri);
	show_set_text(o, "lrs_state", xds_server_state_name(i.stream.state));
	show_set_text(o, "lrs_error", i.stream.error);
	json_object_set_new(o, "lrs_interval_s", json_real(show_seconds(i.stream.interval_ns)));
	show_set_u64(o, "lrs_clusters", i.stream.n_clusters);
	show_set_u64(o, "lrs_streams", i.stream.n_streams);
	show_set_u64(o, "lrs_reports", i.stream.n_reports);
	show_set_u64(o, "lrs_counters", i.n_counters);
	show_set_u64(o, "lrs_counters_refused", i.n_refused);
	show_set_u64(o, "lrs_metrics_refused", i.n_stray_metrics);
}

static json_t *build_info(const struct show *s, struct show_args *args)
{
	json_t *o = json_object();
	if (!o)
		return NULL;
	struct xds_server_info server;
	xds_federation_server(s->conf.xds, &server);
	uint64_t requests = 0, clients = 0;
	for (uint32_t w = 0; w < workers_count(s->conf.workers); w++) {
		const struct lb_worker_counters *c = &workers_link(s->conf.workers, w)->counters;
		requests += counter_read(&c->requests);
		clients += counter_read(&c->client_connections);
	}
	show_set_text(o, "version", SHUNT_VERSION);
	show_set_text(o, "state", s->state);
	show_set_u64(o, "pid", (uint64_t)getpid());
	json_object_set_new(
		o, "uptime_s", json_real(show_seconds(twheel_now(s->conf.wheel) - s->started_ns)));
	show_set_u64(o, "workers", workers_count(s->conf.workers));
	show_set_u64(o, "snapshots_published", assembler_n_snapshots(s->conf.assembler));
	show_set_u64(o, "snapshots_live", assembler_n_live_snapshots(s->conf.assembler));
	show_set_u64(o, "connects_under_way", assembler_n_attempts(s->conf.assembler));
	show_set_u64(o, "connects_waiting", assembler_n_waiting_attempts(s->conf.assembler));
	show_set_u64(o, "client_connections", clients);
	show_set_u64(o, "requests", requests);
	show_set_text(o, "xds_server", server.uri);
	show_set_text(o, "xds_state", xds_server_state_name(server.state));
	show_set_text(o, "xds_error", server.error);
	if (s->conf.loads)
		set_loads(o, s->conf.loads);
	json_t *frontends = json_array();
	for (uint32_t i = 0; i < s->conf.config->n_frontends; i++) {
		const struct config_frontend *f = &s->conf.config->frontends[i];
		const char *error = assembler_frontend_error(s->conf.assembler, i);
		char down[256];
		show_frontend_down(s, i, down, sizeof(down));
		json_t *row = json_object();
		show_set_text(row, "name", f->name);
		show_set_text(row, "address", f->address);
		show_set_u64(row, "port", f->port);
		show_set_text(row, "target", f->target);
		show_set_text(row, "state", down[0] ? "down" : error[0] ? "failing" : "serving");
		const char *waiting = assembler_frontend_waiting(s->conf.assembler, i);
		show_set_text(
			row, "waiting", waiting[0] ? waiting : s->conf.waiting(s->conf.ctx, i));
		const char *refusal = assembler_frontend_refusal(s->conf.assembler, i);
		show_set_text(
			row, "refused", refusal[0] ? refusal : s->conf.refused(s->conf.ctx, i));
		show_set_text(row, "error", down[0] ? down : error);
		json_array_append_new(frontends, row);
	}
	json_object_set_new(o, "frontends", frontends);
	return o;
}

// show workers

static json_t *group_json(const struct counter_set *set)
{
	json_t *o = json_object();
	for (uint32_t i = 0; o && i < set->n; i++)
		show_set_u64(o, set->names[i], counter_read(&set->values[i]));
	return o;
}

// How long ago its last turn began; the loop's time may be a tick behind. null = none has begun.
static json_t *beat_json(const struct show *s, const struct lb_worker_counters *k)
{
	uint64_t beat_ns = counter_read(&k->beat_ns), now_ns = twheel_now(s->conf.wheel);
	if (!beat_ns)
		return json_null();
	return json_real(now_ns > beat_ns ? (double)(now_ns - beat_ns) / 1e6 : 0);
}

static json_t *worker_json(const struct show *s, uint32_t w)
{
	const struct lb_link *link = workers_link(s->conf.workers, w);
	const struct lb_worker_counters *k = &link->counters;
	json_t *o = json_object();
	show_set_u64(o, "worker", w);
	show_set_u64(o, "core", (uint64_t)link->core);
	json_object_set_new(
		o, "busy_percent", json_real(100 * workers_busy_share(s->conf.workers, w)));
	show_set_u64(o, "turns", counter_read(&k->turns));
	show_set_u64(o, "empty_turns", counter_read(&k->empty_turns));
	json_object_set_new(o, "busy_s", json_real(show_seconds(counter_read(&k->busy_ns))));
	json_object_set_new(o, "idle_s", json_real(show_seconds(counter_read(&k->idle_ns))));
	json_object_set_new(
		o, "longest_turn_us", json_real((double)counter_read(&k->longest_turn_ns) / 1e3));
	show_set_u64(o, "long_turns", counter_read(&k->long_turns));
	json_object_set_new(o, "beat_ms", beat_json(s, k));
	show_set_u64(o, "snapshot", counter_read(&k->snapshot_version));
	show_set_u64(o, "client_connections", counter_read(&k->client_connections));
	show_set_u64(o, "requests", counter_read(&k->requests));
	uint64_t ended[LB_N_CAUSES];
	for (int i = 0; i < LB_N_CAUSES; i++)
		ended[i] = counter_read(&k->ended[i]);
	json_object_set_new(o, "ended", show_causes(ended));
	for (uint32_t g = 0; g < link->n_groups; g++)
		json_object_set_new(o, link->groups[g].name, group_json(&link->groups[g].set));
	return o;
}

static json_t *build_workers(const struct show *s, struct show_args *args)
{
	json_t *o = json_object();
	for (uint32_t w = 0; o && w < workers_count(s->conf.workers); w++) {
		char name[32];
		snprintf(name, sizeof(name), "worker%u", w);
		json_object_set_new(o, name, worker_json(s, w));
	}
	return o;
}

// help and dispatch

static json_t *build_help(const struct show *, struct show_args *);

static const struct command commands[] = {
	{"help", NULL, "this list", build_help, NULL, NULL},
	{"show info", NULL, "version, state, frontends, xDS server", build_info, NULL, NULL},
	{"show stat", NULL, "frontends, clusters and endpoints with counters, as HAProxy's CSV",
		show_stat, show_stat_columns, NULL},
	{"show clusters", NULL, "clusters and their endpoints: state, requests, last error",
		show_clusters, NULL, NULL},
	{"show tree", "[CLUSTER]", "how clusters balance: policies, states, priorities, ejections",
		show_tree, NULL, show_tree_text},
	{"show endpoints", "[CLUSTER]",
		"each endpoint: state, health, priority, locality, weights, counters, last error",
		show_endpoints, NULL, NULL},
	{"show routes", "[--frontend F] [--authority A]",
		"each frontend's routes and actions, as gRFC A28 prints them", show_routes, NULL,
		show_routes_text},
	{"explain",
		"--authority A --path P [-H 'NAME: VALUE']... [--frontend F] [--method M] "
		"[--grpc | --http]",
		"where a request would go, and why", show_explain, NULL, NULL},
	{"reconnect", "[CLUSTER[/ADDRESS]]",
		"ends the waits of endpoints that failed; how many there were", show_reconnect,
		NULL, NULL},
	{"show xds", NULL,
		"the xDS server, how many resources are in which state, and every resource: state, "
		"version, age, error",
		show_xds, NULL, NULL},
	{"show metrics", NULL, "the xDS client's metrics of gRFC A78, as Prometheus reads them",
		show_metrics, NULL, show_metrics_text},
	{"show workers", NULL, "each worker: load, requests by ending, counters of every layer",
		build_workers, NULL, NULL},
	{"show pools", NULL, "each worker's pools: objects in all, free, in use, most ever in use",
		show_pools, NULL, NULL},
	{"show ports", NULL, "each port: device, link, steering, frames of all workers", show_ports,
		NULL, NULL},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static json_t *build_help(const struct show *s, struct show_args *args)
{
	json_t *rows = json_array();
	for (size_t i = 0; rows && i < N_COMMANDS; i++) {
		const struct command *c = &commands[i];
		char help[256];
		snprintf(help, sizeof(help), "%s%s%s", c->help, c->usage ? ": " : "",
			c->usage ? c->usage : "");
		json_array_append_new(rows, json_pack("{ss ss}", "command", c->name, "help", help));
	}
	return rows;
}

// How many words the command's name has, if the line starts with it; else 0.
static unsigned words_of(const struct command *c, const struct words *line)
{
	char name[64];
	char *save = NULL;
	unsigned n = 0;
	snprintf(name, sizeof(name), "%s", c->name);
	for (char *w = strtok_r(name, " ", &save); w; w = strtok_r(NULL, " ", &save), n++)
		if (n == line->n || strcmp(line->list[n], w) != 0)
			return 0;
	return n;
}

static char *answer_error(const char *fmt, const char *what)
{
	char *text = NULL, *raw = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		return NULL;
	fputs(STATS_ERROR, f);
	if (asprintf(&raw, fmt, what) >= 0) {
		render_print(f, raw);
		free(raw);
	}
	fputc('\n', f);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

static char *answer_json(json_t *tree)
{
	json_t *whole = json_pack("{si sO}", "schema_version", STATS_SCHEMA_VERSION, "data", tree);
	char *text = whole ? render_json(whole) : NULL;
	json_decref(whole);
	return text;
}

static char *answer(const struct show *s, const struct command *c, struct show_args *args)
{
	if (!c->usage && args->n == 1 && strcmp(args->words[0], "json") == 0) {
		args->json = true;
		args->n = 0;
	}
	if (!c->usage && args->n)
		return answer_error("'%s' is too much, try help", args->words[0]);
	json_t *tree = c->build(s, args);
	if (!tree)
		return args->err.text[0] ? answer_error("%s", args->err.text) : NULL;
	char *text = args->json ? answer_json(tree)
	             : c->csv   ? render_csv(tree, c->csv)
	             : c->text  ? c->text(tree)
	                        : render_text(tree);
	json_decref(tree);
	return text;
}

char *show_answer(void *ctx, const char *line)
{
	char copy[STATS_MAX_COMMAND + 1];
	struct words words;
	snprintf(copy, sizeof(copy), "%s", line);
	const char *wrong = words_split(copy, &words);
	if (wrong)
		return answer_error("%s", wrong);
	for (size_t i = 0; i < N_COMMANDS; i++) {
		unsigned n = words_of(&commands[i], &words);
		struct show_args args = {.words = words.list + n, .n = words.n - n};
		if (n)
			return answer(ctx, &commands[i], &args);
	}
	return answer_error("unknown command '%s', try help", line);
}
