// SPDX-License-Identifier: Apache-2.0
#include "ctrl/certs/strength.h"

#include "ctrl/certs/pem.h"

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <errno.h>
#include <limits.h>
#include <string.h>

#define MIN_RSA_BITS 2048 // as Envoy
#define MIN_SECURITY_BITS 112 // of OpenSSL's level 2, which handshakes go by

static int judge_rsa(const EVP_PKEY *key, struct lb_err *err)
{
	int bits = EVP_PKEY_get_bits(key);
	return bits >= MIN_RSA_BITS
	               ? 0
	               : lb_err_set(err, "the RSA key has %d bits; %d or more are needed", bits,
				 MIN_RSA_BITS);
}

// The curves of RFC 8446 4.2.3, written as the library names them; and none that is given by its
// equation, as RFC 5480 2.1.1 has it.
static int judge_curve(const EVP_PKEY *key, struct lb_err *err)
{
	static const char *const curves[] = {"prime256v1", "secp384r1", "secp521r1"};
	char name[80] = "";
	int is_explicit = 0;
	EVP_PKEY_get_int_param(key, OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS, &is_explicit);
	if (is_explicit)
		return lb_err_set(err, "the key writes its curve out; a named one is needed");
	EVP_PKEY_get_group_name(key, name, sizeof(name), NULL);
	for (size_t i = 0; i < sizeof(curves) / sizeof(curves[0]); i++)
		if (strcmp(name, curves[i]) == 0)
			return 0;
	return lb_err_set(err,
		"the key is on the curve %.40s, by which no TLS client goes (P-256, P-384 and "
		"P-521 are)",
		*name ? name : "of no name");
}

int cert_key_judge(const EVP_PKEY *key, struct lb_err *err)
{
	int kind = EVP_PKEY_get_base_id(key), rc = 0;
	if (kind == EVP_PKEY_RSA)
		rc = judge_rsa(key, err);
	else if (kind == EVP_PKEY_EC)
		rc = judge_curve(key, err);
	else if (kind != EVP_PKEY_ED25519)
		rc = lb_err_set(err, "the key is of a kind that TLS does not use here (RSA, ECDSA "
				     "and Ed25519 are)");
	ERR_clear_error();
	return rc;
}

static int judge_key_bits(X509 *x, struct lb_err *err)
{
	const EVP_PKEY *key = X509_get0_pubkey(x);
	const char *kind = key ? EVP_PKEY_get0_type_name(key) : NULL;
	int security = key ? EVP_PKEY_get_security_bits(key) : 0;
	if (security >= MIN_SECURITY_BITS)
		return 0;
	return lb_err_set(err, "its %s key of %d bits is too weak for TLS", kind ? kind : "unknown",
		key ? EVP_PKEY_get_bits(key) : 0);
}

// Of one that signs itself, nobody looks at the signature.
static int judge_signature(X509 *x, struct lb_err *err)
{
	int digest = NID_undef, kind = NID_undef, security = 0;
	if (X509_get_extension_flags(x) & EXFLAG_SS)
		return 0;
	if (X509_get_signature_info(x, &digest, &kind, &security, NULL) &&
		security >= MIN_SECURITY_BITS)
		return 0;
	int nid = digest != NID_undef ? digest : kind;
	return lb_err_set(
		err, "its signature by %s is too weak for TLS", nid ? OBJ_nid2sn(nid) : "?");
}

// Without it the library's servers make no handshake of 1.2 by ECDSA and Ed25519. It asks nothing
// of RSA, and some clients do: certs.c tells of it.
static int judge_usage(X509 *x, struct lb_err *err)
{
	bool is_rsa = EVP_PKEY_get_base_id(X509_get0_pubkey(x)) == EVP_PKEY_RSA;
	return is_rsa || X509_get_key_usage(x) & KU_DIGITAL_SIGNATURE
	               ? 0
	               : lb_err_set(err, "its keyUsage is without digitalSignature, by which "
					 "TLS uses it");
}

static int judge(X509 *x, bool is_ours, struct lb_err *err)
{
	const EVP_PKEY *key = X509_get0_pubkey(x);
	int rc = is_ours && key ? cert_key_judge(key, err) : 0;
	if (!rc)
		rc = judge_key_bits(x, err);
	if (!rc)
		rc = judge_signature(x, err);
	return !rc && is_ours ? judge_usage(x, err) : rc;
}

int cert_chain_judge(struct str pem, const struct cert_list *l, struct lb_err *err)
{
	BIO *in = pem.len <= INT_MAX ? BIO_new_mem_buf(pem.p, (int)pem.len) : NULL;
	int rc = in ? 0 : -ENOMEM;
	for (uint32_t i = 0; !rc && i < l->n; i++) {
		X509 *x = PEM_read_bio_X509(in, NULL, NULL, NULL);
		if (!x)
			rc = -ENOMEM; // it was read before
		else if (judge(x, i == 0, err))
			rc = lb_err_within(
				err, "certificate %u (%.80s)", i + 1, l->list[i].subject);
		X509_free(x);
	}
	ERR_clear_error();
	BIO_free(in);
	return rc;
}
