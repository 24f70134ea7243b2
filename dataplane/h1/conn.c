// SPDX-License-Identifier: Apache-2.0
#include "dataplane/h1/impl.h"

#include <string.h>

_Static_assert(
	H1_C_well_formed + H1_BAD_VERSION == H1_C_version_505, "counters follow enum h1_malformed");

struct h1_conn *h1_conn_new(struct h1_context *ctx, const struct h1_events *events, struct buf *out,
	struct str scheme, void *user)
{
	struct h1_conn *c = pool_take(&ctx->conns);
	if (c)
		*c = (struct h1_conn){.ctx = ctx,
			.events = events,
			.out = out,
			.user = user,
			.scheme = scheme,
			.window = UINT32_MAX};
	return c;
}

void h1_conn_free(struct h1_conn *c)
{
	buf_clear(&c->pending, c->ctx->chunks);
	pool_put(&c->ctx->conns, c);
}

void *h1_conn_user(const struct h1_conn *c)
{
	return c->user;
}

enum h1_malformed h1_conn_failed(const struct h1_conn *c, uint16_t *ret_status)
{
	static const uint16_t statuses[H1_N_MALFORMED] = {[H1_TARGET_TOO_LONG] = 414,
		[H1_GRPC] = 415,
		[H1_EXPECTATION_UNKNOWN] = 417,
		[H1_TOO_LARGE] = 431,
		[H1_CODING_UNKNOWN] = 501,
		[H1_CONNECT] = 501,
		[H1_NO_MEMORY] = 503,
		[H1_BAD_VERSION] = 505};
	uint16_t status = statuses[c->malformed];
	*ret_status = status || !c->malformed ? status : 400;
	return c->malformed;
}

struct str h1_malformed_text(enum h1_malformed why)
{
	static const struct str texts[H1_N_MALFORMED] = {[H1_WELL_FORMED] = STR("well formed"),
		[H1_BAD_LINE_END] = STR("CR or LF alone, or two empty lines before the request"),
		[H1_BAD_REQUEST_LINE] = STR("malformed request line"),
		[H1_BAD_TARGET] = STR("malformed target"),
		[H1_BAD_NAME] = STR("malformed name of a field"),
		[H1_BAD_VALUE] = STR("malformed value of a field"),
		[H1_BAD_HOST] = STR("no Host, or a malformed one, or several"),
		[H1_BAD_CONTENT_LENGTH] = STR("malformed content-length, or several"),
		[H1_BAD_TRANSFER_ENCODING] = STR("transfer-encoding that is malformed or not "
						 "alone"),
		[H1_BAD_CONNECTION] = STR("malformed connection field, or one that names what "
					  "it may not"),
		[H1_BAD_CHUNK] = STR("malformed chunk"),
		[H1_BAD_TRAILER] = STR("a field that may not be in trailers"),
		[H1_TARGET_TOO_LONG] = STR("request line too long"),
		[H1_GRPC] = STR("gRPC in HTTP/1.1"),
		[H1_EXPECTATION_UNKNOWN] = STR("unknown expectation"),
		[H1_TOO_LARGE] = STR("request header fields too large"),
		[H1_CODING_UNKNOWN] = STR("unknown transfer coding"),
		[H1_CONNECT] = STR("CONNECT in HTTP/1.1"),
		[H1_NO_MEMORY] = STR("the load balancer is out of memory"),
		[H1_BAD_VERSION] = STR("unknown version of HTTP")};
	return texts[why];
}

bool h1_conn_closes(const struct h1_conn *c)
{
	return c->closes;
}

bool h1_conn_busy(const struct h1_conn *c)
{
	return c->open;
}

uint8_t h1_conn_minor(const struct h1_conn *c)
{
	return c->minor;
}

bool h1_conn_in_head(const struct h1_conn *c)
{
	return c->section_len > 0;
}

size_t h1_conn_unfinished(const struct h1_conn *c)
{
	return c->pending.len;
}

void h1_conn_set_window(struct h1_conn *c, uint32_t n)
{
	c->window = n;
}

bool h1_conn_ends_with_conn(const struct h1_conn *c)
{
	return c->answering && c->framing == H1_UNTIL_CLOSE;
}

