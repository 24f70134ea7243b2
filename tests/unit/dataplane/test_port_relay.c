// SPDX-License-Identifier: Apache-2.0
// A port whose device goes to another process and comes back, on net_ring, which gives back what is
// sent to it; the other process is this one, too, and so is the worker.
#include "dataplane/eal.h"
#include "dataplane/port_impl.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FRAME 100
#define S NS_PER_SECOND
static const struct relay_port there = {"0000:03:00.0", {2, 0, 0, 0, 0, 7}, 1500, 7};
static const int numbers[NET_MAX_PORTS] = {0, -1, -1, -1, -1, -1, -1, -1};

static struct port *port;
static struct port_queue *queue;
static struct relays *ours, *its;
static struct relay_end *end, *far;
static uint64_t now;

static void ignore(void *ctx, int level, const char *line)
{
}

static void join_both(enum relay_side side)
{
	struct relay_memory a, b;
	struct lb_err err = {""};
	enum relay_side back = side == RELAY_TO_OLDER ? RELAY_TO_NEWER : RELAY_TO_OLDER;
	assert_int_equal(relay_memory_make(&a, &there, 1, 1, 1, &err), 0);
	assert_int_equal(relay_memory_map(&b, a.fd, &err), 0);
	assert_int_equal(relays_set(ours, side, &a, numbers), 0);
	assert_int_equal(relays_set(its, back, &b, numbers), 0);
	relay_end_follow(end);
	relay_end_follow(far);
}

static int setup(void **state)
{
	static bool has_eal;
	int core = sched_getcpu();
	struct eal_conf eal = {
		.args = {.memory_mib = 64, .cores = &core, .n_cores = 1}, .log = ignore};
	struct lb_err err;
	if (!has_eal)
		assert_int_equal(eal_start(&eal, &err), 0);
	has_eal = true;
	now = S;
	ours = relays_new(1);
	its = relays_new(1);
	end = relays_end(ours, 0);
	far = relays_end(its, 0);
	return 0;
}

static int teardown(void **state)
{
	port_free(port);
	relays_free(ours);
	relays_free(its);
	return 0;
}

static void open_port(const char *device, const struct relay_port *relayed)
{
	struct port_conf conf = {
		.device = device, .n_queues = 1, .n_mbufs = 2048, .relayed = relayed, .vlan = 7};
	struct lb_err err = {""};
	port = port_new(&conf, &err);
	assert_string_equal(err.text, "");
	assert_non_null(port);
	queue = port_queue_of(port, 0);
	port_queue_set_relay(queue, end, 0);
}

// Frames in a relay have no tag: those of one VLAN would leave in another.
static void fl_109_the_vlan_is_the_older_processes(void **state)
{
	struct relay_port other = there;
	struct lb_err err = {""};
	other.vlan = 8;
	struct port_conf conf = {
		.device = there.name, .n_queues = 1, .n_mbufs = 2048, .relayed = &other, .vlan = 7};
	assert_null(port_new(&conf, &err));
	assert_string_equal(err.text, "ports[0].vlan: 7, and the older process has 8");
}

// As two processes would drive it.
static void fl_101_a_card_that_another_process_claims_is_refused_to_who_follows_one(void **state)
{
	struct lb_err err = {""};
	struct port_claim other = PORT_CLAIM_NONE;
	struct port_conf conf = {
		.device = "0000:7f:1f.7", .n_queues = 1, .n_mbufs = 2048, .shared = true};
	if (port_claim(conf.device, PORT_CLAIM_DIR, &other) != 0)
		skip(); // it may not make the folder
	assert_null(port_new(&conf, &err));
	assert_non_null(strstr(err.text, "another process drives it"));
	port_claim_drop(&other);
}

static void send_one(void)
{
	struct net_device device = port_queue_device(queue);
	uint8_t *frame = device.reserve(device.ctx, FRAME);
	assert_non_null(frame);
	memset(frame, 9, FRAME);
	device.send(device.ctx, FRAME);
	port_queue_flush(queue);
}

static void pass_on(void)
{
	port_pass_on(port);
	for (int i = 0; !port_is_passed_on(port, now) && i < 10000; i++) {
		if (!port_queue_is_live(queue))
			assert_false(port_queue_settle(queue));
		usleep(1000);
		now += S / 5;
	}
	assert_true(port_is_passed_on(port, now));
	assert_false(port_queue_settle(queue));
}

