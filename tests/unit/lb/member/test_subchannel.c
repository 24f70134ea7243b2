// SPDX-License-Identifier: Apache-2.0
#include "lb/member/subchannel.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
	struct twheel *wheel;
	struct rand rand;
	struct lb_endpoint_table *table;
	struct lb_endpoint *endpoint;
	struct lb_subchannel_env env;
	struct lb_subchannel *s; // NULL = ended
	uint32_t n_attempts;
};

static void on_connect(void *ctx, struct lb_endpoint *e)
{
	struct fixture *f = ctx;
	assert_ptr_equal(e, f->endpoint);
	f->n_attempts++;
}

static void on_state(struct lb_subchannel_watcher *, enum lb_state);

static void init(struct fixture *f, uint64_t seed)
{
	*f = (struct fixture){.wheel = twheel_new(WORLD_START)};
	rand_init(&f->rand, seed);
	f->env = (struct lb_subchannel_env){
		.wheel = f->wheel,
		.rand = &f->rand,
		.connect = on_connect,
		.ctx = f,
		.on_state = on_state,
	};
	struct ip_port addr = world_addr(3);
	f->table = lb_endpoint_table_new(&f->env);
	assert_non_null(f->table);
	f->endpoint = lb_endpoint_get(f->table, &addr, NULL, NULL);
	assert_non_null(f->endpoint);
	f->s = (struct lb_subchannel *)f->endpoint;
	lb_subchannel_init(f->s);
}

static void fini(struct fixture *f)
{
	if (f->s)
		lb_subchannel_fini(f->s);
	assert_true(twheel_next_ns(f->wheel) == UINT64_MAX);
	lb_endpoint_table_free(f->table);
	lb_subchannel_env_fini(&f->env);
	twheel_free(f->wheel);
}

static uint64_t now(struct fixture *f)
{
	return twheel_now(f->wheel);
}

static void pass(struct fixture *f, uint64_t ns)
{
	uint64_t end = now(f) + ns;
	while (now(f) < end)
		twheel_advance(f->wheel, now(f) + WORLD_MS < end ? now(f) + WORLD_MS : end);
}

// Fails the attempt under way; returns how long TRANSIENT_FAILURE lasts.
static uint64_t fail_and_wait(struct fixture *f)
{
	lb_subchannel_failed(f->s, "refused");
	assert_int_equal(lb_subchannel_state(f->s), LB_TRANSIENT_FAILURE);
	uint64_t start = now(f);
	while (lb_subchannel_state(f->s) == LB_TRANSIENT_FAILURE)
		pass(f, WORLD_MS);
	assert_int_equal(lb_subchannel_state(f->s), LB_IDLE);
	return now(f) - start;
}

static void is_idle_until_asked(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	pass(&f, 300 * WORLD_S);
	assert_int_equal(lb_subchannel_state(f.s), LB_IDLE);
	assert_int_equal(f.n_attempts, 0);
	assert_ptr_equal(lb_subchannel_endpoint(f.s), f.endpoint);
	lb_subchannel_request(f.s);
	assert_int_equal(lb_subchannel_state(f.s), LB_CONNECTING);
	assert_int_equal(f.n_attempts, 1);
	fini(&f);
}

// BO-04
static void only_one_attempt_is_in_flight(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	for (int i = 0; i < 5; i++)
		lb_subchannel_request(f.s);
	assert_int_equal(f.n_attempts, 1);
	lb_subchannel_failed(f.s, "refused");
	for (int i = 0; i < 5; i++)
		lb_subchannel_request(f.s);
	pass(&f, 100 * WORLD_MS);
	assert_int_equal(f.n_attempts, 1);
	assert_int_equal(lb_subchannel_state(f.s), LB_TRANSIENT_FAILURE);
	fini(&f);
}

