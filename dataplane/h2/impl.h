// SPDX-License-Identifier: Apache-2.0
// The structures behind h2.h and the calls between its files; only files of this folder include it.
// Thread: the worker that owns the context.
#pragma once

#include "dataplane/h2/carrier.h"
#include "dataplane/h2/counters.h"
#include "dataplane/h2/frame.h"
#include "dataplane/h2/h2.h"
#include "dataplane/h2/header.h"
#include "dataplane/h2/hpack.h"
#include "dataplane/h2/hpack_part.h"
#include "lb/base/list.h"
#include "lb/base/rand.h"

// Streams that we reset and that the peer may still be sending on (RFC 9113 5.1, "closed").
#define H2_N_RESET_IDS 32
// Limits on the encoded bytes of a header block: up to the first it is gathered and decoded whole,
// up to the second decoded in parts and dropped, so that the connection survives (CVE-2024-27919
// and similar).
#define H2_MAX_GATHERED 65536
#define H2_MAX_BLOCK (1 << 20)
// Streams that ended otherwise: enough to choose the error for a late frame.
#define H2_N_ENDED_IDS 8

enum h2_abuse {
	H2_ABUSE_RESETS, // RST_STREAM received, or sent for errors of the peer
	H2_ABUSE_ANSWERS, // control answers that pile up because the peer does not read
	H2_ABUSE_SETTINGS_ENTRIES,
	H2_ABUSE_SETTINGS,
	H2_ABUSE_CONTINUATION,
	H2_ABUSE_HEADER_BOMB,
	H2_ABUSE_EMPTY_FRAMES,
	H2_ABUSE_PRIORITY,
	H2_ABUSE_WINDOW_UPDATE,
	H2_ABUSE_INFORMATIONAL, // ends its stream alone
	H2_ABUSE_SHARED_RESETS, // as H2_ABUSE_RESETS, of all connections that share budgets
	H2_ABUSE_HEADER_BYTES,
	H2_ABUSE_SHARED_HEADER_BYTES,
	H2_ABUSE_IGNORED_FRAMES,
};

// All that is sent before anything is received: the preface, SETTINGS, and a WINDOW_UPDATE if the
// connection's window is larger than the default.
struct h2_greeting {
	uint8_t bytes[H2_PREFACE_LEN + H2_FRAME_HEAD + 6 * 3 + H2_FRAME_HEAD + 4];
	uint8_t len;
	uint32_t recv_window; // of the connection, from the start
	uint32_t stream_window; // of each stream, from the peer's ACK on
};

struct h2_context {
	struct h2_conf conf;
	struct h2_greeting greetings[2]; // by role
	struct pool *chunks; // borrowed
	const struct h2_carrier *carrier; // borrowed; NULL = none
	void *carrier_arg;
	struct pool conns, streams;
	struct h2_stream **table; // live streams by connection and id, chained
	uint32_t table_mask;
	uint64_t hash_key;
	struct rand rand;
	struct hpack_mem *hpack_mem;
	struct hpack_memo *hpack_memo;
	struct h2_block block; // the header block being decoded
	bool block_busy; // a callback has borrowed its message
	uint8_t *gathered; // H2_MAX_GATHERED bytes: a block that came in several pieces
	char *decoded; // its Huffman-decoded text
	struct field *trailers; // unpacked
	uint32_t max_fields; // of a message that we send
	uint8_t *encoded;
	char *packed; // text of the trailers
	size_t max_encoded; // of packed and encoded
	int64_t unbounded; // the allowance of connections that have no other
	uint64_t counters[H2_N_COUNTERS];
};

// The parser's position in the byte stream.
struct h2_rx {
	uint8_t head[H2_FRAME_HEAD + 6]; // frame header, pad length, priority fields
	uint8_t head_have, head_need;
	uint8_t preface_left;
	bool foreign; // bytes that are not the preface arrived
	bool in_payload;
	struct h2_frame frame;
	uint32_t left; // payload bytes left after the prefix, without padding
	uint32_t padding; // still to skip
	struct h2_stream *stream; // of the current frame; NULL if it ended meanwhile
	struct buf pending; // an incomplete frame's payload, or fragments of a header block
	uint32_t block_id; // stream of the open header block; 0 = none, CONTINUATION is an error
	uint8_t block_flags; // of its HEADERS frame
	bool block_self; // its priority depends on itself
	bool block_parted; // part of it was decoded and dropped
	uint32_t block_len, n_continuations; // so far
	struct hpack_part part; // block_parted: how far it is decoded
	struct h2_facts facts; // block_parted: what the dropped fields contained
};

