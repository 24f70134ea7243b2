// SPDX-License-Identifier: Apache-2.0
// The whole API of our TCP (RFC 9293): one stack per worker, segments in, segments out, events to
// the owner of a connection. It knows no device, mbuf or clock: segments are bytes, time comes from
// the wheel, the caller seeds randomness. Departures from the RFCs: docs/tcp.md.
// Thread: every function on the worker that owns the stack; callbacks run inside those calls.
#pragma once

#include "dataplane/buf/buf.h"
#include "lb/base/company.h"
#include "lb/base/counter.h"
#include "lb/base/ip.h"
#include "lb/base/pool.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lb_tcp_info;
struct tcp_stack;
struct tcp_conn;
struct tcp_cc_ops;

// "local" is always our side.
struct tcp_flow {
	struct ip_addr local, remote;
	uint16_t local_port, remote_port; // host order
};

// Output functions that the caller provides.
struct tcp_io {
	// Reserves len bytes (TCP header and payload) to be sent on this flow. NULL = no buffer
	// now: the stack tries again at the next flush (and asks the wheel for another turn).
	void *(*reserve)(void *ctx, const struct tcp_flow *, size_t len);
	// Sends the reserved bytes, with header and checksum filled in. Must not call the stack.
	void (*emit)(void *ctx, const struct tcp_flow *, void *segment, size_t len);
	// The MTU towards this remote: IP header, TCP header and payload. Asked again after a
	// timeout.
	uint16_t (*mtu)(void *ctx, const struct tcp_flow *);
	void *ctx;
	// As emit(), in a packet that routers may mark in place of dropping it (ECT(0), RFC 3168
	// 5). NULL = no connection uses that.
	void (*emit_ect)(void *ctx, const struct tcp_flow *, void *segment, size_t len);
};

struct tcp_conf {
	uint32_t max_conns; // control blocks of any state but TIME_WAIT
	uint32_t max_half_open; // SYN_RECEIVED at one time
	// Of max_conns, those made by peers: half-open ones and what listeners took. tcp_connect()
	// finds the others free. 0 = no bound.
	uint32_t max_passive;
	uint32_t max_time_wait; // when full, the oldest is dropped first
	// Of a connection, at first: bytes of its send queue (unacknowledged and unsent), and those
	// that we advertise, which also bound out-of-order data.
	uint32_t send_limit, recv_window;
	// What may be in flight either way in the end, if it is more: windows follow what comes in
	// a round trip, and shrink as the chunks fill.
	uint32_t window_max;
	uint8_t secret[16]; // keys sequence numbers (RFC 6528) and the connection table
	// True if packets from this flow's remote reach this stack; the choice of a local port
	// depends on it. NULL = all do.
	bool (*is_ours)(void *ctx, const struct tcp_flow *);
	void *is_ours_ctx;
	// Offers a segment of no connection and no listener to whoever else has its address. True =
	// taken, and not answered. NULL = nobody has.
	bool (*pass)(void *ctx, const struct tcp_flow *);
	void *pass_ctx;
	uint64_t seed; // of ports and jitter
	const struct tcp_cc_ops *congestion; // control of congestion (cc.h); NULL = CUBIC
	bool unpaced; // for tests: no segment waits for its time (pace.h)
	bool slow_path; // for tests: no segment takes the fast path (fast_path.c)
};

enum tcp_close_reason {
	TCP_CLOSE_DONE, // both FINs exchanged
	TCP_CLOSE_RESET, // the peer sent RST
	TCP_CLOSE_REFUSED, // RST in answer to our SYN
	TCP_CLOSE_TIMEOUT, // retransmissions or zero-window probes unanswered
	TCP_CLOSE_CONNECT_TIMEOUT, // SYN unanswered
	TCP_CLOSE_UNREACHABLE, // no route or no neighbor
	TCP_N_CLOSE_REASONS,
};
const char *tcp_close_reason_name(enum tcp_close_reason);

