// SPDX-License-Identifier: Apache-2.0
// Clients of ours resume sessions with unmodified OpenSSL, and never where they must not.
#include "lb/base/rand.h"
#include "tests/support/check.h"
#include "tests/unit/tlshs/meeting.h"
#include "tlshs/link.h"
#include "tlshs/promises.h"
#include "tlshs/session.h"
#include "tlshs/session_der.h"
#include "tlshs/sessions.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PEER 7 // the server's address, as a hash
#define NAME "a.test"

static struct pki_cert ca, more_ca, between, leaf, other_leaf, client;
static bool accepts = true;

static int setup(void **state)
{
	ca = pki_make((struct pki_conf){"ca"});
	more_ca = pki_make((struct pki_conf){"more"});
	between = pki_make((struct pki_conf){"between", &ca, .is_ca = true});
	leaf = pki_make((struct pki_conf){"leaf", &between, "DNS:a.test,URI:spiffe://one.test/x"});
	other_leaf = pki_make((struct pki_conf){"other", &between, "DNS:a.test"});
	client = pki_make((struct pki_conf){"client", &ca, "URI:spiffe://one.test/c"});
	return 0;
}

static int teardown(void **state)
{
	pki_end();
	return 0;
}

static bool accept_if(const void *arg, const struct tlshs_peer *p, struct str name)
{
	return *(const bool *)arg;
}

static struct tlshs_context_conf ours(void)
{
	static const struct str alpn[] = {STR("h2")};
	return (struct tlshs_context_conf){.role = TLSHS_CLIENT,
		.alpn = alpn,
		.n_alpn = 1,
		.ca_pem = pki_join(between.pem, ca.pem),
		.certificate_pem = client.pem,
		.key_pem = client.key_pem,
		.matcher = {accept_if, NULL, &accepts},
		.max_sessions = 4};
}

static struct far_conf theirs(uint16_t version)
{
	return (struct far_conf){.role = TLSHS_SERVER,
		.cert = &leaf,
		.ca = &ca,
		.min_version = version,
		.max_version = version,
		.alpn = "\2h2",
		.peer = PEER};
}

static SSL_CTX *server(uint16_t version, unsigned n_tickets)
{
	const struct far_conf conf = theirs(version);
	SSL_CTX *ctx = meeting_far_ctx(&conf);
	SSL_CTX_set_num_tickets(ctx, n_tickets);
	SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"x", 1);
	return ctx;
}

static uint64_t counted(enum tlshs_session_counter c)
{
	return counter_read(&tlshs_sessions_counters().values[c]);
}

static struct tlshs_origin origin(struct tlshs_context *c)
{
	return (struct tlshs_origin){c, PEER, .name_len = sizeof(NAME) - 1, .name = NAME};
}

