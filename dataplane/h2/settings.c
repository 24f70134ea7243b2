// SPDX-License-Identifier: Apache-2.0
// SETTINGS of the peer (RFC 9113 6.5).
#include "dataplane/h2/impl.h"

// CVE-2020-11080
#define MAX_ENTRIES 32

static enum h2_error apply(struct h2_conn *c, uint32_t id, uint32_t value)
{
	switch (id) {
	case H2_SETTING_HEADER_TABLE_SIZE:
		hpack_set_table_size(&c->hpack, value);
		return H2_NO_ERROR;
	case H2_SETTING_ENABLE_PUSH:
		// A server may only say 0 (6.5.2).
		return value > (c->role == H2_SERVER ? 1 : 0) ? H2_PROTOCOL_ERROR : H2_NO_ERROR;
	case H2_SETTING_MAX_CONCURRENT_STREAMS:
		c->peer_max_streams = value;
		return H2_NO_ERROR;
	case H2_SETTING_INITIAL_WINDOW_SIZE:
		if (value > H2_WINDOW_MAX || !h2_flow_set_peer_initial(c, value))
			return H2_FLOW_CONTROL_ERROR;
		return H2_NO_ERROR;
	case H2_SETTING_MAX_FRAME_SIZE:
		if (value < H2_FRAME_MAX || value > 0xffffff)
			return H2_PROTOCOL_ERROR;
		c->peer_max_frame = value;
		return H2_NO_ERROR;
	case H2_SETTING_ENABLE_CONNECT_PROTOCOL:
	case H2_SETTING_NO_RFC7540_PRIORITIES:
		return value > 1 ? H2_PROTOCOL_ERROR : H2_NO_ERROR;
	default: // MAX_HEADER_LIST_SIZE is advice (10.5.1); unknown ones are ignored
		return H2_NO_ERROR;
	}
}

void h2_settings_received(struct h2_conn *c, const uint8_t *payload, size_t len)
{
	if (len > MAX_ENTRIES * 6) {
		h2_abuse_fail(c, H2_ABUSE_SETTINGS_ENTRIES);
		return;
	}
	if (!h2_abuse_charge_settings(c))
		return;
	bool first = !c->settings_seen;
	uint32_t max_streams = c->peer_max_streams;
	if (first)
		c->peer_max_streams = UINT32_MAX; // unlimited unless it says so
	c->settings_seen = true;
	for (size_t i = 0; i < len; i += 6) {
		enum h2_error code =
			apply(c, h2_read_u16(payload + i), h2_read_u32(payload + i + 2));
		if (code) {
			h2_conn_fail(c, code);
			return;
		}
	}
	if (!h2_put_frame(c, H2_SETTINGS, H2_FLAG_ACK, 0, NULL, 0) || !h2_abuse_answer(c))
		return;
	if ((first || c->peer_max_streams != max_streams) && c->events->on_settings)
		c->events->on_settings(c, c->peer_max_streams);
}

// RFC 9113 names no error for an ACK of nothing. As nghttp2 and Go's server judge it.
void h2_settings_acked(struct h2_conn *c)
{
	if (c->settings_acked) {
		h2_count(c->ctx, H2_C_settings_ack_unasked);
		h2_conn_fail(c, H2_PROTOCOL_ERROR);
		return;
	}
	c->settings_acked = true;
	h2_flow_set_our_initial(c, c->ctx->greetings[c->role].stream_window);
}
