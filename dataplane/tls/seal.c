// SPDX-License-Identifier: Apache-2.0
// Records that go out. Plaintext moves into the output first, whole chunks as they are, and is
// sealed there: what is copied is what the queue would copy anyway.
#include "dataplane/tls/impl.h"
#include "lb/base/check.h"
#include "lb/base/min.h"

#include <string.h>

// TLS-09, as Go's crypto/tls has it: a segment's worth until so much was sent without a pause.
#define SMALL_PLAIN 1369 // in a segment of IPv6 with timestamps
#define RUN_BYTES (128u << 10)
#define PAUSE_NS NS_PER_SECOND
// Less room than this is not worth a record of its own while more waits.
#define LEAST_PLAIN 256
// Of the plaintext in one record: below AEAD_MAX_PIECES, since its ends may need a chunk each.
#define MAX_CHUNKS 24
// That a record of data may take: for its header, a cut in a chunk, and its tag.
#define SPARE_CHUNKS 3
// An alert may follow the last record.
#define LAST_SEQ (UINT64_MAX - 1)

static bool is_gcm(const struct tls_conn *c)
{
	return c->aead != TLS_CHACHA20_POLY1305;
}

// Header and explicit nonce of a record with len bytes of plaintext.
static void put_head(const struct tls_conn *c, enum tls_type type, size_t len, uint8_t *p)
{
	size_t body = tls_overhead(c) - TLS_HEADER + len;
	p[0] = (uint8_t)(c->version == TLS_1_3 ? TLS_DATA : type);
	p[1] = TLS_1_2 >> 8;
	p[2] = TLS_1_2 & 0xff;
	p[3] = (uint8_t)(body >> 8);
	p[4] = (uint8_t)body;
	if (tls_explicit_nonce(c)) {
		uint64_t seq = __builtin_bswap64(c->write.seq);
		memcpy(p + TLS_HEADER, &seq, sizeof(seq)); // TLS-11
	}
}

static void seal(struct tls_conn *c, const uint8_t *head, size_t len, struct aead_record *r,
	uint8_t *ret_tag)
{
	struct tls_context *ctx = c->ctx;
	tls_keys_nonce(c, &c->write, head + TLS_HEADER, r->nonce);
	tls_keys_aad(c, &c->write, head, len, r);
	ctx->conf.aead->seal(ctx->aead, tls_keys_at(c, &c->write), r, ret_tag);
	c->write.seq++;
	tls_count(c, TLS_C_records_out);
}

// A few bytes that are no data. False = no memory.
static bool seal_control(
	struct tls_conn *c, enum tls_type type, const uint8_t *text, size_t len, struct buf *out)
{
	struct aead_record r;
	size_t before = TLS_HEADER + tls_explicit_nonce(c), inner_type = c->version == TLS_1_3;
	uint8_t *p = buf_reserve(out, c->ctx->chunks, tls_overhead(c) + len);
	if (!p)
		return false;
	uint8_t *body = p + before;
	put_head(c, type, len, p);
	memcpy(body, text, len);
	if (inner_type)
		body[len] = (uint8_t)type;
	r.pieces[0] = (struct aead_piece){body, body, len + inner_type};
	r.n_pieces = 1;
	seal(c, p, len, &r, body + len + inner_type);
	return true;
}

// The bytes behind `at`, where they lie.
static void set_pieces(struct aead_record *r, const struct buf *b, struct buf_cursor at, size_t len)
{
	r->n_pieces = 0;
	for (size_t n; len; len -= n) {
		uint8_t *p = buf_cursor_piece(b, &at, &n);
		n = min_size(n, len);
		r->pieces[r->n_pieces++] = (struct aead_piece){p, p, n};
	}
}

// The first len bytes of plain. False = no memory, nothing changed.
static bool seal_data(struct tls_conn *c, struct buf *plain, size_t len, struct buf *out)
{
	struct pool *chunks = c->ctx->chunks;
	size_t inner_type = c->version == TLS_1_3;
	struct aead_record r;
	if (pool_left(chunks) < SPARE_CHUNKS)
		return false;
	uint8_t *head = buf_reserve(out, chunks, TLS_HEADER + tls_explicit_nonce(c));
	CHECK(head); // as what follows: pool_left() promised it
	put_head(c, TLS_DATA, len, head);
	struct buf_cursor at = buf_end(out);
	CHECK(buf_move(out, plain, len, chunks));
	uint8_t *end = buf_reserve(out, chunks, inner_type + AEAD_TAG);
	CHECK(end);
	if (inner_type)
		end[0] = TLS_DATA;
	set_pieces(&r, out, at, len + inner_type);
	seal(c, head, len, &r, end + inner_type);
	return true;
}