// A whole connection: true = resumed.
static bool meet_as(
	struct tlshs_context *c, SSL_CTX *ctx, uint16_t version, uint64_t peer, const char *name)
{
	struct far_conf far = theirs(version);
	struct meeting m;
	far.ctx = ctx;
	far.peer = peer;
	meeting_init(&m, c, str_from(name), &far);
	assert_int_equal(meeting_run(&m), TLSHS_ok);
	bool resumed = m.result.resumed;
	assert_int_equal(SSL_session_reused(m.far), resumed);
	assert_int_equal(m.result.alpn_len, 2);
	assert_true(m.result.peer.present);
	assert_true(str_eq(tlshs_peer_subject(&m.result.peer), STR("CN=leaf")));
	assert_int_equal(m.result.peer.n_sans, 2);
	assert_true(str_eq(tlshs_peer_san(&m.result.peer, 1), STR("spiffe://one.test/x")));
	meeting_talk(&m);
	X509 *x = SSL_get0_peer_certificate(m.far); // who we are is the same as well
	assert_non_null(x);
	assert_int_equal(X509_cmp(x, client.x), 0);
	SSL_set_shutdown(m.far, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	meeting_fini(&m);
	return resumed;
}

static bool meet(struct tlshs_context *c, SSL_CTX *ctx, uint16_t version)
{
	return meet_as(c, ctx, version, PEER, NAME);
}

static void tls_226_a_client_resumes_its_sessions(void **state)
{
	static const char *const ciphers[][2] = {
		{"TLS_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"},
		{"TLS_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"},
		{"TLS_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"}};
	struct tlshs_context_conf conf = ours();
	for (unsigned i = 0; i < 6; i++) {
		uint16_t version = i & 1 ? TLS_1_2 : TLS_1_3;
		struct tlshs_context *c = context_good(&conf);
		SSL_CTX *ctx = server(version, 2);
		SSL_CTX_set_ciphersuites(ctx, ciphers[i / 2][0]);
		SSL_CTX_set_cipher_list(ctx, ciphers[i / 2][1]);
		assert_false(meet(c, ctx, version));
		for (unsigned k = 0; k < 5; k++)
			assert_true(meet(c, ctx, version));
		SSL_CTX_free(ctx);
		tlshs_context_put(c);
		assert_int_equal(tlshs_sessions_n(), 0);
	}
}

// By sessions that the server keeps under an id.
static void tls_226_a_server_of_12_need_not_have_tickets(void **state)
{
	struct tlshs_context_conf conf = ours();
	struct tlshs_context *c = context_good(&conf);
	SSL_CTX *ctx = server(TLS_1_2, 0);
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	assert_false(meet(c, ctx, TLS_1_2));
	assert_true(meet(c, ctx, TLS_1_2));
	assert_true(meet(c, ctx, TLS_1_2));
	SSL_CTX_free(ctx);
	tlshs_context_put(c);
}

static void tls_227_a_session_is_for_one_handshake(void **state)
{
	struct tlshs_context_conf conf = ours();
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		struct tlshs_context *c = context_good(&conf);
		SSL_CTX *ctx = server(version, 1);
		struct far_conf far = theirs(version);
		struct meeting m[2];
		far.ctx = ctx;
		assert_false(meet(c, ctx, version));
		assert_int_equal(tlshs_sessions_n(), 1);
		for (unsigned i = 0; i < 2; i++)
			meeting_init(&m[i], c, STR(NAME), &far);
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(meeting_run(&m[i]), TLSHS_ok);
			assert_int_equal(m[i].result.resumed, i == 0);
			meeting_fini(&m[i]);
		}
		SSL_CTX_free(ctx);
		tlshs_context_put(c);
	}
}

static void tls_228_another_server_or_name_is_a_full_handshake(void **state)
{
	struct tlshs_context_conf conf = ours();
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		struct tlshs_context *c = context_good(&conf);
		SSL_CTX *ctx = server(version, 1);
		assert_false(meet(c, ctx, version));
		assert_false(meet_as(c, ctx, version, PEER + 1, NAME));
		assert_false(meet_as(c, ctx, version, PEER, "b.test"));
		assert_false(meet_as(c, ctx, version, PEER, ""));
		assert_false(meet_as(c, ctx, version, 0, NAME)); // nobody knows which it is
		assert_true(meet(c, ctx, version));
		assert_true(meet_as(c, ctx, version, PEER + 1, NAME));
		assert_true(meet_as(c, ctx, version, PEER, ""));
		SSL_CTX_free(ctx);
		tlshs_context_put(c);
	}
}

// Whatever changes, a context is made anew; also if nothing has.
static void tls_228_what_a_context_goes_by_has_sessions_of_its_own(void **state)
{
	struct tlshs_context_conf confs[] = {ours(), ours(), ours(), ours(), ours()};
	confs[1].ca_pem = pki_join(confs[0].ca_pem, more_ca.pem);
	confs[2].crl_pem = pki_crl(&between, NULL, 1);
	confs[3].certificate_pem = pki_join(client.pem, ca.pem);
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		SSL_CTX *ctx = server(version, 1);
		struct tlshs_context *c = context_good(&confs[0]);
		assert_false(meet(c, ctx, version));
		for (unsigned i = 1; i < 5; i++) {
			struct tlshs_context *d = context_good(&confs[i]);
			assert_false(meet(d, ctx, version));
			assert_true(meet(d, ctx, version));
			tlshs_context_put(d);
			assert_int_equal(tlshs_sessions_n(), 1); // the first one's
		}
		assert_true(meet(c, ctx, version));
		tlshs_context_put(c);
		assert_int_equal(tlshs_sessions_n(), 0);
		SSL_CTX_free(ctx);
	}
}

