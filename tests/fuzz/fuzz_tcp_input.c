// SPDX-License-Identifier: Apache-2.0
// Any segments into a stack, with time and the owner's doings in between. Input: records of an
// operation byte and its bytes. Numbers are taken relative to what the stack sent last and
// checksums are right, so that the fuzzer gets behind the first checks; raw segments come too. Each
// input runs twice, with and without the fast path of fast_path.c, which must make no difference.
// Thread: one.
#include "dataplane/tcp/csum.h"
#include "dataplane/tcp/tcp_internal.h"
#include "lb/base/time.h"
#include "tests/support/tcp_digest.h"

#include <stdlib.h>

#define N_FLOWS 3
#define TIMESTAMPS_ON 1 // the flow whose peer has them
#define N_CHUNKS 96
#define SEND_LIMIT 20000
#define RECV_WINDOW 30000
#define WINDOW_MAX (4 * RECV_WINDOW)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *p, *end;
};

// One flow as the peer sees it: what the stack said last.
struct peer {
	uint32_t seq, ack; // next to send, next expected
	struct tcp_conn *conn; // of the stack's owner
	size_t appetite;
	uint64_t n_given, n_eof;
};

static struct peer peers[N_FLOWS];
static uint8_t room[2048];
static struct tcp_stack *stack;
static struct pool chunks;
static struct twheel *wheel;
static uint64_t digest; // of what was sent, the connections after each step, and what was counted

static const struct ip_addr local = {{[10] = 0xff, 0xff, 10, 0, 0, 1}};
static const struct ip_addr remote = {{[10] = 0xff, 0xff, 10, 0, 0, 2}};

