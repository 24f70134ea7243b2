// SPDX-License-Identifier: Apache-2.0
// Certificates, keys and CRLs in memory, made on the spot. All lives until pki_end().
// Thread: one test.
#pragma once

#include "lb/base/str.h"

#include <openssl/types.h>

enum pki_key { PKI_P256, PKI_P384, PKI_ED25519, PKI_RSA }; // RSA of 2048 bits

struct pki_cert {
	X509 *x;
	EVP_PKEY *key;
	struct str pem, key_pem;
};

struct pki_conf {
	const char *name;
	const struct pki_cert *issuer; // NULL = a CA that signs itself
	const char *sans; // "DNS:a,URI:b"; NULL = none
	const char *usage; // "serverAuth"; NULL = any
	int from_days, to_days; // from now; both 0 = -1, 30
	int to_seconds; // in place of to_days; 0 = that counts
	bool is_ca; // one between
	enum pki_key key;
	const char *key_usage; // "keyCertSign"; NULL = any
};

struct pki_cert pki_make(struct pki_conf);
// Revokes one; NULL = none. next_days: until nextUpdate, negative = it is over.
struct str pki_crl(const struct pki_cert *issuer, const struct pki_cert *revoked, int next_days);
struct str pki_encrypted_key(const struct pki_cert *);
struct str pki_join(struct str, struct str);
void pki_end(void);