static void tls_228_a_revoked_server_is_refused_although_it_has_a_session(void **state)
{
	struct tlshs_context_conf conf = ours(), later = conf;
	later.crl_pem = pki_crl(&between, &leaf, 1);
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		SSL_CTX *ctx = server(version, 1);
		struct tlshs_context *c = context_good(&conf), *d = context_good(&later);
		struct far_conf far = theirs(version);
		struct meeting m;
		far.ctx = ctx;
		assert_false(meet(c, ctx, version));
		meeting_init(&m, d, STR(NAME), &far);
		assert_int_equal(meeting_run(&m), TLSHS_certificate_revoked);
		meeting_fini(&m);
		tlshs_context_put(c);
		tlshs_context_put(d);
		SSL_CTX_free(ctx);
	}
}

static void tls_228_names_are_judged_of_each_session_again(void **state)
{
	struct tlshs_context_conf conf = ours();
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		SSL_CTX *ctx = server(version, 1);
		struct tlshs_context *c = context_good(&conf);
		struct far_conf far = theirs(version);
		struct meeting m;
		far.ctx = ctx;
		assert_false(meet(c, ctx, version));
		uint64_t offered = counted(TLSHS_SESSIONS_offered);
		accepts = false;
		meeting_init(&m, c, STR(NAME), &far);
		assert_int_equal(meeting_run(&m), TLSHS_certificate_name);
		accepts = true;
		assert_int_equal(counted(TLSHS_SESSIONS_offered), offered);
		meeting_fini(&m);
		tlshs_context_put(c);
		SSL_CTX_free(ctx);
	}
}

// Until when a session is good that a server with these certificates gives now.
static int64_t lasts_s(struct pki_cert *cert, struct str cas, uint16_t version, long ticket_s)
{
	struct tlshs_context_conf conf = ours();
	conf.ca_pem = cas;
	struct tlshs_context *c = context_good(&conf);
	struct far_conf far = theirs(version);
	struct meeting m;
	far.cert = cert;
	far.ctx = meeting_far_ctx(&far);
	SSL_CTX_set_timeout(far.ctx, ticket_s);
	SSL_CTX_set_session_id_context(far.ctx, (const unsigned char *)"x", 1);
	meeting_init(&m, c, STR(NAME), &far);
	assert_int_equal(meeting_run(&m), TLSHS_ok);
	meeting_talk(&m);
	meeting_fini(&m);
	SSL_CTX_free(far.ctx);
	const struct tlshs_origin o = origin(c);
	struct tlshs_session *s = tlshs_sessions_take(&o, 0);
	assert_non_null(s);
	int64_t until_s = s->until_s;
	tlshs_sessions_put(s);
	uint64_t expired = counted(TLSHS_SESSIONS_expired);
	assert_null(tlshs_sessions_take(&o, until_s));
	assert_true(counted(TLSHS_SESSIONS_expired) > expired);
	tlshs_context_put(c);
	return until_s - time(NULL);
}

static void tls_229_no_session_outlives_ticket_certificates_or_an_hour(void **state)
{
	struct pki_cert brief = pki_make((struct pki_conf){
				"leaf", &ca, "DNS:a.test", .to_seconds = 900, .from_days = -1}),
			middle = pki_make((struct pki_conf){
				"middle", &ca, .is_ca = true, .to_seconds = 1200, .from_days = -1}),
			below = pki_make((struct pki_conf){"leaf", &middle, "DNS:a.test"}),
			plain = pki_make((struct pki_conf){"leaf", &ca, "DNS:a.test"});
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		assert_in_range(lasts_s(&brief, ca.pem, version, 7200), 880, 900);
		assert_in_range(lasts_s(&below, middle.pem, version, 7200), 1180, 1200);
		assert_in_range(lasts_s(&plain, ca.pem, version, 7200), 3580, 3600);
		assert_in_range(lasts_s(&plain, ca.pem, version, 700), 680, 700);
	}
}

