// SPDX-License-Identifier: Apache-2.0
// Records that come in. One that lies whole in what was fed is opened into the scratch; of another
// one header and body are gathered, and it is opened from there and from its last part. A record
// counts as consumed when its plaintext was taken: until then it comes again, and is opened again,
// so that no plaintext is kept (TLS-08).
#include "dataplane/tls/impl.h"
#include "lb/base/min.h"

#include <string.h>

// TLS-07
static const struct gcra_limit empty_limit = GCRA_LIMIT(32, 10);

// A record's body: what was gathered of it, and the rest.
struct body {
	const struct buf *part;
	const uint8_t *last;
	size_t len; // of all
};

static uint16_t head_version(const uint8_t *head)
{
	return (uint16_t)(head[1] << 8 | head[2]);
}

// Below the RFCs' bounds, which are for ciphers that add more than ours (RFC 8446 5.2 and 5.4, RFC
// 5246 6.2.3): what is longer holds too much plaintext. A smaller bound that was agreed upon shows
// by the header under 1.2 alone: padding of 1.3 does not count.
static size_t max_body(const struct tls_conn *c)
{
	size_t plain = c->version == TLS_1_3 ? TLS_MAX_PLAIN : c->max_plain;
	return plain + tls_overhead(c) - TLS_HEADER;
}

// TLS-03, TLS-04, TLS-06: what can be said before the tag is checked.
static bool check_head(struct tls_conn *c, const uint8_t *head)
{
	bool known = c->version == TLS_1_3 ? head[0] == TLS_DATA
	                                   : head[0] >= TLS_ALERT && head[0] <= TLS_DATA;
	if (!known)
		tls_conn_fail(c, TLS_UNEXPECTED_RECORD);
	else if (c->version == TLS_1_2 && head_version(head) != TLS_1_2)
		tls_conn_fail(c, TLS_WRONG_VERSION);
	else if (tls_body_len(head) > max_body(c))
		tls_conn_fail(c, TLS_OVERSIZE_RECORD);
	return !c->failed;
}

static void copy_body(const struct body *b, size_t offset, void *out, size_t len)
{
	uint8_t *p = out;
	if (offset < b->part->len) {
		size_t n = min_size(len, b->part->len - offset);
		buf_copy_out(b->part, offset, p, n);
		p += n;
		len -= n;
		offset += n;
	}
	if (len)
		memcpy(p, b->last + (offset - b->part->len), len);
}

// Bytes [from, end) of the body, in pieces that go to the scratch.
static void set_pieces(
	struct aead_record *r, uint8_t *to, const struct body *b, size_t from, size_t end)
{
	struct buf_cursor at;
	size_t n;
	r->n_pieces = 0;
	if (from < b->part->len && from < end)
		buf_cursor_set(b->part, &at, from);
	for (; from < end; from += n, to += n) {
		const uint8_t *p;
		if (from < b->part->len) {
			p = buf_cursor_piece(b->part, &at, &n);
			n = min_size(n, end - from);
		} else {
			p = b->last + (from - b->part->len);
			n = end - from;
		}
		r->pieces[r->n_pieces++] = (struct aead_piece){to, p, n};
	}
}

// Opens a record into the scratch. False = it is no peer's who knows the key, or too short.
static bool decrypt(struct tls_conn *c, const uint8_t *head, const struct body *b, size_t *ret_len)
{
	struct tls_context *ctx = c->ctx;
	size_t before = tls_explicit_nonce(c);
	uint8_t explicit_nonce[TLS_EXPLICIT_NONCE], tag[AEAD_TAG];
	struct aead_record r;
	if (b->len < before + AEAD_TAG)
		return false;
	size_t end = b->len - AEAD_TAG;
	if (before)
		copy_body(b, 0, explicit_nonce, before);
	copy_body(b, end, tag, sizeof(tag));
	tls_keys_nonce(c, &c->read, explicit_nonce, r.nonce);
	tls_keys_aad(c, &c->read, head, end - before, &r);
	set_pieces(&r, ctx->scratch, b, before, end);
	*ret_len = end - before;
	return ctx->conf.aead->open(ctx->aead, tls_keys_at(c, &c->read), &r, tag);
}

// The inner type, and the length without it and padding (RFC 8446 5.4). 0 = nothing but padding.
static uint8_t strip(const uint8_t *p, size_t *len)
{
	size_t n = *len;
	for (uint64_t word; n >= sizeof(word); n -= sizeof(word)) {
		memcpy(&word, p + n - sizeof(word), sizeof(word));
		if (word)
			break;
	}
	while (n && !p[n - 1])
		n--;
	*len = n ? n - 1 : 0;
	return n ? p[n - 1] : 0;
}

