// SPDX-License-Identifier: Apache-2.0
// Session tickets without a state: their keys come by HKDF of the secret, the hour, and what a
// session is bound to, who we are and whom we trust, so that whoever has the same three reads them,
// and nobody else (RFC 5077 4).
#include "tlshs/hkdf.h"
#include "tlshs/impl.h"
#include "tlshs/sessions.h"

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <string.h>
#include <time.h>

#define EPOCH_S 3600
#define LAST_S 60 // of a session, which bring no other: more than a handshake takes
#define NAME 16
#define KEY 32

_Static_assert(TLSHS_SESSION_S <= EPOCH_S, "the key of a ticket outlives its session");

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

// A session goes on only with a peer that would be accepted now; else all begins anew. Of 1.3 it
// leaves another ticket, so that nobody need use one twice (RFC 8446 C.4); those of 1.2 are for all
// of a session's time (RFC 5077 3.3).
static SSL_TICKET_RETURN on_ticket(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
	size_t len, SSL_TICKET_STATUS status, void *arg)
{
	struct tlshs_handshake *h = tlshs_of(ssl);
	if (status != SSL_TICKET_SUCCESS)
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	X509 *x = SSL_SESSION_get0_peer(session);
	if (tlshs_verifies(h->context) && x && !tlshs_verify_again(h, x))
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	h->judged_until_s = SSL_SESSION_get_time(session) + SSL_SESSION_get_timeout(session);
	bool renews = SSL_version(ssl) == TLS_1_3 && h->judged_until_s - time(NULL) > LAST_S;
	return renews ? SSL_TICKET_RETURN_USE_RENEW : SSL_TICKET_RETURN_USE;
}

// The library counts the time of each ticket of 1.3 anew. Here none outlives what the peer was
// judged by in its full handshake, or the session that it was resumed with (TLS-238). A timeout of
// 0 would be read as 3 s.
static int on_new_ticket(SSL *ssl, void *arg)
{
	SSL_SESSION *session = SSL_get_session(ssl);
	if (!SSL_session_reused(ssl) && !SSL_get0_peer_certificate(ssl))
		return 1; // nobody was judged: the context's timeout
	int64_t left_s = tlshs_of(ssl)->judged_until_s - SSL_SESSION_get_time(session);
	return SSL_SESSION_set_timeout(session, left_s > 0 ? left_s : 1) == 1;
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
	tlshs_hkdf_extract(TLS_SHA256, c->binding, secret, c->ticket_secret);
	SSL_CTX_set_timeout(c->ssl, TLSHS_SESSION_S);
	return SSL_CTX_set_session_id_context(c->ssl, id, sizeof(id) - 1) == 1 &&
	       SSL_CTX_set_num_tickets(c->ssl, 1) == 1 &&
	       SSL_CTX_set_tlsext_ticket_key_evp_cb(c->ssl, on_ticket_key) == 1 &&
	       SSL_CTX_set_session_ticket_cb(c->ssl, on_new_ticket, on_ticket, NULL) == 1;
}
