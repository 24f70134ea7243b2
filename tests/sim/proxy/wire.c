// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/proxy/wire.h"

#include "dataplane/buf/buf.h"
#include "lb/base/check.h"

#include <stdlib.h>
#include <string.h>

void wire_init(struct wire *w, uint64_t seed)
{
	*w = (struct wire){.now_ns = SECOND, .delay_ns = MS / 2, .jitter_ns = MS / 10};
	rand_init(&w->rand, seed);
}

void wire_fini(struct wire *w)
{
	for (uint32_t i = 0; i < w->n_packets; i++)
		free(w->heap[i]);
	free(w->heap);
	for (uint32_t i = 0; i < w->n_hosts; i++) {
		tcp_stack_free(w->hosts[i].tcp);
		pool_fini(&w->hosts[i].chunks);
		twheel_free(w->hosts[i].wheel);
	}
}

struct ip_addr wire_address(uint32_t host, uint32_t last)
{
	struct ip_addr ip = ip_from_v4(10u << 24 | (host & ~WIRE_V6) << 8 | last);
	if (host & WIRE_V6) {
		memset(ip.b, 0, 12);
		ip.b[0] = 0xfd;
	}
	return ip;
}

static bool earlier(const struct packet *a, const struct packet *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->serial < b->serial;
}

static void heap_push(struct wire *w, struct packet *p)
{
	if (w->n_packets == w->room) {
		w->room = w->room ? 2 * w->room : 256;
		w->heap = realloc(w->heap, w->room * sizeof(struct packet *));
		CHECK(w->heap);
	}
	uint32_t i = w->n_packets++;
	for (; i && earlier(p, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = p;
}

static struct packet *heap_pop(struct wire *w)
{
	struct packet *top = w->heap[0], *last = w->heap[--w->n_packets];
	uint32_t i = 0;
	for (;;) {
		uint32_t child = 2 * i + 1;
		if (child >= w->n_packets)
			break;
		if (child + 1 < w->n_packets && earlier(w->heap[child + 1], w->heap[child]))
			child++;
		if (!earlier(w->heap[child], last))
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	w->heap[i] = last;
	return top;
}

static void *reserve(void *ctx, const struct tcp_flow *flow, size_t len)
{
	struct host *h = ctx;
	return len <= sizeof(h->segment) ? h->segment : NULL;
}

static void emit(void *ctx, const struct tcp_flow *flow, void *segment, size_t len)
{
	struct host *h = ctx;
	struct wire *w = h->wire;
	w->n_sent++;
	bool too_long = w->silent_mtu && len + 20 > w->silent_mtu;
	if (h->unplugged || too_long || (double)(rand_u64(&w->rand) >> 11) * 0x1p-53 < w->loss) {
		w->n_lost++;
		return;
	}
	struct packet *p = malloc(sizeof(*p));
	CHECK(p && len <= sizeof(p->data));
	p->at_ns = w->now_ns + w->delay_ns + rand_below(&w->rand, w->jitter_ns + 1);
	p->serial = w->serial++;
	p->from = flow->local;
	p->to = flow->remote;
	p->len = (uint16_t)len;
	memcpy(p->data, segment, len);
	heap_push(w, p);
}

static uint16_t mtu(void *ctx, const struct tcp_flow *flow)
{
	return 1500;
}

struct host *wire_add_host(
	struct wire *w, uint32_t n_chunks, uint32_t max_conns, uint32_t send_limit)
{
	CHECK(w->n_hosts < MAX_HOSTS);
	struct host *h = &w->hosts[w->n_hosts++];
	*h = (struct host){.wire = w, .wheel = twheel_new(w->now_ns)};
	CHECK(h->wheel && buf_pool_init(&h->chunks, n_chunks) == 0);
	struct tcp_conf conf = {.max_conns = max_conns,
		.max_half_open = max_conns,
		.max_time_wait = max_conns,
		.send_limit = send_limit,
		.recv_window = 64 << 10,
		.window_max = 4 << 20,
		.secret = {(uint8_t)w->n_hosts},
		.seed = rand_u64(&w->rand)};
	struct tcp_io io = {.reserve = reserve, .emit = emit, .mtu = mtu, .ctx = h};
	h->tcp = tcp_stack_new(&conf, &io, &h->chunks, h->wheel);
	CHECK(h->tcp);
	return h;
}

static uint64_t next_event(const struct wire *w)
{
	uint64_t at = w->n_packets ? w->heap[0]->at_ns : UINT64_MAX;
	for (uint32_t i = 0; i < w->n_hosts; i++) {
		uint64_t t = w->hosts[i].due ? w->now_ns : twheel_next_ns(w->hosts[i].wheel);
		if (t < at)
			at = t;
	}
	return at;
}

static void deliver(struct wire *w)
{
	while (w->n_packets && w->heap[0]->at_ns <= w->now_ns) {
		struct packet *p = heap_pop(w);
		uint32_t n = p->to.b[14];
		struct tcp_flow flow = {.local = p->to, .remote = p->from};
		if (n < w->n_hosts && !w->hosts[n].unplugged) {
			wire_watch(&w->hosts[n], true);
			tcp_stack_input(w->hosts[n].tcp, &flow, p->data, p->len);
			wire_watch(&w->hosts[n], false);
		}
		free(p);
	}
}

bool wire_step(struct wire *w, uint64_t until_ns)
{
	uint64_t at = next_event(w);
	if (at > until_ns) {
		w->now_ns = until_ns;
		return false;
	}
	if (at > w->now_ns)
		w->now_ns = at;
	for (uint32_t i = 0; i < w->n_hosts; i++) {
		w->hosts[i].due = false;
		if (w->hosts[i].begin_turn)
			w->hosts[i].begin_turn(w->hosts[i].ctx);
		wire_watch(&w->hosts[i], true);
		twheel_advance(w->hosts[i].wheel, w->now_ns);
		wire_watch(&w->hosts[i], false);
	}
	deliver(w);
	for (uint32_t i = 0; i < w->n_hosts; i++) {
		if (w->hosts[i].end_turn)
			w->hosts[i].end_turn(w->hosts[i].ctx);
		tcp_stack_flush(w->hosts[i].tcp);
	}
	return true;
}