// Callbacks to the owner of a connection. Each may call tcp_conn_* on the connection, except
// on_closed, after which the pointer is invalid.
struct tcp_conn_ops {
	// Handshake complete (both directions).
	void (*on_established)(struct tcp_conn *, void *user);
	// In-order bytes, borrowed until return. Returns how many were consumed; the stack keeps
	// the rest, the window shrinks by it, and on_data is not called again before
	// tcp_conn_resume().
	size_t (*on_data)(struct tcp_conn *, void *user, const uint8_t *data, size_t len);
	// Acknowledgements made room in a send queue that was full, or emptied it.
	void (*on_send_room)(struct tcp_conn *, void *user);
	// The peer's FIN, after all its data was consumed. We may still send.
	void (*on_eof)(struct tcp_conn *, void *user);
	// The last event. Not called after tcp_conn_abort().
	void (*on_closed)(struct tcp_conn *, void *user, enum tcp_close_reason);
	// Nothing was heard of the peer for six seconds of repetitions, or of keepalive's
	// questions: it may be gone (RFC 9293 3.8.3, R1). Comes again with each further one. NULL =
	// not told.
	void (*on_unanswered)(struct tcp_conn *, void *user);
};

// A listener's callback for a completed handshake: sets *ret_user and returns the ops, or returns
// NULL to reset the connection. on_established is not called for it.
typedef const struct tcp_conn_ops *(*tcp_accept_fn)(void *arg, struct tcp_conn *, void **ret_user);

// Allocates all memory that the stack will ever use (see pool.h). io is copied; chunks and wheel
// are borrowed and outlive the stack. Returns NULL if out of memory.
struct tcp_stack *tcp_stack_new(
	const struct tcp_conf *, const struct tcp_io *, struct pool *chunks, struct twheel *wheel);
// Drops all connections without sending a segment and without calling on_closed.
void tcp_stack_free(struct tcp_stack *);

// Processes one segment (TCP header and payload) whose IP header was checked. The flow has its
// addresses; this sets the ports, from the segment. It checks length, checksum and options, and
// counts every drop by cause.
void tcp_stack_input(struct tcp_stack *, struct tcp_flow *flow, const uint8_t *segment, size_t len);
// The same of a segment whose packet a router has marked (CE, RFC 3168 5).
void tcp_stack_input_marked(
	struct tcp_stack *, struct tcp_flow *flow, const uint8_t *segment, size_t len);
// Whether somebody vouches for the segments that come in from now on: their checksum has been
// verified, or is not needed. At first nobody does.
void tcp_stack_set_verified(struct tcp_stack *, bool);
// The packets of what comes in from now on came within others, whose headers took so many bytes:
// who opens a connection by one hears of an MSS that leaves room for them. What we send has none.
// 0, as at first: they came by themselves.
void tcp_stack_set_overhead(struct tcp_stack *, uint32_t);
// Whether a segment may be one for this stack: of a connection that it has, or had a moment ago, or
// the beginning of one. Sets the flow's ports, as tcp_stack_input() does.
bool tcp_stack_knows(struct tcp_stack *, struct tcp_flow *flow, const uint8_t *segment, size_t len);
// What becomes of segments that belong to no connection here. At first the stack is LB_ALONE.
void tcp_stack_set_company(struct tcp_stack *, enum lb_company);
// Source ports are chosen from one of n_parts equal parts of the range only, so that no two who
// share our addresses choose the same. At first it is the whole range.
void tcp_stack_set_ports(struct tcp_stack *, uint32_t part, uint32_t n_parts);
// From now on whoever opens a connection hears nothing at all, in place of RST or SYN-ACK, and asks
// again: by then another host may have the address (FL-41). What is half open may become a
// connection still.
void tcp_stack_hush(struct tcp_stack *);
// Sends what the turn left to send: data, FINs, acknowledgements and window updates, each
// connection once. Call at the end of each turn.
void tcp_stack_flush(struct tcp_stack *);

// An ICMP unreachable or our neighbor table says that the peer is unreachable, by our segment that
// began at seq. Acts only on connections in SYN_SENT, whose SYN it must be (RFC 5927 4.1).
void tcp_stack_unreachable(struct tcp_stack *, const struct tcp_flow *, uint32_t seq);
// A router dropped our segment that began at seq, since the next link's MTU (of IP packets) is this
// (RFC 1191, RFC 8201). Believed within bounds, for the flow's connection alone, and only of what
// is outstanding (RFC 5927 4.1).
void tcp_stack_too_big(struct tcp_stack *, const struct tcp_flow *, uint32_t seq, uint32_t mtu);

#define TCP_MAX_LISTENERS 5120
// Returns 0, -EADDRINUSE or -ENOMEM (there are as many as may be).
[[nodiscard]] int tcp_listen(
	struct tcp_stack *, const struct ip_addr *, uint16_t port, tcp_accept_fn, void *arg);
