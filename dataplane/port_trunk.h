// SPDX-License-Identifier: Apache-2.0
// A trunk: one device whose VLANs (IEEE 802.1Q) are ports of their own, with their own addresses,
// frames, batches and counters; one of them may be what has no tag. The first port, the carrier,
// has the device: it reads the frames of all and has those of others wait until their port is
// read, in the same turn. Each sends by itself, in the same queue of the device, whose worker is
// the same. What a device counts before a frame's VLAN is known, such as frames that it lost, is
// counted at the carrier. Private to port.h's files.
// Thread: ctrl; what has a queue, the worker that owns it.
#pragma once

#include "dataplane/port_impl.h"

#define PORT_NO_VLAN UINT8_MAX

struct port_trunk {
	uint32_t n;
	struct port *ports[PORT_MAX_VLANS]; // borrowed; the first is the carrier
	uint8_t of_vlan[VLAN_MAX + 2]; // which of them; 0 = that of no tag; or PORT_NO_VLAN
};

// As many as a carrier reads in one turn.
struct port_waiting {
	uint32_t n;
	struct rte_mbuf *frames[PORT_MAX_BURSTS * PORT_BURST];
};

// Of a port that will be a carrier: it is alone in its trunk so far. 0 or -ENOMEM.
[[nodiscard]] int port_trunk_new(struct port *);
// The port is one of its carrier's trunk from now on, which is open. 0, -ENOMEM, or what the device
// says that does not take its VLAN.
[[nodiscard]] int port_trunk_join(struct port *);
// Gives back what the port's queues have of the carrier's. Any port; what is not there is passed
// over.
void port_trunk_leave(struct port *);
// Call when the carrier's device has been started, or any port's: the device passes its VLANs, and
// the others' queues follow. 0, or negative if the device does not take a VLAN.
[[nodiscard]] int port_trunk_started(struct port *);

// That port of the trunk, by its number in it; NULL = there are no more. Of a port without one it
// is the port itself.
static inline struct port *port_trunk_port(struct port *port, uint32_t i)
{
	if (!port->trunk)
		return i == 0 ? port : NULL;
	return i < port->trunk->n ? port->trunk->ports[i] : NULL;
}

// The port that has the device: itself where there is no trunk.
static inline const struct port *port_carrier(const struct port *port)
{
	return port->is_carried ? port->trunk->ports[0] : port;
}

// Of a carrier: n > 0 frames that were read. Returns how many are its own; they stand in front
// then, without their tags. Frames of other VLANs than the trunk's are dropped and counted.
uint32_t port_trunk_sort(struct port_queue *, struct rte_mbuf **frames, uint32_t n);
// Of any other: what waits, at most PORT_BURST.
uint32_t port_trunk_take(struct port_queue *, struct rte_mbuf **ret_frames);
// Drops what waits.
void port_trunk_drop(struct port_queue *);
// Of a carrier: mbufs that are ready in queues of that index, of all ports.
uint32_t port_trunk_ready(const struct port_queue *);
