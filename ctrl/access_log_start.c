// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log_start.h"

#include "ctrl/access_log/place.h"
#include "ctrl/access_log/want.h"
#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "ctrl/xds/bootstrap/node.h"
#include "lb/pick/link.h"
#include "proto/wire.h"

#include <stdlib.h>
#include <string.h>

struct parts {
	struct access_place own, own_collector;
	struct lb_access *workers[LB_MAX_WORKERS];
	struct access_log_frontend *frontends; // owned
	struct access_cluster clusters[CONFIG_MAX_COLLECTORS];
	uint8_t *node; // owned
	size_t node_len;
};

static int pack_node(struct parts *p, const struct xds_bootstrap *bootstrap)
{
	struct xds_node node;
	int rc = xds_node_init(&node, bootstrap, SHUNT_VERSION);
	if (!rc) {
		rc = proto_pack(&node.msg.base, &p->node, &p->node_len);
		xds_node_fini(&node);
	}
	return rc;
}

static int gather(struct parts *p, const struct config *c, const struct xds_bootstrap *bootstrap,
	struct lb_link *const *links)
{
	const struct config_access_log *a = c->access_log;
	p->frontends = calloc(c->n_frontends, sizeof(*p->frontends));
	if (!p->frontends || pack_node(p, bootstrap))
		return -1;
	for (unsigned i = 0; i < c->n_frontends; i++)
		p->frontends[i] = (struct access_log_frontend){.name = c->frontends[i].name,
			.local = {c->frontends[i].address_ip, c->frontends[i].port}};
	for (unsigned i = 0; i < c->n_workers; i++)
		p->workers[i] = links[i]->access;
	bool is_stdout = a->path && strcmp(a->path, "stdout") == 0;
	p->own = (struct access_place){
		.kind = is_stdout ? ACCESS_STDOUT : ACCESS_FILE, .path = a->path};
	p->own_collector = (struct access_place){
		.kind = ACCESS_COLLECTOR,
		.path = a->collector,
		.log_name = a->log_name ? a->log_name : "shunt",
		.batch_bytes = ACCESS_BATCH_BYTES,
		.batch_ns = ACCESS_BATCH_NS,
	};
	for (unsigned i = 0; i < a->n_xds_collectors; i++)
		p->clusters[i] = (struct access_cluster){
			a->xds_collectors[i].cluster, a->xds_collectors[i].address};
	return 0;
}

int access_log_start(const struct config *c, const struct xds_bootstrap *bootstrap,
	struct lb_link *const *links, uint64_t seed, struct access_log **ret, struct lb_err *reterr)
{
	struct parts p = {0};
	const struct config_access_log *a = c->access_log;
	if (!a)
		return 0;
	int rc = gather(&p, c, bootstrap, links);
	struct access_log_conf conf = {
		.logs = {.own = a->path ? &p.own : NULL,
			.text_format = a->text_format,
			.own_collector = a->collector ? &p.own_collector : NULL,
			.xds_directory = a->xds_directory,
			.xds_stdout = a->xds_stdout,
			.xds_collectors = p.clusters,
			.n_xds_collectors = a->n_xds_collectors,
			.node = {p.node, p.node_len},
			.seed = seed},
		.frontends = p.frontends,
		.n_frontends = c->n_frontends,
		.workers = p.workers,
		.n_workers = c->n_workers,
		.clock_ns = loop_clock_ns,
		.wall_ns = loop_wall_ns,
	};
	rc = rc ? lb_err_set(reterr, "out of memory") : access_log_new(&conf, ret, reterr);
	free(p.frontends);
	free(p.node);
	return rc ? lb_err_within(reterr, "access_log") : 0;
}
