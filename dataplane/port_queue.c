// SPDX-License-Identifier: Apache-2.0
// The workers' ends of a port.
#include "dataplane/net/tap.h"
#include "dataplane/port_bond.h"
#include "dataplane/port_impl.h"
#include "dataplane/port_trunk.h"
#include "lb/base/check.h"

#include <rte_prefetch.h>

#include <string.h>

#define N_TAKEN 16 // mbufs that a queue takes out of its pool at once

void port_drop_frame(void *frame)
{
	rte_pktmbuf_free(frame);
}

static enum queue_phase phase_of(const struct port_queue *q)
{
	return __atomic_load_n(&q->phase, __ATOMIC_ACQUIRE);
}

bool port_queue_is_live(const struct port_queue *q)
{
	return phase_of(q) == QUEUE_RUNS;
}

static inline void show(const struct port_queue *q, const struct rte_mbuf *m)
{
	uint32_t len = rte_pktmbuf_pkt_len(m);
	net_tap_take(q->tap, LB_CAPTURE_TX, rte_pktmbuf_mtod(m, uint8_t *), len, len);
}

// Calls of their own, as tag(): nobody pays for them while there is no tap.
static __attribute__((noinline)) void show_many(struct port_queue *q)
{
	for (uint32_t i = q->n_tapped; i < q->n_unsent; i++)
		show(q, q->unsent[i]);
}

// A lone frame, as most are where little is sent, takes no register that a loop would save.
static __attribute__((noinline)) void show_unsent(struct port_queue *q)
{
	uint32_t i = q->n_tapped;
	if (q->n_unsent - i == 1)
		show(q, q->unsent[i]);
	else
		show_many(q);
}

static __attribute__((noinline)) void drop(struct port_queue *q, struct rte_mbuf *m)
{
	if (q->tap)
		show(q, m);
	counter_add(&q->counters[PORT_tx_dropped], 1);
	rte_pktmbuf_free(m);
}

void port_queue_tap(struct port_queue *q, struct net_tap *tap)
{
	q->tap = tap;
	q->n_tapped = q->n_unsent;
}

static void drop_unsent(struct port_queue *q)
{
	if (!q->n_unsent)
		return;
	counter_add(&q->counters[PORT_tx_dropped], q->n_unsent);
	rte_pktmbuf_free_bulk(q->unsent, q->n_unsent);
	q->n_unsent = q->n_tapped = 0;
}

