// SPDX-License-Identifier: Apache-2.0
// The types that the files of this folder share (stack, control block), and the calls between them.
// Thread: the owning worker.
#pragma once

#include "dataplane/tcp/cc.h"
#include "dataplane/tcp/counters.h"
#include "dataplane/tcp/opt.h"
#include "dataplane/tcp/seq.h"
#include "dataplane/tcp/tcp.h"
#include "dataplane/tcp/wire.h"
#include "lb/base/check.h"
#include "lb/base/gcra.h"
#include "lb/base/list.h"
#include "lb/base/min.h"
#include "lb/base/rand.h"
#include "lb/base/siphash.h"
#include "lb/base/time.h"

#define TCP_RTO_INITIAL (1 * NS_PER_SECOND) // RFC 6298 2.1
#define TCP_RTO_AFTER_SYN_LOSS (3 * NS_PER_SECOND) // RFC 6298 5.7
#define TCP_RTO_MIN (200 * NS_PER_MS) // RFC 6298 2.4 says 1 s; docs/tcp.md says why not
#define TCP_RTO_MAX (60 * NS_PER_SECOND)
#define TCP_DELAYED_ACK (40 * NS_PER_MS)
#define TCP_QUICK_ACK NS_PER_MS // at the start
#define TCP_QUICK_ACKS 16 // of quick_acks; at the start with a flag
#define TCP_QUICK_START 0x80
#define TCP_MAX_ACK_DELAY (50 * NS_PER_MS) // longer than peers delay an ACK
#define TCP_TIME_WAIT_NS (60 * NS_PER_SECOND) // 2 MSL
#define TCP_TIME_WAIT_REUSE_NS NS_PER_SECOND // then we may open anew, as in Linux
#define TCP_HALF_OPEN_NS (15 * NS_PER_SECOND) // SYN sent at 0, 1, 3 and 7 s
#define TCP_USER_TIMEOUT (30 * NS_PER_SECOND)
#define TCP_PATIENCE_RTOS 15 // 1 + 2 + 4 + 8: four repetitions have had their time
#define TCP_PATIENCE_MAX (100 * NS_PER_SECOND) // of that: peers choose RTO (RFC 9293 3.8.3, R2)
#define TCP_HOLE_NS (30 * NS_PER_SECOND) // until what lies beyond a hole is dropped, unless so many
#define TCP_HOLE_LEAST 3000 // bytes came before it meanwhile
#define TCP_CHALLENGE_NS (500 * NS_PER_MS) // one challenge ACK per connection in this time
#define TCP_ANSWER_PLACES 64 // power of two; sources share them by a keyed hash
#define TCP_MSS_DEFAULT 536 // RFC 9293 3.7.1
#define TCP_MSS_DEFAULT6 1220 // likewise, of IPv6
#define TCP_MSS_FLOOR 64 // of what a peer may ask for
// Holes that one connection may have in what it received: each pins a chunk, all together as much
// as a window.
#define TCP_MAX_RANGES 128
#define TCP_FEW_RANGES 32 // beyond, only half a segment or more is worth one
#define TCP_MAX_RUNS 512 // of what one connection has outstanding
#define TCP_OWN_RUNS 2 // of these, sure for each connection
#define TCP_RUN_SHIFT 6 // what leaves within a 64th of a round trip is one run
#define TCP_MAX_BURST 64 // segments of one connection in one flush

enum tcp_state {
	// Stands for all states of RFC 9293 after the handshake, together with the flags shut,
	// fin_acked and fin_received (docs/tcp.md has the table). Zero, for `rare` of struct
	// tcp_conn.
	TCP_OPEN,
	TCP_SYN_SENT,
	TCP_SYN_RECEIVED,
};

enum tcp_timer {
	TCP_TIMER_RTX, // retransmission, or probe of a zero window
	TCP_TIMER_ACK,
	TCP_TIMER_REORDER, // what is missing is late now, not out of order
	TCP_TIMER_KEEPALIVE,
	TCP_TIMER_PATIENCE, // the time limit for reaching TCP_OPEN; then for filling a hole
	TCP_TIMER_RESUME, // tcp_conn_resume() was called inside on_data
	TCP_TIMER_PACE, // the next burst may leave
	TCP_N_TIMERS,
};

// Bytes received beyond a hole; pooled.
struct tcp_range {
	struct tcp_range *next; // higher sequence number
	uint32_t seq;
	uint32_t stamp; // grows with each arrival: the latest is reported first
	bool reported; // in a SACK block since it last changed
	struct buf data;
};

