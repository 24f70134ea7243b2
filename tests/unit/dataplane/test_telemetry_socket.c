// SPDX-License-Identifier: Apache-2.0
// Nobody is answered by DPDK's telemetry while its socket is hidden (OPS-225).
#include "dataplane/eal.h"
#include "dataplane/telemetry_socket.h"
#include "tests/support/check.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WAIT_MS 30000

static char folder[] = "/tmp/shunt-telemetry-XXXXXX";
static char path[80];

static void ignore(void *ctx, int level, const char *line)
{
}

static int setup(void **state)
{
	int core = sched_getcpu();
	struct eal_conf eal = {
		.args = {.memory_mib = 64, .cores = &core, .n_cores = 1}, .log = ignore};
	struct lb_err err;
	assert_non_null(mkdtemp(folder));
	setenv("RUNTIME_DIRECTORY", folder, 1);
	snprintf(path, sizeof(path), "%s/dpdk/shunt/dpdk_telemetry.v2", folder);
	return eal_start(&eal, &err);
}

// The socket's folder stays with DPDK until the process ends.
static int teardown(void **state)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

// -1 = refused.
static int connect_to_it(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	memcpy(name.sun_path, path, sizeof(path));
	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0)
		return fd;
	close(fd);
	return -1;
}

// Returns the length of what comes; 0 = it was hung up.
static ssize_t hear(int fd)
{
	char text[1024];
	struct pollfd p = {.fd = fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	return recv(fd, text, sizeof(text), 0);
}

static void check_answered(int fd)
{
	assert_int_equal(send(fd, "/info", 5, MSG_NOSIGNAL), 5);
	assert_true(hear(fd) > 0);
}

static void who_asks_is_hung_up_on_and_nobody_else_gets_in(void **state)
{
	int fd = connect_to_it(), other = connect_to_it();
	assert_true(hear(fd) > 0 && hear(other) > 0);
	check_answered(fd);
	telemetry_socket_hide();
	assert_int_equal(hear(fd), 0);
	assert_int_equal(hear(other), 0);
	assert_int_equal(connect_to_it(), -1);
	telemetry_socket_hide(); // of a member of what is closed
	telemetry_socket_show();
	assert_int_equal(connect_to_it(), -1);
	telemetry_socket_show();
	close(fd);
	close(other);
	fd = connect_to_it();
	assert_true(hear(fd) > 0);
	check_answered(fd);
	close(fd);
}

static void at_the_end_nothing_is_left_of_it(void **state)
{
	int fd = connect_to_it();
	assert_true(hear(fd) > 0);
	telemetry_socket_end();
	assert_int_equal(hear(fd), 0);
	assert_int_equal(access(path, F_OK), -1);
	strcat(path, ".hidden");
	assert_int_equal(access(path, F_OK), -1);
	close(fd);
}

#define CASE(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(who_asks_is_hung_up_on_and_nobody_else_gets_in),
		CASE(at_the_end_nothing_is_left_of_it),
	};
	return cmocka_run_group_tests_name("dataplane/telemetry_socket", tests, setup, teardown);
}