bool port_queue_settle(struct port_queue *q)
{
	uint32_t phase = phase_of(q);
	if (phase == QUEUE_FAR) {
		q->vlan = 0;
		return false;
	}
	if (phase == QUEUE_SWAPPING) {
		// Unless ctrl wants the queue back by now.
		q->swaps = PORT_SWAP_BURSTS;
		q->reads_apart = true;
		(void)__atomic_compare_exchange_n(
			&q->phase, &phase, QUEUE_RUNS, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
		return false;
	}
	drop_unsent(q);
	if (q->waiting)
		port_trunk_drop(q);
	if (phase == QUEUE_STOPPING)
		__atomic_store_n(&q->phase, QUEUE_RESTS, __ATOMIC_RELEASE);
	if (phase != QUEUE_STARTING)
		return false;
	q->n_missed_before = q->counters[PORT_rx_missed];
	q->n_socket_drops = 0;
	q->vlan = q->wire_vlan;
	__atomic_store_n(&q->phase, QUEUE_RUNS, __ATOMIC_RELAXED);
	return true;
}

int port_queue_wait_fd(const struct port_queue *q)
{
	return port_queue_is_live(q) ? q->wait_fd : -1;
}

// Of an AF_PACKET ring: only frames whose marks were seen are taken. A checksum that was never made
// has nothing to say of the data, which did not leave the machine's memory.
static uint16_t rx_marked(struct port_queue *q, struct rte_mbuf **ret_frames)
{
	_Static_assert(PORT_BURST <= RING_MARKS_MAX, "one look");
	struct ring_look look = ring_marks_look(&q->marks, PORT_BURST);
	if (look.n == 0)
		return 0;
	uint16_t n = rte_eth_rx_burst(q->port_id, q->index, ret_frames, (uint16_t)look.n);
	ring_marks_pass(&q->marks, n);
	for (uint16_t i = 0; i < n; i++) {
		if (look.unmade >> i & 1) {
			ret_frames[i]->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_NONE;
			counter_add(&q->counters[PORT_rx_checksum_unmade], 1);
		}
		if (look.cut >> i & 1)
			counter_add(&q->counters[PORT_rx_cut], 1);
	}
	return n;
}

// Returns how many of the n frames are of our VLAN; they stand in front then, without their tags.
static uint16_t keep_vlan(struct port_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	uint16_t kept = 0;
	for (uint16_t i = 0; i < n; i++) {
		if (port_frame_vlan(frames[i]) != q->vlan) {
			rte_pktmbuf_free(frames[i]);
			continue;
		}
		port_frame_untag(frames[i]);
		frames[kept++] = frames[i];
	}
	counter_add(&q->counters[PORT_rx_other_vlan], n - kept);
	return kept;
}

static inline void count_received(struct port_queue *q, struct rte_mbuf *const *frames, uint16_t n)
{
	uint64_t bytes = 0;
	for (uint16_t i = 0; i < n; i++) {
		rte_prefetch0(rte_pktmbuf_mtod(frames[i], void *));
		bytes += rte_pktmbuf_pkt_len(frames[i]);
	}
	counter_add(&q->counters[PORT_rx_frames], n);
	counter_add(&q->counters[PORT_rx_bytes], bytes);
}

// Nothing is left in the device, to which nothing of ours comes any more.
static void go_over(struct port_queue *q)
{
	const struct port_queue *to = q->spare;
	q->port_id = to->port_id;
	q->wait_fd = to->wait_fd;
	q->marks = to->marks;
	q->reads_apart = to->reads_apart;
	q->n_missed_before = q->counters[PORT_rx_missed];
	q->n_socket_drops = 0;
	q->swaps = 0;
	q->yields = to->yields;
	__atomic_store_n(&q->spare, NULL, __ATOMIC_RELEASE);
}

// A call of its own, so that a port of a network card without VLANs pays for none of it.
static __attribute__((noinline)) uint32_t rx_apart(
	struct port_queue *q, struct rte_mbuf **ret_frames)
{
	if (q->waiting)
		return port_trunk_take(q, ret_frames);
	uint16_t n = q->marks.map ? rx_marked(q, ret_frames)
	                          : rte_eth_rx_burst(q->port_id, q->index, ret_frames, PORT_BURST);
	// A stand-in also has what comes to other queues of the interface, and may never be empty.
	if (q->swaps && (n == 0 || --q->swaps == 0))
		go_over(q);
	if (n == 0)
		return 0;
	if (q->trunk)
		return port_trunk_sort(q, ret_frames, n);
	count_received(q, ret_frames, n);
	return q->vlan ? keep_vlan(q, ret_frames, n) : n;
}

uint32_t port_queue_rx(struct port_queue *q, struct rte_mbuf **ret_frames)
{
	if (q->reads_apart)
		return rx_apart(q, ret_frames);
	uint16_t n = rte_eth_rx_burst(q->port_id, q->index, ret_frames, PORT_BURST);
	if (n > 0)
		count_received(q, ret_frames, n);
	return n;
}

void port_queue_set_relay(struct port_queue *q, struct relay_end *end, uint32_t port)
{
	q->relay = end;
	q->relay_port = port;
}

static bool has_frames(const struct port_queue *q)
{
	return q->marks.map && ring_marks_look(&q->marks, 1).n > 0;
}

// Ctrl may want the queue back just then: its word stands.
bool port_queue_yield(struct port_queue *q)
{
	uint32_t runs = QUEUE_RUNS;
	if (!port_queue_is_live(q) || !q->yields ||
		!relay_end_has(q->relay, q->far, q->relay_port) ||
		!relay_end_has_received(q->relay, q->far, q->relay_port))
		return false;
	if (--q->yields && has_frames(q))
		return true;
	port_queue_flush(q); // with its tag, which the relay does not take
	q->yields = 0;
	(void)__atomic_compare_exchange_n(
		&q->phase, &runs, QUEUE_FAR, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	return true;
}

enum relay_side port_queue_far(const struct port_queue *q)
{
	return phase_of(q) == QUEUE_FAR ? q->far : RELAY_NONE;
}

// Each frame in an mbuf, as a device would bring it.
uint32_t port_queue_rx_far(struct port_queue *q, struct rte_mbuf **ret_frames)
{
	enum relay_side side = port_queue_far(q);
	uint32_t n = 0;
	uint64_t bytes = 0;
	for (; n < PORT_BURST && relay_end_has(q->relay, side, q->relay_port); n++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(q->mbufs);
		enum relay_way way = RELAY_RECEIVED;
		uint32_t len = m ? relay_end_take(q->relay, side, q->relay_port, false,
					   rte_pktmbuf_mtod(m, uint8_t *), q->room, &way)
		                 : 0;
		if (!len) {
			rte_pktmbuf_free(m);
			break;
		}
		m->data_len = (uint16_t)len;
		m->pkt_len = len;
		if (way == RELAY_RECEIVED_UNMADE)
			m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_NONE;
		bytes += len;
		ret_frames[n] = m;
	}
	counter_add(&q->counters[PORT_rx_frames], n);
	counter_add(&q->counters[PORT_rx_bytes], bytes);
	return n;
}

bool port_frame_is_verified(const struct rte_mbuf *m)
{
	uint64_t is = m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
	return is == RTE_MBUF_F_RX_L4_CKSUM_GOOD || is == RTE_MBUF_F_RX_L4_CKSUM_NONE;
}

bool port_frame_is_unmade(const struct rte_mbuf *m)
{
	return (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_NONE;
}

struct rte_mbuf *port_queue_copy(struct port_queue *q, const struct rte_mbuf *m)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(m, q->mbufs, 0, UINT32_MAX);
	if (!copy)
		counter_add(&q->counters[PORT_copy_no_mbuf], 1);
	return copy;
}

// Of what was sent, where a bond has put the rest in another order. Returns its bytes.
static __attribute__((noinline)) uint64_t count_bond(struct port_queue *q, uint32_t sent)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < q->n_unsent; i++)
		bytes += q->unsent_len[i];
	for (uint32_t i = sent; i < q->n_unsent; i++)
		bytes -= q->unsent_len[i] = (uint16_t)rte_pktmbuf_pkt_len(q->unsent[i]);
	return bytes;
}

