// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/packet_out.h"

// Out of line, so that the common case needs fewer registers.
uint8_t *packet_out_reserve_aside(struct net *net, struct neigh *n, size_t frame_len)
{
	DCHECK(frame_len <= net->max_frame);
	struct neigh_held *held = n ? neigh_reserve(n, frame_len) : NULL;
	if (held)
		net->open = (struct net_open){.neigh = n, .frame = held->frame, .held = held};
	else
		net->open = (struct net_open){.frame = net->lost};
	return net->open.frame + ETH_HEADER;
}

void packet_out_hold(struct net *net)
{
	struct net_open open = net->open;
	net->open.frame = NULL;
	neigh_hold(open.neigh, open.held);
}
