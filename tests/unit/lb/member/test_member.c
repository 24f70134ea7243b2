// SPDX-License-Identifier: Apache-2.0
#include "lb/member/connectivity.h"
#include "lb/member/subchannel.h"
#include "lb/pick/limits.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/member/member_world.h"

#include <stdlib.h>
#include <string.h>

static void assert_uses(struct member_world *f, uint32_t number)
{
	struct ip_port a = member_world_addr(number);
	assert_int_equal(lb_member_raw_state(f->member), LB_READY);
	assert_true(ip_port_eq(&lb_member_endpoint(f->member)->addr, &a));
}

static void nothing_connects_unless_asked(void **state)
{
	(void)state;
	struct member_world f;
	member_world_init(&f, (uint32_t[]){1, 2}, 2);
	world_pass(&f.world, 10 * WORLD_S);
	assert_int_equal(lb_member_state(f.member), LB_IDLE);
	assert_null(lb_member_endpoint(f.member));
	struct lb_endpoint_table *t = lb_connectivity_endpoints(f.world.connectivity);
	assert_int_equal(lb_endpoint_table_count(t), 0);
	assert_int_equal(f.n_told, 0);
	assert_int_equal(lb_member_id(f.member), 5);
	member_world_fini(&f);
}

static void single_address_connects_and_is_lost_and_waits_for_the_next_connect_request(void **state)
{
	(void)state;
	struct member_world f;
	member_world_init(&f, (uint32_t[]){1}, 1);
	lb_member_connect(f.member);
	assert_int_equal(f.state, LB_CONNECTING);
	assert_int_equal(f.n_told, 1);
	member_world_event(&f, LB_EVENT_CONNECTED, 1, "");
	assert_int_equal(f.state, LB_READY);
	assert_int_equal(f.n_told, 2);
	assert_uses(&f, 1);
	world_pass(&f.world, 10 * WORLD_S);
	member_world_event(&f, LB_EVENT_LOST, 1, "closed"); // PF-06
	assert_int_equal(f.state, LB_IDLE);
	assert_int_equal(f.n_told, 3);
	world_pass(&f.world, 10 * WORLD_S);
	assert_int_equal(member_world_connects(&f, 1), 1);
	lb_member_connect(f.member);
	assert_int_equal(member_world_connects(&f, 1), 2);
	member_world_fini(&f);
}

// BO-02: giving the subchannel back with each lost connection would forget the spacing.
static void backend_that_hangs_up_is_not_hammered(void **state)
{
	(void)state;
	struct member_world f;
	member_world_init(&f, (uint32_t[]){1}, 1);
	uint64_t start = world_now(&f.world);
	for (uint32_t i = 1; i <= 5; i++) {
		lb_member_connect(f.member);
		while (member_world_connects(&f, 1) < i)
			world_pass(&f.world, WORLD_MS);
		member_world_event(&f, LB_EVENT_CONNECTED, 1, "");
		member_world_event(&f, LB_EVENT_SHORT_LIVED, 1, "closed");
		lb_member_connect(f.member);
		assert_int_equal(f.state, LB_TRANSIENT_FAILURE); // BO-04
	}
	assert_true(world_now(&f.world) - start >= 4 * 800 * WORLD_MS);
	member_world_fini(&f);
}

// PF-01: the first family first, then in turns, the rest in order. PF-02: 250 ms apart.
static void families_take_turns_a_quarter_second_apart(void **state)
{
	(void)state;
	struct member_world f;
	const uint32_t list[] = {MEMBER_WORLD_V6, MEMBER_WORLD_V6 + 1, MEMBER_WORLD_V6 + 2, 1, 2};
	const uint32_t order[] = {MEMBER_WORLD_V6, 1, MEMBER_WORLD_V6 + 1, 2, MEMBER_WORLD_V6 + 2};
	member_world_init(&f, list, 5);
	lb_member_connect(f.member);
	for (uint32_t i = 0; i < 5; i++) {
		for (uint32_t k = 0; k < 5; k++)
			assert_int_equal(member_world_connects(&f, order[k]), k <= i);
		world_pass(&f.world, 249 * WORLD_MS);
		assert_int_equal(member_world_connects(&f, order[i < 4 ? i + 1 : 4]), i == 4);
		world_pass(&f.world, WORLD_MS);
	}
	assert_int_equal(f.state, LB_CONNECTING);
	member_world_fini(&f);
}

