// SPDX-License-Identifier: Apache-2.0
#include "dataplane/relay.h"

#include "lb/base/cacheline.h"
#include "lb/base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STALE 64 // frames dropped before one that is wanted, at one time

// full: nobody was given it. stale: it was given before the device changed hands. malformed: it
// is longer than the taker's buffers, or the other process is broken. unsent: the port had no
// buffer, or the frame is too long for it.
#define RELAY_COUNTERS(X)                                                                          \
	X(given)                                                                                   \
	X(copies_given)                                                                            \
	X(full)                                                                                    \
	X(taken)                                                                                   \
	X(stale)                                                                                   \
	X(malformed)                                                                               \
	X(unsent)

#define X(name) RELAY_##name,
enum relay_counter { RELAY_COUNTERS(X) RELAY_N_COUNTERS };
#undef X

// What ctrl publishes.
struct relay {
	struct relay_memory memory;
	enum relay_side side;
	int ports[NET_MAX_PORTS]; // numbers there; -1 = none
	struct relay *next; // of those that nobody uses soon
	uint32_t asked; // of the time when it was dropped
};

struct relay_end {
	_Alignas(64) struct relays *all;
	uint32_t worker;
	uint32_t heard; // w: worker (release), r: ctrl (acquire)
	struct seen {
		const struct relay *relay; // borrowed; NULL = none
		uint32_t n_from; // workers of the other process
		uint32_t next; // of them, to begin to take from
		struct relay_cursor out[NET_MAX_PORTS];
		struct relay_cursor *in; // owned; [port * n_from + worker], of ours alone
	} sides[RELAY_N_SIDES];
	uint64_t counters[RELAY_N_COUNTERS];
};

struct relays {
	uint32_t n_workers;
	uint32_t asked; // w: ctrl (release), r: workers (acquire)
	struct relay *now[RELAY_N_SIDES]; // w: ctrl, before `asked`
	struct relay *dropped; // of which workers may not have heard
	struct relay_end *ends; // owned [n_workers]
	// Of workers, since they allocate nothing: taken by ctrl, given with a relay.
	struct relay_cursor *cursors; // owned [worker][side][port][LB_MAX_WORKERS]
};

#define OF_SIDE ((size_t)NET_MAX_PORTS * LB_MAX_WORKERS)

struct relays *relays_new(uint32_t n_workers)
{
	DCHECK(n_workers >= 1 && n_workers <= LB_MAX_WORKERS);
	struct relays *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->n_workers = n_workers;
	r->ends = cacheline_alloc(n_workers, sizeof(*r->ends));
	r->cursors = cacheline_alloc((size_t)n_workers * RELAY_N_SIDES * OF_SIDE,
		sizeof(*r->cursors)); // resident as it is used
	if (!r->ends || !r->cursors) {
		relays_free(r);
		return NULL;
	}
	for (uint32_t w = 0; w < n_workers; w++) {
		struct relay_end *e = &r->ends[w];
		*e = (struct relay_end){.all = r, .worker = w};
		for (uint32_t s = 0; s < RELAY_N_SIDES; s++)
			e->sides[s].in = r->cursors + (w * RELAY_N_SIDES + s) * OF_SIDE;
	}
	return r;
}

static void free_relay(struct relay *relay)
{
	if (relay)
		relay_memory_fini(&relay->memory);
	free(relay);
}

void relays_free(struct relays *r)
{
	if (!r)
		return;
	for (uint32_t s = 0; s < RELAY_N_SIDES; s++)
		free_relay(r->now[s]);
	while (r->dropped) {
		struct relay *next = r->dropped->next;
		free_relay(r->dropped);
		r->dropped = next;
	}
	cacheline_free(r->ends);
	cacheline_free(r->cursors);
	free(r);
}

struct relay_end *relays_end(struct relays *r, uint32_t worker)
{
	DCHECK(!r || worker < r->n_workers);
	return r ? &r->ends[worker] : NULL;
}

static void ask(struct relays *r)
{
	__atomic_store_n(&r->asked, r->asked + 1, __ATOMIC_RELEASE); // pairs with follow()'s
}

int relays_set(struct relays *r, enum relay_side side, struct relay_memory *m,
	const int its_ports[NET_MAX_PORTS])
{
	relays_drop(r, side);
	struct relay *relay = calloc(1, sizeof(*relay));
	if (!relay)
		return -ENOMEM;
	relay->memory = *m;
	relay->side = side;
	*m = (struct relay_memory){.fd = -1};
	for (uint32_t p = 0; p < NET_MAX_PORTS; p++)
		relay->ports[p] = its_ports[p] < (int)relay->memory.n_ports ? its_ports[p] : -1;
	__atomic_store_n(&r->now[side], relay, __ATOMIC_RELAXED);
	ask(r);
	return 0;
}

void relays_drop(struct relays *r, enum relay_side side)
{
	struct relay *relay = r->now[side];
	if (!relay)
		return;
	__atomic_store_n(&r->now[side], NULL, __ATOMIC_RELAXED);
	ask(r);
	relay->asked = r->asked;
	relay->next = r->dropped;
	r->dropped = relay;
}

bool relays_has(const struct relays *r, enum relay_side side)
{
	return r && r->now[side];
}

