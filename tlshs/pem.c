// SPDX-License-Identifier: Apache-2.0
// Certificates, CRLs and keys out of PEM (RFC 7468).
#include "tlshs/impl.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <limits.h>

const char *tlshs_library_error(void)
{
	unsigned long e = ERR_peek_last_error();
	const char *text = e ? ERR_reason_error_string(e) : NULL;
	ERR_clear_error();
	return text ? text : "unknown error";
}

static BIO *open_pem(struct str pem, struct lb_err *err)
{
	ERR_clear_error();
	BIO *bio = pem.len <= INT_MAX ? BIO_new_mem_buf(pem.p, (int)pem.len) : NULL;
	if (!bio)
		lb_err_set(err, "no memory");
	return bio;
}

// Whether reading ended because there is nothing more; else err says what is wrong.
static bool is_end(uint32_t n, const char *what, struct lb_err *err)
{
	unsigned long e = ERR_peek_last_error();
	bool end = ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE;
	if (!end)
		lb_err_set(err, "%s %u: %s", what, n + 1, tlshs_library_error());
	else if (n == 0)
		lb_err_set(err, "holds no %s in PEM", what);
	ERR_clear_error();
	return end && n > 0;
}

STACK_OF(X509) * tlshs_pem_certificates(struct str pem, struct lb_err *err)
{
	BIO *bio = open_pem(pem, err);
	STACK_OF(X509) *all = bio ? sk_X509_new_null() : NULL;
	bool ok = all != NULL;
	uint32_t n = 0;
	for (X509 *x; ok && (x = PEM_read_bio_X509(bio, NULL, NULL, NULL)); n++)
		if (!sk_X509_push(all, x)) {
			X509_free(x);
			ok = false;
		}
	ok = ok && is_end(n, "certificate", err);
	BIO_free(bio);
	if (ok)
		return all;
	sk_X509_pop_free(all, X509_free);
	return NULL;
}

STACK_OF(X509_CRL) * tlshs_pem_crls(struct str pem, struct lb_err *err)
{
	BIO *bio = open_pem(pem, err);
	STACK_OF(X509_CRL) *all = bio ? sk_X509_CRL_new_null() : NULL;
	bool ok = all != NULL;
	uint32_t n = 0;
	for (X509_CRL *x; ok && (x = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL)); n++)
		if (!sk_X509_CRL_push(all, x)) {
			X509_CRL_free(x);
			ok = false;
		}
	ok = ok && is_end(n, "CRL", err);
	BIO_free(bio);
	if (ok)
		return all;
	sk_X509_CRL_pop_free(all, X509_CRL_free);
	return NULL;
}

// Nobody is asked for a password.
static int no_password(char *to, int room, int writing, void *asked)
{
	*(bool *)asked = true;
	return -1;
}

EVP_PKEY *tlshs_pem_key(struct str pem, struct lb_err *err)
{
	BIO *bio = open_pem(pem, err);
	if (!bio)
		return NULL;
	bool asked = false;
	EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, &asked);
	BIO_free(bio);
	if (!key && asked)
		lb_err_set(err, "has a password");
	else if (!key)
		lb_err_set(err, "holds no private key in PEM");
	ERR_clear_error();
	return key;
}
