// SPDX-License-Identifier: Apache-2.0
// HTTP/2 (RFC 9113), both roles, on bytes: feed what arrived, pump what may be sent. It knows no
// TCP, no proxy and no clock but the wheel; timeouts belong to the owner. A connection never
// outlives its context; a stream pointer is valid until its on_closed.
// Thread: the worker that owns the context. Callbacks run inside feed(), pump() and lost().
// Memory: everything from the context's pools; nothing here calls malloc after h2_context_new().
#pragma once

#include "dataplane/buf/buf.h"
#include "lb/base/counter.h"
#include "lb/base/field.h"
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

enum h2_role { H2_SERVER, H2_CLIENT };

struct h2_conf {
	uint32_t max_conns, max_streams; // of the whole context
	uint32_t max_concurrent_streams; // advertised to clients, per connection
	uint32_t stream_window; // bytes advertised per stream (SETTINGS_INITIAL_WINDOW_SIZE)
	uint32_t conn_window; // bytes advertised per connection
	uint32_t max_header_bytes; // decoded header list, 32 added per field (RFC 9113 6.5.2)
	uint32_t max_header_fields;
	// The turn's time, for the abuse budgets (1000 resets + 33 a second) and
	// h2_conn_waiting(). Borrowed, outlives the context. NULL = time stands still and spent
	// budgets never refill.
	const uint64_t *now_ns;
	uint64_t seed; // secret of the stream table's hash
	bool slow_path; // for tests: every field is looked at anew (header_text.h)
};

enum h2_message_kind { H2_REQUEST, H2_INFORMATIONAL, H2_RESPONSE, H2_TRAILERS };

// One decoded header block, borrowed until the callback returns. It passed the rules of RFC
// 9113 8.2 and 8.3 (HX-04..HX-10): what is malformed never reaches the owner, but for
// `bad`.
struct h2_message {
	enum h2_message_kind kind;
	// Pseudo-header values; {NULL, 0} when absent. authority falls back to the host field.
	struct str method, scheme, authority, path;
	uint16_t status; // responses
	// A request, or its trailers, that is well formed HTTP/2 but must be answered locally with
	// this HTTP status (400 bad :path or no authority, 431 header list too large); 0 = fine.
	// fields may be incomplete then.
	uint16_t bad;
	bool is_grpc; // content-type is application/grpc or application/grpc+… (HX-01)
	bool end_stream;
	int64_t content_length; // -1 = absent
	// All regular fields in order of arrival; pseudo-header fields not among them, `host`
	// removed. Of gRPC requests and what answers them, values have no blanks at their ends.
	const struct field *fields;
	size_t n_fields;
};

// What the owner hears. `user` is the stream's (h2_stream_set_user) or the connection's. A callback
// may call anything on any stream or connection of the context but h2_conn_feed(), h2_conn_free()
// and, from on_closed, calls on the stream that ends. A stream whose both ends are out ends with
// on_closed in the next h2_conn_pump(), never inside a send. on_sent, on_settings and on_goaway may
// be NULL.
struct h2_events {
	// A header block: new request (server; set the stream's user here), response, 1xx or
	// trailers.
	void (*on_message)(struct h2_conn *, struct h2_stream *, const struct h2_message *);
	// Body bytes, borrowed, padding removed. Flow control: give back with h2_stream_consumed().
	// len may be 0 with end_stream.
	void (*on_data)(
		struct h2_conn *, struct h2_stream *, const uint8_t *, size_t len, bool end_stream);
	// n more body bytes of ours left the stream's queue for the connection's output.
	void (*on_sent)(struct h2_conn *, struct h2_stream *, size_t n);
	// Last event of a stream, exactly once. code says how it ended: NO_ERROR after both
	// END_STREAMs; the code of a RST_STREAM; the reason the connection was lost. by_peer: RST
	// received, or the connection went away under it. unprocessed: the peer surely did nothing
	// with it (REFUSED_STREAM, or above GOAWAY's last id): safe to send again.
	void (*on_closed)(struct h2_conn *, struct h2_stream *, enum h2_error code, bool by_peer,
		bool unprocessed);
	// First SETTINGS of the peer, and each later change of its MAX_CONCURRENT_STREAMS.
	void (*on_settings)(struct h2_conn *, uint32_t max_concurrent_streams);
	// The peer will take no new streams; those above last_id are closed right after
	// (unprocessed).
	void (*on_goaway)(struct h2_conn *, uint32_t last_id, enum h2_error code);
};

// NULL = out of memory. chunks is borrowed and outlives the context.
struct h2_context *h2_context_new(const struct h2_conf *, struct pool *chunks);
void h2_context_free(struct h2_context *);

// A new connection whose output goes to *out (borrowed: TCP's send queue). A client writes preface
// and SETTINGS there at once, a server when it has the client's. NULL = pools exhausted.
struct h2_conn *h2_conn_new(
	struct h2_context *, enum h2_role, const struct h2_events *, struct buf *out, void *user);
