// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/failures.h"
#include "tests/support/check.h"

#include <pthread.h>
#include <string.h>

#define WHOLE 95 // bytes that each of the texts holds

static void add(struct lb_failures *f, uint64_t n, struct str cluster, struct str text)
{
	const struct lb_failure what = {.at_ns = n,
		.backend = {ip_from_v4((uint32_t)n), (uint16_t)n},
		.frontend = (uint16_t)n,
		.cause = LB_CAUSE_TIMEOUT,
		.has_backend = true,
		.n_kept = n % (LB_FAILURE_ATTEMPTS + 1),
		.attempts = {{.after_us = (uint32_t)n}, {.after_us = (uint32_t)n},
			{.after_us = (uint32_t)n}, {.after_us = (uint32_t)n},
			{.after_us = (uint32_t)n}}};
	const struct str texts[LB_FAILURE_N_TEXTS] = {[LB_FAILURE_cluster] = cluster,
		[LB_FAILURE_text] = text,
		[LB_FAILURE_route] = text};
	lb_failures_add(f, &what, texts);
}

static void what_was_written_is_read(void **state)
{
	struct lb_failures *f = lb_failures_new();
	struct lb_failure got;
	assert_int_equal(lb_failures_count(f), 0);
	assert_false(lb_failures_read(f, 0, &got));
	add(f, 7, STR("blue"), STR("no answer"));
	assert_int_equal(lb_failures_count(f), 1);
	assert_true(lb_failures_read(f, 0, &got));
	assert_int_equal(got.at_ns, 7);
	assert_int_equal(got.cause, LB_CAUSE_TIMEOUT);
	assert_int_equal(got.frontend, 7);
	assert_int_equal(got.backend.port, 7);
	assert_int_equal(ip_to_v4(&got.backend.ip), 7);
	assert_true(got.has_backend);
	assert_string_equal(got.cluster, "blue");
	assert_string_equal(got.text, "no answer");
	assert_false(lb_failures_read(f, 1, &got));
	lb_failures_free(f);
}

static size_t kept(size_t len, size_t size)
{
	return len < size ? len : size - 1;
}

static void texts_of_any_length_end_in_time(void **state)
{
	struct lb_failures *f = lb_failures_new();
	static char many[2 * sizeof(((struct lb_failure *)0)->text)];
	memset(many, 'x', sizeof(many));
	for (size_t len = 0; len < sizeof(many); len++) {
		struct lb_failure got;
		add(f, len, (struct str){many, len}, (struct str){many, len});
		assert_true(lb_failures_read(f, len, &got));
		assert_int_equal(strlen(got.cluster), kept(len, sizeof(got.cluster)));
		assert_int_equal(strlen(got.text), kept(len, sizeof(got.text)));
		assert_int_equal(strlen(got.route), kept(len, sizeof(got.route)));
		assert_string_equal(got.vhost, "");
	}
	add(f, 1, (struct str){NULL, 0}, (struct str){NULL, 0});
	struct lb_failure got;
	assert_true(lb_failures_read(f, sizeof(many), &got));
	assert_string_equal(got.cluster, "");
	assert_string_equal(got.text, "");
	lb_failures_free(f);
}

// TH-96
static void the_newest_stay_and_the_oldest_go(void **state)
{
	struct lb_failures *f = lb_failures_new();
	for (uint64_t n = 0; n < 3 * LB_FAILURES + 5; n++)
		add(f, n, STR("a"), STR("b"));
	for (uint64_t n = 0; n < 3 * LB_FAILURES + 6; n++) {
		struct lb_failure got;
		bool there = n >= 2 * LB_FAILURES + 5 && n < 3 * LB_FAILURES + 5;
		assert_int_equal(lb_failures_read(f, n, &got), there);
		if (there)
			assert_int_equal(got.at_ns, n);
	}
	lb_failures_free(f);
}

// Each entry says its number in all its parts.
static void *write_many(void *arg)
{
	struct lb_failures *f = arg;
	char text[WHOLE];
	for (uint64_t n = 0; n < 50000; n++) {
		memset(text, 'a' + (int)(n % 23), sizeof(text));
		struct str s = {text, WHOLE};
		add(f, n, s, s);
	}
	return NULL;
}

static void check_whole(const struct lb_failure *got, uint64_t number)
{
	char c = (char)('a' + number % 23);
	assert_int_equal(got->at_ns, number);
	assert_int_equal(got->backend.port, (uint16_t)number);
	assert_int_equal(strspn(got->cluster, (char[]){c, 0}), WHOLE);
	assert_int_equal(strspn(got->text, (char[]){c, 0}), WHOLE);
	assert_int_equal(strspn(got->route, (char[]){c, 0}), WHOLE);
	for (unsigned i = 0; i < got->n_kept; i++)
		assert_int_equal(got->attempts[i].after_us, number);
}

// TH-96
static void what_is_torn_is_never_read(void **state)
{
	struct lb_failures *f = lb_failures_new();
	pthread_t writer;
	assert_int_equal(pthread_create(&writer, NULL, write_many, f), 0);
	for (uint64_t n = 0; n < 50000; n = lb_failures_count(f)) {
		// The one that goes next, and the one that came last.
		const uint64_t numbers[] = {n - LB_FAILURES, n - 1, n};
		for (size_t i = n < LB_FAILURES ? 1 : 0; n && i < 3; i++) {
			struct lb_failure got;
			if (lb_failures_read(f, numbers[i], &got))
				check_whole(&got, numbers[i]);
		}
	}
	pthread_join(writer, NULL);
	lb_failures_free(f);
}

RUN_SUITE("lb/failures", cmocka_unit_test(what_was_written_is_read),
	cmocka_unit_test(texts_of_any_length_end_in_time),
	cmocka_unit_test(the_newest_stay_and_the_oldest_go),
	cmocka_unit_test(what_is_torn_is_never_read))