static uint8_t take8(struct input *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

static uint32_t take32(struct input *in)
{
	uint32_t x = take8(in);
	x |= (uint32_t)take8(in) << 8;
	x |= (uint32_t)take8(in) << 16;
	return x | (uint32_t)take8(in) << 24;
}

static void *io_reserve(void *ctx, const struct tcp_flow *flow, size_t len)
{
	CHECK(len <= 1480);
	return *(bool *)ctx ? NULL : room;
}

static void io_emit(void *ctx, const struct tcp_flow *flow, void *segment, size_t len)
{
	const uint8_t *s = segment;
	struct tcp_opts opts;
	size_t header_len = (size_t)(s[12] >> 4) * 4;
	CHECK(len >= 20 && header_len >= 20 && header_len <= len);
	digest = digest_bytes(digest, s, len);
	CHECK(tcp_csum_segment(tcp_csum_flow(&flow->local, &flow->remote), s, len) == 0);
	CHECK(tcp_opts_parse(s + 20, header_len - 20, &opts));
	// 80 listens; 7000 and up are opened by us.
	unsigned i = (unsigned)(flow->local_port == 80 ? flow->remote_port - 1000
						       : flow->local_port - 7000);
	if (i >= N_FLOWS || s[13] & TCP_RST)
		return;
	struct peer *peer = &peers[i];
	peer->ack =
		get32(s + 4) + (uint32_t)(len - header_len) + (s[13] & (TCP_SYN | TCP_FIN) ? 1 : 0);
	if (s[13] & TCP_ACK)
		peer->seq = get32(s + 8);
}

static uint16_t io_mtu(void *ctx, const struct tcp_flow *flow)
{
	return 1500;
}

static void on_established(struct tcp_conn *c, void *user)
{
	CHECK(((struct peer *)user)->conn == c);
}

static size_t on_data(struct tcp_conn *c, void *user, const uint8_t *data, size_t len)
{
	struct peer *peer = user;
	CHECK(len && peer->conn == c && !peer->n_eof);
	size_t n = len < peer->appetite ? len : peer->appetite;
	if (data[0] == 'A') {
		tcp_conn_abort(c);
		peer->conn = NULL;
		return n;
	}
	if (data[0] == 'R')
		tcp_conn_resume(c);
	if (data[0] == 'S')
		tcp_conn_shutdown(c);
	peer->n_given += n;
	peer->appetite -= n;
	return n;
}

// What the owner does now hangs on how much it has sent, so that both runs do the same.
static void on_send_room(struct tcp_conn *c, void *user)
{
	struct peer *peer = user;
	CHECK(peer->conn == c);
	switch (tcp_conn_n_sent(c) / 16 % 16) {
	case 1:
		if (tcp_conn_send_room(c) >= 4 && buf_append(tcp_conn_sendq(c), &chunks, "more", 4))
			tcp_conn_push(c);
		break;
	case 2:
		tcp_conn_shutdown(c);
		break;
	case 3:
		peer->conn = NULL;
		tcp_conn_abort(c);
		break;
	default:
		break;
	}
}

static void on_eof(struct tcp_conn *c, void *user)
{
	struct peer *peer = user;
	CHECK(peer->conn == c && !peer->n_eof);
	peer->n_eof++;
}

static void on_closed(struct tcp_conn *c, void *user, enum tcp_close_reason reason)
{
	struct peer *peer = user;
	CHECK(peer->conn == c);
	peer->conn = NULL;
}

static const struct tcp_conn_ops ops = {on_established, on_data, on_send_room, on_eof, on_closed};

static const struct tcp_conn_ops *on_accept(void *arg, struct tcp_conn *c, void **ret_user)
{
	struct peer *peer = &peers[tcp_conn_flow(c)->remote_port - 1000];
	if (peer->conn)
		return NULL;
	peer->conn = c;
	peer->n_eof = 0;
	*ret_user = peer;
	return &ops;
}

// A small signed distance, or any number.
static uint32_t offset(struct input *in)
{
	uint8_t kind = take8(in);
	if (kind < 160)
		return 0;
	if (kind < 230)
		return (uint32_t)(int32_t)(int8_t)take8(in) * (kind & 1 ? 700 : 1);
	return take32(in);
}

// Writes them and returns their length. With timestamps they are mostly those alone, by a clock as
// good as ours or off by something.
static size_t options(struct input *in, uint8_t *p, bool timestamps)
{
	if (timestamps && take8(in) % 8) {
		put32(p, TCP_OPT_TS_HEAD);
		put32(p + 4, (uint32_t)(twheel_now(wheel) / NS_PER_MS) + offset(in));
		put32(p + 8, 0);
		return TCP_OPT_TS_LEN;
	}
	size_t n = take8(in) % 3 ? 0 : (size_t)(take8(in) % (TCP_OPT_MAX + 1)) & ~(size_t)3;
	for (size_t k = 0; k < n; k++)
		p[k] = take8(in);
	return n;
}

static void segment_in(struct input *in, unsigned i, bool passive)
{
	static uint8_t s[20 + TCP_OPT_MAX + 255 * 6];
	struct peer *peer = &peers[i];
	struct tcp_header h = {.flags = take8(in) & 0x1f};
	if (take8(in) & 1)
		h.flags = TCP_ACK | (h.flags & (TCP_FIN | TCP_PSH));
	memset(s, 0, sizeof(s));
	put16(h.src_port, (uint16_t)(passive ? 1000 + i : 443));
	put16(h.dst_port, (uint16_t)(passive ? 80 : 7000 + i));
	uint32_t seq = peer->seq + offset(in);
	put32(h.seq, seq);
	put32(h.ack, peer->ack + offset(in));
	put16(h.window, (uint16_t)(take8(in) << 8));
	size_t n_opts = options(in, s + 20, i == TIMESTAMPS_ON);
	h.offset = (uint8_t)((20 + n_opts) / 4 << 4);
	size_t len = take8(in) % 4 ? 0 : (size_t)take8(in) * 6;
	memset(s + 20 + n_opts, take8(in), len);
	memcpy(s, &h, sizeof(h));
	uint16_t sum = tcp_csum_segment(tcp_csum_flow(&remote, &local), s, 20 + n_opts + len);
	memcpy(s + 16, &sum, 2);
	struct tcp_flow flow = {.local = local, .remote = remote};
	if (len / 6 % 2) // of data, a part comes marked by a router
		tcp_stack_input_marked(stack, &flow, s, 20 + n_opts + len);
	else
		tcp_stack_input(stack, &flow, s, 20 + n_opts + len);
}

static void owner_acts(struct input *in, struct peer *peer)
{
	static const uint8_t bytes[4096] = {'w'};
	struct tcp_conn *c = peer->conn;
	size_t n = (size_t)take8(in) * 16;
	switch (take8(in) % 6) {
	case 0:
		n = n < tcp_conn_send_room(c) ? n : tcp_conn_send_room(c);
		if (buf_append(tcp_conn_sendq(c), &chunks, bytes, n))
			tcp_conn_push(c);
		break;
	case 1:
		peer->appetite = n;
		tcp_conn_resume(c);
		break;
	case 2:
		tcp_conn_shutdown(c);
		break;
	case 3:
		tcp_conn_set_user_timeout(c, n * NS_PER_MS);
		break;
	case 4:
		tcp_conn_set_keepalive(c, n * 10 * NS_PER_MS);
		break;
	default:
		if (n < 200)
			break;
		peer->conn = NULL;
		tcp_conn_abort(c);
	}
}

// The log covers what is outstanding, and its sums are right.
static void check_runs(struct tcp_conn *c)
{
	uint32_t at = c->snd_una, sacked = 0, lost = 0, n = 0;
	for (const struct tcp_run *r = tcp_run_first(c); r; r = tcp_run_next(c, r), n++) {
		uint32_t end = tcp_run_end(c, r), len = end - r->seq;
		CHECK(c->state != TCP_OPEN || r->seq == at);
		CHECK(seq_lt(r->seq, end) || r == &c->last);
		CHECK(len || !r->fate);
		CHECK(!(r->fate & TCP_RUN_SACKED) || r->fate == TCP_RUN_SACKED);
		CHECK(r->sent_ns <= twheel_now(wheel));
		sacked += r->fate & TCP_RUN_SACKED ? len : 0;
		lost += r->fate & TCP_RUN_LOST ? len : 0;
		at = end;
	}
	CHECK(c->n_runs == n - 1 && n - 1 <= TCP_MAX_RUNS);
	CHECK(sacked == c->sacked_bytes && lost == c->lost_bytes);
	CHECK(c->has_reports == (sacked != 0) && c->has_lost == (lost != 0));
	// What is lost is found again: by a repetition to come, or by the timer.
	CHECK(!c->lost_bytes || c->deadlines[TCP_TIMER_RTX]);
}

static void check_conn(struct tcp_conn *c)
{
	CHECK(seq_le(c->snd_una, c->snd_nxt) && seq_le(c->snd_nxt, c->snd_max));
	CHECK(c->state != TCP_OPEN || c->snd_max - c->snd_una <= c->sendq.len + 1);
	CHECK(c->sendq.len <= SEND_LIMIT + WINDOW_MAX && c->recvq.len <= WINDOW_MAX);
	CHECK(c->state == TCP_SYN_SENT || c->rcv_adv - c->rcv_nxt <= WINDOW_MAX + 1 ||
		c->rcv_nxt == c->rcv_adv + 1);
	CHECK(c->cc.cwnd >= c->mss || c->state != TCP_OPEN);
	uint32_t n = 0;
	for (const struct tcp_range *r = c->ranges; r; r = r->next, n++) {
		CHECK(r->data.len && seq_lt(c->rcv_nxt, r->seq));
		CHECK(!r->next || seq_lt(r->seq + (uint32_t)r->data.len, r->next->seq));
	}
	CHECK(n == c->n_ranges && n <= TCP_MAX_RANGES);
	check_runs(c);
}

static void too_big(struct input *in, const struct tcp_conn *c)
{
	uint32_t what = take32(in);
	tcp_stack_too_big(stack, tcp_conn_flow(c), c->snd_una + what % 4096 - 16, what >> 16);
}

static void step(struct input *in, bool *no_buffer)
{
	uint8_t op = take8(in);
	unsigned i = op % N_FLOWS;
	struct peer *peer = &peers[i];
	switch (op / 16) {
	case 0: {
		struct tcp_flow flow = {local, remote, (uint16_t)(7000 + i), 443};
		if (peer->conn)
			break;
		peer->n_eof = 0;
		peer->conn = tcp_connect(stack, &flow, 20 * NS_PER_SECOND, &ops, peer);
		break;
	}
	case 1:
		twheel_advance(wheel, twheel_now(wheel) + take32(in) % (70 * NS_PER_SECOND));
		break;
	case 2:
		*no_buffer = op & 1;
		break;
	case 3:
	case 4:
	case 5:
		if (peer->conn)
			owner_acts(in, peer);
		break;
	case 6: {
		uint8_t len = take8(in);
		uint8_t raw[256];
		for (uint8_t k = 0; k < len; k++)
			raw[k] = take8(in);
		struct tcp_flow flow = {.local = local, .remote = remote};
		tcp_stack_input(stack, &flow, raw, len);
		break;
	}
	case 7:
		if (op & 8 && peer->conn)
			too_big(in, peer->conn);
		else
			tcp_stack_flush(stack);
		break;
	case 8:
		twheel_advance(wheel, twheel_now(wheel) + op % 16 * 7 * NS_PER_MS);
		break;
	default:
		segment_in(in, i, op & 1);
		if (op >= 200)
			tcp_stack_flush(stack);
	}
	for (i = 0; i < N_FLOWS; i++)
		if (peers[i].conn) {
			check_conn(peers[i].conn);
			digest = digest_conn(digest, peers[i].conn);
		}
}

// Returns the digest.
static uint64_t run(const uint8_t *data, size_t size, bool slow_path)
{
	struct input in = {data, data + size};
	bool no_buffer = false;
	struct tcp_conf conf = {.max_conns = 4,
		.max_half_open = 2,
		.max_time_wait = 2,
		.send_limit = SEND_LIMIT,
		.recv_window = RECV_WINDOW,
		.window_max = WINDOW_MAX,
		.secret = "fuzz",
		.seed = 1,
		.slow_path = slow_path};
	struct tcp_io io = {io_reserve, io_emit, io_mtu, &no_buffer, io_emit};
	memset(peers, 0, sizeof(peers));
	digest = 0;
	wheel = twheel_new(NS_PER_SECOND);
	if (!wheel || buf_pool_init(&chunks, N_CHUNKS))
		abort();
	stack = tcp_stack_new(&conf, &io, &chunks, wheel);
	if (!stack || tcp_listen(stack, &local, 80, on_accept, NULL))
		abort();
	for (unsigned i = 0; i < N_FLOWS; i++) {
		peers[i].seq = i * 0x7fffff00; // one of them wraps
		peers[i].appetite = SIZE_MAX;
	}
	while (in.p < in.end)
		step(&in, &no_buffer);
	digest = digest_bytes(digest, stack->counters, sizeof(stack->counters));
	CHECK(tcp_stack_n_conns(stack) == stack->conns.n_used);
	tcp_stack_free(stack);
	CHECK(chunks.n_used == 0);
	CHECK(twheel_next_ns(wheel) == UINT64_MAX);
	pool_fini(&chunks);
	twheel_free(wheel);
	return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CHECK(run(data, size, false) == run(data, size, true));
	return 0;
}