// Without its tag: that is the wire's.
static void expect_goes_by_relay(enum relay_side side)
{
	uint8_t frame[2048];
	enum relay_way way;
	enum relay_side back = side == RELAY_TO_OLDER ? RELAY_TO_NEWER : RELAY_TO_OLDER;
	assert_false(port_queue_is_live(queue));
	assert_int_equal(port_queue_far(queue), side);
	send_one();
	assert_int_equal(relay_end_take(far, back, 0, true, frame, sizeof(frame), &way), FRAME);
	assert_int_equal(frame[FRAME - 1], 9);
	struct rte_mbuf *got[PORT_BURST];
	assert_true(relay_end_give(far, back, 0, RELAY_RECEIVED, false, frame, FRAME));
	assert_true(relay_end_give(far, back, 0, RELAY_RECEIVED_UNMADE, false, frame, FRAME));
	assert_int_equal(port_queue_rx_far(queue, got), 2);
	assert_int_equal(rte_pktmbuf_pkt_len(got[0]), FRAME);
	assert_false(port_frame_is_verified(got[0]));
	assert_true(port_frame_is_unmade(got[1]));
	port_queue_done(queue, got, 2);
	assert_int_equal(port_queue_rx_far(queue, got), 0);
	assert_int_equal(port_watch(port, now), PORT_EVENT_NONE);
	assert_int_equal(port_status(port)->state, PORT_UP);
}

static void expect_has_device(void)
{
	struct rte_mbuf *got[PORT_BURST];
	assert_true(port_queue_is_live(queue));
	assert_int_equal(port_queue_far(queue), RELAY_NONE);
	send_one();
	assert_int_equal(port_queue_rx(queue, got), 1); // with the tag, on the way
	assert_int_equal(rte_pktmbuf_pkt_len(got[0]), FRAME);
	port_queue_done(queue, got, 1);
}

static void fl_102_a_port_begins_behind_the_relay_and_takes_the_device_later(void **state)
{
	struct lb_err err = {""};
	join_both(RELAY_TO_OLDER);
	open_port("net_ring10", &there);
	assert_memory_equal(port_mac(port), there.mac, 6);
	assert_int_equal(port_mtu(port), 1500);
	assert_string_equal(port_driver(port), "relay");
	expect_goes_by_relay(RELAY_TO_OLDER);
	assert_int_equal(port_take(port, &err), 0);
	assert_true(port_queue_settle(queue));
	expect_has_device();
	assert_int_equal(port_take(port, &err), 0); // it has it
	expect_has_device();
}

static void fl_101_a_device_is_passed_on_and_taken_back(void **state)
{
	join_both(RELAY_TO_NEWER);
	open_port("net_ring11", NULL);
	assert_int_equal(port_watch(port, now), PORT_EVENT_LINK);
	expect_has_device();
	pass_on();
	expect_goes_by_relay(RELAY_TO_NEWER);
	relays_drop(ours, RELAY_TO_NEWER);
	relay_end_follow(end);
	send_one(); // to nobody
	port_take_back(port, now);
	assert_int_equal(port_watch(port, now), PORT_EVENT_BACK);
	assert_true(port_queue_settle(queue));
	expect_has_device();
	assert_int_equal(port_status(port)->n_losses, 0);
}

static void fl_105_one_that_is_being_closed_comes_back_as_well(void **state)
{
	join_both(RELAY_TO_NEWER);
	open_port("net_ring12", NULL);
	(void)port_watch(port, now);
	port_pass_on(port);
	assert_false(port_is_passed_on(port, now)); // the worker has it
	port_take_back(port, now);
	enum port_event event = PORT_EVENT_NONE;
	for (int i = 0; event != PORT_EVENT_BACK && i < 10000; i++) {
		assert_false(port_queue_settle(queue));
		usleep(1000);
		now += S / 5;
		event = port_watch(port, now);
	}
	assert_int_equal(event, PORT_EVENT_BACK);
	assert_true(port_queue_settle(queue));
	expect_has_device();
	assert_int_equal(port_queue_far(queue), RELAY_NONE);
}

static void only_cards_have_a_name_for_another_process(void **state)
{
	char name[RELAY_MAX_NAME];
	assert_true(port_relay_name("3:00.0,mq=1", name));
	assert_string_equal(name, "0000:03:00.0");
	assert_false(port_relay_name("net_tap0,iface=a", name));
	assert_false(port_relay_name("net_memif0", name));
}

RUN_SUITE("dataplane/port_relay",
	cmocka_unit_test_setup_teardown(
		fl_102_a_port_begins_behind_the_relay_and_takes_the_device_later, setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_101_a_device_is_passed_on_and_taken_back, setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_105_one_that_is_being_closed_comes_back_as_well, setup, teardown),
	cmocka_unit_test(fl_109_the_vlan_is_the_older_processes),
	cmocka_unit_test(fl_101_a_card_that_another_process_claims_is_refused_to_who_follows_one),
	cmocka_unit_test(only_cards_have_a_name_for_another_process))
