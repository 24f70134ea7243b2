// SPDX-License-Identifier: Apache-2.0
// An interface behind AF_XDP that is opened again and again: what its driver keeps each time is not
// missing for ever. The interface is one end of a veth in a network namespace of this process.
#include "dataplane/eal.h"
#include "dataplane/interface.h"
#include "dataplane/port_impl.h"
#include "dataplane/xsk_map.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#include <dirent.h>
#include <errno.h>
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
#define N_TRIES 400 // in all, 20 ms apart

#define MAKE_XDPE                                                                                  \
	"ip link add xdpe type veth peer name xdpf && ip link set xdpf up && ip link set xdpe up"

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
				"ip link add xdpc up type veth peer name xdpd && " MAKE_XDPE),
		0);
	struct sockaddr_ll address = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)interface_find("xdpb")};
	peer = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
	assert_int_equal(bind(peer, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(eal_start(&eal, &err), 0);
	return 0;
}

// A name of its own each time: DPDK keeps those of devices that a process has had. Again while the
// kernel has not freed the queue that was closed last.
static struct port *open_port(const char *interface)
{
	static char names[N_TRIES][32]; // borrowed by ports
	static unsigned n_names;
	struct port *port = NULL;
	struct lb_err err = {""};
	if (peer < 0)
		skip();
	while (!port && n_names < N_TRIES) {
		char *name = names[n_names++];
		snprintf(name, sizeof(names[0]), "net_af_xdp%u,iface=%s", 100 + n_names, interface);
		struct port_conf conf = {.device = name, .n_queues = 1, .n_mbufs = N_MBUFS};
		port = port_new(&conf, &err);
		if (!port)
			usleep(20000);
	}
	if (!port)
		fail_msg("%s", err.text);
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
	struct port *port = open_port("xdpa");
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
	struct port *port = open_port("xdpc");
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

static uint32_t n_sent, n_came; // frames of the peer's

static void peer_sends(void)
{
	uint8_t frame[FRAME];
	memset(frame, 0xfd, sizeof(frame));
	assert_int_equal(send(peer, frame, sizeof(frame), 0), FRAME);
	n_sent++;
}

// As a worker would.
static void take_a_turn(struct port_queue *q)
{
	struct rte_mbuf *got[PORT_BURST];
	if (!port_queue_is_live(q)) {
		(void)port_queue_settle(q);
		return;
	}
	uint32_t n = port_queue_rx(q, got);
	for (uint32_t i = 0; i < n; i++)
		n_came += rte_pktmbuf_mtod(got[i], uint8_t *)[0] == 0xfd;
	port_queue_done(q, got, n);
}

// Frames come all the time: 50 wait when it begins.
static void pass_on_under_load(struct port *port, struct port_queue *q)
{
	n_sent = n_came = 0;
	for (int i = 0; i < 50; i++)
		peer_sends();
	port_pass_on(port);
	for (int i = 0; !port_is_passed_on(port, now) && i < 10000; i++) {
		peer_sends();
		take_a_turn(q);
		assert_int_not_equal(q->phase, QUEUE_RESTS);
		usleep(1000);
	}
	assert_true(port_is_passed_on(port, now));
	for (int i = 0; i < 50; i++) {
		peer_sends();
		take_a_turn(q);
		usleep(1000);
	}
}

static bool has_stopgap(void)
{
	uint16_t id;
	return rte_eth_dev_get_port_by_name("net_af_packet_gap0", &id) == 0;
}

static int heard = -1; // a packet socket of the interface, while a device is started
static int n_heard;

int __real_rte_eth_dev_start(uint16_t id);
int __wrap_rte_eth_dev_start(uint16_t id);

static bool start_fails;

static void begin_to_hear(void)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)interface_find("xdpa")};
	n_heard = 0;
	heard = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
	assert_int_equal(bind(heard, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void expect_heard(void)
{
	close(heard);
	heard = -1;
	assert_int_equal(n_heard, 1);
}

int __wrap_rte_eth_dev_start(uint16_t id)
{
	uint8_t frame[FRAME];
	int rc = start_fails ? -EBUSY : __real_rte_eth_dev_start(id);
	if (heard < 0)
		return rc;
	while (recv(heard, frame, sizeof(frame), MSG_DONTWAIT) > 0)
		;
	peer_sends();
	for (int i = 0; i < 100 && !n_heard; i++) {
		usleep(1000);
		n_heard += recv(heard, frame, sizeof(frame), MSG_DONTWAIT) == FRAME &&
		           frame[0] == 0xfd;
	}
	return rc;
}

static const int same[NET_MAX_PORTS] = {0, -1, -1, -1, -1, -1, -1, -1};

struct pair {
	struct relays *ours, *its;
	struct relay_end *end, *far;
};

static struct pair join(struct port_queue *q)
{
	static const struct relay_port there = {"net_af_xdp,iface=xdpa", {2}, 1500, 0};
	struct pair p = {.ours = relays_new(1), .its = relays_new(1)};
	struct relay_memory a, b;
	struct lb_err err = {""};
	p.end = relays_end(p.ours, 0);
	p.far = relays_end(p.its, 0);
	assert_int_equal(relay_memory_make(&a, &there, 1, 1, 1, &err), 0);
	assert_int_equal(relay_memory_map(&b, a.fd, &err), 0);
	assert_int_equal(relays_set(p.ours, RELAY_TO_NEWER, &a, same), 0);
	assert_int_equal(relays_set(p.its, RELAY_TO_OLDER, &b, same), 0);
	relay_end_follow(p.end);
	relay_end_follow(p.far);
	port_queue_set_relay(q, p.end, 0);
	return p;
}

static void fl_124_frames_come_and_go_while_an_interface_changes_hands(void **state)
{
	struct port *port = open_port("xdpa");
	struct port_queue *q = port_queue_of(port, 0);
	take_a_turn(q);
	port_get_ready(port);
	assert_true(has_stopgap());
	pass_on_under_load(port, q);
	// The veth itself loses some when its XDP program goes.
	assert_in_range(n_came, n_sent - n_sent / 10, n_sent);
	expect_sends(q);
	assert_int_equal(port_queue_far(q), RELAY_NONE);
	port_free(port);
	assert_false(has_stopgap());
}

static void fl_125_a_queue_goes_far_as_soon_as_the_newer_process_has_received(void **state)
{
	uint8_t frame[2048] = {0};
	enum relay_way way;
	struct port *port = open_port("xdpa");
	struct port_queue *q = port_queue_of(port, 0);
	struct pair p = join(q);
	port_get_ready(port);
	assert_true(relay_end_give(p.far, RELAY_TO_OLDER, 0, RELAY_RECEIVED, false, frame, FRAME));
	assert_false(port_queue_yield(q)); // it has the interface
	assert_int_equal(
		relay_end_take(p.end, RELAY_TO_NEWER, 0, false, frame, sizeof(frame), &way), FRAME);
	pass_on_under_load(port, q);
	assert_true(relay_end_give(p.far, RELAY_TO_OLDER, 0, RELAY_TO_SEND, false, frame, FRAME));
	assert_false(port_queue_yield(q));
	assert_int_equal(
		relay_end_take(p.end, RELAY_TO_NEWER, 0, true, frame, sizeof(frame), &way), FRAME);
	assert_true(relay_end_give(p.far, RELAY_TO_OLDER, 0, RELAY_RECEIVED, false, frame, FRAME));
	assert_true(port_queue_yield(q));
	assert_int_equal(port_queue_far(q), RELAY_TO_NEWER);
	struct rte_mbuf *got[PORT_BURST];
	assert_int_equal(port_queue_rx_far(q, got), 1); // nothing is lost
	rte_pktmbuf_free(got[0]);
	port_free(port);
	relays_free(p.ours);
	relays_free(p.its);
}

// The peer sends all the time, and the worker is never without a device. Returns when it has the
// interface's again.
static void come_back_under_load(struct port *port, struct port_queue *q)
{
	enum port_event event = PORT_EVENT_NONE;
	for (int i = 0; event != PORT_EVENT_BACK && i < 2000; i++) {
		peer_sends();
		take_a_turn(q);
		assert_true(port_queue_is_live(q) || q->phase == QUEUE_SWAPPING);
		event = port_watch(port, now += S / 100);
		usleep(1000);
	}
	assert_int_equal(event, PORT_EVENT_BACK);
	assert_false(has_stopgap());
	assert_int_equal(q->port_id, port->id);
	take_a_turn(q);
	expect_sends(q);
	rte_pktmbuf_free(expect_receives(q));
}

static void fl_129_frames_come_and_go_until_an_interface_is_back(void **state)
{
	struct port *port = open_port("xdpa");
	struct port_queue *q = port_queue_of(port, 0);
	port_get_ready(port);
	port_take_back(port, now); // before anything else
	assert_false(has_stopgap());
	expect_sends(q);
	port_get_ready(port);
	pass_on_under_load(port, q);
	assert_in_range(n_came, n_sent - n_sent / 10, n_sent);
	port_take_back(port, now);
	assert_int_equal(port_status(port)->state, PORT_UP);
	port_get_ready(port); // another one comes, and goes
	port_take_back(port, now);
	expect_sends(q);
	n_sent = n_came = 0;
	begin_to_hear();
	come_back_under_load(port, q);
	expect_heard(); // before the worker could read the device
	assert_in_range(n_came, n_sent - n_sent / 10 - 2, n_sent);
	port_get_ready(port);
	assert_true(has_stopgap()); // the next time as well
	pass_on_under_load(port, q);
	port_free(port);
	assert_false(has_stopgap());
}

static void fl_129_a_queue_behind_the_relay_has_frames_before_the_interface_is_back(void **state)
{
	uint8_t frame[FRAME] = {0};
	struct port *port = open_port("xdpa");
	struct port_queue *q = port_queue_of(port, 0);
	struct pair p = join(q);
	port_get_ready(port);
	for (int i = 0; i < 2; i++) { // as often as one likes
		pass_on_under_load(port, q);
		assert_true(relay_end_give(
			p.far, RELAY_TO_OLDER, 0, RELAY_RECEIVED, false, frame, FRAME));
		while (port_queue_far(q) == RELAY_NONE)
			assert_true(port_queue_yield(q));
		port_take_back(port, now);
		assert_true(port_queue_settle(q));
		assert_false(port->opened);
		expect_sends(q);
		rte_pktmbuf_free(expect_receives(q));
	}
	relays_drop(p.ours, RELAY_TO_NEWER);
	relay_end_follow(p.end);
	come_back_under_load(port, q);
	port_free(port);
	relays_free(p.ours);
	relays_free(p.its);
}

static void fl_129_frames_come_and_go_however_long_an_interface_cannot_be_had(void **state)
{
	struct port *port = open_port("xdpa");
	struct port_queue *q = port_queue_of(port, 0);
	uint32_t n_refused = 0;
	port_get_ready(port);
	pass_on_under_load(port, q);
	port_take_back(port, now);
	start_fails = true;
	for (int i = 0; i < 100; i++) {
		n_refused += port_watch(port, now += S / 20) == PORT_EVENT_REFUSED;
		assert_true(port_queue_is_live(q));
		take_a_turn(q);
	}
	start_fails = false;
	assert_true(n_refused > 0);
	assert_int_equal(port_status(port)->state, PORT_GONE); // for who looks
	expect_sends(q);
	rte_pktmbuf_free(expect_receives(q));
	now += 20 * S;
	come_back_under_load(port, q);
	port_free(port);
}

static void fl_105_what_another_process_had_is_tried_soon_again_also_behind_the_first_second(
	void **state)
{
	struct port *port = open_port("xdpa");
	port_pass_on(port); // nothing stands in
	for (int i = 0; !port_is_passed_on(port, now) && i < 10000; i++) {
		(void)port_queue_settle(port_queue_of(port, 0));
		usleep(1000);
	}
	port_take_back(port, now);
	start_fails = true;
	while (now < port->hurry_ns) {
		(void)port_watch(port, now);
		assert_true(port->retry_ns <= now);
		now += S / 4;
	}
	for (uint64_t wait_ns = S / 10; wait_ns < 2 * S; wait_ns *= 2) {
		(void)port_watch(port, now);
		assert_int_equal(port->retry_ns, now + wait_ns);
		now = port->retry_ns;
	}
	start_fails = false;
	port_free(port);
}

// opened: the device is there, and the worker has still what stands in.
static void lose_what_is_on_its_way_back(bool opened)
{
	struct port *port = open_port("xdpe");
	struct port_queue *q = port_queue_of(port, 0);
	uint64_t n_losses = port_status(port)->n_losses;
	port_get_ready(port);
	pass_on_under_load(port, q);
	port_take_back(port, now);
	for (int i = 0; opened && !port->opened && i < 10000; i++) {
		(void)port_watch(port, now += S / 100);
		usleep(1000);
	}
	assert_int_equal(port->opened, opened);
	assert_int_equal(system("ip link del xdpe"), 0);
	assert_int_equal(port_watch(port, now), PORT_EVENT_LOST);
	assert_int_equal(port_status(port)->n_losses, n_losses + 1);
	for (int i = 0; has_stopgap() && i < 10000; i++) {
		take_a_turn(q);
		(void)port_watch(port, now += S / 1000);
		usleep(1000);
	}
	assert_false(has_stopgap() || port_queue_is_live(q));
	assert_int_equal(system(MAKE_XDPE), 0);
	enum port_event event = PORT_EVENT_NONE;
	for (int i = 0; event != PORT_EVENT_BACK && i < 10000; i++) {
		event = port_watch(port, now += S / 10);
		usleep(1000);
	}
	assert_int_equal(event, PORT_EVENT_BACK);
	assert_true(port_queue_settle(q));
	expect_sends(q);
	port_free(port);
}

static void fl_131_an_interface_that_goes_before_it_is_back_is_lost(void **state)
{
	lose_what_is_on_its_way_back(false);
}

static void fl_131_an_interface_that_goes_before_workers_use_it_again_is_lost(void **state)
{
	lose_what_is_on_its_way_back(true);
}

// Its worker's next word would take back that it is to let go.
static void fl_131_an_interface_is_lost_when_its_worker_has_begun_with_what_stands_in(void **state)
{
	uint8_t frame[FRAME] = {0};
	struct port *port = open_port("xdpe");
	struct port_queue *q = port_queue_of(port, 0);
	struct pair p = join(q);
	port_get_ready(port);
	pass_on_under_load(port, q);
	assert_true(relay_end_give(p.far, RELAY_TO_OLDER, 0, RELAY_RECEIVED, false, frame, FRAME));
	while (port_queue_far(q) == RELAY_NONE)
		assert_true(port_queue_yield(q));
	port_take_back(port, now);
	assert_int_equal(system("ip link del xdpe"), 0);
	assert_int_equal(port_watch(port, now), PORT_EVENT_NONE);
	assert_true(port_queue_settle(q));
	assert_int_equal(port_watch(port, now), PORT_EVENT_LOST);
	port_free(port);
	relays_free(p.ours);
	relays_free(p.its);
	assert_int_equal(system(MAKE_XDPE), 0);
}

static uint32_t n_bpf_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint32_t n = 0;
	char path[64], is[64];
	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));) {
		memset(is, 0, sizeof(is));
		snprintf(path, sizeof(path), "/proc/self/fd/%.20s", e->d_name);
		n += readlink(path, is, sizeof(is) - 1) > 0 &&
		     strncmp(is, "anon_inode:bpf-", strlen("anon_inode:bpf-")) == 0;
	}
	closedir(dir);
	return n;
}

