// SPDX-License-Identifier: Apache-2.0
// HTTP/2 (RFC 9113), both roles, on bytes: feed received bytes, pump output. It knows no TCP, no
// proxy and no clock but the wheel; the owner handles timeouts. A connection never outlives its
// context; a stream pointer is valid until its on_closed.
// Thread: the worker that owns the context. Callbacks run inside feed(), pump() and lost().
// Memory: only from the context's pools; nothing calls malloc after h2_context_new().
#pragma once

#include "dataplane/buf/buf.h"
#include "lb/base/counter.h"
#include "lb/base/field.h"
#include "lb/base/gcra.h"
#include "lb/base/pool.h"
#include "lb/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct h2_context; // a worker's pools, HPACK memory, limits, counters
struct h2_conn;
struct h2_stream;

// RFC 9113 7
enum h2_error {
	H2_NO_ERROR = 0,
	H2_PROTOCOL_ERROR = 1,
	H2_INTERNAL_ERROR = 2,
	H2_FLOW_CONTROL_ERROR = 3,
	H2_SETTINGS_TIMEOUT = 4,
	H2_STREAM_CLOSED = 5,
	H2_FRAME_SIZE_ERROR = 6,
	H2_REFUSED_STREAM = 7,
	H2_CANCEL = 8,
	H2_COMPRESSION_ERROR = 9,
	H2_CONNECT_ERROR = 10,
	H2_ENHANCE_YOUR_CALM = 11,
	H2_INADEQUATE_SECURITY = 12,
	H2_HTTP_1_1_REQUIRED = 13,
};

// What connections that share budgets may cost together; all zero = full budgets. abuse.c has the
// limits.
enum h2_budget {
	H2_BUDGET_RESETS, // events
	H2_BUDGET_HEADER_BYTES, // of decoded header lists, beyond what was sent for them
	H2_N_BUDGETS
};
struct h2_budgets {
	struct gcra of[H2_N_BUDGETS];
};

// Bytes that a stream takes in the context's pool.
#define H2_STREAM_SIZE 272

enum h2_role { H2_SERVER, H2_CLIENT };

struct h2_conf {
	uint32_t max_conns, max_streams; // of the whole context
	uint32_t max_concurrent_streams; // advertised to clients, per connection
	uint32_t stream_window; // bytes advertised per stream (SETTINGS_INITIAL_WINDOW_SIZE)
	uint32_t conn_window; // bytes advertised per connection
	// The same to servers, for their answers; 0 = as to clients.
	uint32_t answer_stream_window, answer_conn_window;
	uint32_t max_header_bytes; // decoded header list, 32 added per field (RFC 9113 6.5.2)
	uint32_t max_header_fields;
	// The time of the turn, for the abuse budgets (1000 resets + 33 a second, 100 SETTINGS +
	// 10 a second) and h2_conn_look(). Borrowed, outlives the context. NULL = time does not
	// advance and spent budgets never refill.
	const uint64_t *now_ns;
	uint64_t seed; // secret of the stream table's hash
	bool slow_path; // for tests: every field is checked anew (header_text.h)
};

enum h2_message_kind { H2_REQUEST, H2_INFORMATIONAL, H2_RESPONSE, H2_TRAILERS };

// One decoded header block, borrowed until the callback returns. It complies with RFC 9113 8.2 and
// 8.3 (HX-04..HX-10): the owner sees no malformed message, except for `bad`.
struct h2_message {
	enum h2_message_kind kind;
	// Pseudo-header values; {NULL, 0} when absent. authority falls back to the host field.
	struct str method, scheme, authority, path;
	uint16_t status; // responses
	// HTTP status with which to answer locally a request (or its trailers) that is well-formed
	// HTTP/2: 400 for a bad :path or a missing authority, 431 for a header list too large; 0 =
	// forward it. fields may be incomplete if set.
	uint16_t bad;
	bool is_grpc; // content-type is application/grpc or application/grpc+… (HX-01)
	bool end_stream;
	int64_t content_length; // -1 = absent
	// All regular fields in order of arrival, without pseudo-header fields and `host`. In gRPC
	// requests and responses, leading and trailing blanks of values are removed.
	const struct field *fields;
	size_t n_fields;
};

