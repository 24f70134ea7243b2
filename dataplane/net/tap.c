// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/tap.h"

#include "dataplane/net/frame_filter.h"
#include "dataplane/net/inside.h"

#define MACS ((uint32_t)2 * ETH_ADDRESS)

// As on the wire: with its tag again, behind both addresses.
static void copy_tagged(struct lb_capture_record *r, uint16_t vlan, const uint8_t *frame)
{
	uint8_t tagged[MACS + ETH_TAG];
	memcpy(tagged, frame, MACS);
	store16(tagged + MACS, ETH_TYPE_VLAN);
	store16(tagged + MACS + 2, vlan);
	uint32_t n = r->kept < sizeof(tagged) ? r->kept : (uint32_t)sizeof(tagged);
	memcpy(r->bytes, tagged, n);
	memcpy(r->bytes + n, frame + MACS, r->kept - n);
}

void net_tap_init(struct net_tap *t, struct lb_capture *to, const struct net_tunnels *tunnels,
	uint32_t port, uint16_t vlan)
{
	bool all =
		ip_is_none(&to->ask.host) && !to->ask.port && to->ask.snaplen == LB_CAPTURE_SNAPLEN;
	*t = (struct net_tap){.to = to, .tunnels = tunnels, .port = port, .vlan = vlan};
	t->plain[LB_CAPTURE_RX] = all && !vlan;
	t->plain[LB_CAPTURE_TX] = all;
	memcpy(t->quick, t->plain, sizeof(t->quick));
	for (unsigned way = 0; way < LB_CAPTURE_WAYS; way++)
		t->about[way] = lb_capture_about(port, way);
}

void net_tap_choose(struct net_tap *t, enum lb_capture_way way, const uint8_t *frame, uint32_t len,
	uint32_t full_len)
{
	if (way == LB_CAPTURE_RX)
		t->received = NULL;
	if (!frame_filter_matches(&t->to->ask, t->tunnels, frame, len))
		return;
	bool tags = t->vlan && way == LB_CAPTURE_RX && len >= MACS;
	uint32_t more = tags ? ETH_TAG : 0;
	struct lb_capture_record *r = lb_capture_place(t->to, t->port, way, len + more);
	for (unsigned w = 0; w < LB_CAPTURE_WAYS; w++)
		t->quick[w] = r && t->plain[w];
	if (!r)
		return;
	if (way == LB_CAPTURE_RX)
		t->received = r;
	r->len = full_len + more;
	if (tags)
		copy_tagged(r, t->vlan, frame);
	else
		memcpy(r->bytes, frame, r->kept);
}