#define TCP_RUN_SACKED 1 // the peer reported that it has it
#define TCP_RUN_LOST 2 // taken for lost, and not sent since
#define TCP_RUN_AGAIN 4 // sent more than once

// Bytes outstanding that were sent at about one time, and what became of them (sent.c).
struct tcp_run {
	struct tcp_run *next; // in a ring of the pooled ones; of the connection's last: the newest
	uint64_t sent_ns; // the last time
	uint32_t seq; // up to the next one's
	uint8_t fate; // TCP_RUN_*
	uint8_t n_segments; // of a reported one: at least so many
};

// After a timeout (RFC 5682 3.1).
enum tcp_frto {
	TCP_FRTO_OFF,
	TCP_FRTO_REPEATED, // the oldest segment, and nothing came yet
	TCP_FRTO_NEW, // the next ones are new, not repeated
};

// The fields that a segment touches on a plain connection come first, in the order of use; those
// for handshakes, losses and closing follow.
struct tcp_conn {
	struct tcp_stack *stack;
	struct tcp_conn *hash_next;
	uint32_t hash;
	struct tcp_flow flow;
	const struct tcp_conn_ops *ops; // NULL: no owner yet

	// All zero = a plain connection: open, nothing lost, out of order, held back or closing.
	// Its segments may take the fast path (fast_path.c).
	union {
		struct {
			uint8_t state : 7; // enum tcp_state
			uint8_t has_lost : 1; // lost_bytes is not zero
			uint8_t n_backoff; // doublings of the retransmission timeout
			uint8_t n_dup_acks;
			uint8_t n_dup_acks_due; // that the next flush must send (RFC 5681 4.2)
			uint8_t n_ranges; // stored out-of-order ranges
			bool dead : 1; // removed from owner and table
			bool syn_due : 1; // SYN or SYN-ACK at the next flush
			bool probe_due : 1; // a byte into the zero window must be sent
			bool rtx_due : 1; // the oldest segment must be sent again
			bool keepalive_due : 1;
			bool sack_due : 1; // ACKs that report all out-of-order data
			bool dsack_due : 1;
			bool tail_probe_due : 1;
			bool tail_probe_out : 1; // sent, and tail_end is not acknowledged yet
			bool in_recovery : 1;
			bool in_loss : 1; // a timeout's repetitions are not all acknowledged
			bool has_reports : 1; // the peer reported data beyond a hole
			bool paused : 1; // the owner consumed less than it was given
			bool shut : 1; // the owner appends nothing more: FIN follows the queue
			bool fin_sent : 1; // at least once
			bool fin_acked : 1;
			bool fin_seen : 1; // the peer's FIN is at fin_seq, perhaps beyond a hole
			bool fin_received : 1; // everything up to the peer's FIN was received
			bool eof_told : 1;
			bool no_time_wait : 1; // the peer closed first
			bool slow_path : 1; // as tcp_conf says
			bool guessed_path : 1; // path_guess bounds its segments (mss.c)
			bool ecn_echo : 1; // every ACK says that a packet was marked (ecn.c)
			bool cwr_due : 1; // the next new data says that cwnd was reduced
		};
		uint64_t rare;
	};
	bool ts_on : 1;
	bool sack_on : 1;
	bool wscale_on : 1;
	bool ack_due : 1; // send an ACK at the next flush, even if nothing else is sent
	bool delivering : 1; // in on_data
	bool resume_asked : 1; // in on_data
	bool cwnd_limited : 1; // cwnd held back what would have followed limited_seq
	bool cwnd_used : 1; // in slow start, and more than half of cwnd was in flight
	bool timing : 1; // the SYN's round trip is being measured
	// the next expiry of the retransmission timer is a tail loss probe
	bool tail_probe_next : 1;
	bool tail_probe_old : 1; // it repeated old data
	bool passive : 1; // made by a listener
	bool told : 1; // the owner has been told that it is open
	bool syn_sent : 1; // at least once
	bool ecn_on : 1; // both ends know RFC 3168
	bool other_window : 1; // ours is not conf.recv_window, but tcp_window_other()
	uint8_t n_held; // calls that still use the control block: the last one to return frees it
	uint8_t n_unacked; // data segments since our last ACK
	uint8_t snd_wscale : 4, rcv_wscale : 4;
	uint8_t header_len; // of a segment with data: with timestamps, if they are on
	uint16_t flow_sum; // tcp_csum_flow() of its addresses
	uint16_t mss; // payload of a full segment, options accounted for
	uint16_t our_mss; // the one that we offered
	uint8_t quick_acks; // so many of our next ACKs are not delayed, or less (recv.c)
	uint8_t haste; // > 0: a lone segment's tail probe waits for no delayed ACK (ack.c)

