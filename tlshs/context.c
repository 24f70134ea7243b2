// SPDX-License-Identifier: Apache-2.0
#include "tlshs/context.h"

#include "tlshs/impl.h"
#include "tlshs/session.h"
#include "tlshs/uris.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CIPHERS_13 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define CIPHERS_12                                                                                 \
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"                               \
	"ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"                               \
	"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define GROUPS "X25519:P-256:P-384"

static int no_memory(struct lb_err *err)
{
	return lb_err_set(err, "no memory");
}

static char *copy(struct str s)
{
	return strndup(s.p ? s.p : "", s.len);
}

static bool is_name(struct str s)
{
	return s.len > 0 && s.len <= TLSHS_MAX_NAME && !memchr(s.p, 0, s.len);
}

static int set_versions(
	struct tlshs_context *c, const struct tlshs_context_conf *conf, struct lb_err *err)
{
	uint16_t min = conf->min_version ? conf->min_version : TLS_1_2;
	uint16_t max = conf->max_version ? conf->max_version : TLS_1_3;
	if (min != TLS_1_2 && min != TLS_1_3)
		return lb_err_set(err, "min_version: is neither 1.2 nor 1.3");
	if (max != TLS_1_2 && max != TLS_1_3)
		return lb_err_set(err, "max_version: is neither 1.2 nor 1.3");
	if (min > max)
		return lb_err_set(err, "min_version: is above max_version");
	SSL_CTX_set_security_level(c->ssl, 2);
	SSL_CTX_set_options(c->ssl, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
					    SSL_OP_CIPHER_SERVER_PREFERENCE |
					    SSL_OP_PRIORITIZE_CHACHA);
	SSL_CTX_set_mode(c->ssl, SSL_MODE_NO_AUTO_CHAIN | SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(c->ssl, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_max_cert_list(c->ssl, TLSHS_MAX_CHAIN);
	bool ok = SSL_CTX_set_min_proto_version(c->ssl, min) == 1 &&
	          SSL_CTX_set_max_proto_version(c->ssl, max) == 1 &&
	          SSL_CTX_set_ciphersuites(c->ssl, CIPHERS_13) == 1 &&
	          SSL_CTX_set_cipher_list(c->ssl, CIPHERS_12) == 1 &&
	          SSL_CTX_set1_groups_list(c->ssl, GROUPS) == 1;
	return ok ? 0 : lb_err_set(err, "the TLS library: %s", tlshs_library_error());
}

static bool is_weakness(unsigned long e)
{
	int why = ERR_GET_REASON(e);
	return ERR_GET_LIB(e) == ERR_LIB_SSL &&
	       (why == SSL_R_EE_KEY_TOO_SMALL || why == SSL_R_CA_KEY_TOO_SMALL ||
		       why == SSL_R_CA_MD_TOO_WEAK || why == SSL_R_UNKNOWN_CERTIFICATE_TYPE);
}

// What the library says; -EKEYREJECTED if these bytes will not do at any time. What it could not
// look at for lack of memory it calls weak, too, but not as the first thing.
static int refuse(struct lb_err *err, const char *field)
{
	bool is_weak = is_weakness(ERR_peek_error());
	lb_err_set(err, "%s: %s", field, tlshs_library_error());
	return is_weak ? -EKEYREJECTED : -EINVAL;
}

static int set_chain(
	struct tlshs_context *c, const struct tlshs_context_conf *conf, struct lb_err *err)
{
	STACK_OF(X509) *chain = tlshs_pem_certificates(conf->certificate_pem, err);
	if (!chain)
		return lb_err_within(err, "certificate_pem");
	bool ok = SSL_CTX_use_certificate(c->ssl, sk_X509_value(chain, 0)) == 1;
	for (int i = 1; ok && i < sk_X509_num(chain); i++)
		ok = SSL_CTX_add1_chain_cert(c->ssl, sk_X509_value(chain, i)) == 1;
	sk_X509_pop_free(chain, X509_free);
	return ok ? 0 : refuse(err, "certificate_pem");
}

static int set_key(
	struct tlshs_context *c, const struct tlshs_context_conf *conf, struct lb_err *err)
{
	EVP_PKEY *key = tlshs_pem_key(conf->key_pem, err);
	if (!key)
		return lb_err_within(err, "key_pem");
	X509 *leaf = SSL_CTX_get0_certificate(c->ssl);
	int is = EVP_PKEY_eq(X509_get0_pubkey(leaf), key) != 1
	                 ? lb_err_set(err, "key_pem: is not the key of certificate_pem's first")
	         : SSL_CTX_use_PrivateKey(c->ssl, key) != 1 ? refuse(err, "key_pem")
	                                                    : 0;
	ERR_clear_error();
	EVP_PKEY_free(key);
	return is;
}

static int set_certificate(
	struct tlshs_context *c, const struct tlshs_context_conf *conf, struct lb_err *err)
{
	if (!conf->certificate_pem.len && !conf->key_pem.len)
		return conf->role == TLSHS_CLIENT
		               ? 0
		               : lb_err_set(err, "certificate_pem: a server needs one");
	if (!conf->certificate_pem.len)
		return lb_err_set(err, "certificate_pem: is missing, there is a key_pem");
	if (!conf->key_pem.len)
		return lb_err_set(err, "key_pem: is missing, there is a certificate_pem");
	int is = set_chain(c, conf, err);
	if (!is)
		is = set_key(c, conf, err);
	if (!is && !(c->own_uris = tlshs_uris_keep(SSL_CTX_get0_certificate(c->ssl))))
		is = no_memory(err);
	return is;
}

static int set_bundles(
	struct tlshs_context *c, const struct tlshs_context_conf *conf, struct lb_err *err)
{
	c->bundles = calloc(conf->n_bundles, sizeof(*c->bundles));
	if (!c->bundles)
		return no_memory(err);
	for (uint32_t i = 0; i < conf->n_bundles; i++) {
		struct tlshs_trust *t = &c->bundles[c->n_bundles++];
		if (!is_name(conf->bundles[i].trust_domain))
			return lb_err_set(err, "bundles[%u].trust_domain: is not a name", i);
		t->domain = copy(conf->bundles[i].trust_domain);
		if (!t->domain)
			return no_memory(err);
		t->cas = tlshs_cas_take(conf->bundles[i].ca_pem, err);
		if (!t->cas)
			return lb_err_within(err, "bundles[%u].ca_pem", i);
	}
	return 0;
}

static int set_trust(
	struct tlshs_context *c, const struct tlshs_context_conf *conf, struct lb_err *err)
{
	if (conf->n_bundles) {
		int is = set_bundles(c, conf, err);
		if (is)
			return is;
	} else if (conf->ca_pem.len) {
		c->cas = tlshs_cas_take(conf->ca_pem, err);
		if (!c->cas)
			return lb_err_within(err, "ca_pem");
	}
	if (conf->crl_pem.len && !(c->crls = tlshs_pem_crls(conf->crl_pem, err)))
		return lb_err_within(err, "crl_pem");
	// Clients choose their certificate by these names (RFC 5246 7.4.4, RFC 8446 4.2.4).
	int n_names = conf->role == TLSHS_SERVER && c->cas ? sk_X509_num(c->cas->list) : 0;
	for (int i = 0; i < n_names; i++)
		if (SSL_CTX_add1_to_CA_list(c->ssl, sk_X509_value(c->cas->list, i)) != 1)
			return no_memory(err);
	if (tlshs_verifies(c))
		return 0;
	if (conf->require_peer_certificate && conf->role == TLSHS_SERVER)
		return lb_err_set(err, "require_peer_certificate: needs ca_pem or bundles");
	if (conf->matcher.accepts)
		return lb_err_set(err, "matcher: needs ca_pem or bundles");
	return 0;
}

static int set_alpn(
	struct tlshs_context *c, const struct tlshs_context_conf *conf, struct lb_err *err)
{
	if (conf->n_alpn > TLSHS_MAX_ALPNS)
		return lb_err_set(err, "alpn: has more than %d", TLSHS_MAX_ALPNS);
	for (uint32_t i = 0; i < conf->n_alpn; i++) {
		struct str a = conf->alpn[i];
		if (a.len == 0 || a.len > TLSHS_MAX_ALPN)
			return lb_err_set(
				err, "alpn[%u]: has not 1 to %d bytes", i, TLSHS_MAX_ALPN);
		c->alpn[c->alpn_len] = (uint8_t)a.len;
		memcpy(c->alpn + c->alpn_len + 1, a.p, a.len);
		c->alpn_len += 1 + (uint32_t)a.len;
	}
	if (conf->role == TLSHS_CLIENT && c->alpn_len &&
		SSL_CTX_set_alpn_protos(c->ssl, c->alpn, c->alpn_len) != 0)
		return no_memory(err);
	return 0;
}

static int set_server_names(
	struct tlshs_context *c, const struct tlshs_context_conf *conf, struct lb_err *err)
{
	if (conf->n_server_names == 0)
		return 0;
	if (conf->role == TLSHS_CLIENT)
		return lb_err_set(err, "server_names: are a server's");
	c->server_names = calloc(conf->n_server_names, sizeof(*c->server_names));
	if (!c->server_names)
		return no_memory(err);
	for (uint32_t i = 0; i < conf->n_server_names; i++) {
		struct str name = conf->server_names[i];
		struct str rest = name;
		if (str_starts(name, STR("*.")))
			rest = (struct str){name.p + 2, name.len - 2};
		if (!is_name(rest) || memchr(rest.p, '*', rest.len))
			return lb_err_set(
				err, "server_names[%u]: is neither a name nor *.suffix", i);
		c->server_names[i] = copy(name);
		if (!c->server_names[i])
			return no_memory(err);
		c->n_server_names++;
	}
	return 0;
}

static bool digest_add(EVP_MD_CTX *md, struct str s)
{
	uint64_t len = s.len;
	return EVP_DigestUpdate(md, &len, sizeof(len)) == 1 &&
	       EVP_DigestUpdate(md, s.p ? s.p : "", s.len) == 1;
}

// Who we are to a client, which looks at no certificate when it resumes: the names of ours, as they
// are encoded, and those that are served. Not its key, so that a renewal keeps sessions.
static bool digest_names(
	EVP_MD_CTX *md, const struct tlshs_context *c, const struct tlshs_context_conf *conf)
{
	const X509 *leaf = SSL_CTX_get0_certificate(c->ssl);
	if (!leaf)
		return true;
	int at = X509_get_ext_by_NID(leaf, NID_subject_alt_name, -1);
	const ASN1_OCTET_STRING *sans =
		at < 0 ? NULL : X509_EXTENSION_get_data(X509_get_ext(leaf, at));
	const unsigned char *subject;
	size_t len;
	bool ok = X509_NAME_get0_der(X509_get_subject_name(leaf), &subject, &len) == 1 &&
	          digest_add(md, (struct str){(const char *)subject, len}) &&
	          digest_add(md, sans ? (struct str){(const char *)ASN1_STRING_get0_data(sans),
						(size_t)ASN1_STRING_length(sans)}
				      : STR(""));
	for (uint32_t i = 0; i < conf->n_server_names; i++)
		ok = ok && digest_add(md, conf->server_names[i]);
	return ok && digest_add(md, STR("")); // no name
}

static bool digest_binding(struct tlshs_context *c, const struct tlshs_context_conf *conf)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	struct str required = conf->require_peer_certificate ? STR("required") : STR("");
	bool ok = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1 &&
	          digest_names(md, c, conf) && digest_add(md, required) &&
	          digest_add(md, conf->crl_pem);
	if (!conf->n_bundles)
		ok = ok && digest_add(md, conf->ca_pem);
	for (uint32_t i = 0; i < conf->n_bundles; i++)
		ok = ok && digest_add(md, conf->bundles[i].trust_domain) &&
		     digest_add(md, conf->bundles[i].ca_pem);
	ok = ok && EVP_DigestFinal_ex(md, c->binding, NULL) == 1;
	EVP_MD_CTX_free(md);
	return ok;
}

static int set_tickets(
	struct tlshs_context *c, const struct tlshs_context_conf *conf, struct lb_err *err)
{
	struct str secret = conf->ticket_secret;
	if (secret.len && conf->role == TLSHS_CLIENT)
		return lb_err_set(err, "ticket_secret: is a server's");
	if (conf->max_sessions && conf->role == TLSHS_SERVER)
		return lb_err_set(err, "max_sessions: are a client's");
	c->max_sessions = conf->max_sessions;
	if (secret.len && secret.len < TLSHS_TICKET_SECRET)
		return lb_err_set(
			err, "ticket_secret: has fewer than %d bytes", TLSHS_TICKET_SECRET);
	return digest_binding(c, conf) && tlshs_tickets_setup(c, secret) ? 0 : no_memory(err);
}

static int set_all(
	struct tlshs_context *c, const struct tlshs_context_conf *conf, struct lb_err *err)
{
	static int (*const setters[])(
		struct tlshs_context *, const struct tlshs_context_conf *, struct lb_err *) = {
		set_versions,
		set_certificate,
		set_trust,
		set_alpn,
		set_server_names,
		set_tickets,
	};
	for (unsigned i = 0; i < sizeof(setters) / sizeof(setters[0]); i++) {
		int is = setters[i](c, conf, err);
		if (is)
			return is;
	}
	tlshs_verify_setup(c, conf->require_peer_certificate);
	if (c->role == TLSHS_SERVER)
		tlshs_hello_setup(c);
	c->matcher = conf->matcher; // ours from here on
	return 0;
}

static void context_free(struct tlshs_context *c)
{
	if (c->max_sessions)
		tlshs_sessions_drop(c);
	SSL_CTX_free(c->ssl);
	tlshs_cas_put(c->cas);
	sk_X509_CRL_pop_free(c->crls, X509_CRL_free);
	for (uint32_t i = 0; i < c->n_bundles; i++) {
		free(c->bundles[i].domain);
		tlshs_cas_put(c->bundles[i].cas);
	}
	free(c->bundles);
	for (uint32_t i = 0; i < c->n_server_names; i++)
		free(c->server_names[i]);
	free(c->server_names);
	OPENSSL_cleanse(c->ticket_secret, sizeof(c->ticket_secret));
	if (c->matcher.free_arg)
		c->matcher.free_arg(c->matcher.arg);
	free(c);
}

struct tlshs_context *tlshs_context_new(const struct tlshs_context_conf *conf, struct lb_err *err)
{
	struct tlshs_context *c = calloc(1, sizeof(*c));
	if (!c) {
		errno = -no_memory(err);
		return NULL;
	}
	c->refs = 1;
	c->role = conf->role;
	c->own_uris = "";
	OSSL_LIB_CTX *library = tlshs_library();
	if (library)
		c->ssl = SSL_CTX_new_ex(library, TLSHS_PREFERENCE,
			conf->role == TLSHS_SERVER ? TLS_server_method() : TLS_client_method());
	int is = c->ssl ? set_all(c, conf, err) : no_memory(err);
	ERR_clear_error();
	if (is == 0)
		return c;
	context_free(c);
	errno = -is;
	return NULL;
}

void tlshs_context_put(struct tlshs_context *c)
{
	// Whoever frees it sees what the others did with it.
	if (c && __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) == 0)
		context_free(c);
}
