// SPDX-License-Identifier: Apache-2.0
// HKDF as TLS 1.3 uses it (RFC 8446 7.1, RFC 5869): what comes out is never longer than the hash,
// so one HMAC does it.
#include "dataplane/tls/impl.h"
#include "lb/base/check.h"

#include <string.h>

#define MAX_BLOCK 128 // of SHA-384
#define MAX_INFO 32 // length, "tls13 ", label, no context, and HKDF's counter

// RFC 2104, of a key no longer than a block.
static void hmac(
	enum tls_hash hash, const uint8_t *key, const uint8_t *text, size_t len, uint8_t *ret)
{
	size_t block = hash == TLS_SHA256 ? 64 : 128, key_len = aead_hash_len(hash);
	uint8_t in[MAX_BLOCK + TLS_MAX_SECRET], inner[TLS_MAX_SECRET];
	DCHECK(len <= TLS_MAX_SECRET);
	memset(in, 0x36, block);
	for (size_t i = 0; i < key_len; i++)
		in[i] ^= key[i];
	memcpy(in + block, text, len);
	aead_hash(hash, in, block + len, inner);
	for (size_t i = 0; i < block; i++)
		in[i] ^= 0x36 ^ 0x5c;
	memcpy(in + block, inner, key_len);
	aead_hash(hash, in, block + key_len, ret);
	explicit_bzero(in, sizeof(in));
	explicit_bzero(inner, sizeof(inner));
}

void tls_hkdf_expand_label(
	enum tls_hash hash, const uint8_t *secret, const char *label, uint8_t *ret, size_t len)
{
	uint8_t info[MAX_INFO], out[TLS_MAX_SECRET];
	size_t label_len = strlen(label), n = 0;
	DCHECK(len <= aead_hash_len(hash) && label_len <= MAX_INFO - 11);
	info[n++] = 0;
	info[n++] = (uint8_t)len;
	info[n++] = (uint8_t)(6 + label_len);
	memcpy(info + n, "tls13 ", 6);
	memcpy(info + n + 6, label, label_len);
	n += 6 + label_len;
	info[n++] = 0; // no context
	info[n++] = 1; // HKDF's first and only block
	hmac(hash, secret, info, n, out);
	memcpy(ret, out, len);
	explicit_bzero(out, sizeof(out));
}