	uint32_t rcv_nxt;
	uint32_t rcv_adv; // right edge of the window announced; never moves back
	uint32_t rcv_acked; // the last acknowledgement that we sent
	uint32_t ts_recent;
	uint32_t ts_offset; // of our own clock
	// Sequence number of sendq's first byte = snd_una, once open.
	uint32_t snd_una;
	uint32_t snd_nxt; // next to send; returns to snd_una at a timeout
	uint32_t snd_max; // highest sent + 1
	uint32_t snd_wnd, max_snd_wnd;
	uint32_t snd_wl1, snd_wl2;
	uint32_t recover; // RFC 6582: last byte sent when recovery began
	uint32_t min_rtt_ns; // UINT32_MAX = none yet, or longer

	void *user;
	struct buf sendq;
	struct buf_cursor cursor; // of snd_nxt in sendq
	struct list_link dirty; // in stack->dirty while something must be sent

	struct tcp_run last; // of the log of what was sent
	uint64_t heard_ns; // when the peer's last segment arrived
	uint64_t progress_ns; // when outstanding data was last acknowledged
	uint64_t srtt_ns, rttvar_ns, rto_ns;
	uint64_t user_timeout_ns;
	struct twheel_timer timer; // set to the earliest deadline or before it
	uint64_t deadlines[TCP_N_TIMERS]; // 0 = not running
	struct tcp_cc cc; // plain segments read cwnd alone

	// Rarely used.
	uint64_t challenge_ns; // when the next challenge ACK is allowed
	uint64_t keepalive_ns; // 0 = off
	uint64_t pace_ns; // when what was sent has left at the rate of pacing
	struct buf recvq; // in order, not consumed yet; only while paused
	struct tcp_range *ranges; // out-of-order data, ascending, with holes between
	struct tcp_sack_block dsack; // data received twice (RFC 2883)
	uint64_t rcv_mark_ns; // when rcv_nxt was rcv_mark: measures what comes in a round trip
	uint32_t rcv_mark, n_rcv_wraps; // how often 2^32 bytes have come before it
	uint32_t n_resent; // segments
	uint32_t rcv_wnd; // what we advertise while the owner takes all and there are chunks
	uint32_t range_stamp;
	uint32_t hole_mark; // rcv_nxt when TCP_TIMER_PATIENCE was set
	uint32_t sacked_bytes, lost_bytes; // of the runs with that fate
	uint64_t rack_ns; // RFC 8985 5.3: of what was sent last of all that arrived; when that was
	uint64_t rack_rtt_ns; // how long it took
	uint32_t rack_end; // where it ended
	uint32_t dsack_round_end;
	uint64_t min_rtt_since_ns; // no smaller round trip counts that ended before
	uint64_t reduced_ns; // when a loss or a mark last reduced cwnd
	uint64_t tail_ns; // when the tail probe was sent
	uint64_t resent_ns; // the first repetition since may_undo; 0 = none
	uint32_t resent_seq, resent_end; // the first and behind the last of what was repeated since
	uint32_t undo_bytes; // of it, not reported to have come twice
	uint32_t undo_until; // a DSACK counts no longer when snd_una is beyond
	uint32_t prr_delivered, prr_out, prr_flight; // RFC 9937 6; the last is its RecoverFS
	bool reordering_seen : 1; // RFC 8985 6.2
	bool dsack_round : 1; // a DSACK has widened the window of reordering until dsack_round_end
	bool may_undo : 1; // the last recovery or timeout may still turn out needless
	bool timed_out : 1; // it was a timeout
	bool reduced_by_mark : 1; // cwnd, the last time
	bool marked_since : 1; // a mark came in the repair, or right after cwnd was reduced
	uint8_t frto : 2; // enum tcp_frto
	uint16_t n_runs; // pooled ones
	uint8_t reo_wnd_more; // quarters of a round trip beside the first one
	uint8_t reo_wnd_persist; // recoveries until that is forgotten
	uint32_t tail_end; // end of the data that the tail probe repeated or sent
	uint32_t limited_seq; // SND.NXT when cwnd was last the limit, or used_flight set
	uint32_t fin_seq, iss, irs;
	uint16_t peer_mss, path_mss; // the latter as a router told; 0 = none did
	// While guessed_path: what passes, and what did not (0 = not known), both of MSS; the
	// length of the probe that is out (0 = none is), its end, and when the next one may go.
	uint16_t path_guess, path_failed, path_probe;
	uint16_t used_flight; // while cwnd_used: the most that was in flight, in segments
	uint32_t path_probe_end, path_at_ms;
	uint32_t used_ms; // tcp_ts_now() when cwnd was last the limit, or a burst took half of it
};

