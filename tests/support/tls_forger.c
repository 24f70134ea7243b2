// SPDX-License-Identifier: Apache-2.0
// RFC 8446 5.2 and 5.3, RFC 5246 6.2.3.3, RFC 5288 3, RFC 7905 2, spelled out once more.
#include "tests/support/tls_forger.h"

#include "lb/base/check.h"

#include <string.h>

void tls_forger_init(struct tls_forger *f, const struct tls_secrets *s,
	const struct tls_direction *d, struct rand *rand)
{
	*f = (struct tls_forger){.version = s->version, .aead = s->aead, .d = *d, .rand = rand};
	f->cipher = aead_evp.new(1);
	CHECK(f->cipher);
	aead_evp.set_key(f->cipher, 0, f->aead, d->key);
}

void tls_forger_fini(struct tls_forger *f)
{
	aead_evp.free(f->cipher);
}

void tls_forger_set(struct tls_forger *f, const struct tls_direction *d)
{
	f->d = *d;
	f->d.seq = 0;
	aead_evp.set_key(f->cipher, 0, f->aead, d->key);
}

static void put16(uint8_t *p, size_t x)
{
	p[0] = (uint8_t)(x >> 8);
	p[1] = (uint8_t)x;
}

static bool is_13(const struct tls_forger *f)
{
	return f->version == TLS_1_3;
}

static bool is_salted(const struct tls_forger *f)
{
	return !is_13(f) && f->aead != TLS_CHACHA20_POLY1305;
}

// The nonce of a record; p is where an explicit one goes. Returns how long that is.
static size_t set_nonce(struct tls_forger *f, const uint8_t *seq, uint8_t *nonce, uint8_t *p)
{
	memcpy(nonce, f->d.iv, 12);
	if (!is_salted(f)) {
		for (unsigned i = 0; i < 8; i++)
			nonce[4 + i] ^= seq[i];
		return 0;
	}
	for (unsigned i = 0; i < 8; i++) // whatever the peer likes
		p[i] = nonce[4 + i] = (uint8_t)rand_u64(f->rand);
	return 8;
}

size_t tls_forger_seal(struct tls_forger *f, uint8_t type, const void *text, size_t len,
	size_t padding, uint8_t *to)
{
	struct aead_record r = {.n_pieces = 1};
	size_t inner = len + (is_13(f) ? 1 + padding : 0),
	       body = (is_salted(f) ? 8 : 0) + inner + 16;
	uint8_t seq[8], *p = to + 5;
	for (unsigned i = 0; i < 8; i++)
		seq[i] = (uint8_t)(f->d.seq >> (56 - 8 * i));
	memcpy(to, (uint8_t[]){is_13(f) ? 23 : type, 3, 3}, 3);
	put16(to + 3, body);
	p += set_nonce(f, seq, r.nonce, p);
	memcpy(p, text, len);
	if (is_13(f)) {
		p[len] = type;
		memset(p + len + 1, 0, padding);
		memcpy(r.aad, to, r.aad_len = 5);
	} else {
		memcpy(r.aad, seq, 8);
		memcpy(r.aad + 8, (uint8_t[]){type, 3, 3}, 3);
		put16(r.aad + 11, len);
		r.aad_len = 13;
	}
	r.pieces[0] = (struct aead_piece){p, p, inner};
	aead_evp.seal(f->cipher, 0, &r, p + inner);
	f->d.seq++;
	return 5 + body;
}
