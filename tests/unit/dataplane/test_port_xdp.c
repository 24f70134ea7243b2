// SPDX-License-Identifier: Apache-2.0
// An interface behind AF_XDP that is opened again and again: what its driver keeps each time is not
// missing for ever. The interface is one end of a veth in a network namespace of this process.
#include "dataplane/eal.h"
#include "dataplane/interface.h"
#include "dataplane/port_impl.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define S NS_PER_SECOND
#define FRAME 100
#define N_MBUFS 4096
#define N_OPENINGS 5

static uint64_t now;
static int peer = -1;

static void ignore(void *ctx, int level, const char *line)
{
}

static int setup(void **state)
{
	int core = sched_getcpu();
	struct eal_conf eal = {
		.args = {.memory_mib = 256, .cores = &core, .n_cores = 1}, .log = ignore};
	struct lb_err err;
	now = S;
	if (unshare(CLONE_NEWNET) != 0)
		return 0; // not root
	assert_int_equal(system("ip link add xdpa type veth peer name xdpb &&"
				"ip link set xdpa up && ip link set xdpb up &&"
				"ip link add xdpc up type veth peer name xdpd"),
		0);
	struct sockaddr_ll address = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)interface_find("xdpb")};
	peer = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
	assert_int_equal(bind(peer, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(eal_start(&eal, &err), 0);
	return 0;
}

// A name of its own each time: DPDK keeps those of devices that a process has had.
static struct port *open_port(const char *device)
{
	struct port_conf conf = {.device = device, .n_queues = 1, .n_mbufs = N_MBUFS};
	struct lb_err err = {""};
	if (peer < 0)
		skip();
	struct port *port = port_new(&conf, &err);
	assert_string_equal(err.text, "");
	assert_non_null(port);
	return port;
}

static uint32_t n_rings(void)
{
	uint32_t n = 0;
	char name[RTE_MEMPOOL_NAMESIZE];
	for (unsigned i = 1; i < 4 * N_OPENINGS; i++) {
		snprintf(name, sizeof(name), "ring0-0-%u", i);
		n += rte_mempool_lookup(name) != NULL;
	}
	return n;
}

static void expect_sends(struct port_queue *q)
{
	struct net_device device = port_queue_device(q);
	for (int i = 0; i < 200; i++) {
		uint8_t *frame = device.reserve(device.ctx, FRAME);
		assert_non_null(frame);
		memset(frame, 9, FRAME);
		device.send(device.ctx, FRAME);
	}
	for (int i = 0; port_queue_unsent(q) && i < 1000; i++)
		port_queue_flush(q);
	assert_int_equal(port_queue_unsent(q), 0);
}

// One is held, as by another worker, until the caller frees it.
static struct rte_mbuf *expect_receives(struct port_queue *q)
{
	struct rte_mbuf *got[PORT_BURST], *held = NULL;
	uint8_t frame[FRAME];
	memset(frame, 0xff, sizeof(frame));
	for (int i = 0; !held && i < 5000; i++) {
		(void)!send(peer, frame, sizeof(frame), 0);
		usleep(1000);
		uint32_t n = port_queue_rx(q, got);
		if (n)
			held = got[--n];
		port_queue_done(q, got, n);
	}
	assert_non_null(held);
	return held;
}

static void pass_on_and_take_back(struct port *port, struct port_queue *q)
{
	port_pass_on(port);
	for (int i = 0; !port_is_passed_on(port, now) && i < 10000; i++) {
		(void)port_queue_settle(q);
		usleep(1000);
	}
	assert_true(port_is_passed_on(port, now));
	port_take_back(port, now);
	enum port_event event = PORT_EVENT_NONE;
	for (int i = 0; event != PORT_EVENT_BACK && i < 1000; i++) {
		event = port_watch(port, now += S / 100);
		usleep(10000);
	}
	assert_int_equal(event, PORT_EVENT_BACK);
	assert_true(port_queue_settle(q));
}

// FL-120
static void an_interface_that_is_opened_many_times_has_mbufs_and_those_of_before_go(void **state)
{
	struct port *port = open_port("net_af_xdp0,iface=xdpa");
	struct port_queue *q = port_queue_of(port, 0);
	struct rte_mbuf *held[N_OPENINGS];
	for (int i = 0; i < N_OPENINGS; i++) {
		expect_sends(q);
		held[i] = expect_receives(q);
		pass_on_and_take_back(port, q);
	}
	uint32_t n_made = n_rings();
	assert_true(n_made >= N_OPENINGS);
	(void)port_watch(port, now += 20 * S);
	(void)port_watch(port, now += 20 * S);
	assert_int_equal(n_rings(), n_made); // somebody has a frame of each
	rte_pktmbuf_free_bulk(held, N_OPENINGS);
	(void)port_watch(port, now);
	(void)port_watch(port, now + 10 * S - 1);
	assert_int_equal(n_rings(), n_made);
	(void)port_watch(port, now += 10 * S);
	assert_int_equal(n_rings(), 1); // that of the device
	expect_sends(q);
	rte_pktmbuf_free(expect_receives(q));
	port_free(port);
	assert_int_equal(n_rings(), 0);
}

// FL-120
static void a_queue_that_is_in_use_costs_mbufs_once_however_often_it_is_tried(void **state)
{
	struct port *port = open_port("net_af_xdp1,iface=xdpc");
	static struct port_queue queue;
	struct port other = {
		.conf = {.device = "net_af_xdp2,iface=xdpc", .n_queues = 1, .n_mbufs = N_MBUFS},
		.n_queues = 1,
		.queues = &queue};
	struct lb_err err;
	uint32_t n_used = 0;
	for (int i = 0; i < N_OPENINGS; i++) {
		assert_int_not_equal(port_open(&other, &err), 0);
		port_close(&other, true);
		assert_int_equal(n_rings(), 0);
		if (i == 0)
			n_used = rte_mempool_in_use_count(queue.mbufs);
		assert_int_equal(rte_mempool_in_use_count(queue.mbufs), n_used);
	}
	assert_true(n_used > 0 && n_used < N_MBUFS);
	rte_mempool_free(queue.mbufs);
	port_free(port);
}

RUN_SUITE("dataplane/port_xdp",
	cmocka_unit_test_setup(
		an_interface_that_is_opened_many_times_has_mbufs_and_those_of_before_go, setup),
	cmocka_unit_test(a_queue_that_is_in_use_costs_mbufs_once_however_often_it_is_tried))
