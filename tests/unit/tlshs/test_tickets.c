// SPDX-License-Identifier: Apache-2.0
// Tickets of our servers, used by OpenSSL as clients should: each of 1.3 once. Hours pass at once,
// and no time does meanwhile.
#include "tests/support/check.h"
#include "tests/unit/tlshs/meeting.h"

#include <time.h>

#define HOUR_S 3600
#define RETURNS 20

static struct pki_cert ca, leaf, client;
static time_t began_s, passed_s;
static unsigned n_tickets; // that the client of the last visit got

// Takes the place of the C library's, for us and for the TLS library.
time_t time(time_t *ret)
{
	time_t now_s = began_s + passed_s;
	if (ret)
		*ret = now_s;
	return now_s;
}

static int setup(void **state)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	began_s = now.tv_sec;
	ca = pki_make((struct pki_conf){"ca"});
	leaf = pki_make((struct pki_conf){"leaf", &ca, "DNS:a.test"});
	client = pki_make((struct pki_conf){"client", &ca, "URI:spiffe://one.test/c"});
	return 0;
}

static int teardown(void **state)
{
	pki_end();
	return 0;
}

// names: that are served; NULL = all.
static struct tlshs_context *server_of(
	const struct pki_cert *cert, struct str cas, const struct str *names, uint32_t n_names)
{
	struct tlshs_context_conf conf = {.role = TLSHS_SERVER,
		.certificate_pem = cert->pem,
		.key_pem = cert->key_pem,
		.ca_pem = cas,
		.require_peer_certificate = cas.len > 0,
		.server_names = names,
		.n_server_names = n_names,
		.ticket_secret = STR("0123456789abcdef0123456789abcdef")};
	return context_good(&conf);
}

// cas: "" = clients are asked for no certificate.
static struct tlshs_context *server(struct str cas)
{
	return server_of(&leaf, cas, NULL, 0);
}

static int on_session(SSL *ssl, SSL_SESSION *session)
{
	n_tickets++;
	return 0;
}

struct visitor {
	uint16_t version;
	const struct pki_cert *cert; // NULL = none
	SSL_SESSION *session; // the newest; NULL = none
};

static enum tlshs_outcome visit(struct visitor *v, struct tlshs_context *c)
{
	struct far_conf far = {.role = TLSHS_CLIENT, .ca = &ca, .cert = v->cert};
	struct meeting m;
	far.min_version = far.max_version = v->version;
	far.session = v->session;
	if (v->session) // OpenSSL would not offer one that is over: let the server judge
		SSL_SESSION_set_time(v->session, (long)time(NULL));
	meeting_init(&m, c, STR(""), &far);
	SSL_CTX_set_session_cache_mode(
		m.far_ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(m.far_ctx, on_session);
	n_tickets = 0;
	enum tlshs_outcome outcome = meeting_run(&m);
	if (outcome == TLSHS_ok) {
		outcome = m.result.resumed ? TLSHS_resumed : TLSHS_ok;
		assert_int_equal(m.result.peer.present, v->cert != NULL);
		meeting_talk(&m);
		SSL_SESSION_free(v->session);
		v->session = SSL_get1_session(m.far);
		SSL_set_shutdown(m.far, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	}
	meeting_fini(&m);
	return outcome;
}

static struct str ticket_of(const struct visitor *v)
{
	const unsigned char *p;
	size_t len;
	SSL_SESSION_get0_ticket(v->session, &p, &len);
	return (struct str){(const char *)p, len};
}

// How many seconds its newest ticket is for, from its full handshake on.
static unsigned long until_s(const struct visitor *v)
{
	return SSL_SESSION_get_ticket_lifetime_hint(v->session) + (unsigned long)passed_s;
}

static void tls_237_who_uses_a_ticket_once_resumes_each_time(void **state)
{
	struct tlshs_context *all[] = {server(ca.pem), server(ca.pem)};
	struct visitor v = {TLS_1_3, &client, NULL};
	passed_s = 0;
	assert_int_equal(visit(&v, all[0]), TLSHS_ok);
	for (unsigned i = 1; i < RETURNS; i++) {
		SSL_SESSION *used = v.session;
		assert_int_equal(SSL_SESSION_up_ref(used), 1);
		struct visitor before = {.session = used};
		assert_int_equal(visit(&v, all[i % 2]), TLSHS_resumed);
		assert_int_equal(n_tickets, 1);
		assert_false(str_eq(ticket_of(&v), ticket_of(&before)));
		SSL_SESSION_free(used);
	}
	SSL_SESSION_free(v.session);
	tlshs_context_put(all[0]);
	tlshs_context_put(all[1]);
}

static void tls_237_a_ticket_of_12_is_used_again_and_brings_no_other(void **state)
{
	struct tlshs_context *c = server(ca.pem);
	struct visitor v = {TLS_1_2, &client, NULL};
	passed_s = 0;
	assert_int_equal(visit(&v, c), TLSHS_ok);
	assert_int_equal(n_tickets, 1);
	for (; passed_s < HOUR_S; passed_s += 500) { // its key becomes the one before
		assert_int_equal(visit(&v, c), TLSHS_resumed);
		assert_int_equal(n_tickets, 0);
	}
	SSL_SESSION_free(v.session);
	tlshs_context_put(c);
}

// Of a client that comes back again and again; then: how it fares when all is over.
static void lasts(struct visitor v, struct str cas, unsigned long for_s, enum tlshs_outcome then)
{
	struct tlshs_context *c = server(cas);
	bool renews = v.version == TLS_1_3;
	passed_s = 0;
	assert_int_equal(visit(&v, c), TLSHS_ok);
	assert_int_equal(until_s(&v), for_s);
	for (passed_s = 100; (unsigned long)passed_s < for_s - 100; passed_s += 100) {
		assert_int_equal(visit(&v, c), TLSHS_resumed);
		assert_int_equal(n_tickets, renews);
		if (renews)
			assert_int_equal(until_s(&v), for_s);
	}
	passed_s = (time_t)for_s - 30;
	assert_int_equal(visit(&v, c), TLSHS_resumed);
	assert_int_equal(n_tickets, 0);
	passed_s = (time_t)for_s + 1;
	assert_int_equal(visit(&v, c), then);
	if (then == TLSHS_ok)
		assert_int_equal(until_s(&v) - (unsigned long)passed_s, for_s);
	SSL_SESSION_free(v.session);
	tlshs_context_put(c);
}

static void tls_238_all_that_is_resumed_ends_an_hour_after_its_full_handshake(void **state)
{
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		lasts((struct visitor){version, NULL, NULL}, STR(""), HOUR_S, TLSHS_ok);
		lasts((struct visitor){version, &client, NULL}, ca.pem, HOUR_S, TLSHS_ok);
	}
}

static void tls_238_or_when_a_certificate_of_the_clients_chain_does(void **state)
{
	passed_s = 0;
	struct pki_cert brief = pki_make((struct pki_conf){
				"brief", &ca, .to_seconds = 900, .from_days = -1}),
			middle = pki_make((struct pki_conf){
				"middle", &ca, .is_ca = true, .to_seconds = 1200, .from_days = -1}),
			below = pki_make((struct pki_conf){"below", &middle});
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		lasts((struct visitor){version, &brief, NULL}, ca.pem, 900,
			TLSHS_certificate_expired);
		lasts((struct visitor){version, &below, NULL}, middle.pem, 1200,
			TLSHS_certificate_expired);
	}
}

