// SPDX-License-Identifier: Apache-2.0
// Two stacks over a bad network in virtual time: delay, jitter, loss, packets that others overtake,
// pauses of the whole path, duplication and corruption,
// random writers, readers that stall, half-closes. Every byte must arrive once and in order, every
// connection must end, and all memory must come back. Each odd seed runs twice, with and without
// the fast path of fast_path.c, which must change no segment and no state.
// Usage: tcp_sim [seed [count]].
#include "dataplane/tcp/csum.h"
#include "dataplane/tcp/tcp_internal.h"
#include "lb/base/container_of.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "tests/support/tcp_digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define N_SEEDS 300
#define MAX_CONNS 12
#define MAX_PACKETS 65536
#define PACKET_MAX 2000
#define END_NS (900 * NS_PER_SECOND) // every run must be over by then

struct packet {
	uint64_t at_ns;
	uint64_t order; // equal times: first sent, first delivered
	unsigned to;
	size_t len;
	bool ect, marked; // routers may mark it in place of losing it; one did
	bool too_big; // comes back to its sender, from a router
	struct tcp_flow flow; // as the sender sees it
	uint8_t bytes[PACKET_MAX];
};

// One direction's promise: byte i of (connection, side) is known to both.
struct end {
	struct world *world;
	struct tcp_conn *conn; // NULL = closed or not open yet
	unsigned side, number;
	uint64_t to_send, sent, received;
	bool established, eof, shut, closed, early_shut;
	enum tcp_close_reason reason;
	struct twheel_timer timer; // writes, resumes
};

struct world {
	struct rand rand;
	uint64_t now, n_order;
	struct twheel *wheel[2];
	struct pool chunks[2];
	struct tcp_stack *stack[2];
	struct packet **heap; // by (at_ns, order)
	size_t n_heap;
	struct packet *open; // reserved by a stack, not emitted yet
	struct end ends[2][MAX_CONNS];
	unsigned n_conns;
	// The network: probabilities in 1/1000.
	uint64_t delay_ns, jitter_ns;
	unsigned loss, dup, corrupt, no_buffer, late;
	unsigned mark; // of what may be marked
	bool ecn; // both ends know it
	uint64_t late_ns; // at most, beside the others
	uint64_t pause_every_ns, pause_ns; // 0 = never; what is sent meanwhile arrives behind it
	// Of what goes to side 1: the time that a byte takes (0 = none), and the packets that wait.
	uint64_t byte_ns;
	unsigned queue;
	uint64_t free_at_ns; // the link, of what it has taken
	uint64_t gather_ns; // what comes back arrives at multiples of this
	unsigned strip; // bits: kinds of options that a middlebox takes out of SYNs
	uint16_t clamp; // the MSS that it puts there; 0 = it doesn't
	uint16_t mtu, path_mtu; // of the links at both ends, and the least between
	bool greedy; // writers fill the send queue whenever they can
	bool chatty; // they mostly write less than a segment, with pauses between
	uint32_t max_stall_ms;
	uint64_t n_packets, n_corrupted;
	const struct tcp_cc_ops *congestion; // NULL = as it is by default
	uint64_t digest; // of all that was sent, and all states and counters after each turn
	bool slow_path;
};

// The digest after each turn of a seed's first run, which the second must meet.
static uint64_t *digests;
static size_t n_digests, max_digests;

static struct world world;

static _Noreturn void fail(const char *what)
{
	static const char *const names[] = {TCP_COUNTERS(COUNTER_NAME)};
	fprintf(stderr, "tcp_sim: %s, at %" PRIu64 " ns\n", what, world.now);
	for (unsigned i = 0; i < TCP_N_COUNTERS; i++)
		fprintf(stderr, "%26s %10" PRIu64 " %10" PRIu64 "\n", names[i],
			world.stack[0] ? world.stack[0]->counters[i] : 0,
			world.stack[1] ? world.stack[1]->counters[i] : 0);
	abort();
}

static bool chance(struct world *w, unsigned per_mille)
{
	return per_mille && rand_below(&w->rand, 1000) < per_mille;
}

