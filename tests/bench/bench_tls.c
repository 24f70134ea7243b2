// SPDX-License-Identifier: Apache-2.0
// bench_tls: records of TLS 1.3 with AES-128-GCM, sealed (write), and sealed by one end and opened
// by another (both): of 200 bytes, as a small gRPC message has, and of 16 KiB. Ours from a queue to
// a queue, and opened from segments of 1448 bytes, as TCP delivers them; OpenSSL's SSL_write and
// SSL_read over BIOs of memory; and OpenSSL's EVP alone, with a context that keeps its key.
//
// connection: a worker's part of a connection with one request, which its client opens for it and
// closes behind it, through all of the proxy (pipe_world.h): with TLS, and beside it in plain text.
// What the worker pays for a handshake is the difference; threads do the rest (bench_handshakes.c).
// Of its instructions callgrind counts too many: it knows no SHA extensions, by which keys are
// derived on most CPUs. tools/bench runs it.
#include "dataplane/tls/tls.h"
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "tests/bench/pipe_control.h"
#include "tests/bench/pipe_world.h"
#include "tests/bench/ways.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <string.h>

#define SEGMENT 1448
#define N_CHUNKS 256

static uint8_t text[TLS_MAX_PLAIN];

// Ours.

struct shunt {
	struct pool chunks;
	struct tls_context *ctx;
	struct tls_conn *from, *to;
	struct buf plain, out;
	size_t len;
	uint64_t n_got;
	uint64_t now_ns;
};

static size_t on_plain(struct tls_conn *c, void *user, const uint8_t *p, size_t len)
{
	((struct shunt *)user)->n_got += len;
	return len;
}

static const struct tls_events events = {.on_plain = on_plain};

static void shunt_init(struct shunt *s, size_t len)
{
	struct tls_secrets a = {.version = TLS_1_3, .aead = TLS_AES_128_GCM, .hash = TLS_SHA256};
	memset(a.write.secret, 1, 32);
	struct tls_secrets b = a;
	b.read = a.write;
	b.write = a.read;
	s->len = len;
	CHECK(buf_pool_init(&s->chunks, N_CHUNKS) == 0);
	s->ctx = tls_context_new(
		&(struct tls_conf){.max_conns = 2, .now_ns = &s->now_ns}, &s->chunks);
	CHECK(s->ctx);
	s->from = tls_conn_new(s->ctx, TLS_SERVER, &a, &events, s);
	s->to = tls_conn_new(s->ctx, TLS_CLIENT, &b, &events, s);
	CHECK(s->from && s->to);
}

static void shunt_write(struct shunt *s)
{
	CHECK(buf_append(&s->plain, &s->chunks, text, s->len));
	CHECK(!tls_conn_seal(s->from, &s->plain, &s->out, SIZE_MAX));
}

static void shunt_run_write(void *ctx, uint64_t n_ops)
{
	struct shunt *s = ctx;
	for (uint64_t i = 0; i < n_ops; i++) {
		shunt_write(s);
		buf_clear(&s->out, &s->chunks);
	}
}

static void shunt_run_both(void *ctx, uint64_t n_ops)
{
	static uint8_t wire[2 * TLS_MAX_PLAIN];
	struct shunt *s = ctx;
	uint64_t until = s->n_got + n_ops * s->len;
	for (uint64_t i = 0; i < n_ops; i++) {
		shunt_write(s);
		size_t len = s->out.len;
		buf_copy_out(&s->out, 0, wire, len);
		buf_clear(&s->out, &s->chunks);
		for (size_t at = 0, n; at < len; at += n) {
			n = len - at < SEGMENT ? len - at : SEGMENT;
			CHECK(tls_conn_feed(s->to, wire + at, n) == n);
		}
		s->now_ns += NS_PER_US; // for the budget of KeyUpdates
	}
	CHECK(s->n_got == until);
}

// OpenSSL's records.

struct rival {
	SSL *from, *to;
	size_t len;
};

static void certify(SSL_CTX *ctx)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	CHECK(key && cert);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	X509_set_pubkey(cert, key);
	CHECK(X509_sign(cert, key, EVP_sha256()) > 0);
	CHECK(SSL_CTX_use_certificate(ctx, cert) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1);
	X509_free(cert);
	EVP_PKEY_free(key);
}

static SSL *rival_end(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);
	CHECK(ctx && SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") == 1);
	SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
	SSL_CTX_set_num_tickets(ctx, 0);
	if (method == TLS_server_method())
		certify(ctx);
	SSL *ssl = SSL_new(ctx);
	CHECK(ssl);
	SSL_CTX_free(ctx);
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	return ssl;
}

// What one end has written goes to the other.
static void carry(SSL *from, SSL *to)
{
	BIO *out = SSL_get_wbio(from), *in = SSL_get_rbio(to);
	char *p;
	long len = BIO_get_mem_data(out, &p);
	if (len > 0)
		CHECK(BIO_write(in, p, (int)len) == len);
	(void)BIO_reset(out);
}