// True = all of it was taken.
static bool deliver(struct tls_conn *c, size_t len)
{
	if (!len && !gcra_charge(&c->empties, &empty_limit, tls_now(c->ctx)))
		tls_conn_fail(c, TLS_EMPTY_FLOOD);
	if (c->taken < len) {
		const uint8_t *p = c->ctx->scratch + c->taken;
		size_t n = c->events->on_plain(c, c->user, p, len - c->taken);
		c->taken = (uint16_t)(c->taken + n);
	}
	if (c->taken < len && !c->failed)
		return false;
	c->taken = 0;
	c->read.seq++;
	return true;
}

// Plaintext that is not data.
static void take_other(struct tls_conn *c, uint8_t type, size_t len)
{
	c->read.seq++;
	if (!len || (type != TLS_HANDSHAKE && type != TLS_ALERT))
		tls_conn_fail(c, TLS_UNEXPECTED_RECORD);
	else if (type == TLS_HANDSHAKE)
		tls_messages_feed(c, c->ctx->scratch, len);
	else
		tls_messages_alert(c, c->ctx->scratch, len);
}

// One record. False = the same record is to be fed again.
static bool open_record(struct tls_conn *c, const uint8_t *head, const struct body *b)
{
	size_t len;
	if (c->read.seq == UINT64_MAX) {
		tls_conn_fail(c, TLS_SEQUENCE_END);
		return true;
	}
	if (!decrypt(c, head, b, &len)) {
		tls_conn_fail(c, TLS_BAD_TAG);
		return true;
	}
	uint8_t type = c->version == TLS_1_3 ? strip(c->ctx->scratch, &len) : head[0];
	if (len > c->max_plain) { // TLS-251
		tls_conn_fail(c, TLS_OVERSIZE_RECORD);
		return true;
	}
	if (type != TLS_HANDSHAKE && (c->n_message || c->skip)) { // TLS-18
		tls_conn_fail(c, TLS_UNEXPECTED_RECORD);
		return true;
	}
	bool has_data = type == TLS_DATA && len, taken = true;
	if (type == TLS_DATA)
		taken = deliver(c, len);
	else
		take_other(c, type, len);
	if (c->events->on_opened)
		c->events->on_opened(c, c->user, has_data, b->len);
	if (taken)
		tls_count(c, TLS_C_records_in);
	return taken;
}

// Of a client, a part takes none of the last chunks, which are for answers (TH-70). False = it has
// to wait.
static bool keep(struct tls_conn *c, const uint8_t *p, size_t len)
{
	struct pool *chunks = c->ctx->chunks;
	bool may_take = c->role == TLS_CLIENT || !buf_is_short(chunks);
	return !len || (may_take && buf_append(&c->part, chunks, p, len));
}

// What one packet does not hold. Returns how many bytes are consumed; sets c->waits, c->starves.
static size_t gather(struct tls_conn *c, const uint8_t *p, size_t len)
{
	size_t used = min_size(len, TLS_HEADER - c->n_head);
	if (!c->n_head)
		c->part_since_ns = tls_now(c->ctx);
	memcpy(c->head + c->n_head, p, used);
	c->n_head = (uint8_t)(c->n_head + used);
	if (c->n_head < TLS_HEADER || !check_head(c, c->head))
		return used;
	size_t left = tls_body_len(c->head) - c->part.len;
	if (len - used < left) {
		if (keep(c, p + used, len - used))
			return len;
		c->starves = true;
		tls_count(c, TLS_C_waits_no_chunk);
		return used;
	}
	struct body b = {&c->part, p + used, tls_body_len(c->head)};
	c->waits = !open_record(c, c->head, &b);
	if (c->waits)
		return used;
	buf_clear(&c->part, c->ctx->chunks);
	c->n_head = 0;
	return used + left;
}

static size_t feed_one(struct tls_conn *c, const uint8_t *p, size_t len)
{
	if (c->n_head || len < TLS_HEADER || len - TLS_HEADER < tls_body_len(p))
		return gather(c, p, len);
	if (!check_head(c, p))
		return len;
	struct body b = {&c->part, p + TLS_HEADER, tls_body_len(p)};
	c->waits = !open_record(c, p, &b);
	return c->waits ? 0 : TLS_HEADER + b.len;
}

static bool is_over(const struct tls_conn *c)
{
	return c->failed || c->ended;
}

size_t tls_conn_unfinished(const struct tls_conn *c)
{
	return c->part.len;
}

bool tls_conn_wants_chunks(const struct tls_conn *c)
{
	return c->starves && !is_over(c);
}

size_t tls_conn_feed(struct tls_conn *c, const uint8_t *data, size_t len)
{
	struct tls_context *ctx = c->ctx;
	size_t used = 0;
	if (is_over(c))
		return len;
	if (ctx->feeding || !len)
		return 0;
	ctx->feeding = true;
	if (c->waits) // which was not the peer's fault
		c->part_since_ns = tls_now(ctx);
	c->waits = c->starves = false;
	while (used < len && !c->waits && !c->starves && !is_over(c))
		used += feed_one(c, data + used, len - used);
	ctx->feeding = false;
	return is_over(c) ? len : used;
}
