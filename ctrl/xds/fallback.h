// SPDX-License-Identifier: Apache-2.0
// One authority with several servers in order of preference (gRFC A71, FB-*). Its cache survives a
// change of server: a resource has the active server's last value, or, until that server has sent
// one, the last value of the servers before.
// The active server is the one whose responses are used. The servers before it have failed; they
// are still asked for everything, and the first that answers becomes active again. The servers
// after it are not connected.
// federation.h decides which authority a name belongs to.
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
	bool drops_deleted; // as in xds_client_conf
	struct twheel *wheel;
	void (*on_due)(void *ctx); // a timer requires a call of xds_fallback_settle()
	void *ctx;
	void (*log)(void *ctx, const char *line); // may be NULL
	void *log_ctx;
};

// The first server's client must exist. Returns NULL if out of memory.
struct xds_fallback *xds_fallback_new(const struct xds_fallback_conf *);
void xds_fallback_free(struct xds_fallback *); // NULL is fine; remaining watchers are forgotten

// As for the client. Call xds_fallback_settle() after each.
[[nodiscard]] int xds_fallback_watch(
	struct xds_fallback *, uint32_t type, const char *name, struct xds_watcher *);
void xds_fallback_cancel(struct xds_watcher *);
void xds_fallback_each(const struct xds_fallback *,
	void (*fn)(void *ctx, const struct xds_entry_info *), void *ctx);

// Applies what its clients received: changes the active server, and tells the watchers. Returns
// true if there was anything to tell.
bool xds_fallback_settle(struct xds_fallback *);

const struct xds_server *xds_fallback_active(const struct xds_fallback *);
