// SPDX-License-Identifier: Apache-2.0
// Whether a peer's certificate is to be trusted: its chain, CRLs (gRFC A69), trust domain (gRFC
// A87) and names. What is found wrong stays with the handshake as its outcome.
#include "tlshs/impl.h"
#include "tlshs/sessions.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

static enum tlshs_outcome outcome_of(int error)
{
	switch (error) {
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_CERT_UNTRUSTED:
		return TLSHS_unknown_ca;
	case X509_V_ERR_CERT_HAS_EXPIRED:
		return TLSHS_certificate_expired;
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return TLSHS_certificate_not_yet_valid;
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
		return TLSHS_signature;
	case X509_V_ERR_CERT_REVOKED:
		return TLSHS_certificate_revoked;
	case X509_V_ERR_INVALID_PURPOSE:
		return TLSHS_certificate_usage;
	case X509_V_ERR_OUT_OF_MEM:
		return TLSHS_no_memory;
	default:
		return TLSHS_certificate_bad;
	}
}

// Whether this is the CA that counts, and no root: its issuer is not there, nor the key by which
// that signs CRLs.
static bool has_no_issuer(X509_STORE_CTX *store)
{
	int last = sk_X509_num(X509_STORE_CTX_get0_chain(store)) - 1;
	X509 *x = X509_STORE_CTX_get_current_cert(store);
	return X509_STORE_CTX_get_error_depth(store) == last &&
	       !(X509_get_extension_flags(x) & EXFLAG_SS);
}

// An issuer without CRLs revokes nothing, and an old CRL is better than none (gRFC A69).
static int on_step(int ok, X509_STORE_CTX *store)
{
	switch (X509_STORE_CTX_get_error(store)) {
	case X509_V_ERR_CRL_SIGNATURE_FAILURE: // by the CA's own key, for want of its issuer's
	case X509_V_ERR_KEYUSAGE_NO_CRL_SIGN:
		if (!has_no_issuer(store))
			return ok;
		[[fallthrough]];
	case X509_V_ERR_UNABLE_TO_GET_CRL:
	case X509_V_ERR_CRL_HAS_EXPIRED:
	case X509_V_ERR_CRL_NOT_YET_VALID:
		X509_STORE_CTX_set_error(store, X509_V_OK);
		return 1;
	default:
		return ok;
	}
}

static struct str trust_domain(const struct tlshs_peer *p)
{
	struct str found = {0};
	unsigned n_uris = 0;
	for (uint32_t i = 0; i < p->n_sans; i++) {
		struct str san = tlshs_peer_san(p, i);
		if (p->sans[i].kind != TLSHS_SAN_URI)
			continue;
		n_uris++;
		struct str scheme = STR("spiffe://");
		if (str_starts(san, scheme))
			found = str_until(
				(struct str){san.p + scheme.len, san.len - scheme.len}, '/');
	}
	return n_uris == 1 && !p->cut ? found : (struct str){0};
}

// The CAs that count for this peer; NULL = none.
static STACK_OF(X509) * cas_for(const struct tlshs_context *c, const struct tlshs_peer *p)
{
	if (!c->n_bundles)
		return c->cas->list;
	struct str domain = trust_domain(p);
	for (uint32_t i = 0; i < c->n_bundles && domain.len; i++)
		if (str_eq(str_from(c->bundles[i].domain), domain))
			return c->bundles[i].cas->list;
	return NULL;
}

static struct str asked_name(const struct tlshs_handshake *h)
{
	return (struct str){h->result.server_name, h->result.server_name_len};
}

bool tlshs_verify_names(const struct tlshs_handshake *h, const struct tlshs_peer *p)
{
	const struct tlshs_matcher *m = &h->context->matcher;
	return !m->accepts || m->accepts(m->arg, p, asked_name(h));
}

static int refuse(struct tlshs_handshake *h, X509_STORE_CTX *store, enum tlshs_outcome why,
	int error, const char *text)
{
	X509_STORE_CTX_set_error(store, error);
	h->refused = why;
	snprintf(h->why, sizeof(h->why), "certificate %d of the chain: %s",
		X509_STORE_CTX_get_error_depth(store) + 1, text);
	return 0;
}

// The first of them to expire ends what was found out (TLS-229).
static int64_t end_of(const STACK_OF(X509) * chain, int64_t now_s, int64_t end_s)
{
	for (int i = 0; i < sk_X509_num(chain); i++) {
		const ASN1_TIME *t = X509_get0_notAfter(sk_X509_value(chain, i));
		int days, seconds;
		if (!ASN1_TIME_diff(&days, &seconds, NULL, t))
			return 0;
		int64_t left_s = days * INT64_C(86400) + seconds;
		end_s = now_s + left_s < end_s ? now_s + left_s : end_s;
	}
	return end_s;
}

static int on_verify(X509_STORE_CTX *store, void *context)
{
	const struct tlshs_context *c = context;
	SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct tlshs_handshake *h = tlshs_of(ssl);
	int64_t now_s = time(NULL);
	h->judged_until_s = now_s + TLSHS_SESSION_S;
	if (!tlshs_verifies(c))
		return 1;
	struct tlshs_peer peer;
	tlshs_peer_read(&peer, X509_STORE_CTX_get0_cert(store));
	STACK_OF(X509) *cas = cas_for(c, &peer);
	if (!cas)
		return refuse(h, store, TLSHS_unknown_ca, X509_V_ERR_CERT_UNTRUSTED,
			"its one URI name is in none of the trust domains");
	X509_STORE_CTX_set0_trusted_stack(store, cas);
	X509_STORE_CTX_set_verify_cb(store, on_step);
	X509_STORE_CTX_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
	if (c->crls) {
		X509_STORE_CTX_set0_crls(store, c->crls);
		X509_STORE_CTX_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
	}
	if (X509_verify_cert(store) != 1) {
		int error = X509_STORE_CTX_get_error(store);
		return refuse(
			h, store, outcome_of(error), error, X509_verify_cert_error_string(error));
	}
	X509_STORE_CTX_set_error_depth(store, 0);
	if (!tlshs_verify_names(h, &peer))
		return refuse(h, store, TLSHS_certificate_name, X509_V_ERR_HOSTNAME_MISMATCH,
			"none of its names is accepted");
	X509_STORE_CTX_set_error(store, X509_V_OK);
	h->judged_until_s = end_of(X509_STORE_CTX_get0_chain(store), now_s, h->judged_until_s);
	h->result.peer = peer;
	return 1;
}

bool tlshs_verify_again(struct tlshs_handshake *h, X509 *x)
{
	struct tlshs_peer peer;
	if (X509_cmp_current_time(X509_get0_notAfter(x)) < 0)
		return false;
	tlshs_peer_read(&peer, x);
	return tlshs_verify_names(h, &peer);
}

void tlshs_verify_setup(struct tlshs_context *c, bool require_peer_certificate)
{
	int mode = SSL_VERIFY_PEER;
	if (c->role == TLSHS_SERVER && !tlshs_verifies(c))
		mode = SSL_VERIFY_NONE;
	else if (c->role == TLSHS_SERVER && require_peer_certificate)
		mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX_set_verify(c->ssl, mode, NULL);
	SSL_CTX_set_cert_verify_callback(c->ssl, on_verify, c);
}