static void reconnect(struct member_world *f, uint32_t lost)
{
	member_world_event(f, LB_EVENT_LOST, lost, "closed");
	lb_member_connect(f->member);
}

// PF-09: for ten minutes, and not if it refused or answered late.
static void family_without_an_answer_is_tried_later(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 4; round++) {
		bool v6_first = round % 2, refuses = round >= 2;
		uint32_t dead = v6_first ? MEMBER_WORLD_V6 : 1;
		uint32_t live = v6_first ? 1 : MEMBER_WORLD_V6;
		struct member_world f;
		member_world_init(&f, (uint32_t[]){dead, dead + 1, live}, 3);
		lb_member_connect(f.member);
		if (refuses)
			member_world_event(&f, LB_EVENT_FAILED, dead, "refused");
		else
			world_pass(&f.world, 250 * WORLD_MS);
		assert_int_equal(member_world_connects(&f, dead), 1);
		member_world_event(&f, LB_EVENT_CONNECTED, live, "");
		world_pass(&f.world, 9 * 60 * WORLD_S);
		reconnect(&f, live);
		assert_int_equal(member_world_connects(&f, live), refuses ? 1 : 2);
		assert_int_equal(member_world_connects(&f, dead), refuses ? 2 : 1);
		if (!refuses) {
			member_world_event(&f, LB_EVENT_CONNECTED, live, "");
			world_pass(&f.world, 2 * 60 * WORLD_S);
			reconnect(&f, live);
			assert_int_equal(member_world_connects(&f, live), 2);
			assert_int_equal(member_world_connects(&f, dead), 2);
		}
		member_world_fini(&f);
	}
}

// PF-09: who began first and is slow is not silent because another one has begun beside it.
static void family_that_wins_late_stays_the_first(void **state)
{
	(void)state;
	struct member_world f;
	member_world_init(&f, (uint32_t[]){MEMBER_WORLD_V6, 1}, 2);
	lb_member_connect(f.member);
	world_pass(&f.world, 250 * WORLD_MS);
	member_world_event(&f, LB_EVENT_CONNECTED, MEMBER_WORLD_V6, "");
	reconnect(&f, MEMBER_WORLD_V6);
	assert_int_equal(member_world_connects(&f, MEMBER_WORLD_V6), 2);
	assert_int_equal(member_world_connects(&f, 1), 1);
	member_world_fini(&f);
}

// PF-02
static void delay_stays_within_its_bounds(void **state)
{
	(void)state;
	const uint64_t delays[][2] = {{0, 100}, {99, 100}, {300, 300}, {5000, 2000}};
	for (size_t i = 0; i < 4; i++) {
		struct member_world f;
		member_world_init(&f, (uint32_t[]){1, 2}, 2);
		f.env.attempt_delay_ns = delays[i][0] * WORLD_MS;
		lb_member_connect(f.member);
		world_pass(&f.world, (delays[i][1] - 1) * WORLD_MS);
		assert_int_equal(member_world_connects(&f, 2), 0);
		world_pass(&f.world, WORLD_MS);
		assert_int_equal(member_world_connects(&f, 2), 1);
		member_world_fini(&f);
	}
}

// PF-02
static void failure_has_the_next_address_tried_at_once(void **state)
{
	(void)state;
	struct member_world f;
	member_world_init(&f, (uint32_t[]){1, 2, 3}, 3);
	lb_member_connect(f.member);
	member_world_event(&f, LB_EVENT_FAILED, 1, "refused");
	assert_int_equal(member_world_connects(&f, 2), 1);
	assert_int_equal(member_world_connects(&f, 3), 0);
	world_pass(&f.world, 249 * WORLD_MS);
	assert_int_equal(member_world_connects(&f, 3), 0);
	world_pass(&f.world, WORLD_MS);
	assert_int_equal(member_world_connects(&f, 3), 1);
	member_world_event(&f, LB_EVENT_FAILED, 2, "refused"); // not the newest: nobody else begins
	assert_int_equal(lb_member_state(f.member), LB_CONNECTING);
	assert_string_equal(lb_member_last_error(f.member), "10.82.0.2:50051: refused");
	member_world_fini(&f);
}

