// SPDX-License-Identifier: Apache-2.0
// Clients whose filter chain depends on what they say first (A36-38): a ClientHello, or anything
// else. Until it is known a client has the place of its frontend, and HTTP/2 hears nothing of it;
// then it gets its chain, with TLS or without, and its first bytes go there as they came. That has
// to be within the time that any newcomer has for its first words (TH-16).
// Thread: the owning worker.
#pragma once

#include "dataplane/buf/buf.h"
#include "dataplane/proxy/client.h"
#include "dataplane/tcp/tcp.h"
#include "lb/route/chain_match.h"

#include <stdbool.h>
#include <stddef.h>

struct proxy;
struct proxy_listener;

// What a client gets once it is known.
struct proxy_client_hello_ops {
	const struct tcp_conn_ops *tcp; // of clients that are not asked
	// The client gets its place, and TLS if that has it. False = a pool is exhausted.
	bool (*settle)(struct proxy_client *, uint32_t place);
};

// Of the proxy's pool until the first bytes have gone where they belong.
struct proxy_client_hello {
	const struct proxy_listener *listener;
	const struct proxy_client_hello_ops *ops;
	struct lb_inspector inspector; // as it was when the connection began
	struct buf bytes; // what has come before the bytes that TCP shows
	size_t need; // no use to look before there are so many
	bool known; // there is a chain, and the bytes are yet to go there
};

// Room for all clients. 0 or -ENOMEM.
[[nodiscard]] int proxy_client_hellos_init(struct proxy *);
// A client's connection begins.
void proxy_client_hello_begin(struct proxy_client *, const struct proxy_listener *,
	const struct lb_inspector *, const struct proxy_client_hello_ops *);
// Input while there is a hello, as tcp_conn_ops.on_data.
size_t proxy_client_hello_feed(
	struct proxy_client *, struct tcp_conn *, const uint8_t *data, size_t len);
// No more is wanted of its hello, if there was something.
void proxy_client_hello_drop(struct proxy_client *);
static inline void proxy_client_hello_end(struct proxy_client *c)
{
	if (c->hello)
		proxy_client_hello_drop(c);
}
// Bytes that are kept of it.
static inline size_t proxy_client_hello_len(const struct proxy_client *c)
{
	return c->hello ? c->hello->bytes.len : 0;
}
