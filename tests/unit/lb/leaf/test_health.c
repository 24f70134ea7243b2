// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/health.h"
#include "lb/member/member.h"
#include "lb/member/probes.h"
#include "lb/pick/check.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/world.h"

#include <errno.h>
#include <stdio.h>

#define N 8
#define MAX_UNDER_WAY 4

struct fixture {
	struct world world;
	struct lb_member_env member_env;
	struct lb_member *members[N];
	struct lb_probes *probes;
	struct lb_health *health;
	struct lb_health_counts counts;
	struct lb_check *check;
	struct lb_probe *asked[N]; // by number of the address: what its worker is to do
	uint64_t asked_ns[N]; // when it was last asked
	uint32_t n_asked[N], n_ended;
	bool is_used, is_barred;
};

static uint32_t number_of(const struct lb_probe *p)
{
	for (uint32_t i = 0; i < N; i++) {
		struct ip_port a = world_addr(i);
		if (ip_port_eq(&p->addr, &a))
			return i;
	}
	return 0;
}

static void answer(struct fixture *f, struct lb_probe *p, enum lb_event_kind kind,
	enum lb_probe_result result, const char *why)
{
	struct lb_event e = {.kind = kind, .probe = p->id};
	e.probed.result = (uint8_t)result;
	snprintf(e.probed.why, sizeof(e.probed.why), "%s", why);
	lb_probes_event(f->probes, &e);
}

static bool on_send(void *ctx, struct lb_probe *p, bool is_end)
{
	struct fixture *f = ctx;
	uint32_t i = number_of(p);
	if (is_end) {
		f->n_ended++;
		f->asked[i] = NULL;
		return true;
	}
	f->asked[i] = p;
	f->asked_ns[i] = world_now(&f->world);
	f->n_asked[i]++;
	return true;
}

static bool may_begin(void *ctx, const struct lb_probe *p)
{
	return !((struct fixture *)ctx)->is_barred;
}

static bool is_used(void *ctx, uint32_t member)
{
	return ((struct fixture *)ctx)->is_used;
}

static int plain(void *ctx, const struct ip_port *a, struct lb_security **ret)
{
	*ret = NULL;
	return 0;
}

static struct lb_check *check_new(void)
{
	struct lb_check *c = lb_check_new();
	assert_non_null(c);
	c->timeout_ns = WORLD_S;
	c->interval_ns = 10 * WORLD_S;
	c->unhealthy_interval_ns = 20 * WORLD_S;
	c->unhealthy_edge_ns = 2 * WORLD_S;
	c->healthy_edge_ns = 3 * WORLD_S;
	c->no_traffic_ns = 60 * WORLD_S;
	c->no_traffic_healthy_ns = 90 * WORLD_S;
	c->healthy_threshold = 2;
	c->unhealthy_threshold = 3;
	return c;
}

static void init(struct fixture *f)
{
	*f = (struct fixture){.is_used = true};
	world_init(&f->world, 1, 1);
	f->member_env = (struct lb_member_env){f->world.connectivity, 250 * WORLD_MS};
	for (uint32_t i = 0; i < N; i++) {
		struct ip_port a = world_addr(i);
		f->members[i] = lb_member_new(&f->member_env, i, &a, 1);
	}
	const struct lb_probes_env probes = {.wheel = f->world.wheel,
		.max_under_way = MAX_UNDER_WAY,
		.may_begin = may_begin,
		.send = on_send,
		.ctx = f};
	f->probes = lb_probes_new(&probes);
	const struct lb_health_env env = {.wheel = f->world.wheel,
		.rand = &f->world.rand,
		.probes = f->probes,
		.security = plain,
		.is_used = is_used,
		.ctx = f,
		.cluster = "c",
		.counts = &f->counts};
	f->health = lb_health_new(&env);
	f->check = check_new();
	lb_health_configure(f->health, f->check);
}

static void fini(struct fixture *f)
{
	lb_health_free(f->health);
	assert_int_equal(lb_probes_n_under_way(f->probes), 0);
	assert_int_equal(lb_probes_n_waiting(f->probes), 0);
	lb_probes_free(f->probes);
	lb_check_put(f->check);
	for (uint32_t i = 0; i < N; i++)
		lb_member_put(f->members[i]);
	world_fini(&f->world);
}

