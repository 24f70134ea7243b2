// SPDX-License-Identifier: Apache-2.0
#include "ctrl/certs/pem.h"

#include "ctrl/base/text.h"
#include "ctrl/certs/strength.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SANS_LEN 1024

static BIO *open_text(struct str text)
{
	return text.len <= INT_MAX ? BIO_new_mem_buf(text.p, (int)text.len) : NULL;
}

// The last error of libcrypto, and an end to all of them.
static unsigned long take_error(void)
{
	unsigned long e = ERR_peek_last_error();
	ERR_clear_error();
	return e;
}

// The next object was not found because there is none left.
static bool at_end(unsigned long e)
{
	return ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE;
}

static bool has(struct str text, const char *what)
{
	return text.len && memmem(text.p, text.len, what, strlen(what));
}

static bool is_at_line(struct str pem, const char *mark)
{
	const char *end = pem.p + pem.len;
	const char *stop = memchr(mark, '\n', (size_t)(end - mark));
	while (stop && stop > mark && (uint8_t)stop[-1] <= ' ')
		stop--;
	return (mark == pem.p || mark[-1] == '\n') && stop && stop - mark > 16 &&
	       memcmp(stop - 5, "-----", 5) == 0 &&
	       memchr(mark + 5, '-', (size_t)(stop - mark) - 5) == stop - 5;
}

// What keeps blocks from being seen, whose marks stand on lines of their own (RFC 7468 2, 3). NULL
// = nothing, or there are none.
static const char *layout_fault(struct str pem)
{
	static const char mark[] = "-----BEGIN ";
	const char *end = pem.p + pem.len, *at = pem.p, *first = NULL;
	if (pem.len >= 2 &&
		(memcmp(pem.p, "\xff\xfe", 2) == 0 || memcmp(pem.p, "\xfe\xff", 2) == 0))
		return "is text in UTF-16, not PEM in ASCII";
	for (; (at = memmem(at, (size_t)(end - at), mark, strlen(mark))); at++) {
		first = first ? first : at;
		if (is_at_line(pem, at))
			return NULL;
	}
	if (!first)
		return NULL;
	if (!memchr(pem.p, '\n', pem.len) && memchr(pem.p, '\r', pem.len))
		return "has lines that end with CR alone, which PEM does not know (LF or CR LF)";
	if (first > pem.p && first[-1] != '\n')
		return "has PEM that begins within a line (is it indented?)";
	return "has PEM without the ends of its lines (is it one line?)";
}

// Why nothing of this kind was in the text.
static int explain_none(struct str pem, const char *kind, struct lb_err *err)
{
	if (pem.len == 0)
		return lb_err_set(err, "is empty");
	const char *fault = layout_fault(pem);
	if (fault)
		return lb_err_set(err, "%s", fault);
	if (has(pem, "-----BEGIN ENCRYPTED PRIVATE KEY-----") || has(pem, "Proc-Type: 4,ENCRYPTED"))
		return lb_err_set(err, "has an encrypted private key, not %s", kind);
	if (has(pem, "PRIVATE KEY-----"))
		return lb_err_set(err, "has a private key, not %s", kind);
	if (has(pem, "-----BEGIN PUBLIC KEY-----"))
		return lb_err_set(err, "has a public key, not %s", kind);
	if (has(pem, "-----BEGIN CERTIFICATE-----"))
		return lb_err_set(err, "has a certificate, not %s", kind);
	if (!has(pem, "-----BEGIN ") && (uint8_t)pem.p[0] == 0x30)
		return lb_err_set(err, "is binary (DER?), not %s in PEM", kind);
	return lb_err_set(err, "has no %s in PEM", *kind == 'a' ? strchr(kind, ' ') + 1 : kind);
}

static int explain(unsigned long e, const char *what, uint32_t n, struct lb_err *err)
{
	const char *why = ERR_reason_error_string(e);
	return lb_err_set(err, "%s %u cannot be decoded (%s)", what, n, why ? why : "unknown");
}

// Texts

// From malloc; NULL = out of memory.
static char *name_text(const X509_NAME *name)
{
	BIO *out = BIO_new(BIO_s_mem());
	char *data, *text = NULL;
	// Escapes whatever is not printable ASCII.
	if (out && X509_NAME_print_ex(out, name, 0, XN_FLAG_RFC2253) >= 0) {
		long len = BIO_get_mem_data(out, &data);
		text = strndup(data, len > 0 ? (size_t)len : 0);
	}
	BIO_free(out);
	return text;
}

