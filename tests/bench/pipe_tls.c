// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/pipe_tls.h"

#include "dataplane/tls/tls.h"
#include "lb/base/check.h"
#include "lb/pick/credential.h"
#include "tests/unit/tlshs/pki.h"
#include "tlshs/handshake.h"
#include "tlshs/link.h"

#include <stdlib.h>
#include <string.h>

#define N_SLOTS 16
#define N_CHUNKS 64

struct bytes {
	uint8_t at[PIPE_TLS_MAX];
	size_t len;
};

struct pipe_tls {
	struct tlshs_context *context; // the frontend's
	struct lb_credential *credential;
	struct tlshs_link link;
	// The record. Empty: not known yet.
	struct bytes hello, flight, finished;
	struct tlshs_result result; // the frontend's
	struct bytes said, sealed; // of the client
	struct bytes heard, opened;
	// The client of the first connection.
	struct pool chunks;
	struct tls_context *records;
	struct tls_conn *conn;
	// The thread's one handshake.
	size_t n_got;
};

static void add(struct bytes *b, const uint8_t *p, size_t len)
{
	CHECK(b->len + len <= PIPE_TLS_MAX);
	memcpy(b->at + b->len, p, len);
	b->len += len;
}

static bool is_same(const struct bytes *b, const uint8_t *p, size_t len)
{
	return b->len == len && memcmp(b->at, p, len) == 0;
}

static size_t on_plain(struct tls_conn *c, void *user, const uint8_t *p, size_t len)
{
	add(&((struct pipe_tls *)user)->opened, p, len);
	return len;
}

static const struct tls_events events = {.on_plain = on_plain};

static struct tlshs_context *new_context(struct tlshs_context_conf conf)
{
	static const struct str alpn = STR("h2");
	struct lb_err err;
	conf.alpn = &alpn;
	conf.n_alpn = 1;
	struct tlshs_context *c = tlshs_context_new(&conf, &err);
	CHECK(c);
	return c;
}

// Whatever one says is the other's to hear, and kept.
static void carry(struct tlshs_handshake *from, struct tlshs_handshake *to, struct bytes *ret)
{
	ret->len = tlshs_handshake_drain(from, ret->at, PIPE_TLS_MAX);
	tlshs_handshake_feed(to, ret->at, ret->len);
}

static void shake_hands(struct pipe_tls *t)
{
	struct tlshs_context *context =
		new_context((struct tlshs_context_conf){.role = TLSHS_CLIENT});
	struct tlshs_handshake *client = tlshs_handshake_new(context, STR(""), 0),
			       *server = tlshs_handshake_new(t->context, STR(""), 0);
	struct tlshs_result result;
	CHECK(client && server);
	carry(client, server, &t->hello);
	carry(server, client, &t->flight);
	carry(client, server, &t->finished);
	CHECK(tlshs_handshake_outcome(client) == TLSHS_ok);
	CHECK(tlshs_handshake_outcome(server) == TLSHS_ok);
	CHECK(t->flight.len <= TLSHS_SLOT);
	tlshs_handshake_take(client, &result);
	tlshs_handshake_take(server, &t->result);
	t->conn = tls_conn_new(t->records, TLS_CLIENT, &result.secrets, &events, t);
	CHECK(t->conn);
	tlshs_handshake_free(client);
	tlshs_handshake_free(server);
	tlshs_context_put(context);
}

struct pipe_tls *pipe_tls_new(void)
{
	struct pipe_tls *t = calloc(1, sizeof(*t));
	struct pki_cert cert = pki_make((struct pki_conf){.name = "bench"});
	CHECK(t && tlshs_link_init(&t->link, N_SLOTS) == 0);
	CHECK(buf_pool_init(&t->chunks, N_CHUNKS) == 0);
	t->records = tls_context_new(&(struct tls_conf){.max_conns = 1}, &t->chunks);
	t->context = new_context((struct tlshs_context_conf){
		.role = TLSHS_SERVER, .certificate_pem = cert.pem, .key_pem = cert.key_pem});
	t->credential = lb_credential_new(tlshs_context_get(t->context), tlshs_context_put);
	CHECK(t->records && t->credential);
	pki_end();
	shake_hands(t);
	return t;
}

