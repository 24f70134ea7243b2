// SPDX-License-Identifier: Apache-2.0
// Ethernet, outwards: a frame's header, and its way to the device.
#include "dataplane/net/inside.h"

void eth_fill(const struct net_port *port, uint8_t *frame, const uint8_t dst[6], uint16_t type)
{
	memcpy(frame, dst, ETH_ADDRESS);
	memcpy(frame + ETH_ADDRESS, port->mac, ETH_ADDRESS);
	store16(frame + 12, type);
}

void eth_send(struct net *net, uint32_t port, size_t len)
{
	const struct net_device *device = &net->ports[port].device;
	net_count(net, NET_tx_frames);
	device->send(device->ctx, len);
}