// RFC 8446 4.6.3. False = no memory.
static bool seal_key_update(struct tls_conn *c, struct buf *out)
{
	const uint8_t text[] = {24, 0, 0, 1, c->update == TLS_UPDATE_BOTH_KEYS};
	if (!seal_control(c, TLS_HANDSHAKE, text, sizeof(text), out))
		return false;
	tls_keys_update(c, &c->write);
	tls_count(c, TLS_C_key_updates_out);
	c->update = TLS_KEEP_KEYS;
	return true;
}

// New keys if they are asked for or due (TLS-13, TLS-14). False = no memory.
static bool renew(struct tls_conn *c, struct buf *out)
{
	if (c->write.seq >= c->ctx->conf.max_records && is_gcm(c))
		tls_conn_update_keys(c, false);
	return c->update == TLS_KEEP_KEYS || seal_key_update(c, out);
}

// Bytes of data sealed without a pause, as of now.
static uint32_t run_now(const struct tls_conn *c)
{
	return tls_now(c->ctx) - c->sealed_ns < PAUSE_NS ? c->run : 0;
}

// Of the plaintext in the next record.
static size_t most_plain(const struct tls_conn *c)
{
	return min_size(run_now(c) < RUN_BYTES ? SMALL_PLAIN : TLS_MAX_PLAIN, c->max_plain);
}

// How much of plain the next record takes; 0 = there is no room.
static size_t record_len(const struct tls_conn *c, const struct buf *plain, size_t room)
{
	if (room < tls_overhead(c) + min_size(plain->len, LEAST_PLAIN))
		return 0;
	return buf_cut(plain, min_size(most_plain(c), room - tls_overhead(c)), MAX_CHUNKS);
}

static void note_run(struct tls_conn *c, size_t len)
{
	c->run = (uint32_t)min_size(run_now(c) + len, RUN_BYTES);
	c->sealed_ns = tls_now(c->ctx);
}

// Records of data. True = some of it waits.
static bool seal_all(struct tls_conn *c, struct buf *plain, struct buf *out, size_t room)
{
	size_t start = out->len;
	while (plain->len) {
		if (!renew(c, out))
			return true;
		if (c->write.seq >= LAST_SEQ) {
			tls_conn_fail(c, TLS_SEQUENCE_END);
			return false;
		}
		size_t used = out->len - start;
		size_t len = record_len(c, plain, used < room ? room - used : 0);
		if (!len || !seal_data(c, plain, len, out))
			return true;
		note_run(c, len);
	}
	return false;
}

// True = no memory.
static bool seal_alert(struct tls_conn *c, uint8_t alert, struct buf *out)
{
	enum { WARNING = 1, FATAL = 2 };
	const uint8_t text[] = {alert == TLS_CLOSE_NOTIFY ? WARNING : FATAL, alert};
	c->shut = seal_control(c, TLS_ALERT, text, sizeof(text), out);
	return !c->shut;
}

bool tls_conn_seal(struct tls_conn *c, struct buf *plain, struct buf *out, size_t room)
{
	if (tls_conn_is_shut(c))
		return false;
	if (!c->failed && (!renew(c, out) || seal_all(c, plain, out, room)))
		return true;
	if (c->failed)
		return seal_alert(c, c->alert, out);
	return c->shutting && seal_alert(c, TLS_CLOSE_NOTIFY, out);
}

bool tls_conn_wants_seal(const struct tls_conn *c)
{
	return !tls_conn_is_shut(c) && (c->failed || c->shutting || c->update != TLS_KEEP_KEYS);
}

size_t tls_conn_plain_room(const struct tls_conn *c, size_t room)
{
	size_t most = most_plain(c);
	size_t least = most - most / 4 + tls_overhead(c); // of a record: see buf_cut()
	size_t over = (room / least + 1) * tls_overhead(c);
	return room > over ? room - over : 0;
}

void tls_conn_shutdown(struct tls_conn *c)
{
	c->shutting = true;
}

bool tls_conn_is_shut(const struct tls_conn *c)
{
	return c->shut || c->by_peer;
}

void tls_conn_update_keys(struct tls_conn *c, bool ask_peer)
{
	bool has_more = c->update == TLS_UPDATE_BOTH_KEYS || c->update == TLS_ANSWER_KEYS;
	if (c->version == TLS_1_3 && !has_more)
		c->update = ask_peer ? TLS_UPDATE_BOTH_KEYS : TLS_UPDATE_KEYS;
}

bool tls_conn_is_worn(const struct tls_conn *c)
{
	uint64_t most = c->ctx->conf.max_records;
	return c->version == TLS_1_2 && is_gcm(c) && (c->write.seq >= most || c->read.seq >= most);
}
