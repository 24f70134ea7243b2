// SPDX-License-Identifier: Apache-2.0
// Files of certificate providers that are good, and those that are not: each is refused as a whole,
// with its field, path and reason (TLS-103 to TLS-108).
#include "ctrl/certs/certs.h"
#include "ctrl/certs/material.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/certs/pki.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CERT "certificate_file "
#define KEY "private_key_file "
#define CA "ca_certificate_file "
#define MAP "spiffe_trust_bundle_map_file "

static struct pki_cert ca, leaf;

static int begin(void **state)
{
	pki_begin();
	ca = pki_make("ca", NULL, NULL, -1, 10);
	leaf = pki_make("leaf", "DNS:a.example,URI:spiffe://b/c,IP:10.0.0.1,email:d@e", &ca, -1, 2);
	pki_write("cert", pki_cert_pem(&leaf));
	pki_write("key", pki_key_pem(leaf.key));
	pki_write("ca", pki_cert_pem(&ca));
	return 0;
}

static int end(void **state)
{
	pki_end();
	return 0;
}

static int load(const struct xds_cert_files *f, struct cert_material **ret, struct lb_err *err)
{
	struct cert_source s = {.name = "p", .files = f};
	*ret = NULL;
	return cert_material_load(&s, ret, err);
}

static char *path(const char *name)
{
	return (char *)(uintptr_t)pki_path(name);
}

static struct xds_cert_files all(void)
{
	return (struct xds_cert_files){.cert = path("cert"), .key = path("key"), .ca = path("ca")};
}

static struct cert_material *load_good(const struct xds_cert_files *f)
{
	struct cert_material *m;
	struct lb_err err = {""};
	if (load(f, &m, &err))
		fail_msg("%s", err.text);
	return m;
}

// `field` is what the error must begin with, behind it comes the path, and then the reason.
static void expect_bad(
	const struct xds_cert_files *f, const char *field, const char *file, const char *why)
{
	struct cert_material *m;
	struct lb_err err = {""};
	char want[256];
	assert_int_equal(load(f, &m, &err), -EINVAL);
	assert_null(m);
	snprintf(want, sizeof(want), "%s%s: %s", field, pki_path(file), why);
	if (strncmp(err.text, want, strlen(want)) != 0)
		fail_msg("\"%s\" in place of \"%s\"", err.text, want);
}

static void tls_103_all_files_of_a_provider_are_read(void **state)
{
	struct xds_cert_files f = all();
	struct cert_material *m = load_good(&f);
	assert_string_equal(m->cert.p, pki_cert_pem(&leaf));
	assert_string_equal(m->key.p, pki_key_pem(leaf.key));
	assert_string_equal(m->ca.p, pki_cert_pem(&ca));
	assert_int_equal(m->chain.n, 1);
	const struct cert_info *i = &m->chain.list[0];
	assert_string_equal(i->subject, "CN=leaf");
	assert_string_equal(i->issuer, "CN=ca");
	assert_string_equal(i->sans, "DNS:a.example, URI:spiffe://b/c, IP:10.0.0.1, email:d@e");
	assert_int_equal(i->not_after_s - i->not_before_s, 3 * 86400);
	assert_int_equal(m->cas.n, 1);
	assert_string_equal(m->cas.list[0].subject, "CN=ca");
	cert_material_put(m);
}

static void tls_103_a_chain_has_the_leaf_and_those_above_it(void **state)
{
	char chain[8192];
	snprintf(chain, sizeof(chain), "# a comment\n%s%s", pki_cert_pem(&leaf), pki_cert_pem(&ca));
	pki_write("chain", chain);
	struct xds_cert_files f = {.cert = path("chain"), .key = path("key")};
	struct cert_material *m = load_good(&f);
	assert_int_equal(m->chain.n, 2);
	assert_string_equal(m->chain.list[1].subject, "CN=ca");
	assert_null(m->ca.p);
	cert_material_put(m);
}

// What is not valid today may be so on the peer's clock, or tomorrow.
static void tls_104_expired_and_early_certificates_are_taken(void **state)
{
	const int days[][2] = {{-10, -2}, {2, 10}};
	for (size_t i = 0; i < 2; i++) {
		struct pki_cert late = pki_make("late", NULL, &ca, days[i][0], days[i][1]);
		pki_write("late", pki_cert_pem(&late));
		pki_write("late-key", pki_key_pem(late.key));
		struct xds_cert_files f = {.cert = path("late"), .key = path("late-key")};
		cert_material_put(load_good(&f));
	}
}

