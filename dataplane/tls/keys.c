// SPDX-License-Identifier: Apache-2.0
// Keys of connections: kept as they are, 32 bytes, and in the form that the cipher works with, a
// kibibyte, in places that a connection's index in the pool chooses (a direct map): whoever needs
// one takes it from whoever had it. To expand a key again takes as long as a few cache misses.
#include "dataplane/tls/impl.h"
#include "tlshs/hkdf.h"

#include <string.h>

static uint32_t place(const struct tls_conn *c, const struct tls_direction *d)
{
	return c->place + (d == &c->write);
}

uint32_t tls_keys_at(struct tls_conn *c, const struct tls_direction *d)
{
	struct tls_context *ctx = c->ctx;
	uint32_t at = place(c, d);
	if (ctx->keys[at] != d) {
		if (ctx->keys[at]) // a shorter schedule would leave the end of a longer one
			ctx->conf.aead->clear_key(ctx->aead, at);
		ctx->conf.aead->set_key(ctx->aead, at, c->aead, d->key);
		ctx->keys[at] = d;
		tls_count(c, TLS_C_keys_expanded);
	}
	return at;
}

void tls_keys_drop(struct tls_conn *c, const struct tls_direction *d)
{
	struct tls_context *ctx = c->ctx;
	uint32_t at = place(c, d);
	if (ctx->keys[at] != d)
		return;
	ctx->conf.aead->clear_key(ctx->aead, at);
	ctx->keys[at] = NULL;
}

void tls_keys_update(struct tls_conn *c, struct tls_direction *d)
{
	tls_keys_drop(c, d);
	tlshs_hkdf_update(c->hash, c->aead, d);
}

static void put64(uint8_t *p, uint64_t x)
{
	x = __builtin_bswap64(x);
	memcpy(p, &x, sizeof(x));
}

void tls_keys_nonce(const struct tls_conn *c, const struct tls_direction *d,
	const uint8_t *explicit_nonce, uint8_t *ret)
{
	memcpy(ret, d->iv, AEAD_NONCE);
	if (tls_explicit_nonce(c)) {
		memcpy(ret + 4, explicit_nonce, TLS_EXPLICIT_NONCE);
		return;
	}
	uint64_t low;
	memcpy(&low, ret + 4, sizeof(low));
	low ^= __builtin_bswap64(d->seq);
	memcpy(ret + 4, &low, sizeof(low));
}

void tls_keys_aad(const struct tls_conn *c, const struct tls_direction *d, const uint8_t *head,
	size_t len, struct aead_record *r)
{
	if (c->version == TLS_1_3) {
		memcpy(r->aad, head, TLS_HEADER);
		r->aad_len = TLS_HEADER;
		return;
	}
	put64(r->aad, d->seq);
	memcpy(r->aad + 8, head, 3);
	r->aad[11] = (uint8_t)(len >> 8);
	r->aad[12] = (uint8_t)len;
	r->aad_len = 13;
}
