// SPDX-License-Identifier: Apache-2.0
// Traffic keys by the library's public functions: of 1.3 what its key log tells, of 1.2 the key
// block, made of the master secret once more (RFC 5246 6.3).
#include "tlshs/hkdf.h"
#include "tlshs/impl.h"
#include "tlshs/keylog.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <string.h>

static int digit(char c)
{
	return c >= '0' && c <= '9'                         ? c - '0'
	       : (str_fold(c) >= 'a' && str_fold(c) <= 'f') ? str_fold(c) - 'a' + 10
	                                                    : -1;
}

// "CLIENT_TRAFFIC_SECRET_0 <client random> <secret>", in hex.
void tlshs_secrets_on_keylog(const SSL *ssl, const char *line)
{
	struct tlshs_handshake *h = tlshs_of(ssl);
	struct str text = str_from(line);
	if (h->keys)
		tlshs_keylog_add(h->keys, line);
	bool client = str_starts(text, STR("CLIENT_TRAFFIC_SECRET_0 "));
	if (!client && !str_starts(text, STR("SERVER_TRAFFIC_SECRET_0 ")))
		return;
	const char *hex = strrchr(line, ' ') + 1;
	size_t len = strlen(hex) / 2;
	uint8_t *to = h->secrets[client ? TLSHS_KEYLOG_CLIENT : TLSHS_KEYLOG_SERVER];
	if (len > TLS_MAX_SECRET)
		return;
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
	h->secret_len = (uint32_t)len;
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
	memcpy(client->secret, h->secrets[TLSHS_KEYLOG_CLIENT], h->secret_len);
	memcpy(server->secret, h->secrets[TLSHS_KEYLOG_SERVER], h->secret_len);
	tlshs_hkdf_derive_keys(s->hash, s->aead, client); // here, and not on a worker
	tlshs_hkdf_derive_keys(s->hash, s->aead, server);
	return true;
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
	bool ok = s->version == TLS_1_3 ? take_13(h, s, client, server, hash_len)
	                                : take_12(h->ssl, md, s, client, server);
	s->write.seq += h->n_written;
	return ok;
}
