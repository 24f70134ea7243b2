// SPDX-License-Identifier: Apache-2.0
// The clusters that workers know or may still hold: name, dense id, balancer, and which resources
// it was built from. A cluster that no configuration names any more is `leaving` until its last
// request is gone; named again meanwhile, it is the same object and no connection closes
// (routing.md A31-C02).
// Thread: ctrl.
#pragma once

#include "ctrl/workers.h"
#include "ctrl/xds/strmap.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_balancer;
struct lb_cluster;
struct lb_connectivity;
struct lb_hosts;
struct lb_subchannel;
struct res_endpoints;
struct xds_cluster_config;

struct cluster {
	struct strmap_link by_name; // in the set
	char *name; // owned
	uint32_t id;
	uint32_t n_users; // frontends whose configuration names it; 0 = leaving
	struct lb_balancer *balancer; // owned
	struct res_endpoints *endpoints; // counted; what the balancer was given, NULL = none
	uint32_t session_health; // of the hosts that it was given
	struct lb_hosts *hosts; // counted; NULL = none
	char *note; // owned; resolution note or error it was given with
	struct cluster_totals before; // what the workers counted for this id before it came
	bool configured; // at least once
	bool failed; // in error instead of balanced
	// Of every endpoint that is used or that a session may use: one reference each, so that
	// operators see an endpoint as long as the cluster has it, and a session finds it in
	// whatever priority it is (routing.md SA-13, SA-14).
	struct lb_subchannel **subchannels;
	uint32_t n_subchannels;
};

struct cluster_set;

struct cluster_set_env {
	struct lb_connectivity *connectivity; // borrowed
	// A new state and picker of a cluster; the object is borrowed for the call.
	void (*on_change)(void *ctx, struct lb_cluster *);
	void *ctx;
};

struct cluster_set *cluster_set_new(const struct cluster_set_env *); // NULL = no memory
void cluster_set_free(struct cluster_set *); // NULL is fine

uint32_t cluster_set_count(const struct cluster_set *);
struct cluster *cluster_set_at(const struct cluster_set *, uint32_t index); // in order of names
struct cluster *cluster_set_find(const struct cluster_set *, const char *name);
// Finds or makes it. NULL: no memory, or more than LB_MAX_CLUSTERS (reterr).
struct cluster *cluster_set_obtain(struct cluster_set *, const char *name, struct lb_err *reterr);
// Forgets a cluster that nobody uses; its id may be given away again.
void cluster_set_drop(struct cluster_set *, struct cluster *);
// Gives its balancer what the configuration says now; nothing when that is the same as before.
// 0, or -ENOMEM with reterr: no memory, or too many endpoints (the earlier state stays).
[[nodiscard]] int cluster_configure(struct cluster_set *, struct cluster *,
	const struct xds_cluster_config *, struct lb_err *reterr);