static void update(struct fixture *f, uint32_t first, uint32_t n, bool serves_already)
{
	int err = lb_health_update(f->health, f->members + first, n, serves_already);
	assert_int_equal(err, 0);
	world_pass(&f->world, 2 * WORLD_MS);
}

static enum lb_member_health health_of(const struct fixture *f, uint32_t i)
{
	return lb_member_health(f->members[i]);
}

// The check that is under way ends so; then, after at most this long, the next one begins. Returns
// the seconds between, rounded.
static uint64_t end_check(struct fixture *f, uint32_t i, enum lb_probe_result result)
{
	uint64_t at = world_now(&f->world);
	struct lb_probe *p = f->asked[i];
	assert_non_null(p);
	f->asked[i] = NULL;
	answer(f, p, LB_EVENT_PROBED, result, result == LB_PROBE_PASSED ? "" : "no");
	for (int k = 0; k < 200 * 1000 && !f->asked[i]; k++)
		world_pass(&f->world, WORLD_MS);
	assert_non_null(f->asked[i]);
	return (f->asked_ns[i] - at + WORLD_S / 2) / WORLD_S;
}

// AHC-05: the first result decides.
static void a_new_endpoint_serves_after_its_first_check(void **state)
{
	struct fixture f;
	init(&f);
	assert_int_equal(health_of(&f, 0), LB_MEMBER_SERVES);
	update(&f, 0, 2, false);
	assert_int_equal(health_of(&f, 0), LB_MEMBER_UNCHECKED);
	assert_int_equal(end_check(&f, 0, LB_PROBE_PASSED), 10);
	assert_int_equal(health_of(&f, 0), LB_MEMBER_SERVES);
	assert_int_equal(health_of(&f, 1), LB_MEMBER_UNCHECKED);
	assert_int_equal(end_check(&f, 1, LB_PROBE_NETWORK), 20);
	assert_int_equal(health_of(&f, 1), LB_MEMBER_UNHEALTHY);
	fini(&f);
}

// AHC-05: the same, where checks are new to a cluster that serves.
static void endpoints_that_serve_already_go_on_until_checks_fail(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, 0, 1, true);
	assert_int_equal(health_of(&f, 0), LB_MEMBER_SERVES);
	end_check(&f, 0, LB_PROBE_TIMEOUT);
	end_check(&f, 0, LB_PROBE_TIMEOUT);
	assert_int_equal(health_of(&f, 0), LB_MEMBER_SERVES);
	end_check(&f, 0, LB_PROBE_TIMEOUT);
	assert_int_equal(health_of(&f, 0), LB_MEMBER_UNHEALTHY);
	fini(&f);
}

// AHC-04, and the intervals of AHC-03.
static void a_verdict_takes_as_many_results_in_a_row_as_its_threshold(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, 0, 1, false);
	end_check(&f, 0, LB_PROBE_PASSED);
	assert_int_equal(end_check(&f, 0, LB_PROBE_NETWORK), 2); // the edge of being unhealthy
	assert_int_equal(end_check(&f, 0, LB_PROBE_TIMEOUT), 2);
	assert_int_equal(end_check(&f, 0, LB_PROBE_PASSED), 10); // begins anew
	assert_int_equal(end_check(&f, 0, LB_PROBE_RETRIABLE), 2);
	assert_int_equal(end_check(&f, 0, LB_PROBE_NETWORK), 2);
	assert_int_equal(health_of(&f, 0), LB_MEMBER_SERVES);
	assert_int_equal(end_check(&f, 0, LB_PROBE_NETWORK), 20);
	assert_int_equal(health_of(&f, 0), LB_MEMBER_UNHEALTHY);
	assert_int_equal(end_check(&f, 0, LB_PROBE_PASSED), 3);
	assert_int_equal(end_check(&f, 0, LB_PROBE_NETWORK), 20);
	assert_int_equal(end_check(&f, 0, LB_PROBE_PASSED), 3);
	assert_int_equal(health_of(&f, 0), LB_MEMBER_UNHEALTHY);
	assert_int_equal(end_check(&f, 0, LB_PROBE_PASSED), 10);
	assert_int_equal(health_of(&f, 0), LB_MEMBER_SERVES);
	assert_int_equal(f.counts.passed, 5);
	assert_int_equal(f.counts.failed, 6);
	assert_int_equal(f.counts.network_failures, 5);
	assert_int_equal(f.counts.attempts, 12); // one is under way
	fini(&f);
}

