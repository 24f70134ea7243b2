// SPDX-License-Identifier: Apache-2.0
// Metrics of the process: workers, layers of the data plane, ports, configuration, xDS.
#include "ctrl/access_log/access_log.h"
#include "ctrl/assemble/vhost_numbers.h"
#include "ctrl/base/log_file.h"
#include "ctrl/base/log_out.h"
#include "ctrl/base/show_port.h"
#include "ctrl/conf/config.h"
#include "ctrl/metrics/scrape_inside.h"
#include "ctrl/trace/exporter.h"
#include "ctrl/xds/keeper.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <stdio.h>
#include <string.h>

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_SECOND;
}

static double age_s(const struct scrape *s, uint64_t since_ns)
{
	uint64_t now_ns = twheel_now(s->conf.wheel);
	return now_ns > since_ns ? seconds(now_ns - since_ns) : 0;
}

static void tell_build(struct scrape *s, enum metric_id id, uint32_t i)
{
	scrape_tell(s, id, 1, LABELS(SHUNT_VERSION));
}

static void tell_start(struct scrape *s, enum metric_id id, uint32_t i)
{
	scrape_tell(s, id, s->conf.started_s, NULL);
}

static void tell_log(struct scrape *s, enum metric_id id, uint32_t i)
{
	scrape_tell(s, id, (double)log_out_lost(), NULL);
}

static void tell_ready(struct scrape *s, enum metric_id id, uint32_t i)
{
	scrape_tell(s, id, s->conf.is_ready(s->conf.ctx), NULL);
}

static void tell_left_out(struct scrape *s, enum metric_id id, uint32_t i)
{
	uint32_t n = config_n_serving(s->conf.config), most = SCRAPE_MAX_FRONTEND_TIMES;
	if (s->endpoints_only) {
		scrape_tell(s, id, s->n_endpoints_left_out, LABELS("endpoints"));
		return;
	}
	scrape_tell(s, id, s->n_clusters_left_out, LABELS("cluster_durations"));
	scrape_tell(s, id, n > most ? n - most : 0, LABELS("frontend_durations"));
	scrape_tell(s, id, vhost_numbers_left_out(assembler_vhost_numbers(s->conf.assembler)),
		LABELS("virtual_hosts"));
}

// Workers.

static double worker_number(const struct scrape *s, enum metric_id id, uint32_t w)
{
	const struct lb_worker_counters *k = &workers_link(s->conf.workers, w)->counters;
	uint64_t beat_ns = counter_read(&k->beat_ns);
	switch (id) {
	case METRIC_ID_WORKER_UP:
		return !workers_stalls(beat_ns, twheel_now(s->conf.wheel));
	case METRIC_ID_WORKER_BUSY:
		return seconds(counter_read(&k->busy_ns));
	case METRIC_ID_WORKER_IDLE:
		return seconds(counter_read(&k->idle_ns));
	case METRIC_ID_WORKER_TURNS:
		return (double)counter_read(&k->turns);
	case METRIC_ID_WORKER_LONG_TURNS:
		return (double)counter_read(&k->long_turns);
	case METRIC_ID_WORKER_LONGEST:
		return seconds(counter_read(&k->longest_turn_ns));
	case METRIC_ID_WORKER_SNAPSHOT:
		return (double)counter_read(&k->snapshot_version);
	default: // METRIC_ID_WORKER_CLIENTS
		return (double)counter_read(&k->client_connections);
	}
}

static void tell_worker(struct scrape *s, enum metric_id id, uint32_t w)
{
	char worker[12];
	snprintf(worker, sizeof(worker), "%u", w);
	scrape_tell(s, id, worker_number(s, id, w), LABELS(worker));
}

static void tell_pools(struct scrape *s, enum metric_id id, uint32_t w)
{
	const struct pool_list *l = &workers_link(s->conf.workers, w)->pools;
	char worker[12];
	snprintf(worker, sizeof(worker), "%u", w);
	for (uint32_t i = 0; i < l->n; i++) {
		const struct pool_view *v = &l->views[i];
		uint32_t n = id == METRIC_ID_POOL_OBJECTS ? v->n_total
		             : id == METRIC_ID_POOL_USED  ? gauge_read(v->n_used)
		                                          : gauge_read(v->n_peak);
		scrape_tell(s, id, n, LABELS(worker, v->name));
	}
}

