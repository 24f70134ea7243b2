// SPDX-License-Identifier: Apache-2.0
// Handshakes that succeed, with OpenSSL as the peer; records of ours show that the secrets are
// right.
#include "tests/support/check.h"
#include "tests/unit/tlshs/meeting.h"

static struct pki_cert ca, between, leaf, client;

static int setup(void **state)
{
	ca = pki_make((struct pki_conf){"ca"});
	between = pki_make((struct pki_conf){"between", &ca, .is_ca = true});
	leaf = pki_make((struct pki_conf){"leaf", &between, "DNS:a.test,URI:spiffe://one.test/x"});
	client = pki_make((struct pki_conf){
		"client", &ca, "URI:spiffe://one.test/c,email:c@one.test,IP:10.0.0.1"});
	return 0;
}

static int teardown(void **state)
{
	pki_end();
	return 0;
}

static struct tlshs_context_conf ours(enum tlshs_role role)
{
	struct tlshs_context_conf conf = {.role = role};
	if (role == TLSHS_SERVER) {
		conf.certificate_pem = pki_join(leaf.pem, between.pem);
		conf.key_pem = leaf.key_pem;
	} else {
		conf.ca_pem = pki_join(between.pem, ca.pem);
	}
	return conf;
}

static struct far_conf theirs(enum tlshs_role our_role)
{
	struct far_conf conf = {.role = TLSHS_CLIENT, .ca = &ca};
	if (our_role == TLSHS_CLIENT)
		conf = (struct far_conf){.role = TLSHS_SERVER, .cert = &leaf};
	return conf;
}

static const struct {
	uint16_t version;
	const char *cipher;
	enum tls_aead aead;
} suites[] = {
	{TLS_1_3, "TLS_AES_128_GCM_SHA256", TLS_AES_128_GCM},
	{TLS_1_3, "TLS_AES_256_GCM_SHA384", TLS_AES_256_GCM},
	{TLS_1_3, "TLS_CHACHA20_POLY1305_SHA256", TLS_CHACHA20_POLY1305},
	{TLS_1_2, "ECDHE-ECDSA-AES128-GCM-SHA256", TLS_AES_128_GCM},
	{TLS_1_2, "ECDHE-ECDSA-AES256-GCM-SHA384", TLS_AES_256_GCM},
	{TLS_1_2, "ECDHE-ECDSA-CHACHA20-POLY1305", TLS_CHACHA20_POLY1305},
	{TLS_1_2, "ECDHE-RSA-AES128-GCM-SHA256", TLS_AES_128_GCM},
	{TLS_1_2, "ECDHE-RSA-AES256-GCM-SHA384", TLS_AES_256_GCM},
	{TLS_1_2, "ECDHE-RSA-CHACHA20-POLY1305", TLS_CHACHA20_POLY1305},
};
#define N_SUITES (sizeof(suites) / sizeof(suites[0]))

// How each side signs.
static const struct way {
	enum pki_key key;
	int signature;
	const char *sigalgs; // the peer's; NULL = the library's
} ways[] = {
	{PKI_P256, EVP_PKEY_EC, NULL}, {PKI_P384, EVP_PKEY_EC, NULL},
	{PKI_ED25519, EVP_PKEY_ED25519, NULL}, {PKI_RSA, EVP_PKEY_RSA_PSS, NULL},
	{PKI_RSA, EVP_PKEY_RSA, "RSA+SHA256"}, // PKCS #1, of 1.2 alone
};
#define N_WAYS (sizeof(ways) / sizeof(ways[0]))

static bool may_have(const struct way *way, unsigned suite)
{
	if (suites[suite].version == TLS_1_3)
		return !way->sigalgs;
	return !strstr(suites[suite].cipher, "-RSA-") == (way->key != PKI_RSA);
}

// Whom all of a way's certificates are of.
struct family {
	struct pki_cert ca, server, client;
};

static struct family family_of(enum pki_key key)
{
	struct family f = {.ca = pki_make((struct pki_conf){"ca", .key = key})};
	f.server = pki_make((struct pki_conf){"server", &f.ca, "DNS:a.test", .key = key});
	f.client = pki_make((struct pki_conf){"client", &f.ca, .key = key});
	return f;
}

