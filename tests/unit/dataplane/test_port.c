// SPDX-License-Identifier: Apache-2.0
// Which received frames are the next ones to be sent, and what is left of them then; and frames
// that the device does not take at once. On net_ring, which gives back what is sent to it.
#include "dataplane/eal.h"
#include "dataplane/port.h"
#include "tests/support/check.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define FRAME_LEN 100
#define N_MBUFS 2047
#define RING_ROOM 1023 // frames that net_ring takes

static struct port *port;
static struct port_queue *queue;

// net_ring as a card that does all about VLANs, as far as it is told, but inserts tags nowhere but
// in rte_eth_tx_prepare(), as virtio's driver.
static bool is_card;
static uint64_t asked_rx, asked_tx;
static uint16_t filtered;

int __real_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *);
int __wrap_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *info)
{
	int rc = __real_rte_eth_dev_info_get(id, info);
	if (is_card) {
		info->rx_offload_capa |= RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
		info->tx_offload_capa |= RTE_ETH_TX_OFFLOAD_VLAN_INSERT;
	}
	return rc;
}

int __real_rte_eth_dev_configure(uint16_t, uint16_t, uint16_t, const struct rte_eth_conf *);
int __wrap_rte_eth_dev_configure(uint16_t, uint16_t, uint16_t, const struct rte_eth_conf *);
int __wrap_rte_eth_dev_configure(
	uint16_t id, uint16_t n_rx, uint16_t n_tx, const struct rte_eth_conf *conf)
{
	struct rte_eth_conf rest = *conf;
	asked_rx = conf->rxmode.offloads;
	asked_tx = conf->txmode.offloads;
	rest.rxmode.offloads &= ~RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
	rest.txmode.offloads &= ~RTE_ETH_TX_OFFLOAD_VLAN_INSERT;
	return __real_rte_eth_dev_configure(id, n_rx, n_tx, &rest);
}

int __wrap_rte_eth_dev_vlan_filter(uint16_t id, uint16_t vlan, int on);
int __wrap_rte_eth_dev_vlan_filter(uint16_t id, uint16_t vlan, int on)
{
	if (!is_card || !(asked_rx & RTE_ETH_RX_OFFLOAD_VLAN_FILTER))
		return -ENOSYS;
	filtered = on ? vlan : 0;
	return 0;
}

static void quiet(void *ctx, int level, const char *line)
{
	if (level <= EAL_LOG_ERR)
		fprintf(stderr, "%s\n", line);
}

static int setup(void **state)
{
	static unsigned n_ports; // EAL starts once; a closed device's name is not free again
	int core = sched_getcpu();
	struct eal_conf eal = {
		.args = {.memory_mib = 64, .cores = &core, .n_cores = 1}, .log = quiet};
	struct lb_err err;
	char device[32];
	snprintf(device, sizeof(device), "net_ring%u", n_ports);
	struct port_conf conf = {.device = device, .n_queues = 1, .n_mbufs = N_MBUFS};
	if (!n_ports++)
		assert_int_equal(eal_start(&eal, &err), 0);
	port = port_new(&conf, &err);
	assert_non_null(port);
	queue = port_queue_of(port, 0);
	return 0;
}

static int teardown(void **state)
{
	port_free(port);
	return 0;
}

static uint64_t port_counter(const struct port_queue *q, const char *name)
{
	struct counter_set set = port_queue_counters(q);
	for (uint32_t i = 0; i < set.n; i++)
		if (strcmp(set.names[i], name) == 0)
			return counter_read(&set.values[i]);
	fail_msg("no counter %s", name);
	return 0;
}

static uint32_t n_used(void)
{
	port_queue_watch(queue);
	return *port_queue_mbufs(queue).n_used;
}

// Sends n <= PORT_BURST frames and receives them.
static void receive(struct rte_mbuf **ret, uint32_t n)
{
	struct net_device device = port_queue_device(queue);
	for (uint32_t i = 0; i < n; i++) {
		assert_non_null(device.reserve(device.ctx, FRAME_LEN));
		device.send(device.ctx, FRAME_LEN);
	}
	port_queue_flush(queue);
	assert_int_equal(port_queue_rx(queue, ret), n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(ret[i]->ol_flags, 0);
		assert_int_equal(ret[i]->nb_segs, 1);
		assert_null(ret[i]->next);
		assert_int_equal(rte_mbuf_refcnt_read(ret[i]), 1);
		assert_int_equal(rte_pktmbuf_data_len(ret[i]), FRAME_LEN);
		assert_int_equal(rte_pktmbuf_pkt_len(ret[i]), FRAME_LEN);
		assert_int_equal(rte_pktmbuf_headroom(ret[i]), RTE_PKTMBUF_HEADROOM);
	}
}