static void tls_105_files_that_cannot_be_read_are_named(void **state)
{
	struct xds_cert_files f = all();
	f.cert = path("none");
	expect_bad(&f, CERT, "none", "No such file or directory");
	f = all();
	f.key = path("none");
	expect_bad(&f, KEY, "none", "No such file or directory");
	f = all();
	f.ca = path("none");
	expect_bad(&f, CA, "none", "No such file or directory");
	f.ca = path("");
	expect_bad(&f, CA, "", "Is a directory");
	assert_int_equal(mkfifo(pki_path("fifo"), 0600), 0);
	f.ca = path("fifo");
	expect_bad(&f, CA, "fifo", "is not a regular file");
	pki_write("huge", "");
	assert_int_equal(truncate(pki_path("huge"), (off_t)WHOLE_FILE_MAX + 1), 0);
	f.ca = path("huge");
	expect_bad(&f, CA, "huge", "is larger than 16 MiB");
	pki_write("open", pki_key_pem(leaf.key));
	assert_int_equal(chmod(pki_path("open"), 0666), 0);
	f = all();
	f.key = path("open");
	expect_bad(&f, KEY, "open", "is writable by everybody (mode 0666)");
}

static void tls_105_files_of_others_are_named(void **state)
{
	if (geteuid() != 0)
		skip();
	struct xds_cert_files f = all();
	assert_int_equal(chmod(pki_path(""), 0755), 0);
	assert_int_equal(chmod(f.key, 0600), 0);
	assert_int_equal(seteuid(65534), 0);
	struct cert_material *m;
	struct lb_err err = {""};
	int rc = load(&f, &m, &err);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(rc, -EINVAL);
	assert_non_null(strstr(err.text, ": Permission denied"));
}

static void tls_106_what_is_no_certificate_is_refused(void **state)
{
	char cut[4096], altered[4096];
	snprintf(cut, sizeof(cut), "%.200s", pki_cert_pem(&leaf));
	snprintf(altered, sizeof(altered), "%s", pki_cert_pem(&leaf));
	altered[60] = '!';
	const struct {
		const char *text, *why;
	} rows[] = {
		{"", "is empty"},
		{"garbage\n", "has no certificate in PEM"},
		{"\x30\x82\x01\x01", "is binary (DER?), not a certificate in PEM"},
		{pki_key_pem(leaf.key), "has a private key, not a certificate"},
		{pki_encrypted_key_pem(leaf.key),
			"has an encrypted private key, not a certificate"},
		{"-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----\n",
			"has a public key, not a certificate"},
		{cut, "certificate 1 cannot be decoded ("},
		{altered, "certificate 1 cannot be decoded ("},
		{"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
			"certificate 1 cannot be decoded ("},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pki_write("bad", rows[i].text);
		struct xds_cert_files f = all();
		f.ca = path("bad");
		expect_bad(&f, CA, "bad", rows[i].why);
		f = all();
		f.cert = path("bad");
		expect_bad(&f, CERT, "bad", rows[i].why);
	}
}

// Copies the text with each LF as `end`, and `begin` before each line.
static const char *laid_out(const char *text, const char *begin, const char *end)
{
	static char texts[8][8192];
	static unsigned n;
	char *to = texts[n++ % 8], *at = stpcpy(to, begin);
	for (; *text; text++)
		if (*text == '\n')
			at = stpcpy(at, end);
		else if (at > to && at[-1] == '\n')
			at = stpcpy(stpcpy(at, begin), (char[]){*text, 0});
		else
			*at++ = *text;
	*at = 0;
	return to;
}

