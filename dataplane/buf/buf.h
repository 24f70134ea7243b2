// SPDX-License-Identifier: Apache-2.0
// A FIFO of bytes in pooled chunks: the send queues of connections and streams. A chunk has one
// owner; moving bytes between queues passes whole chunks and copies only edges and small pieces, so
// a queue never pins much more memory than it holds bytes.
// Thread: the owning worker. It knows no mbuf, socket or protocol.
#pragma once

#include "lb/base/check.h"
#include "lb/base/pool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUF_CHUNK_SIZE 2048
#define BUF_CHUNK_ROOM (BUF_CHUNK_SIZE - 16)

struct buf_chunk {
	struct buf_chunk *next;
	uint16_t off; // first byte held
	uint16_t end; // one past the last byte held
	uint8_t data[BUF_CHUNK_ROOM];
};

// All zero = empty.
struct buf {
	struct buf_chunk *head, *tail;
	size_t len; // bytes held
};

// A position in a queue that is read repeatedly without being consumed (TCP retransmits from it).
// Valid while the bytes at and after it stay queued.
struct buf_cursor {
	struct buf_chunk *chunk; // NULL = start of the queue
	size_t offset; // from the head of the queue; the reader subtracts what it consumes
	uint16_t at; // index into chunk->data
};

// Bytes that one of many users may have beyond what each has at first: an eighth of what is left of
// the first half of the chunks. So all of them together never get more than that half, and a
// newcomer always finds some (Choudhury and Hahne, "Dynamic Queue Length Thresholds").
static inline uint64_t buf_share(const struct pool *chunks)
{
	uint32_t half = chunks->n_total / 2, used = chunks->n_used;
	return used < half ? (uint64_t)(half - used) * BUF_CHUNK_ROOM / 8 : 0;
}
// Of `wanted` bytes those that such a user may have: `first` in any case, and more up to `most` as
// its share allows.
static inline uint32_t buf_allowed(
	const struct pool *chunks, uint32_t wanted, uint32_t first, uint32_t most)
{
	uint64_t share = buf_share(chunks);
	uint32_t more = share < most ? (uint32_t)share : most;
	uint32_t bound = more > first ? more : first;
	return wanted < bound ? wanted : bound;
}

// The last chunks are for answers, control frames, and what drains the queues: neither bodies nor
// clients' heads and records that are not whole, nor what their handshakes give back, nor what is
// left with TCP of theirs, take them (TH-70).
#define BUF_LAST_CHUNKS 16
static inline bool buf_is_short(const struct pool *chunks)
{
	return pool_left(chunks) <= BUF_LAST_CHUNKS;
}

// Room for n_chunks chunks. 0 or -ENOMEM.
[[nodiscard]] int buf_pool_init(struct pool *, uint32_t n_chunks);

// Appends all of data, or nothing: false = pool exhausted.
[[nodiscard]] bool buf_append(struct buf *, struct pool *, const void *data, size_t len);
// Appends n <= 256 contiguous bytes, counted in len, for the caller to fill now. NULL = pool
// exhausted.
uint8_t *buf_reserve(struct buf *, struct pool *, size_t n);
// Reserves n contiguous bytes after the end, not counted yet: the caller fills at least one and
// reports them to buf_added(). NULL if they do not fit into the last chunk, or if the pool is
// exhausted.
uint8_t *buf_space(struct buf *, struct pool *, size_t n);
static inline void buf_added(struct buf *b, size_t n)
{
	DCHECK(n > 0 && n <= (size_t)BUF_CHUNK_ROOM - b->tail->end);
	b->tail->end = (uint16_t)(b->tail->end + n);
	b->len += n;
}
// Moves the first n bytes (n <= src->len) to the end of dst. false = pool exhausted, nothing moved.
[[nodiscard]] bool buf_move(struct buf *dst, struct buf *src, size_t n, struct pool *);
// Drops the first n bytes (n <= len).
void buf_consume(struct buf *, struct pool *, size_t n);
void buf_clear(struct buf *, struct pool *);
// Copies len bytes that start `offset` bytes from the head; offset + len <= buf->len.
void buf_copy_out(const struct buf *, size_t offset, void *out, size_t len);
// Sets the cursor `offset` bytes from the head (offset < b->len); this walks the chunks.
void buf_cursor_set(const struct buf *, struct buf_cursor *, size_t offset);
// Like buf_copy_out() from a cursor, which advances by len: sequential reads need no walk.
void buf_cursor_read(const struct buf *, struct buf_cursor *, void *out, size_t len);
// Behind the last byte: what is appended next begins there. The buffer is not empty.
static inline struct buf_cursor buf_end(const struct buf *b)
{
	return (struct buf_cursor){b->tail, b->len, b->tail->end};
}
// The contiguous bytes at the cursor (at->offset < b->len), which advances behind them; *ret_len is
// more than 0. They may be overwritten where they lie.
uint8_t *buf_cursor_piece(const struct buf *, struct buf_cursor *, size_t *ret_len);
// A cut that suits buf_move(): at most `most` bytes of the first n_chunks chunks, and whole chunks
// alone if these have three quarters of them.
size_t buf_cut(const struct buf *, size_t most, unsigned n_chunks);
// The longest contiguous piece at the head; *ret_len = 0 if empty.
const uint8_t *buf_peek(const struct buf *, size_t *ret_len);
