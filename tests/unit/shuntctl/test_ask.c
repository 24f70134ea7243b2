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

// A daemon that has its socket only after a moment, and answers one command.
static void serve_late(const struct sockaddr_un *addr)
{
	static const char answer[] = "role: front\n\n";
	char command[64];
	usleep(50000);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (const struct sockaddr *)addr, sizeof(*addr)) || listen(listener, 1))
		_exit(1);
	int fd = accept(listener, NULL, NULL);
	bool ok = read(fd, command, sizeof(command)) > 0 &&
	          write(fd, answer, strlen(answer)) == (ssize_t)strlen(answer);
	_exit(!ok);
}

static void a_socket_that_is_gone_for_a_moment_is_asked_again(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char dir[] = "/tmp/shunt-ask-XXXXXX";
	int status;
	char followed[128];
	assert_non_null(mkdtemp(dir));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/stats.sock", dir);
	snprintf(followed, sizeof(followed), "%s/stats.sock.1", dir);
	fclose(fopen(followed, "w")); // of the process that was in front
	pid_t daemon = fork();
	if (daemon == 0)
		serve_late(&addr);
	char *answer = ask_all(addr.sun_path, "show info");
	if (!answer)
		kill(daemon, SIGKILL);
	assert_int_equal(waitpid(daemon, &status, 0), daemon);
	unlink(addr.sun_path);
	unlink(followed);
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

RUN_SUITE("shuntctl/ask", cmocka_unit_test(a_socket_that_is_gone_for_a_moment_is_asked_again),
	cmocka_unit_test(nobody_at_all_is_an_error))
