// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/pressure.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/client_cut.h"
#include "dataplane/proxy/client_hello.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/base/time.h"

#define LOOK_EVERY_NS NS_PER_MS
#define LOOKS 1024 // clients at a time
// How fast a client takes what it has asked for is measured for so long. Who takes a quarter of
// what is kept for it in a second is not cut, unless three quarters of all chunks are in use.
#define MEASURE_NS NS_PER_SECOND
#define MEASURE_LEAST_NS (100 * NS_PER_MS)
#define TAKE_ALL_IN 4 // seconds

static bool uses(const struct pool *chunks, uint32_t quarters)
{
	return chunks->n_used > (uint64_t)chunks->n_total * quarters / 4;
}

// From how many quarters of the chunks on somebody is cut. Who is alone leaves a reserve.
static uint32_t limit_of(const struct proxy *p)
{
	return p->clients.n_used > 1 ? 2 : 3;
}

// Outside of its streams.
static uint64_t kept_in_conn(const struct proxy_client *c)
{
	return proxy_conn_left(&c->conn) + proxy_conn_unread(&c->conn) + proxy_client_hello_len(c);
}

static void measure_anew(struct proxy_client *c)
{
	c->measured_ns = c->conn.proxy->now_ns;
	c->measured_taken = proxy_client_buffer_taken(c);
}

static bool is_slow(const struct proxy_client *c, uint64_t held)
{
	uint64_t ns = c->conn.proxy->now_ns - c->measured_ns;
	uint64_t took = proxy_client_buffer_taken(c) - c->measured_taken;
	return c->measured_ns && ns >= MEASURE_LEAST_NS &&
	       took * TAKE_ALL_IN < held * (ns / NS_PER_MS) / (NS_PER_SECOND / NS_PER_MS);
}

static void look_at(struct proxy_pressure *s, struct proxy_client *c, bool at_any_pace)
{
	uint64_t held = proxy_client_buffer_held(c);
	if (held > s->worst_held && (at_any_pace || is_slow(c, held))) {
		s->worst = c;
		s->worst_held = held;
	}
	uint64_t ns = c->conn.proxy->now_ns - c->measured_ns;
	if (!c->measured_ns || ns >= MEASURE_NS || !held) // who has nothing to take is not slow
		measure_anew(c);
}

static void cut(struct proxy *p, struct proxy_client *c)
{
	if (kept_in_conn(c) > proxy_client_buffer_held(c) / 2) {
		proxy_client_cut(c, PROXY_clients_cut_for_memory);
		return;
	}
	proxy_conn_touch(&c->conn);
	struct h2_stream *s = h2_conn_newest(c->conn.h2);
	uint32_t limit = limit_of(p);
	while (s && uses(p->chunks, limit)) {
		struct h2_stream *older = h2_stream_older(s);
		if (proxy_client_buffer_of(s))
			proxy_client_cut_stream(c, s, PROXY_streams_cut_for_memory);
		s = older;
	}
}

void proxy_pressure_relieve(struct proxy *p)
{
	struct proxy_pressure *s = &p->pressure;
	if (!uses(p->chunks, 1) || p->now_ns < s->look_ns)
		return;
	s->look_ns = p->now_ns + LOOK_EVERY_NS;
	bool at_any_pace = uses(p->chunks, 3);
	if (!s->next)
		s->next = proxy_client_first(p);
	for (uint32_t n = 0; s->next && n < LOOKS; n++) {
		struct proxy_client *c = s->next;
		s->next = proxy_client_after(c);
		look_at(s, c, at_any_pace);
	}
	if (s->next)
		return;
	struct proxy_client *worst = s->worst;
	s->worst = NULL;
	s->worst_held = 0;
	if (worst && uses(p->chunks, limit_of(p)))
		cut(p, worst);
}
