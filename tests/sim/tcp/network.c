// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/tcp/network.h"

#include "dataplane/tcp/csum.h"

#include <stdlib.h>

#define MAX_PACKETS 65536

static struct packet *heap[MAX_PACKETS]; // what is under way, by (at_ns, order)

static bool earlier(const struct packet *a, const struct packet *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void heap_push(struct world *w, struct packet *p)
{
	if (w->n_under_way == MAX_PACKETS)
		world_fail(w, "too many packets in the network");
	size_t i = w->n_under_way++;
	for (; i && earlier(p, heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = p;
}

static struct packet *heap_pop(struct world *w)
{
	struct packet *first = heap[0], *last = heap[--w->n_under_way];
	size_t i = 0, child;
	for (; (child = 2 * i + 1) < w->n_under_way; i = child) {
		if (child + 1 < w->n_under_way && earlier(heap[child + 1], heap[child]))
			child++;
		if (!earlier(heap[child], last))
			break;
		heap[i] = heap[child];
	}
	heap[i] = last;
	return first;
}

static void *io_reserve(void *ctx, const struct tcp_flow *flow, size_t len)
{
	struct port *port = ctx;
	struct world *w = port->world;
	if (len > (size_t)w->mtu - 20)
		world_fail(w, "a segment is larger than the MTU");
	if (world_chance(w, w->no_buffer))
		return NULL;
	if (w->open)
		world_fail(w, "two reservations at once");
	w->open = malloc(sizeof(*w->open) + len);
	if (!w->open)
		world_fail(w, "out of memory");
	w->open->flow = *flow;
	w->open->ect = w->open->marked = false;
	w->open->len = len;
	return w->open->bytes;
}

// A middlebox that knows less than both ends: they must get by with what remains.
static void strip_options(const struct world *w, struct packet *p)
{
	uint8_t *end = p->bytes + (p->bytes[12] >> 4) * 4;
	for (uint8_t *o = p->bytes + TCP_HEADER_LEN; o < end;) {
		uint8_t len = *o <= 1 ? 1 : o[1];
		if (w->strip >> *o & 1)
			memset(o, 1, len); // no-operation
		else if (*o == 2 && w->clamp)
			put16(o + 2, w->clamp);
		o += len;
	}
	memset(p->bytes + offsetof(struct tcp_header, checksum), 0, 2);
	uint16_t sum =
		tcp_csum_segment(tcp_csum_flow(&p->flow.local, &p->flow.remote), p->bytes, p->len);
	memcpy(p->bytes + offsetof(struct tcp_header, checksum), &sum, 2);
}

// A router between drops what is longer than its next link takes, and may say so.
static bool is_too_big(struct world *w, struct packet *p)
{
	if (p->len + (ip_is_v4(&p->flow.remote) ? 20 : 40) <= w->path_mtu)
		return false;
	if (world_chance(w, w->untold)) {
		free(p);
		return true;
	}
	p->to = !p->to;
	p->too_big = true;
	p->at_ns = w->now + 2 * w->delay_ns;
	p->order = w->n_order++;
	heap_push(w, p);
	return true;
}

// When a packet arrives that is sent now; 0 = the queue is full.
static uint64_t arrival(struct world *w, const struct packet *p)
{
	uint64_t at = w->now + w->delay_ns + rand_below(&w->rand, w->jitter_ns + 1);
	if (world_chance(w, w->late))
		at += rand_below(&w->rand, w->late_ns + 1);
	if (w->pause_every_ns && w->now % w->pause_every_ns < w->pause_ns)
		at += w->pause_ns - w->now % w->pause_every_ns;
	if (w->byte_ns && p->to == 1) {
		uint64_t begin = w->free_at_ns > w->now ? w->free_at_ns : w->now;
		if (begin - w->now > w->queue * w->byte_ns * w->mtu)
			return 0;
		w->free_at_ns = begin + p->len * w->byte_ns;
		at += w->free_at_ns - w->now;
	} else if (w->gather_ns) {
		at += w->gather_ns - at % w->gather_ns;
	}
	return at;
}

static void io_emit(void *ctx, const struct tcp_flow *flow, void *segment, size_t len)
{
	struct port *port = ctx;
	struct world *w = port->world;
	struct packet *p = w->open;
	if (!p || segment != p->bytes || len != p->len || !tcp_flow_eq(flow, &p->flow))
		world_fail(w, "emit does not match reserve");
	w->open = NULL;
	w->n_packets++;
	if (w->twin)
		twin_sent(w->twin, port->side, world_conn_number(flow), w->now, segment, len);
	p->to = !port->side;
	p->too_big = false;
	if (p->bytes[offsetof(struct tcp_header, flags)] & TCP_SYN)
		strip_options(w, p);
	if (world_chance(w, w->loss)) {
		free(p);
		return;
	}
	if (is_too_big(w, p))
		return;
	p->marked = p->ect && world_chance(w, w->mark);
	for (unsigned copies = world_chance(w, w->dup) ? 2 : 1; copies; copies--) {
		struct packet *q = p;
		if (copies == 2) {
			q = malloc(sizeof(*q) + p->len);
			if (!q)
				world_fail(w, "out of memory");
			memcpy(q, p, sizeof(*q) + p->len);
		}
		if (world_chance(w, w->corrupt)) { // one bit: no checksum may miss that
			uint64_t bit = rand_below(&w->rand, q->len * 8);
			q->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			w->n_corrupted++;
		}
		q->at_ns = arrival(w, q);
		q->order = w->n_order++;
		if (q->at_ns)
			heap_push(w, q);
		else
			free(q);
	}
}

static void io_emit_ect(void *ctx, const struct tcp_flow *flow, void *segment, size_t len)
{
	struct port *port = ctx;
	struct packet *p = port->world->open;
	const struct tcp_header *h = segment;
	if (!p || (size_t)(h->offset >> 4) * 4 == len)
		world_fail(port->world, "a segment without data may be marked");
	p->ect = true;
	io_emit(ctx, flow, segment, len);
}

static uint16_t io_mtu(void *ctx, const struct tcp_flow *flow)
{
	struct port *port = ctx;
	return port->world->mtu;
}

struct tcp_io network_io(struct port *port, bool ecn)
{
	return (struct tcp_io){io_reserve, io_emit, io_mtu, port, ecn ? io_emit_ect : NULL};
}

struct packet *network_take(struct world *w)
{
	return network_next_ns(w) <= w->now ? heap_pop(w) : NULL;
}

uint64_t network_next_ns(const struct world *w)
{
	return w->n_under_way ? heap[0]->at_ns : UINT64_MAX;
}

void network_clear(struct world *w)
{
	while (w->n_under_way)
		free(heap_pop(w));
}
