// SPDX-License-Identifier: Apache-2.0
// One worker's proxy with clients and backends at its pipes (pipe_tcp.h): a unary gRPC request goes
// from a client's bytes to a backend and back. Routes, picks, breaker, counters and timers are the
// real ones, and workers may share them as they do in the program. Nothing is ever freed: a bench
// ends.
// Thread: one for all but pipe_world_run(), which is each worker's.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PIPE_MAX_CLIENTS 64

struct lb_access_filter;
struct lb_tracing;
struct pipe_world;

struct pipe_control; // pipe_control.h

struct pipe_world_conf {
	uint32_t n_clients, n_streams; // on each, in one turn
	bool together; // all clients ask in the same turn; else one after the other
	// Of the access log; NULL = there is none. What it tells is forgotten at once.
	const struct lb_access_filter *log;
	const struct lb_tracing *tracing; // NULL = nothing is traced; likewise
	bool once; // on a connection of its own each, which is closed behind it
	// Which has TLS (pipe_tls.h), with `once` and without `together`. One world only.
	bool tls;
};

// The next worker's; its backends are connected.
struct pipe_world *pipe_world_new(struct pipe_control *, const struct pipe_world_conf *);
// n_ops requests, from the first byte of the first to the last of the last.
void pipe_world_run(void *pipe_world, uint64_t n_ops);