// BO-01: the instants of an endpoint that refuses at once, for many seeds.
static void backoff_grows_as_the_document_says(void **state)
{
	(void)state;
	static const double seconds[] = {1, 1.6, 2.56, 4.096, 6.5536, 10.48576, 16.777, 26.844,
		42.95, 68.72, 109.95, 120, 120};
	double lowest = 9, highest = 0;
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct fixture f;
		init(&f, seed);
		for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
			lb_subchannel_request(f.s);
			assert_int_equal(f.n_attempts, i + 1);
			double waited = (double)fail_and_wait(&f) / WORLD_S / seconds[i];
			assert_true(waited > 0.7998 && waited < 1.2022); // ±20 %, +1 tick
			lowest = waited < lowest ? waited : lowest;
			highest = waited > highest ? waited : highest;
		}
		fini(&f);
	}
	assert_true(lowest < 0.81 && highest > 1.19); // the whole range is used
}

// BO-02
static void spacing_counts_from_start_to_start(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	lb_subchannel_request(f.s);
	pass(&f, 600 * WORLD_MS);
	uint64_t waited = fail_and_wait(&f); // 1 s ± 20 % after the start
	assert_true(waited >= 200 * WORLD_MS && waited <= 601 * WORLD_MS);
	lb_subchannel_request(f.s);
	pass(&f, 20 * WORLD_S); // a slow failure: the time is over already
	assert_true(fail_and_wait(&f) <= 2 * WORLD_MS);
	fini(&f);
}

// BO-03
static void connecting_resets_the_backoff(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	for (int i = 0; i < 6; i++) {
		lb_subchannel_request(f.s);
		fail_and_wait(&f);
	}
	lb_subchannel_request(f.s);
	lb_subchannel_connected(f.s);
	assert_int_equal(lb_subchannel_state(f.s), LB_READY);
	pass(&f, 60 * WORLD_S);
	lb_subchannel_lost(f.s, "reset by peer", false);
	assert_int_equal(lb_subchannel_state(f.s), LB_IDLE);
	lb_subchannel_request(f.s);
	assert_int_equal(f.n_attempts, 8); // at once
	assert_true(fail_and_wait(&f) <= 1201 * WORLD_MS);
	fini(&f);
}

// BO-03: nothing is left of the outage, and the attempt that brought the connection is over.
static void connection_that_is_lost_is_made_again_at_once(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 50; seed++) {
		struct fixture f;
		init(&f, seed);
		for (int i = 0; i < 8; i++) {
			lb_subchannel_request(f.s);
			fail_and_wait(&f);
		}
		for (uint32_t i = 0; i < 20; i++) {
			lb_subchannel_request(f.s);
			assert_int_equal(f.n_attempts, 9 + i);
			lb_subchannel_connected(f.s);
			pass(&f, rand_below(&f.rand, 3000) * WORLD_MS);
			lb_subchannel_lost(f.s, "reset by peer", false);
			assert_int_equal(lb_subchannel_state(f.s), LB_IDLE);
			assert_non_null(strstr(lb_subchannel_last_error(f.s), "reset by peer"));
		}
		lb_subchannel_request(f.s);
		assert_true(fail_and_wait(&f) <= 1201 * WORLD_MS);
		fini(&f);
	}
}

// BO-04: a backend that accepts and hangs up is not hammered, and nobody waits for it.
static void short_lived_connection_is_as_good_as_an_attempt_that_failed(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	uint64_t start = now(&f);
	for (uint32_t i = 1; i <= 10; i++) {
		lb_subchannel_request(f.s);
		assert_int_equal(f.n_attempts, i);
		lb_subchannel_connected(f.s);
		lb_subchannel_lost(f.s, "closed", true);
		assert_int_equal(lb_subchannel_state(f.s), LB_TRANSIENT_FAILURE);
		lb_subchannel_request(f.s);
		assert_int_equal(f.n_attempts, i);
		while (lb_subchannel_state(f.s) == LB_TRANSIENT_FAILURE)
			pass(&f, WORLD_MS);
		assert_int_equal(lb_subchannel_state(f.s), LB_IDLE);
	}
	assert_in_range(now(&f) - start, 10 * 800 * WORLD_MS, 10 * 1201 * WORLD_MS);
	fini(&f);
}

