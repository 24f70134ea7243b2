// SPDX-License-Identifier: Apache-2.0
// Whose socket is whose, where other threads close descriptors while the sockets are made.
#include "dataplane/wait_fd.h"
#include "tests/support/check.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_QUEUES 3

static struct wait_fd_search search;
static unsigned loopback;

// -1 = not root.
static int packet_socket(void)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)loopback};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static int xdp_socket(void)
{
	return socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
}

static int xdp_queue(void)
{
	int fd = xdp_socket();
	wait_fd_queue_made(&search);
	return fd;
}

static void skip_without(int (*make)(void))
{
	int fd = make();
	if (fd < 0)
		skip(); // not root, or a kernel without
	close(fd);
}

static int setup(void **state)
{
	loopback = if_nametoindex("lo");
	return loopback ? 0 : -1;
}

// Each has a lower descriptor than the one before.
static void make_in_descending_order(int *ret_fds, int (*make)(void))
{
	int holes[N_QUEUES];
	for (int i = 0; i < N_QUEUES; i++)
		holes[i] = dup(0);
	for (int i = 0; i < N_QUEUES; i++) {
		close(holes[N_QUEUES - 1 - i]);
		ret_fds[i] = make();
	}
	assert_true(ret_fds[0] > ret_fds[1] && ret_fds[1] > ret_fds[2]);
}

static void check_queues(const int *fds)
{
	for (uint16_t i = 0; i < N_QUEUES; i++) {
		assert_int_equal(wait_fd_find(&search, 0, i), fds[i]);
		close(fds[i]);
	}
	assert_int_equal(wait_fd_find(&search, 0, N_QUEUES), -1);
}

static void sockets_of_a_packet_device_are_its_queues_as_they_were_made(void **state)
{
	int fds[N_QUEUES];
	skip_without(packet_socket);
	make_in_descending_order(fds, packet_socket);
	wait_fd_begin(&search, "net_af_packet", loopback, N_QUEUES);
	check_queues(fds);
}

static void what_an_earlier_probe_left_open_is_no_queue(void **state)
{
	int fds[N_QUEUES];
	skip_without(packet_socket);
	int left = packet_socket();
	make_in_descending_order(fds, packet_socket);
	wait_fd_begin(&search, "net_af_packet", loopback, N_QUEUES);
	check_queues(fds);
	close(left);
}

static void fewer_sockets_than_queues_are_nobodys(void **state)
{
	skip_without(packet_socket);
	int fd = packet_socket();
	wait_fd_begin(&search, "net_af_packet", loopback, 2);
	assert_int_equal(wait_fd_find(&search, 0, 0), -1);
	close(fd);
}

static pid_t child_with_a_socket(void)
{
	int ready[2];
	char byte;
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		byte = (char)packet_socket();
		(void)!write(ready[1], &byte, 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

// As where one process takes over from another.
static void sockets_of_another_process_are_not_its_queues(void **state)
{
	int fds[N_QUEUES];
	skip_without(packet_socket);
	pid_t before = child_with_a_socket();
	make_in_descending_order(fds, packet_socket);
	pid_t after = child_with_a_socket();
	wait_fd_begin(&search, "net_af_packet", loopback, N_QUEUES);
	kill(before, SIGKILL);
	kill(after, SIGKILL);
	waitpid(before, NULL, 0);
	waitpid(after, NULL, 0);
	check_queues(fds);
}

static void sockets_of_another_interface_are_not_its_queues(void **state)
{
	skip_without(packet_socket);
	int fd = packet_socket();
	wait_fd_begin(&search, "net_af_packet", loopback + 1, 1);
	assert_int_equal(wait_fd_find(&search, 0, 0), -1);
	close(fd);
}

static void a_socket_of_af_xdp_is_of_the_queue_that_it_came_with(void **state)
{
	int fds[N_QUEUES];
	skip_without(xdp_socket);
	int earlier = xdp_socket();
	wait_fd_begin(&search, "net_af_xdp", loopback, N_QUEUES);
	make_in_descending_order(fds, xdp_queue);
	check_queues(fds);
	close(earlier);
}

static void two_sockets_of_af_xdp_that_came_with_a_queue_are_not_guessed_at(void **state)
{
	skip_without(xdp_socket);
	wait_fd_begin(&search, "net_af_xdp", loopback, 2);
	int one = xdp_socket(), other = xdp_queue(), next = xdp_queue();
	assert_int_equal(wait_fd_find(&search, 0, 0), -1);
	close(one);
	close(other);
	close(next);
}

// FL-120
static void a_queues_socket_may_have_the_number_of_one_that_was_closed_meanwhile(void **state)
{
	skip_without(xdp_socket);
	int earlier = xdp_socket();
	wait_fd_begin(&search, "net_af_xdp", loopback, 1);
	close(earlier); // as of another port, in a thread of its own
	int made = xdp_queue();
	assert_int_equal(made, earlier);
	assert_int_equal(wait_fd_find(&search, 0, 0), made);
	close(made);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

// FL-120. What has a number of one that its driver has closed stays.
static void what_the_driver_of_af_xdp_leaves_open_is_closed_and_nothing_else(void **state)
{
	skip_without(xdp_socket);
	int earlier = xdp_socket();
	wait_fd_begin(&search, "net_af_xdp", loopback, N_QUEUES);
	int left = xdp_queue(), closed = xdp_queue(), replaced = xdp_queue();
	close(closed);
	close(replaced);
	int another = xdp_socket();
	assert_true(another == closed || another == replaced);
	wait_fd_close_left(&search);
	assert_false(is_open(left));
	assert_true(is_open(another) && is_open(earlier));
	assert_int_equal(wait_fd_find(&search, 0, 0), -1);
	close(another);
	close(earlier);
}

static void sockets_of_a_packet_device_are_its_drivers_to_close(void **state)
{
	int fds[N_QUEUES];
	skip_without(packet_socket);
	make_in_descending_order(fds, packet_socket);
	wait_fd_begin(&search, "net_af_packet", loopback, N_QUEUES);
	wait_fd_close_left(&search);
	for (int i = 0; i < N_QUEUES; i++) {
		assert_true(is_open(fds[i]));
		close(fds[i]);
	}
}

static void a_device_of_its_own_memory_has_none(void **state)
{
	wait_fd_begin(&search, "net_virtio", 0, 1);
	wait_fd_queue_made(&search);
	assert_int_equal(wait_fd_find(&search, 0, 0), -1);
}

#define CASE(name) cmocka_unit_test_setup(name, setup)

RUN_SUITE("dataplane/wait_fd", CASE(sockets_of_a_packet_device_are_its_queues_as_they_were_made),
	CASE(what_an_earlier_probe_left_open_is_no_queue),
	CASE(fewer_sockets_than_queues_are_nobodys),
	CASE(sockets_of_another_process_are_not_its_queues),
	CASE(sockets_of_another_interface_are_not_its_queues),
	CASE(a_socket_of_af_xdp_is_of_the_queue_that_it_came_with),
	CASE(two_sockets_of_af_xdp_that_came_with_a_queue_are_not_guessed_at),
	CASE(a_queues_socket_may_have_the_number_of_one_that_was_closed_meanwhile),
	CASE(what_the_driver_of_af_xdp_leaves_open_is_closed_and_nothing_else),
	CASE(sockets_of_a_packet_device_are_its_drivers_to_close),
	CASE(a_device_of_its_own_memory_has_none))
