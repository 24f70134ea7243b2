// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/client_buffer.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/client_hello.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/base/min.h"

// For an answer more, whose fields are 60 KiB at most, the next one that is being read, chunks that
// are not full, and HPACK's tables.
#define FIELDS_SPARE (224u << 10)
// Of the bound: fields that go to TCP beyond what that may hold of bodies, whatever else is there.
#define FIELDS_SHARE 8
// Of the bound: what backends may send ahead of first windows.
#define AHEAD_SHARE 6
// And of it what they may send so in any case: a client with a thousand silent streams has one of
// them read a large answer now and then.
#define LEAST_SHARE 32
// Of what is left of that, a stream gets one part. N busy streams have one of N + 1 each.
#define STREAM_SHARE 2
// What TCP holds of answers does not depend on the bound: in sum there may be so much in any case.
#define SUM_LEAST (1u << 20)
// Of a request, the client's stream and the backend's; attempts that failed are few.
#define REQUEST_SIZE (offsetof(struct proxy_request, tries) + (size_t)2 * H2_STREAM_SIZE)
// A client that has taken so much of an answer reads on when HTTP/2's first window, 64 KiB as a
// rule, is used up.
#define EARNS_FROM (2 * PROXY_STREAM_WINDOW)

static uint64_t in_tcp(const struct proxy_client *c)
{
	return proxy_conn_left(&c->conn);
}

// What is on its way is the network's, which takes or loses it: cwnd says how much that may be.
uint64_t proxy_client_buffer_unread(const struct proxy_client *c)
{
	return proxy_conn_unsent(&c->conn) + h2_conn_queued(c->conn.h2);
}

uint64_t proxy_client_buffer_held(const struct proxy_client *c)
{
	// A body that waits for a backend is stored, and one that was sent may be, too.
	uint64_t bodies = h2_conn_unconsumed(c->conn.h2), kept = c->buffer.kept;
	uint64_t not_read = proxy_conn_unread(&c->conn) + proxy_client_hello_len(c);
	uint64_t answers = in_tcp(c) + h2_conn_queued(c->conn.h2);
	return answers + not_read + (bodies > kept ? bodies : kept);
}

uint64_t proxy_client_buffer_taken(const struct proxy_client *c)
{
	return proxy_conn_taken(&c->conn);
}

static uint64_t bound_of(const struct proxy_client *c)
{
	return c->buffer.bound + c->buffer.earned;
}

static uint64_t size_of_requests(const struct proxy_client *c)
{
	return (uint64_t)h2_conn_n_streams(c->conn.h2) * REQUEST_SIZE;
}

bool proxy_client_buffer_answers_are_over(const struct proxy_client *c)
{
	return proxy_client_buffer_unread(c) > bound_of(c);
}

bool proxy_client_buffer_may_wait(const struct proxy_client *c)
{
	uint64_t kept = c->buffer.kept, bodies = h2_conn_unconsumed(c->conn.h2);
	uint64_t others = kept - min_u64(kept, bodies);
	return kept <= c->buffer.bound / 4 * 3 && others <= c->buffer.bound / 8 * 3;
}

// A frame's header begins a chunk, so that those of answers may be two thirds full.
static uint64_t in_chunks(uint64_t answers)
{
	return answers + answers / 2;
}

// A body that waits for a backend is stored; of one that was sent there may be a copy, and at a
// second attempt more of it may wait than the client is still charged with.
static uint64_t request_of(const struct h2_stream *s)
{
	const struct proxy_request *r = h2_stream_user(s);
	uint64_t body = h2_stream_unconsumed(s), stored = r ? r->replay.bytes.len : 0;
	if (!r || !r->upstream)
		return max_u64(body, stored);
	return max_u64(body, h2_stream_queued(r->upstream)) + stored;
}

uint64_t proxy_client_buffer_of(const struct h2_stream *s)
{
	return in_chunks(h2_stream_queued(s)) + request_of(s);
}

// Bodies in a window that has grown are not among them: its client has earned it.
static uint64_t requests_of(const struct proxy_client *c)
{
	uint64_t window = h2_conn_first_window(c->conn.h2), bodies = h2_conn_unconsumed(c->conn.h2);
	uint64_t earned = bodies - min_u64(bodies, window), all = 0;
	for (struct h2_stream *s = h2_conn_newest(c->conn.h2); s; s = h2_stream_older(s))
		all += request_of(s);
	return all - min_u64(earned, all);
}

// Requests themselves count, with a chunk each that is half full. But a part at most: how many
// there are is their operator's choice.
bool proxy_client_buffer_sum_is_over(const struct proxy_client *c)
{
	uint64_t unread = proxy_client_buffer_unread(c), bound = c->buffer.bound;
	uint64_t most = h2_conn_unconsumed(c->conn.h2) + c->buffer.kept;
	if (unread <= proxy_client_buffer_little(&c->buffer) || most <= bound / 16)
		return false;
	uint64_t requests = requests_of(c), n = h2_conn_n_streams(c->conn.h2);
	uint64_t themselves = min_u64(n * (REQUEST_SIZE + BUF_CHUNK_SIZE / 2), bound / 4);
	uint64_t all = in_chunks(unread) + proxy_conn_unread(&c->conn) + requests + themselves;
	return requests > bound / 16 && all > max_u64(bound, SUM_LEAST) + c->buffer.earned;
}

// Bodies stop at what TCP may hold: only fields go beyond. A reader that is slow has little of them
// there, with whatever it has of bodies.
bool proxy_client_buffer_takes_fields(const struct proxy_client *c)
{
	uint64_t tcp = in_tcp(c), queued = h2_conn_queued(c->conn.h2);
	if (tcp <= tcp_conn_send_limit(c->conn.tcp) + c->buffer.bound / FIELDS_SHARE)
		return true;
	return tcp + queued + size_of_requests(c) + FIELDS_SPARE <= bound_of(c);
}

// Its requests themselves are paid for out of that, too.
static uint64_t share_ahead(const struct proxy_client *c)
{
	uint64_t most = c->buffer.bound / AHEAD_SHARE, least = c->buffer.bound / LEAST_SHARE;
	uint64_t requests = size_of_requests(c);
	return requests + least < most ? most - requests : least;
}

static uint32_t ahead_of(const struct proxy_request *r)
{
	const struct proxy_client *c = r->owner;
	uint64_t unread = proxy_client_buffer_unread(c), others = c->buffer.ahead - r->ahead;
	uint64_t room = bound_of(c) - min_u64(unread, bound_of(c));
	uint64_t all = min_u64(share_ahead(c), room);
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
		!proxy_client_buffer_answers_are_over(r->owner))
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
