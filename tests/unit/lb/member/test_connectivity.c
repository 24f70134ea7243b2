// SPDX-License-Identifier: Apache-2.0
#include "lb/member/connectivity.h"
#include "lb/member/subchannel.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/world.h"

static struct lb_subchannel *get(struct world *w, uint32_t n)
{
	struct ip_port addr = world_addr(n);
	return lb_connectivity_get(w->connectivity, &addr, NULL);
}

// MC-07
static void one_address_has_one_subchannel(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 1);
	struct lb_subchannel *s = get(&w, 1);
	assert_ptr_equal(get(&w, 1), s);
	assert_ptr_not_equal(get(&w, 2), s);
	lb_connectivity_put(w.connectivity, s);
	assert_int_equal(w.n_releases[0], 0);
	lb_connectivity_put(w.connectivity, s);
	assert_int_equal(w.n_releases[0], 1);
	struct lb_subchannel *other = get(&w, 2);
	lb_connectivity_put(w.connectivity, other);
	lb_connectivity_put(w.connectivity, other);
	world_fini(&w);
}

// Two attempts at a time, and three are wanted.
static void begin_three(struct world *w, struct lb_subchannel *s[3])
{
	world_init_paced(w, 2, 1, 2, 2, 0);
	for (uint32_t i = 0; i < 3; i++) {
		s[i] = get(w, i);
		lb_subchannel_request(s[i]);
		assert_int_equal(lb_subchannel_state(s[i]), LB_CONNECTING);
		assert_int_equal(w->n_connects[i], i < 2);
	}
	assert_int_equal(lb_connectivity_n_waiting(w->connectivity), 1);
	assert_int_equal(lb_connectivity_n_attempts(w->connectivity), 2);
}

static void end_three(struct world *w, struct lb_subchannel *s[3])
{
	for (uint32_t i = 0; i < 3; i++)
		if (s[i])
			lb_connectivity_put(w->connectivity, s[i]);
	assert_int_equal(lb_connectivity_n_waiting(w->connectivity), 0);
	assert_int_equal(lb_connectivity_n_attempts(w->connectivity), 0);
	world_fini(w);
}

static void attempt_that_waits_begins_when_another_failed(void **state)
{
	(void)state;
	struct world w;
	struct lb_subchannel *s[3];
	begin_three(&w, s);
	world_event(&w, 0, LB_EVENT_FAILED, 0, "refused");
	world_pass(&w, WORLD_MS);
	assert_int_equal(w.n_connects[2], 1);
	assert_int_equal(lb_connectivity_n_waiting(w.connectivity), 0);
	// Its own failure counts from when it began (BO-02).
	world_event(&w, 0, LB_EVENT_FAILED, 2, "refused");
	assert_int_equal(lb_subchannel_state(s[2]), LB_TRANSIENT_FAILURE);
	end_three(&w, s);
}

static void attempt_that_waits_begins_when_another_connected(void **state)
{
	(void)state;
	struct world w;
	struct lb_subchannel *s[3];
	begin_three(&w, s);
	world_event(&w, 1, LB_EVENT_CONNECTED, 1, "");
	world_event(&w, 1, LB_EVENT_CONNECTED, 1, ""); // once
	world_pass(&w, WORLD_MS);
	assert_int_equal(w.n_connects[2], 1);
	assert_int_equal(lb_connectivity_n_attempts(w.connectivity), 2);
	end_three(&w, s);
}

static void attempt_that_nobody_waits_for_any_more_never_begins(void **state)
{
	(void)state;
	struct world w;
	struct lb_subchannel *s[3];
	begin_three(&w, s);
	lb_connectivity_put(w.connectivity, s[2]);
	s[2] = NULL;
	lb_connectivity_put(w.connectivity, s[0]); // one that is under way is let go, too
	s[0] = NULL;
	assert_int_equal(lb_connectivity_n_attempts(w.connectivity), 1);
	world_pass(&w, 60 * WORLD_S);
	assert_int_equal(w.n_connects[2], 0);
	end_three(&w, s);
}

// MC-03: a connection of a pick's own making.
static void connection_of_another_worker_ends_the_wait(void **state)
{
	(void)state;
	struct world w;
	struct lb_subchannel *s[3];
	begin_three(&w, s);
	world_event(&w, 1, LB_EVENT_FAILED, 2, "refused"); // no verdict on what waits
	assert_int_equal(lb_subchannel_state(s[2]), LB_CONNECTING);
	world_event(&w, 1, LB_EVENT_CONNECTED, 2, "");
	assert_int_equal(lb_subchannel_state(s[2]), LB_READY);
	world_event(&w, 0, LB_EVENT_CONNECTED, 0, "");
	world_event(&w, 1, LB_EVENT_CONNECTED, 1, "");
	world_pass(&w, WORLD_S);
	assert_int_equal(w.n_connects[2], 0);
	end_three(&w, s);
}

