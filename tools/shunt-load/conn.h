// SPDX-License-Identifier: Apache-2.0
// What the connections of the client and of the echo backend have in common: HTTP/2 on TCP, and a
// place in the list of those that something happened to in this turn. Not what streams mean.
// Thread: the polling thread.
#pragma once

#include "dataplane/h2/h2.h"
#include "dataplane/tcp/tcp.h"
#include "lb/base/pool.h"
#include "lb/base/twheel.h"

#include <stdbool.h>

struct conn;

// One end: a role's TCP and HTTP/2, all borrowed but for the list.
struct side {
	struct tcp_stack *tcp;
	struct twheel *wheel;
	struct pool *chunks;
	struct h2_context *h2;
	struct conn *dirty_head, *dirty_tail;
};

struct conn_ops {
	const struct h2_events *h2;
	enum h2_role role;
	// TCP is there and HTTP/2 has begun (the client's; an accepted one is up from the start).
	void (*up)(struct conn *);
	// HTTP/2 is over, its streams have heard; what is left is to close. why: for people.
	void (*over)(struct conn *, const char *why);
	// Nothing refers to it any more.
	void (*gone)(struct conn *);
};

struct conn {
	struct side *side;
	const struct conn_ops *ops;
	struct tcp_conn *tcp; // NULL = gone
	struct h2_conn *h2; // NULL = not up yet, or over
	struct conn *dirty_next;
	struct twheel_timer linger; // for the peer's FIN
	bool dirty;
	bool fed_short; // TCP keeps bytes that HTTP/2 did not take
	bool is_over; // `over` was called
};

// The client's. False = out of memory or no free port; `over` and `gone` are not called.
[[nodiscard]] bool conn_connect(struct conn *, struct side *, const struct conn_ops *,
	const struct tcp_flow *, uint64_t timeout_ns);
// The backend's, inside TCP's accept: what that returns; NULL = out of memory.
const struct tcp_conn_ops *conn_accept(
	struct conn *, struct side *, const struct conn_ops *, struct tcp_conn *);
// There may be output: it is pumped at the end of the turn.
void conn_touch(struct conn *);
// What is queued, then FIN. Streams that are open end as lost.
void conn_close(struct conn *, const char *why);
// RST; the same.
void conn_abort(struct conn *, const char *why);

// Output of all that were touched, and the end of those that are gone. True = there was one.
bool side_pump(struct side *);
