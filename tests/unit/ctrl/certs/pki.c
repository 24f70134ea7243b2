// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/certs/pki.h"

#include "tests/support/check.h"

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_MADE 1024
#define DAY_S 86400

static char folder[64];
static X509 *certs[MAX_MADE];
static EVP_PKEY *keys[MAX_MADE];
static char *texts[MAX_MADE];
static size_t n_certs, n_keys, n_texts;

void pki_begin(void)
{
	snprintf(folder, sizeof(folder), "/tmp/shunt-pki-XXXXXX");
	assert_non_null(mkdtemp(folder));
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

void pki_end(void)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	while (n_certs)
		X509_free(certs[--n_certs]);
	while (n_keys)
		EVP_PKEY_free(keys[--n_keys]);
	while (n_texts)
		free(texts[--n_texts]);
}

const char *pki_path(const char *name)
{
	char *path = NULL;
	assert_true(n_texts < MAX_MADE && asprintf(&path, "%s/%s", folder, name) > 0);
	return texts[n_texts++] = path;
}

static EVP_PKEY *keep_key(EVP_PKEY *key)
{
	assert_non_null(key);
	assert_true(n_keys < MAX_MADE);
	return keys[n_keys++] = key;
}

EVP_PKEY *pki_rsa_key(int bits)
{
	return keep_key(EVP_RSA_gen((unsigned)bits));
}

static void add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert_non_null(e);
	X509_add_ext(x, e, -1);
	X509_EXTENSION_free(e);
}

static X509 *new_cert(
	const char *name, const struct pki_cert *issuer, EVP_PKEY *key, int from_days, int to_days)
{
	static long serial;
	X509 *x = X509_new();
	assert_non_null(x);
	assert_true(n_certs < MAX_MADE);
	certs[n_certs++] = x;
	X509_set_version(x, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
		(const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(issuer ? issuer->x : x));
	X509_gmtime_adj(X509_getm_notBefore(x), (long)from_days * DAY_S);
	X509_gmtime_adj(X509_getm_notAfter(x), (long)to_days * DAY_S);
	X509_set_pubkey(x, key);
	return x;
}

struct pki_cert pki_make(const char *name, const char *sans, const struct pki_cert *issuer,
	int from_days, int to_days)
{
	struct pki_cert c = {.key = keep_key(EVP_EC_gen("P-256"))};
	c.x = new_cert(name, issuer, c.key, from_days, to_days);
	add_extension(c.x, issuer ? issuer->x : c.x, NID_basic_constraints,
		issuer ? "critical,CA:FALSE" : "critical,CA:TRUE");
	if (sans)
		add_extension(c.x, c.x, NID_subject_alt_name, sans);
	assert_true(X509_sign(c.x, issuer ? issuer->key : c.key, EVP_sha256()) > 0);
	return c;
}

static EVP_PKEY *key_by(const struct pki_way *way)
{
	EVP_PKEY *key = way->kind       ? EVP_PKEY_Q_keygen(NULL, NULL, way->kind)
	                : way->rsa_bits ? EVP_RSA_gen((unsigned)way->rsa_bits)
	                                : EVP_EC_gen(way->curve ? way->curve : "P-256");
	keep_key(key);
	if (way->is_explicit)
		assert_int_equal(EVP_PKEY_set_utf8_string_param(key, OSSL_PKEY_PARAM_EC_ENCODING,
					 OSSL_PKEY_EC_ENCODING_EXPLICIT),
			1);
	return key;
}

struct pki_cert pki_make_by(const char *name, const struct pki_cert *issuer, struct pki_way way)
{
	struct pki_cert c = {.key = key_by(&way)};
	c.x = new_cert(name, issuer, c.key, -1, 2);
	bool is_ca = way.is_ca || !issuer;
	add_extension(
		c.x, c.x, NID_basic_constraints, is_ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
	if (way.usage)
		add_extension(c.x, c.x, NID_key_usage, way.usage);
	const char *digest = way.digest ? way.digest : "SHA256";
	const EVP_MD *md = *digest ? EVP_get_digestbyname(digest) : NULL;
	assert_true(X509_sign(c.x, issuer ? issuer->key : c.key, md) > 0);
	return c;
}

// Takes the BIO.
static const char *text_of(BIO *out)
{
	char *data;
	long len = BIO_get_mem_data(out, &data);
	assert_true(len > 0 && n_texts < MAX_MADE);
	char *text = strndup(data, (size_t)len);
	BIO_free(out);
	return texts[n_texts++] = text;
}

const char *pki_cert_pem(const struct pki_cert *c)
{
	BIO *out = BIO_new(BIO_s_mem());
	assert_true(PEM_write_bio_X509(out, c->x));
	return text_of(out);
}

const char *pki_key_pem(const EVP_PKEY *key)
{
	BIO *out = BIO_new(BIO_s_mem());
	assert_true(PEM_write_bio_PKCS8PrivateKey(out, key, NULL, NULL, 0, NULL, NULL));
	return text_of(out);
}

const char *pki_encrypted_key_pem(const EVP_PKEY *key)
{
	BIO *out = BIO_new(BIO_s_mem());
	assert_true(PEM_write_bio_PKCS8PrivateKey(
		out, key, EVP_aes_128_cbc(), "secret", 6, NULL, NULL));
	return text_of(out);
}

const char *pki_crl_pem(const struct pki_cert *issuer, int next_days)
{
	BIO *out = BIO_new(BIO_s_mem());
	X509_CRL *crl = X509_CRL_new();
	ASN1_TIME *now = X509_gmtime_adj(NULL, 0);
	ASN1_TIME *next = X509_gmtime_adj(NULL, (long)next_days * DAY_S);
	X509_CRL_set_version(crl, X509_CRL_VERSION_2);
	X509_CRL_set_issuer_name(crl, X509_get_subject_name(issuer->x));
	X509_CRL_set1_lastUpdate(crl, now);
	X509_CRL_set1_nextUpdate(crl, next);
	assert_true(X509_CRL_sign(crl, issuer->key, EVP_sha256()) > 0);
	assert_true(PEM_write_bio_X509_CRL(out, crl));
	ASN1_TIME_free(now);
	ASN1_TIME_free(next);
	X509_CRL_free(crl);
	return text_of(out);
}

const char *pki_base64_der(const struct pki_cert *c)
{
	unsigned char *der = NULL;
	int len = i2d_X509(c->x, &der);
	assert_true(len > 0 && n_texts < MAX_MADE);
	char *text = malloc((size_t)len * 2 + 4);
	assert_non_null(text);
	EVP_EncodeBlock((unsigned char *)text, der, len);
	OPENSSL_free(der);
	return texts[n_texts++] = text;
}

void pki_write_bytes(const char *name, const void *bytes, size_t len)
{
	const char *path = pki_path(name), *new = pki_path(".new");
	FILE *f = fopen(new, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(rename(new, path), 0);
}

void pki_write(const char *name, const char *text)
{
	pki_write_bytes(name, text, strlen(text));
}
