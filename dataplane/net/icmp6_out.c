// SPDX-License-Identifier: Apache-2.0
// What all ICMPv6 messages that leave have in common: the checksum, and the way to a station whose
// MAC address is known.
#include "dataplane/net/ip6.h"

// RFC 8200 8.1: with the pseudo-header.
uint16_t icmp6_checksum(
	const struct ip_addr *src, const struct ip_addr *dst, const uint8_t *message, size_t len)
{
	uint8_t words[8] = {[7] = IP_PROTO_ICMP6};
	store32(words, (uint32_t)len);
	uint64_t sum = csum_add(0, src->b, sizeof(src->b));
	sum = csum_add(sum, dst->b, sizeof(dst->b));
	sum = csum_add(sum, words, sizeof(words));
	return csum_fold(csum_add(sum, message, len));
}

void icmp6_fill_checksum(const struct ip6_fields *f, uint8_t *message, size_t len)
{
	uint16_t sum = icmp6_checksum(&f->src, &f->dst, message, len);
	memcpy(message + 2, &sum, sizeof(sum));
}

void icmp6_send_on_link(struct net *net, uint32_t port, const uint8_t mac[ETH_ADDRESS],
	const struct ip6_fields *fields, const uint8_t *message, size_t len)
{
	const struct net_port *p = &net->ports[port];
	size_t frame_len = ETH_HEADER + IP6_HEADER + len;
	uint8_t *frame = p->device.reserve(p->device.ctx, frame_len);
	if (!frame) {
		net_count(net, NET_tx_no_buffer);
		return;
	}
	eth_fill(p, frame, mac, ETH_TYPE_IP6);
	ip6_write_header(frame + ETH_HEADER, fields, len);
	memcpy(frame + ETH_HEADER + IP6_HEADER, message, len);
	icmp6_fill_checksum(fields, frame + ETH_HEADER + IP6_HEADER, len);
	eth_send(net, port, frame_len);
}
