// SPDX-License-Identifier: Apache-2.0
#include "lb/base/container_of.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

#define MS NS_PER_MS

static struct twheel *wheel;

struct probe {
	struct twheel_timer timer;
	uint64_t at_ns;
	uint64_t fired_ns; // 0 = not yet
	uint64_t rearm_ns; // armed again for this when it fires, unless 0
	unsigned n_fired;
	struct probe *cancels; // cancelled when it fires
};

static void probe_fire(struct twheel_timer *t)
{
	struct probe *p = CONTAINER_OF(t, struct probe, timer);
	p->fired_ns = twheel_now(wheel);
	p->n_fired++;
	if (p->cancels)
		twheel_cancel(wheel, &p->cancels->timer);
	if (p->rearm_ns)
		twheel_arm(wheel, &p->timer, p->rearm_ns);
}

static struct probe probe(void)
{
	return (struct probe){.timer = {.fire = probe_fire}};
}

static void fires_at_the_tick_above_and_never_early(void **state)
{
	wheel = twheel_new(10 * MS);
	struct probe p = probe();
	twheel_arm(wheel, &p.timer, 12 * MS + 1);
	assert_int_equal(twheel_next_ns(wheel), 13 * MS);
	assert_int_equal(twheel_expires_ns(&p.timer), 13 * MS);
	assert_false(twheel_advance(wheel, 13 * MS - 1));
	assert_int_equal(p.n_fired, 0);
	assert_true(twheel_armed(&p.timer));
	assert_true(twheel_advance(wheel, 13 * MS));
	assert_int_equal(p.n_fired, 1);
	assert_false(twheel_armed(&p.timer));
	assert_int_equal(twheel_next_ns(wheel), UINT64_MAX);
	twheel_free(wheel);
}

static void armed_for_the_past_fires_at_the_next_advance(void **state)
{
	wheel = twheel_new(50 * MS);
	struct probe p = probe();
	twheel_arm(wheel, &p.timer, 3 * MS);
	assert_int_equal(p.n_fired, 0);
	assert_int_equal(twheel_next_ns(wheel), 50 * MS);
	assert_true(twheel_advance(wheel, 50 * MS));
	assert_int_equal(p.n_fired, 1);
	assert_false(twheel_advance(wheel, 50 * MS));
	twheel_free(wheel);
}

static void time_alone_fires_nothing_until_the_next_advance(void **state)
{
	wheel = twheel_new(50 * MS);
	struct probe due = probe(), cancelled = probe(), later = probe();
	twheel_arm(wheel, &due.timer, 60 * MS);
	twheel_arm(wheel, &cancelled.timer, 300 * MS);
	twheel_set_now(wheel, 9000 * MS);
	assert_int_equal(twheel_now(wheel), 9000 * MS);
	twheel_arm(wheel, &later.timer, 9001 * MS);
	twheel_cancel(wheel, &cancelled.timer);
	assert_int_equal(due.n_fired, 0);
	assert_true(twheel_advance(wheel, 9000 * MS));
	assert_int_equal(due.n_fired, 1);
	assert_int_equal(later.n_fired + cancelled.n_fired, 0);
	assert_true(twheel_advance(wheel, 9001 * MS));
	assert_int_equal(later.n_fired, 1);
	twheel_free(wheel);
}

static void rearming_for_the_past_in_fire_does_not_loop(void **state)
{
	wheel = twheel_new(50 * MS);
	struct probe p = probe();
	p.rearm_ns = 1;
	twheel_arm(wheel, &p.timer, 60 * MS);
	twheel_advance(wheel, 70 * MS);
	assert_int_equal(p.n_fired, 1);
	twheel_advance(wheel, 70 * MS);
	assert_int_equal(p.n_fired, 2);
	twheel_free(wheel);
}

static void time_going_back_counts_as_standing_still(void **state)
{
	wheel = twheel_new(50 * MS);
	struct probe p = probe();
	twheel_arm(wheel, &p.timer, 51 * MS);
	twheel_advance(wheel, 40 * MS);
	assert_int_equal(twheel_now(wheel), 50 * MS);
	assert_int_equal(p.n_fired, 0);
	twheel_free(wheel);
}