// AHC-04: the threshold is for what the network may be to blame for.
static void an_endpoint_that_says_it_cannot_serve_is_believed_at_once(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, 0, 1, false);
	end_check(&f, 0, LB_PROBE_PASSED);
	assert_int_equal(end_check(&f, 0, LB_PROBE_UNHEALTHY), 20);
	assert_int_equal(health_of(&f, 0), LB_MEMBER_UNHEALTHY);
	struct lb_health_record r;
	assert_true(lb_health_find(f.health, f.members[0], &r));
	assert_int_equal(r.health, LB_MEMBER_UNHEALTHY);
	assert_string_equal(r.why, "no");
	assert_false(lb_health_find(f.health, f.members[1], &r));
	fini(&f);
}

// AHC-03: of a cluster that has had no request.
static void without_traffic_checks_are_rare(void **state)
{
	struct fixture f;
	init(&f);
	f.is_used = false;
	update(&f, 0, 1, false);
	assert_int_equal(end_check(&f, 0, LB_PROBE_PASSED), 90);
	assert_int_equal(end_check(&f, 0, LB_PROBE_NETWORK), 60);
	f.is_used = true;
	assert_int_equal(end_check(&f, 0, LB_PROBE_PASSED), 10);
	f.is_used = false; // once is enough
	assert_int_equal(end_check(&f, 0, LB_PROBE_PASSED), 10);
	fini(&f);
}

// AHC-03.
static void jitter_is_added_within_its_bounds(void **state)
{
	struct fixture f;
	init(&f);
	f.check->initial_jitter_ns = 5 * WORLD_S;
	f.check->jitter_ns = 4 * WORLD_S;
	f.check->jitter_percent = 60;
	uint64_t least = UINT64_MAX, most = 0;
	assert_int_equal(lb_health_update(f.health, f.members, 1, false), 0);
	uint64_t began = world_now(&f.world);
	while (!f.asked[0])
		world_pass(&f.world, WORLD_MS);
	assert_in_range(f.asked_ns[0] - began, 0, 5 * WORLD_S + 20 * WORLD_MS);
	for (int i = 0; i < 100; i++) {
		uint64_t s = end_check(&f, 0, LB_PROBE_PASSED);
		least = s < least ? s : least;
		most = s > most ? s : most;
	}
	assert_in_range(least, 10, 12);
	assert_in_range(most, 16, 20);
	fini(&f);
}

// AHC-06: verdicts are the member's.
static void a_verdict_outlives_an_update_and_ends_with_the_checks(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, 0, 3, false);
	end_check(&f, 1, LB_PROBE_UNHEALTHY);
	assert_int_equal(health_of(&f, 1), LB_MEMBER_UNHEALTHY);
	struct lb_probe *probe = f.asked[1];
	update(&f, 1, 3, false);
	assert_int_equal(health_of(&f, 1), LB_MEMBER_UNHEALTHY);
	assert_ptr_equal(f.asked[1], probe); // what is under way goes on
	assert_int_equal(f.n_ended, 1); // of 0
	assert_int_equal(health_of(&f, 3), LB_MEMBER_UNCHECKED);
	struct lb_check *other = check_new();
	lb_health_configure(f.health, other);
	lb_check_put(other);
	assert_int_equal(health_of(&f, 1), LB_MEMBER_UNHEALTHY);
	lb_health_end(f.health);
	assert_int_equal(f.n_ended, 4);
	for (uint32_t i = 1; i < 4; i++)
		assert_int_equal(health_of(&f, i), LB_MEMBER_SERVES);
	fini(&f);
}

// AHC-05: one that an earlier update's checks called unhealthy.
static void an_endpoint_that_comes_back_has_no_older_verdict(void **state)
{
	struct fixture f;
	init(&f);
	lb_member_set_health(f.members[0], LB_MEMBER_UNHEALTHY);
	update(&f, 0, 1, true);
	assert_int_equal(health_of(&f, 0), LB_MEMBER_SERVES);
	fini(&f);
}