static bool more_may_come(const struct h1_conn *c)
{
	return c->persists && !c->drains;
}

bool h1_conn_holds(const struct h1_conn *c)
{
	bool in_data = c->state == H1_IN_BODY || c->state == H1_CHUNK_DATA;
	return in_data ? c->window == 0 : c->state == H1_ENDED && more_may_come(c);
}

void h1_conn_drain(struct h1_conn *c)
{
	c->drains = true;
}

void h1_conn_fail(struct h1_conn *c, enum h1_malformed why)
{
	c->malformed = (uint8_t)why;
	c->state = H1_DROPPING;
	c->persists = false;
	c->section_len = 0;
	buf_clear(&c->pending, c->ctx->chunks);
	h1_count(c->ctx, H1_C_well_formed + (enum h1_counter)why);
}

void h1_conn_settle(struct h1_conn *c)
{
	c->open = false;
	c->answering = c->answered = false;
	c->closes = !c->persists || c->drains;
	c->state = c->closes ? H1_DROPPING : H1_AT_HEAD;
}

void h1_conn_request_ended(struct h1_conn *c)
{
	c->state = H1_ENDED;
}

enum section { SECTION_PART, SECTION_WHOLE, SECTION_BAD, SECTION_NONE };

static enum section give_up(struct h1_conn *c, enum h1_malformed why)
{
	c->malformed = (uint8_t)why;
	return SECTION_BAD;
}

// An empty line: the section's end, unless it is the one that may precede a request, and is no part
// of it: a client that ends a request by one more CRLF is idle behind it (RFC 9112 2.2).
static enum section on_empty_line(struct h1_conn *c)
{
	if (c->state == H1_AT_TRAILERS || c->n_lines)
		return SECTION_WHOLE;
	if (c->blank_seen)
		return give_up(c, H1_BAD_LINE_END);
	c->blank_seen = true;
	return SECTION_NONE;
}

// Looks for the end of the section, whatever pieces it comes in. *ret_n: bytes up to there, or to
// what is bad.
static enum section find_end(struct h1_conn *c, const uint8_t *p, size_t len, size_t *ret_n)
{
	size_t room = c->ctx->conf.max_header_bytes - c->section_len;
	size_t n = len < room ? len : room, at = 0;
	const uint8_t *lf;
	*ret_n = n;
	while ((lf = memchr(p + at, '\n', n - at))) {
		size_t i = (size_t)(lf - p), line = c->line_len + (i - at);
		if (line == 0 || (i ? p[i - 1] : (uint8_t)c->last) != '\r') {
			*ret_n = i;
			return give_up(c, H1_BAD_LINE_END);
		}
		at = i + 1;
		c->line_len = 0;
		enum section found = line == 1 ? on_empty_line(c) : SECTION_PART;
		*ret_n = at;
		if (found != SECTION_PART)
			return found;
		c->n_lines += line > 1;
	}
	*ret_n = n;
	c->line_len += (uint32_t)(n - at);
	c->last = n ? (char)p[n - 1] : c->last;
	c->section_len += (uint32_t)n;
	if (n < room)
		return SECTION_PART;
	bool in_first = c->state == H1_AT_HEAD && c->n_lines == 0;
	return give_up(c, in_first ? H1_TARGET_TOO_LONG : H1_TOO_LARGE);
}

static void on_trailers(struct h1_conn *c, const uint8_t *p, size_t len)
{
	struct h1_context *ctx = c->ctx;
	enum h1_malformed bad = h1_head_parse_trailers(ctx, p, len);
	if (bad) {
		h1_conn_fail(c, bad);
		return;
	}
	h1_conn_request_ended(c);
	if (ctx->head.n_fields)
		c->events->on_message(c, &ctx->head.message);
	else
		c->events->on_data(c, NULL, 0, true);
}

static void count_request(struct h1_context *ctx, const struct h1_head *h)
{
	h1_count(ctx, H1_C_requests);
	h1_count(ctx, H1_C_well_formed);
	if (h->minor == 0)
		h1_count(ctx, H1_C_requests_http10);
	if (h->chunked)
		h1_count(ctx, H1_C_requests_chunked);
	if (h->upgrades)
		h1_count(ctx, H1_C_upgrades_ignored);
}

