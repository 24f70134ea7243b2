// SPDX-License-Identifier: Apache-2.0
// What a finished TLS handshake leaves: all that records need from then on (RFC 8446 7.3, RFC 5246
// 6.3). A value that is copied from the handshake's thread to the worker's; whoever is done with it
// overwrites it. It knows no library, and both sides of the handshake look the same in it.
// Thread: any; a value belongs to its holder.
#pragma once

#include <stdint.h>

#define TLS_MAX_SECRET 48 // of SHA-384
#define TLS_MAX_KEY 32
#define TLS_IV 12

enum tls_version { TLS_1_2 = 0x0303, TLS_1_3 = 0x0304 };
enum tls_aead { TLS_AES_128_GCM, TLS_AES_256_GCM, TLS_CHACHA20_POLY1305, TLS_N_AEADS };
enum tls_hash { TLS_SHA256, TLS_SHA384 }; // of the key schedule

// One direction. TLS 1.3 has the traffic secret besides, of which key and IV are derived
// (tlshs/hkdf.h), and later secrets by KeyUpdate (RFC 8446 7.2). TLS 1.2 has key and IV alone: 4
// bytes of salt with AES-GCM (RFC 5288 3), all 12 with ChaCha20-Poly1305 (RFC 7905 2).
struct tls_direction {
	uint8_t secret[TLS_MAX_SECRET]; // 1.3 only; as long as the hash
	uint8_t key[TLS_MAX_KEY]; // as long as the AEAD's
	uint8_t iv[TLS_IV];
	uint64_t seq; // of the next record under this key
};

struct tls_secrets {
	uint16_t version; // enum tls_version
	uint8_t aead; // enum tls_aead
	uint8_t hash; // enum tls_hash
	uint16_t max_plain; // bytes in a record, either way (RFC 6066 4); 0 = as TLS has it
	struct tls_direction read, write;
};