// BO-01: a failed one waits for its backoff, and then for its turn; the next backoff counts from
// when it began.
static void backoff_and_turn_are_waited_for_one_after_the_other(void **state)
{
	(void)state;
	struct world w;
	struct lb_subchannel *s[3];
	begin_three(&w, s);
	world_event(&w, 0, LB_EVENT_FAILED, 0, "refused");
	world_pass(&w, 2 * WORLD_S);
	assert_int_equal(w.n_connects[2], 1);
	assert_int_equal(lb_subchannel_state(s[0]), LB_IDLE);
	lb_subchannel_request(s[0]);
	assert_int_equal(w.n_connects[0], 1); // two are under way
	world_pass(&w, 10 * WORLD_S);
	assert_int_equal(w.n_connects[0], 1);
	world_event(&w, 1, LB_EVENT_CONNECTED, 1, "");
	world_pass(&w, WORLD_MS);
	assert_int_equal(w.n_connects[0], 2);
	uint64_t began_ns = world_now(&w);
	world_event(&w, 0, LB_EVENT_FAILED, 0, "refused");
	while (lb_subchannel_state(s[0]) == LB_TRANSIENT_FAILURE)
		world_pass(&w, WORLD_MS);
	assert_in_range(world_now(&w) - began_ns, 1280 * WORLD_MS, 1921 * WORLD_MS);
	end_three(&w, s);
}

static void expedite_begins_what_waits_for_its_turn(void **state)
{
	(void)state;
	struct world w;
	struct lb_subchannel *s[3];
	begin_three(&w, s);
	assert_true(lb_subchannel_expedite(s[0])); // is young
	assert_true(lb_subchannel_expedite(s[2]));
	assert_int_equal(w.n_connects[0], 1);
	assert_int_equal(w.n_connects[2], 1);
	assert_true(lb_subchannel_expedite(s[2]));
	assert_int_equal(w.n_connects[2], 1);
	world_event(&w, 1, LB_EVENT_CONNECTED, 1, "");
	assert_false(lb_subchannel_expedite(s[1]));
	end_three(&w, s);
}

struct taker {
	struct lb_queued_attempt queued;
	struct world *world;
	uint32_t n_left; // times that it is queued again
	uint32_t n_taken;
};

static void take(struct lb_queued_attempt *t)
{
	struct taker *taker = (struct taker *)t;
	taker->n_taken++;
	if (taker->n_left-- > 0)
		lb_connectivity_queue(taker->world->connectivity, t);
}

static void turns_are_taken_one_after_the_other_while_there_is_room(void **state)
{
	(void)state;
	struct world w;
	world_init_paced(&w, 1, 1, 1, 1, 1);
	struct lb_subchannel *s[2] = {get(&w, 0), get(&w, 1)};
	assert_true(lb_connectivity_admits(w.connectivity));
	lb_subchannel_request(s[0]);
	lb_subchannel_request(s[1]);
	assert_false(lb_connectivity_admits(w.connectivity));
	struct taker takers[3];
	for (uint32_t i = 0; i < 3; i++) {
		takers[i] = (struct taker){.queued.take = take, .world = &w, .n_left = 1};
		lb_connectivity_queue(w.connectivity, &takers[i].queued);
		lb_connectivity_queue(w.connectivity, &takers[i].queued); // once
	}
	lb_connectivity_unqueue(w.connectivity, &takers[1].queued);
	lb_connectivity_unqueue(w.connectivity, &takers[1].queued);
	world_pass(&w, WORLD_S);
	assert_int_equal(takers[0].n_taken, 0);
	world_event(&w, 0, LB_EVENT_CONNECTED, 0, "");
	world_pass(&w, 20 * WORLD_MS);
	assert_int_equal(takers[0].n_taken, 2);
	assert_int_equal(takers[1].n_taken, 0);
	assert_int_equal(takers[2].n_taken, 2);
	lb_connectivity_put(w.connectivity, s[0]);
	lb_connectivity_put(w.connectivity, s[1]);
	world_pass(&w, 20 * WORLD_MS); // nobody is queued: no timer is left
	world_fini(&w);
}

