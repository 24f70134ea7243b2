// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/base/twheel.h"
#include "lb/member/attempts.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/world.h"

#define N_IDS 4096
#define YOUTH LB_ATTEMPTS_YOUTH_NS

enum phase { ABSENT, WAITS, UNDER_WAY };

struct fixture {
	struct twheel *wheel;
	struct lb_attempts *attempts;
	enum phase phases[N_IDS];
	uint64_t began_ns[N_IDS];
	uint32_t order[4 * N_IDS]; // in which they began
	uint32_t n_begun;
};

static void note(struct fixture *f, uint32_t id)
{
	f->phases[id] = UNDER_WAY;
	f->began_ns[id] = twheel_now(f->wheel);
	f->order[f->n_begun++ % (4 * N_IDS)] = id;
}

static void on_begin(void *ctx, uint32_t id)
{
	struct fixture *f = ctx;
	assert_int_equal(f->phases[id], WAITS);
	note(f, id);
}

static void init(struct fixture *f, uint32_t max_young, uint32_t max_under_way)
{
	*f = (struct fixture){.wheel = twheel_new(WORLD_START)};
	f->attempts = lb_attempts_new(
		&(struct lb_attempts_conf){f->wheel, max_young, max_under_way, on_begin, f});
	assert_non_null(f->attempts);
}

static void want(struct fixture *f, uint32_t id)
{
	assert_int_equal(f->phases[id], ABSENT);
	f->phases[id] = WAITS;
	if (lb_attempts_want(f->attempts, id))
		note(f, id);
}

static void end(struct fixture *f, uint32_t id)
{
	assert_int_equal(f->phases[id], UNDER_WAY);
	f->phases[id] = ABSENT;
	lb_attempts_end(f->attempts, id, f->began_ns[id]);
}

static void leave(struct fixture *f, uint32_t id)
{
	f->phases[id] = ABSENT;
	lb_attempts_leave(f->attempts, id);
}

static void pass(struct fixture *f, uint64_t ns)
{
	uint64_t until = twheel_now(f->wheel) + ns;
	while (twheel_now(f->wheel) < until)
		twheel_advance(f->wheel, twheel_now(f->wheel) + WORLD_MS);
}

static uint32_t count(const struct fixture *f, enum phase phase)
{
	uint32_t n = 0;
	for (uint32_t id = 0; id < N_IDS; id++)
		n += f->phases[id] == phase;
	return n;
}

static void fini(struct fixture *f)
{
	for (uint32_t id = 0; id < N_IDS; id++) {
		if (f->phases[id] == WAITS)
			leave(f, id);
		else if (f->phases[id] == UNDER_WAY)
			end(f, id);
	}
	assert_int_equal(lb_attempts_n_waiting(f->attempts), 0);
	assert_int_equal(lb_attempts_n_under_way(f->attempts), 0);
	assert_true(twheel_next_ns(f->wheel) == UINT64_MAX);
	lb_attempts_free(f->attempts);
	twheel_free(f->wheel);
}

static void without_limits_all_begin_at_once(void **state)
{
	static struct fixture f;
	init(&f, 0, 0);
	for (uint32_t id = 0; id < N_IDS; id++)
		want(&f, id);
	assert_int_equal(f.n_begun, N_IDS);
	assert_int_equal(lb_attempts_n_under_way(f.attempts), N_IDS);
	fini(&f);
}

static void more_than_may_be_young_wait_until_others_are_over(void **state)
{
	static struct fixture f;
	init(&f, 10, 0);
	for (uint32_t id = 0; id < 25; id++)
		want(&f, id);
	assert_int_equal(f.n_begun, 10);
	assert_int_equal(lb_attempts_n_waiting(f.attempts), 15);
	for (uint32_t id = 0; id < 4; id++)
		end(&f, id);
	assert_int_equal(f.n_begun, 10); // not yet
	want(&f, 99); // not before those that wait
	pass(&f, WORLD_MS);
	assert_int_equal(f.n_begun, 14);
	assert_int_equal(lb_attempts_n_under_way(f.attempts), 10);
	assert_int_equal(lb_attempts_n_waiting(f.attempts), 12);
	fini(&f);
}

static void nothing_begins_while_everything_goes(void **state)
{
	static struct fixture f;
	init(&f, 10, 0);
	for (uint32_t id = 0; id < 1000; id++)
		want(&f, id);
	for (uint32_t id = 0; id < 1000; id++)
		f.phases[id] == WAITS ? leave(&f, id) : end(&f, id);
	pass(&f, 10 * YOUTH);
	assert_int_equal(f.n_begun, 10);
	fini(&f);
}

