// SPDX-License-Identifier: Apache-2.0
// Queues that an interface behind AF_XDP lacks: one end of a veth in a network namespace of this
// process.
#include "dataplane/eal.h"
#include "dataplane/port_impl.h"
#include "tests/support/check.h"

#include <sched.h>
#include <stdlib.h>

#define N_MBUFS 4096

static bool is_root;

static void ignore(void *ctx, int level, const char *line)
{
}

static int setup(void **state)
{
	int core = sched_getcpu();
	struct eal_conf eal = {
		.args = {.memory_mib = 256, .cores = &core, .n_cores = 1}, .log = ignore};
	struct lb_err err;
	if (unshare(CLONE_NEWNET) != 0)
		return 0;
	assert_int_equal(system("ip link add xdph up type veth peer name xdpha"), 0);
	assert_int_equal(eal_start(&eal, &err), 0);
	is_root = true;
	return 0;
}

// DPDK's driver says no more than that it cannot.
static void fl_153_a_queue_that_an_interface_lacks_is_told(void **state)
{
	struct lb_err err = {""};
	struct port_conf conf = {.device = "net_af_xdp3,iface=xdph,start_queue=1",
		.n_queues = 1,
		.n_mbufs = N_MBUFS};
	if (!is_root)
		skip();
	assert_null(port_new(&conf, &err));
	assert_string_equal(err.text, "ports[0].device: net_af_xdp3: xdph has 1 queues for 1 "
				      "workers, from start_queue=1 on; if its driver can have "
				      "more: ethtool -L xdph combined 2");
}

RUN_SUITE("dataplane/xdp_queues",
	cmocka_unit_test_setup(fl_153_a_queue_that_an_interface_lacks_is_told, setup))
