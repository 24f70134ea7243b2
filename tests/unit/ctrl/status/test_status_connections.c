// SPDX-License-Identifier: Apache-2.0
#include "ctrl/status/status_connections.h"
#include "tests/support/check.h"

#include <event2/event.h>

#include <sys/socket.h>
#include <unistd.h>

#define MAX 4

struct pair {
	int server, client; // libgrpc's end, and its peer's
};

static struct event_base *base;
static struct status_connections *connections;

static int setup(void **state)
{
	base = event_base_new();
	connections = status_connections_new(base, MAX);
	return base && connections ? 0 : -1;
}

static int teardown(void **state)
{
	status_connections_free(connections);
	event_base_free(base);
	return 0;
}

static struct pair connect_one(void)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_true(status_connections_add(connections, fds[0]));
	return (struct pair){.server = fds[0], .client = fds[1]};
}

static void turn(void)
{
	event_base_loop(base, EVLOOP_NONBLOCK);
}

static bool is_ended(int fd)
{
	char byte;
	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void end(struct pair p)
{
	close(p.server);
	close(p.client);
}

// TH-62
static void the_oldest_connection_gives_its_place_to_the_newest(void **state)
{
	struct pair pairs[MAX + 2];
	for (int i = 0; i < MAX; i++)
		pairs[i] = connect_one();
	turn();
	for (int i = 0; i < MAX; i++)
		assert_false(is_ended(pairs[i].client));
	pairs[MAX] = connect_one();
	pairs[MAX + 1] = connect_one();
	assert_int_equal(status_connections_count(connections), MAX);
	for (int i = 0; i < MAX + 2; i++) {
		assert_int_equal(is_ended(pairs[i].client), i < 2); // and so does libgrpc
		assert_int_equal(is_ended(pairs[i].server), i < 2);
	}
	for (int i = 0; i < MAX + 2; i++)
		end(pairs[i]);
}

static void who_has_gone_has_no_place(void **state)
{
	struct pair kept = connect_one();
	for (int i = 0; i < 3 * MAX; i++) {
		struct pair p = connect_one();
		if (i % 2)
			shutdown(p.server, SHUT_RDWR); // as libgrpc does
		close(i % 2 ? p.server : p.client);
		turn();
		assert_int_equal(status_connections_count(connections), 1);
		assert_true(i % 2 == 0 || is_ended(p.client));
		close(i % 2 ? p.client : p.server);
	}
	assert_false(is_ended(kept.client));
	end(kept);
}

static void those_that_are_open_outlive_the_count(void **state)
{
	struct pair p = connect_one();
	status_connections_free(connections);
	connections = NULL;
	assert_false(is_ended(p.client));
	end(p);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
RUN_SUITE("ctrl/status/status_connections",
	TEST(the_oldest_connection_gives_its_place_to_the_newest), TEST(who_has_gone_has_no_place),
	TEST(those_that_are_open_outlive_the_count))