static void retry_ends_the_wait_and_begins_the_backoff_anew(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_false(lb_subchannel_retry(f.s)); // it waits for nothing
	for (int i = 0; i < 8; i++) {
		lb_subchannel_request(f.s);
		assert_false(lb_subchannel_retry(f.s));
		fail_and_wait(&f);
	}
	lb_subchannel_request(f.s);
	lb_subchannel_failed(f.s, "refused");
	assert_int_equal(lb_subchannel_state(f.s), LB_TRANSIENT_FAILURE);
	assert_true(lb_subchannel_retry(f.s));
	assert_int_equal(lb_subchannel_state(f.s), LB_IDLE);
	lb_subchannel_request(f.s);
	assert_int_equal(f.n_attempts, 10);
	assert_true(fail_and_wait(&f) <= 1201 * WORLD_MS);
	fini(&f);
}

// However many there are, an attempt is a second after the last one.
static void news_of_the_host_shorten_the_wait_to_a_second(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	lb_subchannel_heard(f.s);
	for (int i = 0; i < 8; i++) {
		lb_subchannel_request(f.s);
		lb_subchannel_heard(f.s);
		fail_and_wait(&f);
	}
	lb_subchannel_request(f.s);
	lb_subchannel_failed(f.s, "refused");
	pass(&f, 5 * WORLD_S);
	assert_int_equal(lb_subchannel_state(f.s), LB_TRANSIENT_FAILURE);
	lb_subchannel_heard(f.s);
	pass(&f, 2 * WORLD_MS);
	assert_int_equal(lb_subchannel_state(f.s), LB_IDLE);
	uint32_t before = f.n_attempts;
	for (int i = 0; i < 10000; i++) { // ten seconds
		lb_subchannel_heard(f.s);
		lb_subchannel_request(f.s);
		if (lb_subchannel_state(f.s) == LB_CONNECTING)
			lb_subchannel_failed(f.s, "refused");
		pass(&f, WORLD_MS);
	}
	assert_in_range(f.n_attempts - before, 9, 13);
	fini(&f);
}

// A host that was silent and refuses now is up, and what it serves comes soon.
static void failure_for_another_reason_begins_the_backoff_anew(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	for (int i = 0; i < 8; i++) {
		lb_subchannel_request(f.s);
		fail_and_wait(&f);
	}
	lb_subchannel_request(f.s);
	lb_subchannel_failed(f.s, "no route to host");
	uint64_t start = now(&f);
	while (lb_subchannel_state(f.s) == LB_TRANSIENT_FAILURE)
		pass(&f, WORLD_MS);
	assert_true(now(&f) - start <= 1201 * WORLD_MS);
	lb_subchannel_request(f.s);
	lb_subchannel_failed(f.s, "no route to host");
	start = now(&f);
	while (lb_subchannel_state(f.s) == LB_TRANSIENT_FAILURE)
		pass(&f, WORLD_MS);
	assert_in_range(now(&f) - start, 1280 * WORLD_MS, 1921 * WORLD_MS);
	fini(&f);
}

static void error_names_the_address_and_lasts_until_ready(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	assert_string_equal(lb_subchannel_last_error(f.s), "");
	lb_subchannel_request(f.s);
	lb_subchannel_failed(f.s, "refused");
	assert_string_equal(lb_subchannel_last_error(f.s), "10.82.0.3:50051: refused");
	for (int ms = 0; lb_subchannel_state(f.s) != LB_IDLE && ms < 10000; ms++)
		pass(&f, WORLD_MS);
	assert_int_equal(lb_subchannel_state(f.s), LB_IDLE);
	lb_subchannel_request(f.s);
	assert_string_equal(lb_subchannel_last_error(f.s), "10.82.0.3:50051: refused");
	lb_subchannel_connected(f.s);
	assert_string_equal(lb_subchannel_last_error(f.s), "");
	fini(&f);
}

static void connection_of_another_worker_ends_the_backoff(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	lb_subchannel_request(f.s);
	lb_subchannel_failed(f.s, "refused");
	lb_subchannel_connected(f.s);
	assert_int_equal(lb_subchannel_state(f.s), LB_READY);
	pass(&f, 5 * WORLD_S);
	assert_int_equal(lb_subchannel_state(f.s), LB_READY);
	assert_int_equal(f.n_attempts, 1);
	lb_subchannel_failed(f.s, "late");
	assert_int_equal(lb_subchannel_state(f.s), LB_READY);
	fini(&f);
}

