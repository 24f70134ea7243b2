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

struct lb_capture_record *net_tap_take(struct net_tap *t, enum lb_capture_way way,
	const uint8_t *frame, uint32_t len, uint32_t full_len)
{
	if (!frame_filter_matches(&t->to->ask, t->tunnels, frame, len))
		return NULL;
	bool tags = t->vlan && len >= MACS;
	uint32_t more = tags ? ETH_TAG : 0;
	struct lb_capture_record *r = lb_capture_place(t->to, t->port, way, len + more);
	if (!r)
		return NULL;
	r->len = full_len + more;
	if (tags)
		copy_tagged(r, t->vlan, frame);
	else
		memcpy(r->bytes, frame, r->kept);
	return r;
}

static uint8_t *tap_reserve(void *ctx, size_t len)
{
	struct net_tap *t = ctx;
	t->open = t->device.reserve(t->device.ctx, len);
	return t->open;
}

static void tap_send(void *ctx, size_t len)
{
	struct net_tap *t = ctx;
	(void)net_tap_take(t, LB_CAPTURE_TX, t->open, (uint32_t)len, (uint32_t)len);
	t->open = NULL;
	t->device.send(t->device.ctx, len);
}

static void tap_cancel(void *ctx)
{
	struct net_tap *t = ctx;
	t->open = NULL;
	t->device.cancel(t->device.ctx);
}

struct net_device net_tap_device(struct net_tap *t)
{
	return (struct net_device){
		.reserve = tap_reserve, .send = tap_send, .cancel = tap_cancel, .ctx = t};
}
