// SPDX-License-Identifier: Apache-2.0
// One distinct server of the bootstrap and its users. Its client exists while there are users; it
// is closed a moment after the last one left, never inside an event of its own.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/client.h"

struct xds_federation;

struct xds_server {
	const struct xds_server_conf *conf; // borrowed
	struct xds_federation *federation;
	struct xds_client *client; // NULL = not needed now
	struct xds_settled settled; // hook of the client
	uint32_t n_users;
	bool begun; // the federation has called begin
	bool settling; // the client's events are over, and its hook is running
};

// Adds a user: the client exists until the matching put. Returns NULL if out of memory.
struct xds_client *xds_server_get(struct xds_server *);
void xds_server_put(struct xds_server *);
