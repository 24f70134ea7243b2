// SPDX-License-Identifier: Apache-2.0
// Clients that begin with a PROXY header (PP-01, PP-06..PP-10), on frontends that say so. It is
// read before anything else of the connection, TLS included; the source account (source.h) stays
// with the connection's real other end.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/proxy_header.h"
#include "dataplane/tcp/tcp.h"
#include "lb/base/twheel.h"

#include <stdbool.h>

struct proxy;
struct proxy_listener;

// Of the proxy's pool while a client's header is not complete.
struct proxy_client_header {
	struct proxy_header header;
	struct twheel_timer timer; // fires when it is late
	struct proxy_client *client;
};

// Room for all clients, if any frontend wants headers. 0 or -ENOMEM.
[[nodiscard]] int proxy_client_headers_init(struct proxy *);
// Only for frontends that want a header: may this connection come? Counts those that may not.
bool proxy_client_header_allows(const struct proxy_listener *, const struct tcp_conn *);
// Likewise: a client's connection begins; `ops` are those behind its header. Returns the ones to
// use.
const struct tcp_conn_ops *proxy_client_header_begin(
	struct proxy_client *, const struct tcp_conn_ops *ops);
// No more is wanted of its header, if it was yet to come.
void proxy_client_header_drop(struct proxy_client *);
static inline void proxy_client_header_end(struct proxy_client *c)
{
	if (c->header)
		proxy_client_header_drop(c);
}
