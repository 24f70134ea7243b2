// SPDX-License-Identifier: Apache-2.0
// What client and backend connections have in common: a TCP connection, an HTTP/2 connection on top
// of it, and a place in the list of those that something happened to in this turn. Not what the
// streams mean.
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"
#include "dataplane/tcp/tcp.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool;
struct proxy;
struct proxy_conn;

// A client that takes none of its output for this long is let go (TH-15),
// and so is whoever takes none of our last bytes; a stream for whose body it gives no window is
// reset.
#define PROXY_STUCK_NS UINT64_C(30000000000)

// What a kind of connection makes of it. While conn.h2 is there.
struct proxy_conn_ops {
	void (*on_send_room)(struct proxy_conn *); // output drained
	void (*on_flushed)(struct proxy_conn *); // after its output was pumped
	// A client that asks and does not read is not asked for more. A backend's bytes are always
	// taken: what they make us write is bounded by our own requests, and not reading could
	// leave both sides waiting for each other.
	bool stops_reading;
};

struct proxy_conn {
	struct proxy *proxy;
	const struct proxy_conn_ops *ops;
	struct pool *home; // where the object goes back to
	struct tcp_conn *tcp; // NULL = gone; the object is freed at the end of the turn
	struct h2_conn *h2; // NULL = not up yet, or over: what still arrives is dropped
	struct proxy_conn *dirty_next;
	struct proxy_conn *linger_next, *linger_prev;
	struct twheel_timer timer; // the one deadline of the connection's present state
	uint64_t written; // bytes of output in all, once h2 is over
	uint64_t taken_mark; // of them, those the peer had when that was last looked at
	uint32_t out_limit; // bytes of output beyond which nothing more is read
	uint8_t n_stuck; // seconds of lingering without progress
	bool dirty; // in the proxy's list
	bool lingering; // FIN queued, in the proxy's list of such
	bool fed_short; // TCP keeps bytes that we did not take
	bool more; // the last pump left something for want of room
};

// All fields but the timer's function. The object is of the pool.
void proxy_conn_init(
	struct proxy_conn *, struct proxy *, const struct proxy_conn_ops *, struct pool *home);
// HTTP/2 on the TCP connection. False = pools exhausted.
[[nodiscard]] bool proxy_conn_start(
	struct proxy_conn *, struct tcp_conn *, enum h2_role, const struct h2_events *);
// Something was done that may have left output: it is pumped at the end of the turn.
void proxy_conn_touch(struct proxy_conn *);
void proxy_conn_arm(struct proxy_conn *, void (*fire)(struct twheel_timer *), uint64_t delay_ns);
struct proxy_conn *proxy_conn_of_timer(struct twheel_timer *);
// There is output, and the peer has taken none since the last call.
bool proxy_conn_stuck(struct proxy_conn *);

// tcp_conn_ops of both kinds; user is the proxy_conn.
size_t proxy_conn_on_data(struct tcp_conn *, void *user, const uint8_t *, size_t len);
void proxy_conn_on_send_room(struct tcp_conn *, void *user);

// Ends HTTP/2: streams still open are closed with code (and conn->h2 is NULL while they hear of
// it), what is queued in TCP is sent, then FIN; RST if the peer lingers.
void proxy_conn_over(struct proxy_conn *, enum h2_error code);
// The same when TCP is gone, or (abort) without a FIN: TCP's RST.
void proxy_conn_gone(struct proxy_conn *, enum h2_error code, bool abort);

// Pumps and then frees or hands on every dirty connection. True = there was one.
bool proxy_conn_flush_all(struct proxy *);