static void fl_132_an_interface_leaves_no_descriptors_of_bpf_however_often_it_is_opened(
	void **state)
{
	uint32_t n_before = n_bpf_fds();
	struct port *port = open_port("xdpa");
	uint32_t n = n_bpf_fds();
	assert_true(n > n_before);
	for (int i = 0; i < N_OPENINGS; i++) {
		pass_on_and_take_back(port, port_queue_of(port, 0));
		assert_true(n_bpf_fds() <= n);
	}
	port_free(port);
	assert_int_equal(n_bpf_fds(), n_before);
}

// FL-124
static void a_batch_that_waits_when_an_interface_changes_hands_is_sent(void **state)
{
	struct port *port = open_port("xdpa");
	struct port_queue *q = port_queue_of(port, 0);
	struct net_device device = port_queue_device(q);
	port_get_ready(port);
	for (int i = 0; i < 10; i++) {
		assert_non_null(device.reserve(device.ctx, FRAME));
		device.send(device.ctx, FRAME);
	}
	port_pass_on(port);
	assert_false(port_is_passed_on(port, now));
	(void)port_queue_flush(q); // the turn ends
	assert_int_equal(q->counters[PORT_tx_dropped], 0);
	take_a_turn(q);
	assert_int_equal(port_queue_flush(q), 10);
	port_free(port);
}

