// SPDX-License-Identifier: Apache-2.0
// Memory bound: bytes go into the tail chunk while they fit, so two neighboring chunks always hold
// more than one chunk's room between them (up to 256 bytes less where buf_reserve() wanted them
// contiguous).
#include "dataplane/buf/buf.h"

#include "lb/base/check.h"
#include "lb/base/min.h"

#include <string.h>

#define RESERVE_MAX 256

_Static_assert(sizeof(struct buf_chunk) == BUF_CHUNK_SIZE, "the pool's objects are not padded");

int buf_pool_init(struct pool *chunks, uint32_t n_chunks)
{
	return pool_init(chunks, sizeof(struct buf_chunk), n_chunks);
}

static size_t tail_room(const struct buf *b)
{
	return b->tail ? (size_t)(BUF_CHUNK_ROOM - b->tail->end) : 0;
}

static size_t chunk_len(const struct buf_chunk *c)
{
	return (size_t)(c->end - c->off);
}

static void link_tail(struct buf *b, struct buf_chunk *c)
{
	c->next = NULL;
	if (b->tail)
		b->tail->next = c;
	else
		b->head = c;
	b->tail = c;
}

// Adds an empty chunk at the end. NULL = pool exhausted.
static struct buf_chunk *grow(struct buf *b, struct pool *chunks)
{
	struct buf_chunk *c = pool_take(chunks);
	if (!c)
		return NULL;
	c->off = c->end = 0;
	link_tail(b, c);
	return c;
}

// memcpy() by a call: where the compiler sees that little can be copied it puts string instructions
// in its place, which take longer to begin than libc takes for a small frame.
static inline void copy(void *to, const void *from, size_t len)
{
	__asm__("" : "+r"(len));
	memcpy(to, from, len);
}

static void fill_tail(struct buf *b, const uint8_t *data, size_t len)
{
	copy(b->tail->data + b->tail->end, data, len);
	b->tail->end = (uint16_t)(b->tail->end + len);
	b->len += len;
}

// What does not fit behind the end. A call of its own: what a queue holds mostly fits.
static __attribute__((noinline)) bool append_over(
	struct buf *b, struct pool *chunks, const uint8_t *p, size_t len)
{
	size_t n = tail_room(b);
	if ((len - n + BUF_CHUNK_ROOM - 1) / BUF_CHUNK_ROOM > pool_left(chunks))
		return false;
	if (n)
		fill_tail(b, p, n);
	for (p += n, len -= n; len; p += n, len -= n) {
		struct buf_chunk *c = grow(b, chunks);
		CHECK(c); // pool_left() promised it
		n = min_size(len, BUF_CHUNK_ROOM);
		fill_tail(b, p, n);
	}
	return true;
}

bool buf_append(struct buf *b, struct pool *chunks, const void *data, size_t len)
{
	bool fits = len <= tail_room(b);
	if (!fits && (b->tail || len > BUF_CHUNK_ROOM))
		return append_over(b, chunks, data, len);
	if (!fits && !grow(b, chunks))
		return false;
	if (len)
		fill_tail(b, data, len);
	return true;
}

uint8_t *buf_reserve(struct buf *b, struct pool *chunks, size_t n)
{
	DCHECK(n > 0 && n <= RESERVE_MAX);
	if (tail_room(b) < n && !grow(b, chunks))
		return NULL;
	uint8_t *p = b->tail->data + b->tail->end;
	b->tail->end = (uint16_t)(b->tail->end + n);
	b->len += n;
	return p;
}

uint8_t *buf_space(struct buf *b, struct pool *chunks, size_t n)
{
	if (b->tail ? tail_room(b) < n : n > BUF_CHUNK_ROOM || !grow(b, chunks))
		return NULL;
	return b->tail->data + b->tail->end;
}

static void unlink_head(struct buf *b)
{
	b->len -= chunk_len(b->head);
	b->head = b->head->next;
	if (!b->head)
		b->tail = NULL;
}

// Hands the head chunk of src to dst, or copies it when it fits behind dst's last byte.
static void move_chunk(struct buf *dst, struct buf *src, struct pool *chunks)
{
	struct buf_chunk *c = src->head;
	size_t len = chunk_len(c);
	unlink_head(src);
	if (len <= tail_room(dst)) {
		fill_tail(dst, c->data + c->off, len);
		pool_put(chunks, c);
		return;
	}
	// A few bytes at the end of a chunk would leave no room behind them for the next ones.
	if (c->off && len <= BUF_CHUNK_ROOM / 2) {
		memmove(c->data, c->data + c->off, len);
		c->off = 0;
		c->end = (uint16_t)len;
	}
	link_tail(dst, c);
	dst->len += len;
}