// How fast a window is used (flow.c).
struct h2_pace {
	uint64_t mark_ns; // 0 = nothing is measured yet
	uint64_t mark; // bytes that had been consumed then
};

struct h2_conn {
	struct h2_context *ctx;
	const struct h2_events *events;
	struct buf *out; // borrowed
	void *user;
	void *carried; // the carrier's; NULL = this is HTTP/2
	enum h2_role role;
	struct hpack hpack;
	struct h2_rx rx;
	uint64_t hash_key;
	struct h2_stream *recent; // the live stream last looked up; NULL = none
	struct list_link streams; // all streams that the owner knows, oldest first
	// Both have body bytes. A stream on the wrong list is moved when its turn comes, so that a
	// change of the initial window need not look at any stream.
	struct list_link data_turns; // had window, or a larger initial window may give it some
	struct list_link windowless; // had no window, and no change has given it any since
	// streams with only END_STREAM or trailers left: no window needed
	struct list_link end_turns;
	struct list_link credits; // streams that must return window to the peer
	struct list_link done; // streams ended on the wire; on_closed is due
	struct list_link stalled; // streams with body bytes of which the peer takes too little
	// Flow control, RFC 9113 6.9. Signed: a SETTINGS change may take a window below zero.
	int64_t send_window, recv_window;
	// Upper bounds of send_credit, of the live streams and of those in windowless.
	int64_t most_credit, windowless_credit;
	uint32_t first_window; // what recv_window was at first
	uint32_t recv_most; // what recv_window is at most; less it: not yet returned to the peer
	uint64_t unconsumed; // received and not yet consumed by the owner
	int64_t granted; // in total, recv_window included
	struct h2_pace pace; // of what was consumed
	uint64_t queued; // in all streams' queues
	int64_t our_initial_window; // in force since the peer's ACK
	int32_t credit_step; // of the streams' initial window: so much makes a WINDOW_UPDATE due
	int32_t half_window; // of the streams' initial one
	// The peer's settings.
	uint32_t peer_initial_window, peer_max_frame, peer_max_streams;
	// Streams.
	uint32_t next_id; // client
	uint32_t last_peer_id; // server: highest seen
	uint32_t n_streams; // open on the wire
	uint32_t max_streams; // of the peer's; server
	uint32_t goaway_sent_id; // we process no stream above it
	uint32_t goaway_got_id;
	uint32_t reset_ids[H2_N_RESET_IDS], ended_ids[H2_N_ENDED_IDS]; // rings
	uint8_t reset_at, ended_at;
	uint32_t reset_forgotten; // highest id dropped from the ring
	// Abuse budgets.
	uint64_t written; // bytes written to out in total
	uint64_t room_end; // limit of `written` that the last pump's room allowed
	uint64_t answers_end; // `written` after the last control answer
	uint32_t n_answers; // control answers that out still holds
	int64_t *allowance; // borrowed; what is left for input to cost
	struct h2_budgets own, *shared; // shared: borrowed; NULL = none
	struct gcra settings, ignored;
	// Stalls (stall.c).
	uint64_t body_sent; // bytes of all streams
	uint64_t looks_since_ns; // the first of the looks that each found a waiting stream
	bool looking; // the last look found one
	uint64_t n_opened, n_data_sent, n_priority, n_window_updates;
	uint64_t n_ignored; // of those that streams allow
	uint32_t n_empty; // consecutive
	enum h2_error error;
	bool failed, settings_seen, settings_acked, goaway_sent, goaway_got;
	bool feeding, pumping;
	bool ping_out; // a PING of ours is not answered yet
	bool gave_up; // carried: what came can't be understood, and nothing more is looked at
	struct str scheme; // of carried requests that name none; "" = none are carried
};

// What is remembered of a stream's body that waits for a window, for stall.c to compare with.
struct h2_watch {
	uint64_t since_ns; // 0 = it did not wait
	uint64_t written_end; // of conn's `written`, what the peer must get first; 0 = it has
	uint64_t sent, all_sent; // body bytes of the stream and of all, then
	uint64_t queued; // body bytes
};

#define H2_PING_PAYLOAD "shunt  ?" // of the one question that is open at a time