// The layers' own counters, by their names there.

// Those that have a metric or a value of a label of their own.
static const struct own {
	enum metric_id id;
	const char *group, *name, *label; // label: NULL = the metric has none
} owns[] = {
	{METRIC_ID_RETRIES, "proxy", "retries", "policy"},
	{METRIC_ID_RETRIES, "proxy", "transparent_retries", "transparent"},
	{METRIC_ID_RETRIES, "proxy", "idempotent_retries", "idempotent"},
	{METRIC_ID_RETRIES_REFUSED, "proxy", "retries_exhausted", "attempts"},
	{METRIC_ID_RETRIES_REFUSED, "proxy", "retries_forbidden", "pushback"},
	{METRIC_ID_RETRIES_REFUSED, "proxy", "retries_abandoned", "body"},
	{METRIC_ID_RETRIES_REFUSED, "proxy", "retries_overflow", "queue"},
	{METRIC_ID_RETRIES_REFUSED, "proxy", "retries_over_budget", "budget"},
	{METRIC_ID_QUEUED, "proxy", "queued_for_pick", "endpoint"},
	{METRIC_ID_QUEUED, "proxy", "queued_for_stream", "stream"},
	{METRIC_ID_SESSIONS, "proxy", "sessions_kept", "kept"},
	{METRIC_ID_SESSIONS, "proxy", "sessions_set", "set"},
	{METRIC_ID_ACCESS, "proxy", "rbac_allowed", "allowed"},
	{METRIC_ID_ACCESS, "proxy", "rbac_denied", "denied"},
	{METRIC_ID_ACCESS, "proxy", "rbac_logged", "logged"},
	{METRIC_ID_ACCESS, "proxy", "rbac_shadow_allowed", "shadow_allowed"},
	{METRIC_ID_ACCESS, "proxy", "rbac_shadow_denied", "shadow_denied"},
	{METRIC_ID_CONNECTS, "proxy", "connects", NULL},
	{METRIC_ID_CONNECT_FAILURES, "proxy", "connect_failures", NULL},
	{METRIC_ID_TCP_SENT, "tcp", "segments_out", NULL},
	{METRIC_ID_TCP_RECEIVED, "tcp", "segments_in", NULL},
	{METRIC_ID_TCP_RESENT, "tcp", "retransmits", NULL},
	{METRIC_ID_TCP_SENT_BYTES, "tcp", "bytes_out", NULL},
	{METRIC_ID_TCP_RECEIVED_BYTES, "tcp", "bytes_in", NULL},
};
#define N_OWNS (sizeof(owns) / sizeof(owns[0]))

static void tell_own(struct scrape *s, enum metric_id id, uint32_t unused)
{
	for (size_t i = 0; i < N_OWNS; i++)
		if (owns[i].id == id)
			scrape_tell(s, id,
				(double)workers_counter(
					s->conf.workers, owns[i].group, owns[i].name),
				LABELS(owns[i].label));
}

static void tell_round_trips(struct scrape *s, enum metric_id id, uint32_t unused)
{
	struct histogram clients = {0}, backends = {0};
	for (uint32_t w = 0; w < workers_count(s->conf.workers); w++) {
		const struct lb_link *l = workers_link(s->conf.workers, w);
		histogram_gather(&clients, &l->client_round_trips);
		histogram_gather(&backends, &l->backend_round_trips);
	}
	scrape_tell_histogram(s, id, &clients, "clients");
	scrape_tell_histogram(s, id, &backends, "backends");
}

// What goes up and down is no event, and is told elsewhere.
static bool is_gauge(const char *group, const char *name)
{
	static const struct {
		const char *group, *name;
	} gauges[] = {{"proxy", "requests"}, {"proxy", "requests_waiting"},
		{"proxy", "requests_paused"}, {"proxy", "clients"}, {"proxy", "upstreams"},
		{"proxy", "spare_places"}, {"net", "gateways_silent"}};
	for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
		if (strcmp(group, gauges[i].group) == 0 && strcmp(name, gauges[i].name) == 0)
			return true;
	return false;
}

