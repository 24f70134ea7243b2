// SPDX-License-Identifier: Apache-2.0
#define OPENSSL_SUPPRESS_DEPRECATED
#include "tlshs/hkdf.h"

#include "lb/base/check.h"

#include <openssl/sha.h>

#include <string.h>

#define MAX_BLOCK 128 // of SHA-384
#define PREFIX STR("tls13 ")

struct hasher {
	enum tls_hash hash;
	union {
		SHA256_CTX sha256;
		SHA512_CTX sha384;
	};
};

static void begin(struct hasher *h, enum tls_hash hash)
{
	h->hash = hash;
	CHECK(hash == TLS_SHA256 ? SHA256_Init(&h->sha256) : SHA384_Init(&h->sha384));
}

static void add(struct hasher *h, const void *p, size_t len)
{
	CHECK(h->hash == TLS_SHA256 ? SHA256_Update(&h->sha256, p, len)
				    : SHA384_Update(&h->sha384, p, len));
}

static void end(struct hasher *h, uint8_t *ret)
{
	CHECK(h->hash == TLS_SHA256 ? SHA256_Final(ret, &h->sha256)
				    : SHA384_Final(ret, &h->sha384));
}

void tlshs_hkdf_hash(enum tls_hash hash, const void *p, size_t len, uint8_t *ret)
{
	struct hasher h;
	begin(&h, hash);
	add(&h, p, len);
	end(&h, ret);
	explicit_bzero(&h, sizeof(h));
}

// RFC 2104, of a key as long as the hash, which is no longer than a block.
static void hmac(enum tls_hash hash, const uint8_t *key, const void *text, size_t len, uint8_t *ret)
{
	size_t block = hash == TLS_SHA256 ? 64 : 128, key_len = tlshs_hkdf_hash_len(hash);
	uint8_t pad[MAX_BLOCK], inner[TLS_MAX_SECRET];
	struct hasher h;
	memset(pad, 0x36, block);
	for (size_t i = 0; i < key_len; i++)
		pad[i] ^= key[i];
	begin(&h, hash);
	add(&h, pad, block);
	add(&h, text, len);
	end(&h, inner);
	for (size_t i = 0; i < block; i++)
		pad[i] ^= 0x36 ^ 0x5c;
	begin(&h, hash);
	add(&h, pad, block);
	add(&h, inner, key_len);
	end(&h, ret);
	explicit_bzero(pad, sizeof(pad));
	explicit_bzero(inner, sizeof(inner));
	explicit_bzero(&h, sizeof(h));
}

void tlshs_hkdf_extract(enum tls_hash hash, const uint8_t *salt, struct str text, uint8_t *ret)
{
	hmac(hash, salt, text.p, text.len, ret);
}

static size_t put(uint8_t *to, size_t at, struct str s)
{
	if (s.len)
		memcpy(to + at, s.p, s.len);
	return at + s.len;
}

void tlshs_hkdf_expand(
	enum tls_hash hash, const uint8_t *secret, struct str info, uint8_t *ret, size_t len)
{
	uint8_t text[TLS_MAX_SECRET + TLSHS_HKDF_MAX_INFO + 1], out[TLS_MAX_SECRET];
	size_t hash_len = tlshs_hkdf_hash_len(hash), before = 0;
	CHECK(info.len <= TLSHS_HKDF_MAX_INFO && len <= 255 * hash_len);
	for (uint8_t i = 1; len; i++) {
		size_t n = put(text, before, info), part = len < hash_len ? len : hash_len;
		text[n++] = i;
		hmac(hash, secret, text, n, out);
		memcpy(ret, out, part);
		memcpy(text, out, before = hash_len);
		ret += part;
		len -= part;
	}
	explicit_bzero(text, sizeof(text));
	explicit_bzero(out, sizeof(out));
}

void tlshs_hkdf_expand_label(enum tls_hash hash, const uint8_t *secret, struct str label,
	struct str context, uint8_t *ret, size_t len)
{
	uint8_t info[TLSHS_HKDF_MAX_INFO];
	CHECK(len <= tlshs_hkdf_hash_len(hash) && label.len <= TLSHS_HKDF_MAX_LABEL &&
		context.len <= TLS_MAX_SECRET);
	size_t n = 0;
	info[n++] = 0;
	info[n++] = (uint8_t)len;
	info[n++] = (uint8_t)(PREFIX.len + label.len);
	n = put(info, put(info, n, PREFIX), label);
	info[n++] = (uint8_t)context.len;
	n = put(info, n, context);
	tlshs_hkdf_expand(hash, secret, (struct str){(const char *)info, n}, ret, len);
}

void tlshs_hkdf_derive_keys(enum tls_hash hash, enum tls_aead aead, struct tls_direction *d)
{
	size_t key_len = aead == TLS_AES_128_GCM ? 16 : 32;
	tlshs_hkdf_expand_label(hash, d->secret, STR("key"), STR(""), d->key, key_len);
	tlshs_hkdf_expand_label(hash, d->secret, STR("iv"), STR(""), d->iv, sizeof(d->iv));
}

void tlshs_hkdf_update(enum tls_hash hash, enum tls_aead aead, struct tls_direction *d)
{
	tlshs_hkdf_expand_label(
		hash, d->secret, STR("traffic upd"), STR(""), d->secret, tlshs_hkdf_hash_len(hash));
	tlshs_hkdf_derive_keys(hash, aead, d);
	d->seq = 0;
}
