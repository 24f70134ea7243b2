// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/tcp/bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADERS 34 // of Ethernet and IPv4
#define ETHER_IP4 0x0800
#define MTU 1500
#define WINDOW (256 << 10)
#define WINDOW_MAX (4 << 20)
#define LIMIT_NS (3000 * NS_PER_SECOND)
#define BOTTLENECK "rate=200mbit queue=300"

static const struct ip_addr addrs[2] = {
	{{[10] = 0xff, 0xff, 10, 0, 0, 1}}, {{[10] = 0xff, 0xff, 10, 0, 0, 2}}};

// What the line looks at of Ethernet and IP.
static void put_headers(uint8_t *frame, size_t len)
{
	memset(frame, 0, HEADERS);
	put16(frame + 12, ETHER_IP4);
	frame[14] = 0x45;
	put16(frame + 16, (uint16_t)(len + 20));
}

static void *io_reserve(void *ctx, const struct tcp_flow *flow, size_t len)
{
	struct bed_side *s = ctx;
	CHECK(len <= MTU - 20);
	return s->frame + HEADERS;
}

static void io_emit(void *ctx, const struct tcp_flow *flow, void *segment, size_t len)
{
	struct bed_side *s = ctx;
	put_headers(s->frame, len);
	(void)!line_put(s->line, s->frame, HEADERS + len, s->bed->now - s->bed->line_ns);
}

static uint16_t io_mtu(void *ctx, const struct tcp_flow *flow)
{
	return MTU;
}

uint64_t bed_send(struct bed_end *e, uint64_t n_bytes)
{
	static const uint8_t zeros[4096];
	uint64_t left = n_bytes;
	for (;;) {
		size_t n = tcp_conn_send_room(e->conn);
		n = n < sizeof(zeros) ? n : sizeof(zeros);
		n = n < left ? n : left;
		if (!n || !buf_append(tcp_conn_sendq(e->conn), &e->side->chunks, zeros, n))
			break;
		left -= n;
	}
	tcp_conn_push(e->conn);
	return n_bytes - left;
}

void bed_on_established(struct tcp_conn *c, void *user)
{
	struct bed_end *e = user;
	e->side->bed->n_open++;
}

void bed_on_eof(struct tcp_conn *c, void *user)
{
}

void bed_on_closed(struct tcp_conn *c, void *user, enum tcp_close_reason reason)
{
	fprintf(stderr, "closed: %s\n", tcp_close_reason_name(reason));
	abort();
}

static const struct tcp_conn_ops *on_accept(void *arg, struct tcp_conn *c, void **ret_user)
{
	struct bed_side *s = arg;
	struct bed_end *e = &s->ends[tcp_conn_flow(c)->remote_port - 1000];
	e->conn = c;
	tcp_conn_set_user_timeout(c, LIMIT_NS);
	s->bed->n_open++;
	*ret_user = e;
	return s->bed->ops[1];
}

static struct line *line_of(
	const struct bed_network *n, const char *words, uint64_t seed, unsigned way)
{
	struct faults faults = {.delay_ns = n->rtt_us * NS_PER_US / 2};
	const char *texts[] = {BOTTLENECK, n->both, words}, *wrong;
	for (unsigned i = 0; i < 3; i++)
		if (texts[i] && faults_parse(&faults, texts[i], &wrong)) {
			fprintf(stderr, "what is '%s'?\n", wrong);
			exit(2);
		}
	return line_new(&faults, seed, way);
}

static void side_init(struct bed *b, unsigned number)
{
	struct bed_side *s = &b->sides[number];
	struct tcp_conf conf = {
		.max_conns = BED_MAX_CONNS,
		.max_half_open = BED_MAX_CONNS,
		.max_time_wait = BED_MAX_CONNS,
		.send_limit = WINDOW,
		.recv_window = WINDOW,
		.window_max = WINDOW_MAX,
		.secret = {(uint8_t)number},
	};
	struct tcp_io io = {io_reserve, io_emit, io_mtu, s, NULL};
	s->bed = b;
	s->number = number;
	s->wheel = twheel_new(b->now);
	CHECK(s->wheel && !buf_pool_init(&s->chunks, 1 << 15));
	s->stack = tcp_stack_new(&conf, &io, &s->chunks, s->wheel);
	CHECK(s->stack);
	tcp_stack_set_verified(s->stack, true);
}

