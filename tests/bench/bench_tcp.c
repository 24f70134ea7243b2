// SPDX-License-Identifier: Apache-2.0
// bench_tcp: what a TCP segment takes, from the stack that sends it into the stack that receives
// it: two stacks back to back in memory, no IP and no device. tools/bench runs it.
//
// bulk: one connection sends as fast as windows allow; acknowledgements are segments, too. rr: 64
// connections each send 128 bytes and get 128 back, so nearly every segment carries data and an
// acknowledgement.
#include "dataplane/tcp/tcp.h"
#include "lb/base/check.h"
#include "tests/bench/ways.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CONNS 64
#define TURN_NS 10000
#define N_PACKETS 4096
#define MTU 1500
#define MESSAGE 128
#define BULK_WRITE 16384

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
	struct tcp_conn *conns[MAX_CONNS];
	uint32_t n_conns;
	struct packet *out; // to the other one, in order
	uint32_t n_out;
};

struct world {
	struct side sides[2]; // a client and a server
	uint64_t now_ns, n_segments, n_received;
	uint32_t n_conns;
	bool is_bulk;
};

static const uint8_t body[BULK_WRITE];

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

static void on_established(struct tcp_conn *c, void *user)
{
	struct side *s = user;
	s->conns[s->n_conns++] = c;
}

static void on_send_room(struct tcp_conn *c, void *user)
{
}

static void on_eof(struct tcp_conn *c, void *user)
{
	CHECK(!"end of file");
}

static void on_closed(struct tcp_conn *c, void *user, enum tcp_close_reason reason)
{
	CHECK(!"closed");
}

static void send(struct side *s, struct tcp_conn *c, size_t len)
{
	CHECK(buf_append(tcp_conn_sendq(c), &s->chunks, body, len));
	tcp_conn_push(c);
}

static size_t on_client_data(struct tcp_conn *c, void *user, const uint8_t *p, size_t len)
{
	struct side *s = user;
	s->world->n_received += len;
	send(s, c, len);
	return len;
}

static size_t on_server_data(struct tcp_conn *c, void *user, const uint8_t *p, size_t len)
{
	struct side *s = user;
	s->world->n_received += len;
	if (!s->world->is_bulk)
		send(s, c, len);
	return len;
}

static const struct tcp_conn_ops client_ops = {.on_established = on_established,
	.on_data = on_client_data,
	.on_send_room = on_send_room,
	.on_eof = on_eof,
	.on_closed = on_closed};
static const struct tcp_conn_ops server_ops = {.on_data = on_server_data,
	.on_send_room = on_send_room,
	.on_eof = on_eof,
	.on_closed = on_closed};

static const struct tcp_conn_ops *on_accept(void *arg, struct tcp_conn *c, void **ret_user)
{
	*ret_user = arg;
	return &server_ops;
}

static void carry(struct world *w, unsigned from)
{
	struct side *a = &w->sides[from], *b = &w->sides[!from];
	tcp_stack_flush(a->stack);
	for (uint32_t i = 0; i < a->n_out; i++) {
		const struct packet *p = &a->out[i];
		tcp_stack_input(b->stack, &p->flow.remote, &p->flow.local, p->bytes, p->len);
	}
	a->n_out = 0;
}

static void turn(struct world *w)
{
	w->now_ns += TURN_NS;
	twheel_advance(w->sides[0].wheel, w->now_ns);
	twheel_advance(w->sides[1].wheel, w->now_ns);
	if (w->is_bulk) {
		struct tcp_conn *c = w->sides[0].conns[0];
		while (tcp_conn_send_room(c) >= BULK_WRITE)
			send(&w->sides[0], c, BULK_WRITE);
	}
	carry(w, 0);
	carry(w, 1);
}

// An operation is a segment; the last turn may be one too many.
static void run(void *ctx, uint64_t n_ops)
{
	struct world *w = ctx;
	uint64_t begun = w->n_segments, received = w->n_received;
	while (w->n_segments - begun < n_ops)
		turn(w);
	// No connection has stalled.
	CHECK(w->n_received - received >= n_ops / 2 * MESSAGE);
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
	s->stack = tcp_stack_new(&conf, &io, &s->chunks, s->wheel);
	s->out = calloc(N_PACKETS, sizeof(*s->out));
	CHECK(s->stack && s->out);
}

static struct world *world_new(uint32_t n_conns, bool is_bulk)
{
	struct ip_addr client = ip_from_v4(0x0a000001), server = ip_from_v4(0x0a000002);
	struct world *w = calloc(1, sizeof(*w));
	CHECK(w);
	w->now_ns = 1000000000;
	w->n_conns = n_conns;
	side_init(w, 0);
	side_init(w, 1);
	CHECK(tcp_listen(w->sides[1].stack, &server, 80, on_accept, &w->sides[1]) == 0);
	for (uint32_t i = 0; i < n_conns; i++) {
		struct tcp_flow flow = {.local = client, .remote = server, .remote_port = 80};
		CHECK(tcp_connect(w->sides[0].stack, &flow, 1000000000, &client_ops, &w->sides[0]));
	}
	for (int i = 0; i < 8; i++)
		turn(w);
	CHECK(w->sides[0].n_conns == n_conns);
	w->is_bulk = is_bulk;
	for (uint32_t i = 0; !is_bulk && i < n_conns; i++)
		send(&w->sides[0], w->sides[0].conns[i], MESSAGE);
	return w;
}

int main(int argc, char **argv)
{
	static struct bench_way ways[2]; // static: leak checkers find the worlds by it
	ways[0] = (struct bench_way){"shunt", "bulk", 1, run, world_new(1, true), 0};
	ways[1] = (struct bench_way){"shunt", "rr", MAX_CONNS, run, world_new(MAX_CONNS, false), 0};
	return bench_ways("tcp", ways, 2, argc, argv);
}