_Static_assert(offsetof(struct tcp_conn, n_held) == offsetof(struct tcp_conn, rare) + 10,
	"rare holds all that is beside it");
_Static_assert(offsetof(struct tcp_conn, cc.ssthresh) <= 6 * 64,
	"a plain connection's segment touches six lines");
_Static_assert(sizeof(struct tcp_conn) <= 704, "one is there for each idle connection");

struct tcp_listener {
	struct tcp_listener *next; // in its bucket, or in the free list
	struct ip_addr ip;
	uint16_t port;
	tcp_accept_fn accept;
	void *arg;
};

#define TCP_LISTENER_BUCKETS 4096

struct tcp_tw;

struct tcp_stack {
	struct tcp_conf conf;
	struct tcp_io io;
	struct pool *chunks; // borrowed
	struct twheel *wheel; // borrowed
	struct pool conns, ranges, tws, runs;
	struct sip key; // sip_init() of the secret
	struct tcp_conn **table; // owned; chains by hash
	struct tcp_tw **tw_table; // owned
	struct tcp_conn **recent; // owned; each entry is a connection of the table, or NULL
	uint64_t recent_key; // odd
	unsigned recent_shift;
	uint32_t table_mask, tw_mask;
	struct gcra answers[TCP_ANSWER_PLACES]; // to segments without a connection, by source
	struct list_link dirty;
	struct list_link tw_order;
	struct twheel_timer tw_timer;
	struct twheel_timer again; // causes another turn when a flush left work over
	void (*expire)(struct twheel_timer *); // callback of each connection's timer
	struct rand rand;
	uint32_t next_port, first_port, n_ports; // of those that we choose
	uint32_t n_conns, n_passive, n_half_open;
	uint64_t range_bytes; // of chunks in the ranges of all connections
	uint64_t cookies_until_ns; // ACKs with a SYN cookie are accepted until then
	uint8_t rcv_wscale;
	bool verified; // see tcp_stack_set_verified()
	uint32_t overhead; // see tcp_stack_set_overhead()
	enum lb_company company;
	bool hushed; // see tcp_stack_hush()
	uint8_t *dropped; // enum tcp_counter: why the last segment was; 0 = none, see take_drop()
	uint8_t own_dropped; // see tcp_stack_set_drop_mark()
	struct tcp_listener listeners[TCP_MAX_LISTENERS];
	unsigned n_listeners; // listeners ever in use
	struct tcp_listener *free_listeners; // of those, the unused ones
	struct tcp_listener *listener_buckets[TCP_LISTENER_BUCKETS];
	uint64_t counters[TCP_N_COUNTERS];
};
_Static_assert(TCP_segments_in == 0 && TCP_N_COUNTERS <= UINT8_MAX, "dropped");

// One parsed segment.
struct tcp_seg {
	uint32_t seq, ack;
	uint32_t wnd; // as in the header
	uint32_t len; // of data
	uint8_t flags;
	bool old; // repeated or overtaken: only its acknowledgement counts
	bool marked; // by a router: CE
	const uint8_t *data;
	struct tcp_opts opts;
};

static inline void tcp_count(struct tcp_stack *s, enum tcp_counter what)
{
	counter_add(&s->counters[what], 1);
}

// The segment that is looked at, or a part of it, goes no further.
static inline void tcp_drop(struct tcp_stack *s, enum tcp_counter why)
{
	tcp_count(s, why);
	*s->dropped = (uint8_t)why;
}

static inline uint64_t tcp_now(const struct tcp_stack *s)
{
	return twheel_now(s->wheel);
}

// The congestion control of all connections of the stack.
static inline const struct tcp_cc_ops *tcp_cc_ops(const struct tcp_conn *c)
{
	return c->stack->conf.congestion;
}

