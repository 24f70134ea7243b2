// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-load/h1_answer.h"

#include "dataplane/h1/text.h"
#include "lb/base/str.h"

#include <string.h>

#define BEFORE_REASON (sizeof("HTTP/1.1 200 ") - 1)
#define MAX_DIGITS 15 // of a chunk's size: no body is that long

void h1_answer_init(struct h1_answer *a)
{
	a->state = H1_ANSWER_AT_STATUS;
	a->why = NULL;
	a->left = a->n_line = a->n_section = 0;
	a->status = 0;
	a->begun = a->has_length = a->is_chunked = a->closes = false;
}

static void spoil(struct h1_answer *a, const char *why)
{
	a->state = H1_ANSWER_MALFORMED;
	a->why = why;
}

// RFC 9112 4: the blank behind the status is there even if no reason is.
static void on_status_line(struct h1_answer *a, struct str line)
{
	uint64_t status = 0;
	bool ok = line.len >= BEFORE_REASON && str_starts(line, STR("HTTP/1.1 "));
	if (ok) {
		struct str digits = {line.p + BEFORE_REASON - 4, 3};
		struct str reason = {line.p + BEFORE_REASON, line.len - BEFORE_REASON};
		ok = str_number(digits, 999, &status) && digits.p[3] == ' ' &&
		     (reason.len == 0 || h1_text_is(reason, H1_TEXT_VALUE));
	}
	if (!ok || status < 100 || status == 101) {
		spoil(a, "HTTP/1.1: no status line");
		return;
	}
	a->status = (uint16_t)status;
	a->state = H1_ANSWER_AT_FIELD;
}

static void on_content_length(struct h1_answer *a, struct str value)
{
	if (a->has_length || !str_number(value, INT64_MAX, &a->left))
		spoil(a, "HTTP/1.1: content-length is not a number, or repeated");
	a->has_length = true;
}

// We have asked for no other coding.
static void on_transfer_encoding(struct h1_answer *a, struct str value)
{
	if (a->is_chunked || !str_eq_fold(value, STR("chunked")))
		spoil(a, "HTTP/1.1: transfer-encoding is not chunked, or repeated");
	a->is_chunked = true;
}

static void on_connection(struct h1_answer *a, struct str value)
{
	struct str option;
	while (h1_text_next(&value, &option))
		a->closes |= str_eq_fold(option, STR("close"));
}

// RFC 9112 5: no blank before the colon, and no line that goes on with the one before.
static void on_field(struct h1_answer *a, struct str line)
{
	struct str name = str_until(line, ':');
	if (name.len == line.len || !h1_text_is(name, H1_TEXT_TOKEN)) {
		spoil(a, "HTTP/1.1: a line that is not a field");
		return;
	}
	struct str value = {line.p + name.len + 1, line.len - name.len - 1};
	bool is_framing = str_eq_fold(name, STR("content-length")) ||
	                  str_eq_fold(name, STR("transfer-encoding"));
	value = str_trim(value);
	if (value.len && !h1_text_is(value, H1_TEXT_VALUE))
		spoil(a, "HTTP/1.1: a control byte in a field");
	else if (is_framing && (a->state == H1_ANSWER_AT_TRAILER || a->status < 200))
		spoil(a, "HTTP/1.1: a body's length where none can be");
	else if (str_eq_fold(name, STR("content-length")))
		on_content_length(a, value);
	else if (is_framing)
		on_transfer_encoding(a, value);
	else if (str_eq_fold(name, STR("connection")))
		on_connection(a, value);
}

