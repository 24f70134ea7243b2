// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tcp/ooo.h"

#include "dataplane/tcp/tcp_internal.h"

_Static_assert(TCP_MAX_RANGES <= UINT8_MAX, "n_ranges");

static uint32_t range_end(const struct tcp_range *r)
{
	return r->seq + (uint32_t)r->data.len;
}

// What it takes of the chunks.
static uint64_t range_size(const struct tcp_range *r)
{
	return (r->data.len + BUF_CHUNK_ROOM - 1) / BUF_CHUNK_ROOM * BUF_CHUNK_ROOM;
}

static void range_free(struct tcp_conn *c, struct tcp_range *r)
{
	c->stack->range_bytes -= range_size(r);
	buf_clear(&r->data, c->stack->chunks);
	pool_put(&c->stack->ranges, r);
	if (--c->n_ranges == 0)
		tcp_timer_stop(c, TCP_TIMER_PATIENCE);
}

static void wait_for_hole(struct tcp_conn *c)
{
	c->hole_mark = c->rcv_nxt;
	tcp_timer_set(c, TCP_TIMER_PATIENCE, tcp_now(c->stack) + TCP_HOLE_NS);
}

// RFC 2018 8: what was only reported may be dropped. The peer sends it again if it still wants to.
void tcp_ooo_late(struct tcp_conn *c)
{
	if (c->rcv_nxt - c->hole_mark >= TCP_HOLE_LEAST) {
		wait_for_hole(c);
		return;
	}
	tcp_count(c->stack, TCP_drop_out_of_order_late);
	tcp_ooo_clear(c);
}

static void touch(struct tcp_conn *c, struct tcp_range *r)
{
	r->stamp = ++c->range_stamp;
	r->reported = false;
}

// Joins r with the range behind it when they touch.
static void join_next(struct tcp_conn *c, struct tcp_range *r)
{
	struct tcp_range *next = r->next;
	if (!next || range_end(r) != next->seq)
		return;
	// A whole queue moves without a new chunk, so this cannot fail.
	uint64_t apart = range_size(r) + range_size(next);
	CHECK(buf_move(&r->data, &next->data, next->data.len, c->stack->chunks));
	c->stack->range_bytes += range_size(r) - apart;
	r->next = next->next;
	range_free(c, next);
}

// Bytes that fit between prev (NULL = none before) and what follows it.
static bool insert_piece(
	struct tcp_conn *c, struct tcp_range *prev, uint32_t seq, const uint8_t *data, uint32_t len)
{
	struct tcp_stack *s = c->stack;
	// The last eighth of the pool is for data in order, and no more than a quarter for this.
	uint64_t most = (uint64_t)s->chunks->n_total / 4 * BUF_CHUNK_ROOM;
	if (pool_left(s->chunks) <= s->chunks->n_total / 8 || s->range_bytes >= most) {
		tcp_drop(s, TCP_drop_no_chunk);
		return false;
	}
	if (prev && range_end(prev) == seq) {
		uint64_t before = range_size(prev);
		if (!buf_append(&prev->data, s->chunks, data, len))
			return false;
		s->range_bytes += range_size(prev) - before;
		touch(c, prev);
		join_next(c, prev);
		return true;
	}
	// A full queue on the way loses every other segment of a fast start; who sends tiny pieces
	// instead would have a chunk for each.
	unsigned max = len < c->our_mss / 2u ? TCP_FEW_RANGES : TCP_MAX_RANGES;
	struct tcp_range *r = c->n_ranges < max ? pool_take(&s->ranges) : NULL;
	if (!r) {
		tcp_drop(s, TCP_drop_out_of_order_full);
		return false;
	}
	c->n_ranges++;
	*r = (struct tcp_range){.seq = seq};
	if (!buf_append(&r->data, s->chunks, data, len)) {
		range_free(c, r);
		return false;
	}
	struct tcp_range **link = prev ? &prev->next : &c->ranges;
	r->next = *link;
	*link = r;
	s->range_bytes += range_size(r);
	touch(c, r);
	join_next(c, r);
	if (!c->deadlines[TCP_TIMER_PATIENCE])
		wait_for_hole(c);
	return true;
}

bool tcp_ooo_insert(struct tcp_conn *c, uint32_t seq, const uint8_t *data, uint32_t len,
	struct tcp_sack_block *ret_twice)
{
	struct tcp_range *prev = NULL;
	struct tcp_range *next = c->ranges;
	while (len) {
		for (; next && seq_le(next->seq, seq); next = next->next)
			prev = next;
		// What prev holds of it already.
		if (prev && seq_lt(seq, range_end(prev))) {
			uint32_t known = min_u32(range_end(prev) - seq, len);
			if (ret_twice->start == ret_twice->end)
				*ret_twice = (struct tcp_sack_block){seq, seq + known};
			seq += known;
			data += known;
			len -= known;
			continue;
		}
		uint32_t piece = next ? min_u32(next->seq - seq, len) : len;
		if (!insert_piece(c, prev, seq, data, piece))
			return false;
		seq += piece;
		data += piece;
		len -= piece;
		next = prev ? prev : c->ranges; // the piece may have joined its neighbors
	}
	return true;
}

void tcp_ooo_pull(struct tcp_conn *c)
{
	struct tcp_range *r;
	while ((r = c->ranges) && seq_le(r->seq, c->rcv_nxt)) {
		struct pool *chunks = c->stack->chunks;
		uint32_t known = min_u32(c->rcv_nxt - r->seq, (uint32_t)r->data.len);
		c->stack->range_bytes -= range_size(r);
		buf_consume(&r->data, chunks, known);
		uint32_t fresh = (uint32_t)r->data.len;
		CHECK(buf_move(&c->recvq, &r->data, fresh, chunks)); // whole: needs no chunk
		c->rcv_nxt += fresh;
		counter_add(&c->stack->counters[TCP_bytes_in], fresh);
		c->ranges = r->next;
		range_free(c, r);
	}
}

void tcp_ooo_clear(struct tcp_conn *c)
{
	c->dsack_due = false; // it may be of these: without them it would say that they are here
	while (c->ranges) {
		struct tcp_range *r = c->ranges;
		c->ranges = r->next;
		range_free(c, r);
	}
}

bool tcp_ooo_unreported(const struct tcp_conn *c)
{
	for (const struct tcp_range *r = c->ranges; r; r = r->next)
		if (!r->reported)
			return true;
	return false;
}

void tcp_ooo_put_first(struct tcp_conn *c, uint32_t seq)
{
	for (struct tcp_range *r = c->ranges; r && seq_le(r->seq, seq); r = r->next)
		if (seq_lt(seq, range_end(r)))
			touch(c, r);
}

// Is a to be reported before b?
static bool before(const struct tcp_range *a, const struct tcp_range *b)
{
	return a->reported != b->reported ? b->reported : seq_lt(b->stamp, a->stamp);
}

unsigned tcp_ooo_blocks(struct tcp_conn *c, struct tcp_sack_block *ret, unsigned max)
{
	struct tcp_range *best[TCP_MAX_SACK_BLOCKS];
	unsigned n = 0;
	for (struct tcp_range *r = c->ranges; r; r = r->next) {
		unsigned at = n;
		while (at && before(r, best[at - 1]))
			at--;
		if (at == max)
			continue;
		n += n < max;
		for (unsigned i = n - 1; i > at; i--)
			best[i] = best[i - 1];
		best[at] = r;
	}
	for (unsigned i = 0; i < n; i++) {
		ret[i] = (struct tcp_sack_block){best[i]->seq, range_end(best[i])};
		best[i]->reported = true;
	}
	return n;
}
