// SPDX-License-Identifier: Apache-2.0
// The ciphers of records (RFC 5116) behind a table of functions: one implementation for a library
// and the CPUs that it runs on. All give the same bytes.
// Thread: a struct aead belongs to one worker.
#pragma once

#include "tlshs/secrets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AEAD_TAG 16
#define AEAD_NONCE TLS_IV
#define AEAD_MAX_AAD 13
// Chunks that 16 KiB may lie in, two of which hold more than one's room between them, and the ends.
#define AEAD_MAX_PIECES 32

struct aead; // an implementation's state: keys in expanded form, each at a place of its own

// Bytes that lie in one place, and where they go; both may be the same.
struct aead_piece {
	uint8_t *to;
	const uint8_t *from;
	size_t len;
};

struct aead_record {
	uint8_t nonce[AEAD_NONCE];
	uint8_t aad_len; // 5 or 13
	uint8_t n_pieces; // 0 = nothing but the tag
	uint8_t aad[AEAD_MAX_AAD + 3];
	struct aead_piece pieces[AEAD_MAX_PIECES];
};

struct aead_ops {
	// Room for n_keys keys, which no one has set yet. NULL = this CPU can't, or out of memory.
	struct aead *(*new)(uint32_t n_keys);
	void (*free)(struct aead *); // overwrites all keys
	const char *(*name)(const struct aead *); // of library and instructions; static
	// None of what follows allocates. `at` is less than n_keys.
	void (*set_key)(struct aead *, uint32_t at, enum tls_aead, const uint8_t *key);
	void (*clear_key)(struct aead *, uint32_t at);
	void (*seal)(struct aead *, uint32_t at, const struct aead_record *, uint8_t *ret_tag);
	// False = the tag is wrong: what was written to the pieces means nothing.
	bool (*open)(struct aead *, uint32_t at, const struct aead_record *, const uint8_t *tag);
};

extern const struct aead_ops aead_mb; // ipsec-mb: x86 with AES-NI
extern const struct aead_ops aead_evp; // libcrypto: any CPU
