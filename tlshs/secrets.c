// SPDX-License-Identifier: Apache-2.0
// Traffic keys by the library's public functions: of 1.3 what passes by in the key schedule
// (kdf.c), of 1.2 the key block, made of the master secret once more (RFC 5246 6.3).
#include "tlshs/hkdf.h"
#include "tlshs/impl.h"
#include "tlshs/keylog.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <string.h>

static char *put_hex(char *to, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		*to++ = "0123456789abcdef"[p[i] >> 4];
		*to++ = "0123456789abcdef"[p[i] & 15];
	}
	return to;
}

// RFC 9850: "<label> <client random> <secret>".
static void log_line(
	const struct tlshs_handshake *h, const char *label, const uint8_t *secret, size_t len)
{
	char line[TLSHS_KEYLOG_LINE_MAX], *at = stpcpy(line, label);
	uint8_t random[32];
	if (!h->keys || !tlshs_keylog_is_on(h->keys) ||
		SSL_get_client_random(h->ssl, random, sizeof(random)) != sizeof(random))
		return;
	*at++ = ' ';
	at = put_hex(at, random, sizeof(random));
	*at++ = ' ';
	*put_hex(at, secret, len) = 0;
	tlshs_keylog_add(h->keys, line);
	OPENSSL_cleanse(line, sizeof(line));
}

void tlshs_secrets_on_derived(void *handshake, struct str label, const uint8_t *secret, size_t len)
{
	struct tlshs_handshake *h = handshake;
	static const struct {
		struct str label; // RFC 8446 7.1
		const char *logged;
	} all[] = {
		[TLSHS_SERVER_TRAFFIC] = {STR("s ap traffic"), "SERVER_TRAFFIC_SECRET_0"},
		[TLSHS_CLIENT_TRAFFIC] = {STR("c ap traffic"), "CLIENT_TRAFFIC_SECRET_0"},
		[TLSHS_RESUMPTION] = {STR("res master"), NULL},
		{STR("c hs traffic"), "CLIENT_HANDSHAKE_TRAFFIC_SECRET"},
		{STR("s hs traffic"), "SERVER_HANDSHAKE_TRAFFIC_SECRET"},
		{STR("exp master"), "EXPORTER_SECRET"},
	};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!str_eq(label, all[i].label))
			continue;
		if (i < TLSHS_N_SECRETS) {
			memcpy(h->secrets[i], secret, len);
			h->secret_len = (uint32_t)len;
		}
		if (all[i].logged)
			log_line(h, all[i].logged, secret, len);
		return;
	}
}

void tlshs_secrets_log_12(struct tlshs_handshake *h)
{
	const SSL_SESSION *session = SSL_get_session(h->ssl);
	uint8_t master[48];
	if (h->is_logged || !h->keys || !session || SSL_version(h->ssl) != TLS_1_2 ||
		SSL_SESSION_get_master_key(session, master, sizeof(master)) != sizeof(master))
		return;
	h->is_logged = true;
	log_line(h, "CLIENT_RANDOM", master, sizeof(master));
	OPENSSL_cleanse(master, sizeof(master));
}

// RFC 5246 5, 6.3; RFC 5288 3, RFC 7905 2.
static bool expand_12(const SSL *ssl, const EVP_MD *md, uint8_t *block, size_t len)
{
	uint8_t master[48], seed[13 + 64] = "key expansion";
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_TLS1_PRF, NULL);
	EVP_KDF_CTX *c = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	bool ok = c && SSL_SESSION_get_master_key(SSL_get_session(ssl), master, 48) == 48 &&
	          SSL_get_server_random(ssl, seed + 13, 32) == 32 &&
	          SSL_get_client_random(ssl, seed + 45, 32) == 32;
	char name[16];
	strncpy(name, EVP_MD_get0_name(md), sizeof(name) - 1)[sizeof(name) - 1] = 0;
	OSSL_PARAM params[] = {
		OSSL_PARAM_utf8_string(OSSL_KDF_PARAM_DIGEST, name, strlen(name)),
		OSSL_PARAM_octet_string(OSSL_KDF_PARAM_SECRET, master, sizeof(master)),
		OSSL_PARAM_octet_string(OSSL_KDF_PARAM_SEED, seed, sizeof(seed)),
		OSSL_PARAM_END,
	};
	ok = ok && EVP_KDF_derive(c, block, len, params) > 0;
	OPENSSL_cleanse(master, sizeof(master));
	EVP_KDF_CTX_free(c);
	EVP_KDF_free(kdf);
	return ok;
}