// Nobody ever answers.
static void old_ones_make_room(void **state)
{
	static struct fixture f;
	init(&f, 10, 0);
	for (uint32_t id = 0; id < 35; id++)
		want(&f, id);
	pass(&f, YOUTH);
	assert_int_equal(f.n_begun, 10);
	pass(&f, YOUTH);
	assert_int_equal(f.n_begun, 20);
	pass(&f, 2 * YOUTH);
	assert_int_equal(f.n_begun, 30);
	assert_int_equal(lb_attempts_n_under_way(f.attempts), 30);
	assert_false(lb_attempts_is_young(f.attempts, f.began_ns[f.order[19]]));
	assert_true(lb_attempts_is_young(f.attempts, f.began_ns[f.order[20]]));
	// The end of an old one is none of a young one.
	end(&f, f.order[0]);
	pass(&f, WORLD_MS);
	assert_int_equal(f.n_begun, 30);
	fini(&f);
}

static void but_not_for_more_than_may_be_under_way(void **state)
{
	static struct fixture f;
	init(&f, 10, 15);
	for (uint32_t id = 0; id < 35; id++)
		want(&f, id);
	pass(&f, 20 * YOUTH);
	assert_int_equal(f.n_begun, 15);
	end(&f, f.order[0]);
	end(&f, f.order[14]);
	pass(&f, WORLD_MS);
	assert_int_equal(f.n_begun, 17);
	fini(&f);
}

static void nobody_waits_for_all_that_came_before(void **state)
{
	static struct fixture f;
	init(&f, 1, 1);
	const uint32_t n = 400, each = 10; // clusters, and their endpoints, side by side
	for (uint32_t id = 0; id < n * each; id++)
		want(&f, id);
	uint32_t n_served = 0, n_of[400] = {0};
	for (uint32_t i = 0; n_served < n; i++) {
		assert_true(i < n * each / 4);
		n_served += n_of[f.order[i] / each]++ == 0;
		end(&f, f.order[i]);
		pass(&f, WORLD_MS);
	}
	for (uint32_t i = 0; i < n; i++)
		assert_in_range(n_of[i], 1, 3);
	fini(&f);
}

static void everybody_has_a_turn_before_anybody_has_two(void **state)
{
	static struct fixture f;
	init(&f, 1, 1);
	for (uint32_t id = 0; id < 300; id++)
		want(&f, id);
	uint32_t n_of[300] = {0};
	for (uint32_t i = 0; i < 900; i++) {
		uint32_t id = f.order[i];
		n_of[id]++;
		end(&f, id);
		want(&f, id); // it failed, and is to be tried again
		pass(&f, WORLD_MS);
	}
	for (uint32_t id = 0; id < 300; id++)
		assert_in_range(n_of[id], 2, 4);
	fini(&f);
}

static void what_a_request_needs_goes_first(void **state)
{
	static struct fixture f;
	init(&f, 8, 8);
	for (uint32_t id = 0; id < 100; id++)
		want(&f, id);
	assert_true(lb_attempts_expedite(f.attempts, 90));
	assert_false(lb_attempts_expedite(f.attempts, 90)); // is under way
	assert_false(lb_attempts_expedite(f.attempts, 0)); // likewise
	assert_false(lb_attempts_expedite(f.attempts, 100)); // nobody wants it
	assert_true(lb_attempts_expedite(f.attempts, 91));
	assert_false(lb_attempts_expedite(f.attempts, 92)); // a quarter more
	assert_int_equal(f.n_begun, 10);
	end(&f, 90);
	pass(&f, WORLD_MS); // no room for others
	assert_int_equal(f.n_begun, 10);
	assert_true(lb_attempts_expedite(f.attempts, 92));
	fini(&f);
}

// However many requests need one: the others' turns go on.
static void what_no_request_needs_keeps_a_fifth_of_the_room(void **state)
{
	(void)state;
	static struct fixture f;
	init(&f, 8, 8);
	for (uint32_t id = 0; id < 1000; id++)
		want(&f, id);
	uint32_t n_expedited = 0, expedited = 999;
	for (uint32_t i = 0; i < 400; i++) {
		for (uint32_t k = 0; k < 2; k++) {
			while (f.phases[expedited] != WAITS) // it had its turn
				expedited--;
			for (; lb_attempts_expedite(f.attempts, expedited); expedited--)
				n_expedited++;
			assert_in_range(lb_attempts_n_under_way(f.attempts), 9, 10);
			if (k == 0)
				end(&f, f.order[i]); // the oldest; requests take its place first
		}
		pass(&f, WORLD_MS);
	}
	assert_in_range(f.n_begun - n_expedited, 8 + 400 / 5 - 5, 8 + 400 / 5 + 5);
	fini(&f);
}

