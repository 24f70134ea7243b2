// SPDX-License-Identifier: Apache-2.0
// dataplane/tcp/tcp.h by pipes in memory, for a bench of what is above TCP: no segment is made, and
// nothing is lost or late. Linked in place of the real one; of its functions, those that proxy/
// calls.
// Thread: one.
#pragma once

#include "dataplane/tcp/tcp.h"

#define PIPE_MAX_CONNS 256
#define PIPE_SEND_LIMIT (256u << 10)

struct tcp_conn {
	struct tcp_flow flow;
	const struct tcp_conn_ops *ops;
	void *user;
	struct buf sendq;
	uint32_t n_sent;
	bool open, connecting, shut;
};

struct tcp_stack {
	struct pool *chunks; // borrowed
	tcp_accept_fn accept; // one listener's
	void *accept_arg;
	struct tcp_conn conns[PIPE_MAX_CONNS];
	uint32_t n_conns; // ever opened
};

// A client connects.
struct tcp_conn *pipe_connect(struct tcp_stack *);
// The client of one that it has closed connects again in its place.
void pipe_reconnect(struct tcp_stack *, struct tcp_conn *);
// It has no more to say and hears all; the owner has nothing more to say then, either.
void pipe_close(struct tcp_stack *, struct tcp_conn *);
// All that the owner opens is there.
void pipe_establish(struct tcp_stack *);
void pipe_give(struct tcp_conn *, const uint8_t *, size_t len);
// What the owner sent since. Returns its length.
size_t pipe_take(struct tcp_stack *, struct tcp_conn *, uint8_t *out, size_t size);
