// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-load/body.h"

#include <endian.h>
#include <string.h>

#define MAX_QUEUED (4 * BODY_PIECE) // of one stream

static uint64_t word(uint64_t id, uint64_t index)
{
	return htole64(id + index * UINT64_C(0x9e3779b97f4a7c15));
}

void body_fill(uint64_t id, uint64_t at, uint8_t *out, size_t len)
{
	while (len) {
		uint64_t w = word(id, at / 8);
		size_t skip = at % 8, n = 8 - skip < len ? 8 - skip : len;
		memcpy(out, (const uint8_t *)&w + skip, n);
		out += n;
		at += n;
		len -= n;
	}
}

static bool is_content(uint64_t id, uint64_t at, const uint8_t *p, size_t len)
{
	while (len) {
		uint64_t w = word(id, at / 8);
		size_t skip = at % 8, n = 8 - skip < len ? 8 - skip : len;
		if (memcmp(p, (const uint8_t *)&w + skip, n) != 0)
			return false;
		p += n;
		at += n;
		len -= n;
	}
	return true;
}

static size_t put_prefix(struct body_out *b, uint8_t *out)
{
	if (!b->is_grpc || b->has_prefix)
		return 0;
	uint32_t size = htobe32((uint32_t)b->size);
	out[0] = 0; // not compressed
	memcpy(out + 1, &size, sizeof(size));
	b->has_prefix = true;
	return BODY_GRPC_PREFIX;
}

size_t body_out_next(struct body_out *b, size_t most, uint8_t out[BODY_GRPC_PREFIX + BODY_PIECE])
{
	size_t n = put_prefix(b, out);
	uint64_t left = b->size - b->at;
	size_t content = most < BODY_PIECE ? most : BODY_PIECE;
	content = left < content ? (size_t)left : content;
	body_fill(b->id, b->at, out + n, content);
	b->at += content;
	return n + content;
}

bool body_out_push(struct body_out *b, struct h2_stream *s)
{
	uint8_t piece[BODY_GRPC_PREFIX + BODY_PIECE];
	while (!body_out_done(b) && h2_stream_queued(s) < MAX_QUEUED) {
		size_t n = body_out_next(b, BODY_PIECE, piece);
		if (!h2_stream_send_data(s, piece, n, b->ends && b->at == b->size))
			return false;
	}
	return true;
}

static size_t take_prefix(struct body_in *b, const uint8_t *p, size_t len)
{
	size_t n = 0;
	for (; n < len && b->n_prefix < BODY_GRPC_PREFIX; n++, b->n_prefix++) {
		if (b->n_prefix == 0)
			b->is_wrong |= p[n] != 0;
		else
			b->said = b->said << 8 | p[n];
	}
	return n;
}

static uint64_t first_id(const struct body_in *b)
{
	uint64_t id;
	memcpy(&id, b->first, sizeof(id));
	return le64toh(id);
}

void body_in_feed(struct body_in *b, const uint8_t *p, size_t len)
{
	if (b->is_grpc && b->n_prefix < BODY_GRPC_PREFIX) {
		size_t n = take_prefix(b, p, len);
		p += n;
		len -= n;
	}
	if (b->at < BODY_ID_LEN) {
		size_t n = BODY_ID_LEN - b->at < len ? BODY_ID_LEN - b->at : len;
		memcpy(b->first + b->at, p, n);
		if (!b->id_known && b->at + n == BODY_ID_LEN) {
			b->id = first_id(b);
			b->id_known = true;
		}
	}
	if (b->id_known && !is_content(b->id, b->at, p, len))
		b->is_wrong = true;
	b->at += len;
}

bool body_in_is(const struct body_in *b, uint64_t size)
{
	bool prefix = !b->is_grpc || (b->n_prefix == BODY_GRPC_PREFIX && b->said == size);
	return !b->is_wrong && b->at == size && prefix;
}

bool body_in_said_id(const struct body_in *b, uint64_t *ret)
{
	if (b->at < BODY_ID_LEN)
		return false;
	*ret = first_id(b);
	return true;
}
