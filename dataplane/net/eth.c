// SPDX-License-Identifier: Apache-2.0
// Ethernet: which frames are for us, and what they carry.
#include "dataplane/net/inside.h"

static bool mac_eq(const uint8_t *a, const uint8_t *b)
{
	return memcmp(a, b, ETH_ADDRESS) == 0;
}

static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

void net_hear(struct net *net, uint32_t port, const uint8_t *frame, size_t len)
{
	if (len < ETH_HEADER || frame[6] & 1 || load16(frame + 12) != ETH_TYPE_ARP)
		return;
	if (mac_eq(frame, net->ports[port].mac) || mac_eq(frame, everybody))
		arp_hear(net, port, frame + ETH_HEADER, len - ETH_HEADER);
}

// Whatever is not a packet for this station alone.
static APART void input_other(struct net *net, uint32_t port, const uint8_t *frame, size_t len)
{
	if (len < ETH_HEADER) {
		net_count(net, NET_eth_short);
		return;
	}
	bool broadcast = mac_eq(frame, everybody);
	if (!broadcast && !mac_eq(frame, net->ports[port].mac)) {
		net_count(net, NET_eth_not_ours);
		return;
	}
	if (frame[ETH_ADDRESS] & 1) { // a group can't send
		net_count(net, NET_eth_bad_source);
		return;
	}
	switch (load16(frame + 12)) {
	case ETH_TYPE_IP4:
		ip4_input(net, frame + ETH_HEADER, len - ETH_HEADER, broadcast);
		break;
	case ETH_TYPE_ARP:
		arp_input(net, port, frame + ETH_HEADER, len - ETH_HEADER);
		break;
	case 0x8100: // 802.1Q
	case 0x88a8: // 802.1ad
		net_count(net, NET_eth_vlan);
		break;
	case 0x86dd:
		net_count(net, NET_eth_ip6);
		break;
	default:
		net_count(net, NET_eth_unknown_type);
	}
}

void net_input(struct net *net, uint32_t port, const uint8_t *frame, size_t len)
{
	net_count(net, NET_rx_frames);
	if (len >= ETH_HEADER && mac_eq(frame, net->ports[port].mac) && !(frame[ETH_ADDRESS] & 1) &&
		load16(frame + 12) == ETH_TYPE_IP4)
		ip4_input(net, frame + ETH_HEADER, len - ETH_HEADER, false);
	else
		input_other(net, port, frame, len);
}

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
