// SPDX-License-Identifier: Apache-2.0
#include "ctrl/takeover/peer.h"
#include "tests/support/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/ethernet.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_SOCKETS 16 // each takes the kernel a grace period to close
#define WAIT_MS 30000

// Packet sockets that are there, of any process in the namespace.
static uint32_t n_packet_sockets(void)
{
	uint32_t n = 0;
	char line[256];
	FILE *list = fopen("/proc/thread-self/net/packet", "re");
	assert_non_null(list);
	while (fgets(line, sizeof(line), list))
		n++;
	fclose(list);
	return n - 1; // its headline
}

static void fl_133_the_end_of_a_process_is_heard_before_its_devices_are_closed(void **state)
{
	struct lb_err err = {""};
	char dir[] = "/tmp/takeover-peer-XXXXXX", path[64];
	if (unshare(CLONE_NEWNET) != 0)
		skip(); // not root
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	int listener = takeover_peer_listen(path, &err), fd;
	uid_t uid;
	assert_true(listener >= 0);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); // whatever fails here
		bool ok = takeover_peer_connect(path, 1, &err) >= 0;
		for (int i = 0; i < N_SOCKETS; i++)
			ok &= socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)) >= 0;
		if (ok)
			pause();
		_exit(1);
	}
	struct pollfd end = {.fd = listener, .events = POLLIN};
	assert_int_equal(poll(&end, 1, WAIT_MS), 1);
	end.fd = fd = takeover_peer_accept(listener, &uid);
	assert_true(fd >= 0);
	while (n_packet_sockets() < N_SOCKETS && waitpid(child, NULL, WNOHANG) == 0)
		usleep(1000);
	assert_int_equal(n_packet_sockets(), N_SOCKETS);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(poll(&end, 1, WAIT_MS), 1);
	assert_int_not_equal(n_packet_sockets(), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(fd);
	close(listener);
	unlink(path);
	rmdir(dir);
}

// FL-174: as of the stats socket.
static void what_is_no_socket_is_said_to_be_none(void **state)
{
	struct lb_err err = {""};
	char dir[] = "/tmp/takeover-peer-XXXXXX", path[64];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	for (int i = 0; i < 3; i++) {
		int fd = i == 0 ? open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) : -1;
		if (i == 0)
			close(fd);
		else
			assert_int_equal(i == 1 ? mkdir(path, 0700) : symlink("none/x", path), 0);
		assert_int_equal(takeover_peer_listen(path, &err), -EINVAL);
		if (!strstr(err.text, "/socket: exists and is not a socket"))
			fail_msg("%d: got \"%s\"", i, err.text);
		assert_int_equal(remove(path), 0);
	}
	rmdir(dir);
}

RUN_SUITE("ctrl/takeover/peer", cmocka_unit_test(what_is_no_socket_is_said_to_be_none),
	cmocka_unit_test(fl_133_the_end_of_a_process_is_heard_before_its_devices_are_closed))