// PF-02, PF-03: an attempt that began earlier may still win; whoever wins, the others end.
static void first_to_be_ready_wins_and_the_others_are_given_up(void **state)
{
	(void)state;
	for (uint32_t winner = 1; winner <= 2; winner++) {
		struct member_world f;
		member_world_init(&f, (uint32_t[]){1, 2, 3}, 3);
		lb_member_connect(f.member);
		world_pass(&f.world, 250 * WORLD_MS);
		assert_int_equal(member_world_connects(&f, 2), 1);
		uint32_t loser = member_world_id(&f, 3 - winner), third = member_world_id(&f, 3);
		member_world_event(&f, LB_EVENT_CONNECTED, winner, "");
		assert_int_equal(f.state, LB_READY);
		assert_uses(&f, winner);
		assert_int_equal(f.world.n_releases[loser], 1);
		assert_int_equal(f.world.n_releases[third], 1);
		world_pass(&f.world, WORLD_S);
		assert_int_equal(f.world.n_connects[third], 0);
		assert_string_equal(lb_member_last_error(f.member), "");
		member_world_fini(&f);
	}
}

// PF-05
static void it_fails_once_each_address_failed_and_then_tries_all(void **state)
{
	(void)state;
	struct member_world f;
	member_world_init(&f, (uint32_t[]){1, 2}, 2);
	lb_member_connect(f.member);
	member_world_event(&f, LB_EVENT_FAILED, 1, "refused");
	assert_int_equal(f.state, LB_CONNECTING);
	world_pass(&f.world, 100 * WORLD_MS);
	member_world_event(&f, LB_EVENT_FAILED, 2, "connect timeout");
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	assert_string_equal(lb_member_last_error(f.member), "10.82.0.2:50051: connect timeout");
	uint32_t n_told = f.n_told;
	while (member_world_connects(&f, 1) < 2 || member_world_connects(&f, 2) < 2)
		world_pass(&f.world, WORLD_MS);
	assert_true(world_now(&f.world) - WORLD_START < 1400 * WORLD_MS); // each on its own
	assert_true(f.n_told > n_told); // of the raw state
	// Sticky (ST-02), whatever is tried.
	assert_int_equal(lb_member_raw_state(f.member), LB_CONNECTING);
	assert_int_equal(lb_member_state(f.member), LB_TRANSIENT_FAILURE);
	member_world_event(&f, LB_EVENT_FAILED, 2, "refused");
	assert_int_equal(lb_member_raw_state(f.member), LB_CONNECTING);
	member_world_event(&f, LB_EVENT_FAILED, 1, "refused");
	assert_int_equal(lb_member_raw_state(f.member), LB_TRANSIENT_FAILURE);
	world_pass(&f.world, 3 * WORLD_S);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	member_world_event(&f, LB_EVENT_CONNECTED, 1, "");
	assert_int_equal(f.state, LB_READY);
	assert_uses(&f, 1);
	member_world_fini(&f);
}

// PF-05: one that fails early in a long pass is not tried again before the pass is over.
static void address_fails_once_in_a_pass(void **state)
{
	(void)state;
	struct member_world f;
	member_world_init(&f, (uint32_t[]){1, 2}, 2);
	lb_member_connect(f.member);
	member_world_event(&f, LB_EVENT_FAILED, 1, "refused");
	world_pass(&f.world, 5 * WORLD_S);
	assert_int_equal(member_world_connects(&f, 1), 1);
	member_world_event(&f, LB_EVENT_FAILED, 2, "connect timeout");
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	assert_int_equal(member_world_connects(&f, 1), 2); // its backoff was over
	member_world_fini(&f);
}

// PF-04
static void address_in_backoff_is_skipped_and_one_under_way_counts(void **state)
{
	(void)state;
	struct member_world f;
	member_world_init(&f, (uint32_t[]){1, 2, 3}, 3);
	struct ip_port a1 = member_world_addr(1), a2 = member_world_addr(2);
	struct lb_subchannel *other1 = lb_connectivity_get(f.world.connectivity, &a1, NULL);
	struct lb_subchannel *other2 = lb_connectivity_get(f.world.connectivity, &a2, NULL);
	lb_subchannel_request(other1);
	member_world_event(&f, LB_EVENT_FAILED, 1, "refused");
	lb_subchannel_request(other2);
	lb_member_connect(f.member);
	assert_int_equal(member_world_connects(&f, 1), 1);
	assert_int_equal(member_world_connects(&f, 2), 1);
	assert_int_equal(member_world_connects(&f, 3), 0);
	world_pass(&f.world, 250 * WORLD_MS);
	assert_int_equal(member_world_connects(&f, 3), 1);
	member_world_event(&f, LB_EVENT_FAILED, 3, "refused");
	assert_int_equal(f.state, LB_CONNECTING);
	member_world_event(&f, LB_EVENT_FAILED, 2, "refused");
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	lb_connectivity_put(f.world.connectivity, other1);
	lb_connectivity_put(f.world.connectivity, other2);
	member_world_fini(&f);
}

