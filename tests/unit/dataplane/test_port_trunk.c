// SPDX-License-Identifier: Apache-2.0
// VLANs of one device as ports of their own, on net_ring, which gives back what is sent to it: what
// one of them sends is received by the carrier and waits for it.
#include "dataplane/eal.h"
#include "dataplane/port_impl.h"
#include "dataplane/vlan.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#define FRAME_LEN 100
#define N_PORTS 3

// As a card that filters VLANs, and tells of resets.
static bool is_card;
static uint16_t passed[8];
static unsigned n_passed;
static rte_eth_dev_cb_fn told;
static void *told_arg;

int __real_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *);
int __wrap_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *info)
{
	int rc = __real_rte_eth_dev_info_get(id, info);
	if (is_card)
		info->rx_offload_capa |= RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
	return rc;
}

int __real_rte_eth_dev_configure(uint16_t, uint16_t, uint16_t, const struct rte_eth_conf *);
int __wrap_rte_eth_dev_configure(uint16_t, uint16_t, uint16_t, const struct rte_eth_conf *);
int __wrap_rte_eth_dev_configure(
	uint16_t id, uint16_t n_rx, uint16_t n_tx, const struct rte_eth_conf *conf)
{
	struct rte_eth_conf rest = *conf;
	rest.rxmode.offloads &= ~RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
	return __real_rte_eth_dev_configure(id, n_rx, n_tx, &rest);
}

int __wrap_rte_eth_dev_vlan_filter(uint16_t id, uint16_t vlan, int on);
int __wrap_rte_eth_dev_vlan_filter(uint16_t id, uint16_t vlan, int on)
{
	assert_true(is_card && on && n_passed < 8);
	passed[n_passed++] = vlan;
	return 0;
}

int __wrap_rte_eth_dev_callback_register(
	uint16_t id, enum rte_eth_event_type type, rte_eth_dev_cb_fn fn, void *arg);
int __wrap_rte_eth_dev_callback_register(
	uint16_t id, enum rte_eth_event_type type, rte_eth_dev_cb_fn fn, void *arg)
{
	told = fn;
	told_arg = arg;
	return 0;
}

int __wrap_rte_eth_dev_callback_unregister(
	uint16_t id, enum rte_eth_event_type type, rte_eth_dev_cb_fn fn, void *arg);
int __wrap_rte_eth_dev_callback_unregister(
	uint16_t id, enum rte_eth_event_type type, rte_eth_dev_cb_fn fn, void *arg)
{
	return 0;
}

static void quiet(void *ctx, int level, const char *line)
{
	if (level <= EAL_LOG_ERR && !strstr(line, "VLAN"))
		fprintf(stderr, "%s\n", line);
}

static struct port *ports[N_PORTS];
static struct port_queue *queues[N_PORTS];

// VLANs of one device, each with an MTU of its own.
static void open_trunk(const uint16_t vlans[N_PORTS])
{
	static unsigned n; // EAL starts once; a closed device's name is not free again
	int core = sched_getcpu();
	struct eal_conf eal = {
		.args = {.memory_mib = 64, .cores = &core, .n_cores = 1}, .log = quiet};
	struct lb_err err;
	static char device[32]; // borrowed
	if (n == 0)
		assert_int_equal(eal_start(&eal, &err), 0);
	snprintf(device, sizeof(device), "net_ring%u", n++);
	n_passed = 0;
	for (unsigned i = 0; i < N_PORTS; i++) {
		struct port_conf conf = {.index = i,
			.device = device,
			.n_queues = 1,
			.n_mbufs = 2047,
			.own_mtu = (uint16_t)(1400 + i),
			.vlan = vlans[i],
			.n_vlans = i ? 0 : N_PORTS,
			.carrier = i ? ports[0] : NULL};
		ports[i] = port_new(&conf, &err);
		assert_non_null(ports[i]);
		queues[i] = port_queue_of(ports[i], 0);
	}
}

