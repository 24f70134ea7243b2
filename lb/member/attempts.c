// SPDX-License-Identifier: Apache-2.0
// Recent attempts are counted in two generations, of which the older one is forgotten as a whole:
// an attempt needs no timer, nor anything else of its own. The time at which it began tells which
// generation it belongs to.
#include "lb/member/attempts.h"

#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/twheel.h"
#include "lb/pick/limits.h"

#include <stddef.h>
#include <stdlib.h>

#define WORD_BITS 64
#define N_WORDS (LB_MAX_ENDPOINTS / WORD_BITS)
// Odd, and 64 divided by the golden ratio: all bits of a word have their turn, each far from those
// before it.
#define STRIDE 39

struct generation {
	uint64_t since_ns; // what began earlier is older
	uint32_t n, n_needed;
};

struct lb_attempts {
	struct lb_attempts_conf conf;
	struct twheel_timer timer; // armed while some wait: for the next generation, or at once
	struct generation now, before; // young ones
	uint32_t n_under_way, n_needed;
	uint32_t n_waiting;
	// Whose turn is next: one bit of each word, and then another. Ids that were given out side
	// by side, as to the endpoints of one cluster, have their turns far apart, so that no
	// cluster waits for all that came before it.
	uint32_t word, bit;
	uint32_t n_words; // beyond them nothing ever waited
	uint64_t waiting[N_WORDS];
	uint64_t needed[N_WORDS]; // of those under way: a request expedited it
};

static void on_timer(struct twheel_timer *);

struct lb_attempts *lb_attempts_new(const struct lb_attempts_conf *conf)
{
	struct lb_attempts *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->conf = *conf;
	a->timer.fire = on_timer;
	a->now.since_ns = twheel_now(conf->wheel);
	return a;
}

void lb_attempts_free(struct lb_attempts *a)
{
	if (!a)
		return;
	DCHECK(!a->n_waiting && !a->n_under_way);
	twheel_cancel(a->conf.wheel, &a->timer);
	free(a);
}

// Before anything else is done: so whatever began is of the generation of its time.
static void age(struct lb_attempts *a)
{
	uint64_t since_ns = a->now.since_ns;
	uint64_t n = (twheel_now(a->conf.wheel) - since_ns) / LB_ATTEMPTS_YOUTH_NS;
	if (n == 0)
		return;
	struct generation none = {.since_ns = since_ns + (n - 1) * LB_ATTEMPTS_YOUTH_NS};
	a->before = n == 1 ? a->now : none;
	a->now = (struct generation){.since_ns = since_ns + n * LB_ATTEMPTS_YOUTH_NS};
}

// One more besides n, n_needed of which requests need. However many these are, the others keep a
// quarter of max.
static bool fits(uint64_t n, uint64_t n_needed, uint64_t max, bool is_needed)
{
	if (!max)
		return true;
	if (4 * n >= 5 * max)
		return false;
	return is_needed ? n_needed < max : n < max || 4 * (n - n_needed) < max;
}

static bool has_room(const struct lb_attempts *a, bool is_needed)
{
	uint64_t young = (uint64_t)a->now.n + a->before.n;
	uint64_t young_needed = (uint64_t)a->now.n_needed + a->before.n_needed;
	return fits(young, young_needed, a->conf.max_young, is_needed) &&
	       fits(a->n_under_way, a->n_needed, a->conf.max_under_way, is_needed);
}

static uint64_t bit_of(uint32_t id)
{
	return UINT64_C(1) << id % WORD_BITS;
}

static void count(struct lb_attempts *a, uint32_t id, bool is_needed)
{
	a->now.n++;
	a->now.n_needed += is_needed;
	a->n_under_way++;
	a->n_needed += is_needed;
	if (is_needed)
		a->needed[id / WORD_BITS] |= bit_of(id);
}

static bool waits(const struct lb_attempts *a, uint32_t id)
{
	return a->waiting[id / WORD_BITS] & bit_of(id);
}

