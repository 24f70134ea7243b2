// SPDX-License-Identifier: Apache-2.0
// Certificates, keys and CRLs for tests, made on the spot and written into a folder of the test's.
// Keys are on P-256 unless they say otherwise. All that is made lives until pki_end().
// Thread: one test.
#pragma once

#include <openssl/types.h>

#include <stdbool.h>
#include <stddef.h>

struct pki_cert {
	X509 *x;
	EVP_PKEY *key;
};

void pki_begin(void); // makes the folder
void pki_end(void); // removes it with all that is in it
const char *pki_path(const char *name); // in the folder

EVP_PKEY *pki_rsa_key(int bits);
// Valid from_days to to_days from now. issuer NULL = it signs itself. sans: "DNS:a,URI:b" or NULL.
struct pki_cert pki_make(const char *name, const char *sans, const struct pki_cert *issuer,
	int from_days, int to_days);

// How one is made that is not as those above; what is absent is as there.
struct pki_way {
	const char *curve; // "P-521"; NULL = see rsa_bits
	int rsa_bits; // 0 = P-256
	const char *kind; // another key, by the library's name of it: "ED25519"
	const char *digest; // "SHA1"; "" = as the key has it
	const char *usage; // keyUsage
	bool is_explicit; // the curve is written out
	bool is_ca;
};
struct pki_cert pki_make_by(const char *name, const struct pki_cert *issuer, struct pki_way);

// In PEM; a text, NUL-terminated.
const char *pki_cert_pem(const struct pki_cert *);
const char *pki_key_pem(const EVP_PKEY *);
const char *pki_encrypted_key_pem(const EVP_PKEY *);
const char *pki_crl_pem(const struct pki_cert *issuer, int next_days);
const char *pki_base64_der(const struct pki_cert *);

// Writes it as a new file that takes the place of the old one.
void pki_write(const char *name, const char *text);
void pki_write_bytes(const char *name, const void *bytes, size_t len);
