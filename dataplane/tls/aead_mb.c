// SPDX-License-Identifier: Apache-2.0
// By Intel's ipsec-mb, whose direct functions need no more setup for a record than a nonce: for 200
// bytes a sixth of libcrypto's time, for 16 KiB 0.4 of it.
#include "dataplane/tls/aead.h"
#include "lb/base/check.h"

#include <intel-ipsec-mb.h>
#include <stdlib.h>
#include <string.h>

struct gcm {
	aes_gcm_pre_t expand;
	aes_gcm_enc_dec_t seal, open;
	aes_gcm_init_t begin;
	aes_gcm_enc_dec_update_t seal_more, open_more;
	aes_gcm_enc_dec_finalize_t seal_end, open_end;
};

// The library's header aligns its keys only where LINUX is defined, and its code wants that always.
struct key {
	union {
		_Alignas(64) struct gcm_key_data gcm;
		uint8_t chacha[TLS_MAX_KEY];
	};
	const struct gcm *how; // NULL = ChaCha20-Poly1305
};

struct aead {
	struct gcm gcm[2]; // by enum tls_aead
	chacha_poly_init_t chacha_begin;
	chacha_poly_enc_dec_update_t chacha_seal, chacha_open;
	chacha_poly_finalize_t chacha_end;
	const char *name;
	uint32_t n_keys;
	struct key *keys;
};

static void take_functions(struct aead *a, const IMB_MGR *m)
{
	a->gcm[TLS_AES_128_GCM] = (struct gcm){m->gcm128_pre, m->gcm128_enc, m->gcm128_dec,
		m->gcm128_init, m->gcm128_enc_update, m->gcm128_dec_update, m->gcm128_enc_finalize,
		m->gcm128_dec_finalize};
	a->gcm[TLS_AES_256_GCM] = (struct gcm){m->gcm256_pre, m->gcm256_enc, m->gcm256_dec,
		m->gcm256_init, m->gcm256_enc_update, m->gcm256_dec_update, m->gcm256_enc_finalize,
		m->gcm256_dec_finalize};
	a->chacha_begin = m->chacha20_poly1305_init;
	a->chacha_seal = m->chacha20_poly1305_enc_update;
	a->chacha_open = m->chacha20_poly1305_dec_update;
	a->chacha_end = m->chacha20_poly1305_finalize;
}

static const char *name_of(IMB_ARCH arch)
{
	switch (arch) {
	case IMB_ARCH_SSE:
		return "ipsec-mb SSE";
	case IMB_ARCH_AVX:
		return "ipsec-mb AVX";
	case IMB_ARCH_AVX2:
		return "ipsec-mb AVX2";
	case IMB_ARCH_AVX512:
		return "ipsec-mb AVX512";
	default:
		return NULL;
	}
}

// The library's manager is a queue of jobs, of which we need none: its functions are kept alone.
static bool choose_functions(struct aead *a)
{
	IMB_MGR *m = alloc_mb_mgr(0);
	IMB_ARCH arch = IMB_ARCH_NONE;
	if (!m)
		return false;
	if (m->features & IMB_FEATURE_AESNI)
		init_mb_mgr_auto(m, &arch);
	if (imb_get_errno(m) == 0 && name_of(arch)) {
		a->name = name_of(arch);
		take_functions(a, m);
	}
	free_mb_mgr(m);
	return a->name != NULL;
}

static void mb_free(struct aead *a)
{
	if (!a)
		return;
	if (a->keys)
		explicit_bzero(a->keys, a->n_keys * sizeof(*a->keys));
	free(a->keys);
	free(a);
}

static struct aead *mb_new(uint32_t n_keys)
{
	struct aead *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	if (!choose_functions(a)) {
		mb_free(a);
		return NULL;
	}
	a->n_keys = n_keys;
	a->keys = aligned_alloc(_Alignof(struct key), n_keys * sizeof(*a->keys));
	if (!a->keys) {
		mb_free(a);
		return NULL;
	}
	memset(a->keys, 0, n_keys * sizeof(*a->keys));
	return a;
}

