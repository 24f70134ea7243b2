// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/tcp/world.h"

#include "lb/base/container_of.h"
#include "tests/sim/tcp/network.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_TURNS 10000000
#define TIME_WAIT_NS (60 * NS_PER_SECOND)
#define PIECE_MAX 4096 // written at once
#define STORY (1 << 23) // more than a window

_Noreturn void world_fail(const struct world *w, const char *what)
{
	static const char *const names[] = {TCP_COUNTERS(COUNTER_NAME)};
	fprintf(stderr, "tcp_sim: seed %" PRIu64 ": %s, at %" PRIu64 " ns\n", w->seed, what,
		w->now);
	for (unsigned i = 0; i < TCP_N_COUNTERS; i++)
		fprintf(stderr, "%26s %10" PRIu64 " %10" PRIu64 "\n", names[i],
			w->stack[0] ? w->stack[0]->counters[i] : 0,
			w->stack[1] ? w->stack[1]->counters[i] : 0);
	abort();
}

bool world_chance(struct world *w, unsigned per_mille)
{
	return per_mille && rand_below(&w->rand, 1000) < per_mille;
}

// What each side says begins at another place of the same bytes, without any order.
static uint8_t story[STORY];

static void story_init(void)
{
	static bool done;
	struct rand r;
	if (done)
		return;
	done = true;
	rand_init(&r, 0);
	for (size_t i = 0; i < STORY; i += sizeof(uint64_t)) {
		uint64_t x = rand_u64(&r);
		memcpy(story + i, &x, sizeof(x));
	}
}

// Byte i of what it sends, and *ret_n bytes from there, or fewer.
static const uint8_t *bytes_at(const struct end *sender, uint64_t i, uint64_t *ret_n)
{
	i = (i + (sender->number * 2 + sender->side) * 4099) % STORY;
	*ret_n = *ret_n < STORY - i ? *ret_n : STORY - i;
	return story + i;
}

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
	struct world *w = e->world;
	most = w->greedy ? UINT64_MAX : most;
	if (w->chatty && !world_chance(w, 100))
		most = 1 + rand_below(&w->rand, 600);
	while (most && e->sent < e->to_send && !e->shut) {
		uint64_t n = rand_below(&w->rand, PIECE_MAX) + 1;
		size_t room = tcp_conn_send_room(e->conn);
		if (n > most)
			n = most;
		if (n > e->to_send - e->sent)
			n = e->to_send - e->sent;
		if (n > room)
			n = room;
		const uint8_t *piece = bytes_at(e, e->sent, &n);
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
		world_fail(e->world, "established twice");
	e->established = true;
	write_some(e, rand_below(&e->world->rand, 30000));
}

static size_t on_data(struct tcp_conn *c, void *user, const uint8_t *data, size_t len)
{
	struct end *e = user;
	struct world *w = e->world;
	const struct end *peer = &w->ends[!e->side][e->number];
	if (!len || e->eof || e->conn != c)
		world_fail(w, "data at the wrong time");
	size_t n = len;
	if (w->max_stall_ms && world_chance(w, w->stall)) {
		n = rand_below(&w->rand, len + 1);
		schedule(e, w->max_stall_ms);
		if (world_chance(w, 100))
			tcp_conn_resume(c); // the next turn shall deliver
	}
	for (uint64_t i = 0, k; i < n; i += k) {
		k = n - i;
		const uint8_t *said = bytes_at(peer, e->received + i, &k);
		if (memcmp(data + i, said, k))
			world_fail(w, "a byte is wrong");
	}
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
		world_fail(e->world, "end of data at the wrong place");
	e->eof = true;
	maybe_shut(e);
}

static void on_closed(struct tcp_conn *c, void *user, enum tcp_close_reason reason)
{
	struct end *e = user;
	if (e->closed)
		world_fail(e->world, "closed twice");
	e->closed = true;
	e->reason = reason;
	e->closed_ns = e->world->now;
	e->conn = NULL;
	twheel_cancel(e->world->wheel[e->side], &e->timer);
	struct end *peer = &e->world->ends[!e->side][e->number];
	if (reason == TCP_CLOSE_RESET && !e->side && !peer->established)
		e->unheard = peer->unheard = peer->closed = true;
}

static const struct tcp_conn_ops ops = {on_established, on_data, on_send_room, on_eof, on_closed};

