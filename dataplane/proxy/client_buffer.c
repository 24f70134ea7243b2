// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/client_buffer.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"

// Of the bound: what backends may send ahead of first windows.
#define AHEAD_SHARE 4
// Of what is left of that, a stream gets one part. N busy streams have one of N + 1 each.
#define STREAM_SHARE 2
// A client that has taken so much of an answer reads on when HTTP/2's first window, 64 KiB as a
// rule, is used up.
#define EARNS_FROM (2 * PROXY_STREAM_WINDOW)

static uint64_t in_tcp(const struct proxy_client *c)
{
	return tcp_conn_sendq(c->conn.tcp)->len;
}

// What is on its way is the network's, which takes or loses it: cwnd says how much that may be.
uint64_t proxy_client_buffer_unread(const struct proxy_client *c)
{
	return tcp_conn_unsent(c->conn.tcp) + h2_conn_queued(c->conn.h2);
}

uint64_t proxy_client_buffer_held(const struct proxy_client *c)
{
	// A body that waits for a backend is stored, and one that was sent may be, too.
	uint64_t bodies = h2_conn_unconsumed(c->conn.h2), kept = c->buffer.kept;
	uint64_t not_read = tcp_conn_unread(c->conn.tcp);
	uint64_t answers = in_tcp(c) + h2_conn_queued(c->conn.h2);
	return answers + not_read + (bodies > kept ? bodies : kept);
}

uint64_t proxy_client_buffer_taken(const struct proxy_client *c)
{
	return h2_conn_written(c->conn.h2) - in_tcp(c);
}

static uint64_t bound_of(const struct proxy_client *c)
{
	return c->buffer.bound + c->buffer.earned;
}

bool proxy_client_buffer_is_over(const struct proxy_client *c)
{
	return proxy_client_buffer_unread(c) > bound_of(c);
}

// As much for each stream as for its body.
bool proxy_client_buffer_takes_fields(const struct proxy_client *c)
{
	uint64_t streams = h2_conn_n_streams(c->conn.h2);
	return proxy_client_buffer_unread(c) <= bound_of(c) + streams * PROXY_FIRST_WINDOW;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint32_t ahead_of(const struct proxy_request *r)
{
	const struct proxy_client *c = r->owner;
	uint64_t unread = proxy_client_buffer_unread(c), others = c->buffer.ahead - r->ahead;
	uint64_t room = bound_of(c) - min_u64(unread, bound_of(c));
	uint64_t all = min_u64(c->buffer.bound / AHEAD_SHARE, room);
	uint64_t mine = (all - min_u64(others, all)) / STREAM_SHARE;
	if (mine < PROXY_FIRST_WINDOW)
		return 0; // not worth a frame
	return (uint32_t)min_u64(mine, PROXY_STREAM_WINDOW - PROXY_FIRST_WINDOW);
}

void proxy_client_buffer_widen(struct proxy_request *r)
{
	uint32_t n = ahead_of(r);
	if (n == r->ahead)
		return;
	r->owner->buffer.ahead += n - (uint64_t)r->ahead;
	r->ahead = n;
	h2_stream_set_ahead(r->upstream, n + r->earned);
	proxy_conn_touch(h2_conn_user(h2_stream_conn(r->upstream)));
}

// Of all its streams together, as much as one window may be.
void proxy_client_buffer_earn(struct proxy_request *r, bool is_short)
{
	struct proxy_client_buffer *b = &r->owner->buffer;
	const struct proxy *p = r->proxy;
	uint32_t now = (uint32_t)b->earned, more = 0;
	if (is_short && r->ahead && h2_stream_n_consumed(r->upstream) >= EARNS_FROM &&
		!proxy_client_buffer_is_over(r->owner))
		more = h2_stream_window(r->upstream);
	uint32_t all = buf_allowed(p->chunks, now + more, 0, p->conf.window_max);
	if (all > now)
		proxy_count(r->proxy, PROXY_windows_grown);
	uint32_t less = all < now ? now - all : 0, mine = r->earned;
	r->earned = all > now ? mine + (all - now) : mine - (less < mine ? less : mine);
	if (r->earned == mine)
		return;
	b->earned += r->earned - (uint64_t)mine;
	h2_stream_set_ahead(r->upstream, r->ahead + r->earned);
}