// What follows from a session does not begin anew.
static void tls_229_the_hour_is_that_of_the_full_handshake(void **state)
{
	struct tlshs_context_conf conf = ours();
	struct tlshs_context *c = context_good(&conf);
	const struct tlshs_origin o = origin(c);
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		SSL_CTX *ctx = server(version, 1);
		assert_false(meet(c, ctx, version));
		struct tlshs_session *s = tlshs_sessions_take(&o, time(NULL));
		assert_non_null(s);
		int64_t until_s = s->origin.until_s -= 1000;
		tlshs_sessions_put(s);
		assert_true(meet(c, ctx, version));
		s = tlshs_sessions_take(&o, time(NULL));
		assert_non_null(s);
		assert_int_equal(s->until_s, until_s);
		tlshs_session_free(s);
		SSL_CTX_free(ctx);
	}
	tlshs_context_put(c);
}

static void tls_230_a_server_may_decline(void **state)
{
	struct tlshs_context_conf conf = ours();
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		struct tlshs_context *c = context_good(&conf);
		SSL_CTX *before = server(version, 1), *after = server(version, 1);
		uint64_t declined = counted(TLSHS_SESSIONS_declined);
		assert_false(meet(c, before, version));
		assert_false(meet(c, after, version)); // which has other keys
		assert_int_equal(counted(TLSHS_SESSIONS_declined), declined + 1);
		assert_true(meet(c, after, version));
		SSL_CTX_free(before);
		SSL_CTX_free(after);
		tlshs_context_put(c);
	}
}

// A session of one version is offered to who then chooses the other.
static void tls_230_a_server_may_have_another_version_meanwhile(void **state)
{
	struct tlshs_context_conf conf = ours();
	struct tlshs_context *c = context_good(&conf);
	SSL_CTX *of_12 = server(TLS_1_2, 1), *of_13 = server(TLS_1_3, 1);
	uint64_t declined = counted(TLSHS_SESSIONS_declined);
	assert_false(meet(c, of_12, TLS_1_2));
	for (unsigned i = 1; i <= 3; i++) {
		assert_false(meet(c, of_13, TLS_1_3));
		assert_true(meet(c, of_13, TLS_1_3));
		assert_false(meet(c, of_12, TLS_1_2));
		assert_true(meet(c, of_12, TLS_1_2));
		assert_int_equal(counted(TLSHS_SESSIONS_declined), declined + 2 * i);
	}
	SSL_CTX_free(of_12);
	SSL_CTX_free(of_13);
	tlshs_context_put(c);
}

// Whatever the server makes of it, the session is offered twice.
static void tls_226_a_server_may_ask_for_another_group(void **state)
{
	struct tlshs_context_conf conf = ours();
	struct tlshs_context *c = context_good(&conf);
	SSL_CTX *before = server(TLS_1_3, 1), *after = server(TLS_1_3, 1);
	SSL_CTX_set1_groups_list(before, "P-384");
	SSL_CTX_set1_groups_list(after, "P-384");
	assert_false(meet(c, before, TLS_1_3));
	assert_true(meet(c, before, TLS_1_3));
	assert_false(meet(c, after, TLS_1_3));
	assert_true(meet(c, after, TLS_1_3));
	SSL_CTX_free(before);
	SSL_CTX_free(after);
	tlshs_context_put(c);
}

static void tls_230_a_handshake_that_fails_with_a_session_is_the_last_with_one(void **state)
{
	struct tlshs_context_conf conf = ours();
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		static const uint8_t alert[] = {21, 3, 3, 0, 2, 2, 51}; // decrypt_error
		struct tlshs_context *c = context_good(&conf);
		SSL_CTX *ctx = server(version, 2);
		assert_false(meet(c, ctx, version));
		assert_false(meet_as(c, ctx, version, PEER + 1, NAME));
		uint32_t n = tlshs_sessions_n();
		struct tlshs_handshake *h = tlshs_handshake_new(c, STR(NAME), PEER);
		assert_true(tlshs_handshake_feed(h, alert, sizeof(alert)));
		assert_int_equal(tlshs_handshake_outcome(h), TLSHS_peer_alert);
		tlshs_handshake_free(h);
		assert_int_equal(tlshs_sessions_n(), n / 2);
		assert_false(meet(c, ctx, version));
		assert_true(meet_as(c, ctx, version, PEER + 1, NAME));
		SSL_CTX_free(ctx);
		tlshs_context_put(c);
	}
}