static void close_trunk(void)
{
	for (unsigned i = N_PORTS; i > 0; i--)
		port_free(ports[i - 1]);
}

static uint64_t counted(unsigned port, const char *name)
{
	struct counter_set set = port_queue_counters(queues[port]);
	for (uint32_t i = 0; i < set.n; i++)
		if (strcmp(set.names[i], name) == 0)
			return counter_read(&set.values[i]);
	fail_msg("no counter %s", name);
	return 0;
}

// A frame that says who sent it, and as the how many-th.
static void write_frame(uint8_t *f, unsigned port, unsigned number)
{
	memset(f, 0, FRAME_LEN);
	f[0] = (uint8_t)port;
	f[1] = (uint8_t)number;
	f[12] = 8; // IPv4
}

static void send_frame(unsigned port, unsigned number)
{
	struct net_device device = port_queue_device(queues[port]);
	uint8_t *f = device.reserve(device.ctx, FRAME_LEN);
	assert_non_null(f);
	write_frame(f, port, number);
	device.send(device.ctx, FRAME_LEN);
}

static void flush_all(void)
{
	for (unsigned i = 0; i < N_PORTS; i++)
		port_queue_flush(queues[i]);
}

// Reads what has come for a port; each must be its own, whole, and in order.
static unsigned receive_frames(unsigned port, unsigned first)
{
	struct rte_mbuf *frames[PORT_BURST];
	uint8_t wanted[FRAME_LEN];
	uint32_t n = port_queue_rx(queues[port], frames);
	for (uint32_t i = 0; i < n; i++) {
		write_frame(wanted, port, first + i);
		assert_int_equal(rte_pktmbuf_data_len(frames[i]), FRAME_LEN);
		assert_memory_equal(rte_pktmbuf_mtod(frames[i], uint8_t *), wanted, FRAME_LEN);
	}
	port_queue_done(queues[port], frames, n);
	return n;
}

static uint32_t n_used(void)
{
	for (unsigned i = 0; i < N_PORTS; i++)
		port_queue_watch(queues[i]);
	return *port_queue_mbufs(queues[0]).n_used;
}

static void pass_frames(const uint16_t vlans[N_PORTS])
{
	open_trunk(vlans);
	for (unsigned k = 0; k < 5; k++)
		for (unsigned i = 0; i < N_PORTS; i++)
			send_frame(i, k);
	flush_all();
	for (unsigned i = 0; i < N_PORTS; i++) {
		assert_int_equal(receive_frames(i, 0), 5);
		assert_int_equal(receive_frames(i, 5), 0);
		uint64_t bytes = 5 * (FRAME_LEN + (vlans[i] ? VLAN_TAG : 0));
		assert_int_equal(counted(i, "tx_frames"), 5);
		assert_int_equal(counted(i, "tx_bytes"), bytes);
		assert_int_equal(counted(i, "rx_frames"), 5);
		assert_int_equal(counted(i, "rx_bytes"), bytes);
		assert_int_equal(counted(i, "rx_other_vlan"), 0);
		assert_int_equal(port_vlan(ports[i]), vlans[i]);
		assert_int_equal(port_mtu(ports[i]), 1400 + i);
		assert_string_equal(port_driver(ports[i]), port_driver(ports[0]));
		assert_memory_equal(port_mac(ports[i]), port_mac(ports[0]), 6);
		assert_int_equal(port_queue_has_device(queues[i]), i == 0);
	}
	assert_int_equal(n_used(), 0);
	close_trunk();
}

// NET-40
static void each_vlan_has_its_frames_its_counts_and_its_mtu(void **state)
{
	pass_frames((const uint16_t[]){7, 4094, 9});
}

// NET-40
static void one_of_them_may_be_what_has_no_tag(void **state)
{
	pass_frames((const uint16_t[]){0, 7, 9});
	pass_frames((const uint16_t[]){7, 0, 9});
}

