// SPDX-License-Identifier: Apache-2.0
// Handshakes that fail: the outcome, and the alert that the peer gets.
#include "tests/support/check.h"
#include "tests/unit/tlshs/meeting.h"

#include <stdio.h>
#include <stdlib.h>

static struct pki_cert ca, alien_ca, leaf, client;

static int setup(void **state)
{
	ca = pki_make((struct pki_conf){"ca"});
	alien_ca = pki_make((struct pki_conf){"alien"});
	leaf = pki_make((struct pki_conf){"leaf", &ca, "DNS:a.test"});
	client = pki_make((struct pki_conf){"client", &ca});
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

// The outcome is this, and the peer's error contains that.
static void expect(const struct tlshs_context_conf *conf, const struct far_conf *far,
	enum tlshs_outcome outcome, const char *far_error)
{
	struct tlshs_context *c = context_good(conf);
	struct meeting m;
	meeting_init(&m, c, STR("a.test"), far);
	enum tlshs_outcome is = meeting_run(&m);
	assert_string_equal(tlshs_outcome_name(is), tlshs_outcome_name(outcome));
	if (!strstr(m.far_error, far_error))
		assert_string_equal(m.far_error, far_error);
	meeting_fini(&m);
	tlshs_context_put(c);
}

// Of both sides, with both versions: `cert` is refused by whom trusts ca.
static void expect_refused(const struct pki_cert *cert, struct str crls,
	bool (*accepts)(const void *, const struct tlshs_peer *, struct str),
	enum tlshs_outcome outcome, const char *alert)
{
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		struct tlshs_context_conf conf = {.role = TLSHS_CLIENT, .ca_pem = ca.pem};
		struct far_conf far = {.role = TLSHS_SERVER, .cert = cert};
		conf.crl_pem = crls;
		conf.matcher.accepts = accepts;
		far.min_version = far.max_version = version;
		expect(&conf, &far, outcome, alert);
		conf.role = TLSHS_SERVER;
		conf.certificate_pem = leaf.pem;
		conf.key_pem = leaf.key_pem;
		conf.require_peer_certificate = true;
		far.role = TLSHS_CLIENT;
		expect(&conf, &far, outcome, alert);
	}
}

static void tls_60_an_unknown_ca_is_refused(void **state)
{
	struct pki_cert bad = pki_make((struct pki_conf){"bad", &alien_ca});
	expect_refused(&bad, STR(""), NULL, TLSHS_unknown_ca, "alert unknown ca");
	expect_refused(&alien_ca, STR(""), NULL, TLSHS_unknown_ca, "alert unknown ca");
}

static void tls_60_a_certificate_out_of_its_time_is_refused(void **state)
{
	struct pki_cert bad =
		pki_make((struct pki_conf){"old", &ca, .from_days = -9, .to_days = -1});
	expect_refused(&bad, STR(""), NULL, TLSHS_certificate_expired, "alert certificate expired");
	bad = pki_make((struct pki_conf){"new", &ca, .from_days = 1, .to_days = 9});
	expect_refused(
		&bad, STR(""), NULL, TLSHS_certificate_not_yet_valid, "alert bad certificate");
}

static void tls_60_a_certificate_for_another_use_is_refused(void **state)
{
	struct pki_cert bad = pki_make((struct pki_conf){"mail", &ca, .usage = "emailProtection"});
	expect_refused(
		&bad, STR(""), NULL, TLSHS_certificate_usage, "alert unsupported certificate");
}

static bool accept_none(const void *arg, const struct tlshs_peer *p, struct str name)
{
	return false;
}

static void tls_60_a_certificate_without_an_accepted_name_is_refused(void **state)
{
	expect_refused(
		&client, STR(""), accept_none, TLSHS_certificate_name, "alert bad certificate");
}

static void tls_61_a_revoked_certificate_is_refused(void **state)
{
	expect_refused(&client, pki_crl(&ca, &client, 1), NULL, TLSHS_certificate_revoked,
		"alert certificate revoked");
}