struct h2_stream {
	struct h2_conn *conn;
	struct h2_stream *hash_next;
	void *user;
	struct list_link link; // conn->streams
	struct list_link turn; // on turn_list
	// conn's data_turns, windowless, end_turns, done, stalled, or NULL. One of windowless may
	// have been moved to data_turns with all the others.
	struct list_link *turn_list;
	struct list_link credit; // conn->credits
	struct buf out; // body
	struct buf trailers; // packed fields, sent after the body
	// Its windows without the initial windows, which the connection holds, so that a change of
	// those costs nothing here.
	int64_t send_credit, recv_credit;
	uint64_t body_sent; // bytes
	struct h2_watch watch;
	int32_t unannounced; // to be returned to the peer; below 0: its window is to shrink
	int32_t ahead; // by so much its window is to be larger than the initial one
	uint64_t unconsumed; // delivered and not yet consumed
	struct h2_pace pace; // of what was consumed
	int64_t content_length; // announced by the peer, -1 = unknown
	int64_t received; // body bytes
	uint32_t id;
	uint16_t n_informational;
	bool live; // in the table, open on the wire
	bool closing; // on_closed is running
	bool malformed; // ended for an error of the peer
	bool too_large; // that error was a header block too large
	bool got_head; // client: the final response's header block arrived
	bool got_end;
	bool end_queued; // the owner sends nothing more
	bool sent_end;
	bool has_trailers;
	bool is_head, is_connect, is_grpc; // of the request
};

static inline void h2_count(struct h2_context *ctx, enum h2_counter counter)
{
	counter_add(&ctx->counters[counter], 1);
}

static inline uint64_t h2_now(const struct h2_context *ctx)
{
	return ctx->conf.now_ns ? *ctx->conf.now_ns : 0;
}

// The windows of RFC 9113 6.9.1. A change of the initial window may take them below zero (6.9.2).
static inline int64_t h2_send_window(const struct h2_stream *s)
{
	return s->conn->peer_initial_window + s->send_credit;
}

static inline int64_t h2_recv_window(const struct h2_stream *s)
{
	return s->conn->our_initial_window + s->recv_credit;
}

// What the context's bounds are for it now, before anything is received.
static inline void h2_set_bounds(struct h2_conn *c)
{
	uint32_t window = c->ctx->greetings[c->role].recv_window;
	c->first_window = window;
	c->recv_most = window;
	c->recv_window = window;
	c->granted = window;
	c->max_streams = c->ctx->conf.max_concurrent_streams;
}

// For a GOAWAY: the last stream that we may have processed. It never grows.
static inline uint32_t h2_goaway_id(const struct h2_conn *c)
{
	return c->last_peer_id < c->goaway_sent_id ? c->last_peer_id : c->goaway_sent_id;
}

// wire.c: writes frames into the connection's output. False = out of memory, nothing written; the
// connection has then failed, since the peer would miss the frame.
bool h2_put_frame(struct h2_conn *, uint8_t type, uint8_t flags, uint32_t id, const void *payload,
	size_t len);
void h2_put_rst(struct h2_conn *, uint32_t id, enum h2_error code);
bool h2_put_window_update(struct h2_conn *, uint32_t id, uint32_t increment);
void h2_put_goaway(struct h2_conn *, uint32_t last_id, enum h2_error code);
// Writes what a connection begins with. It is built once per role by the first. False = out of
// memory, nothing written.
void h2_greeting_pack(struct h2_greeting *, const struct h2_conf *, enum h2_role);
bool h2_put_greeting(struct h2_conn *);
// Sends a DATA frame (RFC 9113 6.1) and charges the windows. data NULL = from the stream's queue.
// False = out of memory, nothing written, and the connection goes on.
bool h2_put_data(struct h2_stream *, const uint8_t *data, size_t len, bool end);
// A connection error (RFC 9113 5.4.1): queues GOAWAY; nothing is sent after it.
void h2_conn_fail(struct h2_conn *, enum h2_error code);

// What a frame costs, or a piece of a carried body (h2_conn_set_allowance()).
#define H2_WORK_FRAME 512

// carrier.c: on a connection that is carried.
size_t h2_carrier_feed(struct h2_conn *, const uint8_t *, size_t len);
void h2_carrier_drain(struct h2_conn *, enum h2_error code);
void h2_carrier_free(struct h2_conn *);

// carrier_out.c: likewise, instead of the calls above.
__attribute__((cold)) bool h2_carrier_put_message(
	struct h2_stream *, const struct h2_message *, bool end_stream);
__attribute__((cold)) bool h2_carrier_put_data(
	struct h2_stream *, const uint8_t *data, size_t len, bool end);
