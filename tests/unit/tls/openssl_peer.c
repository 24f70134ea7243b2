// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tls/openssl_peer.h"

#include "tests/support/check.h"
#include "tlshs/hkdf.h"

#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/x509.h>

#include <string.h>

// What the keylog callback tells of the end that is replaced.
struct keylog {
	uint8_t client[TLS_MAX_SECRET], server[TLS_MAX_SECRET];
	size_t len;
};

static void from_hex(uint8_t *to, const char *hex, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned x;
		assert_int_equal(sscanf(hex + 2 * i, "%2x", &x), 1);
		to[i] = (uint8_t)x;
	}
}

static void on_keylog(const SSL *ssl, const char *line)
{
	struct keylog *log = SSL_get_app_data(ssl);
	bool client = strncmp(line, "CLIENT_TRAFFIC_SECRET_0 ", 24) == 0;
	bool server = strncmp(line, "SERVER_TRAFFIC_SECRET_0 ", 24) == 0;
	if (!log || (!client && !server))
		return;
	const char *hex = strrchr(line, ' ') + 1;
	log->len = strlen(hex) / 2;
	assert_true(log->len <= TLS_MAX_SECRET);
	from_hex(client ? log->client : log->server, hex, log->len);
}

static void certify(SSL_CTX *ctx)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	assert_non_null(key);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	X509_set_pubkey(cert, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
		(const unsigned char *)"test", -1, -1, 0);
	X509_set_issuer_name(cert, X509_get_subject_name(cert));
	assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
	assert_int_equal(SSL_CTX_use_certificate(ctx, cert), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
	X509_free(cert);
	EVP_PKEY_free(key);
}

static SSL_CTX *make_ctx(enum tls_role role, uint16_t version, const char *cipher)
{
	SSL_CTX *ctx = SSL_CTX_new(role == TLS_SERVER ? TLS_server_method() : TLS_client_method());
	assert_non_null(ctx);
	SSL_CTX_set_min_proto_version(ctx, version);
	SSL_CTX_set_max_proto_version(ctx, version);
	if (version == TLS_1_3)
		assert_int_equal(SSL_CTX_set_ciphersuites(ctx, cipher), 1);
	else
		assert_int_equal(SSL_CTX_set_cipher_list(ctx, cipher), 1);
	SSL_CTX_set_keylog_callback(ctx, on_keylog);
	if (role == TLS_SERVER)
		certify(ctx);
	return ctx;
}

static SSL *make_ssl(SSL_CTX *ctx, enum tls_role role)
{
	SSL *ssl = SSL_new(ctx);
	assert_non_null(ssl);
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	if (role == TLS_SERVER)
		SSL_set_accept_state(ssl);
	else
		SSL_set_connect_state(ssl);
	return ssl;
}

static void carry(SSL *from, SSL *to)
{
	uint8_t bytes[4096];
	for (int n; (n = BIO_read(SSL_get_wbio(from), bytes, sizeof(bytes))) > 0;)
		assert_int_equal(BIO_write(SSL_get_rbio(to), bytes, n), n);
}

static enum tls_aead aead_of(const SSL *ssl)
{
	switch (SSL_CIPHER_get_cipher_nid(SSL_get_current_cipher(ssl))) {
	case NID_aes_128_gcm:
		return TLS_AES_128_GCM;
	case NID_aes_256_gcm:
		return TLS_AES_256_GCM;
	default:
		return TLS_CHACHA20_POLY1305;
	}
}

// RFC 5246 6.3, with the PRF of section 5.
static void expand_keys_12(SSL *ssl, const EVP_MD *md, uint8_t *block, size_t len)
{
	uint8_t master[48], seed[13 + 64] = "key expansion";
	assert_int_equal(SSL_SESSION_get_master_key(SSL_get_session(ssl), master, 48), 48);
	SSL_get_server_random(ssl, seed + 13, 32);
	SSL_get_client_random(ssl, seed + 45, 32);
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_id(EVP_PKEY_TLS1_PRF, NULL);
	assert_true(EVP_PKEY_derive_init(c) > 0 && EVP_PKEY_CTX_set_tls1_prf_md(c, md) > 0 &&
		    EVP_PKEY_CTX_set1_tls1_prf_secret(c, master, 48) > 0 &&
		    EVP_PKEY_CTX_add1_tls1_prf_seed(c, seed, sizeof(seed)) > 0 &&
		    EVP_PKEY_derive(c, block, &len) > 0);
	EVP_PKEY_CTX_free(c);
}

