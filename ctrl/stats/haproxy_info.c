// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/haproxy_info.h"

#include "ctrl/assemble/drains.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/base/printout.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/haproxy_ids.h"
#include "ctrl/stats/show_inside.h"
#include "lb/base/twheel.h"
#include "lb/pick/link.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// X(place in HAProxy's list as of its version 2.6, name, tags, type); what it has besides is left
// out, and so is told by nobody.
#define INFO_FIELDS(X)                                                                             \
	X(0, Name, "POS", "str")                                                                   \
	X(1, Version, "POS", "str")                                                                \
	X(2, Release_date, "POS", "str")                                                           \
	X(3, Nbthread, "CGS", "u32")                                                               \
	X(4, Nbproc, "CGS", "u32")                                                                 \
	X(5, Process_num, "KGP", "u32")                                                            \
	X(6, Pid, "SGP", "u32")                                                                    \
	X(7, Uptime, "MDP", "str")                                                                 \
	X(8, Uptime_sec, "MDP", "u32")                                                             \
	X(15, Maxconn, "CLP", "u32")                                                               \
	X(16, Hard_maxconn, "CLP", "u32")                                                          \
	X(17, CurrConns, "MGP", "u32")                                                             \
	X(18, CumConns, "MCP", "u64")                                                              \
	X(19, CumReq, "MCP", "u64")                                                                \
	X(23, Maxpipes, "CLP", "u32")                                                              \
	X(24, PipesUsed, "MGP", "u32")                                                             \
	X(25, PipesFree, "MGP", "u32")                                                             \
	X(26, ConnRate, "MRP", "u32")                                                              \
	X(29, SessRate, "MRP", "u32")                                                              \
	X(47, Tasks, "MGP", "u32")                                                                 \
	X(48, Run_queue, "MGP", "u32")                                                             \
	X(49, Idle_pct, "MaP", "u32")                                                              \
	X(50, node, "COS", "str")                                                                  \
	X(52, Stopping, "MGP", "u32")                                                              \
	X(55, Listeners, "MGP", "u32")                                                             \
	X(70, Start_time_sec, "MDP", "u32")

#define X(place, name, tags, type) INFO_##name = place,
enum { INFO_FIELDS(X) N_FIELDS };
#undef X
#define X(place, name, tags, type) [place] = {#name, tags, type},
static const struct haproxy_field fields[N_FIELDS] = {INFO_FIELDS(X)};
#undef X

uint64_t haproxy_info_max_clients(const struct show *s)
{
	uint64_t n = 0;
	for (uint32_t w = 0; w < workers_count(s->conf.workers); w++) {
		const struct pool_list *l = &workers_link(s->conf.workers, w)->pools;
		for (uint32_t i = 0; i < l->n; i++)
			if (strcmp(l->views[i].name, "clients") == 0)
				n += l->views[i].n_total;
	}
	return n;
}

struct totals {
	uint64_t requests, ended, clients, connections;
	double busy; // of all workers; 1 = one of them all the time
};

static struct totals count(const struct show *s)
{
	struct totals t = {0};
	for (uint32_t w = 0; w < workers_count(s->conf.workers); w++) {
		const struct lb_worker_counters *k = &workers_link(s->conf.workers, w)->counters;
		for (int i = 0; i < LB_N_CAUSES; i++)
			t.ended += counter_read(&k->ended[i]);
		t.requests += counter_read(&k->requests);
		t.clients += counter_read(&k->client_connections);
		t.busy += workers_busy_share(s->conf.workers, w);
		for (uint32_t i = 0; i < s->conf.config->n_frontends; i++)
			t.connections += counter_read(&k->frontend_connections[i]);
	}
	return t;
}

static void set_process(const struct show *s, struct haproxy_value *v)
{
	uint32_t n_workers = workers_count(s->conf.workers);
	haproxy_set_text(&v[INFO_Name], "Shunt");
	haproxy_set_text(&v[INFO_Version], SHUNT_VERSION);
	haproxy_set_text(&v[INFO_Release_date], "unknown"); // readers want a word there
	haproxy_set(&v[INFO_Nbthread], n_workers);
	haproxy_set(&v[INFO_Nbproc], 1);
	haproxy_set(&v[INFO_Process_num], 1);
	haproxy_set(&v[INFO_Pid], (uint64_t)getpid());
	haproxy_set(&v[INFO_Start_time_sec], (uint64_t)s->conf.started_s);
	haproxy_set(&v[INFO_Maxconn], haproxy_info_max_clients(s));
	haproxy_set(&v[INFO_Hard_maxconn], haproxy_info_max_clients(s));
	haproxy_set(&v[INFO_Listeners], config_n_serving(s->conf.config));
	haproxy_set(&v[INFO_Stopping], strcmp(s->state, "draining") == 0);
	// There are no pipes, but readers want to know of them.
	haproxy_set(&v[INFO_Maxpipes], 0);
	haproxy_set(&v[INFO_PipesUsed], 0);
	haproxy_set(&v[INFO_PipesFree], 0);
	haproxy_set(&v[INFO_Run_queue], 0);
}

static void set_counts(const struct show *s, struct haproxy_ids *ids, struct haproxy_value *v)
{
	const struct totals t = count(s);
	uint32_t n_workers = workers_count(s->conf.workers);
	uint64_t listing = haproxy_ids_begin(ids);
	struct haproxy_id *id = haproxy_ids_take(ids, listing, "process", "");
	haproxy_reading_take(&id->events, t.connections, 0, twheel_now(s->conf.wheel));
	haproxy_set(&v[INFO_CurrConns], t.clients);
	haproxy_set(&v[INFO_CumConns], t.connections);
	haproxy_set(&v[INFO_CumReq], t.requests);
	haproxy_set(&v[INFO_Tasks], t.requests > t.ended ? t.requests - t.ended : 0);
	haproxy_set(&v[INFO_ConnRate], id->events.per_s);
	haproxy_set(&v[INFO_SessRate], id->events.per_s);
	double idle = n_workers ? 1 - t.busy / n_workers : 1;
	haproxy_set(&v[INFO_Idle_pct], idle > 0 ? (uint64_t)(100 * idle + 0.5) : 0);
	haproxy_ids_end(ids, listing, UINT32_MAX);
}

static void print_uptime(uint64_t s, char *text, size_t size)
{
	snprintf(text, size, "%" PRIu64 "d %" PRIu64 "h%02" PRIu64 "m%02" PRIu64 "s", s / 86400,
		s / 3600 % 24, s / 60 % 60, s % 60);
}

char *haproxy_info(const struct show *s, struct haproxy_ids *ids, enum haproxy_form form)
{
	struct haproxy_value values[N_FIELDS] = {0};
	char uptime[64], node[65] = "";
	uint64_t uptime_s = (twheel_now(s->conf.wheel) - s->started_ns) / NS_PER_SECOND;
	print_uptime(uptime_s, uptime, sizeof(uptime));
	gethostname(node, sizeof(node) - 1);
	set_process(s, values);
	set_counts(s, ids, values);
	haproxy_set_text(&values[INFO_Uptime], uptime);
	haproxy_set(&values[INFO_Uptime_sec], uptime_s);
	haproxy_set_text(&values[INFO_node], node[0] ? node : "unknown");
	struct printout p;
	FILE *out = printout_begin(&p);
	if (!out)
		return NULL;
	const struct haproxy_row row = {fields, values, N_FIELDS, NULL, 0, 0};
	haproxy_row_print(out, &row, form);
	if (form == HAPROXY_JSON)
		fputc('\n', out);
	return printout_end(&p);
}
