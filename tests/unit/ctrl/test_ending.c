// SPDX-License-Identifier: Apache-2.0
// Each case is a process of its own, since what is looked at is how it ends.
#include "ctrl/ending.h"
#include "tests/support/check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS 40

static char said[4096];
static bool beats;

static void beat(void)
{
	(void)!write(STDERR_FILENO, "beat\n", 5);
}

// The status of a process whose parts end by this; said: what it said on stderr.
static int end_by(void (*parts)(void))
{
	int told[2], status;
	size_t len = 0;
	assert_int_equal(pipe(told), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(told[1], STDERR_FILENO);
		close(told[0]);
		close(told[1]);
		ending_begin(LOOK_MS, beats ? beat : NULL);
		parts();
		_exit(0);
	}
	close(told[1]);
	for (ssize_t n; (n = read(told[0], said + len, sizeof(said) - 1 - len)) > 0;)
		len += (size_t)n;
	said[len] = '\0';
	close(told[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void late_one(void)
{
	ending_part("a quick one");
	ending_part("a late one");
	usleep((ENDING_LATE + 9) * LOOK_MS * 1000);
}

static void one_for_ever(void)
{
	ending_part("one for ever");
	for (;;)
		pause();
}

// OPS-291
static void who_is_late_is_named_and_nobody_else(void **state)
{
	assert_int_equal(end_by(late_one), 0);
	assert_non_null(strstr(said,
		"level=warn msg=\"stopping\" reason=\"still waiting\" waiting_for=\"a late one\""));
	assert_null(strstr(said, "quick"));
}

// OPS-291
static void what_never_ends_is_named_and_left(void **state)
{
	assert_int_equal(end_by(one_for_ever), EXIT_FAILURE);
	assert_non_null(strstr(said, "reason=\"still waiting\" waiting_for=\"one for ever\""));
	assert_non_null(strstr(said,
		"level=error msg=\"stopping\" reason=\"given up\" waiting_for=\"one for ever\""));
}

static uint32_t n_beats(void)
{
	uint32_t n = 0;
	for (const char *at = said; (at = strstr(at, "beat\n")); at++)
		n++;
	return n;
}

// OPS-300: several parts may take longer together than one may.
static void who_waits_for_the_end_hears_of_it_at_each_look(void **state)
{
	beats = true;
	assert_int_equal(end_by(one_for_ever), EXIT_FAILURE);
	beats = false;
	assert_in_range(n_beats(), ENDING_MOST, ENDING_MOST + 1); // with what was before it
	assert_int_equal(end_by(late_one), 0);
	assert_int_equal(n_beats(), 0);
}

RUN_SUITE("ctrl/ending", cmocka_unit_test(who_waits_for_the_end_hears_of_it_at_each_look),
	cmocka_unit_test(who_is_late_is_named_and_nobody_else),
	cmocka_unit_test(what_never_ends_is_named_and_left))
