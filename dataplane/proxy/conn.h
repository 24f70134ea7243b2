// SPDX-License-Identifier: Apache-2.0
// What client and backend connections share: a TCP connection, an HTTP/2 connection on top of
// it, with TLS between them or without, and a place in the list of connections that need a pump in
// this turn. It does not know what the streams mean.
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/h2.h"
#include "dataplane/proxy/keepalive.h"
#include "dataplane/proxy/secure.h"
#include "dataplane/tcp/tcp.h"
#include "lb/base/gcra.h"
#include "lb/base/list.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct pool;
struct proxy;
struct proxy_conn;

// A client connection that takes less than PROXY_LEAST_RATE bytes a second of output that waits for
// this long is closed (TH-15), and so is a peer that does not take our last bytes. A stream whose
// client grants its waiting body less window than that is reset.
#define PROXY_PATIENCE_NS (30 * NS_PER_SECOND)
#define PROXY_LEAST_RATE 100

// What each kind of connection adds. Called only while conn.h2 is set.
struct proxy_conn_ops {
	void (*on_send_room)(struct proxy_conn *); // output has drained
	void (*on_flushed)(struct proxy_conn *); // its output has been pumped
	// Input is left that HTTP/2 did not take. True = proxy_conn_resume() will be called. NULL =
	// it waits for room alone.
	bool (*on_fed_short)(struct proxy_conn *);
	// It is to end: a PING was not answered in time, nor did anything else come; or too much is
	// kept for a client (client_cut.h), or it was to leave and is still there, which alone is
	// told to its requests (leave.h).
	void (*on_expired)(struct proxy_conn *);
	// The peer sends no more.
	void (*on_eof)(struct proxy_conn *);
	// With TLS alone. Its handshake has succeeded; it has failed, or a record is wrong, so that
	// nothing more can be sent (why: as proxy_secure.why); its keys are used up, and it should
	// be replaced.
	void (*on_secured)(struct proxy_conn *);
	void (*on_broken)(struct proxy_conn *, const char *why, bool by_peer);
	void (*on_worn)(struct proxy_conn *);
	// A client's. Reading stops while output is not taken, so that one that does not read
	// cannot send more requests. Bytes from backends are always read: our own requests bound
	// what we write in response, and if neither side read, both would wait forever. A drain
	// waits until its last bytes are taken.
	bool is_client;
};

struct proxy_conn {
	struct proxy *proxy;
	const struct proxy_conn_ops *ops;
	struct pool *home; // the pool that the object returns to
	struct tcp_conn *tcp; // NULL = closed; the object is freed at the end of the turn
	struct h2_conn *h2; // NULL = not started or over: received bytes are dropped
	struct proxy_secure *secure; // owned; NULL = plain text
	STAILQ_ENTRY(proxy_conn) dirty_next;
	struct list_link lingering; // FIN is queued; in the proxy's list of such connections
	struct twheel_timer timer; // the one deadline of the connection's present state
	struct proxy_keepalive keepalive;
	uint64_t began_ns; // when it was accepted, or begun
	uint64_t written; // total bytes of output in plain text, once h2 is over
	uint16_t n_before; // bytes of output before all that: through.h's and announce.h's
	// At the last look: bytes of output in total, and those that the peer had acknowledged.
	uint64_t written_mark, taken_mark;
	struct gcra resets; // to a backend: RST_STREAMs that we sent it (upstream.h)
	uint32_t out_limit; // bytes of unsent output above which we stop reading
	uint8_t n_lingered; // seconds since the last look, while lingering
	bool dirty; // in the proxy's queue of connections to pump
	bool fed_short; // TCP holds bytes that we did not take
	bool more; // the last pump left output because there was no room
};

// Sets all fields except the timer's function. The object comes from the pool.
void proxy_conn_init(
	struct proxy_conn *, struct proxy *, const struct proxy_conn_ops *, struct pool *home);
// With TLS, which begins with proxy_conn_start(). credential: an id of snapshots; server_name: that
// a client asks for, borrowed; source: a hash of the peer's address. False = the pool is exhausted.
[[nodiscard]] bool proxy_conn_secure(struct proxy_conn *, enum tls_role, uint32_t credential,
	const char *server_name, uint64_t source);
// Starts HTTP/2 on the TCP connection, behind the handshake of TLS if there is one; the silence is
// copied. Returns false if pools are exhausted: free it by proxy_conn_drop().
[[nodiscard]] bool proxy_conn_start(struct proxy_conn *, struct tcp_conn *, enum h2_role,
	const struct h2_events *, const struct lb_silence *);
