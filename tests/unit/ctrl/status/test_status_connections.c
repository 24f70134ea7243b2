// SPDX-License-Identifier: Apache-2.0
#include "ctrl/base/socket_counts.h"
#include "ctrl/status/status_connections.h"
#include "tests/support/check.h"

#include <event2/event.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX 4

struct pair {
	int server, client; // libgrpc's end, and its peer's
};

static struct event_base *base;
static struct socket_counts counts;
static struct status_connections *connections;

static int setup(void **state)
{
	base = event_base_new();
	counts = (struct socket_counts){0};
	connections = status_connections_new(base, MAX, &counts);
	return base && connections ? 0 : -1;
}

static int teardown(void **state)
{
	status_connections_free(connections);
	event_base_free(base);
	return 0;
}

// Over TCP, where a peer may reset.
static struct pair connect_one(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	struct pair p = {.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	assert_int_equal(connect(p.client, (struct sockaddr *)&at, len), 0);
	p.server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	assert_true(p.server >= 0 && status_connections_add(connections, p.server));
	return p;
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
	assert_int_equal(counts.n_cut, 2);
	assert_int_equal(counts.n_open, MAX);
	for (int i = 0; i < MAX + 2; i++) {
		assert_int_equal(is_ended(pairs[i].client), i < 2); // and so does libgrpc
		assert_int_equal(is_ended(pairs[i].server), i < 2);
	}
	for (int i = 0; i < MAX + 2; i++)
		end(pairs[i]);
}

// OPS-285, TH-62
static void who_is_let_in_keeps_the_place_while_another_is_not(void **state)
{
	struct pair pairs[2 * MAX];
	for (int i = 0; i < MAX; i++)
		pairs[i] = connect_one();
	for (int i = 0; i < MAX - 1; i++)
		status_connections_let_in(connections, pairs[i].server);
	for (int i = MAX; i < 2 * MAX; i++)
		pairs[i] = connect_one();
	for (int i = 0; i < 2 * MAX; i++)
		assert_int_equal(is_ended(pairs[i].client), i >= MAX - 1 && i < 2 * MAX - 1);
	status_connections_let_in(connections, pairs[2 * MAX - 1].server);
	struct pair last = connect_one(); // all of them are let in
	assert_true(is_ended(pairs[0].client));
	assert_false(is_ended(pairs[1].client));
	for (int i = 0; i < 2 * MAX; i++)
		end(pairs[i]);
	end(last);
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
		assert_int_equal(counts.n_open, 1);
		assert_true(i % 2 == 0 || is_ended(p.client));
		close(i % 2 ? p.client : p.server);
	}
	assert_false(is_ended(kept.client));
	end(kept);
}

static void reset(int fd)
{
	const struct linger none = {.l_onoff = 1};
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
	close(fd);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// libevent has no event for an error alone, and would be woken by it again and again.
static void a_reset_ends_one_whoever_reads_the_error(void **state)
{
	struct pair first = connect_one(), second = connect_one(), kept = connect_one();
	turn();
	reset(first.client);
	shutdown(second.server, SHUT_RDWR); // as libgrpc does, whose client goes on sending
	close(second.server);
	(void)!send(second.client, "x", 1, MSG_NOSIGNAL);
	for (int i = 0; i < 10000 && counts.n_open > 1; i++) {
		turn();
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	assert_int_equal(counts.n_open, 1);
	const struct timeval time = {.tv_usec = 100000};
	uint64_t before = cpu_ns();
	event_base_loopexit(base, &time);
	event_base_loop(base, EVLOOP_NO_EXIT_ON_EMPTY);
	assert_true(cpu_ns() - before < 50000000); // nobody is awake
	assert_int_equal(counts.n_open, 1);
	close(first.server);
	close(second.client);
	end(kept);
}

// Behind what it has been sent and does not read libgrpc would keep it.
static void a_client_that_closes_its_side_has_ended_it(void **state)
{
	struct pair p = connect_one();
	turn();
	shutdown(p.client, SHUT_WR);
	for (int i = 0; i < 10000 && counts.n_open; i++) {
		turn();
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	assert_int_equal(counts.n_open, 0);
	assert_true(is_ended(p.client));
	end(p);
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
	TEST(the_oldest_connection_gives_its_place_to_the_newest),
	TEST(who_is_let_in_keeps_the_place_while_another_is_not), TEST(who_has_gone_has_no_place),
	TEST(a_reset_ends_one_whoever_reads_the_error),
	TEST(a_client_that_closes_its_side_has_ended_it),
	TEST(those_that_are_open_outlive_the_count))
