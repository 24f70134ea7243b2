// SPDX-License-Identifier: Apache-2.0
// Records of a peer that knows the keys: the input says what it sends, sound or not, where it is
// cut, how much is taken, and what we send meanwhile. Whatever it does, what is delivered is a
// beginning of what its data records held, and nothing is left behind.
#include "dataplane/tls/impl.h"
#include "lb/base/check.h"
#include "tests/support/tls_forger.h"
#include "tlshs/hkdf.h"

#include <string.h>

#define MAX_STREAM (256u << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
	const uint8_t *in; // of the fuzzer
	size_t left;
	uint64_t now_ns;
	struct rand rand;
	struct pool chunks;
	struct tls_context *ctx;
	struct tls_conn *conn;
	struct tls_forger peer;
	struct buf plain, out;
	uint8_t said[MAX_STREAM]; // by data records
	size_t n_said, n_taken, takes;
	unsigned n_eofs;
	uint8_t wire[MAX_STREAM]; // what TCP would hold
	size_t n_wire;
};

static uint8_t next(struct world *w)
{
	return w->left ? w->left--, *w->in++ : 0;
}

// Lengths that are small, or next to a bound.
static size_t next_len(struct world *w)
{
	uint8_t x = next(w);
	if (x < 192)
		return x;
	return x < 224 ? (size_t)(x - 191) << 9 : (size_t)TLS_MAX_PLAIN - 16 + (x & 31);
}

static size_t on_plain(struct tls_conn *c, void *user, const uint8_t *p, size_t len)
{
	struct world *w = user;
	size_t n = len < w->takes ? len : w->takes;
	CHECK(len > 0 && w->n_taken + len <= w->n_said);
	CHECK(memcmp(p, w->said + w->n_taken, len) == 0);
	CHECK(!w->n_eofs);
	w->n_taken += n;
	w->takes -= n;
	return n;
}

static void on_eof(struct tls_conn *c, void *user)
{
	struct world *w = user;
	CHECK(w->n_eofs++ == 0);
}

static void on_ticket(struct tls_conn *c, void *user, const uint8_t *p, size_t len)
{
	struct world *w = user;
	CHECK(p >= w->ctx->scratch && len <= TLS_MAX_PLAIN && c->role == TLS_CLIENT);
}

static const struct tls_events events = {on_plain, on_eof, on_ticket};

static void make(struct world *w)
{
	uint8_t kind = next(w);
	struct tls_secrets s = {.version = kind & 1 ? TLS_1_3 : TLS_1_2};
	struct tls_conf conf = {
		.max_conns = 1, .now_ns = &w->now_ns, .n_keys = 2, .max_records = 50};
	s.aead = (kind >> 1) % TLS_N_AEADS;
	s.hash = s.aead == TLS_AES_256_GCM ? TLS_SHA384 : TLS_SHA256;
	CHECK(buf_pool_init(&w->chunks, 64) == 0);
	if (!w->ctx)
		w->ctx = tls_context_new(&conf, &w->chunks);
	CHECK(w->ctx);
	w->conn = tls_conn_new(w->ctx, kind >> 7 ? TLS_CLIENT : TLS_SERVER, &s, &events, w);
	CHECK(w->conn);
	rand_init(&w->rand, kind);
	tls_forger_init(&w->peer, &s, &w->conn->read, &w->rand);
}

static void feed(struct world *w)
{
	size_t at = 0;
	while (at < w->n_wire) {
		size_t n = 1 + next_len(w);
		n = n < w->n_wire - at ? n : w->n_wire - at;
		size_t took = tls_conn_feed(w->conn, w->wire + at, n);
		CHECK(took <= n);
		at += took;
		if (took < n)
			break;
	}
	w->n_wire -= at;
	memmove(w->wire, w->wire + at, w->n_wire);
}

static void update_peer(struct world *w)
{
	struct tls_direction d = w->peer.d;
	tlshs_hkdf_update(w->conn->hash, w->conn->aead, &d);
	tls_forger_set(&w->peer, &d);
}

// A record whose tag is right, unless a bit of it is changed afterwards.
static void send_record(struct world *w, uint8_t type, const uint8_t *text, size_t len)
{
	size_t padding = next(w) & 1 ? next_len(w) : 0;
	if (w->n_wire + len + padding + TLS_FORGER_OVERHEAD > MAX_STREAM)
		return;
	uint8_t *to = w->wire + w->n_wire;
	size_t n = tls_forger_seal(&w->peer, type, text, len, padding, to);
	uint8_t damage = next(w);
	if (damage > 250)
		to[next_len(w) % n] ^= (uint8_t)(1 << damage % 8);
	w->n_wire += n;
}

