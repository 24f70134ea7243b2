// SPDX-License-Identifier: Apache-2.0
// What reading a provider's files refuses is what handshakes could not use, and nothing else: each
// certificate here is read, then put into a context behind the back of that, and a client of 1.2
// and of 1.3 that judges nothing shakes hands (TLS-252 to TLS-254).
#include "ctrl/certs/credential.h"
#include "ctrl/certs/material.h"
#include "ctrl/xds/bootstrap/cert_files.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/certs/pki.h"
#include "tlshs/handshake.h"

#include <openssl/ssl.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct pki_cert ca, small_ca;

static int begin(void **state)
{
	pki_begin();
	ca = pki_make_by("ca", NULL, (struct pki_way){0});
	small_ca = pki_make_by("small", &ca, (struct pki_way){.rsa_bits = 1024, .is_ca = true});
	return 0;
}

static int end(void **state)
{
	pki_end();
	return 0;
}

static struct str chain_of(const struct pki_cert *leaf, const struct pki_cert *above)
{
	static char text[16384];
	int len = snprintf(
		text, sizeof(text), "%s%s", pki_cert_pem(leaf), above ? pki_cert_pem(above) : "");
	return (struct str){text, (size_t)len};
}

// 0, or -EINVAL with the reason.
static int read_files(struct str chain, const struct pki_cert *leaf, struct lb_err *err)
{
	pki_write_bytes("cert", chain.p, chain.len);
	pki_write("key", pki_key_pem(leaf->key));
	struct xds_cert_files f = {.cert = (char *)(uintptr_t)pki_path("cert"),
		.key = (char *)(uintptr_t)pki_path("key")};
	struct cert_source s = {.name = "p", .files = &f};
	struct cert_material *m = NULL;
	int rc = cert_material_load(&s, &m, err);
	cert_material_put(m);
	return rc;
}

static struct tlshs_context *make(struct str chain, const struct pki_cert *leaf, int *ret_rc)
{
	const char *key = pki_key_pem(leaf->key);
	struct cert_material m = {.cert = {(char *)(uintptr_t)chain.p, chain.len},
		.key = {(char *)(uintptr_t)key, strlen(key)}};
	struct credential_want w = {.role = TLSHS_SERVER, .identity = "p"};
	struct credential_parts parts = {.identity = &m};
	struct tlshs_context *context = NULL;
	struct lb_err err = {""};
	*ret_rc = credential_make(&w, &parts, &context, &err);
	return context;
}

static bool shakes(struct tlshs_context *context, uint16_t version)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_min_proto_version(ctx, version);
	SSL_CTX_set_max_proto_version(ctx, version);
	SSL *ssl = SSL_new(ctx);
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	struct tlshs_handshake *h = tlshs_handshake_new(context, STR(""), 0);
	assert_non_null(h);
	SSL_set_bio(ssl, in, out);
	SSL_set_connect_state(ssl);
	for (unsigned turn = 0; turn < 10; turn++) {
		uint8_t bytes[16384];
		SSL_do_handshake(ssl);
		for (int n; (n = BIO_read(out, bytes, sizeof(bytes))) > 0;)
			tlshs_handshake_feed(h, bytes, (size_t)n);
		for (size_t n; (n = tlshs_handshake_drain(h, bytes, sizeof(bytes))) > 0;)
			BIO_write(in, bytes, (int)n);
	}
	bool ok = SSL_is_init_finished(ssl) && tlshs_handshake_ended(h) &&
	          tlshs_handshake_outcome(h) == TLSHS_ok;
	tlshs_handshake_free(h);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	return ok;
}

// Whether handshakes of both versions succeed; a context that is refused is so for good.
static bool serves(struct str chain, const struct pki_cert *leaf)
{
	int rc;
	struct tlshs_context *context = make(chain, leaf, &rc);
	assert_int_equal(rc, context ? 0 : -EINVAL);
	bool ok = context && shakes(context, TLS1_2_VERSION) && shakes(context, TLS1_3_VERSION);
	tlshs_context_put(context);
	return ok;
}

struct row {
	const char *name;
	struct pki_way way;
	bool is_by_small; // the small CA's, which stands in the chain
	const char *why; // NULL = it is good
};

static void expect_reading(const struct row *r, struct str chain, const struct pki_cert *leaf)
{
	struct lb_err err = {""};
	int rc = read_files(chain, leaf, &err);
	bool is_told = !r->why || (strncmp(err.text, "certificate_file /", 18) == 0 &&
					  strstr(err.text, r->why));
	if (rc != (r->why ? -EINVAL : 0) || !is_told)
		fail_msg("%s: \"%s\"", r->name, err.text);
}