// PF-04, PF-05: what somebody else's attempt came to before its turn is no failure of its own.
static void attempt_counts_from_its_turn_on(void **state)
{
	(void)state;
	struct member_world f;
	member_world_init(&f, (uint32_t[]){1, 2}, 2);
	f.env.attempt_delay_ns = 2 * WORLD_S;
	struct ip_port a2 = member_world_addr(2);
	struct lb_subchannel *other = lb_connectivity_get(f.world.connectivity, &a2, NULL);
	lb_member_connect(f.member);
	lb_subchannel_request(other);
	member_world_event(&f, LB_EVENT_FAILED, 2, "refused");
	world_pass(&f.world, 2 * WORLD_S); // its backoff is over, its turn is come
	assert_int_equal(member_world_connects(&f, 2), 2);
	member_world_event(&f, LB_EVENT_FAILED, 1, "refused");
	assert_int_equal(f.state, LB_CONNECTING);
	member_world_event(&f, LB_EVENT_FAILED, 2, "refused");
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	lb_connectivity_put(f.world.connectivity, other);
	member_world_fini(&f);
}

// MC-07: the connections of an address are everybody's.
static void connection_of_another_cluster_is_used_at_once(void **state)
{
	(void)state;
	struct member_world f;
	member_world_init(&f, (uint32_t[]){1, 2}, 2);
	struct ip_port a2 = member_world_addr(2);
	struct lb_subchannel *other = lb_connectivity_get(f.world.connectivity, &a2, NULL);
	lb_subchannel_request(other);
	member_world_event(&f, LB_EVENT_CONNECTED, 2, "");
	lb_member_connect(f.member);
	assert_uses(&f, 2);
	assert_int_equal(f.n_told, 1);
	assert_int_equal(member_world_connects(&f, 1), 0);
	member_world_event(&f, LB_EVENT_LOST, 2, "closed");
	assert_int_equal(f.state, LB_IDLE);
	member_world_event(&f, LB_EVENT_CONNECTED, 2, ""); // a worker's own, or the other cluster's
	assert_uses(&f, 2);
	assert_int_equal(f.state, LB_READY);
	lb_connectivity_put(f.world.connectivity, other);
	member_world_fini(&f);
}

// A50-E16
static void ejection_shows_failure_and_keeps_the_connection(void **state)
{
	(void)state;
	struct member_world f;
	member_world_init(&f, (uint32_t[]){1}, 1);
	lb_member_connect(f.member);
	member_world_event(&f, LB_EVENT_CONNECTED, 1, "");
	lb_member_set_ejected(f.member, true);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	assert_true(lb_member_is_ejected(f.member));
	assert_uses(&f, 1);
	assert_int_equal(f.world.n_releases[member_world_id(&f, 1)], 0);
	uint32_t n = f.n_told;
	lb_member_set_ejected(f.member, true);
	assert_int_equal(f.n_told, n);
	lb_member_set_ejected(f.member, false);
	assert_int_equal(f.state, LB_READY); // at once
	lb_member_set_ejected(f.member, true);
	member_world_event(&f, LB_EVENT_LOST, 1, "closed");
	assert_int_equal(lb_member_raw_state(f.member), LB_IDLE);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	member_world_fini(&f);
}

