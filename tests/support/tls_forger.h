// SPDX-License-Identifier: Apache-2.0
// A peer that knows the keys of a connection and builds records that no honest one would, by
// libcrypto alone: a second implementation of what protects a record, for tests and fuzzers.
// Thread: the test's own.
#pragma once

#include "dataplane/tls/aead.h"
#include "dataplane/tls/tls.h"
#include "lb/base/rand.h"

#define TLS_FORGER_OVERHEAD 64 // more than any record adds to its plaintext

struct tls_forger {
	uint16_t version; // enum tls_version
	enum tls_aead aead;
	struct tls_direction d; // what the connection reads by; seq counts on
	struct aead *cipher; // owned
	struct rand *rand; // of explicit nonces; borrowed
};

// d has key and IV. Aborts without libcrypto.
void tls_forger_init(struct tls_forger *, const struct tls_secrets *, const struct tls_direction *,
	struct rand *);
void tls_forger_fini(struct tls_forger *);
// The next record: plaintext, its type, and bytes of padding (1.3 alone). Returns its length.
size_t tls_forger_seal(struct tls_forger *, uint8_t type, const void *text, size_t len,
	size_t padding, uint8_t *to);
// New keys, from number 0 on.
void tls_forger_set(struct tls_forger *, const struct tls_direction *);
