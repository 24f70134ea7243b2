// SPDX-License-Identifier: Apache-2.0
// A peer made of OpenSSL, whose bytes go through memory: it shakes hands with a second OpenSSL end,
// which then gives way to one of ours with the secrets that it had.
// Thread: the test's own.
#pragma once

#include "dataplane/tls/tls.h"

#include <openssl/ssl.h>

struct openssl_peer {
	SSL_CTX *ctx[2]; // by enum tls_role
	SSL *ssl; // the peer
	BIO *in, *out; // its, of memory
	struct tls_secrets secrets; // of the end that takes the other's place
	size_t n_rest; // bytes that the peer sent behind its handshake: tickets
	uint8_t rest[4096];
};

// Shakes hands; `role` is our end's. cipher is OpenSSL's name of the suite. Asserts success.
void openssl_peer_init(
	struct openssl_peer *, uint16_t version, const char *cipher, enum tls_role role);
void openssl_peer_fini(struct openssl_peer *);