// FL-125
static void a_queue_takes_what_came_to_its_stand_in_before_it_goes_far(void **state)
{
	uint8_t frame[FRAME] = {0};
	struct port *port = open_port("xdpa");
	struct port_queue *q = port_queue_of(port, 0);
	struct net_device device = port_queue_device(q);
	struct pair p = join(q);
	port_get_ready(port);
	pass_on_under_load(port, q);
	while (ring_marks_look(&q->marks, 1).n)
		take_a_turn(q);
	assert_true(relay_end_give(p.far, RELAY_TO_OLDER, 0, RELAY_RECEIVED, false, frame, FRAME));
	n_came = 0;
	for (int i = 0; i < PORT_BURST; i++)
		peer_sends();
	usleep(10000);
	q->vlan = 7;
	assert_non_null(device.reserve(device.ctx, FRAME));
	device.send(device.ctx, FRAME);
	assert_true(port_queue_yield(q)); // not a frame to send is taken
	assert_int_equal(port_queue_far(q), RELAY_NONE);
	q->vlan = 0;
	while (ring_marks_look(&q->marks, 1).n)
		take_a_turn(q);
	assert_int_equal(n_came, PORT_BURST);
	assert_true(port_queue_yield(q));
	assert_int_equal(port_queue_far(q), RELAY_TO_NEWER);
	assert_int_equal(port_queue_unsent(q), 0); // it has a tag, which the relay does not take
	assert_int_equal(q->counters[PORT_tx_dropped], 0);
	port_free(port);
	relays_free(p.ours);
	relays_free(p.its);
}

