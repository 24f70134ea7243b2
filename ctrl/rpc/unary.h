// SPDX-License-Identifier: Apache-2.0
// The client part of libgrpc's C surface API for unary calls, one at a time, in the clear. It knows
// no protobuf. libgrpc's threads are hidden behind it; they inherit the CPU affinity of the thread
// that calls new().
// Thread: the owner's; on_done is called from rpc_unary_dispatch().
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rpc_unary;

// What a call came to; borrowed for the callback.
struct rpc_result {
	int status; // of gRPC
	const char *text; // what was said of it
	const uint8_t *answer; // OK: the message
	size_t len;
};
typedef void rpc_done_fn(void *ctx, const struct rpc_result *);

// target: HOST:PORT, resolved by libgrpc. NULL = out of memory, or without a thread.
struct rpc_unary *rpc_unary_new(const char *target, rpc_done_fn *on_done, void *ctx);
// Cancels a call under way, of which nothing more is told. NULL is fine.
void rpc_unary_free(struct rpc_unary *);
// Copies the message. No call is under way.
void rpc_unary_call(struct rpc_unary *, const char *method, const uint8_t *bytes, size_t len,
	uint64_t timeout_ns);
// Readable when there is something to dispatch.
int rpc_unary_fd(const struct rpc_unary *);
void rpc_unary_dispatch(struct rpc_unary *);