static uint8_t byte_at(const struct end *sender, uint64_t i)
{
	uint64_t x = (i / 8 + 1) * 0x9e3779b97f4a7c15 + sender->number * 2 + sender->side;
	return (uint8_t)((x ^ x >> 29) >> (i % 8 * 8));
}

// The network.

static bool earlier(const struct packet *a, const struct packet *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void heap_push(struct world *w, struct packet *p)
{
	if (w->n_heap == MAX_PACKETS)
		fail("too many packets in the network");
	size_t i = w->n_heap++;
	for (; i && earlier(p, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = p;
}

static struct packet *heap_pop(struct world *w)
{
	struct packet *first = w->heap[0], *last = w->heap[--w->n_heap];
	size_t i = 0, child;
	for (; (child = 2 * i + 1) < w->n_heap; i = child) {
		if (child + 1 < w->n_heap && earlier(w->heap[child + 1], w->heap[child]))
			child++;
		if (!earlier(w->heap[child], last))
			break;
		w->heap[i] = w->heap[child];
	}
	w->heap[i] = last;
	return first;
}

struct port {
	struct world *world;
	unsigned side;
};

static void *io_reserve(void *ctx, const struct tcp_flow *flow, size_t len)
{
	struct port *port = ctx;
	struct world *w = port->world;
	if (len > (size_t)w->mtu - 20)
		fail("a segment is larger than the MTU");
	if (chance(w, w->no_buffer))
		return NULL;
	if (w->open)
		fail("two reservations at once");
	w->open = malloc(sizeof(*w->open));
	if (!w->open)
		fail("out of memory");
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

// A router between drops what is longer than its next link takes, and says so, in vain at times.
static bool is_too_big(struct world *w, struct packet *p)
{
	if (p->len + (ip_is_v4(&p->flow.remote) ? 20 : 40) <= w->path_mtu)
		return false;
	if (chance(w, 300)) {
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
	if (chance(w, w->late))
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
		fail("emit does not match reserve");
	w->open = NULL;
	w->n_packets++;
	w->digest = digest_u64(w->digest, w->now << 1 | port->side);
	w->digest = digest_bytes(w->digest, segment, len);
	p->to = !port->side;
	p->too_big = false;
	if (p->bytes[offsetof(struct tcp_header, flags)] & TCP_SYN)
		strip_options(w, p);
	if (chance(w, w->loss)) {
		free(p);
		return;
	}
	if (is_too_big(w, p))
		return;
	p->marked = p->ect && chance(w, w->mark);
	for (unsigned copies = chance(w, w->dup) ? 2 : 1; copies; copies--) {
		struct packet *q = p;
		if (copies == 2) {
			q = malloc(sizeof(*q));
			if (!q)
				fail("out of memory");
			memcpy(q, p, sizeof(*q));
		}
		if (chance(w, w->corrupt)) { // one bit: no checksum may miss that
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
		fail("a segment without data may be marked");
	p->ect = true;
	io_emit(ctx, flow, segment, len);
}

static uint16_t io_mtu(void *ctx, const struct tcp_flow *flow)
{
	struct port *port = ctx;
	return port->world->mtu;
}

// The applications.

static void schedule(struct end *e, uint64_t max_ms)
{
	struct world *w = e->world;
	uint64_t at = w->now + rand_below(&w->rand, max_ms + 1) * NS_PER_MS;
	if (!twheel_armed(&e->timer))
		twheel_arm(w->wheel[e->side], &e->timer, at);
}

static void maybe_shut(struct end *e)
{
	if (e->shut || e->sent < e->to_send || !e->established)
		return;
	// Some close as soon as they have said everything, some only after the other side did.
	if (!e->early_shut && !e->eof && e->world->ends[!e->side][e->number].early_shut)
		return;
	e->shut = true;
	tcp_conn_shutdown(e->conn);
}

static void write_some(struct end *e, uint64_t most)
{
	uint8_t piece[4096];
	struct world *w = e->world;
	most = w->greedy ? UINT64_MAX : most;
	if (w->chatty && !chance(w, 100))
		most = 1 + rand_below(&w->rand, 600);
	while (most && e->sent < e->to_send && !e->shut) {
		uint64_t n = rand_below(&w->rand, sizeof(piece)) + 1;
		size_t room = tcp_conn_send_room(e->conn);
		if (n > most)
			n = most;
		if (n > e->to_send - e->sent)
			n = e->to_send - e->sent;
		if (n > room)
			n = room;
		for (uint64_t i = 0; i < n; i++)
			piece[i] = byte_at(e, e->sent + i);
		if (!n || !buf_append(tcp_conn_sendq(e->conn), &w->chunks[e->side], piece, n))
			break;
		e->sent += n;
		most -= n;
	}
	tcp_conn_push(e->conn);
	maybe_shut(e);
	if (e->sent < e->to_send)
		schedule(e, w->chatty ? 500 : 50);
}

static void end_fire(struct twheel_timer *t)
{
	struct end *e = CONTAINER_OF(t, struct end, timer);
	if (!e->conn || !e->established)
		return;
	tcp_conn_resume(e->conn);
	if (e->conn)
		write_some(e, 30000);
}

static void on_established(struct tcp_conn *c, void *user)
{
	struct end *e = user;
	if (e->established || e->conn != c)
		fail("established twice");
	e->established = true;
	write_some(e, rand_below(&e->world->rand, 30000));
}

static size_t on_data(struct tcp_conn *c, void *user, const uint8_t *data, size_t len)
{
	struct end *e = user;
	struct world *w = e->world;
	const struct end *peer = &w->ends[!e->side][e->number];
	if (!len || e->eof || e->conn != c)
		fail("data at the wrong time");
	size_t n = len;
	if (w->max_stall_ms && chance(w, 100)) {
		n = rand_below(&w->rand, len + 1);
		schedule(e, w->max_stall_ms);
		if (chance(w, 100))
			tcp_conn_resume(c); // the next turn shall deliver
	}
	for (size_t i = 0; i < n; i++)
		if (data[i] != byte_at(peer, e->received + i))
			fail("a byte is wrong");
	e->received += n;
	return n;
}

static void on_send_room(struct tcp_conn *c, void *user)
{
	struct end *e = user;
	write_some(e, 30000);
}

static void on_eof(struct tcp_conn *c, void *user)
{
	struct end *e = user;
	if (e->eof || e->received != e->world->ends[!e->side][e->number].to_send)
		fail("end of data at the wrong place");
	e->eof = true;
	maybe_shut(e);
}

static void on_closed(struct tcp_conn *c, void *user, enum tcp_close_reason reason)
{
	struct end *e = user;
	if (e->closed)
		fail("closed twice");
	e->closed = true;
	e->reason = reason;
	e->conn = NULL;
	twheel_cancel(e->world->wheel[e->side], &e->timer);
}

static const struct tcp_conn_ops ops = {on_established, on_data, on_send_room, on_eof, on_closed};

static const struct tcp_conn_ops *on_accept(void *arg, struct tcp_conn *c, void **ret_user)
{
	struct world *w = arg;
	// Client ports are 1000 + number.
	struct end *e = &w->ends[1][tcp_conn_flow(c)->remote_port - 1000];
	if (e->conn || e->closed)
		fail("accepted twice");
	e->conn = c;
	tcp_conn_set_user_timeout(c, 1000 * NS_PER_SECOND);
	*ret_user = e;
	e->established = true;
	schedule(e, 5);
	return &ops;
}

// The run.

static const struct ip_addr v4[2] = {
	{{[10] = 0xff, 0xff, 10, 0, 0, 1}}, {{[10] = 0xff, 0xff, 10, 0, 0, 2}}};
static const struct ip_addr v6[2] = {{{0xfd, [15] = 1}}, {{0xfd, [15] = 2}}};

static void deliver(struct world *w)
{
	while (w->n_heap && w->heap[0]->at_ns <= w->now) {
		struct packet *p = heap_pop(w);
		struct tcp_flow flow = {.local = p->flow.remote, .remote = p->flow.local};
		if (p->too_big)
			tcp_stack_too_big(
				w->stack[p->to], &p->flow, get32(p->bytes + 4), w->path_mtu);
		else if (p->marked)
			tcp_stack_input_marked(w->stack[p->to], &flow, p->bytes, p->len);
		else
			tcp_stack_input(w->stack[p->to], &flow, p->bytes, p->len);
		free(p);
	}
}

static uint64_t next_event(const struct world *w)
{
	uint64_t at = w->n_heap ? w->heap[0]->at_ns : UINT64_MAX;
	for (unsigned side = 0; side < 2; side++) {
		uint64_t next = twheel_next_ns(w->wheel[side]);
		at = next < at ? next : at;
	}
	return at;
}

static void turn(struct world *w)
{
	for (unsigned side = 0; side < 2; side++)
		twheel_advance(w->wheel[side], w->now);
	deliver(w);
	for (unsigned side = 0; side < 2; side++)
		tcp_stack_flush(w->stack[side]);
}

// A run of the fast path writes down what the other one must meet in its turn of the same number.
static void compare(struct world *w, size_t i)
{
	for (unsigned side = 0; side < 2; side++) {
		const uint64_t *counters = w->stack[side]->counters;
		w->digest = digest_bytes(w->digest, counters, TCP_N_COUNTERS * sizeof(*counters));
		for (unsigned k = 0; k < w->n_conns; k++)
			if (w->ends[side][k].conn)
				w->digest = digest_conn(w->digest, w->ends[side][k].conn);
	}
	if (w->slow_path) {
		if (i >= n_digests || digests[i] != w->digest)
			fail("the fast path did something else");
		return;
	}
	if (i == max_digests) {
		max_digests = max_digests ? 2 * max_digests : 4096;
		digests = realloc(digests, max_digests * sizeof(*digests));
		if (!digests)
			fail("out of memory");
	}
	digests[i] = w->digest;
	n_digests = i + 1;
}

static bool all_closed(const struct world *w)
{
	for (unsigned i = 0; i < w->n_conns; i++)
		if (!w->ends[0][i].closed || !w->ends[1][i].closed)
			return false;
	return true;
}

static void run_until_closed(struct world *w, uint64_t end_ns)
{
	for (size_t i = 0;; i++) {
		turn(w);
		compare(w, i);
		if (all_closed(w))
			return;
		uint64_t at = next_event(w);
		if (at > end_ns)
			fail("a connection did not end");
		w->now = at > w->now ? at : w->now;
	}
}

static void world_init(struct world *w, struct port ports[2], uint32_t window, uint32_t window_max,
	uint32_t n_chunks)
{
	w->now = 1 + rand_below(&w->rand, 1000 * NS_PER_SECOND);
	w->heap = calloc(MAX_PACKETS, sizeof(*w->heap));
	for (unsigned side = 0; side < 2; side++) {
		struct tcp_conf conf = {
			.max_conns = MAX_CONNS,
			.max_half_open = MAX_CONNS,
			.max_time_wait = MAX_CONNS,
			.send_limit = window,
			.recv_window = window,
			.window_max = window_max,
			.seed = rand_u64(&w->rand),
			.congestion = w->congestion,
			.slow_path = w->slow_path,
		};
		for (unsigned i = 0; i < sizeof(conf.secret); i++)
			conf.secret[i] = (uint8_t)rand_u64(&w->rand);
		ports[side] = (struct port){w, side};
		struct tcp_io io = {
			io_reserve, io_emit, io_mtu, &ports[side], w->ecn ? io_emit_ect : NULL};
		w->wheel[side] = twheel_new(w->now);
		if (!w->heap || !w->wheel[side] || buf_pool_init(&w->chunks[side], n_chunks))
			fail("out of memory");
		w->stack[side] = tcp_stack_new(&conf, &io, &w->chunks[side], w->wheel[side]);
		if (!w->stack[side])
			fail("out of memory");
	}
}

static void open_conns(struct world *w, const struct ip_addr addr[2], uint64_t max_bytes)
{
	if (tcp_listen(w->stack[1], &addr[1], 80, on_accept, w))
		fail("cannot listen");
	for (unsigned i = 0; i < w->n_conns; i++) {
		for (unsigned side = 0; side < 2; side++) {
			struct end *e = &w->ends[side][i];
			*e = (struct end){.world = w,
				.side = side,
				.number = i,
				.to_send = rand_below(&w->rand, max_bytes + 1),
				.early_shut = chance(w, 500),
				.timer = {.fire = end_fire}};
			if (chance(w, 100))
				e->to_send = 0;
			// Who opens and then says nothing never hears that the listener, which
			// missed every answer to its SYN-ACKs, has given up (TCP-28).
			e->early_shut |= !side && !e->to_send;
		}
		struct tcp_flow flow = {addr[0], addr[1], (uint16_t)(1000 + i), 80};
		w->ends[0][i].conn =
			tcp_connect(w->stack[0], &flow, 600 * NS_PER_SECOND, &ops, &w->ends[0][i]);
		if (!w->ends[0][i].conn)
			fail("cannot connect");
		// What is refused for good is not what this tests.
		tcp_conn_set_user_timeout(w->ends[0][i].conn, 1000 * NS_PER_SECOND);
	}
}

static void world_fini(struct world *w)
{
	// TIME_WAIT ends; what is still in the network arrives.
	for (uint64_t end = w->now + 200 * NS_PER_SECOND, at; (at = next_event(w)) <= end;) {
		w->now = at > w->now ? at : w->now;
		turn(w);
	}
	for (unsigned side = 0; side < 2; side++) {
		struct tcp_stack *s = w->stack[side];
		if (tcp_stack_n_conns(s) || s->conns.n_used || s->ranges.n_used || s->tws.n_used ||
			w->chunks[side].n_used || s->n_half_open)
			fail("something was not given back");
		tcp_stack_free(s);
		twheel_free(w->wheel[side]);
		pool_fini(&w->chunks[side]);
	}
	while (w->n_heap)
		free(heap_pop(w));
	free(w->heap);
}

// No more is undone than was done.
static void check_undone(const struct world *w)
{
	for (unsigned side = 0; side < 2; side++) {
		const uint64_t *n = w->stack[side]->counters;
		if (n[TCP_recoveries_undone] > n[TCP_fast_recoveries] ||
			n[TCP_timeouts_undone] > n[TCP_retransmission_timeouts])
			fail("more was undone than done");
	}
}

// Returns the packets sent, for the record.
static uint64_t one_seed(uint64_t seed, bool slow_path)
{
	struct port ports[2];
	struct world *w = &world;
	memset(w, 0, sizeof(*w));
	rand_init(&w->rand, seed);
	w->slow_path = slow_path;
	w->congestion = seed & 2 ? &tcp_cc_reno : &tcp_cc_cubic;
	static const uint16_t mtus[] = {1500, 1500, 576, 1280};
	static const uint32_t windows[] = {4096, 20000, 65535, 262144};
	w->delay_ns = rand_below(&w->rand, 40) * NS_PER_MS / 2 + 1;
	w->jitter_ns = chance(w, 500) ? 0 : rand_below(&w->rand, 20) * NS_PER_MS;
	w->loss = chance(w, 300) ? 0 : (unsigned)rand_below(&w->rand, 80);
	w->late = chance(w, 500) ? 0 : 1 + (unsigned)rand_below(&w->rand, 100);
	w->late_ns = 1 + rand_below(&w->rand, 40 * NS_PER_MS);
	w->pause_every_ns =
		chance(w, 800) ? 0 : NS_PER_SECOND + rand_below(&w->rand, 3 * NS_PER_SECOND);
	w->pause_ns = 50 * NS_PER_MS + rand_below(&w->rand, 600 * NS_PER_MS);
	w->dup = chance(w, 500) ? 0 : (unsigned)rand_below(&w->rand, 50);
	w->corrupt = chance(w, 500) ? 0 : (unsigned)rand_below(&w->rand, 30);
	w->no_buffer = chance(w, 700) ? 0 : (unsigned)rand_below(&w->rand, 100);
	w->ecn = chance(w, 500);
	w->mark = (unsigned)rand_below(&w->rand, 100);
	w->max_stall_ms = chance(w, 300) ? 0 : 1 + (uint32_t)rand_below(&w->rand, 300);
	w->mtu = mtus[rand_below(&w->rand, 4)];
	static const unsigned kinds[] = {2, 3, 4, 8}; // MSS, window scale, SACK, timestamps
	for (unsigned i = 0; i < 4; i++)
		w->strip |= chance(w, 250) ? 1u << kinds[i] : 0;
	w->n_conns = 1 + (unsigned)rand_below(&w->rand, MAX_CONNS);
	uint32_t window = windows[rand_below(&w->rand, 4)];
	uint32_t window_max = window * (uint32_t)rand_below(&w->rand, 16);
	// Sometimes too few chunks for all, so that data is refused now and then.
	uint32_t n_chunks = chance(w, 200) ? 16 * w->n_conns : 4096;
	w->chatty = chance(w, 300);
	w->clamp = chance(w, 900) ? 0 : (uint16_t)(40 + rand_below(&w->rand, 600));
	static const uint16_t path_mtus[] = {1280, 1400, 600, 552};
	bool is_v6 = chance(w, 300);
	w->path_mtu = chance(w, 700) ? UINT16_MAX : path_mtus[rand_below(&w->rand, is_v6 ? 2 : 4)];
	world_init(w, ports, window, window_max, n_chunks);
	open_conns(w, is_v6 ? v6 : v4, w->chatty ? 100000 : 300000);
	run_until_closed(w, w->now + END_NS);
	uint64_t n_bad_sums = 0;
	for (unsigned side = 0; side < 2; side++)
		n_bad_sums += w->stack[side]->counters[TCP_drop_checksum];
	for (unsigned i = 0; i < w->n_conns; i++)
		for (unsigned side = 0; side < 2; side++) {
			const struct end *e = &w->ends[side][i];
			// With its last ACK lost and TIME_WAIT over, the other side meets a RST.
			if (e->reason != TCP_CLOSE_DONE || !e->eof ||
				e->received != w->ends[!side][i].to_send)
				fail("a connection ended badly");
		}
	check_undone(w);
	if (n_bad_sums > w->n_corrupted || (w->n_corrupted > 200 && !n_bad_sums))
		fail("corruption and checksum failures disagree");
	uint64_t n = w->n_packets;
	world_fini(w);
	return n;
}

struct bulk {
	uint64_t ns;
	uint32_t max_cwnd;
	uint64_t n_resent, n_timeouts, n_recoveries, n_undone;
};

// What the network of a bulk transfer does.
struct weather {
	unsigned loss, late, strip;
	uint64_t late_ns, pause_every_ns, pause_ns;
	unsigned mbit, queue, gather_ms; // 0 = no bottleneck; else ACKs come in bunches
};

// One connection, one direction, 10 ms each way.
static struct bulk bulk(
	uint64_t bytes, uint32_t window, uint32_t window_max, struct weather weather)
{
	struct port ports[2];
	struct world *w = &world;
	struct bulk result = {0};
	memset(w, 0, sizeof(*w));
	rand_init(&w->rand, 1);
	w->loss = weather.loss;
	w->strip = weather.strip;
	w->late = weather.late;
	w->late_ns = weather.late_ns;
	w->pause_every_ns = weather.pause_every_ns;
	w->pause_ns = weather.pause_ns;
	w->byte_ns = weather.mbit ? 8000 / weather.mbit : 0;
	w->queue = weather.queue;
	w->gather_ns = weather.gather_ms * NS_PER_MS;
	w->delay_ns = 10 * NS_PER_MS;
	w->mtu = 1500;
	w->path_mtu = UINT16_MAX;
	w->greedy = true;
	w->n_conns = 1;
	world_init(w, ports, window, window_max, 1 << 15);
	open_conns(w, v4, 0);
	w->ends[0][0].to_send = bytes;
	w->ends[0][0].early_shut = true;
	uint64_t start = w->now;
	for (;;) {
		turn(w);
		struct tcp_conn *c = w->ends[0][0].conn;
		if (c && c->cc.cwnd > result.max_cwnd)
			result.max_cwnd = c->cc.cwnd;
		if (all_closed(w))
			break;
		w->now = next_event(w) > w->now ? next_event(w) : w->now;
		if (w->now > start + 60 * NS_PER_SECOND)
			fail("too slow");
	}
	result.ns = w->now - start;
	const uint64_t *n = w->stack[0]->counters;
	result.n_resent = n[TCP_retransmits];
	result.n_timeouts = n[TCP_retransmission_timeouts];
	result.n_recoveries = n[TCP_fast_recoveries];
	result.n_undone = n[TCP_recoveries_undone] + n[TCP_timeouts_undone];
	world_fini(w);
	printf("bulk: %" PRIu64 " bytes, %u/1000 lost, %u/1000 late, in %" PRIu64
	       " ms; cwnd up to %u, %" PRIu64 " segments sent again, %" PRIu64
	       " recoveries, %" PRIu64 " timeouts, %" PRIu64 " undone\n",
		bytes, weather.loss, weather.late, result.ns / NS_PER_MS, result.max_cwnd,
		result.n_resent, result.n_recoveries, result.n_timeouts, result.n_undone);
	return result;
}

static void throughput(void)
{
	// 20 ms a window: 381 ms, and a dozen round trips to open cwnd up to it.
	struct bulk b = bulk(20000000, 1 << 20, 0, (struct weather){0});
	if (b.ns > 800 * NS_PER_MS || b.max_cwnd < 1 << 19)
		fail("the window did not open");
	if (b.n_resent)
		fail("retransmissions without loss");
	// The same of windows that grow: with those of the start it would be 6 s.
	b = bulk(20000000, 64 << 10, 4 << 20, (struct weather){0});
	if (b.ns > 800 * NS_PER_MS || b.n_resent)
		fail("the windows did not grow");
	// Reno at 1% loss: about 1.22 / sqrt(p) segments a round trip, 0.9 MB/s; with most losses
	// repaired without a timeout.
	b = bulk(5000000, 1 << 20, 0, (struct weather){.loss = 10});
	if (b.ns > 10 * NS_PER_SECOND || b.n_timeouts > 2)
		fail("losses cost too much");
	// NewReno alone, which must wait for the timer now and then.
	b = bulk(5000000, 1 << 20, 0, (struct weather){.loss = 10, .strip = 1 << 4 | 1 << 8});
	if (b.ns > 20 * NS_PER_SECOND || b.n_timeouts > 15)
		fail("losses cost too much without SACK");
	// Nothing is lost: what is overtaken is taken for lost at first, and then waited for.
	b = bulk(20000000, 1 << 20, 0, (struct weather){.late = 50, .late_ns = 4 * NS_PER_MS});
	if (b.ns > 1200 * NS_PER_MS || b.n_timeouts || b.n_recoveries > 5)
		fail("reordering costs too much");
	// Every timeout is too early.
	b = bulk(20000000, 1 << 20, 0,
		(struct weather){.pause_every_ns = NS_PER_SECOND, .pause_ns = 300 * NS_PER_MS});
	if (b.ns > 2 * NS_PER_SECOND || b.n_resent > 50)
		fail("delay costs too much");
	// A short queue, and ACKs that each let a burst out if nothing paces it: 28 s then.
	b = bulk(16 << 20, 1 << 20, 0, (struct weather){.mbit = 50, .queue = 10, .gather_ms = 4});
	if (b.ns > 8 * NS_PER_SECOND)
		fail("bursts overflow a short queue");
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t n_seeds = argc > 2 ? strtoull(argv[2], NULL, 0) : argc > 1 ? 1 : N_SEEDS;
	uint64_t n_packets = 0;
	if (argc <= 1)
		throughput();
	for (uint64_t seed = first; seed < first + n_seeds; seed++) {
		printf("seed %" PRIu64 "\n", seed);
		fflush(stdout);
		n_packets += one_seed(seed, false);
		if (seed % 2 || argc > 1)
			n_packets += one_seed(seed, true);
	}
	free(digests);
	printf("%" PRIu64 " seeds, %" PRIu64 " packets\n", n_seeds, n_packets);
	return 0;
}