static void remove_waiting(struct lb_attempts *a, uint32_t id)
{
	a->waiting[id / WORD_BITS] &= ~bit_of(id);
	if (--a->n_waiting == 0)
		twheel_cancel(a->conf.wheel, &a->timer);
}

// Some wait.
static uint32_t take_next(struct lb_attempts *a)
{
	for (;; a->word++) {
		if (a->word >= a->n_words) {
			a->word = 0;
			a->bit = (a->bit + STRIDE) % WORD_BITS;
		}
		if (a->waiting[a->word] >> a->bit & 1)
			break;
	}
	uint32_t id = a->word * WORD_BITS + a->bit;
	remove_waiting(a, id);
	a->word++;
	return id;
}

static void begin_waiting(struct lb_attempts *a)
{
	while (a->n_waiting && has_room(a, false)) {
		uint32_t id = take_next(a);
		count(a, id, false);
		a->conf.begin(a->conf.ctx, id);
	}
}

static void on_timer(struct twheel_timer *t)
{
	struct lb_attempts *a = CONTAINER_OF(t, struct lb_attempts, timer);
	age(a);
	begin_waiting(a);
	if (a->n_waiting)
		twheel_arm(a->conf.wheel, t, a->now.since_ns + LB_ATTEMPTS_YOUTH_NS);
}

bool lb_attempts_want(struct lb_attempts *a, uint32_t id)
{
	DCHECK(id < LB_MAX_ENDPOINTS && !waits(a, id));
	age(a);
	if (!a->n_waiting && has_room(a, false)) {
		count(a, id, false);
		return true;
	}
	if (a->n_waiting++ == 0)
		twheel_arm(a->conf.wheel, &a->timer, a->now.since_ns + LB_ATTEMPTS_YOUTH_NS);
	uint32_t word = id / WORD_BITS;
	a->waiting[word] |= bit_of(id);
	a->n_words = word < a->n_words ? a->n_words : word + 1;
	return false;
}

void lb_attempts_leave(struct lb_attempts *a, uint32_t id)
{
	if (waits(a, id))
		remove_waiting(a, id);
}

void lb_attempts_end(struct lb_attempts *a, uint32_t id, uint64_t began_ns)
{
	age(a);
	bool was_needed = a->needed[id / WORD_BITS] & bit_of(id);
	a->needed[id / WORD_BITS] &= ~bit_of(id);
	struct generation *of = began_ns >= a->now.since_ns ? &a->now : &a->before;
	if (began_ns >= of->since_ns) {
		DCHECK(of->n > 0 && of->n_needed >= was_needed);
		of->n--;
		of->n_needed -= was_needed;
	}
	DCHECK(a->n_under_way > 0 && a->n_needed >= was_needed);
	a->n_under_way--;
	a->n_needed -= was_needed;
	if (a->n_waiting && has_room(a, false))
		twheel_arm(a->conf.wheel, &a->timer, twheel_now(a->conf.wheel));
}

bool lb_attempts_expedite(struct lb_attempts *a, uint32_t id)
{
	age(a);
	if (!waits(a, id) || !has_room(a, true))
		return false;
	remove_waiting(a, id);
	count(a, id, true);
	a->conf.begin(a->conf.ctx, id);
	return true;
}

bool lb_attempts_may_expedite(struct lb_attempts *a)
{
	age(a);
	return has_room(a, true);
}

uint64_t lb_attempts_aging_ns(struct lb_attempts *a)
{
	age(a);
	return a->now.since_ns + LB_ATTEMPTS_YOUTH_NS;
}

bool lb_attempts_is_young(struct lb_attempts *a, uint64_t began_ns)
{
	age(a);
	return began_ns >= a->before.since_ns;
}

uint32_t lb_attempts_n_waiting(const struct lb_attempts *a)
{
	return a->n_waiting;
}

uint32_t lb_attempts_n_under_way(const struct lb_attempts *a)
{
	return a->n_under_way;
}