static void tls_61_an_old_crl_still_revokes(void **state)
{
	expect_refused(&client, pki_crl(&ca, &client, -1), NULL, TLSHS_certificate_revoked,
		"alert certificate revoked");
}

static void tls_61_a_crl_with_a_wrong_signature_refuses(void **state)
{
	struct pki_cert forger = ca;
	forger.key = alien_ca.key;
	expect_refused(&client, pki_crl(&forger, NULL, 1), NULL, TLSHS_certificate_bad, "alert");
}

static void tls_61_what_no_crl_names_is_accepted(void **state)
{
	struct str crls[] = {
		pki_crl(&ca, &leaf, 1), pki_crl(&ca, &leaf, -1), pki_crl(&alien_ca, NULL, 1)};
	for (unsigned i = 0; i < 3; i++) {
		struct tlshs_context_conf conf = {
			.role = TLSHS_CLIENT, .ca_pem = ca.pem, .crl_pem = crls[i]};
		struct far_conf far = {.role = TLSHS_SERVER, .cert = &client};
		expect(&conf, &far, TLSHS_ok, "");
	}
}

// CRLs that do not name their issuer's key: where the issuer is not there, the library takes the CA
// itself for it.
static void tls_61_a_ca_that_is_no_root_needs_no_crl_of_its_issuers(void **state)
{
	static const char *const key_usages[] = {NULL, "critical,keyCertSign"};
	for (unsigned i = 0; i < 2; i++) {
		struct pki_cert between = pki_make((struct pki_conf){
			"between", &ca, .is_ca = true, .key_usage = key_usages[i]});
		struct pki_cert below = pki_make((struct pki_conf){"below", &between});
		struct tlshs_context_conf conf = {.role = TLSHS_CLIENT, .ca_pem = between.pem};
		struct far_conf far = {.role = TLSHS_SERVER, .cert = &below};
		conf.crl_pem = pki_crl(&ca, NULL, 1);
		expect(&conf, &far, TLSHS_ok, "");
		conf.crl_pem = pki_join(conf.crl_pem, pki_crl(&between, &below, 1));
		expect(&conf, &far, i ? TLSHS_certificate_bad : TLSHS_certificate_revoked, "alert");
		conf.crl_pem = pki_crl(&ca, &between, 1);
		expect(&conf, &far, TLSHS_certificate_revoked, "alert certificate revoked");
	}
}

static void tls_57_a_peer_of_no_known_trust_domain_is_refused(void **state)
{
	static const char *const sans[] = {NULL, "DNS:one.test", "URI:spiffe://two.test/x",
		"URI:spiffe://one.test/x,URI:spiffe://one.test/y", "URI:https://one.test/"};
	struct tlshs_bundle bundle = {STR("one.test"), ca.pem};
	struct tlshs_context_conf conf = {
		.role = TLSHS_CLIENT, .ca_pem = ca.pem, .bundles = &bundle, .n_bundles = 1};
	for (unsigned i = 0; i < 5; i++) {
		struct pki_cert bad = pki_make((struct pki_conf){"bad", &ca, sans[i]});
		struct far_conf far = {.role = TLSHS_SERVER, .cert = &bad};
		expect(&conf, &far, TLSHS_unknown_ca, "alert");
	}
}

static void tls_56_a_client_without_a_certificate_is_refused_if_it_is_required(void **state)
{
	struct tlshs_context_conf conf = server();
	conf.ca_pem = ca.pem;
	conf.require_peer_certificate = true;
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		struct far_conf far = {.role = TLSHS_CLIENT};
		far.min_version = far.max_version = version;
		expect(&conf, &far, TLSHS_no_peer_certificate, "alert");
	}
}