static void set_keys_12(
	SSL *ssl, struct tls_secrets *s, struct tls_direction *client, struct tls_direction *server)
{
	const EVP_MD *md = s->hash == TLS_SHA384 ? EVP_sha384() : EVP_sha256();
	size_t key = s->aead == TLS_AES_128_GCM ? 16 : 32;
	size_t iv = s->aead == TLS_CHACHA20_POLY1305 ? 12 : 4;
	uint8_t block[2 * (TLS_MAX_KEY + TLS_IV)];
	expand_keys_12(ssl, md, block, 2 * (key + iv));
	memcpy(client->key, block, key);
	memcpy(server->key, block + key, key);
	memcpy(client->iv, block + 2 * key, iv);
	memcpy(server->iv, block + 2 * key + iv, iv);
	client->seq = server->seq = 1; // Finished
}

static void set_secrets(struct openssl_peer *p, SSL *ssl, const struct keylog *log,
	enum tls_role role, uint16_t version)
{
	struct tls_secrets *s = &p->secrets;
	const EVP_MD *md = SSL_CIPHER_get_handshake_digest(SSL_get_current_cipher(ssl));
	struct tls_direction *client = role == TLS_CLIENT ? &s->write : &s->read;
	struct tls_direction *server = role == TLS_CLIENT ? &s->read : &s->write;
	*s = (struct tls_secrets){.version = version, .aead = (uint8_t)aead_of(ssl)};
	s->hash = EVP_MD_get_size(md) == 48 ? TLS_SHA384 : TLS_SHA256;
	if (version == TLS_1_2) {
		set_keys_12(ssl, s, client, server);
		return;
	}
	assert_int_equal(log->len, EVP_MD_get_size(md));
	memcpy(client->secret, log->client, log->len);
	memcpy(server->secret, log->server, log->len);
	tlshs_hkdf_derive_keys(s->hash, s->aead, client);
	tlshs_hkdf_derive_keys(s->hash, s->aead, server);
}

void openssl_peer_init(
	struct openssl_peer *p, uint16_t version, const char *cipher, enum tls_role role)
{
	enum tls_role other = role == TLS_SERVER ? TLS_CLIENT : TLS_SERVER;
	struct keylog log = {0};
	*p = (struct openssl_peer){0};
	for (enum tls_role r = TLS_SERVER; r <= TLS_CLIENT; r++)
		p->ctx[r] = make_ctx(r, version, cipher);
	// The end that is replaced sends no tickets: they would count.
	SSL_CTX_set_num_tickets(p->ctx[TLS_SERVER], role == TLS_SERVER ? 0 : 2);
	SSL *ours = make_ssl(p->ctx[role], role);
	p->ssl = make_ssl(p->ctx[other], other);
	SSL_set_app_data(ours, &log);
	for (unsigned i = 0;
		i < 10 && !(SSL_is_init_finished(ours) && SSL_is_init_finished(p->ssl)); i++) {
		SSL_do_handshake(ours);
		carry(ours, p->ssl);
		SSL_do_handshake(p->ssl);
		if (!SSL_is_init_finished(ours))
			carry(p->ssl, ours);
	}
	assert_true(SSL_is_init_finished(ours) && SSL_is_init_finished(p->ssl));
	set_secrets(p, ours, &log, role, version);
	p->in = SSL_get_rbio(p->ssl);
	p->out = SSL_get_wbio(p->ssl);
	int n = BIO_read(p->out, p->rest, sizeof(p->rest));
	p->n_rest = n > 0 ? (size_t)n : 0;
	SSL_set_quiet_shutdown(ours, 1);
	SSL_free(ours);
}

void openssl_peer_fini(struct openssl_peer *p)
{
	SSL_free(p->ssl);
	for (unsigned i = 0; i < 2; i++)
		SSL_CTX_free(p->ctx[i]);
}