static void disconnected_member_gives_everything_back(void **state)
{
	(void)state;
	for (uint32_t stage = 0; stage < 4; stage++) {
		struct member_world f;
		member_world_init(&f, (uint32_t[]){1, 2}, 2);
		lb_member_connect(f.member);
		uint32_t ids[2] = {member_world_id(&f, 1), member_world_id(&f, 2)};
		if (stage == 1)
			member_world_event(&f, LB_EVENT_CONNECTED, 1, "");
		for (uint32_t i = 1; stage >= 2 && i <= 2; i++)
			member_world_event(&f, LB_EVENT_FAILED, i, "refused");
		if (stage == 3)
			world_pass(&f.world, 2 * WORLD_S);
		lb_member_disconnect(f.member);
		assert_int_equal(f.state, LB_IDLE);
		assert_int_equal(f.world.n_releases[ids[0]], 1);
		assert_int_equal(f.world.n_releases[ids[1]], 1);
		assert_string_equal(lb_member_last_error(f.member), "");
		uint32_t n = f.n_told;
		world_pass(&f.world, 10 * WORLD_S);
		assert_int_equal(f.n_told, n);
		lb_member_disconnect(f.member);
		assert_int_equal(f.n_told, n);
		member_world_fini(&f);
	}
}

// PF-07: pick_first makes one member of all endpoints; comparing each with each takes minutes.
static void same_set_of_a_hundred_thousand_is_soon_known(void **state)
{
	enum { N = 100000 };
	(void)state;
	struct member_world f;
	struct ip_port *list = calloc(N, sizeof(*list)), *other = calloc(N, sizeof(*other));
	member_world_init(&f, (uint32_t[]){1}, 1);
	for (uint32_t i = 0; i < N; i++)
		list[i] = member_world_addr(i + 1);
	struct lb_member *m = lb_member_new(&f.env, 7, list, N);
	for (uint32_t i = 0; i < N; i++)
		other[i] = list[N - 1 - i];
	assert_true(lb_member_same_set(m, list, N));
	assert_true(lb_member_same_set(m, other, N));
	other[N / 2] = member_world_addr(N + 1);
	assert_false(lb_member_same_set(m, other, N));
	other[N / 2] = other[0]; // twice, and another one not at all
	assert_false(lb_member_same_set(m, other, N));
	lb_member_put(m);
	free(list);
	free(other);
	member_world_fini(&f);
}

// PF-08, A50-E04
static void same_set_in_another_order_is_the_same(void **state)
{
	(void)state;
	struct member_world f;
	member_world_init(&f, (uint32_t[]){1, MEMBER_WORLD_V6, 2}, 3);
	const struct ip_port same[] = {
		member_world_addr(2), member_world_addr(1), member_world_addr(MEMBER_WORLD_V6)};
	const struct ip_port twice[] = {
		member_world_addr(2), member_world_addr(2), member_world_addr(1)};
	assert_true(lb_member_same_set(f.member, same, 3));
	assert_false(lb_member_same_set(f.member, same, 2));
	assert_false(lb_member_same_set(f.member, twice, 3));
	lb_member_connect(f.member);
	member_world_event(&f, LB_EVENT_CONNECTED, 1, "");
	lb_member_reorder(f.member, same);
	assert_true(ip_port_eq(lb_member_address(f.member, 0), &same[0]));
	assert_uses(&f, 1);
	member_world_event(&f, LB_EVENT_LOST, 1, "closed");
	lb_member_connect(f.member);
	assert_int_equal(member_world_connects(&f, 2), 1);
	assert_int_equal(member_world_connects(&f, MEMBER_WORLD_V6), 0);
	member_world_fini(&f);
}

struct witness {
	struct lb_member_watcher watcher;
	struct lb_member *member;
	struct witness *leaves; // who is unwatched when this one hears something
	bool connects, disconnects, puts;
	uint32_t n;
	enum lb_state last;
};

static void witness_told(struct lb_member_watcher *watcher, uint32_t index)
{
	assert_int_equal(index, 0);
	struct witness *w = (struct witness *)watcher;
	w->n++;
	w->last = lb_member_state(w->member);
	if (w->leaves) {
		lb_member_unwatch(w->member, &w->leaves->watcher, 0);
		w->leaves = NULL;
	}
	if (w->connects && w->last == LB_IDLE)
		lb_member_connect(w->member);
	if (w->disconnects && w->last == LB_READY) {
		w->disconnects = false;
		lb_member_disconnect(w->member);
	}
	if (w->puts && w->last == LB_READY) {
		lb_member_unwatch(w->member, &w->watcher, 0);
		lb_member_put(w->member);
	}
}

