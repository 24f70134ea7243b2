// SPDX-License-Identifier: Apache-2.0
// Members that are put off while too many attempts to connect wait already.
#include "lb/connectivity.h"
#include "lb/member.h"
#include "lb/subchannel.h"
#include "tests/support/check.h"
#include "tests/unit/lb/world.h"

struct fixture {
	struct world world;
	struct lb_member_env env;
	struct lb_member *member;
	struct lb_member_watcher watcher;
	uint32_t n_told;
	enum lb_state state; // as last told
	bool asks; // for a connection, in its turn, as soon as it is IDLE
	uint32_t n_turns;
};

static void on_change(struct lb_member_watcher *w, uint32_t index)
{
	assert_int_equal(index, 0);
	struct fixture *f = (void *)((char *)w - offsetof(struct fixture, watcher));
	f->n_told++;
	f->state = lb_member_state(f->member);
	if (f->asks && lb_member_raw_state(f->member) == LB_IDLE)
		lb_member_connect_in_turn(f->member);
}

// Its addresses are numbered from the first one on.
static struct lb_member *make(struct fixture *f, uint32_t first, uint32_t n)
{
	struct ip_port list[2] = {world_addr(first), world_addr(first + 1)};
	return lb_member_new(&f->env, 5, list, n);
}

// UINT32_MAX = nobody has taken its subchannel
static uint32_t id_of(struct fixture *f, uint32_t number)
{
	struct ip_port a = world_addr(number);
	struct lb_endpoint *e =
		lb_endpoint_of(lb_connectivity_endpoints(f->world.connectivity), &a);
	return e ? e->id : UINT32_MAX;
}

static uint32_t n_connects(struct fixture *f, uint32_t number)
{
	uint32_t id = id_of(f, number);
	return id == UINT32_MAX ? 0 : f->world.n_connects[id];
}

static void event(struct fixture *f, enum lb_event_kind kind, uint32_t number, const char *why)
{
	world_event(&f->world, 0, kind, id_of(f, number), why);
}

static void on_turn(struct lb_turn *t)
{
	struct fixture *f = (void *)((char *)t - offsetof(struct fixture, env.turn));
	f->n_turns++;
	assert_true(lb_member_ask_again(f->member));
	assert_false(lb_member_ask_again(f->member)); // once
}

// One attempt at a time, and one may wait: both are somebody else's, and the member is put off.
static void put_off(struct fixture *f, struct lb_subchannel *others[2])
{
	*f = (struct fixture){.watcher = {.on_change = on_change, .n = 1}};
	world_init_paced(&f->world, 1, 1, 1, 1, 1);
	f->env =
		(struct lb_member_env){.connectivity = f->world.connectivity, .turn.take = on_turn};
	f->member = make(f, 1, 1);
	assert_non_null(f->member);
	assert_true(lb_member_watch(f->member, &f->watcher, 0));
	for (uint32_t i = 0; i < 2; i++) {
		struct ip_port a = world_addr(10 + i);
		others[i] = lb_connectivity_get(f->world.connectivity, &a);
		lb_subchannel_request(others[i]);
	}
	assert_true(lb_member_connect_in_turn(f->member));
	assert_true(lb_member_connect_in_turn(f->member)); // counts once
	assert_int_equal(lb_connectivity_n_waiting(f->world.connectivity), 2);
	assert_int_equal(lb_member_raw_state(f->member), LB_IDLE);
	assert_int_equal(id_of(f, 1), UINT32_MAX); // it costs nothing
	assert_int_equal(f->n_told, 0);
}

static void end_put_off(struct fixture *f, struct lb_subchannel *others[2])
{
	for (uint32_t i = 0; i < 2; i++)
		lb_connectivity_put(f->world.connectivity, others[i]);
	lb_connectivity_unqueue(f->world.connectivity, &f->env.turn);
	struct lb_member *m = f->member;
	lb_member_unwatch(m, &f->watcher, 0);
	lb_member_put(m);
	assert_int_equal(lb_connectivity_n_waiting(f->world.connectivity), 0);
	world_fini(&f->world);
}

static void member_that_is_put_off_asks_again_in_its_turn(void **state)
{
	(void)state;
	struct fixture f;
	struct lb_subchannel *others[2];
	put_off(&f, others);
	f.asks = true;
	world_pass(&f.world, WORLD_S);
	assert_int_equal(f.n_turns, 0);
	event(&f, LB_EVENT_CONNECTED, 10, "");
	world_pass(&f.world, 20 * WORLD_MS);
	assert_int_equal(f.n_turns, 1);
	assert_int_equal(f.state, LB_CONNECTING);
	assert_int_equal(n_connects(&f, 1), 0); // it is its turn to wait
	event(&f, LB_EVENT_CONNECTED, 11, "");
	world_pass(&f.world, 20 * WORLD_MS);
	assert_int_equal(n_connects(&f, 1), 1);
	assert_int_equal(f.n_turns, 1);
	end_put_off(&f, others);
}

static void member_that_nobody_wants_any_more_stays_idle(void **state)
{
	(void)state;
	struct fixture f;
	struct lb_subchannel *others[2];
	put_off(&f, others);
	event(&f, LB_EVENT_CONNECTED, 10, "");
	world_pass(&f.world, WORLD_S);
	assert_int_equal(f.n_turns, 1); // and the watcher asks for nothing
	assert_int_equal(f.n_told, 1);
	assert_int_equal(f.state, LB_IDLE);
	assert_int_equal(lb_connectivity_n_waiting(f.world.connectivity), 0);
	end_put_off(&f, others);
}

static void member_is_put_off_until_it_goes_or_is_disconnected(void **state)
{
	(void)state;
	struct fixture f;
	struct lb_subchannel *others[2];
	put_off(&f, others);
	lb_member_disconnect(f.member);
	assert_int_equal(lb_connectivity_n_waiting(f.world.connectivity), 1);
	assert_true(lb_member_connect_in_turn(f.member));
	end_put_off(&f, others); // it goes while it is put off
}

static void request_or_a_known_address_has_no_need_of_a_turn(void **state)
{
	(void)state;
	struct fixture f;
	struct lb_subchannel *others[2];
	put_off(&f, others);
	f.asks = true;
	assert_true(lb_member_hurry(f.member));
	assert_int_equal(n_connects(&f, 1), 1);
	assert_true(lb_member_hurry(f.member)); // is under way
	struct lb_member *same = make(&f, 10, 2);
	assert_false(lb_member_connect_in_turn(same));
	assert_int_equal(lb_member_raw_state(same), LB_CONNECTING);
	assert_int_equal(n_connects(&f, 1), 1);
	lb_member_put(same);
	end_put_off(&f, others);
}

RUN_SUITE("lb/member_turn", cmocka_unit_test(member_that_is_put_off_asks_again_in_its_turn),
	cmocka_unit_test(member_that_nobody_wants_any_more_stays_idle),
	cmocka_unit_test(member_is_put_off_until_it_goes_or_is_disconnected),
	cmocka_unit_test(request_or_a_known_address_has_no_need_of_a_turn))
