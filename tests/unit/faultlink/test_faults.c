// SPDX-License-Identifier: Apache-2.0
#include "lb/base/time.h"
#include "tests/support/check.h"
#include "tests/support/faultlink/faults.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void every_word_is_read_in_its_unit(void **state)
{
	struct faults f = {0};
	const char *word;
	const char *text = "loss=0.5% burst=1%:25% corrupt=2% forge=3% duplicate=4% reorder=5%:4ms "
			   "delay=20ms jitter=500us rate=200mbit queue=300 blackout=1s:15s "
			   "pause=2s:400ms\tmtu=1300 silent=1";
	assert_int_equal(faults_parse(&f, text, &word), 0);
	struct faults expected = {
		.loss = 0.5 * 0.01,
		.burst_begin = 1 * 0.01,
		.burst_end = 25 * 0.01,
		.corrupt = 2 * 0.01,
		.forge = 3 * 0.01,
		.duplicate = 4 * 0.01,
		.reorder = 5 * 0.01,
		.reorder_ns = 4000000,
		.delay_ns = 20000000,
		.jitter_ns = 500000,
		.rate = 200000000,
		.queue = 300,
		.dark_from_ns = NS_PER_SECOND,
		.dark_ns = 15000000000,
		.pause_every_ns = 2000000000,
		.pause_ns = 400000000,
		.mtu = 1300,
		.silent = 1,
	};
	assert_memory_equal(&f, &expected, sizeof(f));
}

static void what_is_not_named_stays(void **state)
{
	struct faults f = {.delay_ns = 7};
	const char *word;
	assert_int_equal(faults_parse(&f, "", &word), 0);
	assert_int_equal(faults_parse(&f, " loss=100% ", &word), 0);
	assert_int_equal(f.delay_ns, 7);
	assert_true(f.loss == 1);
}

static void a_wrong_word_is_named_and_changes_nothing(void **state)
{
	static const char *const wrong[] = {
		"lost=1%", "loss", "loss=", "loss=1", "loss=101%", "loss=-1%", "loss=1%:2%",
		"loss=nan%", "delay=5", "delay=5min", "burst=1%", "reorder=5%:", "queue=70000",
		"mtu=1300b", "silent=2",
		"pause=1s:1s", // would never end
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct faults f = {0}, none = {0};
		char text[64];
		const char *word;
		snprintf(text, sizeof(text), "delay=1ms %s jitter=1ms", wrong[i]);
		assert_int_equal(faults_parse(&f, text, &word), -EINVAL);
		assert_memory_equal(word, wrong[i], strlen(wrong[i]));
		assert_memory_equal(&f, &none, sizeof(f));
	}
}

RUN_SUITE("faultlink/faults", cmocka_unit_test(every_word_is_read_in_its_unit),
	cmocka_unit_test(what_is_not_named_stays),
	cmocka_unit_test(a_wrong_word_is_named_and_changes_nothing))
