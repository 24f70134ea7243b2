// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 and 1.0 (RFC 9110, 9112), server role, on bytes: feed received bytes, and send answers
// to the output. A request comes as the same views as one of HTTP/2. It knows no TCP, no proxy and
// no clock: the owner handles timeouts. Rules H1-01 ff.
// Thread: the worker that owns the context. Callbacks run inside h1_conn_feed().
// Memory: only from the context's pools; nothing calls malloc after h1_context_new().
#pragma once

#include "dataplane/buf/buf.h"
#include "lb/base/counter.h"
#include "lb/base/field.h"
#include "lb/base/pool.h"
#include "lb/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct h1_context; // a worker's pools, limits, counters
struct h1_conn;

struct h1_conf {
	uint32_t max_conns;
	// Of a head or of trailers: its bytes as received, and those of its list, 32 added per
	// field, as HTTP/2 counts them (RFC 9113 6.5.2).
	uint32_t max_header_bytes;
	uint32_t max_header_fields;
};

// Why a request is refused, each a counter and one status.
enum h1_malformed {
	H1_WELL_FORMED,
	H1_BAD_LINE_END, // CR or LF alone, two empty lines before a request (H1-03)
	H1_BAD_REQUEST_LINE, // H1-02
	H1_BAD_TARGET, // H1-06
	H1_BAD_NAME, // not a token, a blank before the colon, obs-fold (H1-04)
	H1_BAD_VALUE, // a control byte (H1-04)
	H1_BAD_HOST, // H1-07
	H1_BAD_CONTENT_LENGTH, // H1-10
	H1_BAD_TRANSFER_ENCODING, // H1-11
	H1_BAD_CONNECTION, // H1-14
	H1_BAD_CHUNK, // H1-12
	H1_BAD_TRAILER, // H1-13
	H1_TARGET_TOO_LONG, // 414
	H1_GRPC, // 415 (H1-30)
	H1_EXPECTATION_UNKNOWN, // 417
	H1_TOO_LARGE, // 431
	H1_CODING_UNKNOWN, // 501
	H1_CONNECT, // 501
	H1_NO_MEMORY, // 503
	H1_BAD_VERSION, // 505
	H1_N_MALFORMED,
};

enum h1_message_kind { H1_REQUEST, H1_INFORMATIONAL, H1_RESPONSE, H1_TRAILERS };

// A request's head, its trailers, or an answer; the same views as HTTP/2's message has. One that
// is received is borrowed until the callback returns, and well formed.
struct h1_message {
	enum h1_message_kind kind;
	// As HTTP/2's pseudo-header fields: never empty in a request. authority is the target's if
	// that has one, else Host.
	struct str method, scheme, authority, path;
	uint16_t status; // answers
	bool end_stream; // no body follows
	bool expects_continue; // the client waits for 100 or a final answer (H1-15)
	int64_t content_length; // -1 = absent
	// Regular fields in order of arrival, names in lower case, without host and those that
	// end at this hop (H1-14).
	const struct field *fields;
	size_t n_fields;
};

// `user` is the connection's. A callback may send; not feed nor free.
struct h1_events {
	// A request, or its trailers, which end it.
	void (*on_message)(struct h1_conn *, const struct h1_message *);
	// Body bytes, borrowed, unchunked. len may be 0 with end_stream.
	void (*on_data)(struct h1_conn *, const uint8_t *, size_t len, bool end_stream);
};

// Returns NULL if out of memory. chunks is borrowed and outlives the context.
struct h1_context *h1_context_new(const struct h1_conf *, struct pool *chunks);
void h1_context_free(struct h1_context *);
struct counter_set h1_context_counters(const struct h1_context *);
void h1_context_list_pools(struct h1_context *, struct pool_list *);

// Makes a connection whose output goes to *out (borrowed: TCP's send queue). scheme: of requests
// whose target has none; borrowed. Returns NULL if the pool is exhausted.
struct h1_conn *h1_conn_new(struct h1_context *, const struct h1_events *, struct buf *out,
	struct str scheme, void *user);
// No callback is called.
void h1_conn_free(struct h1_conn *);
void *h1_conn_user(const struct h1_conn *);

// Processes bytes from the client. Returns the number of bytes consumed: all, or fewer if the
// window is used up, or if a request is complete and its answer is not: requests that are pipelined
// behind it stay with the caller, who feeds them later (RFC 9112 9.3.2). After an error, or behind
// the last request, bytes are dropped.
size_t h1_conn_feed(struct h1_conn *, const uint8_t *, size_t len);
// The same, but one step: no more than a head, trailers, or a piece of a body. len > 0; 0 = it
// holds.
size_t h1_conn_step(struct h1_conn *, const uint8_t *, size_t len);
// No byte is taken before the open request's answer is complete, or until there is window.
bool h1_conn_holds(const struct h1_conn *);
// Why input ended, and the status to refuse it with. An open request gets no further events. The
// owner refuses it, or if its answer has begun: closes.
enum h1_malformed h1_conn_failed(const struct h1_conn *, uint16_t *ret_status);
// For operators (static).
struct str h1_malformed_text(enum h1_malformed);
// What is known of a request whose head has just failed, or does not come to its end: as far as it
// could be read, target and host unchecked, fields well formed. Borrowed until the context is fed
// again, and as long as the bytes that were. No request is open.
const struct h1_message *h1_conn_known(struct h1_conn *);
// Neither requests nor answers come any more: flush, then close (RFC 9112 9.6).
bool h1_conn_closes(const struct h1_conn *);
// A request is open: its head has come, and it or its answer has not ended.
bool h1_conn_busy(const struct h1_conn *);
// Part of a head or of trailers has arrived: the owner's header timer runs.
bool h1_conn_in_head(const struct h1_conn *);
// Bytes that are kept of it.
size_t h1_conn_unfinished(const struct h1_conn *);
// HTTP/1.x of the last request.
uint8_t h1_conn_minor(const struct h1_conn *);
// So many body bytes are taken from now on; without this call, all.
void h1_conn_set_window(struct h1_conn *, uint32_t n);
// An answer is open that ends where the connection does (HTTP/1.0).
bool h1_conn_ends_with_conn(const struct h1_conn *);
// The next answer is the last, and says so.
void h1_conn_drain(struct h1_conn *);

// Answers to the open request. False = pools exhausted, the order is wrong, or (head, trailers)
// text would cut a line; of heads and trailers nothing was written.
// A final answer, or a 1xx, which a client of HTTP/1.0 does not get (H1-17, H1-19). Of message
// count status, content_length, fields and end_stream.
[[nodiscard]] bool h1_conn_send_message(struct h1_conn *, const struct h1_message *);
// Body bytes; none reach a client that must not get any. More than content-length said are refused.
// False = also that a part may have been written: the caller gives up the connection.
[[nodiscard]] bool h1_conn_send_data(struct h1_conn *, const uint8_t *, size_t len);
// The same, but takes over the chunks of a queue.
[[nodiscard]] bool h1_conn_send_buf(struct h1_conn *, struct buf *);
// Ends the answer. trailers: NULL, or fields for a client that takes them (H1-18). After a body
// shorter than announced, or an answer to a request that is still coming, the connection closes.
[[nodiscard]] bool h1_conn_send_end(struct h1_conn *, const struct h1_message *trailers);
// Answers with a status, these fields and no more, `connection: close` among it, and takes no
// further input.
[[nodiscard]] bool h1_conn_refuse(
	struct h1_conn *, uint16_t status, const struct field *, size_t n_fields);