static bool take_12(const SSL *ssl, const EVP_MD *md, struct tls_secrets *s,
	struct tls_direction *client, struct tls_direction *server)
{
	size_t key = s->aead == TLS_AES_128_GCM ? 16 : 32;
	size_t iv = s->aead == TLS_CHACHA20_POLY1305 ? TLS_IV : 4;
	uint8_t block[2 * (TLS_MAX_KEY + TLS_IV)];
	if (!expand_12(ssl, md, block, 2 * (key + iv)))
		return false;
	memcpy(client->key, block, key);
	memcpy(server->key, block + key, key);
	memcpy(client->iv, block + 2 * key, iv);
	memcpy(server->iv, block + 2 * key + iv, iv);
	OPENSSL_cleanse(block, sizeof(block));
	client->seq = server->seq = 1; // behind Finished
	return true;
}

static bool take_13(const struct tlshs_handshake *h, const struct tls_secrets *s,
	struct tls_direction *client, struct tls_direction *server, size_t hash_len)
{
	if (h->secret_len != hash_len)
		return false;
	memcpy(client->secret, h->secrets[TLSHS_CLIENT_TRAFFIC], h->secret_len);
	memcpy(server->secret, h->secrets[TLSHS_SERVER_TRAFFIC], h->secret_len);
	tlshs_hkdf_derive_keys(s->hash, s->aead, client); // here, and not on a worker
	tlshs_hkdf_derive_keys(s->hash, s->aead, server);
	return true;
}

// What was agreed upon in this handshake, or in the one whose session it resumes: it is of the
// session (RFC 6066 4).
static uint16_t max_plain(const SSL *ssl)
{
	uint8_t mode = SSL_SESSION_get_max_fragment_length(SSL_get_session(ssl));
	bool is_agreed =
		mode >= TLSEXT_max_fragment_length_512 && mode <= TLSEXT_max_fragment_length_4096;
	return is_agreed ? (uint16_t)(512u << (mode - TLSEXT_max_fragment_length_512)) : 0;
}

bool tlshs_secrets_take(struct tlshs_handshake *h, struct tls_secrets *s)
{
	const SSL_CIPHER *cipher = SSL_get_current_cipher(h->ssl);
	const EVP_MD *md = SSL_CIPHER_get_handshake_digest(cipher);
	bool is_client = h->context->role == TLSHS_CLIENT;
	struct tls_direction *client = is_client ? &s->write : &s->read;
	struct tls_direction *server = is_client ? &s->read : &s->write;
	*s = (struct tls_secrets){.version = (uint16_t)SSL_version(h->ssl)};
	switch (SSL_CIPHER_get_cipher_nid(cipher)) {
	case NID_aes_128_gcm:
		s->aead = TLS_AES_128_GCM;
		break;
	case NID_aes_256_gcm:
		s->aead = TLS_AES_256_GCM;
		break;
	case NID_chacha20_poly1305:
		s->aead = TLS_CHACHA20_POLY1305;
		break;
	default:
		return false;
	}
	size_t hash_len = (size_t)EVP_MD_get_size(md);
	s->hash = hash_len == 48 ? TLS_SHA384 : TLS_SHA256;
	s->max_plain = max_plain(h->ssl);
	bool ok = s->version == TLS_1_3 ? take_13(h, s, client, server, hash_len)
	                                : take_12(h->ssl, md, s, client, server);
	s->write.seq += h->n_written;
	return ok;
}
