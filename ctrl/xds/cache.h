// SPDX-License-Identifier: Apache-2.0
// The state that all entries (entry.h) of one client's cache share, with its subscriptions by type
// and name (subs.h).
// Thread: ctrl.
#pragma once

#include "ctrl/xds/client.h"

struct xds_entry;
struct xds_standby;
struct xds_subs;

struct xds_cache {
	const struct xds_client_conf *conf; // the client's
	const struct xds_server_conf *server;
	struct xds_client *client; // the client that owns it
	struct xds_subs *subs; // [conf->n_types]
	char *failure; // why the server is unreachable (FM-01); NULL = it is reachable or untested
	uint64_t n_events; // counter; numbers responses and other events that produce news
	struct xds_entry *news; // entries with news, in order
	struct xds_entry *news_last;
	bool unsettled; // watchers were told of events since the hooks last ran
	struct xds_standby *standby; // NULL = nothing was kept of it
	bool stands_by; // the server has not spoken, and what was kept of it counts
	size_t n_stale; // entries with a value from there, or absent as there
	// Timer callbacks of an entry. No answer came in time (FM-04).
	void (*on_silence)(struct xds_entry *);
	void (*on_expiry)(struct xds_entry *); // the TTL of its value has expired (RS-04)
	// standby's: the server speaks of one that an earlier run kept as absent.
	void (*on_answered)(const struct xds_entry *);
};

// The client's, for what belongs to it.
struct xds_cache *xds_client_cache(struct xds_client *);
// Logs one line.
void xds_cache_log(const struct xds_cache *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
// Likewise, what is no trouble.
void xds_cache_note(const struct xds_cache *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