// Callbacks to the owner. `user` is the stream's (h2_stream_set_user) or the connection's. A
// callback may call anything on any stream or connection of the context except h2_conn_feed(),
// h2_conn_free() and, from on_closed, anything on the closing stream. A stream that both sides have
// ended is closed by on_closed in the next h2_conn_pump(), never inside a send. on_sent,
// on_settings, on_goaway and, without a carrier, on_refused may be NULL.
struct h2_events {
	// A header block: a new request (server: set the stream's user here), a response, 1xx or
	// trailers.
	void (*on_message)(struct h2_conn *, struct h2_stream *, const struct h2_message *);
	// Body bytes, borrowed, without padding. Return flow control credit with
	// h2_stream_consumed(). len may be 0 with end_stream.
	void (*on_data)(
		struct h2_conn *, struct h2_stream *, const uint8_t *, size_t len, bool end_stream);
	// n more body bytes moved from the stream's queue to the connection's output.
	void (*on_sent)(struct h2_conn *, struct h2_stream *, size_t n);
	// The last event of a stream, exactly once. code: NO_ERROR after both END_STREAMs, the code
	// of an RST_STREAM, or the reason why the connection was lost. by_peer: RST_STREAM was
	// received, or the connection was lost. unprocessed: the peer certainly did not process the
	// request (REFUSED_STREAM, or above GOAWAY's last id): it is safe to resend.
	void (*on_closed)(struct h2_conn *, struct h2_stream *, enum h2_error code, bool by_peer,
		bool unprocessed);
	// The peer's first SETTINGS, and each later change of its MAX_CONCURRENT_STREAMS.
	void (*on_settings)(struct h2_conn *, uint32_t max_concurrent_streams);
	// The peer accepts no new streams; streams above last_id are closed right after this
	// (unprocessed).
	void (*on_goaway)(struct h2_conn *, uint32_t last_id, enum h2_error code);
	// For windows that follow what comes in a round trip: the smoothed one to the peer in ns, 0
	// = not known. NULL = windows stay as they are.
	uint64_t (*round_trip_ns)(const struct h2_conn *);
	// Before a WINDOW_UPDATE of the stream, or of the connection if it is NULL: half of the
	// window was consumed within a round trip (is_short), or it is larger than at first. The
	// owner may set the window. Only with round_trip_ns.
	void (*on_window)(struct h2_conn *, struct h2_stream *, bool is_short);
	// A new request that is malformed, of which there is no stream, with what is known of it:
	// its texts may be anything. bad: the status to answer it with, before the callback
	// returns, by h2_carrier_refuse(); 0 = it is reset. why (static) is for operators.
	void (*on_refused)(struct h2_conn *, const struct h2_message *, struct str why);
};

// Returns NULL if out of memory. chunks is borrowed and outlives the context.
struct h2_context *h2_context_new(const struct h2_conf *, struct pool *chunks);
// Of clients' connections to which nothing has been said yet, and those that come: h2_conf's
// fields. Others keep what they were told.
void h2_context_set_bounds(
	struct h2_context *, uint32_t max_concurrent_streams, uint32_t conn_window);
void h2_context_free(struct h2_context *);

// Makes a connection whose output goes to *out (borrowed: TCP's send queue). A client writes
// preface and SETTINGS at once, a server when it has received the client's. Returns NULL if pools
// are exhausted.
struct h2_conn *h2_conn_new(
	struct h2_context *, enum h2_role, const struct h2_events *, struct buf *out, void *user);
// Bytes of bodies that the peer may have unconsumed (a server: on their way) on all streams. A
// smaller value takes nothing back, but less is given as bytes are consumed.
uint32_t h2_conn_window(const struct h2_conn *);
uint32_t h2_conn_first_window(const struct h2_conn *); // the same, as it began
void h2_conn_set_window(struct h2_conn *, uint32_t bytes);
// Server: charges what it costs to these budgets, too. Borrowed; outlives the connection.
void h2_conn_share(struct h2_conn *, struct h2_budgets *);
// Of budgets that connections share: one of them has nothing left.
bool h2_shared_is_spent(const struct h2_budgets *, uint64_t now_ns);
// Frees the connection. Open streams are first closed through on_closed, by_peer with code.
void h2_conn_free(struct h2_conn *, enum h2_error code);
void *h2_conn_user(const struct h2_conn *);