static void tls_62_old_versions_are_refused(void **state)
{
	struct tlshs_context_conf conf = server();
	struct far_conf far = {TLSHS_CLIENT, TLS1_VERSION, TLS1_1_VERSION};
	far.ciphers_12 = "ALL:@SECLEVEL=0";
	expect(&conf, &far, TLSHS_version, "alert protocol version");
	far = (struct far_conf){TLSHS_CLIENT, TLS1_2_VERSION, TLS1_2_VERSION};
	conf.min_version = TLS_1_3;
	expect(&conf, &far, TLSHS_version, "alert protocol version");
	conf = (struct tlshs_context_conf){.role = TLSHS_CLIENT, .min_version = TLS_1_3};
	far = (struct far_conf){TLSHS_SERVER, TLS1_2_VERSION, TLS1_2_VERSION, .cert = &leaf};
	expect(&conf, &far, TLSHS_peer_alert_version, "unsupported protocol");
}

static void tls_62_ciphers_without_ecdhe_and_aead_are_refused(void **state)
{
	static const char *const ciphers[] = {
		"ECDHE-ECDSA-AES128-SHA256", "AES128-GCM-SHA256", "DHE-RSA-AES128-GCM-SHA256"};
	struct tlshs_context_conf conf = server();
	for (unsigned i = 0; i < 3; i++) {
		struct far_conf far = {TLSHS_CLIENT, TLS1_2_VERSION, TLS1_2_VERSION, ciphers[i]};
		expect(&conf, &far, TLSHS_cipher, "alert handshake failure");
	}
}

static void tls_54_without_a_common_protocol_nobody_speaks(void **state)
{
	struct str alpn[] = {STR("h2")};
	struct tlshs_context_conf conf = server();
	struct far_conf far = {TLSHS_CLIENT, .alpn = "\010http/1.1"};
	conf.alpn = alpn;
	conf.n_alpn = 1;
	expect(&conf, &far, TLSHS_no_application_protocol, "alert no application protocol");
	conf = (struct tlshs_context_conf){.role = TLSHS_CLIENT, .alpn = alpn, .n_alpn = 1};
	far = (struct far_conf){TLSHS_SERVER, .cert = &leaf, .alpn = "\010http/1.1"};
	expect(&conf, &far, TLSHS_malformed, "alert");
}

static void tls_55_a_name_that_is_not_served_is_refused(void **state)
{
	static const char *const asked[] = {"c.test", "b.test", "xb.test", "a.test.b"};
	struct str names[] = {STR("a.test"), STR("*.b.test")};
	struct tlshs_context_conf conf = server();
	conf.server_names = names;
	conf.n_server_names = 2;
	for (unsigned i = 0; i < 4; i++) {
		struct far_conf far = {TLSHS_CLIENT, .server_name = asked[i]};
		expect(&conf, &far, TLSHS_server_name, "unrecognized name");
	}
}

// Once it is asked to begin again.
static void ask_for_another_name(
	int writes, int version, int type, const void *p, size_t len, SSL *ssl, void *name)
{
	if (!writes && type == SSL3_RT_HANDSHAKE && *(const uint8_t *)p == SSL3_MT_SERVER_HELLO)
		assert_int_equal(SSL_set_tlsext_host_name(ssl, (char *)name), 1);
}

static void tls_271_a_client_that_begins_again_asks_for_the_same_name(void **state)
{
	static const struct {
		const char *first, *second; // NULL = none
		enum tlshs_outcome outcome;
	} rows[] = {
		{"a.test", "a.test", TLSHS_ok},
		{NULL, NULL, TLSHS_ok},
		{"a.test", "b.test", TLSHS_malformed},
		{"a.test", NULL, TLSHS_malformed},
		{NULL, "a.test", TLSHS_malformed},
	};
	struct tlshs_context_conf conf = server();
	struct tlshs_context *c = context_good(&conf);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct far_conf far = {TLSHS_CLIENT, TLS_1_3, .server_name = rows[i].first};
		char second[16] = "";
		struct meeting m;
		meeting_init(&m, c, STR(""), &far);
		if (rows[i].second)
			snprintf(second, sizeof(second), "%s", rows[i].second);
		SSL_set_msg_callback(m.far, ask_for_another_name);
		SSL_set_msg_callback_arg(m.far, rows[i].second ? second : NULL);
		assert_int_equal(SSL_set1_groups_list(m.far, "P-521:X25519"), 1);
		assert_int_equal(meeting_run(&m), rows[i].outcome);
		if (rows[i].outcome != TLSHS_ok)
			assert_non_null(strstr(m.far_error, "alert illegal parameter"));
		meeting_fini(&m);
	}
	tlshs_context_put(c);
}