// TLS-59: a client that comes back to a server with other names shakes hands in full.
static void tls_59_a_session_goes_on_where_our_names_are_the_same(void **state)
{
	static const struct str one[] = {STR("a.test")}, two[] = {STR("a.test"), STR("b.test")};
	struct pki_cert renewed = pki_make((struct pki_conf){"leaf", &ca, "DNS:a.test"}),
			subject = pki_make((struct pki_conf){"other", &ca, "DNS:a.test"}),
			san = pki_make((struct pki_conf){"leaf", &ca, "DNS:b.test"}),
			more = pki_make((struct pki_conf){"leaf", &ca, "DNS:a.test,DNS:b.test"}),
			without = pki_make((struct pki_conf){"leaf", &ca, NULL});
	const struct {
		const struct pki_cert *cert;
		const struct str *names;
		uint32_t n_names;
		enum tlshs_outcome outcome;
	} rows[] = {
		{&leaf, one, 1, TLSHS_resumed},
		{&renewed, one, 1, TLSHS_resumed},
		{&subject, one, 1, TLSHS_ok},
		{&san, one, 1, TLSHS_ok},
		{&more, one, 1, TLSHS_ok},
		{&without, one, 1, TLSHS_ok},
		{&leaf, two, 2, TLSHS_ok},
		{&leaf, NULL, 0, TLSHS_ok},
	};
	passed_s = 0;
	for (unsigned i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		struct visitor v = {i % 2 ? TLS_1_2 : TLS_1_3, NULL, NULL};
		struct tlshs_context *first = server_of(&leaf, STR(""), one, 1);
		struct tlshs_context *then = server_of(
			rows[i / 2].cert, STR(""), rows[i / 2].names, rows[i / 2].n_names);
		assert_int_equal(visit(&v, first), TLSHS_ok);
		assert_int_equal(visit(&v, then), rows[i / 2].outcome);
		SSL_SESSION_free(v.session);
		tlshs_context_put(first);
		tlshs_context_put(then);
	}
}

int main(void)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(tls_237_who_uses_a_ticket_once_resumes_each_time),
		cmocka_unit_test(tls_237_a_ticket_of_12_is_used_again_and_brings_no_other),
		cmocka_unit_test(tls_59_a_session_goes_on_where_our_names_are_the_same),
		cmocka_unit_test(tls_238_all_that_is_resumed_ends_an_hour_after_its_full_handshake),
		cmocka_unit_test(tls_238_or_when_a_certificate_of_the_clients_chain_does),
	};
	return cmocka_run_group_tests_name("tlshs/tickets", suite, setup, teardown);
}
