// SPDX-License-Identifier: Apache-2.0
// The state that all entries (entry.h) of one client's cache share, with its subscriptions by type
// and name (subs.h).
// Thread: ctrl.
#pragma once

#include "ctrl/xds/client.h"

struct xds_entry;
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
	// Timer callbacks of an entry. No answer came in time (FM-04).
	void (*on_silence)(struct xds_entry *);
	void (*on_expiry)(struct xds_entry *); // the TTL of its value has expired (RS-04)
};

// Logs one line.
void xds_cache_log(const struct xds_cache *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
