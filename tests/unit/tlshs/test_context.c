// SPDX-License-Identifier: Apache-2.0
#include "tests/support/check.h"
#include "tests/unit/tlshs/meeting.h"
#include "tlshs/impl.h"

#include <stdio.h>

static struct pki_cert ca, leaf, other;

static int setup(void **state)
{
	ca = pki_make((struct pki_conf){"ca"});
	leaf = pki_make((struct pki_conf){"leaf", &ca, "DNS:a.test"});
	other = pki_make((struct pki_conf){"other", &ca});
	return 0;
}

static int teardown(void **state)
{
	pki_end();
	return 0;
}

static struct tlshs_context_conf server(void)
{
	return (struct tlshs_context_conf){
		.role = TLSHS_SERVER, .certificate_pem = leaf.pem, .key_pem = leaf.key_pem};
}

static bool accept_all(const void *arg, const struct tlshs_peer *p, struct str name)
{
	return true;
}

static void note_free(void *arg)
{
	(*(unsigned *)arg)++;
}

static void a_context_holds_all_that_it_was_given(void **state)
{
	unsigned n_freed = 0;
	struct str alpn[] = {STR("h2"), STR("http/1.1")};
	struct str names[] = {STR("a.test"), STR("*.b.test")};
	struct tlshs_context_conf conf = server();
	conf.certificate_pem = pki_join(leaf.pem, ca.pem);
	conf.ca_pem = pki_join(ca.pem, other.pem);
	conf.crl_pem = pki_crl(&ca, &other, 1);
	conf.require_peer_certificate = true;
	conf.matcher = (struct tlshs_matcher){accept_all, note_free, &n_freed};
	conf.alpn = alpn;
	conf.n_alpn = 2;
	conf.server_names = names;
	conf.n_server_names = 2;
	conf.ticket_secret = STR("0123456789abcdef0123456789abcdef");
	struct tlshs_context *c = context_good(&conf);
	assert_int_equal(tlshs_context_role(c), TLSHS_SERVER);
	tlshs_context_put(tlshs_context_get(c));
	assert_int_equal(n_freed, 0);
	tlshs_context_put(c);
	assert_int_equal(n_freed, 1);
	tlshs_context_put(NULL);
}

static void a_client_needs_nothing(void **state)
{
	tlshs_context_put(context_good(&(struct tlshs_context_conf){.role = TLSHS_CLIENT}));
}

static void tls_50_an_error_names_the_field_of_keys_and_certificates(void **state)
{
	struct tlshs_context_conf conf = server();
	conf.certificate_pem = (struct str){0};
	context_bad(&conf, "certificate_pem: is missing");
	conf.key_pem = (struct str){0};
	context_bad(&conf, "certificate_pem: a server needs one");
	conf.certificate_pem = leaf.key_pem;
	conf.key_pem = leaf.key_pem;
	context_bad(&conf, "certificate_pem: holds no certificate");
	conf.certificate_pem = (struct str){leaf.pem.p, leaf.pem.len / 2};
	context_bad(&conf, "certificate_pem: certificate 1: ");
	conf.certificate_pem = pki_join(leaf.pem, (struct str){ca.pem.p, ca.pem.len / 2});
	context_bad(&conf, "certificate_pem: certificate 2: ");
	conf = server();
	conf.key_pem = (struct str){0};
	context_bad(&conf, "key_pem: is missing");
	conf.key_pem = leaf.pem;
	context_bad(&conf, "key_pem: holds no private key");
	conf.key_pem = pki_encrypted_key(&leaf);
	context_bad(&conf, "key_pem: has a password");
	conf.key_pem = other.key_pem;
	context_bad(&conf, "key_pem: is not the key of");
}

