// SPDX-License-Identifier: Apache-2.0
// The server part of libgrpc's C surface API: calls of whole messages, unary or streaming, in the
// clear or with TLS. It knows no protobuf and no methods. libgrpc's threads are hidden behind it;
// they inherit the CPU affinity of the thread that calls rpc_server_new().
// Thread: one owner; all events are called from rpc_server_dispatch() (and rpc_server_free()).
#pragma once

#include "lb/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lb_err;
struct rpc_server;
struct rpc_call;

// Canonical gRPC status codes that these servers use.
enum rpc_status {
	RPC_OK = 0,
	RPC_INVALID_ARGUMENT = 3,
	RPC_NOT_FOUND = 5,
	RPC_RESOURCE_EXHAUSTED = 8,
	RPC_UNIMPLEMENTED = 12,
	RPC_INTERNAL = 13,
	RPC_UNAVAILABLE = 14,
};

struct rpc_events {
	// A client opened a call. The result is passed to this call's events; NULL = refused
	// (UNIMPLEMENTED), and no event follows.
	void *(*on_open)(void *ctx, struct rpc_call *, struct str method, const char *peer);
	// One message, borrowed for the call. None follows after the server ended the call.
	void (*on_message)(void *call_ctx, const uint8_t *bytes, size_t len);
	// The message given to send() has been sent: another one may follow.
	void (*on_sent)(void *call_ctx);
	// The call ended, for any reason. The last event; the call is freed after it.
	void (*on_closed)(void *call_ctx);
	// The client has half-closed and waits for answers. NULL = such a call ends, with OK.
	void (*on_half_close)(void *call_ctx);
};

// Files in PEM, which are read again when they have changed; what is bad leaves what was good.
struct rpc_server_tls {
	const char *cert, *key;
	const char *client_ca; // NULL = clients need no certificate
};

struct rpc_server_conf {
	// "127.0.0.1:18000", "[::1]:18000", "unix-abstract:NAME"; NULL = connections come by
	// rpc_server_connect(), and are in the clear
	const char *address;
	uint32_t n_calls_max; // further calls end with RESOURCE_EXHAUSTED
	uint32_t message_len_max; // from clients; a longer message ends its call
	const struct rpc_server_tls *tls; // borrowed for the call; NULL = in the clear
	// What rpc_server_free() waits by, of whoever carries clients' bytes and has to go on with
	// it meanwhile; NULL = poll().
	void (*wait)(void *ctx, int fd, int timeout_ms);
	// Shuts down the sockets of all that came by rpc_server_connect(), when they have had their
	// time: libgrpc ends no connection while it writes to it, for as long as a client does not
	// read. NULL = none came.
	void (*cut)(void *ctx);
	void *end_ctx; // of both
};

// 0, -EINVAL with the reason (the address is malformed or taken, a file is bad), or -errno.
[[nodiscard]] int rpc_server_new(const struct rpc_server_conf *, const struct rpc_events *,
	void *ctx, struct rpc_server **ret, struct lb_err *reterr);
// Ends all calls with UNAVAILABLE, each with its on_closed; waits a bounded part of a second for
// clients to read, and two seconds more for those that came to the address and do not: what libgrpc
// is writing to them then is left to the end of the process. NULL is fine.
void rpc_server_free(struct rpc_server *);

// Serves this connection, somebody else has accepted it. Takes the descriptor.
void rpc_server_connect(struct rpc_server *, int fd);

int rpc_server_port(const struct rpc_server *);
// Readable when there is something to dispatch.
int rpc_server_fd(const struct rpc_server *);
void rpc_server_dispatch(struct rpc_server *);

// Copies the message. Not to be called again before on_sent.
void rpc_call_send(struct rpc_call *, const uint8_t *bytes, size_t len);
// The same for a message in parts, each from malloc, which it takes over: a long message needs no
// single block and no copy.
struct rpc_part {
	uint8_t *bytes;
	size_t len;
};
void rpc_call_send_parts(struct rpc_call *, const struct rpc_part *, size_t n);

// Stops reading the client's messages until resume(), to slow a client that sends faster than it
// reads.
void rpc_call_pause(struct rpc_call *);
void rpc_call_resume(struct rpc_call *);

// Ends the call from this side, after the message under way; on_closed follows. Later calls have no
// effect.
void rpc_call_finish(struct rpc_call *); // with OK
void rpc_call_end(struct rpc_call *, enum rpc_status, const char *text);
// Ends it at once and drops messages that the client has not read. on_closed follows.
void rpc_call_cancel(struct rpc_call *);