// As when its connection is reset, or time is up: no answer came that could end it here.
static void tls_230_a_handshake_with_a_session_that_is_given_up_has_failed(void **state)
{
	struct tlshs_context_conf conf = ours();
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		struct tlshs_context *c = context_good(&conf);
		SSL_CTX *ctx = server(version, 2);
		struct far_conf far = theirs(version);
		struct meeting m[2];
		far.ctx = ctx;
		for (unsigned i = 0; i < 2; i++)
			meeting_init(&m[i], c, STR(NAME), &far);
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(meeting_run(&m[i]), TLSHS_ok);
			meeting_talk(&m[i]);
			meeting_fini(&m[i]);
		}
		assert_true(tlshs_sessions_n() >= 2);
		tlshs_handshake_free(tlshs_handshake_new(c, STR(NAME), PEER));
		assert_int_equal(tlshs_sessions_n(), 0);
		assert_false(meet(c, ctx, version));
		SSL_CTX_free(ctx);
		tlshs_context_put(c);
	}
}

// As OpenSSL is that verifies clients and was told no context of sessions: an alert each time.
static void tls_236_a_server_that_cannot_resume_is_not_asked_again_at_once(void **state)
{
	struct tlshs_context_conf conf = ours();
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		struct tlshs_context *c = context_good(&conf);
		SSL_CTX *ctx = server(version, 1);
		struct far_conf far = theirs(version);
		struct meeting m;
		far.ctx = ctx;
		SSL_CTX_set_session_id_context(ctx, NULL, 0);
		assert_false(meet(c, ctx, version));
		meeting_init(&m, c, STR(NAME), &far);
		assert_int_equal(meeting_run(&m), TLSHS_peer_alert);
		meeting_fini(&m);
		for (unsigned i = 0; i < 10; i++)
			assert_false(meet(c, ctx, version));
		const struct tlshs_origin o = origin(c);
		assert_null(tlshs_sessions_take(&o, time(NULL) + TLSHS_PAUSE_S - 60));
		struct tlshs_session *s = tlshs_sessions_take(&o, time(NULL) + TLSHS_PAUSE_S);
		assert_non_null(s);
		tlshs_session_free(s);
		tlshs_context_put(c);
		c = context_good(&conf); // wherever it lies
		SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"x", 1);
		assert_false(meet(c, ctx, version));
		assert_true(meet(c, ctx, version));
		SSL_CTX_free(ctx);
		tlshs_context_put(c);
	}
}

static void tls_231_without_extended_master_secret_nothing_is_kept(void **state)
{
	struct tlshs_context_conf conf = ours();
	struct tlshs_context *c = context_good(&conf);
	SSL_CTX *ctx = server(TLS_1_2, 1);
	SSL_CTX_set_options(ctx, SSL_OP_NO_EXTENDED_MASTER_SECRET);
	assert_false(meet(c, ctx, TLS_1_2));
	assert_int_equal(tlshs_sessions_n(), 0);
	SSL_CTX_free(ctx);
	tlshs_context_put(c);
}

static void tls_232_so_many_sessions_are_kept_of_a_server(void **state)
{
	struct tlshs_context_conf conf = ours();
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		static const uint32_t most[] = {0, 1, 3};
		for (unsigned i = 0; i < 3; i++) {
			conf.max_sessions = most[i];
			struct tlshs_context *c = context_good(&conf);
			SSL_CTX *ctx = server(version, 2);
			struct far_conf far = theirs(version);
			struct meeting m[5];
			far.ctx = ctx;
			for (unsigned k = 0; k < 5; k++) // all begin before there are sessions
				meeting_init(&m[k], c, STR(NAME), &far);
			for (unsigned k = 0; k < 5; k++) {
				assert_int_equal(meeting_run(&m[k]), TLSHS_ok);
				meeting_talk(&m[k]);
				meeting_fini(&m[k]);
			}
			assert_int_equal(tlshs_sessions_n(), most[i]);
			assert_int_equal(meet(c, ctx, version), most[i] > 0);
			SSL_CTX_free(ctx);
			tlshs_context_put(c);
		}
	}
}

// A client of 1.3 that is over; its tickets are made up by the test.
static struct tlshs_promise *promise(struct tlshs_context *c)
{
	struct far_conf far = theirs(TLS_1_3);
	struct meeting m;
	far.ctx = server(TLS_1_3, 0);
	meeting_init(&m, c, STR(NAME), &far);
	assert_int_equal(meeting_run(&m), TLSHS_ok);
	assert_non_null(m.promise);
	struct tlshs_promise *p = m.promise;
	m.promise = NULL;
	meeting_fini(&m);
	SSL_CTX_free(far.ctx);
	return p;
}

