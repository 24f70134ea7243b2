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
#define LONG_MEMIF "net_memif0,socket=/45678901234567890123456789012345678901234567890123456789"
#define S NS_PER_SECOND
static const struct relay_port there = {"0000:03:00.0", {2, 0, 0, 0, 0, 7}, 1500, 7};
static const int numbers[NET_MAX_PORTS] = {0, -1, -1, -1, -1, -1, -1, -1};
// VLANs of one device, the last of which the older process does not have.
static const struct relay_port trunk_there[] = {
	{"0000:03:00.0", {2, 0, 0, 0, 0, 7}, 1500, 7},
	{"0000:03:00.0", {2, 0, 0, 0, 0, 7}, 1400, 9},
};
static const uint16_t trunk_vlans[] = {9, 7, 11};
static const int trunk_numbers[NET_MAX_PORTS] = {1, 0, -1, -1, -1, -1, -1, -1};
#define N_TRUNK 3

static struct port *port;
static struct port_queue *queue;
static struct relays *ours, *its;
static struct relay_end *end, *far;
static struct port *trunk[N_TRUNK];
static struct port_queue *trunk_queues[N_TRUNK];
static uint64_t now;

static void ignore(void *ctx, int level, const char *line)
{
}

static void join(enum relay_side side, const struct relay_port *ports, uint32_t n,
	const int of_ours[NET_MAX_PORTS])
{
	static const int same[NET_MAX_PORTS] = {0, 1, 2, -1, -1, -1, -1, -1};
	struct relay_memory a, b;
	struct lb_err err = {""};
	enum relay_side back = side == RELAY_TO_OLDER ? RELAY_TO_NEWER : RELAY_TO_OLDER;
	assert_int_equal(relay_memory_make(&a, ports, n, 1, 1, &err), 0);
	assert_int_equal(relay_memory_map(&b, a.fd, &err), 0);
	assert_int_equal(relays_set(ours, side, &a, of_ours), 0);
	assert_int_equal(relays_set(its, back, &b, same), 0);
	relay_end_follow(end);
	relay_end_follow(far);
}