struct witness {
	struct lb_subchannel_watcher watcher;
	struct fixture *f;
	struct witness *leaves; // who is unwatched when this one hears something
	bool asks, frees;
	uint32_t n;
	enum lb_state heard[8];
};

static void on_state(struct lb_subchannel_watcher *watcher, enum lb_state state)
{
	struct witness *w = (struct witness *)watcher;
	w->heard[w->n++] = state;
	if (w->leaves)
		lb_subchannel_unwatch(w->f->s, &w->leaves->watcher);
	w->leaves = NULL;
	if (w->asks)
		lb_subchannel_request(w->f->s);
	if (w->frees) {
		lb_subchannel_fini(w->f->s);
		w->f->s = NULL;
	}
}

static void watchers_hear_states_in_order(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	struct witness w[2] = {{.f = &f, .asks = true}, {.f = &f, .asks = true}};
	lb_subchannel_watch(f.s, &w[0].watcher);
	lb_subchannel_watch(f.s, &w[1].watcher);
	lb_subchannel_request(f.s);
	lb_subchannel_connected(f.s);
	pass(&f, 2 * WORLD_S);
	lb_subchannel_lost(f.s, "closed", false);
	// One of them asked first; the other must not hear an older state last.
	for (int i = 0; i < 2; i++) {
		assert_true(w[i].n >= 3);
		assert_int_equal(w[i].heard[0], LB_CONNECTING);
		assert_int_equal(w[i].heard[1], LB_READY);
		assert_int_equal(w[i].heard[w[i].n - 1], LB_CONNECTING);
	}
	fini(&f);
}

static void watchers_may_leave_while_told(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	struct witness w[4];
	for (int i = 0; i < 4; i++) {
		w[i] = (struct witness){.f = &f};
		lb_subchannel_watch(f.s, &w[i].watcher);
	}
	w[3].leaves = &w[2]; // the newest is told first
	w[1].leaves = &w[1];
	lb_subchannel_request(f.s);
	assert_int_equal(w[3].n, 1);
	assert_int_equal(w[2].n, 0);
	assert_int_equal(w[1].n, 1);
	assert_int_equal(w[0].n, 1);
	lb_subchannel_connected(f.s);
	lb_subchannel_connected(f.s); // of another worker: nothing new
	assert_int_equal(w[3].n, 2);
	assert_int_equal(w[1].n, 1);
	assert_int_equal(w[0].n, 2);
	fini(&f);
}

static void watcher_may_end_the_subchannel(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	struct witness w = {.f = &f, .frees = true};
	lb_subchannel_watch(f.s, &w.watcher);
	lb_subchannel_request(f.s);
	assert_null(f.s);
	fini(&f);
}

// Twice as many as are kept for others to share.
static void each_of_many_reasons_is_told(void **state)
{
	(void)state;
	struct fixture f;
	char why[16], error[64];
	init(&f, 1);
	struct lb_endpoint *first = f.endpoint;
	for (int i = 0; i < 2 * LB_SUBCHANNEL_REASONS; i++) {
		snprintf(why, sizeof(why), "reason %d", i);
		snprintf(error, sizeof(error), "10.82.0.3:50051: %s", why);
		lb_subchannel_request(f.s);
		lb_subchannel_failed(f.s, why);
		assert_string_equal(lb_subchannel_last_error(f.s), error);
		struct ip_port addr = world_addr(4);
		struct lb_endpoint *other = lb_endpoint_get(f.table, &addr, NULL, NULL);
		assert_non_null(other);
		f.endpoint = other;
		struct lb_subchannel *s = (struct lb_subchannel *)other;
		lb_subchannel_init(s);
		lb_subchannel_request(s);
		lb_subchannel_failed(s, i % 2 ? why : "reason 0");
		snprintf(error, sizeof(error), "10.82.0.4:50051: %s", i % 2 ? why : "reason 0");
		assert_string_equal(lb_subchannel_last_error(s), error);
		lb_subchannel_fini(s);
		f.endpoint = first;
		pass(&f, 200000 * WORLD_MS);
	}
	fini(&f);
}

