// SPDX-License-Identifier: Apache-2.0
// Servers that are there, are not, and say nothing, on this machine's loopback.
#include "ctrl/doctor/host.h"
#include "ctrl/doctor/reach.h"
#include "tests/support/check.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Bound to a port that the kernel chose; *ret_port as text.
static int bind_any(char ret_port[16])
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	snprintf(ret_port, 16, "%u", ntohs(in.sin_port));
	return fd;
}

// OPS-134
static void who_listens_is_reached_and_who_does_not_is_told_with_the_reason(void **state)
{
	struct doctor_target t[4] = {{.host = "127.0.0.1"}, {.host = "127.0.0.1"},
		{.host = "no.such.name.invalid", .port = "1"},
		{.host = "/tmp/there/is/no/such.sock", .is_unix = true}};
	int there = bind_any(t[0].port), absent = bind_any(t[1].port);
	assert_int_equal(listen(there, 1), 0);
	reach_targets(NULL, t, 4);
	assert_string_equal(t[0].err.text, "");
	assert_string_equal(t[1].err.text, "Connection refused");
	assert_true(t[2].err.text[0]); // by a resolver, or for want of one in time
	assert_string_equal(t[3].err.text, "No such file or directory");
	close(there);
	close(absent);
}

// OPS-134
static void who_says_nothing_is_given_up(void **state)
{
	struct doctor_target t = {.host = "127.0.0.1"}, all[3];
	int fd = bind_any(t.port), fill[3];
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	assert_int_equal(listen(fd, 0), 0);
	for (int i = 0; i < 3; i++) { // nobody accepts: no further SYN is answered
		fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(fill[i], (const struct sockaddr *)&in, sizeof(in));
		all[i] = t;
	}
	reach_targets(NULL, all, 3);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(all[i].err.text, "no answer within 2 s");
		close(fill[i]);
	}
	close(fd);
}

RUN_SUITE("ctrl/doctor/reach",
	cmocka_unit_test(who_listens_is_reached_and_who_does_not_is_told_with_the_reason),
	cmocka_unit_test(who_says_nothing_is_given_up))