static void send_data(struct world *w)
{
	size_t len = next_len(w);
	if (w->n_said + len > MAX_STREAM)
		return;
	for (size_t i = 0; i < len; i++)
		w->said[w->n_said + i] = (uint8_t)(w->n_said + i);
	send_record(w, TLS_DATA, w->said + w->n_said, len);
	w->n_said += len;
}

// Bytes of the fuzzer's as they are.
static void send_text(struct world *w, uint8_t type)
{
	size_t len = next_len(w);
	len = len < w->left ? len : w->left;
	const uint8_t *text = w->in;
	w->in += len;
	w->left -= len;
	send_record(w, type, text, len);
}

static void send_key_update(struct world *w)
{
	const uint8_t text[] = {24, 0, 0, 1, next(w) & 1};
	size_t cut = next(w) % 5;
	if (cut)
		send_record(w, TLS_HANDSHAKE, text, cut);
	send_record(w, TLS_HANDSHAKE, text + cut, 5 - cut);
	if (w->peer.version == TLS_1_3)
		update_peer(w);
}

static void send_raw(struct world *w)
{
	size_t len = next_len(w);
	len = len < w->left ? len : w->left;
	if (w->n_wire + len > MAX_STREAM)
		return;
	memcpy(w->wire + w->n_wire, w->in, len);
	w->n_wire += len;
	w->in += len;
	w->left -= len;
}

static void seal(struct world *w)
{
	size_t len = next_len(w), room = next_len(w);
	uint8_t text[512] = {0};
	(void)!buf_append(&w->plain, &w->chunks, text, len & 511);
	size_t before = w->out.len;
	tls_conn_seal(w->conn, &w->plain, &w->out, room);
	CHECK(w->out.len - before <= room + 200);
	if (w->out.len > 20000)
		buf_clear(&w->out, &w->chunks);
}

static void step(struct world *w)
{
	uint8_t op = next(w);
	switch (op % 10) {
	case 0:
	case 1:
		send_data(w);
		break;
	case 2:
		send_text(w, op & 64 ? TLS_ALERT : TLS_HANDSHAKE);
		break;
	case 3:
		send_key_update(w);
		break;
	case 4:
		send_raw(w);
		break;
	case 5:
		w->takes = next_len(w);
		break;
	case 6:
		seal(w);
		break;
	case 7:
		w->now_ns += (uint64_t)next(w) << 26;
		tls_conn_expire(w->conn);
		break;
	case 8:
		if (op & 64)
			tls_conn_shutdown(w->conn);
		else
			tls_conn_update_keys(w->conn, op & 32);
		break;
	default:
		op = next(w); // what is data, or ends with its type before padding, is kept
		send_text(w, op == TLS_DATA || !op ? TLS_CHANGE_CIPHER_SPEC : op);
	}
	feed(w);
}

// At most one reason of ours, and its alert is written.
static void check_end(struct world *w)
{
	uint64_t n = 0;
	for (unsigned i = 0; i < TLS_N_CAUSES; i++)
		n += w->ctx->counters[TLS_C_bad_tags + i];
	bool by_peer, failed = tls_conn_failed(w->conn, NULL, &by_peer);
	CHECK(n == (failed && !by_peer));
	buf_clear(&w->out, &w->chunks);
	buf_clear(&w->plain, &w->chunks);
	tls_conn_seal(w->conn, &w->plain, &w->out, 1000);
	CHECK(!failed || tls_conn_is_shut(w->conn));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;
	struct tls_context *ctx = w.ctx;
	memset(&w, 0, offsetof(struct world, said));
	w.n_said = w.n_taken = w.takes = w.n_eofs = w.n_wire = 0;
	w.in = data;
	w.left = size;
	w.now_ns = NS_PER_SECOND;
	w.takes = SIZE_MAX;
	w.ctx = ctx;
	if (ctx)
		memset(ctx->counters, 0, sizeof(ctx->counters));
	make(&w);
	while (w.left)
		step(&w);
	check_end(&w);
	tls_conn_free(w.conn);
	buf_clear(&w.out, &w.chunks);
	buf_clear(&w.plain, &w.chunks);
	CHECK(w.chunks.n_used == 0);
	tls_forger_fini(&w.peer);
	pool_fini(&w.chunks);
	return 0;
}