// Output goes to another queue from now on. Only before anything was written.
void h2_conn_set_out(struct h2_conn *, struct buf *out);

// Charges what input costs to *allowance, in about an instruction each: by the kind of frame, its
// bytes, and those of decoded header lists. Borrowed; outlives the connection. Several connections
// may share one. Without this call nothing bounds it.
void h2_conn_set_allowance(struct h2_conn *, int64_t *allowance);
// Processes bytes from the peer. Returns the number of bytes consumed: all, or fewer if the
// allowance is used up (the frame at hand may overdraw it) or if control output has piled up (a
// peer that floods and does not read): feed the rest later. A connection error queues GOAWAY (or a
// reply that a client without HTTP/2 understands) and makes h2_conn_failed() true: pump, flush,
// then close.
size_t h2_conn_feed(struct h2_conn *, const uint8_t *, size_t len);
bool h2_conn_failed(const struct h2_conn *, enum h2_error *ret_code);
// Writes to *out what windows and `room` (bytes) allow: WINDOW_UPDATEs first, then DATA, streams in
// turn. Returns true if more waits for room (not for windows) or for memory.
bool h2_conn_pump(struct h2_conn *, size_t room);
// Finds streams whose bodies wait for the peer's windows and of which the peer takes too little
// (TH-15). h2_conn_waits() is true if some stream waits. Then the owner calls h2_conn_look(), and
// again several times in patience_ns for as long as it returns true (some still wait). A stream
// stalls if since a look at least patience_ns ago, by when the peer had taken all that was written
// before, fewer than `rate` bytes a second were sent, and more than that still waits: bytes of the
// stream, or of all streams if only the connection's window stops it. h2_conn_stalled() returns one
// of them, for the owner to reset, or NULL.
bool h2_conn_waits(const struct h2_conn *);
bool h2_conn_look(struct h2_conn *, uint64_t patience_ns, uint32_t rate);
struct h2_stream *h2_conn_stalled(const struct h2_conn *);
// Bytes of bodies and trailers in the streams' queues: written, but not yet in *out.
uint64_t h2_conn_queued(const struct h2_conn *);
// Bytes of bodies that were received and that the owner has not consumed yet.
uint64_t h2_conn_unconsumed(const struct h2_conn *);
// Bytes written to *out in total.
uint64_t h2_conn_written(const struct h2_conn *);
// True if no stream is open and nothing is left to send.
bool h2_conn_idle(const struct h2_conn *);
uint32_t h2_conn_n_streams(const struct h2_conn *);
// From the newest stream to the oldest; NULL = there is none. The older one stays valid when its
// newer neighbor ends.
struct h2_stream *h2_conn_newest(const struct h2_conn *);
struct h2_stream *h2_stream_older(const struct h2_stream *);
// Client: how many more streams may be opened now (peer's MAX_CONCURRENT_STREAMS, ids left, no
// GOAWAY).
uint32_t h2_conn_stream_room(const struct h2_conn *);
// True once the peer's first SETTINGS has arrived (gRPC's READY, BO-03).
bool h2_conn_ready(const struct h2_conn *);
// Stream of the header block that is open, 0 = none. The owner's header timer runs while the value
// stays the same.
uint32_t h2_conn_in_block(const struct h2_conn *);
// Bytes that are kept of it, or of another frame that is not whole.
size_t h2_conn_unfinished(const struct h2_conn *);

// Asks the peer for a sign of life (RFC 9113 6.7), unless an earlier question is open; not before
// its SETTINGS. h2_conn_ping_out(): it is open still.
void h2_conn_ping(struct h2_conn *);
bool h2_conn_ping_out(const struct h2_conn *);

