// SPDX-License-Identifier: Apache-2.0
// By libcrypto, for CPUs that ipsec-mb does not know. Contexts are made at start and never change
// their cipher, so that giving one a key or a nonce allocates nothing.
#include "dataplane/tls/aead.h"
#include "lb/base/check.h"

#include <openssl/evp.h>

#include <stdlib.h>
#include <string.h>

struct key {
	EVP_CIPHER_CTX *of[TLS_N_AEADS];
	enum tls_aead aead; // that it was set for
};

struct aead {
	EVP_CIPHER *ciphers[TLS_N_AEADS];
	uint32_t n_keys;
	struct key keys[];
};

static const char *const cipher_names[] = {
	[TLS_AES_128_GCM] = "AES-128-GCM",
	[TLS_AES_256_GCM] = "AES-256-GCM",
	[TLS_CHACHA20_POLY1305] = "ChaCha20-Poly1305",
};

static void evp_free(struct aead *a)
{
	if (!a)
		return;
	for (uint32_t at = 0; at < a->n_keys; at++)
		for (unsigned i = 0; i < TLS_N_AEADS; i++)
			EVP_CIPHER_CTX_free(a->keys[at].of[i]); // overwrites its key
	for (unsigned i = 0; i < TLS_N_AEADS; i++)
		EVP_CIPHER_free(a->ciphers[i]);
	free(a);
}

static bool make_key(struct aead *a, struct key *k)
{
	static const uint8_t nothing[TLS_MAX_KEY];
	for (unsigned i = 0; i < TLS_N_AEADS; i++) {
		k->of[i] = EVP_CIPHER_CTX_new();
		if (!k->of[i] ||
			!EVP_CipherInit_ex(k->of[i], a->ciphers[i], NULL, nothing, nothing, 1))
			return false;
	}
	return true;
}

static struct aead *evp_new(uint32_t n_keys)
{
	struct aead *a = calloc(1, sizeof(*a) + n_keys * sizeof(a->keys[0]));
	if (!a)
		return NULL;
	a->n_keys = n_keys;
	bool ok = true;
	for (unsigned i = 0; ok && i < TLS_N_AEADS; i++)
		ok = (a->ciphers[i] = EVP_CIPHER_fetch(NULL, cipher_names[i], NULL)) != NULL;
	for (uint32_t at = 0; ok && at < n_keys; at++)
		ok = make_key(a, &a->keys[at]);
	if (ok)
		return a;
	evp_free(a);
	return NULL;
}

static const char *evp_name(const struct aead *a)
{
	return "openssl";
}

static void evp_set_key(struct aead *a, uint32_t at, enum tls_aead aead, const uint8_t *key)
{
	struct key *k = &a->keys[at];
	k->aead = aead;
	CHECK(EVP_CipherInit_ex(k->of[aead], NULL, NULL, key, NULL, -1));
}

static void evp_clear_key(struct aead *a, uint32_t at)
{
	static const uint8_t nothing[TLS_MAX_KEY];
	evp_set_key(a, at, a->keys[at].aead, nothing);
}

// All but the tag.
static EVP_CIPHER_CTX *run(struct aead *a, uint32_t at, const struct aead_record *r, bool seals)
{
	EVP_CIPHER_CTX *c = a->keys[at].of[a->keys[at].aead];
	int n;
	CHECK(EVP_CipherInit_ex(c, NULL, NULL, NULL, r->nonce, seals));
	CHECK(EVP_CipherUpdate(c, NULL, &n, r->aad, r->aad_len));
	for (unsigned i = 0; i < r->n_pieces; i++) {
		const struct aead_piece *p = &r->pieces[i];
		CHECK(EVP_CipherUpdate(c, p->to, &n, p->from, (int)p->len));
	}
	return c;
}

static void evp_seal(struct aead *a, uint32_t at, const struct aead_record *r, uint8_t *ret_tag)
{
	EVP_CIPHER_CTX *c = run(a, at, r, true);
	uint8_t none[AEAD_TAG];
	int n;
	CHECK(EVP_CipherFinal_ex(c, none, &n));
	CHECK(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, AEAD_TAG, ret_tag));
}

static bool evp_open(struct aead *a, uint32_t at, const struct aead_record *r, const uint8_t *tag)
{
	EVP_CIPHER_CTX *c = run(a, at, r, false);
	uint8_t copy[AEAD_TAG], none[AEAD_TAG];
	int n;
	memcpy(copy, tag, AEAD_TAG);
	CHECK(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, AEAD_TAG, copy));
	return EVP_CipherFinal_ex(c, none, &n) > 0;
}

const struct aead_ops aead_evp = {
	.new = evp_new,
	.free = evp_free,
	.name = evp_name,
	.set_key = evp_set_key,
	.clear_key = evp_clear_key,
	.seal = evp_seal,
	.open = evp_open,
};
