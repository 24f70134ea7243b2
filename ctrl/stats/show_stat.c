// SPDX-License-Identifier: Apache-2.0
// `show stat` and `show clusters`: the counters of frontends, clusters and endpoints.
#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "lb/pick/link.h"

// Sums over workers.

static uint64_t failures(const struct cluster_totals *t)
{
	uint64_t n = 0;
	for (int i = 0; i < LB_N_CAUSES; i++)
		n += i == LB_CAUSE_OK ? 0 : t->ended[i];
	return n;
}

// show stat: rows like HAProxy's, for people's habits; its tools have haproxy_stat.c.

const char *const show_stat_columns[] = {"pxname", "svname", "qcur", "qmax", "scur", "smax", "slim",
	"stot", "bin", "bout", "dreq", "dresp", "ereq", "econ", "eresp", "wretr", "wredis",
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
	show_set_text(row, "pxname", proxy);
	show_set_text(row, "svname", server);
	show_set_text(row, "status", status);
	show_set_u64(row, "type", (uint64_t)type);
	show_set_u64(row, "pid", 1);
	json_array_append_new(c->rows, row);
	return row;
}

static void stat_frontends(struct stat_ctx *c)
{
	const struct show *s = c->show;
	for (uint32_t i = 0; i < s->conf.config->n_frontends; i++) {
		uint64_t requests = 0, connections = 0;
		if (!config_serves(s->conf.config, i))
			continue;
		for (uint32_t w = 0; w < workers_count(s->conf.workers); w++) {
			const struct lb_worker_counters *k =
				&workers_link(s->conf.workers, w)->counters;
			requests += counter_read(&k->frontend_requests[i]);
			connections += counter_read(&k->frontend_connections[i]);
		}
		char down[256];
		bool is_down = show_frontend_down(s, i, down, sizeof(down))[0] != '\0';
		bool serving = assembler_frontend_error(s->conf.assembler, i)[0] == 0;
		json_t *row = stat_row(c, s->conf.config->frontends[i].name, "FRONTEND",
			STAT_TYPE_FRONTEND,
			is_down   ? "DOWN"
			: serving ? "OPEN"
				  : "STOP");
		show_set_u64(row, "stot", connections);
		show_set_u64(row, "req_tot", requests);
	}
}

static void stat_endpoint(void *ctx, const struct assembler_endpoint_info *e)
{
	struct stat_ctx *c = ctx;
	char address[IP_PORT_TEXT_MAX];
	json_t *row = stat_row(c, c->cluster, ip_port_print(&e->addresses[0], address),
		STAT_TYPE_SERVER, e->is_up ? "UP" : "DOWN");
	show_set_u64(row, "scur", e->totals.active);
	show_set_u64(row, "stot", e->totals.issued);
	show_set_u64(row, "lbtot", e->totals.issued);
	show_set_u64(row, "req_tot", e->totals.issued);
	show_set_u64(row, "ok", e->totals.ok);
	show_set_u64(row, "failed", e->totals.failed);
	show_set_u64(row, "weight", e->weight);
	show_set_u64(row, "act", e->state == LB_READY);
}

static void stat_cluster(void *ctx, const struct assembler_cluster_info *info)
{
	struct stat_ctx *c = ctx;
	const struct cluster_totals *t = &info->totals;
	c->cluster = info->name;
	assembler_each_endpoint(c->show->conf.assembler, info->name, stat_endpoint, c);
	json_t *row = stat_row(c, info->name, "BACKEND", STAT_TYPE_BACKEND,
		info->state == LB_TRANSIENT_FAILURE ? "DOWN" : "UP");
	show_set_u64(row, "qcur", t->queued);
	show_set_u64(row, "scur", t->active);
	show_set_u64(row, "stot", t->started);
	show_set_u64(row, "lbtot", t->started);
	show_set_u64(row, "req_tot", t->started);
	show_set_u64(row, "act", info->n_ready);
	show_set_u64(row, "econ", t->ended[LB_CAUSE_NO_HEALTHY]);
	show_set_u64(row, "eresp",
		t->ended[LB_CAUSE_UPSTREAM_RESET] + t->ended[LB_CAUSE_UPSTREAM_LOST] +
			t->ended[LB_CAUSE_UPSTREAM_PROTOCOL] +
			t->ended[LB_CAUSE_UPSTREAM_TOO_LARGE]);
	show_set_u64(row, "ok", t->ended[LB_CAUSE_OK]);
	show_set_u64(row, "failed", failures(t));
	json_object_set_new(row, "ended", show_causes(t->ended));
}

json_t *show_stat(const struct show *s, struct show_args *args)
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
	char address[IP_PORT_TEXT_MAX];
	json_t *row = json_object();
	show_set_text(row, "cluster", c->cluster);
	show_set_text(row, "endpoint", ip_port_print(&e->addresses[0], address));
	show_set_text(row, "state", lb_state_name(e->state));
	show_set_u64(row, "requests", e->totals.issued);
	show_set_u64(row, "active", e->totals.active);
	show_set_u64(row, "connections", e->connections);
	show_set_override(row, &e->override);
	show_set_text(row, "error", e->last_error);
	show_set_tls_result(row, e->last_error);
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
	show_set_text(row, "cluster", info->name);
	show_set_text(row, "state", lb_state_name(info->state));
	show_set_u64(row, "endpoints", info->n_endpoints);
	show_set_u64(row, "ready", info->n_ready);
	show_set_u64(row, "requests", t->started);
	show_set_u64(row, "active", t->active);
	show_set_u64(row, "queued", t->queued);
	show_set_u64(row, "ok", t->ended[LB_CAUSE_OK]);
	show_set_u64(row, "failed", failures(t));
	show_set_u64(row, "dropped", t->ended[LB_CAUSE_DROPPED]);
	show_set_u64(row, "refused", t->ended[LB_CAUSE_OVERFLOW]);
	json_object_set_new(row, "leaving", json_boolean(info->leaving));
	show_set_text(row, "tls", info->tls);
	show_set_text(row, "detail", info->detail);
	json_object_set_new(row, "ended", show_causes(t->ended));
	json_array_append_new(c->clusters, row);
	struct stat_ctx inner = {c->show, c->endpoints, info->name};
	assembler_each_endpoint(c->show->conf.assembler, info->name, cluster_endpoint, &inner);
}

json_t *show_clusters(const struct show *s, struct show_args *args)
{
	struct clusters_ctx c = {s, json_array(), json_array()};
	assembler_each_cluster(s->conf.assembler, cluster_line, &c);
	return json_pack("{so so}", "clusters", c.clusters, "endpoints", c.endpoints);
}