static const struct tcp_conn_ops *on_accept(void *arg, struct tcp_conn *c, void **ret_user)
{
	struct world *w = arg;
	struct end *e = &w->ends[1][world_conn_number(tcp_conn_flow(c))];
	if (e->conn || e->closed)
		world_fail(w, "accepted twice");
	e->conn = c;
	tcp_conn_set_user_timeout(c, 1000 * NS_PER_SECOND);
	*ret_user = e;
	e->established = true;
	schedule(e, 5);
	return &ops;
}

static const struct ip_addr v4[2] = {
	{{[10] = 0xff, 0xff, 10, 0, 0, 1}}, {{[10] = 0xff, 0xff, 10, 0, 0, 2}}};
static const struct ip_addr v6[2] = {{{0xfd, [15] = 1}}, {{0xfd, [15] = 2}}};

static void deliver(struct world *w)
{
	for (struct packet *p; (p = network_take(w)); free(p)) {
		struct tcp_flow flow = {.local = p->flow.remote, .remote = p->flow.local};
		if (p->too_big)
			tcp_stack_too_big(
				w->stack[p->to], &p->flow, get32(p->bytes + 4), w->path_mtu);
		else if (p->marked)
			tcp_stack_input_marked(w->stack[p->to], &flow, p->bytes, p->len);
		else
			tcp_stack_input(w->stack[p->to], &flow, p->bytes, p->len);
		if (w->twin)
			twin_touch(w->twin, p->to, world_conn_number(&p->flow));
	}
}

uint64_t world_next_ns(const struct world *w)
{
	uint64_t at = network_next_ns(w);
	for (unsigned side = 0; side < 2; side++) {
		uint64_t next = twheel_next_ns(w->wheel[side]);
		at = next < at ? next : at;
	}
	return at;
}

void world_turn(struct world *w)
{
	for (unsigned side = 0; side < 2; side++)
		twheel_advance(w->wheel[side], w->now);
	deliver(w);
	for (unsigned side = 0; side < 2; side++)
		tcp_stack_flush(w->stack[side]);
}

static void compare(struct world *w)
{
	for (unsigned side = 0; side < 2; side++) {
		twin_counters(w->twin, side, w->stack[side]->counters);
		for (unsigned k = 0; k < w->n_conns; k++)
			twin_state(w->twin, side, k, w->ends[side][k].conn);
	}
	if (!twin_turn(w->twin))
		world_fail(w, "the fast path did something else");
}

bool world_all_closed(const struct world *w)
{
	for (unsigned i = 0; i < w->n_conns; i++)
		if (!w->ends[0][i].closed || !w->ends[1][i].closed)
			return false;
	return true;
}

// Everything arrived, and each side heard that the other one has said all. If the last ACK was lost
// again and again until TIME_WAIT was over, who waits for it meets a RST.
static bool ended_well(const struct end *e)
{
	const struct end *peer = &e->world->ends[!e->side][e->number];
	bool late = e->reason == TCP_CLOSE_RESET && peer->reason == TCP_CLOSE_DONE &&
	            e->closed_ns - peer->closed_ns >= TIME_WAIT_NS;
	return e->eof && e->received == peer->to_send && (e->reason == TCP_CLOSE_DONE || late);
}

static void check_ends(const struct world *w)
{
	uint64_t n_bad_sums = 0, n_unheard = 0;
	for (unsigned side = 0; side < 2; side++)
		n_bad_sums += w->stack[side]->counters[TCP_drop_checksum];
	for (unsigned i = 0; i < w->n_conns; i++) {
		n_unheard += w->ends[0][i].unheard;
		for (unsigned side = 0; side < 2; side++)
			if (!w->ends[side][i].unheard && !ended_well(&w->ends[side][i]))
				world_fail(w, "a connection ended badly");
	}
	if (n_unheard > w->stack[1]->counters[TCP_half_open_expired])
		world_fail(w, "a connection was refused");
	if (n_bad_sums > w->n_corrupted || (w->n_corrupted > 200 && !n_bad_sums))
		world_fail(w, "corruption and checksum failures disagree");
}

// No more is undone than was done.
static void check_undone(const struct world *w)
{
	for (unsigned side = 0; side < 2; side++) {
		const uint64_t *n = w->stack[side]->counters;
		if (n[TCP_recoveries_undone] > n[TCP_fast_recoveries] ||
			n[TCP_timeouts_undone] > n[TCP_retransmission_timeouts])
			world_fail(w, "more was undone than done");
	}
}