// Of one that has started in plain text, and has neither been fed nor written anything: it has TLS
// after all, by a proxy_conn_secure() since.
void proxy_conn_begin_secure(struct proxy_conn *);
// How many of our resets a connection to a backend bears: less than Netty (200 in 30 s), Envoy (250
// that are half of all) and nghttp2 (1000, and 33 a second) let pass.
extern const struct gcra_limit proxy_conn_reset_limit;
// Of one that has not begun: gives back what it has of other pools.
void proxy_conn_drop(struct proxy_conn *);
// A stream of this connection is reset by us.
void proxy_conn_charge_reset(struct proxy_conn *);
// Marks the connection: its output is pumped at the end of the turn.
void proxy_conn_touch(struct proxy_conn *);
// Pumps output to TCP now.
void proxy_conn_pump(struct proxy_conn *);
void proxy_conn_arm(struct proxy_conn *, void (*fire)(struct twheel_timer *), uint64_t delay_ns);
struct proxy_conn *proxy_conn_of_timer(struct twheel_timer *);
// Looks at what the peer takes, PROXY_PATIENCE_NS after the last look. True if it stalls: some of
// what waited then still does, it took less than PROXY_LEAST_RATE, and more is left than it took.
bool proxy_conn_stalls(struct proxy_conn *);

// Output in plain text that is not with TCP yet, in bytes.
static inline size_t proxy_conn_unsealed(const struct proxy_conn *c)
{
	return c->secure ? c->secure->plain.len : 0;
}
// Output that HTTP/2 has written and the peer has not acknowledged, and that was never sent.
static inline size_t proxy_conn_left(const struct proxy_conn *c)
{
	return tcp_conn_sendq(c->tcp)->len + proxy_conn_unsealed(c);
}
static inline size_t proxy_conn_unsent(const struct proxy_conn *c)
{
	return tcp_conn_unsent(c->tcp) + proxy_conn_unsealed(c);
}
// All output that the peer has acknowledged, as TCP counts it: with what TLS adds.
static inline uint64_t proxy_conn_taken(const struct proxy_conn *c)
{
	uint64_t n = c->secure ? c->secure->n_put : c->h2 ? h2_conn_written(c->h2) : c->written;
	return n + c->n_before - tcp_conn_sendq(c->tcp)->len;
}
// Received and not read, as it lies in TCP and behind a handshake; and what is kept of a record and
// of a header that are not whole. h2 is set.
static inline size_t proxy_conn_unread(const struct proxy_conn *c)
{
	const struct proxy_secure *s = c->secure;
	size_t n = tcp_conn_unread(c->tcp) + h2_conn_unfinished(c->h2);
	if (s)
		n += s->back.len + (s->tls ? tls_conn_unfinished(s->tls) : 0);
	return n;
}
// There is room in TCP's queue for more than what waits for it.
static inline bool proxy_conn_has_room(const struct proxy_conn *c)
{
	return tcp_conn_send_room(c->tcp) > proxy_conn_unsealed(c);
}
// The byte that was the nth of HTTP/2's output, modulo 2^32, was surely not sent. With TLS that is
// known of what is not sealed.
bool proxy_conn_never_sent(const struct proxy_conn *, uint32_t nth);

// tcp_conn_ops of both kinds; user is the proxy_conn.
size_t proxy_conn_on_data(struct tcp_conn *, void *user, const uint8_t *, size_t len);
void proxy_conn_on_send_room(struct tcp_conn *, void *user);
void proxy_conn_on_eof(struct tcp_conn *, void *user);

// What TCP holds, as far as we did not take it, comes to on_data again.
void proxy_conn_resume(struct proxy_conn *);

// Ends HTTP/2: closes open streams with code (conn->h2 is NULL during their callbacks), sends what
// is queued, then close_notify of TLS, then FIN. A peer that has all of it a second later is let
// go, whether it has ended or not; one that does not take it is reset (FL-175).
void proxy_conn_over(struct proxy_conn *, enum h2_error code);
// The same when TCP is gone, or, with abort, when RST is to be sent instead of FIN.
void proxy_conn_gone(struct proxy_conn *, enum h2_error code, bool abort);
// Lets go of all that wait to send or receive FIN, or resets them, as if that second were over.
void proxy_conn_end_lingering(struct proxy *);

// Pumps every marked connection, then frees it or hands it on. Returns true if there was one.
bool proxy_conn_flush_all(struct proxy *);