// All workers have the same groups and counters in them.
static uint64_t sum_at(const struct scrape *s, uint32_t group, uint32_t counter)
{
	uint64_t sum = 0;
	for (uint32_t w = 0; w < workers_count(s->conf.workers); w++)
		sum += counter_read(
			&workers_link(s->conf.workers, w)->groups[group].set.values[counter]);
	return sum;
}

static void tell_events(struct scrape *s, enum metric_id id, uint32_t unused)
{
	const struct lb_link *first = workers_link(s->conf.workers, 0);
	for (uint32_t g = 0; g < first->n_groups; g++) {
		const struct lb_counter_group *group = &first->groups[g];
		if (strncmp(group->name, "port", 4) == 0)
			continue;
		for (uint32_t i = 0; i < group->set.n; i++)
			if (!is_gauge(group->name, group->set.names[i]))
				scrape_tell(s, id, (double)sum_at(s, g, i),
					LABELS(group->name, group->set.names[i]));
	}
}

static void tell_access_log(struct scrape *s, enum metric_id id, uint32_t unused)
{
	if (!s->conf.access_log)
		return;
	const struct access_log_numbers n = access_log_numbers(s->conf.access_log);
	if (id == METRIC_ID_ACCESS_LINES) {
		scrape_tell(s, id, (double)n.n_lines, NULL);
		return;
	}
	scrape_tell(s, id, (double)n.n_ring, LABELS("ring"));
	scrape_tell(s, id, (double)n.n_cut, LABELS("reader"));
	scrape_tell(s, id, (double)n.n_failed, LABELS("service"));
}

static void tell_unopened(struct scrape *s, enum metric_id id, uint32_t unused)
{
	scrape_tell(s, id, (double)log_file_numbers().n_unopened, LABELS("daemon"));
	if (s->conf.access_log)
		scrape_tell(s, id, (double)access_log_numbers(s->conf.access_log).n_unopened,
			LABELS("access"));
}

static void tell_traces(struct scrape *s, enum metric_id id, uint32_t unused)
{
	if (!s->conf.traces)
		return;
	const struct trace_numbers n = trace_exporter_numbers(s->conf.traces);
	if (id == METRIC_ID_TRACE_SPANS) {
		scrape_tell(s, id, (double)n.n_sent, NULL);
		return;
	}
	scrape_tell(s, id, (double)n.n_ring, LABELS("ring"));
	scrape_tell(s, id, (double)n.n_queue, LABELS("queue"));
	scrape_tell(s, id, (double)n.n_refused, LABELS("collector"));
}

// Ports.

static void tell_port(struct scrape *s, enum metric_id id, uint32_t i)
{
	const struct show_port *p = &s->conf.ports[i];
	char port[12];
	snprintf(port, sizeof(port), "%u", i);
	double value = id == METRIC_ID_PORT_UP ? p->link == SHOW_LINK_UP : (double)p->n_link_downs;
	scrape_tell(s, id, value, LABELS(port, s->conf.config->ports[i].device));
}

static void tell_members(struct scrape *s, enum metric_id id, uint32_t i)
{
	const struct config_bond *bond = s->conf.config->ports[i].bond;
	const struct show_port *p = &s->conf.ports[i];
	char port[12];
	snprintf(port, sizeof(port), "%u", i);
	for (uint32_t k = 0; k < p->n_members; k++) {
		const struct show_member *m = &p->members[k];
		double value = id == METRIC_ID_PORT_MEMBER_UP ? m->carries || m->stands_by
		                                              : (double)m->n_downs;
		scrape_tell(s, id, value, LABELS(port, bond->members[k]));
	}
}

static void tell_gateways(struct scrape *s, enum metric_id id, uint32_t i)
{
	const struct config_port *c = &s->conf.config->ports[i];
	char port[12], text[IP_PORT_TEXT_MAX];
	snprintf(port, sizeof(port), "%u", i);
	for (unsigned k = 0; k < c->n_gateway_ips; k++) {
		const struct lb_gateway *g = &s->conf.ports[i].gateways[k];
		double value = id == METRIC_ID_GATEWAY_UP ? g->state == LB_GATEWAY_UP : g->n_downs;
		if (g->state != LB_GATEWAY_UNKNOWN)
			scrape_tell(s, id, value, LABELS(port, ip_print(&c->gateway_ips[k], text)));
	}
}

