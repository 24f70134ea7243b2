// SPDX-License-Identifier: Apache-2.0
// A port of several devices: what is said of members that cannot be, and what LACP needs of those
// who send and receive. On net_ring, which gives back what is sent to it: a bond of two has itself
// as its partner.
#include "dataplane/eal.h"
#include "dataplane/port.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PATIENCE 500 // turns of 10 ms

static void ignore(void *ctx, int level, const char *line)
{
}

static int setup(void **state)
{
	static bool started; // EAL starts once
	int core = sched_getcpu();
	struct eal_conf eal = {
		.args = {.memory_mib = 128, .cores = &core, .n_cores = 1}, .log = ignore};
	struct lb_err err;
	if (!started)
		assert_int_equal(eal_start(&eal, &err), 0);
	started = true;
	return 0;
}

static struct port *open_bond(
	unsigned index, const char *first, const char *second, struct lb_err *err)
{
	static char name[32];
	static const char *members[2];
	snprintf(name, sizeof(name), "net_bonding%u", index);
	members[0] = first;
	members[1] = second;
	struct port_conf conf = {.index = index,
		.device = name,
		.bond = PORT_BOND_8023AD,
		.members = members,
		.n_members = 2,
		.n_queues = 1,
		.n_mbufs = 4095};
	return port_new(&conf, err);
}

// A turn of a worker that has nothing to send, and one of the control thread.
static void turn(struct port *port, struct port_queue *q, uint64_t *now_ns)
{
	struct rte_mbuf *frames[PORT_BURST];
	uint32_t n = port_queue_rx(q, frames);
	port_queue_done(q, frames, n);
	assert_int_equal(port_queue_flush(q), 0);
	port_queue_watch(q);
	(void)port_watch(port, *now_ns += 10 * NS_PER_MS);
	nanosleep(&(struct timespec){.tv_nsec = 10 * NS_PER_MS}, NULL);
}

// FL-91
static void what_is_wrong_with_a_member_is_said_of_its_field(void **state)
{
	struct lb_err err;
	assert_null(open_bond(3, "net_ring0", "net_nosuch0", &err));
	assert_non_null(strstr(err.text, "ports[3].bond.members[1]: net_nosuch0: cannot open: DPDK "
					 "has no driver of this name"));
	assert_null(open_bond(3, "net_af_packet7,iface=nosuch", "net_ring5", &err));
	assert_non_null(strstr(err.text, "ports[3].bond.members[0]: net_af_packet7: there is no "
					 "interface nosuch in this network namespace"));
}

// FL-96: DPDK's driver sends LACP's frames along with a burst, be it an empty one.
static void lacp_speaks_while_nobody_sends(void **state)
{
	struct lb_err err = {.text = ""};
	struct port *port = open_bond(4, "net_ring1", "net_ring2", &err);
	assert_string_equal(err.text, "");
	assert_int_equal(port_n_members(port), 2);
	assert_string_equal(port_driver(port), "net_bonding");
	struct port_queue *q = port_queue_of(port, 0);
	uint64_t now_ns = 1;
	int turns = 0;
	while (!port_member_of(port, 0).tx_frames || !port_member_of(port, 1).tx_frames) {
		assert_true(turns++ < PATIENCE);
		turn(port, q, &now_ns);
	}
	assert_string_equal(port_member_of(port, 1).driver, "net_ring");
	port_free(port);
}

// FL-95
static void a_member_without_a_link_is_told_and_counted(void **state)
{
	struct lb_err err = {.text = ""};
	struct port *port = open_bond(5, "net_ring3", "net_ring4", &err);
	assert_string_equal(err.text, "");
	struct port_queue *q = port_queue_of(port, 0);
	uint16_t id;
	uint64_t now_ns = 1;
	int turns = 0;
	while (port_member_of(port, 1).state <= PORT_MEMBER_DOWN) {
		assert_true(turns++ < PATIENCE);
		turn(port, q, &now_ns);
	}
	assert_int_equal(port_member_of(port, 1).n_downs, 0);
	assert_int_equal(rte_eth_dev_get_port_by_name("net_ring4", &id), 0);
	assert_int_equal(rte_eth_dev_set_link_down(id), 0);
	turn(port, q, &now_ns);
	assert_int_equal(port_member_of(port, 1).state, PORT_MEMBER_DOWN);
	assert_int_equal(port_member_of(port, 1).n_downs, 1);
	assert_int_equal(port_member_of(port, 1).since_ns, now_ns);
	assert_true(port_member_of(port, 0).state > PORT_MEMBER_DOWN);
	port_free(port);
}

#define CASE(f) cmocka_unit_test_setup(f, setup)
RUN_SUITE("dataplane/port_bond", CASE(what_is_wrong_with_a_member_is_said_of_its_field),
	CASE(lacp_speaks_while_nobody_sends), CASE(a_member_without_a_link_is_told_and_counted))
