// SPDX-License-Identifier: Apache-2.0
// The client part of libgrpc's C surface API for one long call at a time in which the client alone
// speaks, in the clear. It knows no protobuf. libgrpc's threads are hidden behind it; they inherit
// the CPU affinity of the thread that calls new().
// Thread: the owner's; events are called from rpc_stream_dispatch().
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rpc_stream;

struct rpc_stream_events {
	// The message has left for the server, which may not have read it: another one may follow.
	void (*on_sent)(void *ctx);
	// The call is over; a message of which nothing was said is lost. text is borrowed.
	void (*on_end)(void *ctx, int status, const char *text);
};

// target: HOST:PORT, resolved by libgrpc; the events are borrowed. NULL = out of memory, or without
// a thread.
struct rpc_stream *rpc_stream_new(const char *target, const struct rpc_stream_events *, void *ctx);
// Cancels a call under way, of which nothing more is told. NULL is fine.
void rpc_stream_free(struct rpc_stream *);
bool rpc_stream_is_open(const struct rpc_stream *);
// Begins a call; none is open. It waits for no server: without one it ends soon.
void rpc_stream_open(struct rpc_stream *, const char *method);
// Sends a message made of these parts, which are copied. The call is open, and no message is under
// way.
struct rpc_piece {
	const void *bytes;
	size_t len;
};
void rpc_stream_send(struct rpc_stream *, const struct rpc_piece *, size_t n);
// Says that no message follows; the server ends the call then. The call is open, and no message is
// under way. Once a call.
void rpc_stream_finish(struct rpc_stream *);
// Readable when there is something to dispatch.
int rpc_stream_fd(const struct rpc_stream *);
void rpc_stream_dispatch(struct rpc_stream *);