// RFC 9112 6.3: where the body ends.
static void on_head_end(struct h1_answer *a, const struct h1_answer_events *events, void *user)
{
	bool has_body = a->status != 204 && a->status != 304;
	if (a->status < 200) {
		a->state = H1_ANSWER_AT_STATUS;
		return;
	}
	if (a->is_chunked && a->has_length) {
		spoil(a, "HTTP/1.1: both content-length and transfer-encoding");
		return;
	}
	if (has_body && !a->is_chunked && !a->has_length) {
		spoil(a, "HTTP/1.1: nothing says where the body ends");
		return;
	}
	a->n_section = 0;
	if (!has_body || (a->has_length && !a->left))
		a->state = H1_ANSWER_ENDED;
	else
		a->state = a->has_length ? H1_ANSWER_IN_BODY : H1_ANSWER_AT_CHUNK_SIZE;
	events->on_head(user, a->status);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = str_fold(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// RFC 9112 7.1: extensions are dropped.
static void on_chunk_size(struct h1_answer *a, struct str line)
{
	size_t n = 0;
	a->left = 0;
	for (; n < line.len && n <= MAX_DIGITS && hex_digit(line.p[n]) >= 0; n++)
		a->left = a->left << 4 | (unsigned)hex_digit(line.p[n]);
	struct str rest = str_trim((struct str){line.p + n, line.len - n});
	bool ok =
		rest.len == 0 ? n == line.len : rest.p[0] == ';' && h1_text_is(rest, H1_TEXT_VALUE);
	if (n == 0 || n > MAX_DIGITS || !ok) {
		spoil(a, "HTTP/1.1: a chunk's size is not a number");
		return;
	}
	a->n_section = 0;
	a->state = a->left ? H1_ANSWER_IN_CHUNK : H1_ANSWER_AT_TRAILER;
}

// Without its CRLF.
static void on_line(
	struct h1_answer *a, struct str line, const struct h1_answer_events *events, void *user)
{
	switch (a->state) {
	case H1_ANSWER_AT_STATUS:
		on_status_line(a, line);
		break;
	case H1_ANSWER_AT_FIELD:
		if (line.len)
			on_field(a, line);
		else
			on_head_end(a, events, user);
		break;
	case H1_ANSWER_AT_CHUNK_SIZE:
		on_chunk_size(a, line);
		break;
	case H1_ANSWER_AT_CHUNK_END:
		if (line.len)
			spoil(a, "HTTP/1.1: a chunk is longer than its size");
		else
			a->state = H1_ANSWER_AT_CHUNK_SIZE;
		break;
	default: // H1_ANSWER_AT_TRAILER
		if (line.len)
			on_field(a, line);
		else
			a->state = H1_ANSWER_ENDED;
	}
}

// Up to the line's end, or all of it.
static size_t take_line(struct h1_answer *a, const uint8_t *p, size_t len,
	const struct h1_answer_events *events, void *user)
{
	const uint8_t *lf = memchr(p, '\n', len);
	size_t n = lf ? (size_t)(lf - p) + 1 : len;
	struct str line = {(const char *)p, n};
	a->n_section += n;
	if (n > H1_ANSWER_MAX_LINE - a->n_line || a->n_section > H1_ANSWER_MAX_HEAD) {
		spoil(a, "HTTP/1.1: a line or a head is too long");
		return n;
	}
	if (!lf || a->n_line) {
		memcpy(a->line + a->n_line, p, n);
		a->n_line += n;
		line = (struct str){a->line, a->n_line};
	}
	if (!lf)
		return n;
	a->n_line = 0;
	if (str_ends(line, STR("\r\n")))
		on_line(a, (struct str){line.p, line.len - 2}, events, user);
	else
		spoil(a, "HTTP/1.1: a line ends without CR");
	return n;
}

static size_t take_data(struct h1_answer *a, const uint8_t *p, size_t len,
	const struct h1_answer_events *events, void *user)
{
	size_t n = len < a->left ? len : (size_t)a->left;
	a->left -= n;
	if (a->left == 0)
		a->state = a->state == H1_ANSWER_IN_BODY ? H1_ANSWER_ENDED : H1_ANSWER_AT_CHUNK_END;
	events->on_data(user, p, n);
	return n;
}

size_t h1_answer_feed(struct h1_answer *a, const uint8_t *p, size_t len,
	const struct h1_answer_events *events, void *user)
{
	size_t at = 0;
	a->begun |= len > 0;
	while (at < len && a->state < H1_ANSWER_ENDED) {
		bool in_data = a->state == H1_ANSWER_IN_BODY || a->state == H1_ANSWER_IN_CHUNK;
		at += in_data ? take_data(a, p + at, len - at, events, user)
		              : take_line(a, p + at, len - at, events, user);
	}
	return at;
}