static void expect_all(const struct row *rows, size_t n)
{
	for (const struct row *r = rows; r < rows + n; r++) {
		const struct pki_cert *issuer = r->is_by_small ? &small_ca : &ca;
		struct pki_cert leaf = pki_make_by(r->name, issuer, r->way);
		struct str chain = chain_of(&leaf, issuer);
		expect_reading(r, chain, &leaf);
		if (!r->way.is_explicit && serves(chain, &leaf) != !r->why)
			fail_msg("%s: handshakes %s", r->name, r->why ? "succeed" : "fail");
	}
}
#define EXPECT(...)                                                                                \
	expect_all((const struct row[]){__VA_ARGS__},                                              \
		sizeof((const struct row[]){__VA_ARGS__}) / sizeof(struct row))

#define CURVES ", by which no TLS client goes (P-256, P-384 and P-521 are)"
static void tls_252_a_curve_that_handshakes_cannot_use_is_refused(void **state)
{
	EXPECT({"p256", {0}, false, NULL}, {"p384", {.curve = "P-384"}, false, NULL},
		{"p521", {.curve = "P-521"}, false, NULL},
		{"ed25519", {.kind = "ED25519"}, false, NULL},
		{"rsa", {.rsa_bits = 2048}, false, NULL},
		{"p224", {.curve = "secp224r1"}, false,
			"certificate 1 (CN=p224): the key is on the curve secp224r1" CURVES},
		{"k256", {.curve = "secp256k1"}, false, "on the curve secp256k1"},
		{"bp256", {.curve = "brainpoolP256r1"}, false, "on the curve brainpoolP256r1"},
		{"p192", {.curve = "prime192v1"}, false, "on the curve prime192v1"});
}

// OpenSSL's clients take it, others do not, and RFC 5480 forbids it.
static void tls_252_a_curve_that_is_written_out_is_refused(void **state)
{
	EXPECT({"explicit", {.is_explicit = true}, false,
		"certificate 1 (CN=explicit): the key writes its curve out; a named one is "
		"needed"});
}

static void tls_253_what_is_too_weak_for_a_context_is_refused(void **state)
{
	EXPECT({"sha1", {.digest = "SHA1"}, false,
		       "certificate 1 (CN=sha1): its signature by SHA1 is too weak for TLS"},
		{"sha384", {.digest = "SHA384"}, false, NULL},
		{"by-small", {0}, true,
			"certificate 2 (CN=small): its RSA key of 1024 bits is too weak for TLS"});
}

// Nobody looks at the signature of one that trusts itself, but at its key.
static void tls_253_a_root_in_the_chain_may_sign_itself_by_sha1(void **state)
{
	struct pki_cert old = pki_make_by("old", NULL, (struct pki_way){.digest = "SHA1"});
	struct pki_cert leaf = pki_make_by("leaf", &old, (struct pki_way){0});
	struct lb_err err = {""};
	struct str chain = chain_of(&leaf, &old);
	assert_int_equal(read_files(chain, &leaf, &err), 0);
	assert_true(serves(chain, &leaf));
}

// OpenSSL's servers offer no cipher of 1.2 by such a key, unless it is RSA.
static void tls_254_a_certificate_that_may_not_sign_is_refused(void **state)
{
	EXPECT({"sign", {.usage = "critical,digitalSignature"}, false, NULL},
		{"agree", {.usage = "critical,keyAgreement"}, false,
			"certificate 1 (CN=agree): its keyUsage is without digitalSignature, by "
			"which TLS uses it"},
		{"ed25519", {.kind = "ED25519", .usage = "critical,keyAgreement"}, false,
			"its keyUsage is without digitalSignature"},
		{"encipher", {.rsa_bits = 2048, .usage = "critical,keyEncipherment"}, false, NULL});
}

// What the log warns by.
static void tls_254_whether_a_certificate_may_sign_is_known(void **state)
{
	static const struct {
		const char *usage;
		bool may_sign;
	} rows[] = {{NULL, true}, {"digitalSignature,keyEncipherment", true},
		{"keyEncipherment", false}, {"critical,keyAgreement", false}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pki_cert leaf =
			pki_make_by("leaf", &ca, (struct pki_way){.usage = rows[i].usage});
		struct cert_list l;
		struct lb_err err = {""};
		assert_int_equal(cert_list_read(chain_of(&leaf, &ca), &l, &err), 0);
		assert_int_equal(l.list[0].may_sign, rows[i].may_sign);
		cert_list_fini(&l);
	}
}

int main(void)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(tls_252_a_curve_that_handshakes_cannot_use_is_refused),
		cmocka_unit_test(tls_252_a_curve_that_is_written_out_is_refused),
		cmocka_unit_test(tls_253_what_is_too_weak_for_a_context_is_refused),
		cmocka_unit_test(tls_253_a_root_in_the_chain_may_sign_itself_by_sha1),
		cmocka_unit_test(tls_254_a_certificate_that_may_not_sign_is_refused),
		cmocka_unit_test(tls_254_whether_a_certificate_may_sign_is_known),
	};
	return cmocka_run_group_tests_name("certs/strength", suite, begin, end);
}
