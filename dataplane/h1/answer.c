// SPDX-License-Identifier: Apache-2.0
// Answers (RFC 9112 4, 6, 7.1): a head at once, a body by its length, in chunks, or until the
// connection closes.
#include "dataplane/h1/impl.h"
#include "dataplane/h1/text.h"

#include <string.h>

// Room for what is written besides fields: the status line, framing, `connection`.
#define EXTRA 160
// Around a chunk: 16 digits, and CRLF twice.
#define CHUNK_LINE 20

struct out {
	char *p;
	size_t len;
};

static void put(struct out *o, struct str s)
{
	if (s.len)
		memcpy(o->p + o->len, s.p, s.len);
	o->len += s.len;
}

static void put_line(struct out *o, struct str name, struct str value)
{
	put(o, name);
	put(o, STR(": "));
	put(o, value);
	put(o, STR("\r\n"));
}

// RFC 9110 15. Nobody reads the others: the reason may be empty.
static struct str reason(uint16_t status)
{
	static const struct {
		uint16_t status;
		struct str text;
	} reasons[] = {{200, STR("OK")}, {100, STR("Continue")}, {103, STR("Early Hints")},
		{201, STR("Created")}, {202, STR("Accepted")}, {204, STR("No Content")},
		{206, STR("Partial Content")}, {301, STR("Moved Permanently")}, {302, STR("Found")},
		{303, STR("See Other")}, {304, STR("Not Modified")},
		{307, STR("Temporary Redirect")}, {308, STR("Permanent Redirect")},
		{400, STR("Bad Request")}, {401, STR("Unauthorized")}, {403, STR("Forbidden")},
		{404, STR("Not Found")}, {405, STR("Method Not Allowed")},
		{408, STR("Request Timeout")}, {409, STR("Conflict")},
		{413, STR("Content Too Large")}, {414, STR("URI Too Long")},
		{415, STR("Unsupported Media Type")}, {417, STR("Expectation Failed")},
		{429, STR("Too Many Requests")}, {431, STR("Request Header Fields Too Large")},
		{500, STR("Internal Server Error")}, {501, STR("Not Implemented")},
		{502, STR("Bad Gateway")}, {503, STR("Service Unavailable")},
		{504, STR("Gateway Timeout")}, {505, STR("HTTP Version Not Supported")}};
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].text;
	return (struct str){0};
}

// The version is ours, not the request's (RFC 9110 6.2).
static void put_status_line(struct out *o, uint16_t status)
{
	char digits[] = {(char)('0' + status / 100 % 10), (char)('0' + status / 10 % 10),
		(char)('0' + status % 10), ' '};
	put(o, STR("HTTP/1.1 "));
	put(o, (struct str){digits, sizeof(digits)});
	put(o, reason(status));
	put(o, STR("\r\n"));
}

// Of this hop, or written by us.
static bool is_ours(struct str name)
{
	static const struct str names[] = {STR("connection"), STR("keep-alive"),
		STR("proxy-connection"), STR("transfer-encoding"), STR("upgrade"),
		STR("content-length")};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_eq(name, names[i]))
			return true;
	return false;
}

// Bytes of all fields as lines; 0 = one would cut a line. Texts of backends are checked by HTTP/2,
// those of a configuration by nobody else.
static size_t fields_len(const struct h1_message *m)
{
	size_t len = 1;
	for (size_t i = 0; i < m->n_fields; i++) {
		const struct field *f = &m->fields[i];
		if (!h1_text_is(f->name, H1_TEXT_TOKEN) ||
			(f->value.len && !h1_text_is(f->value, H1_TEXT_VALUE)))
			return 0;
		len += f->name.len + f->value.len + 4;
	}
	return len;
}

static void put_fields(struct out *o, const struct h1_message *m)
{
	for (size_t i = 0; i < m->n_fields; i++)
		if (!is_ours(m->fields[i].name))
			put_line(o, m->fields[i].name, m->fields[i].value);
}