// Drain, step 1: GOAWAY with last id 2^31-1 (HX-22); step 2: the real last id, later streams are
// refused. A peer whose first bytes are not HTTP/2 gets neither.
void h2_conn_drain_begin(struct h2_conn *);
void h2_conn_drain_end(struct h2_conn *, enum h2_error code);

// Client: opens a stream and sends its HEADERS. message: method, scheme, authority, path and
// fields; all is encoded before the call returns. NULL = no room for a stream or pools exhausted.
struct h2_stream *h2_stream_open(struct h2_conn *, const struct h2_message *, void *user);
// Server: sends a response (status and fields) or 1xx; either side: trailers, after queued data.
// False = pools exhausted: the caller resets the stream; or the connection has failed. So below.
[[nodiscard]] bool h2_stream_send_message(struct h2_stream *, const struct h2_message *);
// Copies body bytes to the stream's queue; windows decide when they are sent. False = pools
// exhausted.
[[nodiscard]] bool h2_stream_send_data(
	struct h2_stream *, const uint8_t *, size_t len, bool end_stream);
// The same for forwarding: up to a kilobyte that windows and the room of the last pump allow, with
// nothing queued before it, is sent at once. *ret_sent: bytes sent; on_sent is not called for them.
[[nodiscard]] bool h2_stream_pass_data(
	struct h2_stream *, const uint8_t *, size_t len, bool end_stream, size_t *ret_sent);
// So many bytes would not wait long, nor take memory of their own while they do: windows let them
// pass, and up to a kilobyte waits on the connection with them.
bool h2_stream_takes_at_once(const struct h2_stream *, size_t len);
// The same as h2_stream_send_data(), but takes over the chunks of a queue.
[[nodiscard]] bool h2_stream_send_buf(struct h2_stream *, struct buf *, bool end_stream);
// Body bytes queued and not yet in the connection's output.
size_t h2_stream_queued(const struct h2_stream *);
// Some are queued, and the peer's window for the stream lets none go, whatever the connection's is.
bool h2_stream_is_shut(const struct h2_stream *);
// The owner has consumed n received body bytes: reopens the peer's stream window, in batches.
void h2_stream_consumed(struct h2_stream *, size_t n);
// The peer's window on the stream is to be so many bytes larger than the one advertised: grows at
// once, shrinks as bytes are consumed. 0 at first.
void h2_stream_set_ahead(struct h2_stream *, uint32_t n);
// The peer's whole window on the stream, in bytes: the one advertised and what it is ahead.
uint32_t h2_stream_window(const struct h2_stream *);
// Body bytes that its owner has consumed, and those that it has not yet.
uint64_t h2_stream_n_consumed(const struct h2_stream *);
uint64_t h2_stream_unconsumed(const struct h2_stream *);
// Body bytes that came, and those that were written to *out.
uint64_t h2_stream_n_received(const struct h2_stream *);
uint64_t h2_stream_n_sent(const struct h2_stream *);
// The peer has used half of its window on the stream, or more, and sends more than is left of it.
bool h2_stream_is_short(const struct h2_stream *);
// Sends RST_STREAM and drops the queue; calls on_closed before it returns (not by_peer). After a
// complete response use H2_NO_ERROR (HX-15).
void h2_stream_reset(struct h2_stream *, enum h2_error code);

void h2_stream_set_user(struct h2_stream *, void *user);
void *h2_stream_user(const struct h2_stream *);
struct h2_conn *h2_stream_conn(const struct h2_stream *);
uint32_t h2_stream_id(const struct h2_stream *);
bool h2_stream_sent_end(const struct h2_stream *); // our END_STREAM is queued or sent
bool h2_stream_got_end(const struct h2_stream *); // the peer's END_STREAM arrived
// For on_closed, by_peer: we closed the stream for an error of the peer, not for its RST_STREAM.
bool h2_stream_malformed(const struct h2_stream *);
// The error was a response, or its trailers, above our limits.
bool h2_stream_too_large(const struct h2_stream *);

// Counters of frames, errors and abuse by kind.
struct counter_set h2_context_counters(const struct h2_context *);
void h2_context_list_pools(struct h2_context *, struct pool_list *);
