// SPDX-License-Identifier: Apache-2.0
// Members that are put off while too many attempts to connect wait already.
#include "lb/base/container_of.h"
#include "lb/member/connectivity.h"
#include "lb/member/subchannel.h"
#include "tests/support/check.h"
#include "tests/unit/lb/member/member_world.h"

struct fixture {
	struct member_world m;
	bool asks; // for a connection, in its turn, as soon as it is IDLE
	uint32_t n_turns;
	struct lb_subchannel *others[2];
};

static void on_told(struct member_world *m)
{
	struct fixture *f = CONTAINER_OF(m, struct fixture, m);
	if (f->asks && lb_member_raw_state(m->member) == LB_IDLE)
		lb_member_connect_in_turn(m->member);
}

static void on_turn(struct lb_queued_attempt *t)
{
	struct fixture *f = CONTAINER_OF(t, struct fixture, m.env.queued);
	f->n_turns++;
	assert_true(lb_member_ask_again(f->m.member));
	assert_false(lb_member_ask_again(f->m.member)); // once
}

// One attempt at a time, and one may wait: both are somebody else's, and the member is put off.
static void put_off(struct fixture *f)
{
	*f = (struct fixture){.n_turns = 0};
	member_world_init_paced(&f->m, (uint32_t[]){1}, 1);
	f->m.on_told = on_told;
	f->m.env.queued.take = on_turn;
	for (uint32_t i = 0; i < 2; i++) {
		struct ip_port a = world_addr(10 + i);
		f->others[i] = lb_connectivity_get(f->m.world.connectivity, &a, NULL);
		lb_subchannel_request(f->others[i]);
	}
	f->m.env.rests_ns = UINT64_MAX;
	assert_true(lb_member_connect_in_turn(f->m.member));
	assert_int_equal(f->m.env.rests_ns, 0);
	assert_true(lb_member_connect_in_turn(f->m.member)); // counts once
	assert_int_equal(lb_connectivity_n_waiting(f->m.world.connectivity), 2);
	assert_int_equal(lb_member_raw_state(f->m.member), LB_IDLE);
	assert_int_equal(member_world_id(&f->m, 1), UINT32_MAX); // it costs nothing
	assert_int_equal(f->m.n_told, 0);
}

static void end_put_off(struct fixture *f)
{
	for (uint32_t i = 0; i < 2; i++)
		lb_connectivity_put(f->m.world.connectivity, f->others[i]);
	lb_connectivity_unqueue(f->m.world.connectivity, &f->m.env.queued);
	member_world_fini(&f->m);
}

static void member_that_is_put_off_asks_again_in_its_turn(void **state)
{
	(void)state;
	struct fixture f;
	put_off(&f);
	f.asks = true;
	world_pass(&f.m.world, WORLD_S);
	assert_int_equal(f.n_turns, 0);
	member_world_event(&f.m, LB_EVENT_CONNECTED, 10, "");
	world_pass(&f.m.world, 20 * WORLD_MS);
	assert_int_equal(f.n_turns, 1);
	assert_int_equal(f.m.state, LB_CONNECTING);
	assert_int_equal(member_world_connects(&f.m, 1), 0); // it is its turn to wait
	member_world_event(&f.m, LB_EVENT_CONNECTED, 11, "");
	world_pass(&f.m.world, 20 * WORLD_MS);
	assert_int_equal(member_world_connects(&f.m, 1), 1);
	assert_int_equal(f.n_turns, 1);
	end_put_off(&f);
}

static void member_that_nobody_wants_any_more_stays_idle(void **state)
{
	(void)state;
	struct fixture f;
	put_off(&f);
	member_world_event(&f.m, LB_EVENT_CONNECTED, 10, "");
	world_pass(&f.m.world, WORLD_S);
	assert_int_equal(f.n_turns, 1); // and the watcher asks for nothing
	assert_int_equal(f.m.n_told, 1);
	assert_int_equal(f.m.state, LB_IDLE);
	assert_int_equal(lb_connectivity_n_waiting(f.m.world.connectivity), 0);
	end_put_off(&f);
}

static void member_is_put_off_until_it_goes_or_is_disconnected(void **state)
{
	(void)state;
	struct fixture f;
	put_off(&f);
	lb_member_disconnect(f.m.member);
	assert_int_equal(lb_connectivity_n_waiting(f.m.world.connectivity), 1);
	assert_true(lb_member_connect_in_turn(f.m.member));
	end_put_off(&f); // it goes while it is put off
}

static void request_or_a_known_address_has_no_need_of_a_turn(void **state)
{
	(void)state;
	struct fixture f;
	put_off(&f);
	f.asks = true;
	assert_true(lb_member_expedite(f.m.member));
	assert_int_equal(member_world_connects(&f.m, 1), 1);
	assert_true(lb_member_expedite(f.m.member)); // is under way
	struct lb_member *same = member_world_make(&f.m, (uint32_t[]){10, 11}, 2);
	assert_false(lb_member_connect_in_turn(same));
	assert_int_equal(lb_member_raw_state(same), LB_CONNECTING);
	assert_int_equal(member_world_connects(&f.m, 1), 1);
	lb_member_put(same);
	end_put_off(&f);
}

// It counts as failing before and after; only who expedites it has something to gain from now on.
static void end_of_a_backoff_ends_the_rest_of_who_makes_expedite(void **state)
{
	(void)state;
	struct fixture f = {.n_turns = 0};
	member_world_init_paced(&f.m, (uint32_t[]){1}, 1);
	lb_member_connect(f.m.member);
	member_world_event(&f.m, LB_EVENT_CONNECTED, 1, "");
	for (uint32_t i = 0; i < 2; i++) {
		struct ip_port a = world_addr(10 + i);
		f.others[i] = lb_connectivity_get(f.m.world.connectivity, &a, NULL);
		lb_subchannel_request(f.others[i]);
	}
	f.m.env.rests_ns = UINT64_MAX;
	member_world_event(&f.m, LB_EVENT_SHORT_LIVED, 1, "RST");
	assert_int_equal(f.m.env.rests_ns, 0);
	lb_member_connect(f.m.member);
	assert_int_equal(f.m.state, LB_TRANSIENT_FAILURE);
	assert_false(lb_member_expedite(f.m.member)); // a backoff is waited for
	f.m.env.rests_ns = UINT64_MAX;
	world_pass(&f.m.world, 700 * WORLD_MS);
	assert_true(f.m.env.rests_ns == UINT64_MAX);
	world_pass(&f.m.world, 700 * WORLD_MS);
	assert_int_equal(f.m.env.rests_ns, 0);
	assert_int_equal(member_world_connects(&f.m, 1), 1);
	assert_true(lb_member_expedite(f.m.member));
	assert_int_equal(member_world_connects(&f.m, 1), 2);
	end_put_off(&f);
}

RUN_SUITE("lb/member_turn", cmocka_unit_test(member_that_is_put_off_asks_again_in_its_turn),
	cmocka_unit_test(member_that_nobody_wants_any_more_stays_idle),
	cmocka_unit_test(member_is_put_off_until_it_goes_or_is_disconnected),
	cmocka_unit_test(request_or_a_known_address_has_no_need_of_a_turn),
	cmocka_unit_test(end_of_a_backoff_ends_the_rest_of_who_makes_expedite))