// Bytes of sendq sent since snd_una fell back or moved on.
static inline uint32_t tcp_sent(const struct tcp_conn *c)
{
	return min_u32(c->snd_nxt - c->snd_una, (uint32_t)c->sendq.len);
}

_Static_assert(TWHEEL_NS_PER_TICK == NS_PER_MS, "the clock of timestamps ticks once a millisecond");

static inline uint32_t tcp_ts_now(const struct tcp_conn *c)
{
	return (uint32_t)twheel_now_tick(c->stack->wheel) + c->ts_offset; // milliseconds
}

// The control block is freed only after every holder has released it.
static inline void tcp_conn_hold(struct tcp_conn *c)
{
	c->n_held++;
}

static inline void tcp_conn_unhold(struct tcp_conn *c)
{
	DCHECK(c->n_held > 0);
	if (--c->n_held == 0 && c->dead)
		pool_put(&c->stack->conns, c);
}

// Marks it for the next flush.
static inline void tcp_conn_mark_dirty(struct tcp_conn *c)
{
	if (!list_linked(&c->dirty))
		list_append(&c->stack->dirty, &c->dirty);
}

// Data or FIN not sent yet.
static inline bool tcp_output_pending(const struct tcp_conn *c)
{
	uint32_t queued = (uint32_t)c->sendq.len + (c->shut && !c->fin_acked ? 1 : 0);
	return c->snd_nxt - c->snd_una < queued;
}

// conn.c: the life of a control block.
// Returns NULL if out of memory. In no table, without an owner; iss is set, the caller sets state
// and all other sequence numbers.
struct tcp_conn *tcp_conn_new(struct tcp_stack *, const struct tcp_flow *, uint32_t hash);
// Takes sequence number and window of the peer's SYN, and what its options negotiate.
void tcp_conn_take_syn(struct tcp_conn *, const struct tcp_seg *);
// Closes it and calls on_closed, if it has an owner.
void tcp_conn_close(struct tcp_conn *, enum tcp_close_reason);
// Are both FINs acknowledged, and has the owner read everything? Asked wherever ack.c or recv.c may
// have caused that; then tcp_conn_finish() moves it to TIME_WAIT or frees it.
static inline bool tcp_conn_is_done(const struct tcp_conn *c)
{
	return c->fin_acked && c->eof_told;
}
void tcp_conn_finish(struct tcp_conn *);
// Leaves the table and releases everything, without a callback.
void tcp_conn_drop(struct tcp_conn *);

// table.c: lookup, ports and sequence numbers, all keyed by the secret.
uint32_t tcp_flow_hash(const struct tcp_stack *, const struct tcp_flow *);
bool tcp_flow_eq(const struct tcp_flow *, const struct tcp_flow *);
struct tcp_conn *tcp_table_find(const struct tcp_stack *, const struct tcp_flow *, uint32_t hash);
// The same for segments: looks first among recently used connections. *ret_hash is the flow's.
struct tcp_conn *tcp_conn_find(
	const struct tcp_stack *, const struct tcp_flow *, uint32_t *ret_hash);
void tcp_table_add(struct tcp_conn *);
void tcp_table_remove(struct tcp_conn *);
// Initial numbers of a connection: halves of one hash, so that neither reveals the other.
struct tcp_start {
	uint32_t isn; // RFC 6528
	uint32_t ts_offset; // of our clock (RFC 7323 5.4); constant per flow
};
struct tcp_start tcp_start_of(const struct tcp_stack *, const struct tcp_flow *);
uint32_t tcp_cookie_hash(
	const struct tcp_stack *, const struct tcp_flow *, uint32_t peer_isn, uint32_t what);
// True if neither a connection nor a TIME_WAIT record has the flow; *ret_hash is its
// tcp_flow_hash().
bool tcp_flow_is_free(const struct tcp_stack *, const struct tcp_flow *, uint32_t *ret_hash);
// RFC 6056: sets the local port to one for which the flow is free. False = there is none.
bool tcp_pick_port(struct tcp_stack *, struct tcp_flow *, uint32_t *ret_hash);

// listen.c
struct tcp_listener *tcp_listener_find(struct tcp_stack *, const struct ip_addr *, uint16_t port);
// iss_floor: RFC 6191's lower bound of our sequence number, or NULL.
void tcp_listener_syn(struct tcp_stack *, const struct tcp_flow *, uint32_t hash,
	const struct tcp_seg *, const uint32_t *iss_floor);
