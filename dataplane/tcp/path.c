// SPDX-License-Identifier: Apache-2.0
// What routers tell of a path's MTU (RFC 1191, RFC 8201), believed after the checks of RFC 5927.
// Each connection learns for itself: what all would share, one forged message could spoil for all.
#include "dataplane/tcp/mss.h"
#include "dataplane/tcp/recovery.h"

#define FLOOR4 552 // of what is believed: the least is 68 (RFC 791), and of use to attackers only
#define LEAST6 1280 // that a link of IPv6 has

void tcp_stack_too_big(struct tcp_stack *s, const struct tcp_flow *flow, uint32_t seq, uint32_t mtu)
{
	bool v4 = ip_is_v4(&flow->remote);
	uint32_t headers = TCP_HEADER_LEN + (v4 ? 20 : 40);
	uint32_t mss = max_u32(mtu, FLOOR4) - headers;
	struct tcp_conn *c = tcp_table_find(s, flow, tcp_flow_hash(s, flow));
	bool is_lie = !v4 && mtu < LEAST6; // RFC 8201 4
	// RFC 5927 4.1: of what is outstanding now. A SYN is never too long.
	if (is_lie || !c || c->state != TCP_OPEN || seq - c->snd_una >= c->snd_max - c->snd_una ||
		mss >= c->mss + (c->ts_on ? TCP_OPT_TS_LEN : 0u)) {
		tcp_count(s, TCP_too_big_ignored);
		return;
	}
	tcp_count(s, TCP_too_big);
	c->path_mss = (uint16_t)mss;
	tcp_mss_refresh(c);
	tcp_ack_too_big(c);
}