static void add_san(struct xds_text *t, const GENERAL_NAME *g)
{
	static const char *const KINDS[] = {[GEN_EMAIL] = "email:",
		[GEN_DNS] = "DNS:",
		[GEN_URI] = "URI:",
		[GEN_IPADD] = "IP:"};
	if (g->type != GEN_EMAIL && g->type != GEN_DNS && g->type != GEN_URI &&
		g->type != GEN_IPADD)
		return;
	if (t->len)
		xds_text_add(t, ", ");
	xds_text_add(t, KINDS[g->type]);
	if (g->type == GEN_IPADD) {
		char ip[INET6_ADDRSTRLEN] = "?";
		int len = ASN1_STRING_length(g->d.iPAddress);
		if (len == 4 || len == 16)
			inet_ntop(len == 4 ? AF_INET : AF_INET6,
				ASN1_STRING_get0_data(g->d.iPAddress), ip, sizeof(ip));
		xds_text_add(t, ip);
		return;
	}
	char word[256];
	size_t len = (size_t)ASN1_STRING_length(g->d.ia5);
	len = len < sizeof(word) - 1 ? len : sizeof(word) - 1;
	memcpy(word, ASN1_STRING_get0_data(g->d.ia5), len);
	for (size_t i = 0; i < len; i++)
		if (word[i] < ' ' || word[i] > '~')
			word[i] = '?';
	word[len] = '\0';
	xds_text_add(t, word);
}

static char *sans_text(const X509 *x)
{
	char room[MAX_SANS_LEN] = "";
	struct xds_text t = xds_text_of(room, sizeof(room));
	GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++)
		add_san(&t, sk_GENERAL_NAME_value(names, i));
	GENERAL_NAMES_free(names);
	ERR_clear_error();
	return strdup(room);
}

// 0 for a time that cannot be read.
static int64_t seconds_of(const ASN1_TIME *t)
{
	int days = 0, seconds = 0;
	ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
	bool ok = epoch && ASN1_TIME_diff(&days, &seconds, epoch, t);
	ASN1_TIME_free(epoch);
	return ok ? (int64_t)days * 86400 + seconds : 0;
}

// Certificates

