// SPDX-License-Identifier: Apache-2.0
// The lines of a header or trailer section (RFC 9112 5), and the fields that mean something to this
// hop (RFC 9110 7.6.1).
#include "dataplane/h1/impl.h"
#include "dataplane/h1/text.h"
#include "lb/route/req.h"

enum keep_field { KEEP, DROP };

static void spoil(struct h1_head *h, enum h1_malformed why)
{
	if (!h->malformed)
		h->malformed = why;
}

static enum keep_field on_host(struct h1_head *h, struct str v)
{
	if (h->host_seen || (v.len && !h1_text_is_authority(v)))
		spoil(h, H1_BAD_HOST);
	h->host_seen = true;
	h->host = v;
	return DROP;
}

// Repeated ones are refused even when equal, as in HTTP/2 (HX-08).
static enum keep_field on_content_length(struct h1_head *h, struct str v)
{
	uint64_t n = 0;
	if (h->message.content_length >= 0 || !str_number(v, INT64_MAX, &n))
		spoil(h, H1_BAD_CONTENT_LENGTH);
	h->message.content_length = (int64_t)n;
	return KEEP;
}

// RFC 9112 6.1, 6.3: without chunked at the end nobody knows where the body ends, which is worse
// than a coding that we do not know.
static enum keep_field on_transfer_encoding(struct h1_head *h, struct str v)
{
	struct str item;
	size_t n = 0;
	if (h->coding_seen)
		spoil(h, H1_BAD_TRANSFER_ENCODING);
	h->coding_seen = true;
	for (; h1_text_next(&v, &item); n++) {
		if (h->chunked || !h1_text_is(item, H1_TEXT_TOKEN))
			spoil(h, H1_BAD_TRANSFER_ENCODING);
		h->chunked = str_eq_fold(item, STR("chunked"));
	}
	if (!h->chunked)
		spoil(h, H1_BAD_TRANSFER_ENCODING);
	else if (n > 1)
		spoil(h, H1_CODING_UNKNOWN);
	return DROP;
}

// What decides whose request it is and where it ends is no option (H1-14).
static bool is_essential(struct str name)
{
	static const struct str names[] = {STR("host"), STR("content-length"),
		STR("transfer-encoding"), STR("content-type"), STR("authorization"), STR("cookie")};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_eq_fold(name, names[i]))
			return true;
	return false;
}

static void on_option(struct h1_head *h, struct str option)
{
	if (option.len == 0)
		return;
	if (!h1_text_is(option, H1_TEXT_TOKEN) || is_essential(option) ||
		h->n_named == H1_MAX_NAMED)
		spoil(h, H1_BAD_CONNECTION);
	else if (str_eq_fold(option, STR("close")))
		h->says_close = true;
	else if (str_eq_fold(option, STR("keep-alive")))
		h->says_keep_alive = true;
	else if (!str_eq_fold(option, STR("te")) && !str_eq_fold(option, STR("upgrade")))
		h->named[h->n_named++] = option;
}

static enum keep_field on_connection(struct h1_head *h, struct str v)
{
	struct str option;
	while (h1_text_next(&v, &option))
		on_option(h, option);
	return DROP;
}

static enum keep_field on_te(struct h1_head *h, struct str v)
{
	struct str item;
	while (h1_text_next(&v, &item))
		h->takes_trailers |= str_eq_fold(item, STR("trailers"));
	return DROP;
}

// A client of HTTP/1.0 cannot mean it (RFC 9110 10.1.1).
static enum keep_field on_expect(struct h1_head *h, struct str v)
{
	if (h->minor == 0)
		return DROP;
	if (!str_eq_fold(v, STR("100-continue")))
		spoil(h, H1_EXPECTATION_UNKNOWN);
	h->message.expects_continue = true;
	return DROP;
}

static enum keep_field on_content_type(struct h1_head *h, struct str v)
{
	h->is_grpc |= lb_content_type_is_grpc(v);
	return KEEP;
}

static enum keep_field on_upgrade(struct h1_head *h, struct str v)
{
	h->upgrades = true;
	return DROP;
}

static enum keep_field drop(struct h1_head *h, struct str v)
{
	return DROP;
}