void world_run(struct world *w, uint64_t end_ns)
{
	for (unsigned n = 0;; n++) {
		world_turn(w);
		if (w->twin)
			compare(w);
		if (world_all_closed(w))
			break;
		uint64_t at = world_next_ns(w);
		if (at > end_ns || n > MAX_TURNS)
			world_fail(w, "a connection did not end");
		w->now = at > w->now ? at : w->now;
	}
	check_ends(w);
	check_undone(w);
}

static void stacks_init(struct world *w, const struct world_sizes *z)
{
	w->now = 1 + rand_below(&w->rand, 1000 * NS_PER_SECOND);
	for (unsigned side = 0; side < 2; side++) {
		struct tcp_conf conf = {
			.max_conns = WORLD_MAX_CONNS,
			.max_half_open = WORLD_MAX_CONNS,
			.max_time_wait = WORLD_MAX_CONNS,
			.send_limit = z->window,
			.recv_window = z->window,
			.window_max = z->window_max,
			.seed = rand_u64(&w->rand),
			.congestion = w->congestion,
			.slow_path = w->slow_path,
		};
		for (unsigned i = 0; i < sizeof(conf.secret); i++)
			conf.secret[i] = (uint8_t)rand_u64(&w->rand);
		w->ports[side] = (struct port){w, side};
		struct tcp_io io = network_io(&w->ports[side], w->ecn);
		w->wheel[side] = twheel_new(w->now);
		if (!w->wheel[side] || buf_pool_init(&w->chunks[side], z->n_chunks))
			world_fail(w, "out of memory");
		w->stack[side] = tcp_stack_new(&conf, &io, &w->chunks[side], w->wheel[side]);
		if (!w->stack[side])
			world_fail(w, "out of memory");
	}
}

static void open_conns(struct world *w, const struct ip_addr addr[2], uint64_t max_bytes)
{
	if (tcp_listen(w->stack[1], &addr[1], 80, on_accept, w))
		world_fail(w, "cannot listen");
	for (unsigned i = 0; i < w->n_conns; i++) {
		for (unsigned side = 0; side < 2; side++) {
			struct end *e = &w->ends[side][i];
			*e = (struct end){.world = w,
				.side = side,
				.number = i,
				.to_send = rand_below(&w->rand, max_bytes + 1),
				.early_shut = world_chance(w, 500),
				.timer = {.fire = end_fire}};
			if (world_chance(w, 100))
				e->to_send = 0;
			// Who opens and then says nothing never hears that the listener, which
			// missed every answer to its SYN-ACKs, has given up (TCP-28).
			e->early_shut |= !side && !e->to_send;
		}
		struct tcp_flow flow = {addr[0], addr[1], (uint16_t)(1000 + i), 80};
		w->ends[0][i].conn =
			tcp_connect(w->stack[0], &flow, 600 * NS_PER_SECOND, &ops, &w->ends[0][i]);
		if (!w->ends[0][i].conn)
			world_fail(w, "cannot connect");
		// What is refused for good is not what this tests.
		tcp_conn_set_user_timeout(w->ends[0][i].conn, 1000 * NS_PER_SECOND);
	}
}

void world_begin(struct world *w, const struct world_sizes *z, bool is_v6)
{
	story_init();
	stacks_init(w, z);
	open_conns(w, is_v6 ? v6 : v4, z->max_bytes);
}

void world_end(struct world *w)
{
	// TIME_WAIT ends; what is still in the network arrives.
	for (uint64_t end = w->now + 200 * NS_PER_SECOND, at; (at = world_next_ns(w)) <= end;) {
		w->now = at > w->now ? at : w->now;
		world_turn(w);
	}
	for (unsigned side = 0; side < 2; side++) {
		struct tcp_stack *s = w->stack[side];
		if (tcp_stack_n_conns(s) || s->conns.n_used || s->ranges.n_used || s->tws.n_used ||
			w->chunks[side].n_used || s->n_half_open)
			world_fail(w, "something was not given back");
		tcp_stack_free(s);
		twheel_free(w->wheel[side]);
		pool_fini(&w->chunks[side]);
	}
	network_clear(w);
}
