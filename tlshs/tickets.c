// SPDX-License-Identifier: Apache-2.0
// Session tickets without a state: their keys come by HKDF of the secret, the hour, and what peers
// are judged by, so that whoever has the same three reads them, and nobody else (RFC 5077 4).
#include "tlshs/hkdf.h"
#include "tlshs/impl.h"

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <string.h>
#include <time.h>

#define EPOCH_S 3600
#define NAME 16
#define KEY 32

struct keys {
	uint8_t name[NAME], cipher[KEY], mac[KEY];
};

// Of this hour, or of `ago` hours before.
static void derive(const struct tlshs_context *c, unsigned ago, struct keys *ret)
{
	uint64_t epoch = __builtin_bswap64((uint64_t)time(NULL) / EPOCH_S - ago);
	tlshs_hkdf_expand(TLS_SHA256, c->ticket_secret,
		(struct str){(const char *)&epoch, sizeof(epoch)}, (uint8_t *)ret, sizeof(*ret));
}

static bool start(
	struct keys *k, const uint8_t *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int encrypt)
{
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {
		OSSL_PARAM_octet_string(OSSL_MAC_PARAM_KEY, k->mac, sizeof(k->mac)),
		OSSL_PARAM_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, sizeof(digest) - 1),
		OSSL_PARAM_END,
	};
	return EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, k->cipher, iv, encrypt) == 1 &&
	       EVP_MAC_CTX_set_params(mac, params) == 1;
}

// As the library asks: 1 = these are the keys, 0 = none fit, -1 = failed.
static int on_ticket_key(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
	EVP_MAC_CTX *mac, int encrypt)
{
	const struct tlshs_context *c = tlshs_of(ssl)->context;
	struct keys k;
	int is = encrypt ? -1 : 0;
	if (encrypt && RAND_bytes(iv, EVP_MAX_IV_LENGTH) == 1) {
		derive(c, 0, &k);
		memcpy(name, k.name, NAME);
		is = start(&k, iv, cipher, mac, 1) ? 1 : -1;
	}
	for (unsigned ago = 0; !encrypt && is == 0 && ago < 2; ago++) {
		derive(c, ago, &k);
		if (CRYPTO_memcmp(name, k.name, NAME) == 0)
			is = start(&k, iv, cipher, mac, 0) ? 1 : -1;
	}
	OPENSSL_cleanse(&k, sizeof(k));
	return is;
}

// A session goes on only with a peer that would be accepted now; else all begins anew.
static SSL_TICKET_RETURN on_ticket(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
	size_t len, SSL_TICKET_STATUS status, void *arg)
{
	struct tlshs_handshake *h = tlshs_of(ssl);
	if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	X509 *x = SSL_SESSION_get0_peer(session);
	if (tlshs_verifies(h->context) && x && !tlshs_verify_again(h, x))
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

bool tlshs_tickets_setup(struct tlshs_context *c, struct str secret)
{
	static const uint8_t id[] = "shunt";
	if (c->max_sessions) // a client's: whoever has the same context has them
		return true;
	if (!secret.len) {
		SSL_CTX_set_options(c->ssl, SSL_OP_NO_TICKET);
		return SSL_CTX_set_num_tickets(c->ssl, 0) == 1;
	}
	tlshs_hkdf_extract(TLS_SHA256, c->trust, secret, c->ticket_secret);
	SSL_CTX_set_timeout(c->ssl, EPOCH_S);
	return SSL_CTX_set_session_id_context(c->ssl, id, sizeof(id) - 1) == 1 &&
	       SSL_CTX_set_num_tickets(c->ssl, 1) == 1 &&
	       SSL_CTX_set_tlsext_ticket_key_evp_cb(c->ssl, on_ticket_key) == 1 &&
	       SSL_CTX_set_session_ticket_cb(c->ssl, NULL, on_ticket, NULL) == 1;
}
