// SPDX-License-Identifier: Apache-2.0
#include "dataplane/port_reset.h"

#include "dataplane/port_trunk.h"
#include "lb/base/counter.h"
#include "lb/base/time.h"

#include <errno.h>
#include <sched.h>

// Of a card: what is sent in this time is answered by somebody, or else its link is of no use, even
// where a gateway's place is taken by another.
#define SILENT_NS (10 * NS_PER_SECOND)
#define SILENT_FRAMES 4
// Opening a card anew takes a second or more of what comes, and of some the link. From one time to
// the next it is so long at least, twice as long each time, until there was no need for a while.
#define PACE_LEAST_NS (10 * NS_PER_SECOND)
#define PACE_MOST_NS (300 * NS_PER_SECOND)
#define CALM_NS (60 * NS_PER_SECOND)
// DPDK's client connects when it is started and never again: whoever is without a server for so
// long has lost it, and was not let in at all if that is since the start. One that comes back from
// another process is refused until the server has seen that one go.
#define SERVER_NS (NS_PER_SECOND / 2)
#define HURRY_SERVER_NS (NS_PER_SECOND / 10)

static int on_event(uint16_t id, enum rte_eth_event_type type, void *arg, void *ret)
{
	struct port_reset *r = arg;
	__atomic_store_n(&r->told, true, __ATOMIC_RELAXED);
	return 0;
}

// Of all ports of the device.
static uint64_t sum(struct port *port, enum port_counter counter)
{
	const struct port *p;
	uint64_t n = 0;
	for (uint32_t k = 0; (p = port_trunk_port(port, k)); k++)
		for (uint32_t i = 0; i < p->n_queues; i++)
			n += counter_read(&p->queues[i].counters[counter]);
	return n;
}

void port_reset_listen(struct port *port)
{
	struct port_reset *r = &port->reset;
	*r = (struct port_reset){.n_received = sum(port, PORT_rx_frames),
		.may_ns = r->may_ns,
		.pace_ns = r->pace_ns};
	r->listens =
		rte_eth_dev_callback_register(port->id, RTE_ETH_EVENT_INTR_RESET, on_event, r) == 0;
}

void port_reset_ignore(struct port *port)
{
	struct port_reset *r = &port->reset;
	// Not while it is being called, which is soon over.
	while (r->listens && rte_eth_dev_callback_unregister(
				     port->id, RTE_ETH_EVENT_INTR_RESET, on_event, r) == -EAGAIN)
		sched_yield();
	r->listens = false;
}

// One that has been opened anew must be heard before it can be silent: a network may be.
static bool is_silent(struct port *port, uint64_t now_ns)
{
	struct port_reset *r = &port->reset;
	uint64_t n_received = sum(port, PORT_rx_frames), n_sent = sum(port, PORT_tx_frames);
	bool heard = n_received != r->n_received;
	if (port->kind != PORT_PCI || port->status.state != PORT_UP || heard) {
		r->was_heard |= heard;
		r->n_received = n_received;
		r->n_sent = n_sent;
		r->since_ns = now_ns;
	}
	return r->was_heard && now_ns - r->since_ns >= SILENT_NS &&
	       n_sent - r->n_sent >= SILENT_FRAMES;
}

static bool is_cut_off(struct port *port, uint64_t now_ns)
{
	struct port_reset *r = &port->reset;
	uint64_t for_ns = now_ns < port->hurry_ns ? HURRY_SERVER_NS : SERVER_NS;
	if (port->status.state != PORT_DOWN || !r->since_ns)
		r->since_ns = now_ns;
	return now_ns - r->since_ns >= for_ns;
}

static void pace(struct port_reset *r, uint64_t now_ns)
{
	bool calm = now_ns >= r->may_ns + CALM_NS;
	uint64_t ns = calm ? PACE_LEAST_NS : 2 * r->pace_ns;
	r->pace_ns = ns < PACE_MOST_NS ? ns : PACE_MOST_NS;
	r->may_ns = now_ns + r->pace_ns;
}

enum port_event port_reset_look(struct port *port, uint64_t now_ns)
{
	struct port_reset *r = &port->reset;
	enum port_event event = PORT_EVENT_NONE;
	if (port->bond) // a member that is dead is another's to replace
		return PORT_EVENT_NONE;
	if (port->kind == PORT_MEMIF)
		return is_cut_off(port, now_ns) ? PORT_EVENT_LOST : PORT_EVENT_NONE;
	if (__atomic_load_n(&r->told, __ATOMIC_RELAXED))
		event = PORT_EVENT_RESET;
	else if (is_silent(port, now_ns))
		event = PORT_EVENT_SILENT;
	if (event == PORT_EVENT_NONE || now_ns < r->may_ns)
		return PORT_EVENT_NONE;
	pace(r, now_ns);
	return event;
}