static struct tlshs_context *member(const struct family *f, enum tlshs_role role)
{
	const struct pki_cert *own = role == TLSHS_SERVER ? &f->server : &f->client;
	struct tlshs_context_conf conf = {.role = role, .ca_pem = f->ca.pem};
	conf.certificate_pem = own->pem;
	conf.key_pem = own->key_pem;
	conf.require_peer_certificate = true;
	return context_good(&conf);
}

static struct far_conf far_member(
	const struct family *f, enum tlshs_role our_role, const struct way *way, unsigned suite)
{
	struct far_conf far = {.role = TLSHS_CLIENT, .ca = &f->ca, .cert = &f->client};
	if (our_role == TLSHS_CLIENT)
		far = (struct far_conf){TLSHS_SERVER, .ca = &f->ca, .cert = &f->server};
	far.sigalgs = way->sigalgs;
	far.min_version = far.max_version = suites[suite].version;
	*(suites[suite].version == TLS_1_3 ? &far.ciphers_13 : &far.ciphers_12) =
		suites[suite].cipher;
	return far;
}

static void meet_by(
	struct tlshs_context *c, const struct far_conf *far, const struct way *way, unsigned suite)
{
	struct meeting m;
	int ours, theirs;
	meeting_init(&m, c, STR("a.test"), far);
	assert_int_equal(meeting_run(&m), TLSHS_ok);
	assert_string_equal(SSL_get_cipher_name(m.far), suites[suite].cipher);
	assert_int_equal(m.result.secrets.version, suites[suite].version);
	assert_int_equal(m.result.secrets.aead, suites[suite].aead);
	assert_false(m.result.resumed);
	assert_true(str_eq(tlshs_peer_subject(&m.result.peer),
		far->role == TLSHS_SERVER ? STR("CN=server") : STR("CN=client")));
	assert_int_equal(SSL_get_peer_signature_type_nid(m.far, &ours), 1);
	assert_int_equal(SSL_get_signature_type_nid(m.far, &theirs), 1);
	assert_int_equal(ours, way->signature);
	assert_int_equal(theirs, way->signature);
	meeting_talk(&m);
	meeting_fini(&m);
}

// All suites that we offer, with a certificate on either side.
static void tls_51_records_of_ours_follow_either_ones_handshake(void **state)
{
	for (const struct way *way = ways; way < ways + N_WAYS; way++) {
		struct family f = family_of(way->key);
		for (enum tlshs_role role = TLSHS_SERVER; role <= TLSHS_CLIENT; role++) {
			struct tlshs_context *c = member(&f, role);
			for (unsigned i = 0; i < N_SUITES; i++) {
				if (!may_have(way, i))
					continue;
				struct far_conf far = far_member(&f, role, way, i);
				meet_by(c, &far, way, i);
			}
			tlshs_context_put(c);
		}
	}
}

// Pieces of every size to begin with: the first cut falls at every byte of the peer's flight.
static void tls_52_a_handshake_may_be_cut_anywhere(void **state)
{
	for (enum tlshs_role role = TLSHS_SERVER; role <= TLSHS_CLIENT; role++) {
		struct tlshs_context_conf conf = ours(role);
		struct tlshs_context *c = context_good(&conf);
		for (size_t piece = 1; piece < 1600; piece += piece < 64 ? 1 : 61)
			for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
				struct far_conf far = theirs(role);
				struct meeting m;
				far.min_version = far.max_version = version;
				meeting_init(&m, c, STR("a.test"), &far);
				m.piece = m.room = piece;
				assert_int_equal(meeting_run(&m), TLSHS_ok);
				if (piece % 16 == 1)
					meeting_talk(&m);
				meeting_fini(&m);
			}
		tlshs_context_put(c);
	}
}