bool buf_move(struct buf *dst, struct buf *src, size_t n, struct pool *chunks)
{
	DCHECK(n <= src->len);
	size_t edge = n; // bytes of the chunk in which the cut falls
	for (const struct buf_chunk *c = src->head; c && edge >= chunk_len(c); c = c->next)
		edge -= chunk_len(c);
	// Where the cut falls may need one chunk more. Only when the cut is in the first chunk is
	// dst's tail still the one that it will be copied behind.
	struct buf_chunk *spare = NULL;
	if (edge && (edge < n || edge > tail_room(dst))) {
		spare = pool_take(chunks);
		if (!spare)
			return false;
		spare->off = spare->end = 0;
	}
	while (n > edge) {
		n -= chunk_len(src->head);
		move_chunk(dst, src, chunks);
	}
	while (edge) {
		if (!tail_room(dst)) {
			link_tail(dst, spare);
			spare = NULL;
		}
		struct buf_chunk *c = src->head;
		size_t piece = min_size(edge, tail_room(dst));
		fill_tail(dst, c->data + c->off, piece);
		c->off = (uint16_t)(c->off + piece);
		src->len -= piece;
		edge -= piece;
	}
	pool_put(chunks, spare);
	return true;
}

void buf_consume(struct buf *b, struct pool *chunks, size_t n)
{
	DCHECK(n <= b->len);
	while (n) {
		struct buf_chunk *c = b->head;
		size_t len = chunk_len(c);
		if (n < len) {
			c->off = (uint16_t)(c->off + n);
			b->len -= n;
			return;
		}
		unlink_head(b);
		pool_put(chunks, c);
		n -= len;
	}
}

void buf_clear(struct buf *b, struct pool *chunks)
{
	if (b->len)
		buf_consume(b, chunks, b->len);
}

void buf_copy_out(const struct buf *b, size_t offset, void *out, size_t len)
{
	DCHECK(offset + len <= b->len);
	const struct buf_chunk *c = b->head;
	if (!len)
		return;
	for (; offset >= chunk_len(c); c = c->next)
		offset -= chunk_len(c);
	for (uint8_t *p = out; len; c = c->next, offset = 0) {
		size_t piece = min_size(len, chunk_len(c) - offset);
		copy(p, c->data + c->off + offset, piece);
		p += piece;
		len -= piece;
	}
}

void buf_cursor_set(const struct buf *b, struct buf_cursor *at, size_t offset)
{
	DCHECK(offset < b->len);
	size_t rest = offset;
	struct buf_chunk *c = b->head;
	for (; rest >= chunk_len(c); c = c->next)
		rest -= chunk_len(c);
	*at = (struct buf_cursor){c, offset, (uint16_t)(c->off + rest)};
}

void buf_cursor_read(const struct buf *b, struct buf_cursor *at, void *out, size_t len)
{
	DCHECK(at->offset + len <= b->len);
	if (!len)
		return;
	if (!at->chunk) {
		at->chunk = b->head;
		at->at = b->head->off;
	}
	at->offset += len;
	for (uint8_t *p = out; len;) {
		if (at->at == at->chunk->end) {
			at->chunk = at->chunk->next;
			at->at = at->chunk->off;
		}
		size_t piece = min_size(len, (size_t)(at->chunk->end - at->at));
		copy(p, at->chunk->data + at->at, piece);
		at->at = (uint16_t)(at->at + piece);
		p += piece;
		len -= piece;
	}
}

uint8_t *buf_cursor_piece(const struct buf *b, struct buf_cursor *at, size_t *ret_len)
{
	DCHECK(at->offset < b->len);
	if (at->at == at->chunk->end) {
		at->chunk = at->chunk->next;
		at->at = at->chunk->off;
	}
	uint8_t *p = at->chunk->data + at->at;
	*ret_len = (size_t)(at->chunk->end - at->at);
	at->offset += *ret_len;
	at->at = at->chunk->end;
	return p;
}

size_t buf_cut(const struct buf *b, size_t most, unsigned n_chunks)
{
	const struct buf_chunk *c = b->head;
	size_t whole = 0;
	for (; c && n_chunks && whole + chunk_len(c) <= most; c = c->next, n_chunks--)
		whole += chunk_len(c);
	return !c || !n_chunks || whole > most - most / 4 ? whole : most;
}

const uint8_t *buf_peek(const struct buf *b, size_t *ret_len)
{
	if (!b->head) {
		*ret_len = 0;
		return NULL;
	}
	*ret_len = chunk_len(b->head);
	return b->head->data + b->head->off;
}