static void open_conns(struct bed *b)
{
	CHECK(!tcp_listen(b->sides[1].stack, &addrs[1], 80, on_accept, &b->sides[1]));
	for (unsigned i = 0; i < b->n_conns; i++) {
		struct tcp_flow flow = {addrs[0], addrs[1], (uint16_t)(1000 + i), 80};
		struct bed_end *e = &b->sides[0].ends[i];
		*e = (struct bed_end){.side = &b->sides[0], .number = i};
		b->sides[1].ends[i] = (struct bed_end){.side = &b->sides[1], .number = i};
		e->conn = tcp_connect(b->sides[0].stack, &flow, LIMIT_NS, b->ops[0], e);
		CHECK(e->conn);
		tcp_conn_set_user_timeout(e->conn, LIMIT_NS);
	}
}

static void turn(struct bed *b)
{
	uint8_t frame[FRAME_MAX];
	for (unsigned i = 0; i < 2; i++) {
		struct bed_side *s = &b->sides[i];
		size_t len;
		twheel_advance(s->wheel, b->now);
		while ((len = line_take(b->sides[!i].line, b->now - b->line_ns, frame))) {
			struct tcp_flow flow = {addrs[i], addrs[!i], 0, 0};
			tcp_stack_input(s->stack, &flow, frame + HEADERS, len - HEADERS);
		}
	}
	for (unsigned i = 0; i < 2; i++)
		tcp_stack_flush(b->sides[i].stack);
}

static uint64_t next_event(const struct bed *b)
{
	uint64_t at = UINT64_MAX;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t arrival = line_next_ns(b->sides[i].line);
		arrival = arrival == UINT64_MAX ? arrival : arrival + b->line_ns;
		uint64_t timer = twheel_next_ns(b->sides[i].wheel);
		at = arrival < at ? arrival : at;
		at = timer < at ? timer : at;
	}
	return at;
}

static bool is_under_way(const struct bed *b)
{
	return line_next_ns(b->sides[0].line) != UINT64_MAX ||
	       line_next_ns(b->sides[1].line) != UINT64_MAX;
}

void bed_step(struct bed *b)
{
	turn(b);
	uint64_t at = next_event(b);
	CHECK(at < LIMIT_NS);
	if (b->turn_ns)
		at = (at + b->turn_ns - 1) / b->turn_ns * b->turn_ns;
	b->now = at > b->now ? at : b->now;
}

void bed_open(struct bed *b, const struct bed_network *n, uint64_t seed,
	const struct tcp_conn_ops *const ops[2])
{
	const struct bed_network clean = {.rtt_us = n->rtt_us};
	CHECK(n->n_conns && n->n_conns <= BED_MAX_CONNS);
	*b = (struct bed){.n_conns = n->n_conns, .ops = {ops[0], ops[1]}};
	for (unsigned i = 0; i < 2; i++) {
		side_init(b, i);
		b->sides[i].line = line_of(&clean, NULL, 0, i);
	}
	open_conns(b);
	while (b->n_open < 2 * b->n_conns || is_under_way(b))
		bed_step(b);
	for (unsigned i = 0; i < 2; i++)
		line_free(b->sides[i].line);
	b->line_ns = b->now;
	b->turn_ns = n->turn_us * NS_PER_US;
	b->sides[0].line = line_of(n, n->data, seed, 1);
	b->sides[1].line = line_of(n, n->acks, seed, 0);
}

void bed_close(struct bed *b)
{
	for (unsigned i = 0; i < 2; i++) {
		struct bed_side *s = &b->sides[i];
		tcp_stack_free(s->stack);
		twheel_free(s->wheel);
		pool_fini(&s->chunks);
		line_free(s->line);
	}
}