uint32_t port_queue_flush(struct port_queue *q)
{
	uint32_t offered = q->n_unsent;
	if (offered == 0) {
		if (q->is_lacp && port_queue_is_live(q))
			(void)rte_eth_tx_burst(q->port_id, q->index, NULL, 0);
		return 0;
	}
	if (__builtin_expect(q->tap != NULL, 0))
		show_unsent(q);
	if (!port_queue_is_live(q))
		return port_queue_flush_far(q);
	uint32_t sent = 0;
	while (sent < offered) {
		uint16_t n = rte_eth_tx_burst(
			q->port_id, q->index, q->unsent + sent, (uint16_t)(offered - sent));
		if (n == 0)
			break;
		sent += n;
	}
	if (sent == 0) {
		q->n_tapped = offered;
		return 0;
	}
	uint64_t bytes = 0;
	if (q->bond && sent < offered)
		bytes = count_bond(q, sent);
	else
		for (uint32_t i = 0; i < sent; i++)
			bytes += q->unsent_len[i];
	q->n_unsent = q->n_tapped = offered - sent;
	memmove(q->unsent, q->unsent + sent, q->n_unsent * sizeof(q->unsent[0]));
	memmove(q->unsent_len, q->unsent_len + sent, q->n_unsent * sizeof(q->unsent_len[0]));
	counter_add(&q->counters[PORT_tx_frames], sent);
	counter_add(&q->counters[PORT_tx_bytes], bytes);
	return sent;
}

uint32_t port_queue_flush_far(struct port_queue *q)
{
	enum relay_side side = port_queue_far(q);
	uint32_t sent = 0;
	uint64_t bytes = 0;
	if (phase_of(q) == QUEUE_SWAPPING)
		return 0; // they leave in the next turn
	// What has a tag yet was meant for the device.
	for (; !q->vlan && sent < q->n_unsent && relay_end_has(q->relay, side, q->relay_port);
		sent++) {
		const struct rte_mbuf *m = q->unsent[sent];
		size_t len = rte_pktmbuf_data_len(m);
		if (!relay_end_give(q->relay, side, q->relay_port, RELAY_TO_SEND, false,
			    rte_pktmbuf_mtod(m, const uint8_t *), len))
			break;
		bytes += len;
	}
	counter_add(&q->counters[PORT_tx_frames], sent);
	counter_add(&q->counters[PORT_tx_bytes], bytes);
	counter_add(&q->counters[PORT_tx_dropped], q->n_unsent - sent);
	rte_pktmbuf_free_bulk(q->unsent, q->n_unsent);
	q->n_unsent = q->n_tapped = 0;
	return sent;
}

uint32_t port_queue_unsent(const struct port_queue *q)
{
	return q->n_unsent;
}

bool port_queue_has_device(const struct port_queue *q)
{
	return !q->waiting;
}

// Ours alone, and as its pool gave it, but for what a driver wrote about a received frame.
static bool is_plain(const struct port_queue *q, const struct rte_mbuf *m)
{
	return m->pool == q->mbufs && rte_mbuf_refcnt_read(m) == 1 && m->nb_segs == 1 &&
	       RTE_MBUF_DIRECT(m);
}