static void tls_50_an_error_names_the_field_of_trust(void **state)
{
	struct tlshs_context_conf conf = server();
	conf.ca_pem = STR("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
	context_bad(&conf, "ca_pem: certificate 1: ");
	struct tlshs_bundle bundles[] = {{STR("a.test"), ca.pem}, {STR("b.test"), STR("x")}};
	conf.bundles = bundles;
	conf.n_bundles = 2;
	context_bad(&conf, "bundles[1].ca_pem: holds no certificate");
	bundles[0].trust_domain = STR("");
	context_bad(&conf, "bundles[0].trust_domain: ");
	conf = server();
	conf.crl_pem = ca.pem;
	conf.ca_pem = ca.pem;
	context_bad(&conf, "crl_pem: holds no CRL");
	conf = server();
	conf.require_peer_certificate = true;
	context_bad(&conf, "require_peer_certificate: needs");
	conf = server();
	conf.matcher.accepts = accept_all;
	context_bad(&conf, "matcher: needs");
}

static void tls_50_an_error_names_the_field_of_what_is_offered(void **state)
{
	struct str list[TLSHS_MAX_ALPNS + 1] = {STR("h2"), STR("")};
	struct tlshs_context_conf conf = server();
	conf.alpn = list;
	conf.n_alpn = 2;
	context_bad(&conf, "alpn[1]: ");
	conf.n_alpn = TLSHS_MAX_ALPNS + 1;
	context_bad(&conf, "alpn: has more than");
	conf = server();
	list[0] = STR("a*.test");
	conf.server_names = list;
	conf.n_server_names = 1;
	context_bad(&conf, "server_names[0]: ");
	conf.role = TLSHS_CLIENT;
	context_bad(&conf, "server_names: ");
	conf = server();
	conf.ticket_secret = STR("short");
	context_bad(&conf, "ticket_secret: has fewer");
	conf.role = TLSHS_CLIENT;
	context_bad(&conf, "ticket_secret: is a server's");
	conf = server();
	conf.min_version = 0x0302;
	context_bad(&conf, "min_version: ");
	conf.min_version = TLS_1_3;
	conf.max_version = TLS_1_2;
	context_bad(&conf, "min_version: is above");
	conf.max_version = 1;
	context_bad(&conf, "max_version: ");
}

static void every_outcome_has_a_name(void **state)
{
	assert_string_equal(tlshs_outcome_name(TLSHS_ok), "ok");
	assert_string_equal(tlshs_outcome_name(TLSHS_internal), "internal");
	for (enum tlshs_outcome i = 0; i < TLSHS_N_OUTCOMES; i++)
		assert_true(strlen(tlshs_outcome_name(i)) >= 2);
}

static void tls_192_cas_of_the_same_bytes_are_parsed_once(void **state)
{
	char twin[4096];
	snprintf(twin, sizeof(twin), "%.*s", (int)ca.pem.len, ca.pem.p);
	struct tlshs_bundle bundle = {STR("one.test"), str_from(twin)};
	struct tlshs_context_conf client = {.role = TLSHS_CLIENT, .ca_pem = ca.pem};
	struct tlshs_context_conf mutual = server(), spiffe = client, alien = client;
	mutual.ca_pem = bundle.ca_pem;
	spiffe.bundles = &bundle;
	spiffe.n_bundles = 1;
	alien.ca_pem = other.pem;
	struct tlshs_context *all[] = {context_good(&client), context_good(&mutual),
		context_good(&spiffe), context_good(&alien)};
	assert_ptr_equal(all[0]->cas, all[1]->cas);
	assert_ptr_equal(all[0]->cas, all[2]->bundles[0].cas);
	assert_ptr_not_equal(all[0]->cas, all[3]->cas);
	assert_int_equal(all[0]->cas->refs, 3);
	struct tlshs_cas *kept = all[0]->cas;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(kept->refs, i < 3 ? 3 - i : 1);
		if (i == 2) // of nobody's but ours
			assert_ptr_equal(tlshs_cas_take(ca.pem, NULL), kept);
		tlshs_context_put(all[i]);
	}
	assert_int_equal(sk_X509_num(kept->list), 1);
	tlshs_cas_put(kept);
}

int main(void)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(a_context_holds_all_that_it_was_given),
		cmocka_unit_test(a_client_needs_nothing),
		cmocka_unit_test(tls_50_an_error_names_the_field_of_keys_and_certificates),
		cmocka_unit_test(tls_50_an_error_names_the_field_of_trust),
		cmocka_unit_test(tls_50_an_error_names_the_field_of_what_is_offered),
		cmocka_unit_test(every_outcome_has_a_name),
		cmocka_unit_test(tls_192_cas_of_the_same_bytes_are_parsed_once),
	};
	return cmocka_run_group_tests_name("tlshs/context", suite, setup, teardown);
}
