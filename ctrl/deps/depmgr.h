// SPDX-License-Identifier: Apache-2.0
// The dependency manager of gRFC A74: watches everything one frontend's target needs and delivers a
// configuration only when it is complete (DM-*). Different from A74: without a pinned
// authority the clusters of every virtual host are watched, since a proxy chooses the virtual host
// per request.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct res_cluster;
struct res_endpoints;
struct res_listener;
struct res_route_config;
struct twheel;
struct xds_federation;

struct xds_cluster_config {
	const char *name;
	struct res_cluster *cluster; // counted; NULL = in error
	const char *error; // why; "" while there is a cluster
	// Counted; NULL = none, resolution_note says why. A LOGICAL_DNS cluster's is made of the
	// addresses of its name: one endpoint with all of them (A61-D02).
	struct res_endpoints *endpoints;
	// AGGREGATE: its leaves, flat and in order (A75-G01); each is an entry of the configuration
	// with a cluster that is no aggregate. NULL = it is none, or none is left (then it is in
	// error).
	const char *const *leaves;
	uint32_t n_leaves;
	// A route names it; others are only members of aggregates, or in use (DM-14).
	bool is_root;
	bool has_trouble; // the note tells of some, not of the node alone
	// For failure messages: what is wrong with the sources of this entry, else the node id
	// (DM-27). Never NULL.
	const char *resolution_note;
};

// Immutable. Parts that did not change are the same objects in the next one (compare pointers).
struct xds_config {
	uint32_t n_refs;
	struct res_listener *listener; // counted; never NULL
	struct res_route_config *routes; // counted; never NULL, also when inline
	int32_t vhost; // index of the pinned authority's virtual host in routes; -1 = not pinned
	struct xds_cluster_config *clusters; // by name (strcmp order)
	uint32_t n_clusters;
};
struct xds_config *xds_config_get(struct xds_config *);
void xds_config_put(struct xds_config *); // NULL is fine
// NULL = the config has no such cluster.
const struct xds_cluster_config *xds_config_find_cluster(
	const struct xds_config *, const char *name);

struct depmgr;
struct depmgr_sub;
struct dns_resolver;

struct depmgr_conf {
	struct xds_federation *client; // borrowed, outlives the manager
	struct dns_resolver *dns; // likewise; NULL = LOGICAL_DNS clusters are in error
	struct twheel *wheel;
	const char *listener_name; // copied
	const char *authority; // pinned; copied; NULL = chosen per request
	const char *node_id; // copied
	// A complete change, once; or, while one waits for a second and longer, the last one with
	// newer endpoints. Borrowed until the next callback: xds_config_get() to keep.
	void (*on_update)(void *ctx, struct xds_config *);
	// No usable listener or routes: stop using the last config (DM-08).
	void (*on_error)(void *ctx, const char *text);
	// A cluster that no route names any more: there may be requests that chose it. It then
	// stays watched and in the configuration (A31-R11, DM-22) unless it waits for something
	// (DM-21), and is asked about again every second. NULL = never. Calls nothing of the
	// manager.
	bool (*in_use)(void *ctx, const char *cluster);
	void *ctx;
};

// Starts the watch of the listener. Neither callback is called inside. NULL = no memory.
struct depmgr *depmgr_new(const struct depmgr_conf *);
void depmgr_free(struct depmgr *); // cancels every watch; not inside a callback of its own

// A cluster that no route names (RLS and the like choose one per request): it and what it needs are
// watched as long as somebody subscribes, and are in the configuration once nothing of them is
// missing; nobody else waits for that (DM-20, DM-21). Neither call calls back inside. The handle is
// the caller's, and ends before the manager; NULL = no memory.
struct depmgr_sub *depmgr_subscribe(struct depmgr *, const char *cluster);
void depmgr_unsubscribe(struct depmgr_sub **); // makes it NULL, which is fine, too

// A connection failed: the addresses of all its LOGICAL_DNS clusters may be stale (A74-C06, DM-23).
// Calls nothing back inside.
void depmgr_reresolve(struct depmgr *);

// What is missing for the next config, for operators ("cluster blue, endpoints of green"), "" =
// nothing. Valid until the next call.
const char *depmgr_waiting(struct depmgr *);
// Why the newest version of its listener or its routes was refused and an earlier one is in use, ""
// = neither was. Valid until the next call.
const char *depmgr_refused(struct depmgr *);
