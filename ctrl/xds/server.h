// SPDX-License-Identifier: Apache-2.0
// One distinct server of the bootstrap and those who need it. The client lives while it has users:
// one that has none any more is closed a moment later, never inside an event of its own.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/client.h"

struct xds_federation;

struct xds_server {
	const struct xds_server_conf *conf; // borrowed
	struct xds_federation *federation;
	struct xds_client *client; // NULL = not needed yet, or not any more
	struct xds_settled settled; // of the client
	uint32_t n_users;
	bool begun; // by the federation
	bool settling; // the client's events are over, and its hook runs
};

// One more user: the client is there until its put. NULL = out of memory.
struct xds_client *xds_server_get(struct xds_server *);
void xds_server_put(struct xds_server *);