struct made {
	uint32_t lifetime_s;
	uint8_t nonce_len;
	uint16_t len;
};

static size_t make_ticket(uint8_t *to, struct made m)
{
	uint8_t *p = to;
	for (int i = 3; i >= 0; i--)
		*p++ = (uint8_t)(m.lifetime_s >> (8 * i));
	memset(p, 0xff, 4);
	p += 4;
	*p++ = m.nonce_len;
	memset(p, 1, m.nonce_len);
	p += m.nonce_len;
	*p++ = (uint8_t)(m.len >> 8);
	*p++ = (uint8_t)m.len;
	memset(p, 't', m.len);
	p += m.len;
	*p++ = 0;
	*p++ = 0;
	return (size_t)(p - to);
}

static struct tlshs_session *redeem(const struct tlshs_promise *p, struct made m)
{
	static uint8_t body[70000];
	return tlshs_promise_redeem(p, body, make_ticket(body, m), time(NULL));
}

static void tls_233_a_ticket_that_is_malformed_is_of_no_use(void **state)
{
	struct tlshs_context_conf conf = ours();
	struct tlshs_context *c = context_good(&conf);
	struct tlshs_promise *p = promise(c);
	uint8_t body[512];
	size_t len = make_ticket(body, (struct made){3600, 8, 200});
	for (size_t n = 0; n < len; n++)
		assert_null(tlshs_promise_redeem(p, body, n, 1));
	assert_null(tlshs_promise_redeem(p, body, len + 1, 1));
	static const struct made bad[] = {
		{0, 8, 200}, {60, 49, 200}, {60, 8, 0}, {60, 8, TLSHS_MAX_TICKET}, {60, 8, 16384}};
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(redeem(p, bad[i]));
	static const struct made good[] = {{UINT32_MAX, 0, 1}, {1, 48, TLSHS_MAX_TICKET - 61}};
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct tlshs_session *s = redeem(p, good[i]);
		assert_non_null(s);
		assert_true(s->until_s <= time(NULL) + TLSHS_SESSION_S);
		const uint8_t *der = s->bytes + s->peer_len;
		SSL_SESSION *x = d2i_SSL_SESSION(NULL, &der, (long)s->der_len);
		assert_non_null(x); // what we have written is what the library reads
		const unsigned char *ticket;
		size_t ticket_len;
		SSL_SESSION_get0_ticket(x, &ticket, &ticket_len);
		assert_int_equal(ticket_len, good[i].len);
		assert_int_equal(SSL_SESSION_get_ticket_lifetime_hint(x), good[i].lifetime_s);
		assert_in_range(SSL_SESSION_get_time(x), time(NULL) - 60, time(NULL));
		assert_null(SSL_SESSION_get0_peer(x));
		assert_int_equal(SSL_SESSION_get_protocol_version(x), TLS1_3_VERSION);
		SSL_SESSION_free(x);
		tlshs_session_free(s);
	}
	tlshs_promise_free(p);
	tlshs_context_put(c);
}

// Whatever is cut off, nothing is read or written beyond it.
static void an_encoding_that_is_cut_is_refused(void **state)
{
	struct tlshs_context_conf conf = ours();
	struct tlshs_context *c = context_good(&conf);
	struct tlshs_promise *p = promise(c);
	struct tlshs_session *s = redeem(p, (struct made){60, 8, 300});
	const struct tlshs_der_field field = {TLSHS_DER_AGE_ADD, {0}, UINT64_MAX};
	for (size_t n = 0; n <= s->der_len; n++) {
		char *cut = malloc(n + 1); // of its own, so that a sanitizer sees where it ends
		memcpy(cut, s->bytes + s->peer_len, n);
		uint8_t *to = malloc(tlshs_der_room((struct str){cut, n}, &field, 1));
		size_t len = tlshs_der_set((struct str){cut, n}, &field, 1, to);
		assert_int_equal(len > 0, n == s->der_len);
		free(to);
		free(cut);
	}
	tlshs_session_free(s);
	tlshs_promise_free(p);
	tlshs_context_put(c);
}