// FL-125
static void a_queue_that_is_never_empty_goes_far_all_the_same(void **state)
{
	uint8_t frame[FRAME] = {0};
	struct port *port = open_port("xdpa");
	struct port_queue *q = port_queue_of(port, 0);
	struct pair p = join(q);
	port_get_ready(port);
	pass_on_under_load(port, q);
	assert_true(relay_end_give(p.far, RELAY_TO_OLDER, 0, RELAY_RECEIVED, false, frame, FRAME));
	uint32_t n_turns = 0;
	for (; port_queue_far(q) == RELAY_NONE; n_turns++) {
		peer_sends();
		usleep(100);
		assert_true(port_queue_yield(q));
	}
	assert_in_range(n_turns, 2, 100);
	port_free(port);
	relays_free(p.ours);
	relays_free(p.its);
}

// FL-129: so it would be with frames of the interface's other queues, which the program passes.
static void a_stand_in_that_is_never_empty_is_left_all_the_same(void **state)
{
	struct port *port = open_port("xdpa");
	struct port_queue *q = port_queue_of(port, 0);
	port_get_ready(port);
	pass_on_under_load(port, q);
	port_take_back(port, now);
	for (int i = 0; !port->opened && i < 10000; i++) {
		take_a_turn(q);
		(void)port_watch(port, now += S / 100);
		usleep(1000);
	}
	assert_true(port->opened && has_stopgap());
	assert_int_equal(xsk_map_empty(port->xsk_map, 0, 1), 0);
	for (int i = 0; has_stopgap() && i < 2000; i++) {
		for (int k = 0; k < 2 * PORT_BURST; k++)
			peer_sends();
		take_a_turn(q);
		(void)port_watch(port, now += S / 1000);
	}
	assert_false(has_stopgap());
	assert_int_equal(q->port_id, port->id);
	expect_sends(q);
	port_free(port);
}

