// SPDX-License-Identifier: Apache-2.0
// Control frames into the connection's output.
#include "dataplane/h2/impl.h"
#include "lb/base/check.h"

static bool put_frame(struct h2_conn *c, uint8_t type, uint8_t flags, uint32_t id,
	const void *payload, size_t len)
{
	uint8_t *p = buf_reserve(c->out, c->ctx->chunks, H2_FRAME_HEAD + len);
	if (!p)
		return false;
	h2_frame_pack(p, &(struct h2_frame){
				 .length = (uint32_t)len, .type = type, .flags = flags, .id = id});
	if (len)
		memcpy(p + H2_FRAME_HEAD, payload, len);
	c->written += H2_FRAME_HEAD + len;
	counter_add(&c->ctx->counters[H2_C_frames_out_data + type], 1);
	return true;
}

bool h2_put_frame(struct h2_conn *c, uint8_t type, uint8_t flags, uint32_t id, const void *payload,
	size_t len)
{
	if (c->failed)
		return false;
	if (put_frame(c, type, flags, id, payload, len))
		return true;
	h2_count(c->ctx, H2_C_no_memory);
	h2_conn_fail(c, H2_INTERNAL_ERROR);
	return false;
}

void h2_put_rst(struct h2_conn *c, uint32_t id, enum h2_error code)
{
	uint8_t payload[4];
	h2_write_u32(payload, code);
	h2_put_frame(c, H2_RST_STREAM, 0, id, payload, sizeof(payload));
}

// No memory is no error here: the credit stays due.
bool h2_put_window_update(struct h2_conn *c, uint32_t id, uint32_t increment)
{
	uint8_t payload[4];
	h2_write_u32(payload, increment);
	return put_frame(c, H2_WINDOW_UPDATE, 0, id, payload, sizeof(payload));
}

void h2_put_goaway(struct h2_conn *c, uint32_t last_id, enum h2_error code)
{
	uint8_t payload[8];
	h2_write_u32(payload, last_id);
	h2_write_u32(payload + 4, code);
	h2_put_frame(c, H2_GOAWAY, 0, 0, payload, sizeof(payload));
}

static size_t put_setting(uint8_t *p, enum h2_setting id, uint32_t value)
{
	h2_write_u16(p, id);
	h2_write_u32(p + 2, value);
	return 6;
}

void h2_put_settings(struct h2_conn *c)
{
	const struct h2_conf *conf = &c->ctx->conf;
	uint8_t p[6 * 4];
	size_t n = 0;
	// RFC 9113 6.5.2: a server has nothing to push to us, a client no streams to be limited.
	if (c->role == H2_CLIENT)
		n += put_setting(p + n, H2_SETTING_ENABLE_PUSH, 0);
	else
		n += put_setting(
			p + n, H2_SETTING_MAX_CONCURRENT_STREAMS, conf->max_concurrent_streams);
	n += put_setting(p + n, H2_SETTING_INITIAL_WINDOW_SIZE, conf->stream_window);
	n += put_setting(p + n, H2_SETTING_MAX_HEADER_LIST_SIZE, conf->max_header_bytes);
	h2_put_frame(c, H2_SETTINGS, 0, 0, p, n);
}

void h2_conn_fail(struct h2_conn *c, enum h2_error code)
{
	if (c->failed)
		return;
	uint8_t payload[8];
	h2_write_u32(payload, h2_goaway_id(c));
	h2_write_u32(payload + 4, code);
	put_frame(c, H2_GOAWAY, 0, 0, payload, sizeof(payload));
	c->failed = true;
	c->error = code;
	h2_count(c->ctx, H2_C_conn_errors);
	buf_clear(&c->rx.pending, c->ctx->chunks);
}
