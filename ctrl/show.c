// SPDX-License-Identifier: Apache-2.0
#include "ctrl/show.h"

#include "ctrl/assemble.h"
#include "ctrl/config.h"
#include "ctrl/render.h"
#include "ctrl/stats_proto.h"
#include "ctrl/workers.h"
#include "ctrl/xds/client.h"
#include "lb/base/twheel.h"
#include "lb/link.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct show {
	struct show_conf conf;
	const char *state;
	uint64_t started_ns;
};

struct command {
	const char *name;
	const char *help;
	json_t *(*build)(const struct show *); // NULL = no memory
	const char *const *csv; // columns of the text form; NULL = render_text()
};

struct show *show_new(const struct show_conf *conf)
{
	struct show *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->conf = *conf;
	s->state = "starting";
	s->started_ns = twheel_now(conf->wheel);
	return s;
}

void show_free(struct show *s)
{
	free(s);
}

void show_set_state(struct show *s, const char *state)
{
	s->state = state;
}

static void set_u64(json_t *o, const char *key, uint64_t value)
{
	json_object_set_new(o, key, json_integer((json_int_t)value));
}

static void set_text(json_t *o, const char *key, const char *value)
{
	json_object_set_new(o, key, render_string(value));
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

// Sums over workers.

static uint64_t failures(const struct cluster_totals *t)
{
	uint64_t n = 0;
	for (int i = 0; i < LB_N_CAUSES; i++)
		n += i == LB_CAUSE_OK ? 0 : t->ended[i];
	return n;
}

static struct lb_endpoint_counters endpoint_totals(const struct show *s, uint32_t id)
{
	struct lb_endpoint_counters t = {0};
	for (uint32_t w = 0; w < workers_count(s->conf.workers); w++) {
		const struct lb_endpoint_counters *e =
			&workers_link(s->conf.workers, w)->endpoints[id];
		t.started += counter_read(&e->started);
		t.active += counter_read(&e->active);
		t.connections += counter_read(&e->connections);
	}
	return t;
}

static json_t *causes_json(const uint64_t ended[LB_N_CAUSES])
{
	json_t *o = json_object();
	for (int i = 0; o && i < LB_N_CAUSES; i++)
		set_u64(o, lb_cause_info((enum lb_cause)i)->name, ended[i]);
	return o;
}

// show info

static json_t *build_info(const struct show *s)
{
	json_t *o = json_object();
	if (!o)
		return NULL;
	struct xds_server_info server;
	xds_client_server(s->conf.xds, &server);
	uint64_t requests = 0, clients = 0;
	for (uint32_t w = 0; w < workers_count(s->conf.workers); w++) {
		const struct lb_worker_counters *c = &workers_link(s->conf.workers, w)->counters;
		requests += counter_read(&c->requests);
		clients += counter_read(&c->client_connections);
	}
	set_text(o, "version", SHUNT_VERSION);
	set_text(o, "state", s->state);
	set_u64(o, "pid", (uint64_t)getpid());
	json_object_set_new(
		o, "uptime_s", json_real(seconds(twheel_now(s->conf.wheel) - s->started_ns)));
	set_u64(o, "workers", workers_count(s->conf.workers));
	set_u64(o, "snapshots_published", assembler_n_snapshots(s->conf.assembler));
	set_u64(o, "snapshots_live", assembler_n_live_snapshots(s->conf.assembler));
	set_u64(o, "client_connections", clients);
	set_u64(o, "requests", requests);
	set_text(o, "xds_server", server.uri);
	set_text(o, "xds_state", xds_server_state_name(server.state));
	set_text(o, "xds_error", server.error);
	json_t *frontends = json_array();
	for (uint32_t i = 0; i < s->conf.config->n_frontends; i++) {
		const struct config_frontend *f = &s->conf.config->frontends[i];
		const char *error = assembler_frontend_error(s->conf.assembler, i);
		json_t *row = json_object();
		set_text(row, "name", f->name);
		set_text(row, "address", f->address);
		set_u64(row, "port", f->port);
		set_text(row, "target", f->target);
		set_text(row, "state", error[0] ? "failing" : "serving");
		set_text(row, "waiting", s->conf.waiting(s->conf.ctx, i));
		set_text(row, "refused", assembler_frontend_refusal(s->conf.assembler, i));
		set_text(row, "error", error);
		json_array_append_new(frontends, row);
	}
	json_object_set_new(o, "frontends", frontends);
	return o;
}

// show stat: rows like HAProxy's, so that its tools and people's habits work.

static const char *const stat_columns[] = {"pxname", "svname", "qcur", "qmax", "scur", "smax",
	"slim", "stot", "bin", "bout", "dreq", "dresp", "ereq", "econ", "eresp", "wretr", "wredis",
	"status", "weight", "act", "bck", "chkfail", "chkdown", "lastchg", "downtime", "qlimit",
	"pid", "iid", "sid", "throttle", "lbtot", "tracked", "type", "req_tot", "ok", "failed",
	NULL};

enum { STAT_TYPE_FRONTEND = 0, STAT_TYPE_BACKEND = 1, STAT_TYPE_SERVER = 2 };

struct stat_ctx {
	const struct show *show;
	json_t *rows;
	const char *cluster;
};

static json_t *stat_row(
	struct stat_ctx *c, const char *proxy, const char *server, int type, const char *status)
{
	json_t *row = json_object();
	set_text(row, "pxname", proxy);
	set_text(row, "svname", server);
	set_text(row, "status", status);
	set_u64(row, "type", (uint64_t)type);
	set_u64(row, "pid", 1);
	json_array_append_new(c->rows, row);
	return row;
}

static void stat_frontends(struct stat_ctx *c)
{
	const struct show *s = c->show;
	for (uint32_t i = 0; i < s->conf.config->n_frontends; i++) {
		uint64_t requests = 0, connections = 0;
		for (uint32_t w = 0; w < workers_count(s->conf.workers); w++) {
			const struct lb_worker_counters *k =
				&workers_link(s->conf.workers, w)->counters;
			requests += counter_read(&k->frontend_requests[i]);
			connections += counter_read(&k->frontend_connections[i]);
		}
		bool serving = assembler_frontend_error(s->conf.assembler, i)[0] == 0;
		json_t *row = stat_row(c, s->conf.config->frontends[i].name, "FRONTEND",
			STAT_TYPE_FRONTEND, serving ? "OPEN" : "STOP");
		set_u64(row, "stot", connections);
		set_u64(row, "req_tot", requests);
	}
}

static void stat_endpoint(void *ctx, const struct assembler_endpoint_info *e)
{
	struct stat_ctx *c = ctx;
	struct lb_endpoint_counters t = endpoint_totals(c->show, e->id);
	json_t *row = stat_row(
		c, c->cluster, e->address, STAT_TYPE_SERVER, e->state == LB_READY ? "UP" : "DOWN");
	set_u64(row, "scur", t.active);
	set_u64(row, "stot", t.started);
	set_u64(row, "lbtot", t.started);
	set_u64(row, "req_tot", t.started);
	set_u64(row, "weight", 1);
	set_u64(row, "act", e->state == LB_READY);
}

static void stat_cluster(void *ctx, const struct assembler_cluster_info *info)
{
	struct stat_ctx *c = ctx;
	const struct cluster_totals *t = &info->totals;
	c->cluster = info->name;
	assembler_each_endpoint(c->show->conf.assembler, info->name, stat_endpoint, c);
	json_t *row = stat_row(c, info->name, "BACKEND", STAT_TYPE_BACKEND,
		info->state == LB_TRANSIENT_FAILURE ? "DOWN" : "UP");
	set_u64(row, "qcur", t->queued);
	set_u64(row, "scur", t->active);
	set_u64(row, "stot", t->started);
	set_u64(row, "lbtot", t->started);
	set_u64(row, "req_tot", t->started);
	set_u64(row, "act", info->n_ready);
	set_u64(row, "econ", t->ended[LB_CAUSE_NO_HEALTHY]);
	set_u64(row, "eresp",
		t->ended[LB_CAUSE_UPSTREAM_RESET] + t->ended[LB_CAUSE_UPSTREAM_LOST] +
			t->ended[LB_CAUSE_UPSTREAM_PROTOCOL]);
	set_u64(row, "ok", t->ended[LB_CAUSE_OK]);
	set_u64(row, "failed", failures(t));
	json_object_set_new(row, "ended", causes_json(t->ended));
}

static json_t *build_stat(const struct show *s)
{
	struct stat_ctx c = {.show = s, .rows = json_array()};
	if (!c.rows)
		return NULL;
	stat_frontends(&c);
	assembler_each_cluster(s->conf.assembler, stat_cluster, &c);
	return c.rows;
}

// show clusters

static void cluster_endpoint(void *ctx, const struct assembler_endpoint_info *e)
{
	struct stat_ctx *c = ctx;
	struct lb_endpoint_counters t = endpoint_totals(c->show, e->id);
	json_t *row = json_object();
	set_text(row, "cluster", c->cluster);
	set_text(row, "endpoint", e->address);
	set_text(row, "state", lb_state_name(e->state));
	set_u64(row, "requests", t.started);
	set_u64(row, "active", t.active);
	set_u64(row, "connections", t.connections);
	set_text(row, "error", e->last_error);
	json_array_append_new(c->rows, row);
}

struct clusters_ctx {
	const struct show *show;
	json_t *clusters, *endpoints;
};

static void cluster_line(void *ctx, const struct assembler_cluster_info *info)
{
	struct clusters_ctx *c = ctx;
	const struct cluster_totals *t = &info->totals;
	json_t *row = json_object();
	set_text(row, "cluster", info->name);
	set_text(row, "state", lb_state_name(info->state));
	set_u64(row, "endpoints", info->n_endpoints);
	set_u64(row, "ready", info->n_ready);
	set_u64(row, "requests", t->started);
	set_u64(row, "active", t->active);
	set_u64(row, "queued", t->queued);
	set_u64(row, "ok", t->ended[LB_CAUSE_OK]);
	set_u64(row, "failed", failures(t));
	json_object_set_new(row, "leaving", json_boolean(info->leaving));
	set_text(row, "detail", info->detail);
	json_object_set_new(row, "ended", causes_json(t->ended));
	json_array_append_new(c->clusters, row);
	struct stat_ctx inner = {c->show, c->endpoints, info->name};
	assembler_each_endpoint(c->show->conf.assembler, info->name, cluster_endpoint, &inner);
}

static json_t *build_clusters(const struct show *s)
{
	struct clusters_ctx c = {s, json_array(), json_array()};
	assembler_each_cluster(s->conf.assembler, cluster_line, &c);
	return json_pack("{so so}", "clusters", c.clusters, "endpoints", c.endpoints);
}

// show xds

struct xds_ctx {
	const struct show *show;
	json_t *rows;
};

static void xds_line(void *ctx, const struct xds_entry_info *e)
{
	struct xds_ctx *c = ctx;
	uint64_t now = twheel_now(c->show->conf.wheel);
	json_t *row = json_object();
	set_text(row, "type", e->type->label);
	set_text(row, "name", e->name);
	set_text(row, "state", xds_status_name(e->status));
	set_text(row, "version", e->version);
	json_object_set_new(row, "age_s",
		e->updated_ns ? json_real(seconds(now - e->updated_ns)) : json_null());
	set_text(row, "rejected", e->error_version);
	set_text(row, "error", e->error);
	json_array_append_new(c->rows, row);
}

static json_t *build_xds(const struct show *s)
{
	struct xds_server_info i;
	xds_client_server(s->conf.xds, &i);
	json_t *server = json_object();
	set_text(server, "uri", i.uri);
	set_text(server, "state", xds_server_state_name(i.state));
	json_object_set_new(
		server, "for_s", json_real(seconds(twheel_now(s->conf.wheel) - i.since_ns)));
	set_text(server, "error", i.error);
	set_u64(server, "streams", i.n_streams);
	set_u64(server, "requests", i.n_requests);
	set_u64(server, "responses", i.n_responses);
	set_u64(server, "acks", i.n_acks);
	set_u64(server, "nacks", i.n_nacks);
	set_u64(server, "undecodable", i.n_undecodable);
	set_u64(server, "unknown_type", i.n_unknown_type);
	struct xds_ctx c = {s, json_array()};
	xds_client_each(s->conf.xds, xds_line, &c);
	return json_pack("{so so}", "server", server, "resources", c.rows);
}

// show workers

static json_t *group_json(const struct counter_set *set)
{
	json_t *o = json_object();
	for (uint32_t i = 0; o && i < set->n; i++)
		set_u64(o, set->names[i], counter_read(&set->values[i]));
	return o;
}

static json_t *worker_json(const struct show *s, uint32_t w)
{
	const struct lb_link *link = workers_link(s->conf.workers, w);
	const struct lb_worker_counters *k = &link->counters;
	json_t *o = json_object();
	set_u64(o, "worker", w);
	set_u64(o, "core", (uint64_t)link->core);
	json_object_set_new(
		o, "busy_percent", json_real(100 * workers_busy_share(s->conf.workers, w)));
	set_u64(o, "turns", counter_read(&k->turns));
	set_u64(o, "empty_turns", counter_read(&k->empty_turns));
	json_object_set_new(o, "busy_s", json_real(seconds(counter_read(&k->busy_ns))));
	json_object_set_new(o, "idle_s", json_real(seconds(counter_read(&k->idle_ns))));
	json_object_set_new(
		o, "longest_turn_us", json_real((double)counter_read(&k->longest_turn_ns) / 1e3));
	set_u64(o, "snapshot", counter_read(&k->snapshot_version));
	set_u64(o, "client_connections", counter_read(&k->client_connections));
	set_u64(o, "requests", counter_read(&k->requests));
	uint64_t ended[LB_N_CAUSES];
	for (int i = 0; i < LB_N_CAUSES; i++)
		ended[i] = counter_read(&k->ended[i]);
	json_object_set_new(o, "ended", causes_json(ended));
	for (uint32_t g = 0; g < link->n_groups; g++)
		json_object_set_new(o, link->groups[g].name, group_json(&link->groups[g].set));
	return o;
}

static json_t *build_workers(const struct show *s)
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

static json_t *build_help(const struct show *);

static const struct command commands[] = {
	{"help", "this list", build_help, NULL},
	{"show info", "version, state, frontends, xDS server", build_info, NULL},
	{"show stat", "frontends, clusters and endpoints with counters, as HAProxy's CSV",
		build_stat, stat_columns},
	{"show clusters", "clusters and their endpoints: state, requests, last error",
		build_clusters, NULL},
	{"show xds", "the xDS server and every resource: state, version, age, error", build_xds,
		NULL},
	{"show workers", "each worker: load, requests by ending, counters of every layer",
		build_workers, NULL},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static json_t *build_help(const struct show *s)
{
	json_t *rows = json_array();
	for (size_t i = 0; rows && i < N_COMMANDS; i++)
		json_array_append_new(rows, json_pack("{ss ss}", "command", commands[i].name,
						    "help", commands[i].help));
	return rows;
}

// Splits "show  stat json " into "show stat" and whether JSON was asked for.
static bool take_words(const char *line, char *command, size_t room)
{
	char copy[STATS_MAX_COMMAND + 1];
	char *save = NULL;
	snprintf(copy, sizeof(copy), "%s", line);
	command[0] = 0;
	bool json = false;
	for (char *word = strtok_r(copy, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
		size_t len = strlen(command);
		if (json) // "json" was not the last word
			snprintf(command + len, room - len, " json");
		json = strcmp(word, "json") == 0;
		len = strlen(command);
		if (!json)
			snprintf(command + len, room - len, "%s%s", len ? " " : "", word);
	}
	return json;
}

static char *answer_json(json_t *tree)
{
	json_t *whole = json_pack("{si sO}", "schema_version", STATS_SCHEMA_VERSION, "data", tree);
	char *text = whole ? render_json(whole) : NULL;
	json_decref(whole);
	return text;
}

char *show_answer(void *ctx, const char *line)
{
	const struct show *s = ctx;
	char name[STATS_MAX_COMMAND + 1];
	bool json = take_words(line, name, sizeof(name));
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (strcmp(name, commands[i].name) != 0)
			continue;
		json_t *tree = commands[i].build(s);
		if (!tree)
			return NULL;
		char *text = json              ? answer_json(tree)
		             : commands[i].csv ? render_csv(tree, commands[i].csv)
		                               : render_text(tree);
		json_decref(tree);
		return text;
	}
	char *text = NULL;
	if (asprintf(&text, STATS_ERROR "unknown command '%s', try help\n", name) < 0)
		return NULL;
	return text;
}