static void rival_init(struct rival *r, size_t len)
{
	r->len = len;
	r->from = rival_end(TLS_server_method());
	r->to = rival_end(TLS_client_method());
	SSL_set_accept_state(r->from);
	SSL_set_connect_state(r->to);
	for (int i = 0; i < 4; i++) {
		SSL_do_handshake(r->to);
		carry(r->to, r->from);
		SSL_do_handshake(r->from);
		carry(r->from, r->to);
	}
	CHECK(SSL_is_init_finished(r->from) && SSL_is_init_finished(r->to));
}

static void rival_run_write(void *ctx, uint64_t n_ops)
{
	struct rival *r = ctx;
	for (uint64_t i = 0; i < n_ops; i++) {
		CHECK(SSL_write(r->from, text, (int)r->len) == (int)r->len);
		(void)BIO_reset(SSL_get_wbio(r->from));
	}
}

static void rival_run_both(void *ctx, uint64_t n_ops)
{
	static uint8_t got[TLS_MAX_PLAIN];
	struct rival *r = ctx;
	for (uint64_t i = 0; i < n_ops; i++) {
		CHECK(SSL_write(r->from, text, (int)r->len) == (int)r->len);
		carry(r->from, r->to);
		CHECK(SSL_read(r->to, got, sizeof(got)) == (int)r->len);
	}
}

// OpenSSL's cipher.

struct evp {
	EVP_CIPHER_CTX *seal, *open;
	size_t len;
	uint64_t seq;
};

static void evp_init(struct evp *e, size_t len)
{
	static const uint8_t key[16];
	e->len = len;
	e->seal = EVP_CIPHER_CTX_new();
	e->open = EVP_CIPHER_CTX_new();
	CHECK(EVP_EncryptInit_ex(e->seal, EVP_aes_128_gcm(), NULL, key, NULL));
	CHECK(EVP_DecryptInit_ex(e->open, EVP_aes_128_gcm(), NULL, key, NULL));
}

static void evp_run(struct evp *e, uint64_t n_ops, bool both)
{
	static uint8_t sealed[TLS_MAX_PLAIN + 16], opened[TLS_MAX_PLAIN + 16];
	uint8_t nonce[12] = {0}, head[5] = {23, 3, 3}, tag[16];
	int n;
	for (uint64_t i = 0; i < n_ops; i++) {
		e->seq++;
		memcpy(nonce, &e->seq, sizeof(e->seq));
		CHECK(EVP_EncryptInit_ex(e->seal, NULL, NULL, NULL, nonce) &&
			EVP_EncryptUpdate(e->seal, NULL, &n, head, sizeof(head)) &&
			EVP_EncryptUpdate(e->seal, sealed, &n, text, (int)e->len) &&
			EVP_EncryptFinal_ex(e->seal, sealed + e->len, &n) &&
			EVP_CIPHER_CTX_ctrl(e->seal, EVP_CTRL_AEAD_GET_TAG, 16, tag));
		if (both)
			CHECK(EVP_DecryptInit_ex(e->open, NULL, NULL, NULL, nonce) &&
				EVP_DecryptUpdate(e->open, NULL, &n, head, sizeof(head)) &&
				EVP_DecryptUpdate(e->open, opened, &n, sealed, (int)e->len) &&
				EVP_CIPHER_CTX_ctrl(e->open, EVP_CTRL_AEAD_SET_TAG, 16, tag) &&
				EVP_DecryptFinal_ex(e->open, opened + e->len, &n));
	}
}

static void evp_run_write(void *ctx, uint64_t n_ops)
{
	evp_run(ctx, n_ops, false);
}

static void evp_run_both(void *ctx, uint64_t n_ops)
{
	evp_run(ctx, n_ops, true);
}

static struct bench_way connection(const char *impl, bool tls)
{
	const struct pipe_world_conf conf = {
		.n_clients = 64, .n_streams = 1, .once = true, .tls = tls};
	struct pipe_world *w = pipe_world_new(pipe_control_new(1, SECOND), &conf);
	return (struct bench_way){impl, "connection", 1, pipe_world_run, w, 0};
}

int main(int argc, char **argv)
{
	static const size_t lens[] = {200, TLS_MAX_PLAIN};
	static const char *const names[][2] = {
		{"write_200", "both_200"}, {"write_16k", "both_16k"}};
	static struct shunt shunts[4];
	static struct rival rivals[4];
	static struct evp evps[4];
	static struct bench_way ways[14]; // static: leak checkers find the worlds by it
	for (uint32_t i = 0; i < 4; i++) {
		bool both = i & 1;
		size_t len = lens[i / 2];
		const char *name = names[i / 2][both];
		uint32_t n = (uint32_t)len;
		shunt_init(&shunts[i], len);
		rival_init(&rivals[i], len);
		evp_init(&evps[i], len);
		ways[3 * i] = (struct bench_way){
			"shunt", name, n, both ? shunt_run_both : shunt_run_write, &shunts[i], 0};
		ways[3 * i + 1] = (struct bench_way){
			"openssl", name, n, both ? rival_run_both : rival_run_write, &rivals[i], 0};
		ways[3 * i + 2] = (struct bench_way){
			"evp", name, n, both ? evp_run_both : evp_run_write, &evps[i], 0};
	}
	ways[12] = connection("shunt", true);
	ways[13] = connection("plain", false);
	return bench_ways("tls", ways, 14, argc, argv);
}
