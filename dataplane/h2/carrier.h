// SPDX-License-Identifier: Apache-2.0
// Another protocol beneath the streams of a server's connection: HTTP/1.1. Its one request at a
// time is a stream to the owner, with the same events, queue and windows; only the bytes differ,
// and these are a table's, which the owner of the context gives it. No window goes on the wire:
// what a stream does not take is left with the caller of h2_conn_feed(). See
// docs/decisions/http1.md.
// Thread: the worker that owns the context.
#pragma once

#include "dataplane/h2/h2.h"

// On what begin() returned. False of those that put: no memory, or what HTTP/2 has and this
// protocol has not; of a head and trailers nothing was written.
struct h2_carrier {
	// Output goes to *out (borrowed). scheme (static): of requests that name none. NULL = no
	// memory.
	void *(*begin)(void *arg, struct h2_conn *, struct buf *out, struct str scheme);
	void (*free)(void *);
	// One step: a head, trailers, or a piece of a body of at most `window` bytes. Returns the
	// bytes taken, 0 = it holds(). Calls h2_carrier_request() and the others.
	size_t (*feed)(void *, const uint8_t *, size_t len, uint32_t window);
	// Nothing is taken before the answer is complete, or until there is window.
	bool (*holds)(void *, uint32_t window);
	bool (*in_head)(const void *); // part of a head or of trailers has come
	size_t (*unfinished)(const void *); // bytes that are kept of it
	// What came can't be understood. Returns the status to refuse it with; 0 = no. *ret_why
	// (static) is for operators.
	uint16_t (*failed)(const void *, struct str *ret_why);
	// What is known of a request whose head has just failed, or does not come to its end;
	// borrowed until the next call.
	void (*known)(void *, struct h2_message *ret);
	bool (*put_message)(void *, const struct h2_message *); // an answer, or a 1xx
	bool (*put_data)(void *, const uint8_t *, size_t len);
	bool (*put_buf)(void *, struct buf *); // takes all of it
	bool (*put_end)(void *, const struct h2_message *trailers); // NULL = none
	// Answers with a head alone, if no answer has begun.
	void (*refuse)(void *, const struct h2_message *);
	void (*drain)(void *); // the next answer is the last
	bool (*closes)(const void *); // the last answer is complete
	// An answer is open that ends where the connection does.
	bool (*ends_with_conn)(const void *);
	uint8_t (*version)(const void *); // 10 or 11, of the last request
};

// For all connections of the context; both are borrowed. Without it what is not HTTP/2 is refused.
void h2_context_set_carrier(struct h2_context *, const struct h2_carrier *, void *arg);
// What TLS says of the connection. scheme (static): of requests that name none, "http" if this was
// not called; "" = HTTP/2 was agreed upon, and other bytes are refused. Call it before anything was
// fed.
void h2_carrier_set_scheme(struct h2_conn *, struct str scheme);
// The first bytes, which have not come yet, decide whether it does.
bool h2_carrier_may_begin(const struct h2_conn *);
// The connection speaks that protocol from its first byte on, as bytes or ALPN have told. Call it
// before anything was fed or written. False = no memory, it has written already, or is refused.
[[nodiscard]] bool h2_carrier_begin(struct h2_conn *);

// From feed(). A request; waits_for_100: and its client, for a 100 or a final answer.
void h2_carrier_request(struct h2_conn *, const struct h2_message *, bool waits_for_100);
void h2_carrier_data(struct h2_conn *, const uint8_t *, size_t len, bool end_stream);
void h2_carrier_trailers(struct h2_conn *, const struct h2_message *);

// From on_refused(): the answer, a head alone, behind which the connection ends.
void h2_carrier_refuse(struct h2_conn *, const struct h2_message *);

// The connection took fewer bytes than it was fed, and takes none until an answer is complete or
// its window opens. False for one of HTTP/2.
bool h2_conn_holds(const struct h2_conn *);
// HTTP's version: 20, or that of the last carried request.
uint8_t h2_conn_version(const struct h2_conn *);
// An orderly end of the connection would pass for the end of an answer that is cut.
bool h2_conn_must_abort(const struct h2_conn *);