// AHC-06: what policies see of it.
static void a_member_is_ready_only_while_its_checks_pass(void **state)
{
	struct fixture f;
	init(&f);
	struct lb_member *m = f.members[0];
	struct ip_port a = world_addr(0);
	lb_member_connect(m);
	world_event(&f.world, 0, LB_EVENT_CONNECTED, world_id(&f.world, &a), "");
	assert_int_equal(lb_member_state(m), LB_READY);
	update(&f, 0, 1, false);
	assert_int_equal(lb_member_state(m), LB_CONNECTING);
	end_check(&f, 0, LB_PROBE_PASSED);
	assert_int_equal(lb_member_state(m), LB_READY);
	end_check(&f, 0, LB_PROBE_UNHEALTHY);
	assert_int_equal(lb_member_state(m), LB_TRANSIENT_FAILURE);
	assert_int_equal(lb_member_raw_state(m), LB_READY);
	assert_false(lb_member_is_ejected(m));
	lb_health_end(f.health);
	assert_int_equal(lb_member_state(m), LB_READY);
	fini(&f);
}

// AHC-07.
static void no_more_checks_are_under_way_than_may_be(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, 0, N, false);
	assert_int_equal(lb_probes_n_under_way(f.probes), MAX_UNDER_WAY);
	assert_int_equal(lb_probes_n_waiting(f.probes), N - MAX_UNDER_WAY);
	uint32_t n = 0;
	for (uint32_t left = N; left--;) {
		uint32_t i = 0;
		while (i < N && (!f.asked[i] || f.n_asked[i] > 1))
			i++;
		assert_in_range(i, 0, N - 1);
		struct lb_probe *p = f.asked[i];
		f.asked[i] = NULL;
		answer(&f, p, LB_EVENT_PROBED, LB_PROBE_PASSED, "");
		world_pass(&f.world, 20 * WORLD_MS);
		assert_in_range(lb_probes_n_under_way(f.probes), 0, MAX_UNDER_WAY);
	}
	for (uint32_t i = 0; i < N; i++)
		n += health_of(&f, i) == LB_MEMBER_SERVES && f.n_asked[i] == 1;
	assert_int_equal(n, N);
	fini(&f);
}

// AHC-07: nobody else reports who would let it begin.
static void who_waits_begins_when_those_under_way_are_ended(void **state)
{
	struct fixture f;
	struct lb_probe_user user = {0};
	init(&f);
	update(&f, 0, MAX_UNDER_WAY, false);
	struct ip_port address = world_addr(MAX_UNDER_WAY);
	struct lb_probe *p = lb_probes_begin(f.probes, &address, NULL, &user);
	lb_probes_ask(f.probes, p, f.check);
	world_pass(&f.world, WORLD_S / 10);
	assert_int_equal(lb_probes_n_waiting(f.probes), 1);
	update(&f, 0, 0, false);
	assert_int_equal(lb_probes_n_under_way(f.probes), 1);
	assert_ptr_equal(f.asked[MAX_UNDER_WAY], p);
	lb_probes_end(f.probes, p);
	fini(&f);
}

// AHC-07.
static void first_checks_of_many_endpoints_begin_a_hundred_a_millisecond(void **state)
{
	enum { MANY = 1000 };
	struct fixture f;
	struct lb_member *many[MANY];
	init(&f);
	for (uint32_t i = 0; i < MANY; i++) {
		struct ip_port a = world_addr(N + i);
		many[i] = lb_member_new(&f.member_env, N + i, &a, 1);
	}
	assert_int_equal(lb_health_update(f.health, many, MANY, false), 0);
	uint64_t before = 0;
	for (uint64_t ms = 1; before < MANY; ms++) {
		world_pass(&f.world, WORLD_MS);
		assert_in_range(f.counts.attempts, before + 1, 100 * (ms + 1));
		before = f.counts.attempts;
	}
	lb_health_end(f.health);
	for (uint32_t i = 0; i < MANY; i++)
		lb_member_put(many[i]);
	fini(&f);
}

// AHC-08.
static void a_check_that_our_memory_ended_says_nothing(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, 0, 1, false);
	for (int i = 0; i < 5; i++)
		assert_int_equal(end_check(&f, 0, LB_PROBE_UNJUDGED), 1);
	assert_int_equal(health_of(&f, 0), LB_MEMBER_UNCHECKED);
	end_check(&f, 0, LB_PROBE_PASSED);
	assert_int_equal(health_of(&f, 0), LB_MEMBER_SERVES);
	assert_int_equal(f.counts.failed, 0);
	fini(&f);
}

static void a_check_waits_until_it_may_begin(void **state)
{
	struct fixture f;
	init(&f);
	f.is_barred = true; // its TLS context is not there yet
	update(&f, 0, 1, false);
	world_pass(&f.world, WORLD_S);
	assert_int_equal(f.n_asked[0], 0);
	f.is_barred = false;
	world_pass(&f.world, 20 * WORLD_MS);
	assert_int_equal(f.n_asked[0], 1);
	fini(&f);
}

