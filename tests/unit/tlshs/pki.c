// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tlshs/pki.h"

#include "tests/support/check.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include <stdlib.h>

#define MAX_MADE 256
#define DAY_S 86400

static X509 *certs[MAX_MADE];
static EVP_PKEY *keys[MAX_MADE];
static char *texts[MAX_MADE];
static size_t n_certs, n_texts;

void pki_end(void)
{
	while (n_certs) {
		X509_free(certs[--n_certs]);
		EVP_PKEY_free(keys[n_certs]);
	}
	while (n_texts)
		free(texts[--n_texts]);
}

static struct str keep(char *text, size_t len)
{
	assert_non_null(text);
	assert_true(n_texts < MAX_MADE);
	texts[n_texts++] = text;
	return (struct str){text, len};
}

// Takes the BIO.
static struct str text_of(BIO *out)
{
	char *data;
	long len = BIO_get_mem_data(out, &data);
	assert_true(len > 0);
	struct str s = keep(strndup(data, (size_t)len), (size_t)len);
	BIO_free(out);
	return s;
}

struct str pki_join(struct str a, struct str b)
{
	char *text = malloc(a.len + b.len + 1);
	struct str s = keep(text, a.len + b.len);
	memcpy(text, a.p, a.len);
	memcpy(text + a.len, b.p, b.len);
	return s;
}

static void add_extension(X509 *x, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert_non_null(e);
	X509_add_ext(x, e, -1);
	X509_EXTENSION_free(e);
}

static void fill(X509 *x, const struct pki_conf *conf, EVP_PKEY *key)
{
	static long serial;
	bool is_ca = !conf->issuer || conf->is_ca;
	int from = conf->from_days || conf->to_days ? conf->from_days : -1;
	int to = conf->from_days || conf->to_days ? conf->to_days : 30;
	long to_s = conf->to_seconds ? conf->to_seconds : (long)to * DAY_S;
	X509_set_version(x, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
		(const unsigned char *)conf->name, -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(conf->issuer ? conf->issuer->x : x));
	X509_gmtime_adj(X509_getm_notBefore(x), (long)from * DAY_S);
	X509_gmtime_adj(X509_getm_notAfter(x), to_s);
	X509_set_pubkey(x, key);
	add_extension(x, NID_basic_constraints, is_ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
	if (conf->sans)
		add_extension(x, NID_subject_alt_name, conf->sans);
	if (conf->usage)
		add_extension(x, NID_ext_key_usage, conf->usage);
	if (conf->key_usage)
		add_extension(x, NID_key_usage, conf->key_usage);
}

static EVP_PKEY *make_key(enum pki_key kind)
{
	switch (kind) {
	case PKI_P384:
		return EVP_EC_gen("P-384");
	case PKI_ED25519:
		return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	case PKI_RSA:
		return EVP_RSA_gen(2048);
	default:
		return EVP_EC_gen("P-256");
	}
}

// Ed25519 has its own.
static const EVP_MD *digest_of(const EVP_PKEY *key)
{
	return EVP_PKEY_is_a(key, "ED25519") ? NULL : EVP_sha256();
}

struct pki_cert pki_make(struct pki_conf conf)
{
	struct pki_cert c = {.x = X509_new(), .key = make_key(conf.key)};
	assert_non_null(c.x);
	assert_non_null(c.key);
	assert_true(n_certs < MAX_MADE);
	certs[n_certs] = c.x;
	keys[n_certs++] = c.key;
	fill(c.x, &conf, c.key);
	EVP_PKEY *by = conf.issuer ? conf.issuer->key : c.key;
	assert_true(X509_sign(c.x, by, digest_of(by)) > 0);
	BIO *out = BIO_new(BIO_s_mem());
	assert_true(PEM_write_bio_X509(out, c.x));
	c.pem = text_of(out);
	out = BIO_new(BIO_s_mem());
	assert_true(PEM_write_bio_PKCS8PrivateKey(out, c.key, NULL, NULL, 0, NULL, NULL));
	c.key_pem = text_of(out);
	return c;
}

struct str pki_encrypted_key(const struct pki_cert *c)
{
	BIO *out = BIO_new(BIO_s_mem());
	assert_true(PEM_write_bio_PKCS8PrivateKey(
		out, c->key, EVP_aes_128_cbc(), "secret", 6, NULL, NULL));
	return text_of(out);
}

struct str pki_crl(const struct pki_cert *issuer, const struct pki_cert *revoked, int next_days)
{
	X509_CRL *crl = X509_CRL_new();
	ASN1_TIME *at = X509_gmtime_adj(NULL, -100L * DAY_S);
	ASN1_TIME *next = X509_gmtime_adj(NULL, (long)next_days * DAY_S);
	X509_CRL_set_version(crl, X509_CRL_VERSION_2);
	X509_CRL_set_issuer_name(crl, X509_get_subject_name(issuer->x));
	X509_CRL_set1_lastUpdate(crl, at);
	X509_CRL_set1_nextUpdate(crl, next);
	if (revoked) {
		X509_REVOKED *r = X509_REVOKED_new();
		X509_REVOKED_set_serialNumber(r, X509_get_serialNumber(revoked->x));
		X509_REVOKED_set_revocationDate(r, at);
		assert_true(X509_CRL_add0_revoked(crl, r));
	}
	assert_true(X509_CRL_sign(crl, issuer->key, digest_of(issuer->key)) > 0);
	BIO *out = BIO_new(BIO_s_mem());
	assert_true(PEM_write_bio_X509_CRL(out, crl));
	ASN1_TIME_free(at);
	ASN1_TIME_free(next);
	X509_CRL_free(crl);
	return text_of(out);
}
