// SPDX-License-Identifier: Apache-2.0
// What the connections of client and echo backend share: HTTP/2 on TCP, with TLS between them or
// without, and a place in the list of connections with work in this turn. It does not know what
// streams mean.
// Thread: the polling thread.
#pragma once

#include "dataplane/h2/h2.h"
#include "dataplane/tcp/tcp.h"
#include "lb/base/pool.h"
#include "lb/base/twheel.h"
#include "tools/shunt-load/secure.h"

#include <stdbool.h>
#include <sys/queue.h>

struct conn;

// One end: a role's TCP and HTTP/2, all borrowed except the list and TLS.
struct side {
	struct tcp_stack *tcp;
	struct twheel *wheel;
	struct pool *chunks;
	struct h2_context *h2;
	struct secure_conf secure; // its owner's to init and fini
	STAILQ_HEAD(, conn) dirty; // connections to pump
};

struct conn_ops {
	const struct h2_events *h2;
	enum h2_role role;
	// TCP is connected, and TLS has its keys, and HTTP/2 has started (client only).
	void (*up)(struct conn *);
	// HTTP/2 is over, and its streams have been closed; the connection will be closed. why: for
	// display.
	void (*over)(struct conn *, const char *why);
	// The last callback: nothing refers to the connection any more.
	void (*gone)(struct conn *);
};

struct conn {
	struct side *side;
	const struct conn_ops *ops;
	struct tcp_conn *tcp; // NULL = closed
	struct h2_conn *h2; // NULL = not started, or over
	struct secure secure; // all zero = plain text
	STAILQ_ENTRY(conn) dirty_next;
	struct twheel_timer linger; // limit of waiting for the peer's FIN
	bool dirty;
	bool fed_short; // TCP holds bytes that HTTP/2 did not take
	bool is_over; // `over` has been called
};

// Opens a client's connection. False = out of memory or no free port; `over` and `gone` are not
// called.
[[nodiscard]] bool conn_connect(struct conn *, struct side *, const struct conn_ops *,
	const struct tcp_flow *, uint64_t timeout_ns);
// Accepts a backend's connection; called in TCP's accept callback. NULL = out of memory.
const struct tcp_conn_ops *conn_accept(
	struct conn *, struct side *, const struct conn_ops *, struct tcp_conn *);
// Marks the connection: its output is pumped at the end of the turn.
void conn_touch(struct conn *);
// Sends what is queued, then FIN. Open streams end as lost.
void conn_close(struct conn *, const char *why);
// Sends what HTTP/2 has written, as far as there is room.
void conn_pump(struct conn *);
// Sends RST; otherwise the same as conn_close().
void conn_abort(struct conn *, const char *why);

// Empties its list.
void side_init(struct side *);
// Pumps all marked connections, and frees those that ended. Returns true if there was one.
bool side_pump(struct side *);
