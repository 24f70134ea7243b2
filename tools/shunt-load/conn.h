// SPDX-License-Identifier: Apache-2.0
// What the connections of client and echo backend share: a protocol on TCP, with TLS between them
// or without, and a place in the list of connections with work in this turn. It does not know what
// the protocol says.
// Thread: the polling thread.
#pragma once

#include "dataplane/tcp/tcp.h"
#include "lb/base/pool.h"
#include "lb/base/twheel.h"
#include "tools/shunt-load/secure.h"

#include <stdbool.h>
#include <sys/queue.h>

struct conn;

// What connections speak above TCP or TLS: HTTP/2 (conn_h2.h) or HTTP/1.1 (client_h1.c). Functions
// get the session that begin() returned.
struct conn_protocol {
	const char *alpn; // that TLS must agree upon
	// Output goes to *out (borrowed). NULL = out of memory.
	void *(*begin)(struct conn *, struct buf *out);
	// The session is over: what is open in it ends. Not inside feed() or pump().
	void (*end)(void *session);
	// Input; returns how much of it was taken. Not called once it has failed().
	size_t (*feed)(void *session, const uint8_t *, size_t len);
	// Writes up to `room` bytes. Returns true if more waits for room.
	bool (*pump)(void *session, size_t room);
	// Why the connection is to be closed once it has been pumped, static; NULL = it is not.
	const char *(*failed)(const void *session);
	// The peer's FIN has come: end() follows. NULL = that says all there is.
	void (*eof)(void *session);
};

// One end: a role's TCP and protocol, set by its owner and borrowed; the rest is side_init()'s.
struct side {
	struct tcp_stack *tcp;
	struct twheel *wheel;
	struct pool *chunks;
	const struct conn_protocol *protocol;
	void *context; // the protocol's, of all connections
	struct secure_conf secure;
	STAILQ_HEAD(, conn) dirty; // connections to pump
};

struct conn_ops {
	// TCP is connected, TLS has its keys, and the session has begun. NULL with who accepts.
	void (*up)(struct conn *);
	// The session is over, and all in it has ended; the connection will be closed. why: for
	// display.
	void (*over)(struct conn *, const char *why);
	// The last callback: nothing refers to the connection any more.
	void (*gone)(struct conn *);
};

struct conn {
	struct side *side;
	const struct conn_ops *ops;
	struct tcp_conn *tcp; // NULL = closed
	void *session; // the protocol's; NULL = not begun, or over
	struct secure secure; // all zero = plain text
	STAILQ_ENTRY(conn) dirty_next;
	struct twheel_timer linger; // limit of waiting for the peer's FIN
	bool dirty;
	bool fed_short; // TCP holds bytes that the session did not take
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
// Sends what is queued, then FIN. What is open in the session ends as lost.
void conn_close(struct conn *, const char *why);
// Sends what the session has written, as far as there is room.
void conn_pump(struct conn *);
// Bytes in TCP's send queue since the beginning, and those of them that the peer has acknowledged,
// modulo 2^32. With a session only.
uint32_t conn_n_queued(const struct conn *);
uint32_t conn_n_acked(const struct conn *);
// Sends RST; otherwise the same as conn_close().
void conn_abort(struct conn *, const char *why);

// Once its first fields are set. tls: borrowed, NULL = plain text; now_ns: the turn's time,
// borrowed. False = out of memory.
[[nodiscard]] bool side_init(
	struct side *, struct tlshs_context *tls, uint32_t max_conns, const uint64_t *now_ns);
// After all connections were aborted: the last pump. All zero is fine.
void side_fini(struct side *);
// Pumps all marked connections, and frees those that ended. Returns true if there was one.
bool side_pump(struct side *);
