// SPDX-License-Identifier: Apache-2.0
#include "ctrl/listen_port.h"
#include "tests/support/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// FL-12: one that would share it has it, and so nobody else may.
static void a_port_that_somebody_has_is_told(void **state)
{
	static const int yes = 1;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	struct lb_err err = {""};
	char text[32];
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(a.sin_port));
	assert_true(listen_port_check(text, &err) < 0);
	assert_non_null(strstr(err.text, text));
	close(fd);
	assert_int_equal(listen_port_check(text, &err), 0);
	assert_int_equal(listen_port_check(text, &err), 0);
}

// Who opens the port says better what is wrong.
static void what_is_no_address_is_not_its_business(void **state)
{
	struct lb_err err = {""};
	assert_int_equal(listen_port_check("nonsense", &err), 0);
}

RUN_SUITE("ctrl/listen_port", cmocka_unit_test(a_port_that_somebody_has_is_told),
	cmocka_unit_test(what_is_no_address_is_not_its_business))
