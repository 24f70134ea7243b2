// SPDX-License-Identifier: Apache-2.0
// bench_tcp: what a TCP segment takes, from the stack that sends it into the stack that receives
// it: two stacks back to back in memory, no IP and no device. tools/bench runs it.
//
// bulk: one connection sends as fast as windows allow; acknowledgements are segments, too. rr: 64
// connections each send 128 bytes and get 128 back, so nearly every segment carries data and an
// acknowledgement. once: a connection is opened, brings 128 bytes there and back, and is closed by
// the client; an operation is all of that, at both ends.
#include "dataplane/tcp/tcp.h"
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "tests/bench/tcp_end.h"
#include "tests/bench/ways.h"

#include <stdlib.h>

#define MAX_CONNS TCP_END_MAX_CONNS
#define TURN_NS 10000
#define N_PACKETS 4096
#define MTU 1500
#define MESSAGE 128
#define BULK_WRITE TCP_END_MAX_MESSAGE

struct packet {
	struct tcp_flow flow; // as the sender sees it
	size_t len;
	uint8_t bytes[MTU];
};

struct side {
	struct world *world;
	struct pool chunks;
	struct twheel *wheel;
	struct tcp_stack *stack;
	struct tcp_end end;
	struct packet *out; // to the other one, in order
	uint32_t n_out;
};

struct world {
	struct side sides[2]; // a client and a server
	uint64_t now_ns, n_segments;
	bool is_bulk;
	int taker; // the side that sends nothing back, or -1
};

static void *reserve(void *ctx, const struct tcp_flow *flow, size_t len)
{
	struct side *s = ctx;
	if (s->n_out == N_PACKETS)
		return NULL;
	CHECK(len <= MTU);
	return s->out[s->n_out].bytes;
}

static void emit(void *ctx, const struct tcp_flow *flow, void *segment, size_t len)
{
	struct side *s = ctx;
	struct packet *p = &s->out[s->n_out++];
	p->flow = *flow;
	p->len = len;
	s->world->n_segments++;
}

static uint16_t mtu(void *ctx, const struct tcp_flow *flow)
{
	return MTU;
}

static void carry(struct world *w, unsigned from)
{
	struct side *a = &w->sides[from], *b = &w->sides[!from];
	tcp_stack_flush(a->stack);
	for (uint32_t i = 0; i < a->n_out; i++) {
		const struct packet *p = &a->out[i];
		struct tcp_flow flow = {.local = p->flow.remote, .remote = p->flow.local};
		tcp_stack_input(b->stack, &flow, p->bytes, p->len);
	}
	a->n_out = 0;
}

static void carry_both(struct world *w)
{
	w->now_ns += TURN_NS;
	twheel_advance(w->sides[0].wheel, w->now_ns);
	twheel_advance(w->sides[1].wheel, w->now_ns);
	carry(w, 0);
	carry(w, 1);
}

static void turn(struct world *w)
{
	if (w->is_bulk) {
		struct tcp_end *from = &w->sides[0].end;
		while (tcp_conn_send_room(from->conns[0]) >= BULK_WRITE)
			tcp_end_send(from, from->conns[0], BULK_WRITE);
	}
	carry_both(w);
}

static uint64_t n_received(const struct world *w)
{
	return w->sides[0].end.n_received + w->sides[1].end.n_received;
}

// An operation is a segment; the last turn may be one too many.
static void run(void *ctx, uint64_t n_ops)
{
	struct world *w = ctx;
	uint64_t begun = w->n_segments, received = n_received(w);
	while (w->n_segments - begun < n_ops)
		turn(w);
	// No connection has stalled.
	CHECK(n_received(w) - received >= n_ops / 2 * MESSAGE);
}

static void open_one(struct world *w)
{
	struct ip_addr client = ip_from_v4(0x0a000001), server = ip_from_v4(0x0a000002);
	struct tcp_flow flow = {.local = client, .remote = server, .remote_port = 80};
	struct tcp_end *end = &w->sides[0].end;
	CHECK(tcp_connect(w->sides[0].stack, &flow, NS_PER_SECOND, &tcp_end_ops, end));
}

static void run_once(void *ctx, uint64_t n_ops)
{
	struct world *w = ctx;
	struct tcp_end *client = &w->sides[0].end, *server = &w->sides[1].end;
	for (uint64_t i = 0; i < n_ops; i++) {
		uint64_t n_closed = client->n_closed + server->n_closed,
			 received = client->n_received;
		client->n_conns = 0;
		open_one(w);
		while (!client->n_conns)
			carry_both(w);
		tcp_end_send(client, client->conns[0], MESSAGE);
		while (client->n_received == received)
			carry_both(w);
		tcp_conn_shutdown(client->conns[0]);
		while (client->n_closed + server->n_closed < n_closed + 2)
			carry_both(w);
	}
}

static void side_init(struct world *w, unsigned i)
{
	struct side *s = &w->sides[i];
	struct tcp_conf conf = {.max_conns = MAX_CONNS,
		.max_half_open = MAX_CONNS,
		.max_time_wait = MAX_CONNS,
		.send_limit = 256 << 10,
		.recv_window = 256 << 10,
		.secret = {(uint8_t)i},
		.seed = i};
	struct tcp_io io = {.reserve = reserve, .emit = emit, .mtu = mtu, .ctx = s};
	s->world = w;
	s->wheel = twheel_new(w->now_ns);
	CHECK(s->wheel && buf_pool_init(&s->chunks, 4096) == 0);
	s->end = (struct tcp_end){.chunks = &s->chunks, .only_takes = w->taker == (int)i};
	s->stack = tcp_stack_new(&conf, &io, &s->chunks, s->wheel);
	s->out = calloc(N_PACKETS, sizeof(*s->out));
	CHECK(s->stack && s->out);
}

static struct world *world_new(uint32_t n_conns, bool is_bulk, int taker)
{
	struct ip_addr server = ip_from_v4(0x0a000002);
	struct world *w = calloc(1, sizeof(*w));
	CHECK(w);
	w->now_ns = NS_PER_SECOND;
	w->is_bulk = is_bulk;
	w->taker = taker;
	side_init(w, 0);
	side_init(w, 1);
	CHECK(tcp_listen(w->sides[1].stack, &server, 80, tcp_end_accept, &w->sides[1].end) == 0);
	struct tcp_end *client_end = &w->sides[0].end;
	for (uint32_t i = 0; i < n_conns; i++)
		open_one(w);
	for (int i = 0; i < 8; i++)
		carry_both(w);
	CHECK(client_end->n_conns == n_conns);
	for (uint32_t i = 0; !is_bulk && i < n_conns; i++)
		tcp_end_send(client_end, client_end->conns[i], MESSAGE);
	return w;
}

int main(int argc, char **argv)
{
	static struct bench_way ways[3]; // static: leak checkers find the worlds by it
	ways[0] = (struct bench_way){"shunt", "bulk", 1, run, world_new(1, true, 1), 0};
	ways[1] = (struct bench_way){
		"shunt", "rr", MAX_CONNS, run, world_new(MAX_CONNS, false, -1), 0};
	ways[2] = (struct bench_way){"shunt", "once", 1, run_once, world_new(0, false, 0), 0};
	return bench_ways("tcp", ways, 3, argc, argv);
}