static void tls_233_random_tickets_make_full_handshakes_at_worst(void **state)
{
	struct tlshs_context_conf conf = ours();
	struct tlshs_context *c = context_good(&conf);
	struct tlshs_promise *p = promise(c);
	SSL_CTX *ctx = server(TLS_1_3, 1);
	struct rand rng;
	unsigned n_good = 0;
	rand_init(&rng, 1);
	for (unsigned i = 0; i < 50000; i++) {
		uint8_t body[512];
		size_t len = make_ticket(body, (struct made){3600, 8, 200});
		for (unsigned k = 0; k < 1 + i % 4; k++)
			body[rand_u64(&rng) % (i & 1 ? 20 : len)] = (uint8_t)rand_u64(&rng);
		struct tlshs_session *s = tlshs_promise_redeem(p, body, len, time(NULL));
		if (s)
			tlshs_sessions_put(s);
		if (s && ++n_good % 1000 == 0)
			assert_false(meet(c, ctx, TLS_1_3));
	}
	assert_true(n_good > 1000);
	SSL_CTX_free(ctx);
	tlshs_promise_free(p);
	tlshs_context_put(c);
}

// What the library encodes has the server's certificate, which may have 24 KiB.
static void tls_232_what_is_counted_is_what_is_allocated(void **state)
{
	struct tlshs_context_conf conf = ours();
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		struct tlshs_context *c = context_good(&conf);
		SSL_CTX *ctx = server(version, 1);
		assert_false(meet(c, ctx, version));
		const struct tlshs_origin o = origin(c);
		struct tlshs_session *s = tlshs_sessions_take(&o, time(NULL));
		assert_non_null(s);
		size_t len = sizeof(*s) + s->peer_len + s->der_len;
		assert_in_range(malloc_usable_size(s), len, len + 32);
		tlshs_session_free(s);
		SSL_CTX_free(ctx);
		tlshs_context_put(c);
	}
}

static void tls_232_the_store_has_its_bounds(void **state)
{
	static const struct made tickets[] = {{60, 8, 100}, {60, 8, 8000}};
	struct tlshs_context_conf conf = ours();
	conf.max_sessions = UINT32_MAX;
	for (unsigned i = 0; i < 2; i++) {
		struct tlshs_context *c = context_good(&conf);
		struct tlshs_promise *p = promise(c);
		uint32_t peak = 0, n = TLSHS_MAX_SESSIONS + 500;
		uint64_t evicted = counted(TLSHS_SESSIONS_evicted);
		for (uint32_t k = 0; k < n; k++) {
			struct tlshs_session *s = redeem(p, tickets[i]);
			s->origin.peer = k;
			tlshs_sessions_put(s);
			peak = tlshs_sessions_n() > peak ? tlshs_sessions_n() : peak;
		}
		assert_true(i == 0 ? peak == TLSHS_MAX_SESSIONS
				   : peak < TLSHS_MAX_SESSION_BYTES / 8000 && peak > 1000);
		assert_int_equal(counted(TLSHS_SESSIONS_evicted) - evicted, n - peak);
		struct tlshs_origin o = origin(c);
		o.peer = 0; // the oldest went first
		assert_null(tlshs_sessions_take(&o, 0));
		o.peer = n - 1;
		struct tlshs_session *s = tlshs_sessions_take(&o, 0);
		assert_non_null(s);
		tlshs_session_free(s);
		tlshs_promise_free(p);
		tlshs_context_put(c);
		assert_int_equal(tlshs_sessions_n(), 0);
	}
}

static void feed(struct tlshs_promises *ps, uint64_t number, struct made m)
{
	static struct tlshs_order o;
	static uint8_t body[20000];
	size_t len = make_ticket(body, m);
	o.id = number;
	o.kind = TLSHS_TICKET;
	for (size_t at = 0; at < len; at += o.len) {
		o.len = (uint16_t)(len - at < TLSHS_SLOT ? len - at : TLSHS_SLOT);
		o.n_left = (uint16_t)(len - at);
		memcpy(o.bytes, body + at, o.len);
		tlshs_promises_feed(ps, &o);
	}
}