// The client's Finished and its first request in one piece; a server's tickets likewise.
static void tls_53_bytes_behind_the_handshake_come_back(void **state)
{
	struct tlshs_context_conf conf = ours(TLSHS_SERVER);
	struct tlshs_context *c = context_good(&conf);
	struct far_conf far = theirs(TLSHS_SERVER);
	far.min_version = TLS_1_3;
	struct meeting m;
	meeting_init(&m, c, STR(""), &far);
	assert_true(meeting_turn(&m));
	assert_int_equal(SSL_do_handshake(m.far), 1);
	assert_int_equal(SSL_write(m.far, "first", 5), 5);
	assert_int_equal(meeting_run(&m), TLSHS_ok);
	assert_int_equal(m.n_rest, 5 + 5 + 1 + 16);
	meeting_talk(&m);
	meeting_fini(&m);
	tlshs_context_put(c);

	conf = ours(TLSHS_CLIENT);
	c = context_good(&conf);
	far = theirs(TLSHS_CLIENT);
	far.min_version = TLS_1_3;
	meeting_init(&m, c, STR(""), &far);
	assert_int_equal(meeting_run(&m), TLSHS_ok);
	assert_true(m.n_rest > 100); // tickets
	meeting_talk(&m);
	meeting_fini(&m);
	tlshs_context_put(c);
}

static void tls_54_a_server_chooses_the_protocol_that_it_likes_best(void **state)
{
	struct str alpn[] = {STR("h2"), STR("http/1.1")};
	struct tlshs_context_conf conf = ours(TLSHS_SERVER);
	conf.alpn = alpn;
	conf.n_alpn = 2;
	struct tlshs_context *c = context_good(&conf);
	static const char *const offers[][2] = {
		{"\010http/1.1\002h2", "h2"}, {"\010http/1.1", "http/1.1"}, {NULL, ""}};
	for (unsigned i = 0; i < 3; i++) {
		struct far_conf far = theirs(TLSHS_SERVER);
		struct meeting m;
		far.alpn = offers[i][0];
		meeting_init(&m, c, STR(""), &far);
		assert_int_equal(meeting_run(&m), TLSHS_ok);
		assert_true(str_eq(
			(struct str){m.result.alpn, m.result.alpn_len}, str_from(offers[i][1])));
		meeting_fini(&m);
	}
	tlshs_context_put(c);
}

static void a_client_learns_the_servers_protocol(void **state)
{
	struct str alpn[] = {STR("h2")};
	struct tlshs_context_conf conf = ours(TLSHS_CLIENT);
	conf.alpn = alpn;
	conf.n_alpn = 1;
	struct tlshs_context *c = context_good(&conf);
	struct far_conf far = theirs(TLSHS_CLIENT);
	struct meeting m;
	far.alpn = "\002h2";
	meeting_init(&m, c, STR("a.test"), &far);
	assert_int_equal(meeting_run(&m), TLSHS_ok);
	assert_true(str_eq((struct str){m.result.alpn, m.result.alpn_len}, STR("h2")));
	assert_string_equal(SSL_get_servername(m.far, TLSEXT_NAMETYPE_host_name), "a.test");
	meeting_fini(&m);
	tlshs_context_put(c);
}

static void tls_55_a_server_tells_which_name_was_asked_for(void **state)
{
	struct str names[] = {STR("a.test"), STR("*.b.test")};
	static const struct {
		const char *asked, *told;
	} rows[] = {{NULL, ""}, {"A.Test", "a.test"}, {"x.b.test", "x.b.test"},
		{"x.Y.b.test", "x.y.b.test"}};
	struct tlshs_context_conf conf = ours(TLSHS_SERVER);
	conf.server_names = names;
	conf.n_server_names = 2;
	struct tlshs_context *c = context_good(&conf);
	for (unsigned i = 0; i < 4; i++) {
		struct far_conf far = theirs(TLSHS_SERVER);
		struct meeting m;
		far.server_name = rows[i].asked;
		meeting_init(&m, c, STR(""), &far);
		assert_int_equal(meeting_run(&m), TLSHS_ok);
		assert_true(str_eq((struct str){m.result.server_name, m.result.server_name_len},
			str_from(rows[i].told)));
		meeting_fini(&m);
	}
	tlshs_context_put(c);
}

