// SPDX-License-Identifier: Apache-2.0
// The client's preface (RFC 9113 3.4). We send nothing before it, so that a client that begins with
// other bytes can be answered in its own protocol.
#include "dataplane/h2/impl.h"

#define TLS_HANDSHAKE 0x16 // RFC 8446 5.1

// The first bytes, of which n are at p and those before were the preface's, are not HTTP/2. Returns
// how many of n are taken.
static size_t take_foreign(struct h2_conn *c, size_t before, const uint8_t *p, size_t n)
{
	bool is_tls = before == 0 && p[0] == TLS_HANDSHAKE;
	h2_count(c->ctx, is_tls ? H2_C_prefaces_tls : H2_C_prefaces_http1);
	c->rx.foreign = true;
	if (is_tls || !h2_carrier_begin(c)) {
		h2_conn_fail(c, H2_PROTOCOL_ERROR);
		return n;
	}
	for (size_t at = 0, took = 1; at < before && took && !c->failed; at += took)
		took = h2_carrier_feed(c, (const uint8_t *)H2_PREFACE + at, before - at);
	return c->failed ? n : h2_carrier_feed(c, p, n);
}

static void greet(struct h2_conn *c)
{
	if (!h2_put_greeting(c))
		h2_conn_fail(c, H2_INTERNAL_ERROR);
	else if (c->goaway_sent)
		h2_put_goaway(c, c->goaway_sent_id, H2_NO_ERROR);
}

size_t h2_preface_feed(struct h2_conn *c, const uint8_t *p, size_t len)
{
	struct h2_rx *rx = &c->rx;
	if (c->carried)
		return h2_carrier_feed(c, p, len);
	size_t at = H2_PREFACE_LEN - rx->preface_left;
	size_t n = len < rx->preface_left ? len : rx->preface_left;
	if (memcmp(p, &H2_PREFACE[at], n) != 0)
		return take_foreign(c, at, p, len);
	rx->preface_left = (uint8_t)(rx->preface_left - n);
	if (!rx->preface_left && !c->written)
		greet(c);
	return n;
}