static void tell_port_events(struct scrape *s, enum metric_id id, uint32_t i)
{
	char group[16];
	snprintf(group, sizeof(group), "port%u", i);
	const struct lb_link *first = workers_link(s->conf.workers, 0);
	for (uint32_t g = 0; g < first->n_groups; g++) {
		const struct counter_set *set = &first->groups[g].set;
		if (strcmp(first->groups[g].name, group) != 0)
			continue;
		for (uint32_t c = 0; c < set->n; c++)
			scrape_tell(s, id, (double)sum_at(s, g, c),
				LABELS(group + 4, s->conf.config->ports[i].device, set->names[c]));
	}
}

// Configuration and xDS.

static void tell_snapshot(struct scrape *s, enum metric_id id, uint32_t i)
{
	uint64_t published_ns = assembler_published_ns(s->conf.assembler);
	double version = (double)assembler_snapshot_version(s->conf.assembler);
	if (id == METRIC_ID_SNAPSHOT)
		scrape_tell(s, id, version, NULL);
	else if (published_ns)
		scrape_tell(s, id, age_s(s, published_ns), NULL);
}

static void tell_xds_ages(struct scrape *s, enum metric_id id, uint32_t i)
{
	const uint64_t *at = id == METRIC_ID_XDS_AGE ? s->xds->newest_ns : s->xds->oldest_ns;
	for (uint32_t t = 0; t < RES_N_TYPES; t++)
		if (at[t])
			scrape_tell(s, id, age_s(s, at[t]), LABELS(xds_note_type_name(t)));
}

static void tell_xds_server(struct scrape *s, enum metric_id id, uint32_t unused)
{
	for (uint32_t i = 0; i < s->xds->n_servers; i++) {
		const struct xds_note_server *server = &s->xds->servers[i];
		const struct xds_server_info *info = &server->info;
		double value = id == METRIC_ID_XDS_ACKS        ? (double)info->n_acks
		               : id == METRIC_ID_XDS_NACKS     ? (double)info->n_nacks
		               : id == METRIC_ID_XDS_CONNECTED ? (double)info->connected
		               : id == METRIC_ID_XDS_FAILURES  ? (double)info->n_failures
		               : id == METRIC_ID_XDS_STALE     ? (double)info->n_stale
		                                               : age_s(s, info->since_ns);
		scrape_tell(s, id, value, LABELS(server->uri, xds_server_state_name(info->state)));
	}
}

static void tell_xds_state(struct scrape *s, enum metric_id id, uint32_t unused)
{
	struct xds_keeper_info info;
	if (!s->conf.keeper)
		return;
	xds_keeper_info(s->conf.keeper, &info);
	if (id == METRIC_ID_XDS_KEPT) {
		scrape_tell(s, id, (double)info.n_written, LABELS("written"));
		scrape_tell(s, id, (double)info.n_failed, LABELS("failed"));
		scrape_tell(s, id, (double)info.n_too_large, LABELS("too_large"));
	} else if (id == METRIC_ID_XDS_KEPT_FAILING) {
		scrape_tell(s, id, info.error[0] != '\0', NULL);
	} else if (info.written_ns) {
		scrape_tell(s, id, age_s(s, info.written_ns), NULL);
	}
}

static void tell_xds_updates(struct scrape *s, enum metric_id id, uint32_t unused)
{
	for (uint32_t i = 0; i < s->xds->n_servers; i++) {
		const struct xds_note_server *server = &s->xds->servers[i];
		for (uint32_t t = 0; t < RES_N_TYPES; t++) {
			const struct xds_server_updates *u = &server->info.updates[t];
			uint64_t n = id == METRIC_ID_XDS_VALID ? u->n_valid : u->n_invalid;
			scrape_tell(s, id, (double)n, LABELS(server->uri, xds_note_type_name(t)));
		}
	}
}

static void tell_xds_resources(struct scrape *s, enum metric_id id, uint32_t unused)
{
	for (const struct xds_note_authority *a = s->xds->authorities; a; a = a->next)
		for (uint32_t t = 0; t < RES_N_TYPES; t++)
			for (int state = 0; state < XDS_N_CACHE_STATES; state++)
				if (a->n[t][state])
					scrape_tell(s, id, (double)a->n[t][state],
						LABELS(a->name ? a->name : "#old",
							xds_cache_state_name(
								(enum xds_cache_state)state),
							xds_note_type_name(t)));
}