void h2_carrier_reset(struct h2_conn *, enum h2_error code);
// What the client may wait for before it sends its body.
void h2_carrier_put_100(struct h2_conn *);
// No error: all that there was to answer is answered.
void h2_carrier_end(struct h2_conn *);

// message.c
bool h2_put_message(struct h2_stream *, const struct h2_message *, bool end_stream);
bool h2_pack_trailers(struct h2_stream *, const struct h2_message *);
bool h2_put_packed_trailers(struct h2_stream *);

// stream.c
struct h2_stream *h2_stream_new(struct h2_conn *, uint32_t id);
struct h2_stream *h2_stream_find(struct h2_conn *, uint32_t id);
// Calls on_closed and frees the stream.
void h2_stream_close(struct h2_stream *, enum h2_error code, bool by_peer, bool unprocessed);
// The peer's error on one stream (RFC 9113 5.4.2): sends RST_STREAM and closes the stream.
void h2_stream_fail(struct h2_stream *, enum h2_error code);
// The same without a stream: sends RST_STREAM, and later frames are ignored.
void h2_stream_refuse(struct h2_conn *, uint32_t id, enum h2_error code, bool charge);
// Both sides have ended it: takes it off the wire; on_closed follows in the next pump.
void h2_stream_check_done(struct h2_stream *);
// Moves it to the list where it belongs now.
void h2_stream_schedule(struct h2_stream *);
enum h2_past { H2_PAST_RESET, H2_PAST_ENDED, H2_PAST_NEVER };
// How a stream ended; NEVER = its id was skipped.
enum h2_past h2_stream_past(const struct h2_conn *, uint32_t id);
// True if the id was never opened so far.
bool h2_id_idle(const struct h2_conn *, uint32_t id);

// preface.c: consumes bytes of an incomplete client preface, or of what another protocol carries.
// Returns how many; 0 = it holds.
size_t h2_preface_feed(struct h2_conn *, const uint8_t *, size_t len);

// feed.c
// True if no payload of the frame is left to process.
static inline bool h2_rx_at_end(const struct h2_rx *rx)
{
	return rx->in_payload && rx->left + rx->padding == 0;
}

// flow.c
// Accounts for a DATA frame's payload (with padding). False = the connection has failed.
bool h2_flow_receive(struct h2_conn *, uint32_t len);
void h2_flow_delivered(struct h2_stream *, uint32_t len);
void h2_flow_consumed(struct h2_stream *, size_t len);
// Our INITIAL_WINDOW_SIZE is in force, or not yet.
void h2_flow_set_our_initial(struct h2_conn *, uint32_t size);
void h2_flow_window_update(struct h2_conn *, uint32_t id, uint32_t increment);
// Applies a change of the peer's INITIAL_WINDOW_SIZE. False = a window overflows.
bool h2_flow_set_peer_initial(struct h2_conn *, uint32_t size);
// True if WINDOW_UPDATEs are due.
bool h2_flow_owes(const struct h2_conn *);
// Writes the WINDOW_UPDATEs that are due, within *room. False = more wait for room.
bool h2_flow_announce(struct h2_conn *, size_t *room);

// settings.c
void h2_settings_received(struct h2_conn *, const uint8_t *payload, size_t len);
void h2_settings_acked(struct h2_conn *);

// receive.c: complete frames and header blocks
void h2_receive_frame(struct h2_conn *, const uint8_t *payload);
void h2_receive_block(struct h2_conn *, const uint8_t *last_piece, size_t len);
// Decodes the gathered part of a block that is too large to be gathered whole. False = the
// connection has failed.
bool h2_receive_part(struct h2_conn *);
// The block exceeds H2_MAX_BLOCK: ends its stream and the connection.
void h2_receive_excess(struct h2_conn *, enum h2_abuse);

// abuse.c: true = within budget; false = the connection has failed (ENHANCE_YOUR_CALM).
bool h2_abuse_charge_reset(struct h2_conn *);
bool h2_abuse_charge_settings(struct h2_conn *);
bool h2_abuse_answer(struct h2_conn *);
bool h2_abuse_empty(struct h2_conn *, bool empty);
bool h2_abuse_priority(struct h2_conn *);
bool h2_abuse_window_update(struct h2_conn *);
// A frame that asks for nothing and tells nothing.
bool h2_abuse_ignored(struct h2_conn *);
// A header block of `len` encoded bytes is a list of list_bytes (RFC 9113 6.5.2).
bool h2_abuse_header(struct h2_conn *, uint64_t list_bytes, uint64_t len);
void h2_abuse_fail(struct h2_conn *, enum h2_abuse);