// While it is being closed. Returns when it is passed on.
static void pass_on_again(struct port *port, struct port_queue *q)
{
	port_pass_on(port);
	for (int i = 0; !port_is_passed_on(port, now) && i < 10000; i++) {
		take_a_turn(q);
		usleep(1000);
	}
	assert_true(port_is_passed_on(port, now));
}

static void fl_130_a_newer_process_may_fail_twice_while_an_interface_is_being_closed(void **state)
{
	struct port *port = open_port("xdpa");
	struct port_queue *q = port_queue_of(port, 0);
	port_get_ready(port);
	port_pass_on(port);
	for (int i = 0; !port->closing && i < 10000; i++) {
		(void)port_is_passed_on(port, now);
		take_a_turn(q);
	}
	assert_true(port->closing && port_queue_is_live(q));
	port_take_back(port, now);
	port_get_ready(port); // for another one
	port_take_back(port, now);
	assert_true(has_stopgap()); // the worker has it
	port_get_ready(port);
	pass_on_again(port, q);
	assert_true(has_stopgap() && port_queue_is_live(q)); // until the newer one has it
	expect_sends(q);
	rte_pktmbuf_free(expect_receives(q));
	port_free(port);
}

static void fl_130_a_newer_process_that_comes_before_an_interface_is_back_finds_a_stand_in(
	void **state)
{
	struct port *port = open_port("xdpa");
	struct port_queue *q = port_queue_of(port, 0);
	enum port_event event = PORT_EVENT_NONE;
	port_get_ready(port);
	pass_on_under_load(port, q);
	port_take_back(port, now);
	port_get_ready(port);
	for (int i = 0; event != PORT_EVENT_BACK && i < 2000; i++) {
		take_a_turn(q);
		event = port_watch(port, now += S / 100);
		usleep(1000);
	}
	assert_int_equal(event, PORT_EVENT_BACK);
	assert_true(has_stopgap());
	pass_on_under_load(port, q);
	assert_true(port_queue_is_live(q));
	expect_sends(q);
	port_free(port);
	assert_false(has_stopgap());
}