// MC-03: READY as long as one worker has a connection.
static void state_is_over_all_workers(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 3, 1);
	struct lb_subchannel *s = get(&w, 1);
	lb_subchannel_request(s);
	assert_int_equal(w.n_connects[0], 1);
	world_event(&w, 0, LB_EVENT_CONNECTED, 0, "");
	world_event(&w, 2, LB_EVENT_CONNECTED, 0, "");
	world_event(&w, 0, LB_EVENT_LOST, 0, "closed");
	assert_int_equal(lb_subchannel_state(s), LB_READY);
	world_event(&w, 1, LB_EVENT_FAILED, 0, "refused"); // an attempt of a pick: no verdict
	assert_int_equal(lb_subchannel_state(s), LB_READY);
	world_event(&w, 2, LB_EVENT_LOST, 0, "closed");
	assert_int_equal(lb_subchannel_state(s), LB_IDLE);
	lb_connectivity_put(w.connectivity, s);
	world_fini(&w);
}

// Whatever its port; others wait on.
static void news_of_a_host_and_retries_reach_those_that_wait(void **state)
{
	(void)state;
	struct world w;
	struct lb_subchannel *s[4];
	world_init(&w, 1, 1);
	struct ip_port addr[4] = {world_addr(1), world_addr(1), world_addr(2), world_addr(3)};
	addr[1].port++;
	for (uint32_t i = 0; i < 4; i++) {
		s[i] = lb_connectivity_get(w.connectivity, &addr[i], NULL);
		lb_subchannel_request(s[i]);
		for (int k = 0; i < 3 && k < 8; k++) { // the last one connects on
			world_event(&w, 0, LB_EVENT_FAILED, i, "refused");
			while (k < 7 && lb_subchannel_state(s[i]) == LB_TRANSIENT_FAILURE)
				world_pass(&w, WORLD_S);
			lb_subchannel_request(s[i]);
		}
	}
	world_pass(&w, 2 * WORLD_S);
	lb_connectivity_event(w.connectivity, 0,
		&(struct lb_event){.kind = LB_EVENT_NEIGHBOR, .neighbor = addr[0].ip});
	world_pass(&w, 2 * WORLD_MS);
	assert_int_equal(lb_subchannel_state(s[0]), LB_IDLE);
	assert_int_equal(lb_subchannel_state(s[1]), LB_IDLE);
	assert_int_equal(lb_subchannel_state(s[2]), LB_TRANSIENT_FAILURE);
	assert_int_equal(lb_connectivity_retry(w.connectivity, &addr[0]), 0); // waits no more
	assert_int_equal(lb_connectivity_retry(w.connectivity, &addr[2]), 1);
	assert_int_equal(lb_subchannel_state(s[2]), LB_IDLE);
	for (uint32_t i = 0; i < 3; i++) {
		lb_subchannel_request(s[i]);
		world_event(&w, 0, LB_EVENT_FAILED, i, "refused");
	}
	const struct ip_port nobody = world_addr(9);
	assert_int_equal(lb_connectivity_retry(w.connectivity, &nobody), 0);
	assert_int_equal(lb_connectivity_retry(w.connectivity, NULL), 3);
	for (uint32_t i = 0; i < 4; i++)
		lb_connectivity_put(w.connectivity, s[i]);
	world_fini(&w);
}

static void hear(struct world *w, uint32_t host)
{
	struct lb_event news = {.kind = LB_EVENT_NEIGHBOR, .neighbor = world_addr(host).ip};
	lb_connectivity_event(w->connectivity, 0, &news);
}

// Anybody on a link can make news at any rate.
static void news_beyond_a_share_of_the_time_are_forgotten(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1, 1);
	struct lb_subchannel *s = get(&w, 1);
	for (int k = 0; k < 8; k++) {
		while (lb_subchannel_state(s) == LB_TRANSIENT_FAILURE)
			world_pass(&w, WORLD_S);
		lb_subchannel_request(s);
		world_event(&w, 0, LB_EVENT_FAILED, 0, "refused");
	}
	world_pass(&w, 2 * WORLD_S);
	for (uint32_t i = 0; i < 1000000; i++)
		hear(&w, 9);
	hear(&w, 1);
	world_pass(&w, 2 * WORLD_MS);
	assert_int_equal(lb_subchannel_state(s), LB_TRANSIENT_FAILURE);
	world_pass(&w, 200 * WORLD_MS);
	hear(&w, 1);
	world_pass(&w, 2 * WORLD_MS);
	assert_int_equal(lb_subchannel_state(s), LB_IDLE);
	lb_connectivity_put(w.connectivity, s);
	world_fini(&w);
}

static void events_of_unknown_endpoints_are_ignored(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1, 1);
	for (int kind = LB_EVENT_CONNECTED; kind <= LB_EVENT_DRAINED; kind++) {
		world_event(&w, 0, (enum lb_event_kind)kind, 0, "x");
		world_event(&w, 0, (enum lb_event_kind)kind, UINT32_MAX, "x");
	}
	struct lb_subchannel *s = get(&w, 1);
	world_event(&w, 63, LB_EVENT_CONNECTED, 0, "");
	world_event(&w, 0, LB_EVENT_RELEASED, 0, ""); // not asked for
	assert_int_equal(lb_subchannel_state(s), LB_IDLE);
	assert_non_null(lb_endpoint_find(lb_connectivity_endpoints(w.connectivity), 0));
	lb_connectivity_put(w.connectivity, s);
	world_fini(&w);
}

