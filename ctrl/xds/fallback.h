// SPDX-License-Identifier: Apache-2.0
// One authority with several servers in order of preference (gRFC A71, FB-*). Its
// cache outlives the change from one server to another: what is served is the last word of the
// server in use, and until that has spoken the last word of those before it.
//
// The active server is the one whose word counts. The ones before it have failed and are still
// asked for everything; the first that answers is the active one again. The ones behind it are not
// connected.
// Not here: which authority a name belongs to (federation.c).
// Thread: ctrl.
#pragma once

#include "ctrl/xds/client.h"

struct xds_fallback;
struct xds_server;
struct twheel;

struct xds_fallback_conf {
	const char *authority; // borrowed; NULL = old-style names
	struct xds_server *const *servers; // borrowed, outlive it; in order of preference
	uint32_t n_servers; // two or more
	const struct xds_type *const *types;
	uint32_t n_types;
	const char *node_id; // borrowed
	bool drops_deleted; // as a client's
	struct twheel *wheel;
	void (*on_due)(void *ctx); // a timer asks for xds_fallback_settle()
	void *ctx;
	void (*log)(void *ctx, const char *line); // NULL = silent
	void *log_ctx;
};

// The first server's client is there. NULL = out of memory.
struct xds_fallback *xds_fallback_new(const struct xds_fallback_conf *);
void xds_fallback_free(struct xds_fallback *); // NULL is fine; watchers that are left are forgotten

// As the client's. xds_fallback_settle() is due after each.
[[nodiscard]] int xds_fallback_watch(
	struct xds_fallback *, uint32_t type, const char *name, struct xds_watcher *);
void xds_fallback_cancel(struct xds_watcher *);
void xds_fallback_each(const struct xds_fallback *,
	void (*fn)(void *ctx, const struct xds_entry_info *), void *ctx);

// Takes notice of what its clients have heard: changes servers, and tells the watchers. True = they
// were told something.
bool xds_fallback_settle(struct xds_fallback *);

const struct xds_server *xds_fallback_active(const struct xds_fallback *);