// TLS-256: blocks that are there, and that nobody who goes by RFC 7468 sees.
static void tls_256_what_keeps_pem_from_being_seen_is_named(void **state)
{
	const char *cert = pki_cert_pem(&leaf), *key = pki_key_pem(leaf.key);
	static const struct {
		const char *begin, *end, *why;
	} rows[] = {
		{"  ", "\n", "has PEM that begins within a line (is it indented?)"},
		{"\t", "\r\n", "has PEM that begins within a line (is it indented?)"},
		{"", "", "has PEM without the ends of its lines (is it one line?)"},
		{"", " ", "has PEM without the ends of its lines (is it one line?)"},
		{"", "\\n", "has PEM without the ends of its lines (is it one line?)"},
		{"", "\r", "has lines that end with CR alone"},
		{"\xff\xfe", "\n", "is text in UTF-16"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_cert_files f = all();
		pki_write("odd", laid_out(cert, rows[i].begin, rows[i].end));
		f.cert = path("odd");
		expect_bad(&f, CERT, "odd", rows[i].why);
		f = all();
		f.ca = path("odd");
		expect_bad(&f, CA, "odd", rows[i].why);
		f = all();
		pki_write("odd", laid_out(key, rows[i].begin, rows[i].end));
		f.key = path("odd");
		expect_bad(&f, KEY, "odd", rows[i].why);
	}
}

// TLS-256: these are read.
static void tls_256_crs_blanks_at_ends_and_byte_order_marks_do_no_harm(void **state)
{
	const char *cert = pki_cert_pem(&leaf), *key = pki_key_pem(leaf.key);
	const char *const ends[] = {"\r\n", " \n", "\n"};
	for (size_t i = 0; i < 3; i++) {
		struct xds_cert_files f = {.cert = path("odd-cert"), .key = path("odd-key")};
		const char *mark = i == 2 ? "\xef\xbb\xbf" : "";
		char text[8192];
		snprintf(text, sizeof(text), "%s%s", mark, laid_out(cert, "", ends[i]));
		pki_write("odd-cert", text);
		snprintf(text, sizeof(text), "%s%s", mark, laid_out(key, "", ends[i]));
		pki_write("odd-key", text);
		cert_material_put(load_good(&f));
	}
}

static void tls_106_one_bad_certificate_behind_a_good_one_is_refused(void **state)
{
	char two[8192];
	snprintf(two, sizeof(two), "%s%.300s", pki_cert_pem(&ca), pki_cert_pem(&leaf));
	pki_write("two", two);
	struct xds_cert_files f = {.ca = path("two")};
	expect_bad(&f, CA, "two", "certificate 2 cannot be decoded (");
}

static void tls_107_keys_that_are_of_no_use_are_refused(void **state)
{
	struct pki_cert other = pki_make("other", NULL, &ca, -1, 2);
	char cut[4096];
	snprintf(cut, sizeof(cut), "%.100s", pki_key_pem(leaf.key));
	const struct {
		const char *text, *why;
	} rows[] = {
		{"", "is empty"},
		{"garbage\n", "has no private key in PEM"},
		{pki_cert_pem(&leaf), "has a certificate, not a private key"},
		{pki_encrypted_key_pem(leaf.key),
			"the private key is encrypted; one without a password is needed"},
		{"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: "
		 "AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\nAAAA\n"
		 "-----END EC PRIVATE KEY-----\n",
			"the private key is encrypted; one without a password is needed"},
		{cut, "the private key cannot be decoded ("},
		{pki_key_pem(other.key), "the key is not that of the first certificate"},
		{pki_key_pem(pki_rsa_key(1024)),
			"the RSA key has 1024 bits; 2048 or more are needed"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pki_write("bad-key", rows[i].text);
		struct xds_cert_files f = all();
		f.key = path("bad-key");
		expect_bad(&f, KEY, "bad-key", rows[i].why);
	}
}

// A map of one domain with one key, out of which pieces are taken.
static const char *map_of(const char *domain, const char *kty, const char *use, const char *x5c)
{
	static char text[8192];
	snprintf(text, sizeof(text),
		"{\"trust_domains\":{\"%s\":{\"spiffe_sequence\":1,\"keys\":[{\"kty\":\"%s\","
		"\"use\":\"%s\",\"x5c\":[%s],\"new\":1}]}}}",
		domain, kty, use, x5c);
	return text;
}

static void tls_108_a_map_has_the_cas_of_its_domains(void **state)
{
	char der[4096];
	snprintf(der, sizeof(der), "\"%s\"", pki_base64_der(&ca));
	pki_write("map", map_of("a.example", "EC", "x509-svid", der));
	struct xds_cert_files f = all();
	f.spiffe = path("map");
	f.ca = path("none"); // it is not looked at
	struct cert_material *m = load_good(&f);
	assert_true(m->has_bundles);
	assert_int_equal(m->bundles.n, 1);
	assert_string_equal(m->bundles.list[0].trust_domain, "a.example");
	assert_string_equal(m->bundles.list[0].ca_pem, pki_cert_pem(&ca));
	assert_int_equal(m->cas.n, 1);
	assert_null(m->ca.p);
	cert_material_put(m);

	pki_write("map", "{\"trust_domains\":{}}"); // valid, and trusts nobody
	m = load_good(&f);
	assert_true(m->has_bundles);
	assert_int_equal(m->bundles.n, 0);
	cert_material_put(m);
}

static void tls_108_one_bad_entry_makes_a_map_bad(void **state)
{
	char der[4096], twice[8192];
	snprintf(der, sizeof(der), "\"%s\"", pki_base64_der(&ca));
	snprintf(twice, sizeof(twice), "%s,%s", der, der);
#define KEY0 "trust_domains[\"a\"]: keys[0]: "
	const struct {
		const char *domain, *kty, *use, *x5c, *why;
	} rows[] = {
		{"A", "EC", "x509-svid", der,
			"trust_domains[\"A\"]: is not a name of a trust domain"},
		{"", "EC", "x509-svid", der,
			"trust_domains[\"\"]: is not a name of a trust domain"},
		{"a", "oct", "x509-svid", der, KEY0 "kty: is neither \"RSA\" nor \"EC\""},
		{"a", "EC", "jwt-svid", der, KEY0 "use: is not \"x509-svid\""},
		{"a", "EC", "x509-svid", "", KEY0 "x5c: is not a list of one certificate"},
		{"a", "EC", "x509-svid", twice, KEY0 "x5c: is not a list of one certificate"},
		{"a", "EC", "x509-svid", "7", KEY0 "x5c: is not a list of one certificate"},
		{"a", "EC", "x509-svid", "\"?\"", KEY0 "x5c: is not base64"},
		{"a", "EC", "x509-svid", "\"AAAA\"", KEY0 "x5c: is not a DER certificate"},
	};
	struct xds_cert_files f = {.spiffe = path("map")};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pki_write("map", map_of(rows[i].domain, rows[i].kty, rows[i].use, rows[i].x5c));
		expect_bad(&f, MAP, "map", rows[i].why);
	}
	pki_write("map", "");
	expect_bad(&f, MAP, "map", "is empty");
	pki_write("map", "{");
	expect_bad(&f, MAP, "map", "line 1 column 1: ");
	pki_write("map", "{}");
	expect_bad(&f, MAP, "map", "trust_domains: is not an object");
	pki_write("map", "{\"trust_domains\":{\"a\":{}}}");
	expect_bad(&f, MAP, "map", "trust_domains[\"a\"]: keys: is not a list");
}

static void a_check_names_the_provider(void **state)
{
	struct xds_cert_provider_conf providers[] = {
		{.name = (char[]){"good"}, .files = all()},
		{.name = (char[]){"bad"}, .files = {.ca = path("none")}},
	};
	struct xds_bootstrap b = {.cert_providers = providers, .n_cert_providers = 1};
	struct lb_err err = {""};
	assert_int_equal(certs_check(&b, NULL, NULL, &err), 0);
	b.n_cert_providers = 2;
	assert_int_equal(certs_check(&b, NULL, NULL, &err), -EINVAL);
	char want[256];
	snprintf(want, sizeof(want),
		"certificate provider \"bad\": ca_certificate_file %s: No such file or directory",
		pki_path("none"));
	assert_string_equal(err.text, want);
}

int main(void)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(tls_103_all_files_of_a_provider_are_read),
		cmocka_unit_test(tls_103_a_chain_has_the_leaf_and_those_above_it),
		cmocka_unit_test(tls_104_expired_and_early_certificates_are_taken),
		cmocka_unit_test(tls_105_files_that_cannot_be_read_are_named),
		cmocka_unit_test(tls_105_files_of_others_are_named),
		cmocka_unit_test(tls_106_what_is_no_certificate_is_refused),
		cmocka_unit_test(tls_256_what_keeps_pem_from_being_seen_is_named),
		cmocka_unit_test(tls_256_crs_blanks_at_ends_and_byte_order_marks_do_no_harm),
		cmocka_unit_test(tls_106_one_bad_certificate_behind_a_good_one_is_refused),
		cmocka_unit_test(tls_107_keys_that_are_of_no_use_are_refused),
		cmocka_unit_test(tls_108_a_map_has_the_cas_of_its_domains),
		cmocka_unit_test(tls_108_one_bad_entry_makes_a_map_bad),
		cmocka_unit_test(a_check_names_the_provider),
	};
	return cmocka_run_group_tests_name("certs/material", suite, begin, end);
}
