// SPDX-License-Identifier: Apache-2.0
// A request's body (RFC 9112 6, 7.1): by its length, or in chunks, whose lines are read where they
// lie.
#include "dataplane/h1/impl.h"
#include "dataplane/h1/text.h"
#include "lb/base/min.h"

#include <string.h>

static size_t pass(struct h1_conn *c, const uint8_t *p, size_t len)
{
	size_t n = len < c->left ? len : (size_t)c->left;
	n = n < c->window ? n : c->window;
	if (n == 0)
		return 0;
	c->left -= n;
	c->window -= (uint32_t)n;
	bool is_last = c->state == H1_IN_BODY && c->left == 0;
	if (is_last)
		h1_conn_request_ended(c);
	else if (c->left == 0)
		c->state = H1_CHUNK_END;
	c->events->on_data(c, p, n, is_last);
	return n;
}

static int hex_digit(uint8_t b)
{
	if (b >= '0' && b <= '9')
		return b - '0';
	b |= 0x20;
	return b >= 'a' && b <= 'f' ? b - 'a' + 10 : -1;
}

static enum h1_state after_size(uint8_t b)
{
	if (b == '\r')
		return H1_CHUNK_LF;
	if (b == ';')
		return H1_CHUNK_EXTENSION;
	return b == ' ' || b == '\t' ? H1_CHUNK_BLANK : H1_DROPPING;
}

// Sixteen digits are enough for any size, and one of them must be left unused.
static enum h1_state on_size(struct h1_conn *c, uint8_t b)
{
	int digit = hex_digit(b);
	if (digit < 0)
		return c->n_digits ? after_size(b) : H1_DROPPING;
	if (c->n_digits == 16 || c->left >> 59)
		return H1_DROPPING;
	c->n_digits++;
	c->left = c->left << 4 | (unsigned)digit;
	return H1_CHUNK_SIZE;
}

// Takes what there is of it at once: a client may send much more of it than of a body (TH-123).
static size_t on_extension(struct h1_conn *c, const uint8_t *p, size_t len)
{
	size_t most = H1_MAX_EXTENSION - c->n_extension;
	size_t n = min_size(len, most + 1);
	const uint8_t *end = memchr(p, '\r', n);
	if (end)
		n = (size_t)(end - p);
	if (n > most || (n && !h1_text_is((struct str){(const char *)p, n}, H1_TEXT_VALUE))) {
		c->state = H1_DROPPING;
		return n;
	}
	c->n_extension += (uint16_t)n;
	if (!end)
		return n;
	c->state = H1_CHUNK_LF;
	return n + 1;
}

// RFC 9110 5.6.3: such blanks must be taken, but only where an extension follows.
static enum h1_state on_blank(struct h1_conn *c, uint8_t b)
{
	bool ok = b != '\r' && ++c->n_extension <= H1_MAX_EXTENSION;
	return ok ? after_size(b) : H1_DROPPING;
}

static enum h1_state on_size_end(struct h1_conn *c, uint8_t b)
{
	c->n_digits = 0;
	c->n_extension = 0;
	if (b != '\n')
		return H1_DROPPING;
	return c->left ? H1_CHUNK_DATA : H1_AT_TRAILERS;
}

// The state after a byte of a chunk's lines; DROPPING = it is not one.
static enum h1_state step(struct h1_conn *c, uint8_t b)
{
	switch (c->state) {
	case H1_CHUNK_SIZE:
		return on_size(c, b);
	case H1_CHUNK_BLANK:
		return on_blank(c, b);
	case H1_CHUNK_LF:
		return on_size_end(c, b);
	case H1_CHUNK_END:
		return b == '\r' ? H1_CHUNK_END_LF : H1_DROPPING;
	default: // H1_CHUNK_END_LF
		return b == '\n' ? H1_CHUNK_SIZE : H1_DROPPING;
	}
}

size_t h1_body_feed(struct h1_conn *c, const uint8_t *p, size_t len)
{
	if (c->state == H1_IN_BODY || c->state == H1_CHUNK_DATA)
		return pass(c, p, len);
	size_t n = 0;
	while (n < len && c->state != H1_CHUNK_DATA && c->state != H1_AT_TRAILERS) {
		if (c->state == H1_CHUNK_EXTENSION)
			n += on_extension(c, p + n, len - n);
		else
			c->state = (uint8_t)step(c, p[n++]);
		if (c->state == H1_DROPPING) {
			h1_conn_fail(c, H1_BAD_CHUNK);
			break;
		}
	}
	return n;
}