static void join_both(enum relay_side side)
{
	join(side, &there, 1, numbers);
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
	port = NULL;
	for (unsigned i = N_TRUNK; i > 0; i--) {
		port_free(trunk[i - 1]);
		trunk[i - 1] = NULL;
	}
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

// While whoever had it has it still: another port of this process, here.
static void fl_105_one_that_is_in_use_still_is_tried_at_each_look_for_a_second(void **state)
{
	struct port_conf conf = {.device = "net_ring15", .n_queues = 1, .n_mbufs = 2048};
	struct lb_err err = {""};
	join_both(RELAY_TO_NEWER);
	open_port("net_ring15", NULL);
	pass_on();
	relays_drop(ours, RELAY_TO_NEWER);
	relay_end_follow(end);
	static struct port_queue its_queue;
	struct port newer = {.conf = conf, .n_queues = 1, .queues = &its_queue};
	assert_true(port_make_mbufs(&its_queue, &conf, "newer", SOCKET_ID_ANY));
	assert_int_equal(port_open(&newer, &err), 0);
	port_take_back(port, now);
	assert_true(port_is_urgent(port, now));
	for (int i = 0; i < 20; i++)
		assert_int_equal(port_watch(port, now + (uint64_t)i * S / 50), PORT_EVENT_NONE);
	now += S / 2;
	port_close(&newer, true);
	rte_mempool_free(its_queue.mbufs);
	assert_int_equal(port_watch(port, now), PORT_EVENT_BACK);
	assert_false(port_is_urgent(port, now + S));
	assert_true(port_queue_settle(queue));
	expect_has_device();
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

static void open_trunk(const char *device, const struct relay_port *relayed)
{
	struct lb_err err = {""};
	for (unsigned i = 0; i < N_TRUNK; i++) {
		struct port_conf conf = {.index = i,
			.device = device,
			.n_queues = 1,
			.n_mbufs = 2048,
			.vlan = trunk_vlans[i],
			.n_vlans = i ? 0 : N_TRUNK,
			.carrier = i ? trunk[0] : NULL,
			.relayed = relayed};
		trunk[i] = port_new(&conf, &err);
		assert_string_equal(err.text, "");
		trunk_queues[i] = port_queue_of(trunk[i], 0);
		port_queue_set_relay(trunk_queues[i], end, i);
	}
}

// A frame that says whose it is; from that port's end of the relay, or from its own device.
static void send_of(unsigned i)
{
	struct net_device device = port_queue_device(trunk_queues[i]);
	uint8_t *frame = device.reserve(device.ctx, FRAME);
	assert_non_null(frame);
	memset(frame, (int)i + 1, FRAME);
	device.send(device.ctx, FRAME);
	port_queue_flush(trunk_queues[i]);
}

static void expect_trunk_goes_by_relay(enum relay_side side)
{
	enum relay_side back = side == RELAY_TO_OLDER ? RELAY_TO_NEWER : RELAY_TO_OLDER;
	struct rte_mbuf *got[PORT_BURST];
	uint8_t frame[2048];
	enum relay_way way;
	for (unsigned i = 0; i < N_TRUNK; i++) {
		unsigned number = (unsigned)trunk_numbers[i];
		assert_false(port_queue_settle(trunk_queues[i]));
		assert_int_equal(port_queue_far(trunk_queues[i]), side);
		assert_int_equal(port_watch(trunk[i], now), PORT_EVENT_NONE);
		assert_int_equal(port_status(trunk[i])->state, PORT_UP);
		send_of(i);
		if (trunk_numbers[i] < 0) {
			assert_int_equal(port_queue_unsent(trunk_queues[i]), 0);
			assert_int_equal(port_queue_rx_far(trunk_queues[i], got), 0);
			continue;
		}
		assert_int_equal(
			relay_end_take(far, back, number, true, frame, sizeof(frame), &way), FRAME);
		assert_int_equal(frame[FRAME - 1], i + 1);
		assert_true(relay_end_give(far, back, number, RELAY_RECEIVED, false, frame, FRAME));
		assert_int_equal(port_queue_rx_far(trunk_queues[i], got), 1);
		assert_int_equal(rte_pktmbuf_mtod(got[0], uint8_t *)[FRAME - 1], i + 1);
		port_queue_done(trunk_queues[i], got, 1);
	}
}

// The ring gives back what each has sent, which the carrier sorts by tags.
static void expect_trunk_has_device(void)
{
	struct rte_mbuf *got[PORT_BURST];
	for (unsigned i = 0; i < N_TRUNK; i++) {
		assert_true(port_queue_is_live(trunk_queues[i]));
		assert_int_equal(port_queue_far(trunk_queues[i]), RELAY_NONE);
		send_of(i);
	}
	for (unsigned i = 0; i < N_TRUNK; i++) {
		assert_int_equal(port_queue_rx(trunk_queues[i], got), 1);
		assert_int_equal(rte_pktmbuf_mtod(got[0], uint8_t *)[FRAME - 1], i + 1);
		port_queue_done(trunk_queues[i], got, 1);
	}
}

static void fl_110_a_trunk_begins_behind_the_relay_and_takes_its_device_once(void **state)
{
	struct lb_err err = {""};
	join(RELAY_TO_OLDER, trunk_there, 2, trunk_numbers);
	open_trunk("net_ring13", &trunk_there[1]);
	for (unsigned i = 0; i < N_TRUNK; i++) {
		assert_memory_equal(port_mac(trunk[i]), there.mac, 6);
		assert_int_equal(port_mtu(trunk[i]), 1400);
		assert_string_equal(port_driver(trunk[i]), "relay");
	}
	expect_trunk_goes_by_relay(RELAY_TO_OLDER);
	for (unsigned i = 0; i < N_TRUNK; i++)
		assert_int_equal(port_take(trunk[i], &err), 0);
	for (unsigned i = 0; i < N_TRUNK; i++)
		assert_true(port_queue_settle(trunk_queues[i]));
	expect_trunk_has_device();
}

static bool is_trunk_passed_on(void)
{
	bool all = true;
	for (unsigned i = 0; i < N_TRUNK; i++)
		all &= port_is_passed_on(trunk[i], now);
	return all;
}

static void fl_110_a_trunk_is_passed_on_and_taken_back_as_one(void **state)
{
	join(RELAY_TO_NEWER, trunk_there, 2, trunk_numbers);
	open_trunk("net_ring14", NULL);
	for (unsigned i = 0; i < N_TRUNK; i++)
		(void)port_watch(trunk[i], now);
	expect_trunk_has_device();
	for (unsigned i = 0; i < N_TRUNK; i++)
		port_pass_on(trunk[i]);
	for (int n = 0; !is_trunk_passed_on() && n < 10000; n++) {
		for (unsigned i = 0; i < N_TRUNK; i++)
			if (!port_queue_is_live(trunk_queues[i]))
				assert_false(port_queue_settle(trunk_queues[i]));
		usleep(1000);
		now += S / 5;
	}
	assert_true(is_trunk_passed_on());
	expect_trunk_goes_by_relay(RELAY_TO_NEWER);
	for (unsigned i = 0; i < N_TRUNK; i++)
		port_take_back(trunk[i], now);
	assert_int_equal(port_watch(trunk[0], now), PORT_EVENT_BACK);
	for (unsigned i = 1; i < N_TRUNK; i++)
		assert_int_equal(port_watch(trunk[i], now), PORT_EVENT_NONE);
	for (unsigned i = 0; i < N_TRUNK; i++)
		assert_true(port_queue_settle(trunk_queues[i]));
	expect_trunk_has_device();
	assert_int_equal(port_status(trunk[2])->n_losses, 0);
}

static void cards_bonds_of_some_and_memifs_have_a_name_for_another_process(void **state)
{
	static const char *const cards[] = {
		"0000:10:00.1,x=1", "3:00.0", "10:00.0", "1:00.0", "2:00.0"};
	struct port_conf conf = {.device = "3:00.0,mq=1"};
	char name[RELAY_MAX_NAME];
	assert_true(port_relay_name(&conf, name));
	assert_string_equal(name, "0000:03:00.0");
	conf.device = "net_tap0,iface=a";
	assert_false(port_relay_name(&conf, name));
	conf.device = "net_memif0,id=2,role=client,socket-abstract=no,socket=/run/vpp/a+b.sock";
	assert_true(port_relay_name(&conf, name));
	assert_string_equal(name, "memif:2:/run/vpp/a+b.sock");
	conf.device = "net_memif0,role=server";
	assert_false(port_relay_name(&conf, name));
	conf.device = "net_af_xdp1,start_queue=1,iface=eth0,busy_budget=0"; // FL-120
	assert_true(port_relay_name(&conf, name));
	assert_string_equal(name, "net_af_xdp,iface=eth0");
	conf.device = "net_af_xdp1,iface=of16_characters_";
	assert_false(port_relay_name(&conf, name));
	conf = (struct port_conf){.bond = PORT_BOND_8023AD, .members = cards, .n_members = 4};
	assert_true(port_relay_name(&conf, name)); // in whatever order
	assert_string_equal(name, "0000:01:00.0+0000:03:00.0+0000:10:00.0+0000:10:00.1");
	conf.n_members = 5;
	assert_false(port_relay_name(&conf, name));
}

static void fl_15_97_117_what_two_processes_cannot_have_is_named(void **state)
{
	static const char *const interfaces[] = {
		"net_af_packet0,iface=a", "net_af_packet1,iface=b"};
	static const char *const cards[] = {"3:00.0", "4:00.0"};
	static const char *const mixed[] = {"net_af_packet0,iface=a", "0000:04:00.0"};
	static const struct {
		const char *device;
		const char *const *members;
		const char *error;
	} rows[] = {
		{"net_af_packet0,iface=a", NULL, ""},
		{"3:00.0", NULL, ""},
		{"net_af_xdp0,iface=a", NULL, ""},
		{"net_bonding1", interfaces, ""},
		{"net_tap0", NULL,
			"ports[1].device: net_tap0: cannot be taken over, only net_af_packet, "
			"net_af_xdp, cards on PCI and memifs of role=client can"},
		{"net_memif0", NULL, ""},
		{"net_memif0,role=server", NULL,
			"ports[1].device: net_memif0,role=server: cannot be taken over: a memif's "
			"client comes back from a server that has gone when it likes, if at all; "
			"role=client can be"},
		{LONG_MEMIF, NULL,
			"ports[1].device: " LONG_MEMIF ": cannot be taken over: its id and the "
			"name of its socket are longer than 55 bytes together"},
		{"net_bonding1", mixed,
			"ports[1].bond: cannot be taken over, only one of net_af_packet, or of at "
			"most 4 cards on PCI, can"},
		{"net_bonding1", cards, ""},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {""};
		struct port_conf conf = {.index = 1,
			.device = rows[i].device,
			.bond = rows[i].members ? PORT_BOND_ACTIVE_BACKUP : PORT_NO_BOND,
			.members = rows[i].members,
			.n_members = rows[i].members ? 2 : 0};
		assert_int_equal(port_check_shared(&conf, &err) != 0, rows[i].error[0] != '\0');
		assert_string_equal(err.text, rows[i].error);
	}
}

RUN_SUITE("dataplane/port_relay",
	cmocka_unit_test_setup_teardown(
		fl_102_a_port_begins_behind_the_relay_and_takes_the_device_later, setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_101_a_device_is_passed_on_and_taken_back, setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_105_one_that_is_in_use_still_is_tried_at_each_look_for_a_second, setup,
		teardown),
	cmocka_unit_test_setup_teardown(
		fl_105_one_that_is_being_closed_comes_back_as_well, setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_110_a_trunk_begins_behind_the_relay_and_takes_its_device_once, setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_110_a_trunk_is_passed_on_and_taken_back_as_one, setup, teardown),
	cmocka_unit_test(fl_101_a_card_that_another_process_claims_is_refused_to_who_follows_one),
	cmocka_unit_test(fl_15_97_117_what_two_processes_cannot_have_is_named),
	cmocka_unit_test(cards_bonds_of_some_and_memifs_have_a_name_for_another_process))