// Where to write len bytes that go out as one: into the last chunk, if they fit. NULL = too many.
static char *open_space(struct h1_conn *c, size_t len, bool *ret_direct)
{
	struct h1_context *ctx = c->ctx;
	char *p = len <= BUF_CHUNK_ROOM / 2 ? (char *)buf_space(c->out, ctx->chunks, len) : NULL;
	*ret_direct = p;
	if (p)
		return p;
	return len <= ctx->max_packed ? ctx->packed : NULL;
}

static bool close_space(struct h1_conn *c, const struct out *o, bool direct)
{
	if (!direct)
		return buf_append(c->out, c->ctx->chunks, o->p, o->len);
	buf_added(c->out, o->len);
	return true;
}

// RFC 9112 6.3: what the client will read. No status but 200 and the like has a body with HEAD.
static enum h1_framing choose_framing(const struct h1_conn *c, const struct h1_message *m)
{
	if (c->is_head || m->status == 204 || m->status == 304 || m->status < 200)
		return H1_NO_BODY;
	if (m->content_length >= 0 || m->end_stream)
		return H1_BY_LENGTH;
	return c->minor == 1 ? H1_CHUNKED : H1_UNTIL_CLOSE;
}

static void put_number(struct out *o, uint64_t n)
{
	char text[20];
	size_t at = sizeof(text);
	do
		text[--at] = (char)('0' + n % 10);
	while (n /= 10);
	put_line(o, STR("content-length"), (struct str){text + at, sizeof(text) - at});
}

static void put_framing(struct h1_conn *c, struct out *o, const struct h1_message *m)
{
	bool may_say = m->status >= 200 && m->status != 204; // RFC 9110 8.6
	if (c->framing == H1_CHUNKED)
		put_line(o, STR("transfer-encoding"), STR("chunked"));
	else if (may_say && m->content_length >= 0)
		put_number(o, (uint64_t)m->content_length);
	else if (c->framing == H1_BY_LENGTH)
		put_number(o, 0);
	if (!c->persists || c->drains)
		put_line(o, STR("connection"), STR("close"));
	else if (c->minor == 0)
		put_line(o, STR("connection"), STR("keep-alive"));
}

static bool put_head(struct h1_conn *c, const struct h1_message *m)
{
	size_t len = fields_len(m);
	struct out o = {0};
	bool direct, is_final = m->status >= 200;
	if (!len || !(o.p = open_space(c, len + EXTRA, &direct)))
		return false;
	put_status_line(&o, m->status);
	put_fields(&o, m);
	if (is_final)
		put_framing(c, &o, m);
	put(&o, STR("\r\n"));
	return close_space(c, &o, direct);
}

static void count_answer(struct h1_conn *c)
{
	h1_count(c->ctx, H1_C_answers);
	if (c->framing == H1_CHUNKED)
		h1_count(c->ctx, H1_C_answers_chunked);
	if (c->framing == H1_UNTIL_CLOSE)
		h1_count(c->ctx, H1_C_answers_until_close);
}

static void end_answer(struct h1_conn *c)
{
	c->answered = true;
	if (c->framing == H1_BY_LENGTH && c->answer_left) {
		h1_count(c->ctx, H1_C_answers_cut);
		c->persists = false;
	}
	c->persists &= c->state == H1_ENDED;
	h1_conn_settle(c);
}

bool h1_conn_send_message(struct h1_conn *c, const struct h1_message *m)
{
	if (!c->open || c->answering || m->status < 100 || m->status > 999 || m->status == 101)
		return false;
	if (m->status < 200) // RFC 9110 15.2: HTTP/1.0 has none
		return c->minor == 0 || put_head(c, m);
	bool persisted = c->persists;
	c->framing = (uint8_t)choose_framing(c, m);
	if (c->framing == H1_UNTIL_CLOSE || (m->end_stream && c->state != H1_ENDED))
		c->persists = false;
	if (!put_head(c, m)) {
		c->persists = persisted;
		return false;
	}
	c->answering = true;
	c->answer_left = m->content_length > 0 ? (uint64_t)m->content_length : 0;
	count_answer(c);
	if (m->end_stream)
		end_answer(c);
	return true;
}

// The line before a chunk of len bytes.
static void put_chunk_line(struct out *o, size_t len)
{
	char text[2 * sizeof(len)];
	size_t at = sizeof(text);
	do
		text[--at] = "0123456789abcdef"[len & 15];
	while (len >>= 4);
	put(o, (struct str){text + at, sizeof(text) - at});
	put(o, STR("\r\n"));
}

