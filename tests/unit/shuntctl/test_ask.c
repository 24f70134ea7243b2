// SPDX-License-Identifier: Apache-2.0
#include "tests/support/check.h"
#include "tools/shuntctl/ask.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

// A daemon that answers one command, or who comes without waiting for it.
static void serve(int listener, const char *answer, bool waits)
{
	char command[64];
	int fd = accept(listener, NULL, NULL);
	bool ok = (!waits || read(fd, command, sizeof(command)) > 0) &&
	          write(fd, answer, strlen(answer)) == (ssize_t)strlen(answer);
	_exit(!ok);
}

// What is asked of one that says this; NULL = see errno.
static char *ask_one_that_says(const char *said, bool waits)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char dir[] = "/tmp/shunt-ask-XXXXXX";
	int status;
	assert_non_null(mkdtemp(dir));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/stats.sock", dir);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 1), 0);
	pid_t daemon = fork();
	if (daemon == 0)
		serve(listener, said, waits);
	close(listener);
	char *answer = ask_all(addr.sun_path, "show info");
	int err = errno;
	if (!answer)
		kill(daemon, SIGKILL);
	assert_int_equal(waitpid(daemon, &status, 0), daemon);
	unlink(addr.sun_path);
	rmdir(dir);
	errno = err;
	return answer;
}

static void an_answer_comes_without_the_line_that_ends_it(void **state)
{
	char *answer = ask_one_that_says("role: front\n\n", true);
	assert_non_null(answer);
	assert_string_equal(answer, "role: front\n");
	free(answer);
}

// OPS-235: before it was asked, or in the midst of an answer.
static void who_is_cut_for_a_newcomer_hears_why(void **state)
{
	static const char *const said[] = {
		STATS_ERROR STATS_CUT "\n", "role: front\n" STATS_ERROR STATS_CUT "\n"};
	for (int i = 0; i < 4; i++) {
		assert_null(ask_one_that_says(said[i / 2], i % 2));
		assert_int_equal(errno, EUSERS);
		assert_string_equal(ask_error(errno), STATS_CUT);
	}
	assert_null(ask_one_that_says("role: front\n", true));
	assert_string_equal(ask_error(errno), "closed before the answer was whole");
}

// OPS-261
static void nobody_at_all_is_an_error_that_says_what_to_look_at(void **state)
{
	assert_null(ask_all("/nonexistent/stats.sock", "show info"));
	assert_int_equal(errno, ENOENT);
	assert_string_equal(ask_error(errno),
		"No such file or directory; does shuntd run? --socket names another one");
}

// OPS-261: an empty path is what a script has whose variable is not set.
static void what_is_no_socket_is_not_said_to_be_left_over(void **state)
{
	assert_null(ask_all("/dev/null", "show info"));
	assert_string_equal(ask_error(errno), "Not a socket; --socket names another one");
	assert_null(ask_all("/tmp", "show info"));
	assert_int_equal(errno, ENOTSOCK);
	assert_null(ask_all("", "show info"));
	assert_int_equal(errno, ENOENT);
}

// OPS-261: a socket that a killed daemon has left.
static void a_socket_without_a_listener_is_said_to_be_left_over(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char dir[] = "/tmp/shuntctl-ask-XXXXXX";
	assert_non_null(mkdtemp(dir));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/stats.sock", dir);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	char *answer = ask_all(addr.sun_path, "show info");
	const char *said = ask_error(errno);
	close(fd);
	unlink(addr.sun_path);
	rmdir(dir);
	assert_null(answer);
	assert_string_equal(said, "Connection refused; the shuntd that made it has ended");
}

RUN_SUITE("shuntctl/ask", cmocka_unit_test(an_answer_comes_without_the_line_that_ends_it),
	cmocka_unit_test(who_is_cut_for_a_newcomer_hears_why),
	cmocka_unit_test(nobody_at_all_is_an_error_that_says_what_to_look_at),
	cmocka_unit_test(what_is_no_socket_is_not_said_to_be_left_over),
	cmocka_unit_test(a_socket_without_a_listener_is_said_to_be_left_over))