static void watchers_may_change_what_they_are_told_of(void **state)
{
	(void)state;
	struct member_world f;
	member_world_init(&f, (uint32_t[]){1, 2}, 2);
	struct witness w[3];
	for (int i = 0; i < 3; i++) {
		w[i] = (struct witness){{.on_change = witness_told, .n = 1}, f.member, .n = 0};
		assert_true(lb_member_watch(f.member, &w[i].watcher, 0));
	}
	w[0].connects = true;
	w[1].leaves = &w[1];
	w[2].disconnects = true;
	lb_member_connect(f.member);
	assert_int_equal(w[1].n, 1);
	member_world_event(&f, LB_EVENT_CONNECTED, 1, "");
	// READY was given up by one, and asked for again by another, who finds the connection that
	// the workers have not let go yet.
	for (int i = 0; i < 3; i += 2)
		assert_int_equal(w[i].last, LB_READY);
	assert_int_equal(f.state, LB_READY);
	assert_int_equal(w[1].n, 1);
	lb_member_unwatch(f.member, &w[0].watcher, 0);
	lb_member_unwatch(f.member, &w[2].watcher, 0);
	member_world_fini(&f);
}

static void last_watcher_may_put_the_member(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 2; n++) {
		struct member_world f;
		member_world_init(&f, (uint32_t[]){9}, 1);
		struct lb_member *m = member_world_make(&f, (uint32_t[]){1, 2}, n);
		struct witness w = {{.on_change = witness_told, .n = 1}, m, .puts = true};
		assert_true(lb_member_watch(m, &w.watcher, 0));
		lb_member_connect(m);
		member_world_event(&f, LB_EVENT_CONNECTED, 1, "");
		assert_int_equal(w.last, LB_READY);
		assert_int_equal(f.world.n_releases[member_world_id(&f, 1)], 1);
		member_world_fini(&f);
	}
}

// Memory goes with the members, whoever goes first.
static void members_in_any_number_come_and_go(void **state)
{
	(void)state;
	enum { N = 300 };
	struct member_world f;
	struct lb_member *all[N] = {0};
	member_world_init(&f, (uint32_t[]){9}, 1);
	struct lb_member_env env = {f.world.connectivity, 250 * WORLD_MS};
	struct rand r;
	rand_init(&r, 3);
	alloc_fail_arm(SIZE_MAX);
	for (int step = 0; step < 20000; step++) {
		uint32_t i = (uint32_t)rand_below(&r, N);
		if (all[i]) {
			assert_int_equal(lb_member_id(all[i]), i);
			lb_member_put(all[i]);
			all[i] = NULL;
			continue;
		}
		const struct ip_port a[2] = {member_world_addr(i), member_world_addr(i + N)};
		all[i] = lb_member_new(&env, i, a, 1 + i % 2);
		assert_non_null(all[i]);
	}
	for (uint32_t i = 0; i < N; i++)
		lb_member_put(all[i]);
	assert_int_equal(alloc_fail_live(), 0);
	alloc_fail_disarm();
	assert_null(env.slabs);
	assert_int_equal(env.n_members, 0);
	member_world_fini(&f);
}

// Without memory it stays IDLE and holds nothing.
static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 3; n++) {
		struct member_world f;
		member_world_init(&f, (uint32_t[]){9}, 1);
		struct lb_member *m = NULL;
		const struct ip_port list[] = {
			member_world_addr(1), member_world_addr(2), member_world_addr(3)};
		struct lb_member_env env = {f.world.connectivity, 250 * WORLD_MS};
		ALLOC_FAIL_EACH(m = lb_member_new(&env, 5, list, n), !m, (void)0);
		for (size_t nth = 0;; nth++) {
			alloc_fail_arm(nth);
			lb_member_connect(m);
			// What attempts need for their backoff they do without.
			if (!alloc_fail_disarm() || lb_member_state(m) == LB_CONNECTING)
				break;
			assert_int_equal(lb_member_state(m), LB_IDLE);
			for (uint32_t id = 0; id < 16; id++)
				while (f.world.n_releases[id])
					world_answer_release(&f.world, id);
			struct lb_endpoint_table *t =
				lb_connectivity_endpoints(f.world.connectivity);
			assert_int_equal(lb_endpoint_table_count(t), 0);
		}
		assert_int_equal(lb_member_state(m), LB_CONNECTING);
		lb_member_put(m);
		member_world_fini(&f);
	}
}