void port_queue_done(struct port_queue *q, struct rte_mbuf **frames, uint32_t n)
{
	uint32_t i = 0;
	for (; i < n && q->n_ready < PORT_MAX_READY && is_plain(q, frames[i]); i++)
		q->ready[q->n_ready++] = frames[i];
	if (i < n)
		rte_pktmbuf_free_bulk(frames + i, n - i);
}

// False = the pool is empty. A call of its own, since it seldom happens and needs more registers.
static __attribute__((noinline)) bool refill(struct port_queue *q)
{
	// All or nothing; of the last few each by itself.
	if (rte_mempool_get_bulk(q->mbufs, (void **)q->ready, N_TAKEN) == 0)
		q->n_ready = N_TAKEN;
	else if (rte_mempool_get(q->mbufs, (void **)q->ready) == 0)
		q->n_ready = 1;
	return q->n_ready;
}

static uint8_t *device_reserve(void *ctx, size_t len)
{
	struct port_queue *q = ctx;
	DCHECK(!q->open);
	if (!q->n_ready && !refill(q)) {
		counter_add(&q->counters[PORT_tx_no_mbuf], 1);
		return NULL;
	}
	if (len > q->room) {
		counter_add(&q->counters[PORT_tx_too_long], 1);
		return NULL;
	}
	// A pool's mbufs have one segment and no other owner: this is all that the sender reads.
	struct rte_mbuf *m = q->ready[--q->n_ready];
	m->data_off = RTE_PKTMBUF_HEADROOM;
	m->ol_flags = 0;
	m->data_len = (uint16_t)len;
	m->pkt_len = (uint32_t)len;
	q->open = m;
	return rte_pktmbuf_mtod(m, uint8_t *);
}

// In the headroom. Returns the frame's length with it.
static __attribute__((noinline)) size_t tag(
	const struct port_queue *q, struct rte_mbuf *m, size_t len)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	(void)rte_pktmbuf_prepend(m, VLAN_TAG);
	(void)vlan_insert(frame, q->vlan);
	return len + VLAN_TAG;
}

static void device_send(void *ctx, size_t len)
{
	struct port_queue *q = ctx;
	struct rte_mbuf *m = q->open;
	DCHECK(m && len == rte_pktmbuf_pkt_len(m));
	q->open = NULL;
	if (q->vlan)
		len = tag(q, m, len);
	if (q->n_unsent == PORT_MAX_UNSENT) {
		drop(q, m);
		return;
	}
	q->unsent_len[q->n_unsent] = (uint16_t)len;
	q->unsent[q->n_unsent++] = m;
	if (q->n_unsent % PORT_BURST == 0)
		port_queue_flush(q);
}

static void device_cancel(void *ctx)
{
	struct port_queue *q = ctx;
	rte_pktmbuf_free(q->open);
	q->open = NULL;
}

void port_queue_watch(struct port_queue *q)
{
	if (!port_queue_has_device(q))
		return;
	uint32_t n_out = rte_mempool_in_use_count(q->mbufs); // what is ready is free, too
	uint32_t n_ready = q->trunk ? port_trunk_ready(q) : q->n_ready;
	pool_count(&q->n_mbufs_used, &q->n_mbufs_peak, n_out - RTE_MIN(n_out, n_ready));
	if (!port_queue_is_live(q))
		return;
	if (q->bond)
		port_bond_count(q->bond, q->index);
	// Devices count what they lost for all queues together: the first one reports it. The
	// driver of AF_PACKET in DPDK 22.11 doesn't ask its sockets; a later one that does leaves
	// nothing here to count twice.
	struct rte_eth_stats stats = {0};
	if (q->index == 0)
		(void)rte_eth_stats_get(q->port_id, &stats);
	q->n_socket_drops += wait_fd_take_drops(q->wait_fd);
	counter_set_to(&q->counters[PORT_rx_missed],
		q->n_missed_before + stats.imissed + stats.rx_nombuf + q->n_socket_drops);
}

struct net_device port_queue_device(struct port_queue *q)
{
	return (struct net_device){
		.reserve = device_reserve,
		.send = device_send,
		.cancel = device_cancel,
		.ctx = q,
	};
}

struct counter_set port_queue_counters(const struct port_queue *q)
{
	static const char *const names[] = {PORT_COUNTERS(COUNTER_NAME)};
	return (struct counter_set){.names = names, .values = q->counters, .n = PORT_N_COUNTERS};
}

struct pool_view port_queue_mbufs(struct port_queue *q)
{
	return (struct pool_view){.name = q->mbufs->name,
		.size = q->mbufs->elt_size,
		.n_total = q->mbufs->size,
		.n_used = &q->n_mbufs_used,
		.n_peak = &q->n_mbufs_peak};
}
