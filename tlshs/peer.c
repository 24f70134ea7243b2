// SPDX-License-Identifier: Apache-2.0
#include "tlshs/impl.h"

#include <openssl/x509v3.h>

#include <string.h>

// Where the next name goes; a name that does not fit, or holds a NUL, is left out.
static bool put(struct tlshs_peer *p, size_t *at, const void *bytes, size_t len, bool is_text)
{
	if (len > sizeof(p->text) - *at || (is_text && memchr(bytes, 0, len))) {
		p->cut = true;
		return false;
	}
	memcpy(p->text + *at, bytes, len);
	*at += len;
	return true;
}

static void put_subject(struct tlshs_peer *p, size_t *at, X509 *x)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *text;
	if (!bio || X509_NAME_print_ex(bio, X509_get_subject_name(x), 0, XN_FLAG_RFC2253) < 0) {
		p->cut = true;
	} else {
		long len = BIO_get_mem_data(bio, &text);
		if (len > 0 && put(p, at, text, (size_t)len, true))
			p->subject_len = (uint16_t)len;
	}
	BIO_free(bio);
}

static void put_san(struct tlshs_peer *p, size_t *at, const GENERAL_NAME *name)
{
	static const int kinds[][2] = {{GEN_DNS, TLSHS_SAN_DNS}, {GEN_URI, TLSHS_SAN_URI},
		{GEN_EMAIL, TLSHS_SAN_EMAIL}, {GEN_IPADD, TLSHS_SAN_IP}};
	int type;
	const ASN1_STRING *s = GENERAL_NAME_get0_value(name, &type);
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i][0] != type)
			continue;
		size_t len = (size_t)ASN1_STRING_length(s), from = *at;
		if (p->n_sans == TLSHS_MAX_SANS) {
			p->cut = true;
		} else if (put(p, at, ASN1_STRING_get0_data(s), len, type != GEN_IPADD)) {
			p->sans[p->n_sans].kind = (uint8_t)kinds[i][1];
			p->sans[p->n_sans].at = (uint16_t)from;
			p->sans[p->n_sans++].len = (uint16_t)len;
		}
	}
}

size_t tlshs_peer_size(const struct tlshs_peer *p)
{
	size_t len = p->subject_len;
	for (uint32_t i = 0; i < p->n_sans; i++)
		if (len < (size_t)p->sans[i].at + p->sans[i].len)
			len = (size_t)p->sans[i].at + p->sans[i].len;
	return p->present ? offsetof(struct tlshs_peer, text) + len : 0;
}

void tlshs_peer_read(struct tlshs_peer *p, X509 *x)
{
	*p = (struct tlshs_peer){.present = true};
	size_t at = 0;
	unsigned len = sizeof(p->sha256);
	if (!X509_digest(x, EVP_sha256(), p->sha256, &len))
		p->cut = true;
	put_subject(p, &at, x);
	int critical;
	GENERAL_NAMES *sans = X509_get_ext_d2i(x, NID_subject_alt_name, &critical, NULL);
	if (!sans && critical != -1) // -1: there are none
		p->cut = true;
	for (int i = 0; i < sk_GENERAL_NAME_num(sans); i++)
		put_san(p, &at, sk_GENERAL_NAME_value(sans, i));
	GENERAL_NAMES_free(sans);
}