// False = not to be sent, since no body is open or it would be too long.
static bool may_send(const struct h1_conn *c, size_t len)
{
	return c->answering && (c->framing != H1_BY_LENGTH || len <= c->answer_left);
}

static bool send_chunk(struct h1_conn *c, struct buf *body)
{
	struct pool *chunks = c->ctx->chunks;
	char text[CHUNK_LINE];
	struct out line = {.p = text};
	put_chunk_line(&line, body->len);
	return buf_append(c->out, chunks, line.p, line.len) &&
	       buf_move(c->out, body, body->len, chunks) && buf_append(c->out, chunks, "\r\n", 2);
}

bool h1_conn_send_buf(struct h1_conn *c, struct buf *body)
{
	size_t len = body->len;
	if (!may_send(c, len))
		return false;
	if (c->framing == H1_NO_BODY)
		buf_clear(body, c->ctx->chunks);
	if (c->framing == H1_NO_BODY || len == 0)
		return true;
	if (c->framing == H1_CHUNKED)
		return send_chunk(c, body);
	c->answer_left -= c->framing == H1_BY_LENGTH ? len : 0;
	return buf_move(c->out, body, len, c->ctx->chunks);
}

// A small chunk, which lies whole in the output's last piece of memory if there is room.
static bool send_small_chunk(struct h1_conn *c, struct str data)
{
	struct pool *chunks = c->ctx->chunks;
	char text[CHUNK_LINE];
	struct out o = {.p = (char *)buf_space(c->out, chunks, data.len + CHUNK_LINE)};
	if (!o.p) {
		o.p = text;
		put_chunk_line(&o, data.len);
		return buf_append(c->out, chunks, o.p, o.len) &&
		       buf_append(c->out, chunks, data.p, data.len) &&
		       buf_append(c->out, chunks, "\r\n", 2);
	}
	put_chunk_line(&o, data.len);
	put(&o, data);
	put(&o, STR("\r\n"));
	buf_added(c->out, o.len);
	return true;
}

bool h1_conn_send_data(struct h1_conn *c, const uint8_t *p, size_t len)
{
	struct pool *chunks = c->ctx->chunks;
	if (!may_send(c, len))
		return false;
	if (c->framing == H1_NO_BODY || len == 0)
		return true;
	if (c->framing == H1_CHUNKED && len <= BUF_CHUNK_ROOM / 2)
		return send_small_chunk(c, (struct str){(const char *)p, len});
	struct buf body = {0};
	if (buf_append(&body, chunks, p, len) && h1_conn_send_buf(c, &body))
		return true;
	buf_clear(&body, chunks);
	return false;
}

// RFC 9110 6.5.1: trailers only for a client that said that it takes them.
static bool put_trailers(struct h1_conn *c, const struct h1_message *m)
{
	const struct h1_message none = {0};
	m = m && c->takes_trailers ? m : &none;
	size_t len = fields_len(m);
	struct out o = {0};
	bool direct;
	if (!len || !(o.p = open_space(c, len + EXTRA, &direct)))
		return false;
	put(&o, STR("0\r\n"));
	put_fields(&o, m);
	put(&o, STR("\r\n"));
	return close_space(c, &o, direct);
}

bool h1_conn_send_end(struct h1_conn *c, const struct h1_message *trailers)
{
	if (!c->answering)
		return false;
	if (c->framing == H1_CHUNKED && !put_trailers(c, trailers))
		return false;
	end_answer(c);
	return true;
}

bool h1_conn_refuse(struct h1_conn *c, uint16_t status, const struct field *fields, size_t n_fields)
{
	const struct h1_message m = {.kind = H1_RESPONSE,
		.status = status,
		.content_length = 0,
		.end_stream = true,
		.fields = fields,
		.n_fields = n_fields};
	if (c->answering || c->closes)
		return false;
	bool was_open = c->open;
	c->is_head = c->open && c->is_head;
	c->minor = 1;
	c->open = true;
	c->persists = false;
	if (h1_conn_send_message(c, &m))
		return true;
	c->open = was_open;
	return false;
}
