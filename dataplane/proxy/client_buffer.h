// SPDX-License-Identifier: Apache-2.0
// What is kept for one client connection (lb_terms.client_buffer, "the bound" below):
// - Answers that wait for it, in TCP's queue and those of its streams. Backends may send each
//   stream PROXY_FIRST_WINDOW at any time, and more as the bound leaves room (TH-86).
// - Bodies of requests that backends have not taken: HTTP/2's window of the connection, three
//   eighths of the bound (TH-88).
// - Requests stored to be sent, three quarters of it, or three eighths without bodies, or copied to
//   be sent again, half (TH-89).
// Who has more than the bound, of answers alone or of all, and takes too little of its answers,
// loses streams (client_cut.h).
// See docs/decisions/client-buffer.md.
// Thread: the owning worker.
#pragma once

#include "dataplane/buf/buf.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stdint.h>

struct h2_stream;
struct proxy_client;
struct proxy_request;

// Of a backend's stream: what it is advertised, which fills two chunks, and the most that it gets.
#define PROXY_FIRST_WINDOW (2 * BUF_CHUNK_ROOM)
#define PROXY_STREAM_WINDOW (64u << 10)

// All but the bound is zero at the start.
struct proxy_client_buffer {
	uint64_t bound;
	uint64_t kept; // bytes of its stored requests, in chunks
	uint64_t ahead; // bytes that backends may send beyond first windows
	uint64_t earned; // and those that they may send besides, since the client took so many
	struct twheel_timer timer; // client_cut.c: armed while it has more
	uint64_t taken_mark; // bytes that it had taken when the timer was armed
};

// Answers that wait for it, in bytes: all but what TCP has sent.
uint64_t proxy_client_buffer_unread(const struct proxy_client *);
// All that is kept for it, in bytes, with what TCP has sent and may have to send again.
uint64_t proxy_client_buffer_held(const struct proxy_client *);
// Bytes that it has taken in total.
uint64_t proxy_client_buffer_taken(const struct proxy_client *);
// There is more than the bound: of answers (TH-86), or of all that is kept for it, with much of
// answers and of requests (TH-139).
bool proxy_client_buffer_answers_are_over(const struct proxy_client *);
bool proxy_client_buffer_sum_is_over(const struct proxy_client *);
// What is kept for this one of its streams, of its answer and of its request, in bytes.
uint64_t proxy_client_buffer_of(const struct h2_stream *);
// With no more bytes of answers than that, neither is.
static inline uint64_t proxy_client_buffer_little(const struct proxy_client_buffer *b)
{
	return b->bound / 16;
}
// Whether header fields of an answer may be queued for it, which no window holds back.
bool proxy_client_buffer_takes_fields(const struct proxy_client *);
// A request of its own may be stored to be sent later.
bool proxy_client_buffer_may_wait(const struct proxy_client *);
// Or sent again.
static inline bool proxy_client_buffer_may_copy(const struct proxy_client_buffer *b)
{
	return b->kept * 2 <= b->bound;
}
// HTTP/2's window for bodies on a connection, with this bound: bytes.
static inline uint32_t proxy_client_buffer_window(uint32_t bound)
{
	return bound / 8 * 3;
}

// Sets the window of the request's stream to the backend by what its client leaves free.
void proxy_client_buffer_widen(struct proxy_request *);
// Half of that window was used within the backend's round trip, or it has grown so before: it
// doubles, and the bound with it until the request ends, as far as the chunks allow (window.h).
void proxy_client_buffer_earn(struct proxy_request *, bool is_short);
// The request leaves its stream to the backend: its `ahead`.
static inline void proxy_client_buffer_narrow(struct proxy_client_buffer *b, uint32_t *ahead)
{
	b->ahead -= *ahead;
	*ahead = 0;
}