static void what_was_received_is_sent_next_as_if_new(void **state)
{
	struct rte_mbuf *first, *next;
	receive(&first, 1);
	first->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_RSS_HASH; // as drivers leave them
	first->data_off = 18;
	first->data_len = 1000;
	first->pkt_len = 1000;
	port_queue_done(queue, &first, 1);
	assert_int_equal(n_used(), 0);
	receive(&next, 1);
	assert_ptr_equal(next, first);
	port_queue_done(queue, &next, 1);
}

// NET-37: net_ring gives back what was sent, so that the tag is seen where it was asked for.
static void frames_of_a_vlan_leave_with_its_tag_and_come_without(void **state)
{
	struct port_conf conf = {.device = "net_ring62", .n_queues = 1, .vlan = 7};
	struct lb_err err;
	struct port *tagged = port_new(&conf, &err);
	assert_non_null(tagged);
	struct port_queue *q = port_queue_of(tagged, 0);
	struct net_device device = port_queue_device(q);
	uint8_t frame[FRAME_LEN];
	for (unsigned i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)i;
	memcpy(device.reserve(device.ctx, FRAME_LEN), frame, FRAME_LEN);
	device.send(device.ctx, FRAME_LEN);
	port_queue_flush(q);
	assert_int_equal(port_counter(q, "tx_bytes"), FRAME_LEN + 4);
	struct rte_mbuf *back[PORT_BURST];
	assert_int_equal(port_queue_rx(q, back), 1);
	assert_int_equal(rte_pktmbuf_data_len(back[0]), FRAME_LEN);
	assert_memory_equal(rte_pktmbuf_mtod(back[0], uint8_t *), frame, FRAME_LEN);
	assert_int_equal(port_counter(q, "rx_bytes"), FRAME_LEN + 4);
	port_queue_done(q, back, 1);
	port_free(tagged);
}

// NET-37
static void a_card_is_told_its_vlan_and_trusted_with_no_tag(void **state)
{
	struct port_conf conf = {.device = "net_ring61", .n_queues = 1, .vlan = 7};
	struct lb_err err;
	is_card = true;
	struct port *card = port_new(&conf, &err);
	is_card = false;
	assert_non_null(card);
	assert_int_equal(asked_tx & RTE_ETH_TX_OFFLOAD_VLAN_INSERT, 0);
	assert_int_equal(filtered, 7);
	struct port_queue *q = port_queue_of(card, 0);
	struct net_device device = port_queue_device(q);
	memset(device.reserve(device.ctx, FRAME_LEN), 0, FRAME_LEN);
	device.send(device.ctx, FRAME_LEN);
	port_queue_flush(q);
	struct rte_mbuf *back[PORT_BURST];
	assert_int_equal(port_queue_rx(q, back), 1); // its tag was in the frame
	port_queue_done(q, back, 1);
	port_free(card);
}

static void what_somebody_else_holds_is_not_sent(void **state)
{
	struct rte_mbuf *held, *next;
	receive(&held, 1);
	rte_mbuf_refcnt_update(held, 1);
	port_queue_done(queue, &held, 1);
	assert_int_equal(rte_mbuf_refcnt_read(held), 1);
	assert_int_equal(n_used(), 1);
	receive(&next, 1);
	assert_ptr_not_equal(next, held);
	struct rte_mbuf *both[2] = {next, held};
	port_queue_done(queue, both, 2);
	assert_int_equal(n_used(), 0);
}

static void a_chain_is_taken_apart(void **state)
{
	struct rte_mbuf *frames[PORT_BURST];
	receive(frames, 3);
	assert_int_equal(rte_pktmbuf_chain(frames[0], frames[1]), 0);
	port_queue_done(queue, (struct rte_mbuf *[]){frames[0], frames[2]}, 2);
	assert_int_equal(n_used(), 0);
	receive(frames, PORT_BURST);
	port_queue_done(queue, frames, PORT_BURST);
}

