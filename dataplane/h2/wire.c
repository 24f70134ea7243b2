// SPDX-License-Identifier: Apache-2.0
// Control frames and DATA into the connection's output.
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
	if (c->carried) {
		h2_carrier_reset(c, code);
		return;
	}
	uint8_t payload[4];
	h2_write_u32(payload, code);
	h2_put_frame(c, H2_RST_STREAM, 0, id, payload, sizeof(payload));
}

// No memory is no error here: the credit stays due.
bool h2_put_window_update(struct h2_conn *c, uint32_t id, uint32_t increment)
{
	if (__builtin_expect(c->carried != NULL, false))
		return true; // the next feed finds it
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

static size_t pack_settings(
	uint8_t *out, const struct h2_conf *conf, enum h2_role role, uint32_t stream_window)
{
	uint8_t *p = out + H2_FRAME_HEAD;
	// RFC 9113 6.5.2: a server has nothing to push to us, a client no streams to be limited.
	if (role == H2_CLIENT)
		p += put_setting(p, H2_SETTING_ENABLE_PUSH, 0);
	else
		p += put_setting(
			p, H2_SETTING_MAX_CONCURRENT_STREAMS, conf->max_concurrent_streams);
	p += put_setting(p, H2_SETTING_INITIAL_WINDOW_SIZE, stream_window);
	p += put_setting(p, H2_SETTING_MAX_HEADER_LIST_SIZE, conf->max_header_bytes);
	size_t len = (size_t)(p - out);
	h2_frame_pack(out,
		&(struct h2_frame){.length = (uint32_t)len - H2_FRAME_HEAD, .type = H2_SETTINGS});
	return len;
}

void h2_greeting_pack(struct h2_greeting *g, const struct h2_conf *conf, enum h2_role role)
{
	uint8_t *p = g->bytes;
	if (role == H2_CLIENT) {
		memcpy(p, H2_PREFACE, H2_PREFACE_LEN);
		p += H2_PREFACE_LEN;
	}
	bool answers = role == H2_CLIENT;
	uint32_t conn_window =
		answers && conf->answer_conn_window ? conf->answer_conn_window : conf->conn_window;
	g->stream_window = answers && conf->answer_stream_window ? conf->answer_stream_window
	                                                         : conf->stream_window;
	p += pack_settings(p, conf, role, g->stream_window);
	g->recv_window = H2_WINDOW_DEFAULT;
	if (conn_window > H2_WINDOW_DEFAULT) {
		g->recv_window = conn_window;
		h2_frame_pack(p, &(struct h2_frame){.length = 4, .type = H2_WINDOW_UPDATE});
		h2_write_u32(p + H2_FRAME_HEAD, conn_window - H2_WINDOW_DEFAULT);
		p += H2_FRAME_HEAD + 4;
	}
	g->len = (uint8_t)(p - g->bytes);
}

bool h2_put_greeting(struct h2_conn *c)
{
	struct h2_context *ctx = c->ctx;
	const struct h2_greeting *g = &ctx->greetings[c->role];
	if (!buf_append(c->out, ctx->chunks, g->bytes, g->len)) {
		h2_count(ctx, H2_C_no_memory);
		return false;
	}
	h2_set_bounds(c); // a server's: the context's bounds may have changed since it came
	c->written = g->len;
	h2_count(ctx, H2_C_frames_out_settings);
	if (g->recv_window > H2_WINDOW_DEFAULT)
		h2_count(ctx, H2_C_frames_out_window_update);
	return true;
}

void h2_conn_fail(struct h2_conn *c, enum h2_error code)
{
	if (c->failed)
		return;
	uint8_t payload[8];
	h2_write_u32(payload, h2_goaway_id(c));
	h2_write_u32(payload + 4, code);
	if (c->written && !c->carried) // else nobody has spoken HTTP/2 yet
		put_frame(c, H2_GOAWAY, 0, 0, payload, sizeof(payload));
	c->failed = true;
	c->error = code;
	h2_count(c->ctx, H2_C_conn_errors);
	buf_clear(&c->rx.pending, c->ctx->chunks);
}

bool h2_put_data(struct h2_stream *s, const uint8_t *data, size_t len, bool end)
{
	struct h2_conn *c = s->conn;
	struct pool *chunks = c->ctx->chunks;
	if (__builtin_expect(c->carried != NULL, false))
		return h2_carrier_put_data(s, data, len, end);
	// One for the frame header, one for the cut in the queue.
	if (pool_left(chunks) < 2) {
		h2_count(c->ctx, H2_C_no_memory);
		return false;
	}
	uint8_t *head = buf_reserve(c->out, chunks, H2_FRAME_HEAD);
	CHECK(head);
	h2_frame_pack(head, &(struct h2_frame){
				    .length = (uint32_t)len,
				    .type = H2_DATA,
				    .flags = end ? H2_FLAG_END_STREAM : 0,
				    .id = s->id,
			    });
	bool ok = data ? buf_append(c->out, chunks, data, len)
	               : buf_move(c->out, &s->out, len, chunks);
	CHECK(ok);
	c->written += H2_FRAME_HEAD + len;
	c->send_window -= (int64_t)len;
	c->body_sent += len;
	s->send_credit -= (int64_t)len;
	s->body_sent += len;
	c->n_data_sent++;
	h2_count(c->ctx, H2_C_frames_out_data);
	return true;
}