static const struct {
	struct str name;
	enum keep_field (*on)(struct h1_head *, struct str value);
	bool frames; // never in trailers (RFC 9110 6.5.1)
} specials[] = {
	{STR("host"), on_host, true},
	{STR("content-length"), on_content_length, true},
	{STR("content-type"), on_content_type, false},
	{STR("connection"), on_connection, false},
	{STR("transfer-encoding"), on_transfer_encoding, true},
	{STR("te"), on_te, false},
	{STR("expect"), on_expect, false},
	{STR("keep-alive"), drop, false},
	{STR("proxy-connection"), drop, false},
	{STR("upgrade"), on_upgrade, false},
	{STR("http2-settings"), drop, false},
};
#define LENGTHS                                                                                    \
	(1u << 2 | 1u << 4 | 1u << 6 | 1u << 7 | 1u << 10 | 1u << 12 | 1u << 14 | 1u << 16 |       \
		1u << 17)

// A tab at the end of a value is a blank to some and a part of it to others.
static bool has_tab(struct str s)
{
	return s.len && memchr(s.p, '\t', s.len);
}

static enum keep_field on_field(
	struct h1_head *h, struct str name, struct str value, struct str untrimmed)
{
	if (name.len > 17 || !(LENGTHS >> name.len & 1)) // most names
		return KEEP;
	for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++) {
		if (!str_eq(name, specials[i].name))
			continue;
		if (specials[i].frames && has_tab(untrimmed))
			spoil(h, H1_BAD_VALUE);
		if (h->message.kind != H1_TRAILERS)
			return specials[i].on(h, value);
		if (specials[i].frames)
			spoil(h, H1_BAD_TRAILER);
		return DROP;
	}
	return KEEP;
}

// In lower case: as it lies, or else a copy. Empty = no name.
static struct str take_name(struct h1_context *ctx, struct str name)
{
	uint16_t classes = h1_text_classes(name);
	if (name.len == 0 || !(classes & H1_TEXT_TOKEN))
		return (struct str){0};
	if (!(classes >> 8 & H1_TEXT_UPPER))
		return name;
	char *copy = ctx->text + ctx->head.text_used;
	for (size_t i = 0; i < name.len; i++)
		copy[i] = str_fold(name.p[i]);
	ctx->head.text_used += name.len;
	return (struct str){copy, name.len};
}

void h1_fields_add(struct h1_context *ctx, struct str line)
{
	struct h1_head *h = &ctx->head;
	struct str raw = str_until(line, ':');
	struct str name = take_name(ctx, raw);
	if (name.len == 0 || raw.len == line.len) { // obs-fold begins with a blank: no name either
		spoil(h, H1_BAD_NAME);
		return;
	}
	struct str untrimmed = {line.p + raw.len + 1, line.len - raw.len - 1};
	struct str value = str_trim(untrimmed);
	if (value.len && !h1_text_is(value, H1_TEXT_VALUE)) {
		spoil(h, H1_BAD_VALUE);
		return;
	}
	h->list_bytes += name.len + value.len + 32;
	if (++h->list_fields > ctx->conf.max_header_fields ||
		h->list_bytes > ctx->conf.max_header_bytes)
		spoil(h, H1_TOO_LARGE);
	else if (on_field(h, name, value, untrimmed) == KEEP)
		ctx->fields[h->n_fields++] = (struct field){.name = name, .value = value};
}

static bool is_named(const struct h1_head *h, struct str name)
{
	for (size_t i = 0; i < h->n_named; i++)
		if (str_eq_fold(h->named[i], name))
			return true;
	return false;
}

void h1_fields_end(struct h1_context *ctx)
{
	struct h1_head *h = &ctx->head;
	size_t kept = 0;
	for (size_t i = 0; i < h->n_fields && h->n_named; i++)
		if (!is_named(h, ctx->fields[i].name))
			ctx->fields[kept++] = ctx->fields[i];
	h->n_fields = h->n_named ? kept : h->n_fields;
	if (h->takes_trailers) // the one of its options that HTTP/2 has (HX-05)
		ctx->fields[h->n_fields++] =
			(struct field){.name = STR("te"), .value = STR("trailers")};
	h->message.fields = ctx->fields;
	h->message.n_fields = h->n_fields;
}