static void on_head(struct h1_conn *c, const uint8_t *p, size_t len)
{
	struct h1_context *ctx = c->ctx;
	struct h1_head *h = &ctx->head;
	enum h1_malformed bad = h1_head_parse(ctx, c->scheme, p, len);
	c->minor = h->minor;
	if (bad) {
		h1_conn_fail(c, bad);
		return;
	}
	count_request(ctx, h);
	c->open = true;
	c->is_head = str_eq(h->message.method, STR("HEAD"));
	c->takes_trailers = h->takes_trailers;
	c->persists = !h->says_close && (h->minor == 1 || h->says_keep_alive);
	c->left = h->message.content_length > 0 ? (uint64_t)h->message.content_length : 0;
	c->state = h->chunked ? H1_CHUNK_SIZE : H1_IN_BODY;
	if (h->message.end_stream)
		h1_conn_request_ended(c);
	c->events->on_message(c, &h->message);
}

// Puts together what came in pieces. NULL = out of memory.
static const uint8_t *gather(struct h1_conn *c, const uint8_t *p, size_t len, size_t *ret_len)
{
	struct h1_context *ctx = c->ctx;
	*ret_len = c->pending.len + len;
	buf_copy_out(&c->pending, 0, ctx->gathered, c->pending.len);
	if (len)
		memcpy(ctx->gathered + c->pending.len, p, len);
	buf_clear(&c->pending, ctx->chunks);
	h1_count(ctx, H1_C_sections_gathered);
	return ctx->gathered;
}

// Of a head without an end: what there is, and a last piece.
static void parse_part(struct h1_conn *c, const uint8_t *p, size_t len)
{
	if (c->pending.len)
		p = gather(c, p, len, &len);
	h1_head_parse_part(c->ctx, c->scheme, p, len);
	c->minor = c->ctx->head.minor;
}

static void fail_section(struct h1_conn *c, enum h1_malformed why, const uint8_t *p, size_t len)
{
	if (c->state == H1_AT_HEAD)
		parse_part(c, p, len);
	h1_conn_fail(c, why);
}

const struct h1_message *h1_conn_known(struct h1_conn *c)
{
	static const struct h1_message nothing = {.kind = H1_REQUEST, .content_length = -1};
	if (c->state == H1_AT_HEAD)
		parse_part(c, (const uint8_t *)"", 0);
	else if (!c->malformed) // the context's head is another connection's
		return &nothing;
	return &c->ctx->head.message;
}

static size_t feed_section(struct h1_conn *c, const uint8_t *p, size_t len)
{
	size_t n, whole;
	enum section found = find_end(c, p, len, &n);
	if (found == SECTION_BAD) {
		fail_section(c, c->malformed, p, n);
		return len;
	}
	if (found == SECTION_PART) {
		if (buf_is_short(c->ctx->chunks) || !buf_append(&c->pending, c->ctx->chunks, p, n))
			fail_section(c, H1_NO_MEMORY, p, 0);
		return n;
	}
	if (found == SECTION_NONE) {
		c->section_len = 0;
		buf_clear(&c->pending, c->ctx->chunks);
		return n;
	}
	bool is_head = c->state == H1_AT_HEAD;
	const uint8_t *section = p;
	whole = n;
	if (c->pending.len)
		section = gather(c, p, n, &whole);
	c->section_len = c->n_lines = 0;
	c->blank_seen = false;
	if (is_head)
		on_head(c, section, whole);
	else
		on_trailers(c, section, whole);
	return n;
}

size_t h1_conn_step(struct h1_conn *c, const uint8_t *p, size_t len)
{
	switch (c->state) {
	case H1_AT_HEAD:
	case H1_AT_TRAILERS:
		return feed_section(c, p, len);
	case H1_ENDED: // what would be thrown away after the answer is so now
		return more_may_come(c) ? 0 : len;
	case H1_DROPPING:
		return len;
	default:
		return h1_body_feed(c, p, len);
	}
}

size_t h1_conn_feed(struct h1_conn *c, const uint8_t *p, size_t len)
{
	size_t at = 0, n = 1;
	while (at < len && n) {
		n = h1_conn_step(c, p + at, len - at);
		at += n;
	}
	return at;
}