static void fl_126_an_interface_that_is_being_closed_gets_no_stand_in(void **state)
{
	struct port *port = open_port("xdpa");
	struct port_queue *q = port_queue_of(port, 0);
	port_pass_on(port);
	assert_false(port_is_passed_on(port, now));
	port_take_back(port, now);
	port_get_ready(port);
	assert_false(has_stopgap());
	pass_on_again(port, q);
	assert_int_equal(port_queue_far(q), RELAY_TO_NEWER);
	port_free(port);
}

static void fl_128_a_newer_process_has_frames_when_its_workers_can_read_them(void **state)
{
	static const struct relay_port there = {"net_af_xdp,iface=xdpa", {2}, 1500, 0};
	struct port_conf conf = {.device = "net_af_xdp11,iface=xdpa",
		.n_queues = 1,
		.n_mbufs = N_MBUFS,
		.relayed = &there};
	struct lb_err err = {""};
	if (peer < 0)
		skip();
	struct port *port = port_new(&conf, &err);
	assert_non_null(port);
	begin_to_hear();
	assert_int_equal(port_take(port, &err), 0);
	expect_heard(); // the older one's, if it had a socket there
	assert_true(port_queue_settle(port_queue_of(port, 0)));
	rte_pktmbuf_free(expect_receives(port_queue_of(port, 0)));
	port_free(port);
}

RUN_SUITE("dataplane/port_xdp",
	cmocka_unit_test_setup(
		an_interface_that_is_opened_many_times_has_mbufs_and_those_of_before_go, setup),
	cmocka_unit_test(a_queue_that_is_in_use_costs_mbufs_once_however_often_it_is_tried),
	cmocka_unit_test(fl_124_frames_come_and_go_while_an_interface_changes_hands),
	cmocka_unit_test(fl_125_a_queue_goes_far_as_soon_as_the_newer_process_has_received),
	cmocka_unit_test(fl_129_frames_come_and_go_until_an_interface_is_back),
	cmocka_unit_test(fl_129_a_queue_behind_the_relay_has_frames_before_the_interface_is_back),
	cmocka_unit_test(fl_129_frames_come_and_go_however_long_an_interface_cannot_be_had),
	cmocka_unit_test(
		fl_105_what_another_process_had_is_tried_soon_again_also_behind_the_first_second),
	cmocka_unit_test(fl_131_an_interface_that_goes_before_it_is_back_is_lost),
	cmocka_unit_test(fl_131_an_interface_that_goes_before_workers_use_it_again_is_lost),
	cmocka_unit_test(fl_131_an_interface_is_lost_when_its_worker_has_begun_with_what_stands_in),
	cmocka_unit_test(
		fl_132_an_interface_leaves_no_descriptors_of_bpf_however_often_it_is_opened),
	cmocka_unit_test(a_batch_that_waits_when_an_interface_changes_hands_is_sent),
	cmocka_unit_test(a_queue_takes_what_came_to_its_stand_in_before_it_goes_far),
	cmocka_unit_test(a_queue_that_is_never_empty_goes_far_all_the_same),
	cmocka_unit_test(a_stand_in_that_is_never_empty_is_left_all_the_same),
	cmocka_unit_test(fl_130_a_newer_process_may_fail_twice_while_an_interface_is_being_closed),
	cmocka_unit_test(
		fl_130_a_newer_process_that_comes_before_an_interface_is_back_finds_a_stand_in),
	cmocka_unit_test(fl_126_an_interface_that_is_being_closed_gets_no_stand_in),
	cmocka_unit_test(fl_128_a_newer_process_has_frames_when_its_workers_can_read_them))