static void a_peer_that_gives_up_is_told_by_its_alert(void **state)
{
	struct tlshs_context_conf conf = server();
	struct far_conf far = {TLSHS_CLIENT, TLS1_2_VERSION, TLS1_2_VERSION, .ca = &alien_ca};
	expect(&conf, &far, TLSHS_peer_alert_certificate, "certificate verify failed");
}

// A record's header, then as many bytes as asked for.
static struct tlshs_handshake *fed(struct tlshs_context *c, size_t len)
{
	static const uint8_t head[] = {22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff};
	struct tlshs_handshake *h = tlshs_handshake_new(c, STR(""), 0);
	uint8_t *bytes = calloc(1, len);
	assert_non_null(h);
	assert_non_null(bytes);
	for (size_t at = 0; at + 5 <= len; at += 5 + 16384)
		memcpy(bytes + at, head, at || len < sizeof(head) ? 5 : sizeof(head));
	tlshs_handshake_feed(h, bytes, len);
	free(bytes);
	return h;
}

static void tls_63_a_client_hello_beyond_16_kib_is_refused(void **state)
{
	struct tlshs_context_conf conf = server();
	struct tlshs_context *c = context_good(&conf);
	struct tlshs_handshake *h = fed(c, 16384);
	assert_false(tlshs_handshake_ended(h));
	tlshs_handshake_free(h);
	h = fed(c, 40000);
	assert_true(tlshs_handshake_ended(h));
	assert_int_equal(tlshs_handshake_outcome(h), TLSHS_hello_too_large);
	uint8_t alert[16];
	assert_int_equal(tlshs_handshake_drain(h, alert, sizeof(alert)), 7);
	assert_memory_equal(alert, "\25\3\3\0\2\2\57", 7);
	tlshs_handshake_free(h);
	tlshs_context_put(c);
}

// The client's share is of a group that we do not have.
static void meet_with_retry(struct meeting *m, struct tlshs_context *c)
{
	meeting_init(m, c, STR(""), &(struct far_conf){TLSHS_CLIENT, TLS1_3_VERSION});
	assert_int_equal(SSL_set1_groups_list(m->far, "P-521:P-256"), 1);
}

static void tls_63_so_is_one_behind_a_hello_retry_request(void **state)
{
	static const uint8_t endless[5 + 16384] = {22, 3, 3, 0x40, 0, 1, 0, 0xff, 0xff};
	struct tlshs_context_conf conf = server();
	struct tlshs_context *c = context_good(&conf);
	struct meeting m;
	uint8_t bytes[2048];
	meet_with_retry(&m, c);
	assert_int_equal(meeting_run(&m), TLSHS_ok);
	meeting_fini(&m);
	meet_with_retry(&m, c);
	meeting_far_step(&m);
	int n = BIO_read(m.far_out, bytes, sizeof(bytes));
	assert_false(tlshs_handshake_feed(m.h, bytes, (size_t)n));
	assert_true(tlshs_handshake_drain(m.h, bytes, sizeof(bytes)) > 0);
	assert_false(tlshs_handshake_feed(m.h, endless, sizeof(endless)));
	assert_true(tlshs_handshake_feed(m.h, endless, 5 + 64));
	assert_int_equal(tlshs_handshake_outcome(m.h), TLSHS_hello_too_large);
	assert_int_equal(tlshs_handshake_drain(m.h, bytes, sizeof(bytes)), 7);
	assert_memory_equal(bytes, "\25\3\3\0\2\2\57", 7);
	meeting_fini(&m);
	tlshs_context_put(c);
}