static void each_allocation_that_fails_leaves_it_as_before(void **state)
{
	struct fixture f;
	bool failed = true;
	init(&f);
	update(&f, 0, 2, false);
	end_check(&f, 0, LB_PROBE_PASSED);
	for (size_t nth = 0; failed && alloc_fail_works(); nth++) {
		struct lb_health_record r;
		alloc_fail_arm(nth);
		int err = lb_health_update(f.health, f.members, N, false);
		failed = alloc_fail_disarm();
		assert_int_equal(err, failed ? -ENOMEM : 0);
		assert_int_equal(health_of(&f, 0), LB_MEMBER_SERVES);
		assert_int_equal(lb_health_find(f.health, f.members[N - 1], &r), !failed);
	}
	fini(&f);
}

// A probe is freed when its worker says so, or with all others.
static void an_ended_probe_is_nobodys(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, 0, 2, false);
	struct lb_probe *p = f.asked[0];
	lb_health_end(f.health);
	assert_int_equal(f.n_ended, 2);
	answer(&f, p, LB_EVENT_PROBED, LB_PROBE_UNHEALTHY, "late");
	assert_int_equal(health_of(&f, 0), LB_MEMBER_SERVES);
	answer(&f, p, LB_EVENT_PROBE_ENDED, LB_PROBE_PASSED, "");
	struct lb_event unknown = {.kind = LB_EVENT_PROBE_ENDED, .probe = 12345};
	lb_probes_event(f.probes, &unknown);
	fini(&f);
}

// FL-17, AHC-05: in place of the first result's; then thresholds count.
static void a_verdict_of_another_process_holds_until_results_change_it(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, 0, 3, false);
	assert_true(lb_health_inherit(f.health, f.members[0], true));
	assert_true(lb_health_inherit(f.health, f.members[1], false));
	assert_false(lb_health_inherit(f.health, f.members[1], true)); // it has one
	assert_false(lb_health_inherit(f.health, f.members[5], true)); // it is not listed
	assert_int_equal(health_of(&f, 0), LB_MEMBER_SERVES);
	assert_int_equal(health_of(&f, 1), LB_MEMBER_UNHEALTHY);
	assert_int_equal(health_of(&f, 2), LB_MEMBER_UNCHECKED);
	end_check(&f, 0, LB_PROBE_TIMEOUT);
	assert_int_equal(health_of(&f, 0), LB_MEMBER_SERVES);
	end_check(&f, 1, LB_PROBE_PASSED);
	assert_int_equal(health_of(&f, 1), LB_MEMBER_UNHEALTHY);
	end_check(&f, 1, LB_PROBE_PASSED);
	assert_int_equal(health_of(&f, 1), LB_MEMBER_SERVES);
	fini(&f);
}

RUN_SUITE("lb/health", cmocka_unit_test(a_verdict_of_another_process_holds_until_results_change_it),
	cmocka_unit_test(a_new_endpoint_serves_after_its_first_check),
	cmocka_unit_test(endpoints_that_serve_already_go_on_until_checks_fail),
	cmocka_unit_test(a_verdict_takes_as_many_results_in_a_row_as_its_threshold),
	cmocka_unit_test(an_endpoint_that_says_it_cannot_serve_is_believed_at_once),
	cmocka_unit_test(without_traffic_checks_are_rare),
	cmocka_unit_test(jitter_is_added_within_its_bounds),
	cmocka_unit_test(a_verdict_outlives_an_update_and_ends_with_the_checks),
	cmocka_unit_test(an_endpoint_that_comes_back_has_no_older_verdict),
	cmocka_unit_test(a_member_is_ready_only_while_its_checks_pass),
	cmocka_unit_test(no_more_checks_are_under_way_than_may_be),
	cmocka_unit_test(who_waits_begins_when_those_under_way_are_ended),
	cmocka_unit_test(first_checks_of_many_endpoints_begin_a_hundred_a_millisecond),
	cmocka_unit_test(a_check_that_our_memory_ended_says_nothing),
	cmocka_unit_test(a_check_waits_until_it_may_begin),
	cmocka_unit_test(each_allocation_that_fails_leaves_it_as_before),
	cmocka_unit_test(an_ended_probe_is_nobodys))
