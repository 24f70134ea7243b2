// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tlshs/meeting.h"

#include "dataplane/tls/tls.h"
#include "tests/support/check.h"
#include "tlshs/link.h"
#include "tlshs/session.h"
#include "tlshs/sessions.h"

#include <openssl/err.h>

#include <stdio.h>
#include <time.h>

#define TEXT 20000 // more than a record

static int far_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
	const unsigned char *in, unsigned len, void *mine)
{
	*ret = (const unsigned char *)mine + 1;
	*ret_len = *(const unsigned char *)mine;
	return SSL_TLSEXT_ERR_OK;
}

static void far_certify(SSL_CTX *ctx, const struct far_conf *conf)
{
	if (conf->cert) {
		assert_int_equal(SSL_CTX_use_certificate(ctx, conf->cert->x), 1);
		assert_int_equal(SSL_CTX_use_PrivateKey(ctx, conf->cert->key), 1);
	}
	for (unsigned i = 0; i < conf->n_chain; i++)
		assert_int_equal(SSL_CTX_add1_chain_cert(ctx, conf->cert->x), 1);
	if (conf->ca) {
		X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), conf->ca->x);
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	}
	SSL_CTX_set_mode(ctx, SSL_MODE_NO_AUTO_CHAIN);
}

SSL_CTX *meeting_far_ctx(const struct far_conf *conf)
{
	bool is_server = conf->role == TLSHS_SERVER;
	SSL_CTX *ctx = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
	assert_non_null(ctx);
	SSL_CTX_set_security_level(ctx, 0);
	SSL_CTX_set_min_proto_version(ctx, conf->min_version ? conf->min_version : TLS1_2_VERSION);
	SSL_CTX_set_max_proto_version(ctx, conf->max_version ? conf->max_version : TLS1_3_VERSION);
	if (conf->ciphers_12)
		assert_int_equal(SSL_CTX_set_cipher_list(ctx, conf->ciphers_12), 1);
	if (conf->ciphers_13)
		assert_int_equal(SSL_CTX_set_ciphersuites(ctx, conf->ciphers_13), 1);
	if (conf->sigalgs)
		assert_int_equal(SSL_CTX_set1_sigalgs_list(ctx, (uintptr_t)conf->sigalgs), 1);
	far_certify(ctx, conf);
	const unsigned char *alpn = (const unsigned char *)conf->alpn;
	if (alpn && is_server)
		SSL_CTX_set_alpn_select_cb(ctx, far_alpn, (void *)(uintptr_t)alpn);
	else if (alpn)
		SSL_CTX_set_alpn_protos(ctx, alpn, (unsigned)strlen(conf->alpn));
	return ctx;
}

void meeting_init_far(struct meeting *m, const struct far_conf *conf)
{
	*m = (struct meeting){.piece = SIZE_MAX, .room = 4096};
	m->far_ctx = conf->ctx ? conf->ctx : meeting_far_ctx(conf);
	if (conf->ctx)
		SSL_CTX_up_ref(conf->ctx);
	m->far = SSL_new(m->far_ctx);
	m->far_in = BIO_new(BIO_s_mem());
	m->far_out = BIO_new(BIO_s_mem());
	SSL_set_bio(m->far, m->far_in, m->far_out);
	if (conf->server_name) {
		char name[TLSHS_MAX_NAME + 1]; // the macro takes away const
		snprintf(name, sizeof(name), "%s", conf->server_name);
		SSL_set_tlsext_host_name(m->far, name);
	}
	if (conf->max_fragment)
		assert_int_equal(SSL_set_tlsext_max_fragment_length(m->far, conf->max_fragment), 1);
	if (conf->session)
		assert_int_equal(SSL_set_session(m->far, conf->session), 1);
	if (conf->role == TLSHS_SERVER)
		SSL_set_accept_state(m->far);
	else
		SSL_set_connect_state(m->far);
}

void meeting_init(struct meeting *m, struct tlshs_context *c, struct str server_name,
	const struct far_conf *conf)
{
	meeting_init_far(m, conf);
	m->h = tlshs_handshake_new(c, server_name, conf->peer);
	assert_non_null(m->h);
}

void meeting_fini(struct meeting *m)
{
	SSL_free(m->far);
	SSL_CTX_free(m->far_ctx);
	tlshs_handshake_free(m->h);
	tlshs_promise_free(m->promise);
	tlshs_result_wipe(&m->result);
}

void meeting_far_step(struct meeting *m)
{
	char none;
	ERR_clear_error();
	int is = SSL_is_init_finished(m->far) ? SSL_peek(m->far, &none, 1)
	                                      : SSL_do_handshake(m->far);
	if (is <= 0 && SSL_get_error(m->far, is) == SSL_ERROR_SSL && !m->far_error[0])
		snprintf(m->far_error, sizeof(m->far_error), "%s",
			ERR_reason_error_string(ERR_peek_error()));
}

bool meeting_turn(struct meeting *m)
{
	uint8_t bytes[65536];
	bool moved = false;
	meeting_far_step(m);
	for (int n; (n = BIO_read(m->far_out, bytes, sizeof(bytes))) > 0; moved = true)
		for (size_t at = 0, some; at < (size_t)n; at += some) {
			some = (size_t)n - at < m->piece ? (size_t)n - at : m->piece;
			tlshs_handshake_feed(m->h, bytes + at, some);
		}
	for (size_t n; (n = tlshs_handshake_drain(m->h, bytes, m->room)) > 0; moved = true)
		assert_int_equal(BIO_write(m->far_in, bytes, (int)n), n);
	return moved;
}