struct lb_credential *pipe_tls_credential(const struct pipe_tls *t)
{
	return t->credential;
}

struct tlshs_link *pipe_tls_link(struct pipe_tls *t)
{
	return &t->link;
}

const uint8_t *pipe_tls_hello(const struct pipe_tls *t, size_t *ret_len)
{
	*ret_len = t->hello.len;
	return t->hello.at;
}

static void answer(
	struct pipe_tls *t, uint64_t id, enum tlshs_answer_kind kind, const uint8_t *p, size_t len)
{
	static struct tlshs_answer a;
	a.id = id;
	a.kind = (uint8_t)kind;
	a.len = (uint16_t)len;
	memcpy(a.bytes, p, len);
	CHECK(spsc_write(&t->link.answers, &a));
}

static void answer_end(struct pipe_tls *t, uint64_t id)
{
	static struct tlshs_answer a;
	a.id = id;
	a.kind = TLSHS_END;
	a.outcome = TLSHS_ok;
	a.len = 0;
	a.n_taken = t->hello.len + t->finished.len;
	a.result = t->result;
	CHECK(spsc_write(&t->link.answers, &a));
}

// The client says its Finished and its first records at once, as clients do.
static void on_bytes(struct pipe_tls *t, const struct tlshs_order *o)
{
	t->n_got += o->len;
	if (t->n_got == t->hello.len) {
		answer(t, o->id, TLSHS_TO_PEER, t->flight.at, t->flight.len);
		return;
	}
	CHECK(t->n_got == t->hello.len + t->finished.len + t->sealed.len);
	CHECK(o->len == t->finished.len + t->sealed.len);
	answer_end(t, o->id);
	answer(t, o->id, TLSHS_REST, o->bytes + t->finished.len, t->sealed.len);
}

void pipe_tls_turn(struct pipe_tls *t)
{
	static struct tlshs_order o;
	while (spsc_read(&t->link.orders, &o)) {
		if (o.kind == TLSHS_START) {
			tlshs_context_put(o.context);
			t->n_got = 0;
		} else if (o.kind == TLSHS_BYTES) {
			on_bytes(t, &o);
		}
	}
}

static void seal(struct pipe_tls *t, const uint8_t *text, size_t len)
{
	struct buf plain = {0}, out = {0};
	add(&t->said, text, len);
	CHECK(buf_append(&plain, &t->chunks, text, len));
	CHECK(!tls_conn_seal(t->conn, &plain, &out, SIZE_MAX) && out.len <= PIPE_TLS_MAX);
	t->sealed.len = out.len;
	buf_copy_out(&out, 0, t->sealed.at, out.len);
	buf_clear(&out, &t->chunks);
}

void pipe_tls_speak(struct pipe_tls *t, size_t len, uint8_t *text, size_t *text_len)
{
	CHECK(len == t->flight.len);
	if (!t->sealed.len)
		seal(t, text, *text_len);
	CHECK(is_same(&t->said, text, *text_len));
	memcpy(text, t->finished.at, t->finished.len);
	memcpy(text + t->finished.len, t->sealed.at, t->sealed.len);
	*text_len = t->finished.len + t->sealed.len;
}

void pipe_tls_hear(struct pipe_tls *t, uint8_t *bytes, size_t *len)
{
	if (!t->heard.len) {
		add(&t->heard, bytes, *len);
		CHECK(tls_conn_feed(t->conn, bytes, *len) == *len);
	}
	CHECK(is_same(&t->heard, bytes, *len));
	memcpy(bytes, t->opened.at, t->opened.len);
	*len = t->opened.len;
}