static void data_of_another_frame_is_let_go(void **state)
{
	struct rte_mbuf *frame;
	receive(&frame, 1);
	struct rte_mbuf *clone = rte_pktmbuf_clone(frame, frame->pool);
	assert_non_null(clone);
	port_queue_done(queue, &clone, 1);
	assert_int_equal(rte_mbuf_refcnt_read(frame), 1);
	assert_int_equal(n_used(), 1);
	port_queue_done(queue, &frame, 1);
	assert_int_equal(n_used(), 0);
}

static void a_frame_of_another_pool_goes_back_there(void **state)
{
	struct rte_mempool *other = rte_pktmbuf_pool_create(
		"other", 31, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	assert_non_null(other);
	struct rte_mbuf *frame = rte_pktmbuf_alloc(other);
	assert_non_null(frame);
	port_queue_done(queue, &frame, 1);
	assert_int_equal(rte_mempool_in_use_count(other), 0);
	rte_mempool_free(other);
}

static void only_so_many_are_kept(void **state)
{
	struct rte_mbuf *frames[4][PORT_BURST];
	for (unsigned i = 0; i < 4; i++)
		receive(frames[i], PORT_BURST);
	const struct rte_mempool *pool = frames[0][0]->pool;
	assert_int_equal(n_used(), 4 * PORT_BURST);
	for (unsigned i = 0; i < 4; i++)
		port_queue_done(queue, frames[i], PORT_BURST);
	assert_int_equal(n_used(), 0);
	assert_true(rte_mempool_in_use_count(pool) <= 2 * PORT_BURST);
}

static uint64_t counted(const char *name)
{
	struct counter_set set = port_queue_counters(queue);
	for (uint32_t i = 0; i < set.n; i++)
		if (strcmp(set.names[i], name) == 0)
			return set.values[i];
	fail_msg("no counter %s", name);
	return 0;
}

static uint32_t len_of(uint32_t i)
{
	return FRAME_LEN + i;
}

static uint64_t bytes_of_first(uint32_t n)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < n; i++)
		bytes += len_of(i);
	return bytes;
}

static void frames_that_wait_are_counted_as_the_device_takes_them(void **state)
{
	const uint32_t n_waiting = PORT_BURST + 5;
	struct net_device device = port_queue_device(queue);
	struct rte_mbuf *frames[PORT_BURST];
	for (uint32_t i = 0; i < RING_ROOM + n_waiting; i++) {
		assert_non_null(device.reserve(device.ctx, len_of(i)));
		device.send(device.ctx, len_of(i));
	}
	assert_int_equal(port_queue_flush(queue), 0);
	assert_int_equal(port_queue_unsent(queue), n_waiting);
	assert_int_equal(counted("tx_frames"), RING_ROOM);
	assert_int_equal(counted("tx_bytes"), bytes_of_first(RING_ROOM));

	assert_int_equal(port_queue_rx(queue, frames), PORT_BURST);
	port_queue_done(queue, frames, PORT_BURST);
	assert_int_equal(port_queue_flush(queue), PORT_BURST);
	assert_int_equal(port_queue_unsent(queue), 5);
	assert_int_equal(counted("tx_frames"), RING_ROOM + PORT_BURST);
	assert_int_equal(counted("tx_bytes"), bytes_of_first(RING_ROOM + PORT_BURST));

	for (uint32_t n = RING_ROOM + 5, next = PORT_BURST, got; n > 0; n -= got) {
		got = port_queue_rx(queue, frames);
		assert_true(got > 0);
		for (uint32_t i = 0; i < got; i++)
			assert_int_equal(rte_pktmbuf_pkt_len(frames[i]), len_of(next++));
		port_queue_done(queue, frames, got);
		port_queue_flush(queue);
	}
	assert_int_equal(counted("tx_frames"), RING_ROOM + n_waiting);
	assert_int_equal(counted("tx_bytes"), bytes_of_first(RING_ROOM + n_waiting));
	assert_int_equal(counted("tx_dropped"), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
RUN_SUITE("dataplane/port", CASE(a_card_is_told_its_vlan_and_trusted_with_no_tag),
	CASE(frames_of_a_vlan_leave_with_its_tag_and_come_without),
	CASE(what_was_received_is_sent_next_as_if_new), CASE(what_somebody_else_holds_is_not_sent),
	CASE(a_chain_is_taken_apart), CASE(data_of_another_frame_is_let_go),
	CASE(a_frame_of_another_pool_goes_back_there), CASE(only_so_many_are_kept),
	CASE(frames_that_wait_are_counted_as_the_device_takes_them))