enum tlshs_outcome meeting_run(struct meeting *m)
{
	for (unsigned i = 0; i < 20 && meeting_turn(m); i++)
		;
	assert_true(tlshs_handshake_ended(m->h));
	enum tlshs_outcome outcome = tlshs_handshake_outcome(m->h);
	if (outcome == TLSHS_ok) {
		assert_string_equal(tlshs_handshake_why(m->h), "");
		tlshs_handshake_take(m->h, &m->result);
		m->promise = tlshs_handshake_take_promise(m->h);
		for (size_t n;
			(n = tlshs_handshake_drain_rest(m->h, m->rest + m->n_rest, 100)) > 0;)
			m->n_rest += n;
	} else {
		assert_true(tlshs_handshake_why(m->h)[0] != 0);
	}
	return outcome;
}

struct heard {
	struct meeting *m;
	uint8_t text[2 * TEXT + 64]; // and what came behind the handshake
	size_t len;
};

static size_t on_plain(struct tls_conn *c, void *user, const uint8_t *p, size_t len)
{
	struct heard *heard = user;
	assert_true(heard->len + len <= sizeof(heard->text));
	memcpy(heard->text + heard->len, p, len);
	heard->len += len;
	return len;
}

static void on_ticket(struct tls_conn *c, void *user, const uint8_t *p, size_t len)
{
	struct heard *heard = user;
	heard->m->n_tickets++;
	heard->m->ticket_len = len;
	if (heard->m->link)
		assert_true(tlshs_link_ticket(heard->m->link, heard->m->promised, p, len));
	if (!heard->m->promise)
		return;
	struct tlshs_session *s = tlshs_promise_redeem(heard->m->promise, p, len, time(NULL));
	assert_non_null(s);
	tlshs_sessions_put(s);
}

static void ignore(struct tls_conn *c, void *user)
{
}

static void hear_far(struct meeting *m, struct tls_conn *c, struct heard *heard)
{
	static uint8_t text[TEXT], wire[2 * TEXT];
	for (size_t i = 0; i < TEXT; i++)
		text[i] = (uint8_t)(i * 7);
	if (m->n_rest)
		assert_int_equal(tls_conn_feed(c, m->rest, m->n_rest), m->n_rest);
	assert_int_equal(SSL_write(m->far, text, TEXT), TEXT);
	int n = BIO_read(m->far_out, wire, sizeof(wire));
	assert_int_equal(tls_conn_feed(c, wire, (size_t)n), n);
	assert_false(tls_conn_failed(c, NULL, NULL));
	assert_true(heard->len >= TEXT);
	assert_memory_equal(heard->text + heard->len - TEXT, text, TEXT);
}

static void tell_far(struct meeting *m, struct tls_conn *c, struct pool *chunks)
{
	static uint8_t text[TEXT], wire[2 * TEXT], got[TEXT];
	struct buf plain = {0}, out = {0};
	for (size_t i = 0; i < TEXT; i++)
		text[i] = (uint8_t)(i * 11);
	assert_true(buf_append(&plain, chunks, text, TEXT));
	assert_false(tls_conn_seal(c, &plain, &out, sizeof(wire)));
	size_t len = out.len;
	buf_copy_out(&out, 0, wire, len);
	buf_clear(&out, chunks);
	assert_int_equal(BIO_write(m->far_in, wire, (int)len), len);
	for (size_t at = 0; at < TEXT;) {
		int n = SSL_read(m->far, got + at, (int)(TEXT - at));
		assert_true(n > 0);
		at += (size_t)n;
	}
	assert_memory_equal(got, text, TEXT);
}

void meeting_talk(struct meeting *m)
{
	static const struct tls_events events = {on_plain, ignore, on_ticket};
	static struct heard heard;
	struct pool chunks;
	struct tls_conf conf = {.max_conns = 1, .n_keys = 2};
	bool is_client = SSL_is_server(m->far);
	heard.len = 0;
	heard.m = m;
	assert_string_equal(m->far_error, "");
	assert_int_equal(buf_pool_init(&chunks, 256), 0);
	struct tls_context *ctx = tls_context_new(&conf, &chunks);
	assert_non_null(ctx);
	struct tls_conn *c = tls_conn_new(
		ctx, is_client ? TLS_CLIENT : TLS_SERVER, &m->result.secrets, &events, &heard);
	for (unsigned i = 0; i < 2; i++) {
		hear_far(m, c, &heard);
		m->n_rest = 0;
		tell_far(m, c, &chunks);
	}
	tls_conn_free(c);
	tls_context_free(ctx);
	pool_fini(&chunks);
}

struct tlshs_context *context_good(const struct tlshs_context_conf *conf)
{
	struct lb_err err = {0};
	struct tlshs_context *c = tlshs_context_new(conf, &err);
	assert_string_equal(err.text, "");
	assert_non_null(c);
	return c;
}

void context_bad(const struct tlshs_context_conf *conf, const char *text)
{
	struct lb_err err = {0};
	assert_null(tlshs_context_new(conf, &err));
	assert_memory_equal(err.text, text, strlen(text));
}
