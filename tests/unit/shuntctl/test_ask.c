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

// A daemon that answers one command.
static void serve(int listener)
{
	static const char answer[] = "role: front\n\n";
	char command[64];
	int fd = accept(listener, NULL, NULL);
	bool ok = read(fd, command, sizeof(command)) > 0 &&
	          write(fd, answer, strlen(answer)) == (ssize_t)strlen(answer);
	_exit(!ok);
}

static void an_answer_comes_without_the_line_that_ends_it(void **state)
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
		serve(listener);
	close(listener);
	char *answer = ask_all(addr.sun_path, "show info");
	if (!answer)
		kill(daemon, SIGKILL);
	assert_int_equal(waitpid(daemon, &status, 0), daemon);
	unlink(addr.sun_path);
	rmdir(dir);
	assert_non_null(answer);
	assert_string_equal(answer, "role: front\n");
	free(answer);
}

static void nobody_at_all_is_an_error(void **state)
{
	assert_null(ask_all("/nonexistent/stats.sock", "show info"));
	assert_int_equal(errno, ENOENT);
}

RUN_SUITE("shuntctl/ask", cmocka_unit_test(an_answer_comes_without_the_line_that_ends_it),
	cmocka_unit_test(nobody_at_all_is_an_error))
