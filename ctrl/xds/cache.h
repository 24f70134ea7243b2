// SPDX-License-Identifier: Apache-2.0
// The cache of one client: what all its entries (entry.h), by type and name (subs.h), have in
// common.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/client.h"

struct xds_entry;
struct xds_subs;

struct xds_cache {
	const struct xds_client_conf *conf; // the client's
	const struct xds_server_conf *server;
	struct xds_client *client; // whose it is
	struct xds_subs *subs; // [conf->n_types]
	char *failure; // the server is not reachable (FM-01); NULL = it is, or was until now
	uint64_t n_events; // numbers responses and other events that make news
	struct xds_entry *news; // entries with news, in order
	struct xds_entry *news_last;
	bool unsettled; // events were told since the hooks ran
	// Timers of an entry. No answer came in time (FM-04).
	void (*on_silence)(struct xds_entry *);
	void (*on_expiry)(struct xds_entry *); // its value has had its time (RS-04)
};

// One line for the operator.
void xds_cache_log(const struct xds_cache *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