#define ONCE(id, tell)                                                                             \
	{                                                                                          \
		METRIC_ID_##id, scrape_over_once, tell                                             \
	}
#define OF_WORKERS(id, tell)                                                                       \
	{                                                                                          \
		METRIC_ID_##id, scrape_over_workers, tell                                          \
	}
#define OF_PORTS(id, tell)                                                                         \
	{                                                                                          \
		METRIC_ID_##id, scrape_over_ports, tell                                            \
	}

const struct scrape_family scrape_process[] = {
	ONCE(BUILD, tell_build),
	ONCE(START_TIME, tell_start),
	ONCE(LOG_LOST, tell_log),
	ONCE(READY, tell_ready),
	ONCE(LEFT_OUT, tell_left_out),
	OF_WORKERS(WORKER_UP, tell_worker),
	OF_WORKERS(WORKER_BUSY, tell_worker),
	OF_WORKERS(WORKER_IDLE, tell_worker),
	OF_WORKERS(WORKER_TURNS, tell_worker),
	OF_WORKERS(WORKER_LONG_TURNS, tell_worker),
	OF_WORKERS(WORKER_LONGEST, tell_worker),
	OF_WORKERS(WORKER_SNAPSHOT, tell_worker),
	OF_WORKERS(WORKER_CLIENTS, tell_worker),
	OF_WORKERS(POOL_OBJECTS, tell_pools),
	OF_WORKERS(POOL_USED, tell_pools),
	OF_WORKERS(POOL_PEAK, tell_pools),
	ONCE(RETRIES, tell_own),
	ONCE(RETRIES_REFUSED, tell_own),
	ONCE(QUEUED, tell_own),
	ONCE(SESSIONS, tell_own),
	ONCE(ACCESS, tell_own),
	ONCE(CONNECTS, tell_own),
	ONCE(CONNECT_FAILURES, tell_own),
	ONCE(TCP_SENT, tell_own),
	ONCE(TCP_RECEIVED, tell_own),
	ONCE(TCP_RESENT, tell_own),
	ONCE(TCP_SENT_BYTES, tell_own),
	ONCE(TCP_RECEIVED_BYTES, tell_own),
	ONCE(ROUND_TRIPS, tell_round_trips),
	ONCE(EVENTS, tell_events),
	ONCE(ACCESS_LINES, tell_access_log),
	ONCE(ACCESS_DROPPED, tell_access_log),
	ONCE(LOG_UNOPENED, tell_unopened),
	ONCE(TRACE_SPANS, tell_traces),
	ONCE(TRACE_LOST, tell_traces),
	OF_PORTS(PORT_UP, tell_port),
	OF_PORTS(PORT_LINK_DOWNS, tell_port),
	OF_PORTS(PORT_COUNTERS_OF, tell_port_events),
	OF_PORTS(PORT_MEMBER_UP, tell_members),
	OF_PORTS(PORT_MEMBER_DOWNS, tell_members),
	OF_PORTS(GATEWAY_UP, tell_gateways),
	OF_PORTS(GATEWAY_DOWNS, tell_gateways),
	ONCE(SNAPSHOT, tell_snapshot),
	ONCE(SNAPSHOT_AGE, tell_snapshot),
	ONCE(XDS_AGE, tell_xds_ages),
	ONCE(XDS_OLDEST, tell_xds_ages),
	ONCE(XDS_ACKS, tell_xds_server),
	ONCE(XDS_NACKS, tell_xds_server),
	ONCE(XDS_SINCE, tell_xds_server),
	ONCE(XDS_STALE, tell_xds_server),
	ONCE(XDS_KEPT, tell_xds_state),
	ONCE(XDS_KEPT_FAILING, tell_xds_state),
	ONCE(XDS_KEPT_AGE, tell_xds_state),
	ONCE(XDS_CONNECTED, tell_xds_server),
	ONCE(XDS_FAILURES, tell_xds_server),
	ONCE(XDS_VALID, tell_xds_updates),
	ONCE(XDS_INVALID, tell_xds_updates),
	ONCE(XDS_RESOURCES, tell_xds_resources),
};
const uint32_t scrape_n_process = sizeof(scrape_process) / sizeof(scrape_process[0]);
