// SPDX-License-Identifier: Apache-2.0
// What a host does for another process that follows this one, or that this one followed, and that
// cannot have a device of ours (relay.h).
#include "dataplane/host_impl.h"
#include "dataplane/net/foreign.h"
#include "dataplane/port.h"
#include "dataplane/tcp/counters.h"

#include <rte_mbuf.h>

#define MAX_SENT 128 // frames of one other process in one turn
#define MAX_FRAME 9216

static void give(struct host *h, uint32_t port, bool is_copy, const struct rte_mbuf *m)
{
	// The device may have vouched for a checksum that nobody has made.
	enum relay_way way = port_frame_is_unmade(m) ? RELAY_RECEIVED_UNMADE : RELAY_RECEIVED;
	const uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	enum relay_side far = port_queue_far(h->queues[port]);
	for (enum relay_side s = 0; s < RELAY_N_SIDES; s++)
		if (s != far && relay_end_has(h->relay, s, port))
			(void)relay_end_give(
				h->relay, s, port, way, is_copy, frame, rte_pktmbuf_data_len(m));
}

void host_relay_give(struct host *h, uint32_t port, const struct rte_mbuf *m,
	const struct lb_capture_cause *cause)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	size_t len = rte_pktmbuf_data_len(m);
	if (len != rte_pktmbuf_pkt_len(m))
		return;
	if (cause->layer == LB_CAPTURE_TCP && cause->counter == TCP_drop_company)
		give(h, port, false, m);
	else if ((cause->layer == LB_CAPTURE_NET && net_foreign_is_left(cause->counter)) ||
		 (cause->layer != LB_CAPTURE_TCP && net_foreign_is_for_all(frame, len)))
		give(h, port, true, m);
}

static uint32_t send_from(struct host *h, enum relay_side side, uint32_t port)
{
	uint8_t frame[MAX_FRAME];
	enum relay_way way;
	uint32_t n = 0;
	for (; n < MAX_SENT && !port_queue_yield(h->queues[port]); n++) {
		uint32_t len =
			relay_end_take(h->relay, side, port, true, frame, sizeof(frame), &way);
		if (!len)
			break;
		if (!net_foreign_send(h->net, port, frame, len))
			relay_end_count_unsent(h->relay);
	}
	return n;
}

bool host_relay_send(struct host *h, uint32_t port)
{
	uint32_t n = 0;
	// It may go far on the way.
	for (enum relay_side s = 0; s < RELAY_N_SIDES; s++)
		if (s != port_queue_far(h->queues[port]) && relay_end_has(h->relay, s, port))
			n += send_from(h, s, port);
	return n > 0;
}