// The URIs of what our server with this certificate has shown; its context is gone.
static const char *shown_uris(const char *sans)
{
	struct pki_cert cert = pki_make((struct pki_conf){"shown", &ca, sans});
	const struct tlshs_context_conf conf = {
		.role = TLSHS_SERVER, .certificate_pem = cert.pem, .key_pem = cert.key_pem};
	struct tlshs_context *c = context_good(&conf);
	struct far_conf far = theirs(TLSHS_SERVER);
	struct meeting m;
	meeting_init(&m, c, STR(""), &far);
	assert_int_equal(meeting_run(&m), TLSHS_ok);
	meeting_fini(&m);
	tlshs_context_put(c);
	return m.result.own_uris;
}

static void hx_58_who_we_were_is_known_when_the_certificate_is_gone(void **state)
{
	static const char two[] = "spiffe://one.test/x\0https://one.test/\0";
	const char *first = shown_uris("URI:spiffe://one.test/x,DNS:a.test,URI:https://one.test/");
	assert_memory_equal(first, two, sizeof(two));
	assert_string_equal(shown_uris("DNS:a.test"), "");
	assert_string_equal(shown_uris("URI:spiffe://one.test/x"), "spiffe://one.test/x");
	assert_ptr_equal(first, shown_uris("URI:spiffe://one.test/x,URI:https://one.test/"));
}

// Those that a backend's field has room for.
static void hx_58_uris_of_a_kilobyte_are_known(void **state)
{
	char sans[2048] = "URI:", *at = sans + 4;
	memset(at, 'a', TLSHS_PEER_BYTES - 2);
	assert_int_equal(strlen(shown_uris(sans)), TLSHS_PEER_BYTES - 2);
	at[TLSHS_PEER_BYTES - 2] = 'a';
	assert_string_equal(shown_uris(sans), "");
	for (int i = 0; i < TLSHS_MAX_SANS + 1; i++)
		at += sprintf(at, "b,URI:");
	memcpy(at, "b", 2);
	size_t n = 0;
	for (const char *uri = shown_uris(sans); *uri; uri += strlen(uri) + 1)
		n++;
	assert_int_equal(n, TLSHS_MAX_SANS);
}

static bool is_the_client(const void *arg, const struct tlshs_peer *p, struct str name)
{
	return !p->cut && p->n_sans == 3 && str_eq(tlshs_peer_subject(p), STR("CN=client"));
}

static void tls_56_a_client_may_prove_who_it_is(void **state)
{
	struct tlshs_context_conf conf = ours(TLSHS_SERVER);
	conf.ca_pem = ca.pem;
	conf.require_peer_certificate = true;
	conf.matcher.accepts = is_the_client;
	struct tlshs_context *c = context_good(&conf);
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		struct far_conf far = theirs(TLSHS_SERVER);
		struct meeting m;
		far.cert = &client;
		far.min_version = far.max_version = version;
		meeting_init(&m, c, STR(""), &far);
		assert_int_equal(meeting_run(&m), TLSHS_ok);
		const struct tlshs_peer *p = &m.result.peer;
		assert_true(p->present);
		assert_true(str_eq(tlshs_peer_san(p, 0), STR("spiffe://one.test/c")));
		assert_int_equal(p->sans[0].kind, TLSHS_SAN_URI);
		assert_true(str_eq(tlshs_peer_san(p, 1), STR("c@one.test")));
		assert_int_equal(p->sans[2].kind, TLSHS_SAN_IP);
		assert_true(str_eq(tlshs_peer_san(p, 2), STR("\n\0\0\1")));
		meeting_talk(&m);
		meeting_fini(&m);
	}
	tlshs_context_put(c);
}

static void tls_56_a_client_need_not_if_it_is_not_required(void **state)
{
	struct tlshs_context_conf conf = ours(TLSHS_SERVER);
	conf.ca_pem = ca.pem;
	struct tlshs_context *c = context_good(&conf);
	struct far_conf far = theirs(TLSHS_SERVER);
	struct meeting m;
	meeting_init(&m, c, STR(""), &far);
	assert_int_equal(meeting_run(&m), TLSHS_ok);
	assert_false(m.result.peer.present);
	meeting_fini(&m);
	tlshs_context_put(c);
}