// New connections get RST; existing ones stay.
void tcp_unlisten(struct tcp_stack *, const struct ip_addr *, uint16_t port);

// Active open. local_port 0 = the stack picks one (RFC 6056). timeout_ns bounds the handshake.
// Returns NULL if out of memory or without a free port. on_established or on_closed reports the
// outcome, never inside this call.
struct tcp_conn *tcp_connect(struct tcp_stack *, const struct tcp_flow *, uint64_t timeout_ns,
	const struct tcp_conn_ops *, void *user);

const struct tcp_flow *tcp_conn_flow(const struct tcp_conn *);
// The connection's send queue: append at most tcp_conn_send_room(), then tcp_conn_push().
struct buf *tcp_conn_sendq(struct tcp_conn *);
size_t tcp_conn_send_room(const struct tcp_conn *);
// What it may hold in all, now: a window that has grown lets it have more.
size_t tcp_conn_send_limit(const struct tcp_conn *);
// Those bytes of the send queue that were never sent: what is left is on its way to the peer.
size_t tcp_conn_unsent(const struct tcp_conn *);
// The smoothed round trip in ns (RFC 6298); 0 = not known yet.
uint64_t tcp_conn_round_trip_ns(const struct tcp_conn *);
// Bytes of the send queue sent in total, modulo 2^32. Valid inside on_closed, too.
uint32_t tcp_conn_n_sent(const struct tcp_conn *);
// Bytes received in order in total, modulo 2^32.
uint32_t tcp_conn_n_received(const struct tcp_conn *);
// Marks the connection for the next flush.
void tcp_conn_push(struct tcp_conn *);
// Bytes that on_data left, or that came behind them.
size_t tcp_conn_unread(const struct tcp_conn *);
// The owner can consume again: delivers stored bytes through on_data, at once or, if called inside
// on_data, when timers fire next.
void tcp_conn_resume(struct tcp_conn *);
// For on_data: the owner answers what it has taken, soon or a little later. ACKs may wait for
// answers from now on, as they do once one has gone with an answer (TCP-208): 40 ms at most.
void tcp_conn_will_answer(struct tcp_conn *);
// Queues FIN; nothing may be appended after it. Receiving goes on for as long as the peer likes:
// the owner must abort a peer that never sends its FIN.
void tcp_conn_shutdown(struct tcp_conn *);
// Sends RST and drops everything; no further event. The pointer is invalid afterwards.
void tcp_conn_abort(struct tcp_conn *);
// The same for one that is shut down and waits for the peer's FIN no longer (RFC 9293 3.6,
// FIN-WAIT-2): if the peer has acknowledged our FIN it hears nothing, and its own is acknowledged
// when it comes. Returns true then; else it was aborted.
bool tcp_conn_let_go(struct tcp_conn *);
// The same at the end of the process, where nothing of it is left to answer: if our FIN was sent,
// the peer hears no more. Returns true then; else it was aborted.
bool tcp_conn_forget(struct tcp_conn *);
// Gives up after this long without progress on outstanding data (RFC 5482); 0 = the default, 30 s.
// Where that leaves no time for four repetitions, after 15 RTO, or 100 s. A closed window does not
// count while the peer answers the probes.
void tcp_conn_set_user_timeout(struct tcp_conn *, uint64_t timeout_ns);
// Probes a peer that was silent for this long with nothing outstanding (RFC 9293 3.8.4), again as
// often or eight times in the user timeout, and gives up if it stays silent for that; 0 = off, the
// default.
void tcp_conn_set_keepalive(struct tcp_conn *, uint64_t idle_ns);

// What is known of a connection, for operators.
void tcp_conn_tell(const struct tcp_conn *, struct lb_tcp_info *ret);

// Segments and bytes received, sent, retransmitted, refused, and dropped by cause.
struct counter_set tcp_stack_counters(const struct tcp_stack *);
// Why the last segment that was dropped since the last call, or a part of it, was: the number of
// one of these counters; -1 = none was.
int tcp_stack_take_drop(struct tcp_stack *);
// From now on this byte is not 0 while there is one to tell of; the caller may set it to 0, so that
// there is none. Borrowed; until then it is a byte of the stack's own.
void tcp_stack_set_drop_mark(struct tcp_stack *, uint8_t *);
void tcp_stack_list_pools(struct tcp_stack *, struct pool_list *);
// Connections that are not in TIME_WAIT.
uint32_t tcp_stack_n_conns(const struct tcp_stack *);