static void endpoint_is_freed_after_the_last_worker_released_it(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 3, 1);
	struct lb_endpoint_table *t = lb_connectivity_endpoints(w.connectivity);
	struct lb_subchannel *s = get(&w, 1);
	struct lb_endpoint *held = lb_endpoint_get_again(lb_subchannel_endpoint(s));
	lb_connectivity_put(w.connectivity, s);
	assert_int_equal(w.n_releases[0], 0); // a snapshot still holds it
	lb_endpoint_put(t, held);
	assert_int_equal(w.n_releases[0], 1);
	world_event(&w, 0, LB_EVENT_RELEASED, 0, "");
	world_event(&w, 2, LB_EVENT_RELEASED, 0, "");
	assert_ptr_equal(lb_endpoint_find(t, 0), held);
	world_event(&w, 1, LB_EVENT_RELEASED, 0, "");
	assert_null(lb_endpoint_find(t, 0));
	w.n_releases[0] = 0;
	world_fini(&w);
}

// UPD-03: taken up again while the workers still let it go.
static void endpoint_taken_up_again_while_released_stays_and_reconnects(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 1);
	struct lb_endpoint_table *t = lb_connectivity_endpoints(w.connectivity);
	struct lb_subchannel *s = get(&w, 1);
	lb_subchannel_request(s);
	world_event(&w, 0, LB_EVENT_CONNECTED, 0, "");
	world_event(&w, 1, LB_EVENT_CONNECTED, 0, "");
	lb_connectivity_put(w.connectivity, s);
	world_event(&w, 1, LB_EVENT_RELEASED, 0, "");
	s = get(&w, 1);
	assert_int_equal(lb_subchannel_state(s), LB_READY); // of worker 0
	world_event(&w, 0, LB_EVENT_RELEASED, 0, "");
	assert_int_equal(lb_subchannel_state(s), LB_IDLE);
	assert_non_null(lb_endpoint_find(t, 0));
	// A second release while answers of the first are out needs all of both.
	lb_connectivity_put(w.connectivity, s);
	s = get(&w, 1);
	lb_connectivity_put(w.connectivity, s);
	assert_int_equal(w.n_releases[0], 3);
	w.n_releases[0] = 0;
	for (int i = 0; i < 3; i++)
		world_event(&w, 0, LB_EVENT_RELEASED, 0, "");
	assert_non_null(lb_endpoint_find(t, 0));
	world_event(&w, 1, LB_EVENT_RELEASED, 0, "");
	assert_null(lb_endpoint_find(t, 0));
	world_fini(&w);
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1, 1);
	struct lb_subchannel *s = NULL;
	for (size_t nth = 0;; nth++) {
		alloc_fail_arm(nth);
		s = get(&w, 1);
		if (!alloc_fail_disarm())
			break;
		assert_null(s);
		if (w.n_releases[0])
			world_answer_release(&w, 0);
		assert_int_equal(
			lb_endpoint_table_count(lb_connectivity_endpoints(w.connectivity)), 0);
	}
	assert_non_null(s);
	lb_connectivity_put(w.connectivity, s);
	world_fini(&w);
}

RUN_SUITE("lb/connectivity", cmocka_unit_test(one_address_has_one_subchannel),
	cmocka_unit_test(state_is_over_all_workers),
	cmocka_unit_test(news_of_a_host_and_retries_reach_those_that_wait),
	cmocka_unit_test(news_beyond_a_share_of_the_time_are_forgotten),
	cmocka_unit_test(events_of_unknown_endpoints_are_ignored),
	cmocka_unit_test(endpoint_is_freed_after_the_last_worker_released_it),
	cmocka_unit_test(endpoint_taken_up_again_while_released_stays_and_reconnects),
	cmocka_unit_test(attempt_that_waits_begins_when_another_failed),
	cmocka_unit_test(attempt_that_waits_begins_when_another_connected),
	cmocka_unit_test(attempt_that_nobody_waits_for_any_more_never_begins),
	cmocka_unit_test(connection_of_another_worker_ends_the_wait),
	cmocka_unit_test(backoff_and_turn_are_waited_for_one_after_the_other),
	cmocka_unit_test(expedite_begins_what_waits_for_its_turn),
	cmocka_unit_test(turns_are_taken_one_after_the_other_while_there_is_room),
	cmocka_unit_test(each_failed_allocation_is_survived))
