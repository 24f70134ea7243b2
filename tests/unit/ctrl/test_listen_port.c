// SPDX-License-Identifier: Apache-2.0
#include "ctrl/listen_port.h"
#include "tests/support/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Listens at this address and a port that is free; `ret` has both.
static int open_some(const char *ip, char ret[64])
{
	bool is_ip6 = strchr(ip, ':');
	struct sockaddr_in6 at = {
		.sin6_family = is_ip6 ? AF_INET6 : AF_INET}; // port 0, any address
	socklen_t len = is_ip6 ? sizeof(at) : sizeof(struct sockaddr_in);
	struct lb_err err = {""};
	int fd = socket(at.sin6_family, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	close(fd);
	snprintf(ret, 64, "%s:%u", ip, ntohs(at.sin6_port)); // where that of IPv4 is, too
	fd = listen_port_open(ret, false, &err);
	assert_true(fd >= 0);
	return fd;
}

static bool opens(const char *address, bool beside)
{
	struct lb_err err = {""};
	int fd = listen_port_open(address, beside, &err);
	if (fd < 0)
		assert_non_null(strstr(err.text, address));
	else
		close(fd);
	return fd >= 0;
}

// FL-72: not even another process of this user.
static void a_port_that_somebody_has_is_had_beside_it_only_while_that_lets_others(void **state)
{
	char address[64];
	int fd = open_some("127.0.0.1", address);
	assert_false(opens(address, false));
	assert_false(opens(address, true));
	listen_port_let(fd, true);
	assert_false(opens(address, false));
	assert_true(opens(address, true));
	close(fd);
	assert_true(opens(address, false));
}

static void what_is_no_address_is_told(void **state)
{
	assert_false(opens("nonsense", false));
}

static int connect_to(const char *address)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	unsigned port;
	assert_int_equal(sscanf(strchr(address, ':'), ":%u", &port), 1);
	at.sin_port = htons((uint16_t)port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

// FL-70
static void fl_70_who_waits_at_a_socket_that_is_passed_on_waits_at_the_other_end(void **state)
{
	char address[64], byte = 0;
	struct listen_ports ports = {0};
	int fd = open_some("127.0.0.1", address), client = connect_to(address);
	listen_ports_add(&ports, fd);
	close(fd); // the older process goes
	fd = listen_ports_take(&ports, address);
	assert_true(fd >= 0);
	assert_int_equal(listen_ports_take(&ports, address), -1); // it is given once
	int server = accept(fd, NULL, NULL);
	assert_int_equal(send(server, "x", 1, 0), 1);
	assert_int_equal(recv(client, &byte, 1, 0), 1);
	close(server);
	close(client);
	close(fd);
}

static void a_socket_is_known_by_its_address_and_port(void **state)
{
	char address[64], other[64], other6[64];
	struct listen_ports ports = {0};
	int fds[] = {open_some("127.0.0.1", address), open_some("127.0.0.2", other),
		open_some("[::1]", other6)};
	for (int i = 0; i < 3; i++) {
		listen_ports_add(&ports, fds[i]);
		close(fds[i]);
	}
	char wrong[80];
	snprintf(wrong, sizeof(wrong), "127.0.0.3:%s", strchr(address, ':') + 1);
	assert_int_equal(listen_ports_take(&ports, wrong), -1);
	assert_int_equal(listen_ports_take(&ports, "nonsense"), -1);
	int fd6 = listen_ports_take(&ports, other6), fd = listen_ports_take(&ports, address);
	assert_true(fd >= 0 && fd6 >= 0);
	assert_false(opens(other, false)); // we have it still
	listen_ports_close(&ports);
	assert_true(opens(other, false));
	close(fd);
	close(fd6);
}

// Whatever another process says.
static void what_does_not_listen_and_what_is_too_much_is_passed_over(void **state)
{
	char address[64];
	struct listen_ports ports = {0};
	int pipes[2], fd = open_some("127.0.0.1", address), client = connect_to(address);
	assert_int_equal(pipe(pipes), 0);
	listen_ports_add(&ports, pipes[0]);
	listen_ports_add(&ports, client);
	listen_ports_add(&ports, -1);
	assert_int_equal(ports.n, 0);
	for (int i = 0; i < LISTEN_PORTS_MAX + 3; i++)
		listen_ports_add(&ports, fd);
	assert_int_equal(ports.n, LISTEN_PORTS_MAX);
	listen_ports_close(&ports);
	close(fd);
	close(client);
	close(pipes[0]);
	close(pipes[1]);
}

// FL-71: from older processes on both sides, at a wider address as well.
static void those_of_another_process_let_ours_beside_them(void **state)
{
	char address[64], wide[80];
	struct listen_ports ports = {0};
	int fd = open_some("127.0.0.1", address);
	snprintf(wide, sizeof(wide), "0.0.0.0:%s", strchr(address, ':') + 1);
	listen_ports_add(&ports, fd);
	assert_false(opens(wide, true));
	listen_ports_let(&ports, true);
	assert_true(opens(wide, true));
	listen_port_let(fd, false); // it is the same socket
	listen_ports_close(&ports);
	close(fd);
	assert_true(opens(wide, false));
}

RUN_SUITE("ctrl/listen_port",
	cmocka_unit_test(a_port_that_somebody_has_is_had_beside_it_only_while_that_lets_others),
	cmocka_unit_test(what_is_no_address_is_told),
	cmocka_unit_test(fl_70_who_waits_at_a_socket_that_is_passed_on_waits_at_the_other_end),
	cmocka_unit_test(a_socket_is_known_by_its_address_and_port),
	cmocka_unit_test(what_does_not_listen_and_what_is_too_much_is_passed_over),
	cmocka_unit_test(those_of_another_process_let_ours_beside_them))