// TH-128: what a hello must not be longer than is refused before a key is touched for it.
static void th_128_bytes_cost_their_copy_until_it_is_their_turn(void **state)
{
	struct tlshs_context_conf conf = server();
	struct tlshs_context *c = context_good(&conf);
	struct meeting m;
	uint8_t bytes[2048], out[64];
	meeting_init_far(&m, &(struct far_conf){TLSHS_CLIENT, .ca = &ca});
	meeting_far_step(&m);
	int n = BIO_read(m.far_out, bytes, sizeof(bytes));
	assert_true(n > 0);
	struct tlshs_handshake *h = tlshs_handshake_new(c, STR(""), 0);
	for (int at = 0; at < n; at++)
		tlshs_handshake_gather(h, bytes + at, 1);
	assert_int_equal(tlshs_handshake_drain(h, out, sizeof(out)), 0);
	assert_false(tlshs_handshake_ended(h));
	for (size_t len = (size_t)n; len <= 16384; len += sizeof(bytes))
		tlshs_handshake_gather(h, bytes, sizeof(bytes));
	assert_true(tlshs_handshake_ended(h));
	assert_int_equal(tlshs_handshake_outcome(h), TLSHS_hello_too_large);
	tlshs_handshake_run(h);
	assert_int_equal(tlshs_handshake_drain(h, out, sizeof(out)), 7); // the alert alone
	tlshs_handshake_free(h);
	h = tlshs_handshake_new(c, STR(""), 0);
	tlshs_handshake_gather(h, bytes, (size_t)n);
	tlshs_handshake_run(h);
	assert_true(tlshs_handshake_drain(h, out, sizeof(out)) > 0);
	tlshs_handshake_free(h);
	meeting_fini(&m);
	tlshs_context_put(c);
}

static void tls_63_more_certificates_than_24_kib_are_refused(void **state)
{
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		struct tlshs_context_conf conf = {.role = TLSHS_CLIENT, .ca_pem = ca.pem};
		struct far_conf far = {TLSHS_SERVER, .cert = &leaf, .n_chain = 10};
		far.min_version = far.max_version = version;
		expect(&conf, &far, TLSHS_ok, "");
		far.n_chain = 300;
		expect(&conf, &far, TLSHS_flight_too_large, "alert illegal parameter");
	}
}