// Acquire pairs with follow()'s release: the worker has left what was there before.
static bool all_heard(const struct relays *r, uint32_t asked)
{
	for (uint32_t w = 0; w < r->n_workers; w++)
		if ((int32_t)(__atomic_load_n(&r->ends[w].heard, __ATOMIC_ACQUIRE) - asked) < 0)
			return false;
	return true;
}

void relays_tidy(struct relays *r)
{
	struct relay **at = &r->dropped;
	while (*at) {
		struct relay *relay = *at;
		if (!all_heard(r, relay->asked)) {
			at = &relay->next;
			continue;
		}
		*at = relay->next;
		free_relay(relay);
	}
}

// The worker's end.

// Of the other process's workers that give to us, one in n_workers is ours to take from.
static void begin(struct relay_end *e, struct seen *s, const struct relay *relay)
{
	bool to_newer = relay->side == RELAY_TO_NEWER;
	const struct relay_memory *m = &relay->memory;
	s->n_from = to_newer ? m->n_newer : m->n_older;
	s->next = e->worker;
	for (uint32_t p = 0; p < NET_MAX_PORTS; p++) {
		if (relay->ports[p] < 0)
			continue;
		uint32_t its = (uint32_t)relay->ports[p];
		relay_cursor_init(
			&s->out[p], relay_memory_ring(m, to_newer, its, e->worker), &m->shape);
		for (uint32_t w = e->worker; w < s->n_from; w += e->all->n_workers)
			relay_cursor_init(&s->in[p * LB_MAX_WORKERS + w],
				relay_memory_ring(m, !to_newer, its, w), &m->shape);
	}
}

void relay_end_follow(struct relay_end *e)
{
	uint32_t asked = __atomic_load_n(&e->all->asked, __ATOMIC_ACQUIRE);
	for (uint32_t side = 0; side < RELAY_N_SIDES; side++) {
		struct seen *s = &e->sides[side];
		const struct relay *now = __atomic_load_n(&e->all->now[side], __ATOMIC_RELAXED);
		if (now && now != s->relay)
			begin(e, s, now);
		s->relay = now;
	}
	__atomic_store_n(&e->heard, asked, __ATOMIC_RELEASE);
}

bool relay_end_has(const struct relay_end *e, enum relay_side side, uint32_t port)
{
	return e && side < RELAY_N_SIDES && e->sides[side].relay &&
	       e->sides[side].relay->ports[port] >= 0;
}

bool relay_end_give(struct relay_end *e, enum relay_side side, uint32_t port, enum relay_way way,
	bool is_copy, const uint8_t *frame, size_t len)
{
	struct relay_cursor *c = &e->sides[side].out[port];
	DCHECK(relay_end_has(e, side, port));
	if ((is_copy && relay_cursor_room(c) <= c->shape.n_slots / 2) ||
		!relay_cursor_put(c, way, frame, len)) {
		counter_add(&e->counters[RELAY_full], 1);
		return false;
	}
	counter_add(&e->counters[is_copy ? RELAY_copies_given : RELAY_given], 1);
	return true;
}

static uint32_t take_from(struct relay_end *e, struct relay_cursor *c, bool to_send, uint8_t *to,
	size_t room, enum relay_way *ret_way)
{
	for (int i = 0; i < MAX_STALE; i++) {
		int len = relay_cursor_take(c, ret_way, to, room);
		if (len > 0 && (*ret_way == RELAY_TO_SEND) == to_send) {
			counter_add(&e->counters[RELAY_taken], 1);
			return (uint32_t)len;
		}
		if (len == 0)
			return 0;
		counter_add(&e->counters[len < 0 ? RELAY_malformed : RELAY_stale], 1);
	}
	return 0;
}

uint32_t relay_end_take(struct relay_end *e, enum relay_side side, uint32_t port, bool to_send,
	uint8_t *to, size_t room, enum relay_way *ret_way)
{
	struct seen *s = &e->sides[side];
	DCHECK(relay_end_has(e, side, port));
	// Who was served last comes last.
	for (uint32_t w = e->worker; w < s->n_from; w += e->all->n_workers) {
		uint32_t from = s->next < s->n_from ? s->next : e->worker;
		struct relay_cursor *c = &s->in[port * LB_MAX_WORKERS + from];
		s->next = from + e->all->n_workers;
		uint32_t len = take_from(e, c, to_send, to, room, ret_way);
		if (len)
			return len;
	}
	return 0;
}

bool relay_end_has_received(const struct relay_end *e, enum relay_side side, uint32_t port)
{
	const struct seen *s = &e->sides[side];
	DCHECK(relay_end_has(e, side, port));
	for (uint32_t w = e->worker; w < s->n_from; w += e->all->n_workers) {
		enum relay_way way;
		if (relay_cursor_peek(&s->in[port * LB_MAX_WORKERS + w], &way) &&
			way != RELAY_TO_SEND)
			return true;
	}
	return false;
}

void relay_end_count_unsent(struct relay_end *e)
{
	counter_add(&e->counters[RELAY_unsent], 1);
}

struct counter_set relay_end_counters(const struct relay_end *e)
{
	static const char *const names[] = {RELAY_COUNTERS(COUNTER_NAME)};
	return (struct counter_set){.names = names, .values = e->counters, .n = RELAY_N_COUNTERS};
}
