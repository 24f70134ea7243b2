// SPDX-License-Identifier: Apache-2.0
#include "dataplane/port_trunk.h"

#include "dataplane/net/steer.h"
#include "lb/base/check.h"

#include <rte_prefetch.h>

#include <errno.h>
#include <stdlib.h>

int port_trunk_new(struct port *port)
{
	struct port_trunk *t = malloc(sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->n = 1;
	t->ports[0] = port;
	memset(t->of_vlan, PORT_NO_VLAN, sizeof(t->of_vlan));
	t->of_vlan[port->conf.vlan] = 0;
	port->trunk = t;
	return 0;
}

// A filter that cannot be told of it is switched off.
static int pass_vlan(const struct port *carrier, uint16_t vlan)
{
	if (!vlan || rte_eth_dev_vlan_filter(carrier->id, vlan, 1) == 0)
		return 0;
	int what = rte_eth_dev_get_vlan_offload(carrier->id);
	return what < 0 ? what
	                : rte_eth_dev_set_vlan_offload(
				  carrier->id, what & ~RTE_ETH_VLAN_FILTER_OFFLOAD);
}

static void follow_queue(struct port_queue *q, const struct port_queue *from)
{
	q->port_id = from->port_id;
	q->index = from->index;
	q->wait_fd = from->wait_fd; // whoever waits for frames of any VLAN waits for the device
	q->mbufs = from->mbufs;
	q->room = from->room;
	q->bond = from->bond;
}

// Has what the carrier's device is now.
static int follow(struct port *port)
{
	const struct port *carrier = port->trunk->ports[0];
	for (uint32_t i = 0; i < port->n_queues; i++)
		follow_queue(&port->queues[i], &carrier->queues[i]);
	if (carrier->hashes)
		steer_follow_port(carrier->conf.steer, port->conf.index, carrier->conf.index);
	return carrier->filters_vlans ? pass_vlan(carrier, port->conf.vlan) : 0;
}

int port_trunk_started(struct port *port)
{
	int rc = port->filters_vlans ? pass_vlan(port, port->conf.vlan) : 0;
	for (uint32_t i = 1; rc == 0 && port_trunk_port(port, i); i++)
		rc = follow(port_trunk_port(port, i));
	return rc < 0 ? rc : 0;
}

// From here on frames of its VLAN wait for it.
static void enter(struct port *port, struct port_trunk *t)
{
	DCHECK(t->n < PORT_MAX_VLANS && t->of_vlan[port->conf.vlan] == PORT_NO_VLAN);
	t->of_vlan[port->conf.vlan] = (uint8_t)t->n;
	t->ports[t->n++] = port;
	port->trunk = t;
	port->is_carried = true;
}

int port_trunk_join(struct port *port)
{
	const struct port *carrier = port->conf.carrier;
	DCHECK(carrier->trunk && carrier->n_queues == port->n_queues);
	for (uint32_t i = 0; i < port->n_queues; i++) {
		struct port_queue *q = &port->queues[i];
		q->waiting = calloc(1, sizeof(*q->waiting));
		if (!q->waiting)
			return -ENOMEM;
		q->wire_vlan = port->conf.vlan;
		q->reads_apart = true;
		q->trunk = carrier->trunk;
		q->far = carrier->queues[i].far;
		q->phase = carrier->queues[i].phase; // which is far if another process has it
	}
	enter(port, carrier->trunk);
	return follow(port);
}

void port_trunk_leave(struct port *port)
{
	for (uint32_t i = 0; i < port->n_queues; i++) {
		struct port_queue *q = &port->queues[i];
		if (!q->waiting)
			continue;
		port_trunk_drop(q);
		free(q->waiting);
		q->mbufs = NULL;
	}
	struct port_trunk *t = port->trunk;
	if (!port->is_carried) {
		free(t);
	} else { // the carrier outlives it, and the last to come is the first to go
		DCHECK(t->ports[t->n - 1] == port);
		t->of_vlan[port->conf.vlan] = PORT_NO_VLAN;
		t->n--;
	}
	port->trunk = NULL;
}

// Frames.

static struct port_queue *queue_of(const struct port_queue *carrier, uint32_t port)
{
	return &carrier->trunk->ports[port]->queues[carrier->index];
}

static void count(struct port_queue *q, uint32_t n, uint64_t bytes)
{
	counter_add(&q->counters[PORT_rx_frames], n);
	counter_add(&q->counters[PORT_rx_bytes], bytes);
}

// There is room for all that comes in a turn, unless the other port begins later after a device has
// come back.
static void put(struct port_queue *q, struct rte_mbuf *m, uint32_t len)
{
	struct port_waiting *w = q->waiting;
	count(q, 1, len);
	if (w->n == sizeof(w->frames) / sizeof(w->frames[0])) {
		counter_add(&q->counters[PORT_rx_missed], 1);
		rte_pktmbuf_free(m);
		return;
	}
	w->frames[w->n++] = m;
}

uint32_t port_trunk_sort(struct port_queue *q, struct rte_mbuf **frames, uint32_t n)
{
	uint32_t kept = 0, n_ours = 0, n_others = 0;
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(frames[i], void *));
	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *m = frames[i];
		uint32_t len = rte_pktmbuf_pkt_len(m);
		int vlan = port_frame_vlan(m); // a tag with a priority alone names none
		uint8_t port = q->trunk->of_vlan[vlan > 0 ? vlan : 0];
		if (vlan > 0)
			port_frame_untag(m);
		if (port != 0 && port != PORT_NO_VLAN) {
			put(queue_of(q, port), m, len);
			continue;
		}
		n_ours++;
		bytes += len;
		if (port == 0) {
			frames[kept++] = m;
		} else {
			rte_pktmbuf_free(m);
			n_others++;
		}
	}
	count(q, n_ours, bytes);
	counter_add(&q->counters[PORT_rx_other_vlan], n_others);
	return kept;
}

uint32_t port_trunk_take(struct port_queue *q, struct rte_mbuf **ret_frames)
{
	struct port_waiting *w = q->waiting;
	uint32_t n = w->n < PORT_BURST ? w->n : PORT_BURST;
	memcpy(ret_frames, w->frames, n * sizeof(w->frames[0]));
	w->n -= n;
	memmove(w->frames, w->frames + n, w->n * sizeof(w->frames[0]));
	return n;
}

void port_trunk_drop(struct port_queue *q)
{
	rte_pktmbuf_free_bulk(q->waiting->frames, q->waiting->n);
	q->waiting->n = 0;
}

uint32_t port_trunk_ready(const struct port_queue *q)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < q->trunk->n; i++)
		n += queue_of(q, i)->n_ready;
	return n;
}

void port_pass_queues(struct port *port, enum queue_phase phase)
{
	const struct port *p;
	for (uint32_t k = 0; (p = port_trunk_port(port, k)); k++)
		for (uint32_t i = 0; i < p->n_queues; i++)
			__atomic_store_n(&p->queues[i].phase, phase, __ATOMIC_RELEASE);
}