static void our_client_shows_its_certificate_when_it_is_asked(void **state)
{
	struct tlshs_context_conf conf = ours(TLSHS_CLIENT);
	conf.certificate_pem = client.pem;
	conf.key_pem = client.key_pem;
	struct tlshs_context *c = context_good(&conf);
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		struct far_conf far = theirs(TLSHS_CLIENT);
		struct meeting m;
		far.ca = &ca;
		far.min_version = far.max_version = version;
		meeting_init(&m, c, STR("a.test"), &far);
		assert_int_equal(meeting_run(&m), TLSHS_ok);
		meeting_talk(&m);
		meeting_fini(&m);
	}
	tlshs_context_put(c);
}

static void tls_57_a_trust_domain_chooses_the_cas(void **state)
{
	struct pki_cert alien = pki_make((struct pki_conf){"alien"});
	struct tlshs_bundle bundles[] = {
		{STR("two.test"), alien.pem}, {STR("one.test"), pki_join(ca.pem, between.pem)}};
	struct tlshs_context_conf conf = {.role = TLSHS_CLIENT, .bundles = bundles, .n_bundles = 2};
	struct tlshs_context *c = context_good(&conf);
	struct far_conf far = theirs(TLSHS_CLIENT);
	struct meeting m;
	meeting_init(&m, c, STR(""), &far);
	assert_int_equal(meeting_run(&m), TLSHS_ok);
	meeting_fini(&m);
	tlshs_context_put(c);
}

// Returns what the client got, for its next handshake.
static SSL_SESSION *meet_with(
	struct tlshs_context *c, uint16_t version, SSL_SESSION *session, bool expects_resumption)
{
	struct far_conf far = theirs(TLSHS_SERVER);
	struct meeting m;
	far.cert = &client;
	far.min_version = far.max_version = version;
	far.session = session;
	meeting_init(&m, c, STR(""), &far);
	assert_int_equal(meeting_run(&m), TLSHS_ok);
	assert_int_equal(m.result.resumed, expects_resumption);
	assert_true(str_eq(tlshs_peer_subject(&m.result.peer), STR("CN=client")));
	meeting_talk(&m);
	SSL_SESSION *next = SSL_get1_session(m.far);
	SSL_set_shutdown(m.far, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	meeting_fini(&m);
	SSL_SESSION_free(session);
	return next;
}

static bool accept_if(const void *arg, const struct tlshs_peer *p, struct str name)
{
	return *(const bool *)arg;
}

static struct tlshs_context_conf with_tickets(void)
{
	struct tlshs_context_conf conf = ours(TLSHS_SERVER);
	conf.ca_pem = ca.pem;
	conf.ticket_secret = STR("0123456789abcdef0123456789abcdef");
	return conf;
}

static void tls_58_who_has_the_same_secret_resumes_a_session(void **state)
{
	struct tlshs_context_conf conf = with_tickets();
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		struct tlshs_context *c = context_good(&conf), *d = context_good(&conf);
		SSL_SESSION *s = meet_with(c, version, NULL, false);
		s = meet_with(c, version, s, true);
		s = meet_with(d, version, s, true);
		SSL_SESSION_free(s);
		tlshs_context_put(c);
		tlshs_context_put(d);
	}
}

static void tls_59_no_session_outlives_what_its_peer_was_judged_by(void **state)
{
	struct pki_cert more = pki_make((struct pki_conf){"more"});
	struct tlshs_context_conf conf = with_tickets();
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		struct tlshs_context *c = context_good(&conf);
		struct tlshs_context_conf cas = conf, crls = conf;
		cas.ca_pem = pki_join(ca.pem, more.pem);
		crls.crl_pem = pki_crl(&ca, NULL, 1);
		struct tlshs_context *d = context_good(&cas), *e = context_good(&crls);
		SSL_SESSION *s = meet_with(c, version, NULL, false);
		s = meet_with(d, version, s, false);
		s = meet_with(e, version, s, false);
		SSL_SESSION_free(s);
		tlshs_context_put(c);
		tlshs_context_put(d);
		tlshs_context_put(e);
	}
}

