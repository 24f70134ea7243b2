// SPDX-License-Identifier: Apache-2.0
// `show info`, `show workers` and `clear counters`.
#include "ctrl/access_log/access_log.h"
#include "ctrl/access_log/place.h"
#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/drains.h"
#include "ctrl/assemble/load_report.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/base/log_file.h"
#include "ctrl/base/log_out.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "ctrl/takeover/takeover.h"
#include "ctrl/xds/federation.h"
#include "lb/base/twheel.h"
#include "lb/pick/link.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static void set_unopened(json_t *o, const char *key, const char *error)
{
	char text[160];
	snprintf(text, sizeof(text), "reopening: %.128s", error);
	show_set_text(o, key, text);
}

static void set_log(json_t *o)
{
	int error = log_file_numbers().error;
	show_set_u64(o, "log_lines_lost", log_out_lost());
	if (error)
		set_unopened(o, "log_error", strerror(error));
	else
		show_set_text(o, "log_error", "");
}

static void set_access_log(json_t *o, const struct access_log *log)
{
	const struct access_log_numbers n = access_log_numbers(log);
	show_set_u64(o, "access_log_written", n.n_lines);
	show_set_u64(o, "access_log_dropped", n.n_ring + n.n_cut + n.n_failed);
	if (n.error || !n.reopen_error)
		show_set_text(o, "access_log_error", n.error ? access_place_error(n.error) : "");
	else
		set_unopened(o, "access_log_error", access_place_error(n.reopen_error));
}

static json_t *other_json(pid_t pid, const char *version)
{
	if (!pid)
		return json_null();
	json_t *o = json_object();
	show_set_u64(o, "pid", (uint64_t)pid);
	show_set_text(o, "version", version);
	return o;
}

static void set_takeover(json_t *o, const struct takeover *takeover)
{
	struct takeover_info i;
	takeover_info(takeover, &i);
	show_set_text(o, "role", i.role);
	show_set_u64(o, "generation", i.generation);
	show_set_u64(o, "processes_behind", i.n_behind);
	json_object_set_new(o, "older", other_json(i.older, i.older_version));
	json_object_set_new(o, "newer", other_json(i.newer, i.newer_version));
	show_set_text(o, "takeover_lacks", i.lacks);
	json_object_set_new(o, "takeover_gap_ms", json_real((double)i.gap_ns / 1e6));
	show_set_u64(o, "takeovers_failed", i.n_failed);
	show_set_u64(o, "takeovers_refused", i.n_refused);
}

// What an operator does with it goes before what becomes of it.
void show_frontend_state(const struct show *s, uint32_t i, struct show_frontend_state *ret)
{
	const char *error = assembler_frontend_error(s->conf.assembler, i);
	drains_look(s->conf.drains, i, &ret->drain);
	show_frontend_down(s, i, ret->down, sizeof(ret->down));
	ret->error = ret->down[0] ? ret->down : error;
	if (ret->drain.phase != DRAIN_NONE)
		ret->name = drain_phase_name(ret->drain.phase);
	else
		ret->name = ret->down[0] ? "down" : error[0] ? "failing" : "serving";
}

static json_t *frontend_json(const struct show *s, uint32_t i)
{
	const struct config_frontend *f = &s->conf.config->frontends[i];
	struct show_frontend_state state;
	show_frontend_state(s, i, &state);
	json_t *row = json_object();
	show_set_text(row, "name", f->name);
	show_set_text(row, "address", f->address);
	show_set_u64(row, "port", f->port);
	show_set_text(row, "target", f->target ? f->target : f->listener ? f->listener : "");
	show_set_text(row, "state", state.name);
	bool drains = state.drain.phase != DRAIN_NONE;
	json_object_set_new(row, "drain_left_s",
		drains ? json_real(show_seconds(state.drain.left_ns)) : json_null());
	json_object_set_new(row, "clients_left",
		drains ? json_integer((json_int_t)state.drain.n_clients) : json_null());
	const char *waiting = assembler_frontend_waiting(s->conf.assembler, i);
	show_set_text(row, "waiting", waiting[0] ? waiting : s->conf.waiting(s->conf.ctx, i));
	const char *refusal = assembler_frontend_refusal(s->conf.assembler, i);
	show_set_text(row, "refused", refusal[0] ? refusal : s->conf.refused(s->conf.ctx, i));
	show_set_text(row, "error", state.error);
	show_set_text(row, "tls", !f->tls ? "" : f->tls->ca ? "mtls" : "tls");
	show_set_text(row, "tls_error", assembler_frontend_tls_error(s->conf.assembler, i));
	return row;
}

const char *show_state(const struct show *s)
{
	return drains_any(s->conf.drains) ? "draining" : s->state;
}

json_t *show_info(const struct show *s, struct show_args *args)
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
	show_set_text(o, "state", show_state(s));
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
	set_log(o);
	if (s->ready_file)
		show_set_text(
			o, "ready_file_error", s->ready_file_error ? s->ready_file_error : "");
	show_set_u64(o, "stats_connections", s->sockets.n_open);
	show_set_u64(o, "stats_connections_cut", s->sockets.n_cut);
	show_set_u64(o, "status_connections", s->status_port.n_open);
	show_set_u64(o, "status_connections_cut", s->status_port.n_cut);
	show_set_u64(o, "status_connections_refused", s->status_port.n_refused);
	show_set_text(o, "xds_server", server.uri);
	show_set_text(o, "xds_state", xds_server_state_name(server.state));
	show_set_text(o, "xds_error", server.error);
	if (s->conf.takeover)
		set_takeover(o, s->conf.takeover);
	if (s->conf.loads)
		set_loads(o, s->conf.loads);
	if (s->conf.access_log)
		set_access_log(o, s->conf.access_log);
	json_t *frontends = json_array();
	for (uint32_t i = 0; i < s->conf.config->n_frontends; i++)
		if (config_serves(s->conf.config, i))
			json_array_append_new(frontends, frontend_json(s, i));
	json_object_set_new(o, "frontends", frontends);
	return o;
}

double show_age_s(const struct show *s, uint64_t at_ns)
{
	uint64_t now_ns = twheel_now(s->conf.wheel);
	return now_ns > at_ns ? show_seconds(now_ns - at_ns) : 0;
}

// show workers, clear counters

json_t *show_maxima_s(const struct show *s)
{
	uint64_t since_ns = workers_maxima_since(s->conf.workers);
	uint64_t began_ns = since_ns ? since_ns : s->started_ns;
	return json_real(show_seconds(twheel_now(s->conf.wheel) - began_ns));
}

json_t *show_clear_counters(const struct show *s, struct show_args *args)
{
	workers_clear_maxima(s->conf.workers, twheel_now(s->conf.wheel));
	return json_pack("{ss}", "cleared", "maxima");
}

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
	json_object_set_new(o, "maxima_s", show_maxima_s(s));
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

json_t *show_workers(const struct show *s, struct show_args *args)
{
	json_t *o = json_object();
	for (uint32_t w = 0; o && w < workers_count(s->conf.workers); w++) {
		char name[32];
		snprintf(name, sizeof(name), "worker%u", w);
		json_object_set_new(o, name, worker_json(s, w));
	}
	return o;
}
