// SPDX-License-Identifier: Apache-2.0
// HTTP/2 as what connections speak (conn.h), in either role. A connection's session is its h2_conn,
// whose user is the struct conn.
// Thread: the polling thread.
#pragma once

#include "dataplane/h2/h2.h"
#include "tools/shunt-load/conn.h"

// side.context is a struct conn_h2.
extern const struct conn_protocol conn_h2_protocol;

struct conn_h2 {
	struct h2_context *context; // owned
	enum h2_role role;
	const struct h2_events *events; // static
};

// Returns NULL if out of memory. chunks is borrowed and outlives it.
struct conn_h2 *conn_h2_new(
	const struct h2_conf *, enum h2_role, const struct h2_events *, struct pool *chunks);
void conn_h2_free(struct conn_h2 *); // NULL is fine
