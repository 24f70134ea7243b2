// SPDX-License-Identifier: Apache-2.0
// The server half of libgrpc's C surface API: streams of whole messages, without TLS. Knows no
// protobuf and no method of its own. libgrpc's threads stay behind it.
// Thread: one owner; every event is called from rpc_server_dispatch() (and rpc_server_free()).
#pragma once

#include "lb/base/str.h"

#include <stddef.h>
#include <stdint.h>

struct lb_err;
struct rpc_server;
struct rpc_call;

struct rpc_events {
	// A client opened a stream. What is returned is given to the events of this call; NULL =
	// refused (UNIMPLEMENTED), and no event follows.
	void *(*on_open)(void *ctx, struct rpc_call *, struct str method, const char *peer);
	// One message, borrowed for the call.
	void (*on_message)(void *call_ctx, const uint8_t *bytes, size_t len);
	// The message given to send() has left: the next may come.
	void (*on_sent)(void *call_ctx);
	// The call is over, for whatever reason. The last event; the call is gone after it.
	void (*on_closed)(void *call_ctx);
};

// Listens on "127.0.0.1:18000" or "[::1]:18000". 0, -EINVAL with the reason (the address is
// malformed or taken), or -errno.
[[nodiscard]] int rpc_server_new(const char *address, const struct rpc_events *, void *ctx,
	struct rpc_server **ret, struct lb_err *reterr);
// Ends all calls, each with its on_closed. NULL is fine.
void rpc_server_free(struct rpc_server *);

int rpc_server_port(const struct rpc_server *);
// Readable when there is something to dispatch.
int rpc_server_fd(const struct rpc_server *);
void rpc_server_dispatch(struct rpc_server *);

// Copies the message. Not again before on_sent.
void rpc_call_send(struct rpc_call *, const uint8_t *bytes, size_t len);
// Ends the call from this side, without an error or with RESOURCE_EXHAUSTED; on_closed follows.
void rpc_call_finish(struct rpc_call *);
void rpc_call_abort(struct rpc_call *, const char *text);