static void a_callback_may_cancel_a_timer_of_the_same_tick(void **state)
{
	wheel = twheel_new(0);
	struct probe a = probe(), b = probe();
	a.cancels = &b;
	twheel_arm(wheel, &a.timer, 100 * MS);
	twheel_arm(wheel, &b.timer, 100 * MS);
	twheel_advance(wheel, 200 * MS);
	assert_int_equal(a.n_fired, 1);
	assert_int_equal(b.n_fired, 0);
	twheel_free(wheel);
}

static void the_farthest_instant_can_be_armed_and_cancelled(void **state)
{
	wheel = twheel_new(7);
	struct probe p = probe();
	twheel_arm(wheel, &p.timer, UINT64_MAX);
	assert_true(twheel_next_ns(wheel) > UINT64_C(31536000000) * MS);
	twheel_advance(wheel, 1000 * MS);
	assert_int_equal(p.n_fired, 0);
	twheel_cancel(wheel, &p.timer);
	assert_int_equal(twheel_next_ns(wheel), UINT64_MAX);
	twheel_free(wheel);
}

static uint64_t last_fired_ns;

static void ordered_fire(struct twheel_timer *t)
{
	assert_true(twheel_expires_ns(t) >= last_fired_ns);
	last_fired_ns = twheel_expires_ns(t);
	probe_fire(t);
}

// The naive twin is the list of instants: after each advance exactly the due ones have fired.
static void random_timers_fire_when_a_plain_list_says(void **state)
{
	enum { N = 400 };
	static struct probe probes[N];
	struct rand r;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		rand_init(&r, seed);
		uint64_t now = rand_below(&r, UINT64_C(1) << 50);
		wheel = twheel_new(now);
		memset(probes, 0, sizeof(probes));
		for (unsigned step = 0; step < 3000; step++) {
			struct probe *p = &probes[rand_below(&r, N)];
			p->timer.fire = ordered_fire;
			p->at_ns = now + rand_below(&r, UINT64_C(1) << rand_below(&r, 46));
			p->fired_ns = 0;
			twheel_arm(wheel, &p->timer, p->at_ns);
			struct probe *gone = &probes[rand_below(&r, N)];
			if (rand_below(&r, 4) == 0)
				twheel_cancel(wheel, &gone->timer);
			uint64_t next = twheel_next_ns(wheel);
			for (unsigned i = 0; i < N; i++)
				if (twheel_armed(&probes[i].timer))
					assert_true(next <= probes[i].at_ns + MS || next == now);
			now += rand_below(&r, UINT64_C(1) << rand_below(&r, 44));
			last_fired_ns = 0;
			bool any = twheel_advance(wheel, now);
			assert_int_equal(any, last_fired_ns > 0);
			for (unsigned i = 0; i < N; i++) {
				bool armed = twheel_armed(&probes[i].timer);
				uint64_t tick = (probes[i].at_ns + MS - 1) / MS;
				if (armed)
					assert_true(tick > now / MS);
				else if (probes[i].fired_ns)
					assert_true(probes[i].fired_ns / MS >= tick);
			}
		}
		twheel_free(wheel);
	}
}

RUN_SUITE("base/twheel", cmocka_unit_test(fires_at_the_tick_above_and_never_early),
	cmocka_unit_test(armed_for_the_past_fires_at_the_next_advance),
	cmocka_unit_test(time_alone_fires_nothing_until_the_next_advance),
	cmocka_unit_test(rearming_for_the_past_in_fire_does_not_loop),
	cmocka_unit_test(time_going_back_counts_as_standing_still),
	cmocka_unit_test(a_callback_may_cancel_a_timer_of_the_same_tick),
	cmocka_unit_test(the_farthest_instant_can_be_armed_and_cancelled),
	cmocka_unit_test(random_timers_fire_when_a_plain_list_says))
