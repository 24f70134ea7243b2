// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/h1/h1_owner.h"

#include "lb/base/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(struct owner *o, const void *p, size_t len)
{
	CHECK(o->log_len + len < sizeof(o->log));
	if (len)
		memcpy(o->log + o->log_len, p, len);
	o->log_len += len;
	o->log[o->log_len] = '\0';
}

static void append_str(struct owner *o, const char *before, struct str s)
{
	append(o, before, strlen(before));
	append(o, s.p, s.len);
}

static void end_body(struct owner *o)
{
	if (o->in_body)
		append(o, "\n", 1);
	o->in_body = false;
}

static void answer(struct owner *o)
{
	static const struct h1_message no_content = {
		.kind = H1_RESPONSE, .status = 204, .content_length = -1, .end_stream = true};
	const struct h1_message *m = o->answer ? o->answer : &no_content;
	CHECK(h1_conn_send_message(o->conn, m));
	if (m->end_stream)
		return;
	if (o->body)
		CHECK(h1_conn_send_data(o->conn, (const uint8_t *)o->body, strlen(o->body)));
	CHECK(h1_conn_send_end(o->conn, NULL));
}

static void ended(struct owner *o)
{
	end_body(o);
	append(o, "end\n", 4);
	if (!o->leaves)
		answer(o);
}

static void log_fields(struct owner *o, const struct h1_message *m)
{
	for (size_t i = 0; i < m->n_fields; i++) {
		append_str(o, " [", m->fields[i].name);
		append_str(o, ":", m->fields[i].value);
		append(o, "]", 1);
	}
	append(o, "\n", 1);
}

static void on_message(struct h1_conn *c, const struct h1_message *m)
{
	struct owner *o = h1_conn_user(c);
	end_body(o);
	if (m->kind == H1_REQUEST) {
		o->n_requests++;
		append_str(o, "", m->method);
		append_str(o, " ", m->scheme);
		append_str(o, "://", m->authority);
		append_str(o, " ", m->path);
		if (m->content_length >= 0) {
			char text[32];
			snprintf(text, sizeof(text), " %lld", (long long)m->content_length);
			append_str(o, "", str_from(text));
		}
		append_str(o, "", str_from(m->expects_continue ? " continue" : ""));
	} else {
		append_str(o, "", STR("trailers"));
	}
	log_fields(o, m);
	if (m->end_stream)
		ended(o);
}

static void on_data(struct h1_conn *c, const uint8_t *p, size_t len, bool end_stream)
{
	struct owner *o = h1_conn_user(c);
	if (len && !o->in_body)
		append(o, "body ", 5);
	o->in_body |= len > 0;
	append(o, p, len);
	if (end_stream)
		ended(o);
}

static const struct h1_events events = {on_message, on_data};

int owner_init(struct owner *o, uint32_t n_chunks)
{
	const struct h1_conf conf = {.max_conns = 2,
		.max_header_bytes = OWNER_HEADER_BYTES,
		.max_header_fields = OWNER_HEADER_FIELDS};
	*o = (struct owner){0};
	if (buf_pool_init(&o->chunks, n_chunks))
		return -ENOMEM;
	o->ctx = h1_context_new(&conf, &o->chunks);
	return o->ctx ? 0 : -ENOMEM;
}

static void disconnect(struct owner *o)
{
	if (o->conn)
		h1_conn_free(o->conn);
	o->conn = NULL;
	buf_clear(&o->out, &o->chunks);
	CHECK(o->chunks.n_used == 0);
}

void owner_fini(struct owner *o)
{
	disconnect(o);
	h1_context_free(o->ctx);
	pool_fini(&o->chunks);
}

void owner_connect(struct owner *o)
{
	disconnect(o);
	o->log_len = 0;
	o->log[0] = '\0';
	o->in_body = false;
	o->n_requests = 0;
	o->conn = h1_conn_new(o->ctx, &events, &o->out, STR("http"), o);
	CHECK(o->conn);
}

size_t owner_feed(struct owner *o, const char *bytes, size_t len, size_t step)
{
	size_t at = 0, n = 1;
	while (at < len && n) {
		size_t piece = step && step < len - at ? step : len - at;
		// Of exactly this size, so that a sanitizer sees a read beyond it.
		uint8_t *copy = malloc(piece);
		CHECK(copy);
		memcpy(copy, bytes + at, piece);
		n = h1_conn_feed(o->conn, copy, piece);
		CHECK(n <= piece);
		free(copy);
		at += n;
	}
	return at;
}

const char *owner_log(struct owner *o)
{
	uint16_t status;
	char text[16];
	end_body(o);
	if (h1_conn_failed(o->conn, &status)) {
		snprintf(text, sizeof(text), "%u\n", status);
		append_str(o, "", str_from(text));
		CHECK(h1_conn_refuse(o->conn, status, NULL, 0) || h1_conn_busy(o->conn));
	}
	if (h1_conn_closes(o->conn))
		append_str(o, "", STR("closed\n"));
	return o->log;
}

const char *owner_output(struct owner *o)
{
	static char text[1 << 17];
	size_t len = o->out.len;
	CHECK(len < sizeof(text));
	buf_copy_out(&o->out, 0, text, len);
	text[len] = '\0';
	buf_clear(&o->out, &o->chunks);
	return text;
}