static void tls_234_tickets_are_waited_for_so_long_and_so_many(void **state)
{
	struct tlshs_context_conf conf = ours();
	struct tlshs_context *c = context_good(&conf);
	struct tlshs_promises ps;
	struct made small = {60, 8, 100}, large = {60, 8, 8000};
	struct tlshs_promise *made[TLSHS_MAX_PROMISES + 3]; // before there are sessions
	for (unsigned i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		made[i] = promise(c);
	assert_int_equal(tlshs_promises_init(&ps), 0);
	assert_int_equal(tlshs_promises_add(&ps, NULL), 0);
	uint64_t first = tlshs_promises_add(&ps, made[0]);
	feed(&ps, first, large);
	assert_int_equal(tlshs_sessions_n(), 1);
	uint64_t late = counted(TLSHS_SESSIONS_tickets_late);
	for (unsigned i = 0; i < 5000; i++)
		feed(&ps, first, i & 1 ? large : small);
	assert_int_equal(tlshs_sessions_n(), TLSHS_MAX_TICKETS);
	assert_int_equal(counted(TLSHS_SESSIONS_tickets_late) - late, 4999);

	uint64_t second = tlshs_promises_add(&ps, made[1]);
	tlshs_promises_expire(&ps, TLSHS_PROMISE_NS - 1);
	feed(&ps, second, small);
	assert_int_equal(tlshs_sessions_n(), 3);
	tlshs_promises_expire(&ps, TLSHS_PROMISE_NS);
	feed(&ps, second, small);
	assert_int_equal(tlshs_sessions_n(), 3);

	uint64_t third = tlshs_promises_add(&ps, made[2]);
	for (unsigned i = 1; i < TLSHS_MAX_PROMISES; i++)
		tlshs_promises_add(&ps, made[2 + i]);
	feed(&ps, third, small);
	assert_int_equal(tlshs_sessions_n(), 4);
	tlshs_promises_add(&ps, made[2 + TLSHS_MAX_PROMISES]); // it gives way
	feed(&ps, third, small);
	assert_int_equal(tlshs_sessions_n(), 4);
	feed(&ps, 0, small);
	feed(&ps, UINT64_MAX, small);
	assert_int_equal(tlshs_sessions_n(), 4);
	tlshs_promises_fini(&ps);
	tlshs_context_put(c);
	assert_int_equal(tlshs_sessions_n(), 0);
}

int main(void)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(tls_226_a_client_resumes_its_sessions),
		cmocka_unit_test(tls_226_a_server_of_12_need_not_have_tickets),
		cmocka_unit_test(tls_227_a_session_is_for_one_handshake),
		cmocka_unit_test(tls_228_another_server_or_name_is_a_full_handshake),
		cmocka_unit_test(tls_228_what_a_context_goes_by_has_sessions_of_its_own),
		cmocka_unit_test(tls_228_a_revoked_server_is_refused_although_it_has_a_session),
		cmocka_unit_test(tls_228_names_are_judged_of_each_session_again),
		cmocka_unit_test(tls_229_no_session_outlives_ticket_certificates_or_an_hour),
		cmocka_unit_test(tls_229_the_hour_is_that_of_the_full_handshake),
		cmocka_unit_test(tls_230_a_server_may_decline),
		cmocka_unit_test(tls_230_a_server_may_have_another_version_meanwhile),
		cmocka_unit_test(tls_226_a_server_may_ask_for_another_group),
		cmocka_unit_test(
			tls_230_a_handshake_that_fails_with_a_session_is_the_last_with_one),
		cmocka_unit_test(tls_230_a_handshake_with_a_session_that_is_given_up_has_failed),
		cmocka_unit_test(tls_236_a_server_that_cannot_resume_is_not_asked_again_at_once),
		cmocka_unit_test(tls_231_without_extended_master_secret_nothing_is_kept),
		cmocka_unit_test(tls_232_so_many_sessions_are_kept_of_a_server),
		cmocka_unit_test(tls_232_what_is_counted_is_what_is_allocated),
		cmocka_unit_test(tls_232_the_store_has_its_bounds),
		cmocka_unit_test(tls_233_a_ticket_that_is_malformed_is_of_no_use),
		cmocka_unit_test(an_encoding_that_is_cut_is_refused),
		cmocka_unit_test(tls_233_random_tickets_make_full_handshakes_at_worst),
		cmocka_unit_test(tls_234_tickets_are_waited_for_so_long_and_so_many),
	};
	return cmocka_run_group_tests_name("tlshs/sessions", suite, setup, teardown);
}
