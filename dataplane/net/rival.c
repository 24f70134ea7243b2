// SPDX-License-Identifier: Apache-2.0
// Other hosts that claim addresses of ours, as ARP and neighbor discovery hear of them.
#include "dataplane/net/inside.h"

// It takes the place of its last claim, a free one, or the oldest.
void net_note_rival(struct net *net, uint32_t port, const struct ip_addr *ip, const uint8_t mac[6])
{
	struct net_rival *to = &net->rivals[0];
	for (uint32_t i = 0; i < NET_MAX_RIVALS; i++) {
		struct net_rival *r = &net->rivals[i];
		bool is_known = r->port == port && ip_eq(&r->ip, ip);
		if (is_known || r->at_ns < to->at_ns)
			to = r;
		if (is_known)
			break;
	}
	*to = (struct net_rival){.ip = *ip, .at_ns = twheel_now(net->wheel), .port = (uint8_t)port};
	memcpy(to->mac, mac, ETH_ADDRESS);
}
