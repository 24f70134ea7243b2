// SPDX-License-Identifier: Apache-2.0
#include "ctrl/base/log_out.h"
#include "lb/base/log.h"
#include "tests/support/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_S 20 // of who waits for a reader that never comes

static struct {
	int to_read, stderr_was;
} rig;

// Returns the length of what was there, of which the end is in text.
static size_t take(char *text, size_t size)
{
	static char all[1 << 20];
	size_t n = 0;
	for (ssize_t more; (more = read(rig.to_read, all + n, sizeof(all) - n)) > 0;)
		n += (size_t)more;
	size_t from = n > size - 1 ? n - (size - 1) : 0;
	memcpy(text, all + from, n - from);
	text[n - from] = 0;
	return n;
}

// stderr is a pipe that nobody reads but the test, and what was lost before has been told.
static int begin(void **state)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	rig.to_read = ends[0];
	fcntl(rig.to_read, F_SETFL, O_NONBLOCK);
	rig.stderr_was = dup(STDERR_FILENO);
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	alarm(PATIENCE_S);
	log_out_begin();
	char text[1];
	log_info("begins", "%s", "");
	take(text, sizeof(text));
	return 0;
}

static int end(void **state)
{
	alarm(0);
	dup2(rig.stderr_was, STDERR_FILENO);
	close(rig.stderr_was);
	close(rig.to_read);
	return 0;
}

static void fill(void)
{
	static const char bytes[4096];
	int flags = fcntl(STDERR_FILENO, F_GETFL);
	fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
	while (write(STDERR_FILENO, bytes, sizeof(bytes)) > 0)
		;
	fcntl(STDERR_FILENO, F_SETFL, flags);
}

static void a_line_has_time_level_sentence_and_values(void **state)
{
	char text[512];
	log_warn("it rains", "where=%s", log_quote("here \"and\" there"));
	take(text, sizeof(text));
	assert_non_null(
		strstr(text, "Z level=warn msg=\"it rains\" where=\"here \\\"and\\\" there\"\n"));
	assert_int_equal(strncmp(text, "ts=2", 4), 0);
}

static void th_75_a_line_that_would_wait_for_its_reader_is_lost_and_counted(void **state)
{
	uint64_t before = log_out_lost();
	fill();
	log_error("nobody reads this", "%s", "");
	log_error("nor this", "%s", "");
	assert_int_equal(log_out_lost() - before, 2);
}

static void th_75_the_next_line_with_room_says_how_many_were_lost(void **state)
{
	char text[1024];
	uint64_t before = log_out_lost();
	log_info("there is room", "%s", "");
	take(text, sizeof(text));
	assert_null(strstr(text, "log lines lost"));
	fill();
	for (int i = 0; i < 3; i++)
		log_error("lost", "%s", "");
	take(text, sizeof(text));
	log_info("again", "%s", "");
	log_info("and again", "%s", "");
	take(text, sizeof(text));
	const char *told = strstr(text, "level=warn msg=\"log lines lost\" lines=3\n");
	assert_non_null(told);
	assert_non_null(strstr(told, "msg=\"again\""));
	assert_non_null(strstr(told, "msg=\"and again\""));
	assert_null(strstr(strstr(told, "lines=3"), "log lines lost"));
	assert_int_equal(log_out_lost() - before, 3);
}

static void *log_much(void *unused)
{
	for (int i = 0; i < 2000; i++)
		log_error("one of many", "number=%d filler=%0900d", i, 0);
	return NULL;
}

static void th_75_threads_that_log_at_once_take_no_room_from_each_other(void **state)
{
	pthread_t threads[4];
	uint64_t before = log_out_lost();
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, log_much, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	char text[64];
	size_t line = strlen("ts=2026-01-01T00:00:00.000Z level=error msg=\"one of many\" number=0 "
			     "filler=\n") +
	              900;
	uint64_t lost = log_out_lost() - before;
	assert_true(lost > 0 && lost < 4 * 2000);
	assert_true(take(text, sizeof(text)) >= (4 * 2000 - lost) * line);
	assert_int_equal(text[strlen(text) - 1], '\n');
}

#define ON_A_PIPE(test) cmocka_unit_test_setup_teardown(test, begin, end)

RUN_SUITE("ctrl/log_out", ON_A_PIPE(a_line_has_time_level_sentence_and_values),
	ON_A_PIPE(th_75_a_line_that_would_wait_for_its_reader_is_lost_and_counted),
	ON_A_PIPE(th_75_the_next_line_with_room_says_how_many_were_lost),
	ON_A_PIPE(th_75_threads_that_log_at_once_take_no_room_from_each_other))