// TLS-144
static void a_reason_as_long_as_they_come_is_told_whole(void **state)
{
	(void)state;
	struct fixture f;
	char why[LB_ENDPOINT_WHY_MAX] = "", error[IP_PORT_TEXT_MAX + LB_ENDPOINT_WHY_MAX];
	init(&f, 1);
	memset(why, 'w', sizeof(why) - 1);
	snprintf(error, sizeof(error), "10.82.0.3:50051: %s", why);
	lb_subchannel_request(f.s);
	lb_subchannel_failed(f.s, why);
	assert_string_equal(lb_subchannel_last_error(f.s), error);
	fini(&f);
}

static void without_memory_attempts_go_on_without_backoff(void **state)
{
	(void)state;
	struct fixture f;
	if (!alloc_fail_works())
		skip();
	init(&f, 1);
	for (int i = 0; i < 2; i++) {
		alloc_fail_arm(0);
		lb_subchannel_request(f.s);
		alloc_fail_disarm();
		assert_int_equal(lb_subchannel_state(f.s), LB_CONNECTING);
		alloc_fail_arm(0);
		lb_subchannel_failed(f.s, "refused");
		alloc_fail_disarm();
		assert_int_equal(lb_subchannel_state(f.s), LB_IDLE);
		assert_string_equal(lb_subchannel_last_error(f.s), "");
	}
	lb_subchannel_request(f.s);
	lb_subchannel_failed(f.s, "refused");
	assert_int_equal(lb_subchannel_state(f.s), LB_TRANSIENT_FAILURE);
	assert_string_equal(lb_subchannel_last_error(f.s), "10.82.0.3:50051: refused");
	assert_int_equal(f.n_attempts, 3);
	fini(&f);
}

// All that attempts need beside their start is of those that fail.
static void ready_needs_no_memory(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	lb_subchannel_request(f.s);
	assert_false(f.s->has_effort);
	lb_subchannel_failed(f.s, "refused");
	assert_true(f.s->has_effort);
	lb_subchannel_connected(f.s);
	assert_false(f.s->has_effort);
	assert_true(twheel_next_ns(f.wheel) == UINT64_MAX);
	pass(&f, 2 * WORLD_S);
	lb_subchannel_lost(f.s, "closed", false);
	lb_subchannel_request(f.s);
	assert_int_equal(f.n_attempts, 2);
	fini(&f);
}

RUN_SUITE("lb/subchannel", cmocka_unit_test(is_idle_until_asked),
	cmocka_unit_test(only_one_attempt_is_in_flight),
	cmocka_unit_test(backoff_grows_as_the_document_says),
	cmocka_unit_test(spacing_counts_from_start_to_start),
	cmocka_unit_test(connecting_resets_the_backoff),
	cmocka_unit_test(connection_that_is_lost_is_made_again_at_once),
	cmocka_unit_test(short_lived_connection_is_as_good_as_an_attempt_that_failed),
	cmocka_unit_test(retry_ends_the_wait_and_begins_the_backoff_anew),
	cmocka_unit_test(news_of_the_host_shorten_the_wait_to_a_second),
	cmocka_unit_test(failure_for_another_reason_begins_the_backoff_anew),
	cmocka_unit_test(error_names_the_address_and_lasts_until_ready),
	cmocka_unit_test(connection_of_another_worker_ends_the_backoff),
	cmocka_unit_test(watchers_hear_states_in_order),
	cmocka_unit_test(watchers_may_leave_while_told),
	cmocka_unit_test(watcher_may_end_the_subchannel),
	cmocka_unit_test(each_of_many_reasons_is_told),
	cmocka_unit_test(a_reason_as_long_as_they_come_is_told_whole),
	cmocka_unit_test(without_memory_attempts_go_on_without_backoff),
	cmocka_unit_test(ready_needs_no_memory))
