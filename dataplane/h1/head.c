// SPDX-License-Identifier: Apache-2.0
// A request's head (RFC 9112 2, 3), and what its fields mean together. Every LF has a CR before it:
// h1_conn_feed() has looked.
#include "dataplane/h1/impl.h"
#include "dataplane/h1/text.h"

// Takes a line off the section, without its CRLF. Empty = the section ends. False = none is whole.
static bool take_line(struct str *section, struct str *ret)
{
	struct str line = str_until(*section, '\n');
	if (line.len == section->len)
		return false;
	section->p += line.len + 1;
	section->len -= line.len + 1;
	*ret = (struct str){line.p, line.len - 1};
	return true;
}

// RFC 9112 2.3. Of 1.x only those that are known: a later one may mean something else by it.
static enum h1_malformed parse_version(struct h1_head *h, struct str v)
{
	bool ok = v.len == 8 && str_starts(v, STR("HTTP/")) && v.p[6] == '.' &&
	          h1_text_is((struct str){v.p + 5, 1}, H1_TEXT_DIGIT) &&
	          h1_text_is((struct str){v.p + 7, 1}, H1_TEXT_DIGIT);
	if (!ok)
		return H1_BAD_REQUEST_LINE;
	uint8_t minor = (uint8_t)(v.p[7] - '0');
	if (v.p[5] != '1' || minor > 1)
		return H1_BAD_VERSION;
	h->minor = minor;
	return H1_WELL_FORMED;
}

// RFC 9112 3: one blank each, not those that a lenient parser may take (H1-02). What could be read
// stays in the message.
static enum h1_malformed parse_request_line(struct h1_head *h, struct str line)
{
	struct h1_message *m = &h->message;
	struct str method = str_until(line, ' ');
	if (method.len == line.len || !h1_text_is(method, H1_TEXT_METHOD))
		return H1_BAD_REQUEST_LINE;
	struct str rest = {line.p + method.len + 1, line.len - method.len - 1};
	struct str target = str_until(rest, ' ');
	m->method = method;
	m->path = target;
	if (target.len == rest.len || target.len == 0)
		return H1_BAD_REQUEST_LINE;
	struct str version = {rest.p + target.len + 1, rest.len - target.len - 1};
	enum h1_malformed bad = parse_version(h, version);
	if (bad)
		return bad;
	h->list_bytes = method.len + target.len;
	if (!str_eq(method, STR("CONNECT")))
		return h1_target_parse(h, target);
	h->host_in_target = true;
	m->authority = target;
	m->path = (struct str){0};
	return H1_CONNECT;
}

static void begin(struct h1_context *ctx, enum h1_message_kind kind)
{
	struct h1_head *h = &ctx->head;
	memset(h, 0, sizeof(*h));
	h->message.kind = kind;
	h->message.content_length = -1;
	h->minor = 1;
}

// RFC 9112 3.2: the target's authority rules, yet a Host must be there and be one.
static enum h1_malformed end_host(struct h1_head *h)
{
	if (!h->host_seen && (h->minor == 1 || !h->host_in_target))
		return H1_BAD_HOST;
	return h->message.authority.len ? H1_WELL_FORMED : H1_BAD_HOST;
}

// RFC 9112 6.1: two lengths, or chunks from a client that cannot know them, are an attack.
static enum h1_malformed end_framing(struct h1_head *h)
{
	struct h1_message *m = &h->message;
	if (h->coding_seen && (m->content_length >= 0 || h->minor == 0))
		return H1_BAD_TRANSFER_ENCODING;
	m->end_stream = !h->chunked && m->content_length <= 0;
	m->expects_continue &= !m->end_stream;
	return H1_WELL_FORMED;
}

static void parse_fields(struct h1_context *ctx, struct str section)
{
	struct str line;
	while (take_line(&section, &line) && line.len)
		h1_fields_add(ctx, line);
	h1_fields_end(ctx);
}

void h1_head_parse_part(struct h1_context *ctx, struct str scheme, const uint8_t *p, size_t len)
{
	struct h1_head *h = &ctx->head;
	struct str section = {(const char *)p, len}, line;
	begin(ctx, H1_REQUEST);
	h->message.scheme = scheme;
	h->malformed = parse_request_line(h, take_line(&section, &line) ? line : section);
	parse_fields(ctx, section);
	if (!h->host_in_target)
		h->message.authority = h->host;
}

enum h1_malformed h1_head_parse(
	struct h1_context *ctx, struct str scheme, const uint8_t *p, size_t len)
{
	struct h1_head *h = &ctx->head;
	h1_head_parse_part(ctx, scheme, p, len);
	if (!h->malformed)
		h->malformed = end_framing(h);
	if (!h->malformed)
		h->malformed = end_host(h);
	if (!h->malformed && h->is_grpc) // its status would come in trailers that few see
		h->malformed = H1_GRPC;
	return h->malformed;
}

enum h1_malformed h1_head_parse_trailers(struct h1_context *ctx, const uint8_t *p, size_t len)
{
	struct h1_head *h = &ctx->head;
	begin(ctx, H1_TRAILERS);
	h->message.end_stream = true;
	parse_fields(ctx, (struct str){(const char *)p, len});
	return h->malformed;
}