// Though nobody waits, for whom a timer would run.
static void room_for_what_a_request_needs_comes_with_age(void **state)
{
	(void)state;
	static struct fixture f;
	init(&f, 4, 0);
	for (uint32_t id = 0; id < 5; id++)
		want(&f, id);
	assert_true(lb_attempts_may_expedite(f.attempts));
	assert_true(lb_attempts_expedite(f.attempts, 4));
	assert_false(lb_attempts_may_expedite(f.attempts));
	pass(&f, 2 * LB_ATTEMPTS_YOUTH_NS);
	assert_true(lb_attempts_may_expedite(f.attempts));
	fini(&f);
}

static uint32_t count_younger(const struct fixture *f, uint64_t age_ns)
{
	uint32_t n = 0;
	for (uint32_t id = 0; id < N_IDS; id++)
		n += f->phases[id] == UNDER_WAY && twheel_now(f->wheel) - f->began_ns[id] < age_ns;
	return n;
}

static void check(const struct fixture *f, uint32_t max_young, uint32_t max_under_way)
{
	uint32_t n = count(f, UNDER_WAY), n_waiting = count(f, WAITS);
	assert_int_equal(lb_attempts_n_under_way(f->attempts), n);
	assert_int_equal(lb_attempts_n_waiting(f->attempts), n_waiting);
	assert_true(n <= max_under_way * 5 / 4);
	assert_true(count_younger(f, YOUTH) <= max_young * 5 / 4);
	if (n_waiting) // not in vain
		assert_true(n >= max_under_way ||
			    count_younger(f, 2 * YOUTH + 2 * WORLD_MS) >= max_young);
}

// Against counts of the naive kind.
static void limits_hold_by_chance(void **state)
{
	static struct fixture f;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct rand rand;
		rand_init(&rand, seed);
		uint32_t max_young = 4 * (1 + (uint32_t)rand_below(&rand, 20));
		uint32_t max_under_way = max_young * (1 + (uint32_t)rand_below(&rand, 3));
		uint64_t longest = 1 + rand_below(&rand, 400);
		init(&f, max_young, max_under_way);
		for (int i = 0; i < 2000; i++) {
			for (uint64_t n = rand_below(&rand, 16); n > 0; n--) {
				uint32_t id = (uint32_t)rand_below(&rand, N_IDS);
				if (f.phases[id] == ABSENT)
					want(&f, id);
				else if (f.phases[id] == UNDER_WAY)
					end(&f, id);
				else if (rand_below(&rand, 4))
					leave(&f, id);
				else
					lb_attempts_expedite(f.attempts, id);
			}
			pass(&f, (1 + rand_below(&rand, longest)) * WORLD_MS);
			check(&f, max_young, max_under_way);
		}
		fini(&f);
	}
}

static void lack_of_memory_is_said(void **state)
{
	struct twheel *wheel = twheel_new(WORLD_START);
	struct lb_attempts *a;
	ALLOC_FAIL_EACH(a = lb_attempts_new(&(struct lb_attempts_conf){.wheel = wheel}), !a,
		lb_attempts_free(a));
	lb_attempts_free(NULL);
	twheel_free(wheel);
}

RUN_SUITE("lb/attempts", cmocka_unit_test(without_limits_all_begin_at_once),
	cmocka_unit_test(more_than_may_be_young_wait_until_others_are_over),
	cmocka_unit_test(nothing_begins_while_everything_goes),
	cmocka_unit_test(old_ones_make_room),
	cmocka_unit_test(but_not_for_more_than_may_be_under_way),
	cmocka_unit_test(nobody_waits_for_all_that_came_before),
	cmocka_unit_test(everybody_has_a_turn_before_anybody_has_two),
	cmocka_unit_test(what_a_request_needs_goes_first),
	cmocka_unit_test(what_no_request_needs_keeps_a_fifth_of_the_room),
	cmocka_unit_test(room_for_what_a_request_needs_comes_with_age),
	cmocka_unit_test(limits_hold_by_chance), cmocka_unit_test(lack_of_memory_is_said))