// An ACK to a listener that belongs to no connection: true = it carries a valid SYN cookie.
bool tcp_listener_is_cookie(struct tcp_stack *, const struct tcp_flow *, const struct tcp_seg *);
// The same, and it was accepted.
bool tcp_listener_cookie(
	struct tcp_stack *, const struct tcp_flow *, uint32_t hash, struct tcp_seg *);
// The handshake of a passive connection completed. False = the connection is closed.
bool tcp_listener_accept(struct tcp_conn *);

// input.c
void tcp_conn_input(struct tcp_conn *, struct tcp_seg *);

// recv.c: data and FIN of a segment that was trimmed to the window.
// *ret_twice, empty before, becomes the first part that was here already, beyond a hole.
void tcp_recv_input(struct tcp_conn *, const struct tcp_seg *, struct tcp_sack_block *ret_twice);
// Delivers bytes at rcv_nxt, within the window, to an owner that has all bytes before them.
void tcp_recv_in_order(struct tcp_conn *, const uint8_t *data, uint32_t len);
void tcp_recv_ack_late(struct tcp_conn *); // TCP_TIMER_ACK fired
// Gives the owner stored bytes. False = it takes none, or is in on_data. The caller holds it.
bool tcp_recv_resume(struct tcp_conn *);
uint32_t tcp_recv_edge(const struct tcp_conn *); // right edge of the window that we can offer now

// window.c: how large windows and queues are.
#define TCP_MEASURE_SHIFT 16 // what was received is measured so often: each 64 KiB
void tcp_window_init(struct tcp_conn *); // the peer's SYN has been taken
void tcp_window_measure(struct tcp_conn *); // data was received: the window may grow
uint32_t tcp_window_other(const struct tcp_conn *); // our window, when other_window is set
size_t tcp_window_send_limit(const struct tcp_conn *); // bytes that the send queue may have

// ecn.c: marks of congestion.
uint8_t tcp_ecn_of_syn(const struct tcp_conn *); // flags of our SYN or SYN-ACK
void tcp_ecn_take_syn(struct tcp_conn *, const struct tcp_seg *syn);
void tcp_ecn_data(struct tcp_conn *, const struct tcp_seg *); // it lies in the window
void tcp_ecn_ack(struct tcp_conn *, const struct tcp_seg *); // before its ACK is taken

// output.c
enum tcp_output_result {
	TCP_OUTPUT_DONE,
	TCP_OUTPUT_MORE, // the burst limit is reached, something is left
	TCP_OUTPUT_BLOCKED, // no buffer, something is left
};
enum tcp_output_result tcp_output(struct tcp_conn *);
// Reports at once what came out of order or twice, before the turn ends; nothing without a buffer.
void tcp_output_blocks(struct tcp_conn *);
// Takes one of the answers that this source may have now to segments without a connection. False =
// counted.
bool tcp_may_answer(struct tcp_stack *, const struct ip_addr *remote);
// Segments without a connection. A RST in answer to a segment (RFC 9293 3.10.7.1):
void tcp_output_rst_reply(struct tcp_stack *, const struct tcp_flow *, const struct tcp_seg *);
void tcp_output_rst(struct tcp_conn *);
void tcp_output_raw(struct tcp_stack *, const struct tcp_flow *, const struct tcp_seg *);

// fast_path.c: as the slow path; len: a header at least. False = nothing was done: take that one.
bool tcp_fast_path_input(struct tcp_conn *, const uint8_t *segment, size_t len);
bool tcp_fast_path_output(struct tcp_conn *, enum tcp_output_result *ret); // for tcp_output()
// Sends len > 0 bytes from snd_nxt, on a plain connection with snd_nxt = snd_max; the timer is the
// caller's. False = no buffer.
bool tcp_fast_path_send(struct tcp_conn *, uint32_t len);

// timer.c
void tcp_timer_set(struct tcp_conn *, enum tcp_timer, uint64_t at_ns);
void tcp_timer_stop(struct tcp_conn *, enum tcp_timer);
void tcp_timer_excuse(struct tcp_conn *, enum tcp_timer); // its deadline passed unseen (TCP-210)
void tcp_rtx_start(struct tcp_conn *); // from now
// How long it waits for a peer that says nothing: the user timeout, or longer on a slow path.
uint64_t tcp_patience(const struct tcp_conn *);
void tcp_expire_fire(struct twheel_timer *); // expire.c: what a connection's deadlines bring