// Frees it and what it holds. Streams still open are closed first, through on_closed by_peer with
// code.
void h2_conn_free(struct h2_conn *, enum h2_error code);
void *h2_conn_user(const struct h2_conn *);

// Bytes from the peer. Consumes all of them, or returns the bytes consumed so far when the
// connection's control output is clogged (a peer that floods and does not read): feed the rest
// later. A connection error has queued GOAWAY, or what a client that speaks no HTTP/2 understands,
// and makes h2_conn_failed() true: pump, flush, then close.
size_t h2_conn_feed(struct h2_conn *, const uint8_t *, size_t len);
bool h2_conn_failed(const struct h2_conn *, enum h2_error *ret_code);
// Writes to *out what windows and `room` (bytes) allow: WINDOW_UPDATEs first, then DATA, streams in
// turn. True = more is waiting for room (not for windows), or for memory.
bool h2_conn_pump(struct h2_conn *, size_t room);
// The stream that has waited longest, with body bytes queued, for a window of the peer's; since the
// end of the connection's window or the stream's last progress. NULL = none waits. The owner's
// timer decides how long is too long.
struct h2_stream *h2_conn_waiting(const struct h2_conn *, uint64_t *ret_since_ns);
// Bytes ever written to *out.
uint64_t h2_conn_written(const struct h2_conn *);
// Nothing open, nothing to send.
bool h2_conn_idle(const struct h2_conn *);
uint32_t h2_conn_n_streams(const struct h2_conn *);
// Client: how many more streams may be opened now (peer's MAX_CONCURRENT_STREAMS, ids left, no
// GOAWAY).
uint32_t h2_conn_stream_room(const struct h2_conn *);
// First SETTINGS frame seen (gRPC's READY, BO-03).
bool h2_conn_ready(const struct h2_conn *);
// The stream of the header block that has begun and not ended, 0 = none: the owner's header timer
// runs while it is the same.
uint32_t h2_conn_in_block(const struct h2_conn *);

// Drain, step 1: GOAWAY with last id 2^31-1 (HX-22); step 2: the real last id, later streams
// refused. Whose first bytes are not HTTP/2's hears neither.
void h2_conn_drain_begin(struct h2_conn *);
void h2_conn_drain_end(struct h2_conn *, enum h2_error code);

// Client: opens a stream and sends its HEADERS. message: method, scheme, authority, path and
// fields; everything is copied (encoded) before return. NULL = no stream room or pools exhausted.
struct h2_stream *h2_stream_open(struct h2_conn *, const struct h2_message *, void *user);
// Server: response (status and fields) or 1xx; either side: trailers. Trailers go out after queued
// data. false = pools exhausted: the caller resets the stream.
[[nodiscard]] bool h2_stream_send_message(struct h2_stream *, const struct h2_message *);
// Body: copied to the stream's queue and sent as windows allow. false = pools exhausted.
[[nodiscard]] bool h2_stream_send_data(
	struct h2_stream *, const uint8_t *, size_t len, bool end_stream);
// The same for bytes that pass through: a piece of up to a kilobyte that windows and the room of
// the last pump allow, and that nothing waits before, goes out at once. *ret_sent: bytes that did;
// on_sent does not hear of them.
[[nodiscard]] bool h2_stream_pass_data(
	struct h2_stream *, const uint8_t *, size_t len, bool end_stream, size_t *ret_sent);
// The same as h2_stream_send_data(), taking the bytes over from a queue.
[[nodiscard]] bool h2_stream_send_buf(struct h2_stream *, struct buf *, bool end_stream);
// Body bytes queued and not yet in the connection's output.
size_t h2_stream_queued(const struct h2_stream *);
// The owner is done with n received body bytes: opens the peer's stream window again, in batches.
void h2_stream_consumed(struct h2_stream *, size_t n);
// RST_STREAM, queue dropped; on_closed follows inside this call (not by_peer). After a complete
// response use H2_NO_ERROR (HX-15).
void h2_stream_reset(struct h2_stream *, enum h2_error code);

void h2_stream_set_user(struct h2_stream *, void *user);
void *h2_stream_user(const struct h2_stream *);
struct h2_conn *h2_stream_conn(const struct h2_stream *);
uint32_t h2_stream_id(const struct h2_stream *);
bool h2_stream_sent_end(const struct h2_stream *); // our END_STREAM is queued or out
bool h2_stream_got_end(const struct h2_stream *); // the peer's END_STREAM arrived
// For on_closed, by_peer: we ended it for an error of the peer's, it sent no RST_STREAM.
bool h2_stream_malformed(const struct h2_stream *);
// Of these: for a response, or its trailers, above our limits.
bool h2_stream_too_large(const struct h2_stream *);

// Frames, errors and abuse by kind.
struct counter_set h2_context_counters(const struct h2_context *);
void h2_context_list_pools(const struct h2_context *, struct pool_list *);
