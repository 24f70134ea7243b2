// SPDX-License-Identifier: Apache-2.0
// OPS-236, OPS-288: each case is a process of its own, since what is looked at is how it ends.
#include "ctrl/base/std_out.h"
#include "tests/support/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOST 7
#define LARGE (1 << 20) // more than a FILE keeps

static char said[256];

// The status of a process that prints so much into `to`; said: what it said on stderr.
static int print_into(int to, size_t len)
{
	int told[2], status;
	assert_int_equal(pipe(told), 0);
	fflush(stdout); // what is left would be the process's, too
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGPIPE, SIG_IGN);
		dup2(to, STDOUT_FILENO);
		dup2(told[1], STDERR_FILENO);
		std_out_watch("prog", LOST);
		for (size_t i = 0; i < len; i++)
			putchar('x');
		exit(0);
	}
	close(told[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	memset(said, 0, sizeof(said));
	assert_true(read(told[0], said, sizeof(said) - 1) >= 0);
	close(told[0]);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_full_disk_is_told_and_is_the_status(void **state)
{
	int full = open("/dev/full", O_WRONLY);
	assert_int_equal(print_into(full, 1), LOST);
	assert_string_equal(said,
		"prog: standard output could not be written whole: No space left on device\n");
	assert_int_equal(print_into(full, LARGE), LOST); // nothing is left for the end to find
	assert_int_equal(strncmp(said, "prog: standard output could not be", 34), 0);
	assert_int_equal(print_into(full, 0), 0);
	assert_string_equal(said, "");
	close(full);
}

static void a_reader_that_has_gone_is_told_nothing(void **state)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	assert_int_equal(print_into(ends[1], LARGE), LOST);
	assert_string_equal(said, "");
	close(ends[1]);
}

static void what_arrives_is_no_fault(void **state)
{
	int null = open("/dev/null", O_WRONLY);
	assert_int_equal(print_into(null, LARGE), 0);
	assert_string_equal(said, "");
	close(null);
}

// OPS-288: a socket would else be what is printed into.
static void no_file_of_ours_gets_the_number_of_a_closed_standard_stream(void **state)
{
	int told[2], status, ends[2];
	assert_int_equal(pipe(told), 0);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		int kept = dup2(told[1], 9);
		for (int fd = 0; fd <= 2; fd++)
			close(fd);
		std_out_watch("prog", LOST);
		bool fine = pipe(ends) == 0 && ends[0] > 2 && read(0, said, 1) == 0 &&
		            write(2, "x", 1) == 1;
		dup2(kept, STDERR_FILENO);
		fprintf(stderr, "%s; ", fine ? "fine" : "taken");
		putchar('x');
		exit(0);
	}
	close(told[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	memset(said, 0, sizeof(said));
	assert_true(read(told[0], said, sizeof(said) - 1) >= 0);
	close(told[0]);
	assert_string_equal(said,
		"fine; prog: standard output could not be written whole: Bad file descriptor\n");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), LOST);
}

RUN_SUITE("ctrl/std_out", cmocka_unit_test(a_full_disk_is_told_and_is_the_status),
	cmocka_unit_test(a_reader_that_has_gone_is_told_nothing),
	cmocka_unit_test(what_arrives_is_no_fault),
	cmocka_unit_test(no_file_of_ours_gets_the_number_of_a_closed_standard_stream))
