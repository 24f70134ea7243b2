// SPDX-License-Identifier: Apache-2.0
// HKDF as TLS 1.3 uses it (RFC 8446 7.1, RFC 5869), and the hashes below it. By libcrypto's old
// functions, which it would see gone: EVP's allocate each time, and ipsec-mb's SHA-256 takes 4.6
// times as long. Nothing here allocates, locks or makes a system call, or leaves secrets on the
// stack.
// Thread: any.
#pragma once

#include "lb/base/str.h"
#include "tlshs/secrets.h"

#include <stddef.h>
#include <stdint.h>

#define TLSHS_HKDF_MAX_LABEL 18 // "traffic upd" and the like, without "tls13 "
#define TLSHS_HKDF_MAX_INFO (2 + 1 + 6 + TLSHS_HKDF_MAX_LABEL + 1 + TLS_MAX_SECRET)

static inline size_t tlshs_hkdf_hash_len(enum tls_hash hash)
{
	return hash == TLS_SHA256 ? 32 : 48;
}

// Results are as long as the hash where nothing else is said.
void tlshs_hkdf_hash(enum tls_hash, const void *, size_t len, uint8_t *ret);
// HKDF-Extract: of a salt as long as the hash, and of any text.
void tlshs_hkdf_extract(enum tls_hash, const uint8_t *salt, struct str, uint8_t *ret);
// HKDF-Expand: up to 255 times the hash, of a secret as long as the hash. info has at most
// TLSHS_HKDF_MAX_INFO bytes.
void tlshs_hkdf_expand(
	enum tls_hash, const uint8_t *secret, struct str info, uint8_t *ret, size_t len);
// HKDF-Expand-Label. secret is as long as the hash, context and what comes out at most; ret may be
// secret.
void tlshs_hkdf_expand_label(enum tls_hash, const uint8_t *secret, struct str label,
	struct str context, uint8_t *ret, size_t len);
// Key and IV of the direction's traffic secret (RFC 8446 7.3).
void tlshs_hkdf_derive_keys(enum tls_hash, enum tls_aead, struct tls_direction *);
// The next secret, with its keys (RFC 8446 7.2); the sequence number begins anew.
void tlshs_hkdf_update(enum tls_hash, enum tls_aead, struct tls_direction *);