static void tls_59_names_are_asked_of_resumed_sessions_again(void **state)
{
	bool accepts = true;
	struct tlshs_context_conf conf = with_tickets();
	conf.matcher = (struct tlshs_matcher){accept_if, NULL, &accepts};
	struct tlshs_context *c = context_good(&conf);
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		accepts = true;
		struct far_conf far = theirs(TLSHS_SERVER);
		struct meeting m;
		far.cert = &client;
		far.min_version = far.max_version = version;
		far.session = meet_with(c, version, NULL, false);
		accepts = false;
		meeting_init(&m, c, STR(""), &far);
		assert_int_equal(meeting_run(&m), TLSHS_certificate_name);
		meeting_fini(&m);
		SSL_SESSION_free(far.session);
	}
	tlshs_context_put(c);
}

// OpenSSL as a client takes no longer record then. Of a session it is, and so it holds when that is
// resumed.
static void tls_250_records_keep_to_the_fragment_length_that_was_agreed_upon(void **state)
{
	struct tlshs_context_conf conf = with_tickets();
	struct tlshs_context *c = context_good(&conf);
	for (uint8_t code = 1; code <= 4; code++) {
		for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
			struct far_conf far = theirs(TLSHS_SERVER);
			far.max_fragment = code;
			far.min_version = far.max_version = version;
			for (unsigned resumed = 0; resumed < 2; resumed++) {
				struct meeting m;
				meeting_init(&m, c, STR(""), &far);
				assert_int_equal(meeting_run(&m), TLSHS_ok);
				assert_int_equal(m.result.resumed, resumed);
				assert_int_equal(m.result.secrets.max_plain, 256 << code);
				meeting_talk(&m);
				SSL_SESSION_free(far.session);
				far.session = SSL_get1_session(m.far);
				SSL_set_shutdown(m.far, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
				meeting_fini(&m);
			}
			SSL_SESSION_free(far.session);
		}
	}
	tlshs_context_put(c);
}

static void tls_250_without_one_there_is_no_bound_and_our_clients_ask_for_none(void **state)
{
	for (enum tlshs_role role = TLSHS_SERVER; role <= TLSHS_CLIENT; role++) {
		struct tlshs_context_conf conf = ours(role);
		struct tlshs_context *c = context_good(&conf);
		struct far_conf far = theirs(role);
		struct meeting m;
		meeting_init(&m, c, STR("a.test"), &far);
		assert_int_equal(meeting_run(&m), TLSHS_ok);
		assert_int_equal(m.result.secrets.max_plain, 0);
		meeting_fini(&m);
		tlshs_context_put(c);
	}
}

int main(void)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(tls_51_records_of_ours_follow_either_ones_handshake),
		cmocka_unit_test(tls_52_a_handshake_may_be_cut_anywhere),
		cmocka_unit_test(tls_53_bytes_behind_the_handshake_come_back),
		cmocka_unit_test(tls_54_a_server_chooses_the_protocol_that_it_likes_best),
		cmocka_unit_test(a_client_learns_the_servers_protocol),
		cmocka_unit_test(tls_55_a_server_tells_which_name_was_asked_for),
		cmocka_unit_test(hx_58_who_we_were_is_known_when_the_certificate_is_gone),
		cmocka_unit_test(hx_58_uris_of_a_kilobyte_are_known),
		cmocka_unit_test(tls_56_a_client_may_prove_who_it_is),
		cmocka_unit_test(tls_56_a_client_need_not_if_it_is_not_required),
		cmocka_unit_test(our_client_shows_its_certificate_when_it_is_asked),
		cmocka_unit_test(tls_57_a_trust_domain_chooses_the_cas),
		cmocka_unit_test(tls_58_who_has_the_same_secret_resumes_a_session),
		cmocka_unit_test(tls_59_no_session_outlives_what_its_peer_was_judged_by),
		cmocka_unit_test(tls_59_names_are_asked_of_resumed_sessions_again),
		cmocka_unit_test(tls_250_records_keep_to_the_fragment_length_that_was_agreed_upon),
		cmocka_unit_test(
			tls_250_without_one_there_is_no_bound_and_our_clients_ask_for_none),
	};
	return cmocka_run_group_tests_name("tlshs/handshake", suite, setup, teardown);
}
