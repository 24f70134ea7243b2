// SPDX-License-Identifier: Apache-2.0
// The dependency manager of gRFC A74: watches everything one frontend's target needs and delivers a
// configuration only when it is complete (DM-*). Different from A74: without a pinned
// authority the clusters of every virtual host are watched, since a proxy chooses the virtual host
// per request.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct depmgr;
struct depmgr_sub;
struct dns_resolver;
struct twheel;
struct xds_config;
struct xds_federation;

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

// Starts the watch of the listener. Neither callback is called inside. NULL = out of memory.
struct depmgr *depmgr_new(const struct depmgr_conf *);
void depmgr_free(struct depmgr *); // cancels every watch; not inside a callback of its own

// A cluster that no route names (RLS and the like choose one per request): it and what it needs are
// watched as long as somebody subscribes, and are in the configuration once nothing of them is
// missing; nobody else waits for that (DM-20, DM-21). Neither call calls back inside. The handle is
// the caller's, and ends before the manager; NULL = out of memory.
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
