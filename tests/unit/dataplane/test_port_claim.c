// SPDX-License-Identifier: Apache-2.0
// A device has one owner at a time: an interface in its network namespace, a PCI device everywhere.
#include "dataplane/port_claim.h"
#include "tests/support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/test-claim-XXXXXX";
static char lock_dir[64], device[32];

// Names of this process alone: tests may run side by side.
static int setup(void **state)
{
	assert_non_null(mkdtemp(dir));
	snprintf(lock_dir, sizeof(lock_dir), "%s/run", dir);
	snprintf(device, sizeof(device), "%x:0a:00.1", (unsigned)getpid());
	return 0;
}

static int teardown(void **state)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static int claim(const char *of, struct port_claim *ret)
{
	return port_claim(of, lock_dir, ret);
}

static const char *named(char text[64], const char *driver, const char *end)
{
	snprintf(text, 64, "%s,iface=t%d%s", driver, (int)getpid(), end);
	return text;
}

static void a_claimed_interface_is_refused_whatever_the_driver(void **state)
{
	char first[64], second[64], third[64];
	struct port_claim one, two, other;
	assert_int_equal(claim(named(first, "net_af_packet0", ""), &one), 0);
	assert_int_equal(claim(named(second, "net_af_xdp1", ",queue=1"), &two), -EADDRINUSE);
	assert_int_equal(claim(named(third, "net_af_packet1", "x"), &other), 0);
	port_claim_drop(&other);
	port_claim_drop(&one);
	assert_int_equal(claim(second, &two), 0);
	port_claim_drop(&two);
}

static void a_claimed_pci_device_is_refused_however_it_is_spelled(void **state)
{
	char other[64];
	struct port_claim one, two;
	assert_int_equal(claim(device, &one), 0);
	snprintf(other, sizeof(other), "pci:%X:A:0.1,vectorized=1", (unsigned)getpid());
	assert_int_equal(claim(other, &two), -EADDRINUSE);
	assert_int_equal(two.name, -1);
	port_claim_drop(&one);
	assert_int_equal(claim(other, &two), 0);
	port_claim_drop(&two);
}

// Claims the device in a network namespace of its own and waits to be killed.
static pid_t rival(int *ret_rc)
{
	int result[2];
	assert_int_equal(pipe(result), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct port_claim mine;
		int rc = unshare(CLONE_NEWNET) == 0 ? claim(device, &mine) : 1;
		(void)!write(result[1], &rc, sizeof(rc));
		pause();
		_exit(0);
	}
	assert_int_equal(read(result[0], ret_rc, sizeof(*ret_rc)), sizeof(*ret_rc));
	close(result[0]);
	close(result[1]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void a_pci_device_is_claimed_for_all_namespaces_until_the_process_dies(void **state)
{
	struct port_claim mine;
	int rc;
	pid_t first = rival(&rc);
	if (rc == 1) { // not root
		end(first);
		skip();
	}
	assert_int_equal(rc, 0);
	assert_int_equal(claim(device, &mine), -EADDRINUSE);
	end(first);
	assert_int_equal(claim(device, &mine), 0);
	end(rival(&rc));
	assert_int_equal(rc, -EADDRINUSE);
	port_claim_drop(&mine);
}

static void where_nothing_can_be_locked_nothing_is_claimed(void **state)
{
	struct port_claim mine;
	assert_int_equal(port_claim(device, "/proc/none/there", &mine), -ENOENT);
	assert_int_equal(claim(device, &mine), 0); // nothing was left behind
	port_claim_drop(&mine);
}

static void a_name_too_long_is_an_error(void **state)
{
	char name[256];
	struct port_claim none;
	for (size_t i = 0; i < sizeof(name) - 1; i++)
		name[i] = 'x';
	name[sizeof(name) - 1] = 0;
	assert_int_equal(claim(name, &none), -ENAMETOOLONG);
	port_claim_drop(&none);
}

static void a_device_without_an_interface_is_nobodys(void **state)
{
	struct port_claim none;
	assert_int_equal(claim("net_memif0,role=server,socket=/run/a", &none), -ENODEV);
	assert_int_equal(claim("net_ring0", &none), -ENODEV);
}

static void fl_119_a_memif_has_one_client_by_socket_and_id(void **state)
{
	char first[64], second[64], third[64];
	struct port_claim one, two, other;
	snprintf(first, sizeof(first), "net_memif0,role=client,socket=t%d", (int)getpid());
	snprintf(second, sizeof(second), "net_memif5,socket=t%d,id=0", (int)getpid());
	snprintf(third, sizeof(third), "net_memif0,socket=t%d,id=1", (int)getpid());
	assert_int_equal(claim(first, &one), 0);
	assert_int_equal(claim(second, &two), -EADDRINUSE);
	assert_int_equal(claim(third, &other), 0);
	port_claim_drop(&other);
	port_claim_drop(&one);
	assert_int_equal(claim(second, &two), 0);
	port_claim_drop(&two);
}

static void a_memif_whose_name_is_too_long_is_opened_without_a_claim(void **state)
{
	char name[160];
	struct port_claim none;
	snprintf(name, sizeof(name), "net_memif0,role=client,socket=/%0100d", 1);
	assert_int_equal(claim(name, &none), -ENODEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_claimed_interface_is_refused_whatever_the_driver),
		cmocka_unit_test(a_claimed_pci_device_is_refused_however_it_is_spelled),
		cmocka_unit_test(a_pci_device_is_claimed_for_all_namespaces_until_the_process_dies),
		cmocka_unit_test(where_nothing_can_be_locked_nothing_is_claimed),
		cmocka_unit_test(a_name_too_long_is_an_error),
		cmocka_unit_test(a_device_without_an_interface_is_nobodys),
		cmocka_unit_test(fl_119_a_memif_has_one_client_by_socket_and_id),
		cmocka_unit_test(a_memif_whose_name_is_too_long_is_opened_without_a_claim),
	};
	return cmocka_run_group_tests_name("dataplane/port_claim", tests, setup, teardown);
}
