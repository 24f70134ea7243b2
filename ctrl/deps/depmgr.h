// SPDX-License-Identifier: Apache-2.0
// The dependency manager of gRFC A74: watches everything that one frontend's target needs and
// delivers a configuration only when it is complete (DM-*). Unlike A74, without a pinned authority
// it watches the clusters of every virtual host, since a proxy chooses the virtual host per
// request.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct depmgr;
struct depmgr_sub;
struct dns_resolver;
struct res_listener;
struct twheel;
struct xds_config;
struct xds_federation;

struct depmgr_conf {
	struct xds_federation *client; // borrowed, outlives the manager
	struct dns_resolver *dns; // likewise; NULL = LOGICAL_DNS clusters are in error
	struct twheel *wheel;
	const char *listener_name; // copied
	// Counted: this one in place of what has the name, which is not watched then; NULL = none.
	struct res_listener *listener;
	const char *authority; // pinned; copied; NULL = chosen per request
	const char *node_id; // copied
	// A complete configuration that differs from the last; or, when one has been incomplete for
	// a second, the last one with newer endpoints. Borrowed until the next callback:
	// xds_config_get() to keep it.
	void (*on_update)(void *ctx, struct xds_config *);
	// No usable listener or routes: stop using the last config (DM-08).
	void (*on_error)(void *ctx, const char *text);
	// Asks whether requests still use a cluster that no route names any more. If so, it stays
	// watched and in the configuration (A31-R11, DM-22) unless it waits for something (DM-21),
	// and this is asked again every second. NULL = never in use. Must not call the manager.
	bool (*in_use)(void *ctx, const char *cluster);
	void *ctx;
};

// Starts the watch of the listener. Calls no callback. Returns NULL if out of memory.
struct depmgr *depmgr_new(const struct depmgr_conf *);
void depmgr_free(struct depmgr *); // cancels every watch; must not be called inside its callbacks

// Subscribes to a cluster that no route names (RLS and others choose one per request): it and what
// it needs are watched while there are subscribers, and join the configuration when nothing of them
// is missing; the configuration does not wait for that (DM-20, DM-21). Neither call runs a
// callback. The caller unsubscribes before it frees the manager. NULL = out of memory.
struct depmgr_sub *depmgr_subscribe(struct depmgr *, const char *cluster);
void depmgr_unsubscribe(struct depmgr_sub **); // sets the handle to NULL; NULL is fine

// A connection failed: the addresses of all its LOGICAL_DNS clusters may be outdated (A74-C06,
// DM-23). Runs no callback.
void depmgr_reresolve(struct depmgr *);

// What the next configuration waits for, for display ("cluster blue, endpoints of green"); "" =
// nothing. Valid until the next call.
const char *depmgr_waiting(struct depmgr *);
// Why the newest version of its listener or routes was rejected while an earlier one is in use; ""
// = it was not. Valid until the next call.
const char *depmgr_refused(struct depmgr *);