static int add(struct cert_list *l, X509 *x)
{
	struct cert_info *grown = reallocarray(l->list, l->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	l->list = grown;
	struct cert_info *i = &grown[l->n++];
	*i = (struct cert_info){
		.subject = name_text(X509_get_subject_name(x)),
		.issuer = name_text(X509_get_issuer_name(x)),
		.sans = sans_text(x),
		.not_before_s = seconds_of(X509_get0_notBefore(x)),
		.not_after_s = seconds_of(X509_get0_notAfter(x)),
		.may_sign = X509_get_key_usage(x) & KU_DIGITAL_SIGNATURE,
	};
	return i->subject && i->issuer && i->sans ? 0 : -ENOMEM;
}

int cert_list_read(struct str pem, struct cert_list *ret, struct lb_err *err)
{
	*ret = (struct cert_list){NULL, 0};
	if (pem.len == 0)
		return explain_none(pem, "a certificate", err);
	BIO *in = open_text(pem);
	if (!in)
		return -ENOMEM;
	ERR_clear_error();
	int rc = 0;
	X509 *x;
	while (!rc && (x = PEM_read_bio_X509(in, NULL, NULL, NULL)) != NULL) {
		rc = add(ret, x);
		X509_free(x);
	}
	unsigned long e = take_error();
	BIO_free(in);
	if (rc)
		return rc;
	if (!at_end(e))
		return explain(e, "certificate", ret->n + 1, err);
	return ret->n ? 0 : explain_none(pem, "a certificate", err);
}

int cert_list_add_der(struct cert_list *l, const uint8_t *der, size_t len, struct lb_err *err)
{
	const unsigned char *end = der;
	X509 *x = len <= LONG_MAX ? d2i_X509(NULL, &end, (long)len) : NULL;
	ERR_clear_error();
	if (!x || end != der + len) {
		X509_free(x);
		return lb_err_set(err, "is not a DER certificate");
	}
	int rc = add(l, x);
	X509_free(x);
	return rc;
}

const struct cert_info *cert_list_first_to_end(const struct cert_list *l)
{
	const struct cert_info *first = NULL;
	for (uint32_t i = 0; i < l->n; i++)
		if (!first || l->list[i].not_after_s < first->not_after_s)
			first = &l->list[i];
	return first;
}

void cert_list_fini(struct cert_list *l)
{
	for (uint32_t i = 0; i < l->n; i++) {
		free(l->list[i].subject);
		free(l->list[i].issuer);
		free(l->list[i].sans);
	}
	free(l->list);
	*l = (struct cert_list){NULL, 0};
}

// Keys

// Never asks: *asked says that there is a password.
static int refuse_password(char *buf, int size, int rwflag, void *asked)
{
	*(bool *)asked = true;
	return -1;
}

static int read_key(struct str pem, EVP_PKEY **ret, struct lb_err *err)
{
	if (pem.len == 0)
		return explain_none(pem, "a private key", err);
	BIO *in = open_text(pem);
	if (!in)
		return -ENOMEM;
	bool asked = false;
	ERR_clear_error();
	*ret = PEM_read_bio_PrivateKey(in, NULL, refuse_password, &asked);
	unsigned long e = take_error();
	BIO_free(in);
	if (*ret)
		return 0;
	if (asked)
		return lb_err_set(err, "the private key is encrypted; one without a password is "
				       "needed");
	if (has(pem, "PRIVATE KEY-----") && !layout_fault(pem)) {
		const char *why = ERR_reason_error_string(e);
		return lb_err_set(err, "the private key cannot be decoded (%s)",
			why ? why : "it is cut or altered");
	}
	return explain_none(pem, "a private key", err);
}

int cert_key_check(struct str key_pem, struct lb_err *err)
{
	EVP_PKEY *key;
	int rc = read_key(key_pem, &key, err);
	if (rc)
		return rc;
	rc = cert_key_judge(key, err);
	EVP_PKEY_free(key);
	return rc;
}

int cert_key_match(struct str key_pem, struct str cert_pem, struct lb_err *err)
{
	EVP_PKEY *key;
	int rc = read_key(key_pem, &key, err);
	if (rc)
		return rc;
	BIO *in = open_text(cert_pem);
	X509 *x = in ? PEM_read_bio_X509(in, NULL, NULL, NULL) : NULL;
	if (!x)
		rc = -ENOMEM; // it was read before
	else if (X509_check_private_key(x, key) != 1)
		rc = lb_err_set(err, "the key is not that of the first certificate");
	ERR_clear_error();
	X509_free(x);
	BIO_free(in);
	EVP_PKEY_free(key);
	return rc;
}

// CRLs

static int add_crl(FILE *issuers, int n, const X509_CRL *crl, int64_t *next_update_s)
{
	char *name = name_text(X509_CRL_get_issuer(crl));
	if (!name)
		return -ENOMEM;
	fprintf(issuers, "%s%s", n ? "; " : "", name);
	free(name);
	const ASN1_TIME *next = X509_CRL_get0_nextUpdate(crl);
	int64_t s = next ? seconds_of(next) : 0;
	if (s && (!*next_update_s || s < *next_update_s))
		*next_update_s = s;
	return 0;
}

static int read_crls(BIO *in, struct str pem, FILE *issuers, int64_t *next_s, struct lb_err *err)
{
	int n = 0, rc = 0;
	X509_CRL *crl;
	ERR_clear_error();
	while (!rc && (crl = PEM_read_bio_X509_CRL(in, NULL, NULL, NULL)) != NULL) {
		rc = add_crl(issuers, n++, crl, next_s);
		X509_CRL_free(crl);
	}
	unsigned long e = take_error();
	if (rc)
		return rc;
	if (!at_end(e))
		return explain(e, "CRL", (uint32_t)n + 1, err);
	return n ? n : explain_none(pem, "a CRL", err);
}

int cert_crls_read(
	struct str pem, char **ret_issuers, int64_t *ret_next_update_s, struct lb_err *err)
{
	*ret_issuers = NULL;
	*ret_next_update_s = 0;
	if (pem.len == 0)
		return explain_none(pem, "a CRL", err);
	size_t len;
	BIO *in = open_text(pem);
	FILE *issuers = open_memstream(ret_issuers, &len);
	int n = in && issuers ? read_crls(in, pem, issuers, ret_next_update_s, err) : -ENOMEM;
	BIO_free(in);
	if (issuers && fclose(issuers) != 0 && n >= 0)
		n = -ENOMEM;
	if (n < 0) {
		free(*ret_issuers);
		*ret_issuers = NULL;
	}
	return n;
}
