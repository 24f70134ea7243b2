// SPDX-License-Identifier: Apache-2.0
#include "tlshs/seat.h"

#include "lb/base/check.h"
#include "lb/base/counter.h"
#include "lb/base/min.h"
#include "lb/base/share.h"
#include "tlshs/owing.h"

#include <stdio.h>

// Returns how many there were before.
static uint32_t enter(uint32_t *n)
{
	return __atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}

static void leave(uint32_t *n)
{
	__atomic_fetch_sub(n, 1, __ATOMIC_RELAXED);
}

// How many are open in all, with clients and of the source.
struct count {
	uint32_t all, with_clients, of_source;
};

static struct count enter_all(struct tlshs_census *c, const struct tlshs_seat *s)
{
	return (struct count){.all = enter(&c->open),
		.with_clients = s->role == TLSHS_SERVER ? enter(&c->with_clients) : 0,
		.of_source = sketch_add(&c->of_source, s->source)};
}

static void leave_all(struct tlshs_census *c, const struct tlshs_seat *s)
{
	leave(&c->open);
	if (s->role == TLSHS_SERVER)
		leave(&c->with_clients);
	sketch_remove(&c->of_source, s->source);
}

static uint32_t left(uint32_t n, uint32_t max)
{
	return n < max ? max - n : 0;
}

// One more of the source. From half on it leaves some for others, and clients leave some for
// backends (TH-111).
static bool may_have(const struct tlshs_census *c, enum tlshs_role role, const struct count *n)
{
	uint32_t max = c->max, n_free = left(n->all, max);
	if (c->max_of_source && n->of_source >= c->max_of_source)
		return false;
	if (role == TLSHS_SERVER) {
		max = tlshs_clients_share(max);
		n_free = min_u32(n_free, left(n->with_clients, max));
	}
	return max == 0 || n_free > max - max / 2 || share_allows_place(n->of_source, n_free, max);
}

static bool admit(struct tlshs_census *c, const struct tlshs_seat *s)
{
	struct count before = enter_all(c, s);
	if (may_have(c, s->role, &before))
		return true;
	leave_all(c, s);
	return false;
}

void tlshs_seat_start(struct tlshs_seat *s, const struct tlshs_order *o, struct tlshs_census *c,
	struct tlshs_promises *promises, uint64_t deadline_ns)
{
	*s = (struct tlshs_seat){.taken = true,
		.id = o->id,
		.deadline_ns = deadline_ns,
		.role = tlshs_context_role(o->context),
		.source = o->source,
		.promises = promises};
	if (!admit(c, s)) {
		s->refused = TLSHS_over_limit;
	} else {
		s->handshake = tlshs_handshake_new(
			o->context, (struct str){(const char *)o->bytes, o->len}, o->source);
		if (!s->handshake) {
			s->refused = TLSHS_no_memory;
			leave_all(c, s);
		} else {
			tlshs_handshake_log_keys(s->handshake, c->keys);
		}
	}
	tlshs_context_put(o->context); // the handshake has its own reference
}

// Of the end, once: what came before it was not taken in vain.
static void fill_end(struct tlshs_seat *s, struct tlshs_answer *a, uint64_t *counts)
{
	a->kind = TLSHS_END;
	a->len = 0;
	a->n_taken = s->n_got;
	a->outcome = (uint8_t)s->refused;
	const char *why = tlshs_outcome_name(s->refused);
	if (s->handshake) {
		a->outcome = (uint8_t)tlshs_handshake_outcome(s->handshake);
		a->n_taken -= tlshs_handshake_n_rest(s->handshake);
		why = tlshs_handshake_why(s->handshake);
	}
	a->promise = 0;
	if (a->outcome == TLSHS_ok) {
		tlshs_handshake_take(s->handshake, &a->result);
		a->promise =
			tlshs_promises_add(s->promises, tlshs_handshake_take_promise(s->handshake));
	} else {
		snprintf(a->why, sizeof(a->why), "%s", why);
	}
	counter_add(&counts[a->outcome], 1);
	s->told = true;
}

static void drop_handshake(struct tlshs_seat *s, struct tlshs_census *c)
{
	if (!s->handshake)
		return;
	tlshs_handshake_free(s->handshake);
	s->handshake = NULL;
	list_remove(&s->open);
	list_remove(&s->ready);
	tlshs_owing_remove(s);
	leave_all(c, s);
}

// The next answer; false = there is none.
static bool next_answer(struct tlshs_seat *s, struct tlshs_answer *a, uint64_t *counts)
{
	a->id = s->id;
	a->kind = TLSHS_TO_PEER;
	size_t n = s->handshake && !s->told
	                   ? tlshs_handshake_drain(s->handshake, a->bytes, TLSHS_SLOT)
	                   : 0;
	if (n == 0 && !s->told && (!s->handshake || tlshs_handshake_ended(s->handshake))) {
		fill_end(s, a, counts);
		return true;
	}
	if (n == 0 && s->handshake && s->told) {
		a->kind = TLSHS_REST;
		n = tlshs_handshake_drain_rest(s->handshake, a->bytes, TLSHS_SLOT);
	} else if (n > 0) {
		s->n_unanswered = 0;
	}
	a->len = (uint16_t)n;
	return n > 0;
}

bool tlshs_seat_answer(
	struct tlshs_seat *s, struct tlshs_link *l, struct tlshs_census *c, uint64_t *counts)
{
	struct tlshs_answer *a;
	uint32_t n = 0;
	for (; (a = spsc_place(&l->answers)) && next_answer(s, a, counts); n++)
		spsc_stage_placed(&l->answers);
	if (n) // all at once: a worker that polls would find them one by one (TLS-225)
		spsc_publish(&l->answers);
	if (a && s->told)
		drop_handshake(s, c);
	return a != NULL;
}

bool tlshs_seat_feed(struct tlshs_seat *s, struct tlshs_link *l, const struct tlshs_order *o)
{
	s->n_got += o->len;
	s->n_unanswered += o->len;
	if (s->handshake) {
		tlshs_handshake_gather(s->handshake, o->bytes, o->len);
		return true;
	}
	// They crossed the end: nobody here needs them.
	struct tlshs_answer *a = spsc_place(&l->answers);
	CHECK(a); // whoever reads orders has seen to it that there is room
	a->id = s->id;
	a->kind = TLSHS_REST;
	a->len = o->len;
	memcpy(a->bytes, o->bytes, o->len);
	spsc_placed(&l->answers);
	return false;
}

void tlshs_seat_run(struct tlshs_seat *s)
{
	tlshs_handshake_run(s->handshake);
	if (s->is_last)
		tlshs_handshake_stop(s->handshake, TLSHS_lost);
}

void tlshs_seat_stop(struct tlshs_seat *s, struct tlshs_census *c, uint64_t *counts)
{
	if (!s->told)
		counter_add(&counts[TLSHS_lost], 1);
	list_remove(&s->waiting);
	drop_handshake(s, c);
	s->taken = false;
}