static const char *mb_name(const struct aead *a)
{
	return a->name;
}

static void mb_set_key(struct aead *a, uint32_t at, enum tls_aead aead, const uint8_t *key)
{
	struct key *k = &a->keys[at];
	if (aead == TLS_CHACHA20_POLY1305) {
		k->how = NULL;
		memcpy(k->chacha, key, sizeof(k->chacha));
		return;
	}
	k->how = &a->gcm[aead];
	k->how->expand(key, &k->gcm);
}

static void mb_clear_key(struct aead *a, uint32_t at)
{
	explicit_bzero(&a->keys[at], sizeof(a->keys[at]));
}

static void chacha(struct aead *a, const struct key *k, const struct aead_record *r, uint8_t *tag,
	chacha_poly_enc_dec_update_t more)
{
	struct chacha20_poly1305_context_data c;
	a->chacha_begin(k->chacha, &c, r->nonce, r->aad, r->aad_len);
	for (unsigned i = 0; i < r->n_pieces; i++)
		more(k->chacha, &c, r->pieces[i].to, r->pieces[i].from, r->pieces[i].len);
	a->chacha_end(&c, tag, AEAD_TAG);
	explicit_bzero(&c, sizeof(c)); // some builds of the library leave Poly1305's key in it
}

static void gcm_in_pieces(const struct key *k, const struct aead_record *r, uint8_t *tag,
	aes_gcm_enc_dec_update_t more, aes_gcm_enc_dec_finalize_t end)
{
	struct gcm_context_data c;
	k->how->begin(&k->gcm, &c, r->nonce, r->aad, r->aad_len);
	for (unsigned i = 0; i < r->n_pieces; i++)
		more(&k->gcm, &c, r->pieces[i].to, r->pieces[i].from, r->pieces[i].len);
	end(&k->gcm, &c, tag, AEAD_TAG);
}

static void gcm_at_once(
	const struct key *k, const struct aead_record *r, uint8_t *tag, aes_gcm_enc_dec_t work)
{
	struct gcm_context_data c;
	const struct aead_piece *p = r->pieces;
	work(&k->gcm, &c, p->to, p->from, p->len, r->nonce, r->aad, r->aad_len, tag, AEAD_TAG);
}

static void mb_seal(struct aead *a, uint32_t at, const struct aead_record *r, uint8_t *ret_tag)
{
	const struct key *k = &a->keys[at];
	if (!k->how)
		chacha(a, k, r, ret_tag, a->chacha_seal);
	else if (r->n_pieces == 1)
		gcm_at_once(k, r, ret_tag, k->how->seal);
	else
		gcm_in_pieces(k, r, ret_tag, k->how->seal_more, k->how->seal_end);
}

// In a time that does not depend on what differs.
static bool same_tag(const uint8_t *a, const uint8_t *b)
{
	uint64_t x[2], y[2];
	memcpy(x, a, AEAD_TAG);
	memcpy(y, b, AEAD_TAG);
	return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
}

static bool mb_open(struct aead *a, uint32_t at, const struct aead_record *r, const uint8_t *tag)
{
	const struct key *k = &a->keys[at];
	uint8_t is[AEAD_TAG];
	if (!k->how)
		chacha(a, k, r, is, a->chacha_open);
	else if (r->n_pieces == 1)
		gcm_at_once(k, r, is, k->how->open);
	else
		gcm_in_pieces(k, r, is, k->how->open_more, k->how->open_end);
	return same_tag(is, tag);
}

const struct aead_ops aead_mb = {
	.new = mb_new,
	.free = mb_free,
	.name = mb_name,
	.set_key = mb_set_key,
	.clear_key = mb_clear_key,
	.seal = mb_seal,
	.open = mb_open,
};
