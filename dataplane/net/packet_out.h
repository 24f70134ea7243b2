// SPDX-License-Identifier: Apache-2.0
// A packet on its way out, of either family: from the room for it, in a device's buffer or among
// the frames that wait for their neighbor, to the device. Private to this folder.
// Thread: the owning worker.
#pragma once

#include "dataplane/net/inside.h"
#include "lb/base/check.h"

// Where the packet has to wait for its neighbor, or is lost: without a neighbor entry or room to
// wait. Never NULL.
uint8_t *packet_out_reserve_aside(struct net *, struct neigh *, size_t frame_len);
void packet_out_hold(struct net *);

// Room for a packet of len bytes, IP header included, to n, which may be NULL: then it is
// discarded, since there may be buffers for other destinations. NULL = no device buffer, counted.
// packet_out_begin() must follow before any other frame is sent.
static inline uint8_t *packet_out_reserve(struct net *net, struct neigh *n, size_t len)
{
	DCHECK(!net->open.frame);
	size_t frame_len = ETH_HEADER + len;
	if (!n || !neigh_has_mac(n))
		return packet_out_reserve_aside(net, n, frame_len);
	const struct net_port *port = &net->ports[n->port];
	DCHECK(len <= port->mtu);
	uint8_t *frame = port->device.reserve(port->device.ctx, frame_len);
	if (!frame) {
		net_count(net, NET_tx_no_buffer);
		return NULL;
	}
	net->open = (struct net_open){.neigh = n, .frame = frame};
	return frame + ETH_HEADER;
}

// Fills in the Ethernet header, and up to two bytes behind it. Returns the room again, for the IP
// header to be written and packet_out_send() to follow. NULL = the packet is lost: it is over.
static inline uint8_t *packet_out_begin(struct net *net)
{
	uint8_t *frame = net->open.frame;
	DCHECK(frame);
	struct neigh *n = net->open.neigh;
	if (!n) {
		net->open.frame = NULL;
		return NULL;
	}
	memcpy(frame, n->eth, sizeof(n->eth));
	return frame + ETH_HEADER;
}

static inline void packet_out_send(struct net *net, size_t len)
{
	struct net_open open = net->open;
	if (open.held) {
		packet_out_hold(net);
		return;
	}
	net->open.frame = NULL;
	eth_send(net, open.neigh->port, ETH_HEADER + len);
	if (open.neigh->state == NEIGH_STALE)
		neigh_probe(open.neigh);
}