// The tag as is, or none; by the queue of the port without a VLAN.
static void send_raw(unsigned port, unsigned number, uint16_t type, uint16_t tag)
{
	struct net_device device = port_queue_device(queues[port]);
	uint8_t *f = device.reserve(device.ctx, FRAME_LEN);
	write_frame(f, port, number);
	f[12] = (uint8_t)(type >> 8);
	f[13] = (uint8_t)type;
	f[14] = (uint8_t)(tag >> 8);
	f[15] = (uint8_t)tag;
	device.send(device.ctx, FRAME_LEN);
	port_queue_flush(queues[port]);
}

// NET-41
static void frames_of_other_vlans_are_dropped_and_counted(void **state)
{
	struct rte_mbuf *frames[PORT_BURST];
	open_trunk((const uint16_t[]){0, 7, 9});
	send_raw(0, 0, 0x8100, 8);
	send_raw(0, 0, 0x8100, 0xf00f); // priority 7, VLAN 15
	send_raw(0, 0, 0x8100, 4095);
	assert_int_equal(port_queue_rx(queues[0], frames), 0);
	assert_int_equal(counted(0, "rx_other_vlan"), 3);
	assert_int_equal(counted(0, "rx_frames"), 3);
	send_raw(0, 0, 0x8100, 0xe007); // priority 7, VLAN 7
	send_raw(0, 0, 0x8100, 0xe000); // a priority alone
	send_raw(0, 0, 0x88a8, 7); // a provider's tag: net/ drops it
	assert_int_equal(port_queue_rx(queues[0], frames), 2);
	port_queue_done(queues[0], frames, 2);
	assert_int_equal(port_queue_rx(queues[1], frames), 1);
	assert_int_equal(rte_pktmbuf_data_len(frames[0]), FRAME_LEN - VLAN_TAG);
	port_queue_done(queues[1], frames, 1);
	assert_int_equal(counted(0, "rx_other_vlan"), 3);
	assert_int_equal(n_used(), 0);
	close_trunk();
}

// NET-41
static void without_a_port_for_it_a_frame_without_a_tag_is_of_another_vlan(void **state)
{
	struct rte_mbuf *frames[PORT_BURST];
	open_trunk((const uint16_t[]){5, 7, 9});
	queues[0]->vlan = 0; // to send what it would not
	send_raw(0, 0, 0x0800, 0);
	send_raw(0, 0, 0x8100, 0xe000);
	queues[0]->vlan = 5;
	assert_int_equal(port_queue_rx(queues[0], frames), 0);
	assert_int_equal(counted(0, "rx_other_vlan"), 2);
	close_trunk();
}

// NET-40: a tag that the device has taken out.
static void a_device_may_take_tags_out(void **state)
{
	struct rte_mbuf *m, *back[PORT_BURST];
	open_trunk((const uint16_t[]){0, 7, 9});
	send_frame(0, 0);
	port_queue_flush(queues[0]);
	assert_int_equal(rte_eth_rx_burst(queues[0]->port_id, 0, &m, 1), 1);
	m->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = 0xe009; // priority 7, VLAN 9
	assert_int_equal(rte_eth_tx_burst(queues[0]->port_id, 0, &m, 1), 1);
	assert_int_equal(port_queue_rx(queues[0], back), 0);
	assert_int_equal(port_queue_rx(queues[1], back), 0);
	assert_int_equal(port_queue_rx(queues[2], back), 1);
	assert_int_equal(rte_pktmbuf_data_len(back[0]), FRAME_LEN);
	port_queue_done(queues[2], back, 1);
	close_trunk();
}

// As many as the carrier reads in a turn have room; beyond that nothing is overwritten.
static void what_waits_is_bounded(void **state)
{
	const unsigned room = PORT_MAX_BURSTS * PORT_BURST;
	struct rte_mbuf *frames[PORT_BURST];
	open_trunk((const uint16_t[]){0, 7, 9});
	for (unsigned i = 0; i < room + 3; i++)
		send_frame(1, i);
	flush_all();
	for (unsigned i = 0; i <= PORT_MAX_BURSTS; i++)
		assert_int_equal(port_queue_rx(queues[0], frames), 0);
	assert_int_equal(counted(1, "rx_missed"), 3);
	for (unsigned i = 0; i < PORT_MAX_BURSTS; i++)
		assert_int_equal(receive_frames(1, i * PORT_BURST), PORT_BURST);
	assert_int_equal(receive_frames(1, 0), 0);
	assert_int_equal(n_used(), 0);
	close_trunk();
}