static void nothing(void *ctx, struct lb_endpoint *e)
{
	(void)ctx;
	(void)e;
}

// TRANSIENT_FAILURE with a text, so that requests do not wait; and it connects when there is room.
static void member_without_room_says_so_and_tries_again(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 3; n++) {
		struct member_world f;
		member_world_init(&f, (uint32_t[]){9}, 1);
		const struct lb_connectivity_env env = {f.world.wheel, &f.world.rand, 1, nothing,
			nothing, NULL, .on_state = lb_member_on_state};
		struct lb_connectivity *c = lb_connectivity_new(&env);
		struct lb_member_env member_env = {c, 250 * WORLD_MS};
		const struct ip_port list[] = {
			member_world_addr(1), member_world_addr(2), member_world_addr(3)};
		struct lb_subchannel **all = calloc(LB_MAX_ENDPOINTS, sizeof(*all));
		struct ip_port other = member_world_addr(1);
		for (uint32_t i = 0; i < LB_MAX_ENDPOINTS; i++) {
			other.ip.b[12] = 77;
			other.ip.b[13] = (uint8_t)(i >> 16);
			other.ip.b[14] = (uint8_t)(i >> 8);
			other.ip.b[15] = (uint8_t)i;
			all[i] = lb_connectivity_get(c, &other, NULL);
			assert_non_null(all[i]);
		}
		struct lb_member *m = lb_member_new(&member_env, 5, list, n);
		for (int round = 0; round < 2; round++) {
			lb_member_connect(m);
			assert_int_equal(lb_member_state(m), LB_TRANSIENT_FAILURE);
			assert_int_equal(lb_member_raw_state(m), LB_TRANSIENT_FAILURE);
			assert_string_equal(
				lb_member_last_error(m), "no room for more than 131072 addresses");
			assert_null(lb_member_endpoint(m));
			if (round == 0)
				lb_member_disconnect(m);
			if (round == 0)
				assert_int_equal(lb_member_state(m), LB_IDLE);
		}
		world_pass(&f.world, 6 * WORLD_S);
		assert_int_equal(lb_member_state(m), LB_TRANSIENT_FAILURE);
		for (uint32_t i = 0; i < n; i++) {
			struct lb_event e = {.kind = LB_EVENT_RELEASED,
				.endpoint_id = lb_subchannel_endpoint(all[i])->id};
			lb_connectivity_put(c, all[i]);
			lb_connectivity_event(c, 0, &e);
		}
		world_pass(&f.world, 5 * WORLD_S);
		assert_int_equal(lb_member_state(m), LB_CONNECTING);
		assert_string_equal(lb_member_last_error(m), "");
		lb_member_disconnect(m);
		lb_member_put(m);
		for (uint32_t i = n; i < LB_MAX_ENDPOINTS; i++)
			lb_connectivity_put(c, all[i]);
		lb_connectivity_free(c);
		free(all);
		member_world_fini(&f);
	}
}

// Any order of events: the state is what the rules of its words say.
static void random_life_agrees_with_the_rules(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct member_world f;
		uint32_t n = 1 + seed % 4;
		member_world_init(&f, (uint32_t[]){1, MEMBER_WORLD_V6, 2, MEMBER_WORLD_V6 + 1}, n);
		struct rand r;
		rand_init(&r, seed);
		bool has_failed = false; // since it was READY, for good
		for (int step = 0; step < 300; step++) {
			uint32_t id = (uint32_t)rand_below(&r, 8);
			switch (rand_below(&r, 8)) {
			case 0:
				world_pass(&f.world, rand_below(&r, 2 * WORLD_S));
				break;
			case 1:
				lb_member_set_ejected(f.member, rand_below(&r, 3) == 0);
				break;
			case 2:
				world_event(&f.world, 0, LB_EVENT_CONNECTED, id, "");
				break;
			case 3:
				world_event(&f.world, 0, LB_EVENT_LOST, id, "closed");
				break;
			case 4:
				if (rand_below(&r, 20) == 0)
					lb_member_disconnect(f.member);
				break;
			case 5:
				lb_member_connect(f.member);
				break;
			default:
				world_event(&f.world, 0, LB_EVENT_FAILED, id, "refused");
			}
			for (uint32_t k = 0; k < 16; k++)
				while (f.world.n_releases[k])
					world_answer_release(&f.world, k);
			enum lb_state raw = lb_member_raw_state(f.member);
			enum lb_state said = lb_member_state(f.member);
			if (raw == LB_READY || raw == LB_IDLE)
				has_failed = false;
			else if (said == LB_TRANSIENT_FAILURE && !lb_member_is_ejected(f.member))
				has_failed = true;
			bool fails = has_failed || lb_member_is_ejected(f.member);
			assert_int_equal(said, fails ? LB_TRANSIENT_FAILURE : raw);
			if (f.n_told)
				assert_int_equal(f.state, said); // nothing is kept from watchers
			assert_true((raw == LB_READY) == (lb_member_endpoint(f.member) != NULL));
			// Somebody is tried, unless it may rest.
			if (raw == LB_CONNECTING || raw == LB_TRANSIENT_FAILURE)
				assert_true(raw == LB_CONNECTING ||
					    twheel_next_ns(f.world.wheel) != UINT64_MAX);
		}
		member_world_fini(&f);
	}
}