static void what_is_no_tls_is_malformed(void **state)
{
	static const char *const texts[] = {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\25\3\3\0\2\2"};
	struct tlshs_context_conf conf = server();
	struct tlshs_context *c = context_good(&conf);
	for (unsigned i = 0; i < 2; i++) {
		struct tlshs_handshake *h = tlshs_handshake_new(c, STR(""), 0);
		assert_true(tlshs_handshake_feed(h, (const uint8_t *)texts[i], strlen(texts[i])));
		assert_int_equal(tlshs_handshake_outcome(h), TLSHS_malformed);
		tlshs_handshake_free(h);
	}
	tlshs_context_put(c);
}

static void a_handshake_can_be_stopped_from_outside_once(void **state)
{
	struct tlshs_context_conf conf = server();
	struct tlshs_context *c = context_good(&conf);
	struct tlshs_handshake *h = tlshs_handshake_new(c, STR(""), 0);
	tlshs_handshake_stop(h, TLSHS_timeout);
	tlshs_handshake_stop(h, TLSHS_lost);
	assert_int_equal(tlshs_handshake_outcome(h), TLSHS_timeout);
	assert_true(tlshs_handshake_feed(h, (const uint8_t *)"x", 1));
	tlshs_handshake_free(h);
	tlshs_context_put(c);
}

static void tls_193_outcomes_have_a118s_words(void **state)
{
	static const struct {
		const char *text, *word; // NULL = none
	} rows[] = {
		{"10.0.0.1:80: TLS: unknown_ca: certificate 1", "CERTIFICATE_AUTHORITY_INVALID"},
		{"TLS: certificate_name", "CERTIFICATE_HOSTNAME_MISMATCH"},
		{"TLS: timeout", "HANDSHAKE_TIMEOUT"},
		{"TLS: internal: x", "UNKNOWN_FAILURE"},
		{"TLS: peer_alert: internal error", "UNKNOWN_FAILURE"},
		{"TLS: its alert certificate_required (116)", "CERTIFICATE_VERIFICATION_FAILED"},
		{"TLS: its alert unknown_ca (48)", "CERTIFICATE_VERIFICATION_FAILED"},
		{"TLS: its alert internal_error (80)", NULL},
		{"TLS: our alert unknown_ca (48)", NULL},
		{"TLS: its alert ", NULL},
		{"TLS: out of memory", NULL},
		{"TLS: ", NULL},
		{"10.0.0.1:80: refused", NULL},
		{"", NULL},
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *word = tlshs_result_in(rows[i].text);
		if (!word != !rows[i].word || (word && strcmp(word, rows[i].word) != 0))
			fail_msg("%s: %s", rows[i].text, word ? word : "none");
	}
	for (enum tlshs_outcome o = 0; o < TLSHS_N_OUTCOMES; o++)
		assert_int_equal(tlshs_outcome_result(o) == TLSHS_RESULT_SUCCESS,
			o == TLSHS_ok || o == TLSHS_resumed);
	assert_int_equal(
		tlshs_outcome_result(TLSHS_peer_closed), TLSHS_RESULT_PEER_CONNECTION_CLOSED);
}

int main(void)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(tls_193_outcomes_have_a118s_words),
		cmocka_unit_test(tls_60_an_unknown_ca_is_refused),
		cmocka_unit_test(tls_60_a_certificate_out_of_its_time_is_refused),
		cmocka_unit_test(tls_60_a_certificate_for_another_use_is_refused),
		cmocka_unit_test(tls_60_a_certificate_without_an_accepted_name_is_refused),
		cmocka_unit_test(tls_61_a_revoked_certificate_is_refused),
		cmocka_unit_test(tls_61_an_old_crl_still_revokes),
		cmocka_unit_test(tls_61_a_crl_with_a_wrong_signature_refuses),
		cmocka_unit_test(tls_61_what_no_crl_names_is_accepted),
		cmocka_unit_test(tls_61_a_ca_that_is_no_root_needs_no_crl_of_its_issuers),
		cmocka_unit_test(tls_57_a_peer_of_no_known_trust_domain_is_refused),
		cmocka_unit_test(
			tls_56_a_client_without_a_certificate_is_refused_if_it_is_required),
		cmocka_unit_test(tls_62_old_versions_are_refused),
		cmocka_unit_test(tls_62_ciphers_without_ecdhe_and_aead_are_refused),
		cmocka_unit_test(tls_54_without_a_common_protocol_nobody_speaks),
		cmocka_unit_test(tls_55_a_name_that_is_not_served_is_refused),
		cmocka_unit_test(tls_271_a_client_that_begins_again_asks_for_the_same_name),
		cmocka_unit_test(a_peer_that_gives_up_is_told_by_its_alert),
		cmocka_unit_test(tls_63_a_client_hello_beyond_16_kib_is_refused),
		cmocka_unit_test(tls_63_so_is_one_behind_a_hello_retry_request),
		cmocka_unit_test(th_128_bytes_cost_their_copy_until_it_is_their_turn),
		cmocka_unit_test(tls_63_more_certificates_than_24_kib_are_refused),
		cmocka_unit_test(what_is_no_tls_is_malformed),
		cmocka_unit_test(a_handshake_can_be_stopped_from_outside_once),
	};
	return cmocka_run_group_tests_name("tlshs/refusals", suite, setup, teardown);
}