// NET-43
static void a_card_is_told_of_each_vlan(void **state)
{
	static const uint16_t wanted[] = {7, 9};
	is_card = true;
	open_trunk((const uint16_t[]){0, 7, 9});
	assert_int_equal(n_passed, 2);
	assert_memory_equal(passed, wanted, sizeof(wanted));
	is_card = false;
	close_trunk();
}

static void look(uint64_t now_ns, enum port_event event)
{
	assert_int_equal(port_watch(ports[0], now_ns), event);
	for (unsigned i = 1; i < N_PORTS; i++) {
		assert_int_equal(port_watch(ports[i], now_ns), PORT_EVENT_NONE);
		assert_int_equal(port_status(ports[i])->state, port_status(ports[0])->state);
		assert_int_equal(port_status(ports[i])->since_ns, port_status(ports[0])->since_ns);
	}
}

// NET-43: it is closed when the last of their queues has been let go of, and told of all its VLANs
// again.
static void a_device_that_is_opened_anew_has_all_its_vlans(void **state)
{
	uint64_t now = NS_PER_SECOND;
	is_card = true;
	open_trunk((const uint16_t[]){5, 7, 9});
	look(now, PORT_EVENT_LINK);
	send_frame(2, 0);
	flush_all();
	struct rte_mbuf *frames[PORT_BURST];
	assert_int_equal(port_queue_rx(queues[0], frames), 0); // it waits, and is lost
	told(ports[0]->id, RTE_ETH_EVENT_INTR_RESET, told_arg, NULL);
	look(now, PORT_EVENT_RESET);
	for (unsigned i = 0; i < N_PORTS; i++)
		assert_false(port_queue_is_live(queues[i]));
	assert_false(port_queue_settle(queues[0]));
	assert_false(port_queue_settle(queues[1]));
	for (int i = 0; i < 20; i++)
		look(now += NS_PER_SECOND, PORT_EVENT_NONE); // one has not let go yet
	assert_true(ports[0]->opened);
	assert_false(port_queue_settle(queues[2]));
	enum port_event event = PORT_EVENT_NONE;
	for (int i = 0; event != PORT_EVENT_BACK && i < 10000; i++) {
		event = port_watch(ports[0], now += NS_PER_SECOND / 5);
		usleep(1000); // another thread closes it, sooner or later
	}
	assert_int_equal(event, PORT_EVENT_BACK);
	for (unsigned i = 0; i < N_PORTS; i++) {
		assert_true(port_queue_settle(queues[i]));
		send_frame(i, 0);
	}
	assert_int_equal(n_passed, 6);
	flush_all();
	for (unsigned i = 0; i < N_PORTS; i++)
		assert_int_equal(receive_frames(i, 0), 1);
	assert_int_equal(n_used(), 0);
	is_card = false;
	close_trunk();
}

RUN_SUITE("dataplane/port_trunk", cmocka_unit_test(each_vlan_has_its_frames_its_counts_and_its_mtu),
	cmocka_unit_test(one_of_them_may_be_what_has_no_tag),
	cmocka_unit_test(frames_of_other_vlans_are_dropped_and_counted),
	cmocka_unit_test(without_a_port_for_it_a_frame_without_a_tag_is_of_another_vlan),
	cmocka_unit_test(a_device_may_take_tags_out), cmocka_unit_test(what_waits_is_bounded),
	cmocka_unit_test(a_card_is_told_of_each_vlan),
	cmocka_unit_test(a_device_that_is_opened_anew_has_all_its_vlans))