// OPS-229
static void ops_229_attempts_and_losses_count_as_the_endpoint_sees_them(void **state)
{
	(void)state;
	struct lb_connect_counts n = {0};
	struct member_world f;
	member_world_init(&f, (uint32_t[]){1}, 1);
	f.env.connects = &n;
	lb_member_connect(f.member);
	member_world_event(&f, LB_EVENT_FAILED, 1, "refused");
	assert_int_equal(n.failed, 1);
	world_pass(&f.world, 5 * WORLD_S); // the next one is under way
	assert_int_equal(lb_member_raw_state(f.member), LB_CONNECTING);
	member_world_event(&f, LB_EVENT_FAILED, 1, "refused");
	assert_int_equal(n.failed, 2);
	world_pass(&f.world, 5 * WORLD_S);
	member_world_event(&f, LB_EVENT_CONNECTED, 1, "");
	assert_int_equal(n.succeeded, 1);
	assert_int_equal(n.disconnections, 0);
	lb_member_set_ejected(f.member, true); // which keeps the connection
	assert_int_equal(n.disconnections, 0);
	member_world_event(&f, LB_EVENT_LOST, 1, "closed");
	assert_int_equal(n.disconnections, 1);
	assert_int_equal(n.failed, 2);
	assert_int_equal(n.succeeded, 1);
	member_world_fini(&f);
}

RUN_SUITE("lb/member", cmocka_unit_test(nothing_connects_unless_asked),
	cmocka_unit_test(
		single_address_connects_and_is_lost_and_waits_for_the_next_connect_request),
	cmocka_unit_test(backend_that_hangs_up_is_not_hammered),
	cmocka_unit_test(families_take_turns_a_quarter_second_apart),
	cmocka_unit_test(family_without_an_answer_is_tried_later),
	cmocka_unit_test(family_that_wins_late_stays_the_first),
	cmocka_unit_test(delay_stays_within_its_bounds),
	cmocka_unit_test(failure_has_the_next_address_tried_at_once),
	cmocka_unit_test(first_to_be_ready_wins_and_the_others_are_given_up),
	cmocka_unit_test(it_fails_once_each_address_failed_and_then_tries_all),
	cmocka_unit_test(address_fails_once_in_a_pass),
	cmocka_unit_test(address_in_backoff_is_skipped_and_one_under_way_counts),
	cmocka_unit_test(attempt_counts_from_its_turn_on),
	cmocka_unit_test(connection_of_another_cluster_is_used_at_once),
	cmocka_unit_test(ejection_shows_failure_and_keeps_the_connection),
	cmocka_unit_test(disconnected_member_gives_everything_back),
	cmocka_unit_test(same_set_in_another_order_is_the_same),
	cmocka_unit_test(member_without_room_says_so_and_tries_again),
	cmocka_unit_test(same_set_of_a_hundred_thousand_is_soon_known),
	cmocka_unit_test(watchers_may_change_what_they_are_told_of),
	cmocka_unit_test(last_watcher_may_put_the_member),
	cmocka_unit_test(members_in_any_number_come_and_go),
	cmocka_unit_test(each_failed_allocation_is_survived),
	cmocka_unit_test(random_life_agrees_with_the_rules),
	cmocka_unit_test(ops_229_attempts_and_losses_count_as_the_endpoint_sees_them))
