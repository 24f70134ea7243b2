// SPDX-License-Identifier: Apache-2.0
// What is kept for one client connection (proxy_conf.client_buffer, "the bound" below):
// - Answers that wait for it, in TCP's queue and those of its streams. Backends may send each
//   stream PROXY_FIRST_WINDOW at any time, and more as the bound leaves room. Who has more to take
//   than the bound, and takes too little of it, loses streams (TH-86, client.c).
// - Bodies of requests that backends have not taken: HTTP/2's window of the connection (TH-88).
// - Requests stored to be sent, or sent again (TH-89).
// See docs/decisions/client-buffer.md.
// Thread: the owning worker.
#pragma once

#include "dataplane/buf/buf.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stdint.h>

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
	struct twheel_timer timer; // client.c: armed while more than the bound waits to be taken
	uint64_t taken_mark; // bytes that it had taken when the timer was armed
};

// Answers that wait for it, in bytes: all but what TCP has sent.
uint64_t proxy_client_buffer_unread(const struct proxy_client *);
// All that is kept for it, in bytes, with what TCP has sent and may have to send again.
uint64_t proxy_client_buffer_held(const struct proxy_client *);
// Bytes that it has taken in total.
uint64_t proxy_client_buffer_taken(const struct proxy_client *);
// More than the bound waits to be taken.
bool proxy_client_buffer_is_over(const struct proxy_client *);
// Whether header fields of an answer may be queued for it, which no window holds back.
bool proxy_client_buffer_takes_fields(const struct proxy_client *);
// True if a request of its own may be stored to be sent later, or sent again.
static inline bool proxy_client_buffer_may_wait(const struct proxy_client_buffer *b)
{
	return b->kept <= b->bound;
}
static inline bool proxy_client_buffer_may_copy(const struct proxy_client_buffer *b)
{
	return b->kept * 2 <= b->bound;
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
