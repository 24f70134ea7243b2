// SPDX-License-Identifier: Apache-2.0
// Clients and backends that speak TLS to the proxy.
#include "dataplane/proxy/client.h"
#include "dataplane/proxy/peer.h"
#include "dataplane/proxy/state.h"
#include "lb/pick/credential.h"
#include "tests/sim/proxy/secure_rig.h"
#include "tests/support/check.h"
#include "tests/support/quiet.h"

#include <stdlib.h>
#include <string.h>

static uint64_t all_shaken(const struct rig *r, enum proxy_handshake_side side)
{
	uint64_t n = 0;
	for (unsigned i = 0; i < TLSHS_N_OUTCOMES; i++)
		n += rig_shaken(r, side, i);
	return n;
}

static void talk(const struct rig_conf *conf, uint32_t size)
{
	struct rig r;
	rig_begin(&r, conf);
	struct ask *asks[8];
	for (unsigned i = 0; i < 8; i++)
		asks[i] = ask(r.w, i % 2 ? KIND_ECHO : KIND_DOWNLOAD, i < 4 ? size : 10);
	finish(r.w);
	for (unsigned i = 0; i < 8; i++)
		assert_ok(r.w, asks[i]);
	if (conf->front)
		assert_int_equal(rig_shaken(&r, PROXY_WITH_CLIENT, TLSHS_ok), 1);
	if (conf->back)
		assert_in_range(rig_shaken(&r, PROXY_WITH_BACKEND, TLSHS_ok), 1, 4);
	rig_fini(&r);
}

static void tls_140_clients_and_backends_speak_tls(void **state)
{
	static const uint16_t versions[] = {TLS_1_2, TLS_1_3};
	for (unsigned v = 0; v < 2; v++)
		for (unsigned way = 1; way < 4; way++)
			talk(&(struct rig_conf){.front = way & 1,
				     .back = way & 2,
				     .client.version = versions[v],
				     .backend.version = versions[v]},
				300000);
}

static void pp_13_a_client_may_go_while_its_connection_shakes_hands(void **state)
{
	struct rig r;
	rig_begin(&r, &(struct rig_conf){.back = true, .header = 2});
	r.w->backends[0].is_shy = r.w->backends[1].is_shy = true;
	ask(r.w, KIND_ECHO, 1000);
	world_run(r.w, 100 * MS);
	assert_int_equal(r.w->proxy->client_backends.n_conns, 1);
	client_abort(&r.w->clients[0]);
	world_run(r.w, 100 * MS);
	assert_int_equal(r.w->proxy->client_backends.n_conns, 0);
	rig_fini(&r);
}

static void bodies_of_megabytes_go_both_ways(void **state)
{
	talk(&(struct rig_conf){.front = true, .back = true}, 6000000);
}

static void bytes_may_be_cut_anywhere(void **state)
{
	static const uint32_t pieces[] = {1, 2, 3, 5, 7, 64, 333, 1368};
	for (unsigned i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		talk(&(struct rig_conf){.front = true, .back = true, .piece = pieces[i]}, 3000);
}

static void segments_may_be_lost_and_rings_be_full(void **state)
{
	for (uint64_t seed = 1; seed <= 12; seed++)
		talk(&(struct rig_conf){.seed = seed,
			     .loss = 0.03,
			     .front = true,
			     .back = true,
			     .n_slots = seed % 3 ? 1 : 64,
			     .client.version = seed % 2 ? TLS_1_2 : 0},
			60000);
}

// The client's connection ends, and no request was counted.
static void refused(const struct rig_conf *conf, enum tlshs_outcome how)
{
	struct rig r;
	rig_begin(&r, conf);
	for (uint64_t until = r.w->wire.now_ns + 5 * SECOND; !r.w->clients[0].over;
		world_run(r.w, MS))
		assert_true(r.w->wire.now_ns < until);
	assert_int_equal(rig_shaken(&r, PROXY_WITH_CLIENT, how), 1);
	assert_int_equal(all_shaken(&r, PROXY_WITH_CLIENT), 1);
	assert_int_equal(r.w->link->counters.requests, 0);
	assert_int_equal(r.w->proxy->names.n_peak, 0); // however long the reason
	rig_fini(&r);
}

static void tls_141_a_failed_handshake_is_counted_by_its_cause_and_is_no_request(void **state)
{
	refused(&(struct rig_conf){.front = true, .client.ca = &rig_certs.other_ca},
		TLSHS_peer_alert_certificate);
	refused(&(struct rig_conf){.front = true,
			.client.no_cert = true,
			.client.version = TLS_1_2,
			.server.require_peer = true},
		TLSHS_no_peer_certificate);
	refused(
		&(struct rig_conf){
			.front = true, .client.no_cert = true, .server.require_peer = true},
		TLSHS_no_peer_certificate);
	refused(
		&(struct rig_conf){
			.front = true, .client.version = TLS_1_2, .server.version = TLS_1_3},
		TLSHS_version);
	refused(&(struct rig_conf){.front = true,
			.server.require_peer = true,
			.server.ca = &rig_certs.other_ca},
		TLSHS_unknown_ca);
}

static void tls_142_without_a_certificate_a_frontend_refuses(void **state)
{
	struct rig r;
	rig_init(&r, &(struct rig_conf){.front = true});
	r.w->control.credentials[FRONT] = NULL;
	control_set_credentials(&r.w->control);
	open_client(r.w);
	for (uint64_t until = r.w->wire.now_ns + 5 * SECOND; !r.w->clients[0].over;
		world_run(r.w, MS))
		assert_true(r.w->wire.now_ns < until);
	assert_int_equal(rig_shaken(&r, PROXY_WITH_CLIENT, TLSHS_no_credential), 1);
	rig_fini(&r);
}

static void a_client_that_names_no_protocol_speaks_http2(void **state)
{
	talk(&(struct rig_conf){.front = true, .client.no_alpn = true}, 1000);
}

// A client that says bytes of its own through TLS.
struct speaker {
	struct world *w;
	struct tls_end_conf conf;
	struct tls_end secure;
	char heard[4096];
	size_t len;
	bool got_fin, over;
};

static size_t speaker_hears(void *user, const uint8_t *p, size_t len)
{
	struct speaker *s = user;
	assert_in_range(s->len + len, 0, sizeof(s->heard) - 1);
	memcpy(s->heard + s->len, p, len);
	s->len += len;
	return len;
}

static void speaker_on_established(struct tcp_conn *tcp, void *user)
{
	struct speaker *s = user;
	tls_end_init(&s->secure, &s->conf, tcp, &s->w->wire.hosts[HOST_CLIENTS].chunks,
		speaker_hears, s);
}

static size_t speaker_on_data(struct tcp_conn *tcp, void *user, const uint8_t *p, size_t len)
{
	return tls_end_feed(&((struct speaker *)user)->secure, p, len);
}

static void speaker_on_send_room(struct tcp_conn *tcp, void *user)
{
}

static void speaker_on_eof(struct tcp_conn *tcp, void *user)
{
	((struct speaker *)user)->got_fin = true;
	tcp_conn_shutdown(tcp);
}

static void speaker_on_closed(struct tcp_conn *tcp, void *user, enum tcp_close_reason reason)
{
	struct speaker *s = user;
	s->over = true;
	tls_end_fini(&s->secure);
}

static void speaker_run(struct speaker *s, uint64_t ns)
{
	for (uint64_t until = s->w->wire.now_ns + ns; s->w->wire.now_ns < until;) {
		if (!s->over && s->secure.conf)
			tls_end_pump(&s->secure);
		s->w->wire.hosts[HOST_CLIENTS].due = true;
		world_run(s->w, MS);
	}
}

static void speaker_connect(struct speaker *s, struct rig *r)
{
	static const struct tcp_conn_ops ops = {.on_established = speaker_on_established,
		.on_data = speaker_on_data,
		.on_send_room = speaker_on_send_room,
		.on_eof = speaker_on_eof,
		.on_closed = speaker_on_closed};
	struct tcp_flow flow = {.local = wire_address(HOST_CLIENTS, 9),
		.local_port = 2000,
		.remote = r->w->frontends[0].address,
		.remote_port = 80};
	*s = (struct speaker){.w = r->w, .conf = r->client_end};
	assert_non_null(tcp_connect(r->w->wire.hosts[HOST_CLIENTS].tcp, &flow, SECOND, &ops, s));
}

static void speaker_begin(struct speaker *s, struct rig *r)
{
	speaker_connect(s, r);
	speaker_run(s, 50 * MS);
	assert_int_equal(s->secure.outcome, TLSHS_ok);
}

static void speaker_say(struct speaker *s, const char *text)
{
	struct pool *chunks = &s->w->wire.hosts[HOST_CLIENTS].chunks;
	assert_true(buf_append(&s->secure.plain, chunks, text, strlen(text)));
	speaker_run(s, 100 * MS);
}

static void speaker_end(struct speaker *s, struct rig *r)
{
	if (!s->over)
		tcp_conn_abort(s->secure.tcp);
	s->over = true;
	tls_end_fini(&s->secure);
	speaker_run(s, 10 * MS);
	rig_fini(r);
}

#define GET_ONE "GET /one/plain/1/10 HTTP/1.1\r\nHost: calls.test\r\n\r\n"

static void tls_180_what_was_agreed_upon_is_spoken(void **state)
{
	static const struct {
		const char *alpn; // NULL = none
		const char *says, *hears;
	} rows[] = {
		{"http/1.1", GET_ONE, "HTTP/1.1 200 "},
		{NULL, GET_ONE, "HTTP/1.1 200 "},
		{"http/1.1", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 505 "},
		{"h2", GET_ONE, ""},
	};
	static const uint16_t versions[] = {TLS_1_2, TLS_1_3};
	for (unsigned i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		const char *alpn = rows[i / 2].alpn, *hears = rows[i / 2].hears;
		struct rig r;
		struct speaker s;
		rig_begin(&r, &(struct rig_conf){.front = true,
				      .client.alpn = alpn,
				      .client.no_alpn = !alpn,
				      .client.version = versions[i % 2]});
		speaker_begin(&s, &r);
		assert_int_equal(s.secure.result.alpn_len, alpn ? strlen(alpn) : 0);
		speaker_say(&s, rows[i / 2].says);
		if (!strstr(s.heard, hears))
			fail_msg("row %u: %s", i / 2, s.heard);
		bool was_answered = strstr(s.heard, " 200 ") != NULL;
		assert_int_equal(s.got_fin, !was_answered);
		assert_int_equal(s.len > 0, *hears != '\0');
		if (was_answered)
			assert_string_equal(r.w->seen[1].attempts[0].scheme, "https"); // TLS-181
		speaker_end(&s, &r);
	}
}

static void tls_182_who_agreed_upon_http1_has_ten_seconds_to_its_first_request(void **state)
{
	for (unsigned asks = 0; asks < 2; asks++) {
		struct rig r;
		struct speaker s;
		rig_begin(&r, &(struct rig_conf){.front = true, .client.alpn = "http/1.1"});
		speaker_begin(&s, &r);
		if (asks)
			speaker_say(&s, GET_ONE);
		speaker_run(&s, 9 * SECOND);
		assert_false(s.over || s.got_fin);
		speaker_run(&s, 2 * SECOND);
		assert_int_equal(s.got_fin, !asks);
		speaker_end(&s, &r);
	}
}

// A body behind the handshake, of which the thread has yet to read the end.
static void tls_63_a_handshake_is_given_what_it_may_take_the_rest_waits(void **state)
{
	static const char head[] = "POST /one/plain/1/10 HTTP/1.1\r\nHost: calls.test\r\n"
				   "Content-Length: 300000\r\n\r\n";
	char text[sizeof(head) + 300000] = {0};
	struct rig r;
	struct speaker s;
	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, head, sizeof(head) - 1);
	rig_init(&r, &(struct rig_conf){.front = true, .client.alpn = "http/1.1", .n_slots = 512});
	use_backends(r.w, 0x3);
	world_run(r.w, 50 * MS);
	speaker_connect(&s, &r);
	while (!s.secure.ended)
		speaker_run(&s, MS);
	r.w->desk.asleep = true;
	speaker_say(&s, text);
	speaker_run(&s, SECOND);
	const struct proxy_secure *secure = proxy_client_first(r.w->proxy)->conn.secure;
	assert_int_equal(secure->owed, TLSHS_MAX_FLIGHT);
	r.w->desk.asleep = false;
	speaker_run(&s, SECOND);
	if (!strstr(s.heard, "HTTP/1.1 200 "))
		fail_msg("%s", s.heard);
	speaker_end(&s, &r);
}

// No connection to a backend comes about; why is what the control thread hears.
static void backend_refused(const struct rig_conf *conf, const char *why, enum tlshs_outcome how)
{
	struct rig r;
	rig_init(&r, conf);
	use_backends(r.w, 0x1);
	for (uint64_t until = r.w->wire.now_ns + 5 * SECOND; !r.w->control.last_why[0];
		world_run(r.w, MS))
		assert_true(r.w->wire.now_ns < until);
	if (strncmp(r.w->control.last_why, why, strlen(why)) != 0)
		fail_msg("%s", r.w->control.last_why);
	assert_in_range(rig_shaken(&r, PROXY_WITH_BACKEND, how), 1, 100);
	assert_int_equal(r.w->n_served, 0);
	rig_fini(&r);
}

static void tls_144_why_a_backend_is_not_connected_is_told(void **state)
{
	backend_refused(&(struct rig_conf){.back = true, .upstream.ca = &rig_certs.other_ca},
		"TLS: unknown_ca: certificate 1 of the chain: unable to get local issuer "
		"certificate",
		TLSHS_unknown_ca);
	backend_refused(
		&(struct rig_conf){
			.back = true, .upstream.version = TLS_1_2, .backend.version = TLS_1_3},
		"TLS: peer_alert_version: ", TLSHS_peer_alert_version);
}

static void tls_197_the_last_alert_counts_and_not_the_end_behind_it(void **state)
{
	for (unsigned piece = 0; piece <= 3; piece += 3) {
		backend_refused(&(struct rig_conf){.back = true,
					.hangs_up = true,
					.piece = piece,
					.upstream.version = TLS_1_2,
					.backend.version = TLS_1_3},
			"TLS: peer_alert_version: ", TLSHS_peer_alert_version);
		refused(&(struct rig_conf){.front = true,
				.hangs_up = true,
				.piece = piece,
				.client.ca = &rig_certs.other_ca},
			TLSHS_peer_alert_certificate);
	}
}

static void tls_145_a_backend_that_does_not_agree_to_http2_is_not_used(void **state)
{
	backend_refused(&(struct rig_conf){.back = true, .backend.no_alpn = true},
		"TLS: no_application_protocol: ", TLSHS_no_application_protocol);
}

// Our handshake under 1.3 is over before the backend has looked at our certificate.
static void a_backend_refuses_our_certificate_by_an_alert_among_the_records(void **state)
{
	backend_refused(
		&(struct rig_conf){
			.back = true, .upstream.no_cert = true, .backend.require_peer = true},
		"TLS: its alert certificate_required (116)", TLSHS_ok);
}

static void tls_142_a_backend_is_never_spoken_to_in_plain_text(void **state)
{
	struct rig r;
	rig_init(&r, &(struct rig_conf){.back = true});
	r.w->control.credentials[BACK] = NULL;
	control_set_credentials(&r.w->control);
	use_backends(r.w, 0x1);
	for (uint64_t until = r.w->wire.now_ns + 5 * SECOND; !r.w->control.last_why[0];
		world_run(r.w, MS))
		assert_true(r.w->wire.now_ns < until);
	assert_string_equal(
		r.w->control.last_why, "TLS: no_credential: there is no certificate for it yet");
	rig_fini(&r);
}

static void the_endpoints_name_is_asked_for(void **state)
{
	struct rig r;
	rig_init(&r, &(struct rig_conf){.back = true, .sni = "one.backends.test"});
	use_backends(r.w, 0x1);
	world_run(r.w, 100 * MS);
	const struct tls_end *e = r.w->backends[0].newest;
	assert_non_null(e);
	assert_int_equal(e->outcome, TLSHS_ok);
	assert_int_equal(e->result.server_name_len, 17);
	assert_memory_equal(e->result.server_name, "one.backends.test", 17);
	rig_fini(&r);
}

// The proxy gets another certificate for its front.
static void renew(struct rig *r, const struct side *side)
{
	struct lb_credential *old = r->credentials[FRONT];
	r->credentials[FRONT] = rig_credential(TLSHS_SERVER, side, NULL);
	r->w->control.credentials[FRONT] = r->credentials[FRONT];
	control_set_credentials(&r->w->control);
	lb_credential_put(old);
}

static void tls_143_a_new_certificate_touches_no_connection(void **state)
{
	struct rig r;
	rig_begin(&r, &(struct rig_conf){.front = true, .back = true});
	struct ask *a = ask(r.w, KIND_DOWNLOAD, 2000000);
	world_run(r.w, 20 * MS);
	assert_false(a->closed);
	renew(&r, &(struct side){.cert = &rig_certs.backend});
	world_open_client(r.w, 1, 0);
	world_run(r.w, 100 * MS);
	finish(r.w);
	assert_ok(r.w, a);
	const struct tls_end *before = &r.w->clients[0].secure, *after = &r.w->clients[1].secure;
	assert_int_equal(after->outcome, TLSHS_ok);
	assert_memory_not_equal(before->result.peer.sha256, after->result.peer.sha256,
		sizeof(before->result.peer.sha256));
	assert_ok(r.w, (a = ask(r.w, KIND_ECHO, 100), finish(r.w), a));
	rig_fini(&r);
}

static void tls_149_what_a_client_has_proven_and_asked_for_is_known(void **state)
{
	struct rig r;
	rig_begin(&r, &(struct rig_conf){.front = true, .server.require_peer = true});
	const struct proxy_secure *s = proxy_client_first(r.w->proxy)->conn.secure;
	struct lb_peer_info peer = {0};
	proxy_peer_tell(s->peer, &peer);
	assert_true(str_eq(proxy_secure_asked(s), STR("front.test")));
	assert_int_equal(peer.n_sans, 1);
	assert_int_equal(peer.sans[0].kind, LB_SAN_URI);
	assert_true(str_eq(peer.sans[0].text, STR("spiffe://a/b")));
	assert_true(str_eq(peer.subject, STR("CN=client")));
	rig_fini(&r);
}

static void hx_58_a_connection_tells_of_the_certificate_that_it_was_shown(void **state)
{
	const struct side first = {.cert = &rig_certs.client, .require_peer = true};
	const struct side second = {.cert = &rig_certs.server, .require_peer = true};
	struct rig r;
	rig_begin(&r, &(struct rig_conf){.front = true, .server = first});
	renew(&r, &second);
	world_open_client(r.w, 1, 0);
	world_run(r.w, 100 * MS);
	const struct proxy_client *new = proxy_client_first(r.w->proxy);
	const struct proxy_client *old = proxy_client_after(new);
	assert_string_equal(new->conn.secure->peer->own_uris, "");
	assert_string_equal(old->conn.secure->peer->own_uris, "spiffe://a/b");
	rig_fini(&r);
}

// Longer ones have a pool, and give back what they take of it.
static void tls_149_names_of_any_length_are_known(void **state)
{
	static const size_t lens[] = {1, PROXY_SHORT_NAME, PROXY_SHORT_NAME + 1, TLSHS_MAX_NAME};
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		char name[TLSHS_MAX_NAME + 1] = {0};
		struct rig r;
		memset(name, 'a', lens[i]);
		rig_begin(&r, &(struct rig_conf){.front = true, .name = name});
		const struct pool *names = &r.w->proxy->names;
		const struct proxy_secure *s = proxy_client_first(r.w->proxy)->conn.secure;
		assert_true(str_eq(proxy_secure_asked(s), str_from(name)));
		assert_int_equal(names->n_used, lens[i] > PROXY_SHORT_NAME);
		tls_end_shutdown(&r.w->clients[0].secure);
		r.w->clients[0].host->due = true;
		world_run(r.w, 20 * MS);
		assert_int_equal(names->n_used, 0);
		rig_fini(&r);
	}
}

static void tls_146_a_client_has_ten_seconds_for_its_handshake(void **state)
{
	struct rig r;
	rig_init(&r, &(struct rig_conf){.front = true});
	for (unsigned i = 0; i < 2; i++) {
		world_open_client(r.w, i, 0);
		while (!r.w->clients[i].up)
			world_run(r.w, MS);
		r.w->clients[i].secure.mute = true; // the first one in its ClientHello
		if (i)
			buf_clear(&r.w->clients[i].secure.out, r.w->clients[i].secure.chunks);
	}
	world_run(r.w, 9 * SECOND);
	assert_false(r.w->clients[0].over || r.w->clients[1].over);
	world_run(r.w, 2 * SECOND);
	assert_true(r.w->clients[0].over && r.w->clients[1].over);
	assert_int_equal(rig_shaken(&r, PROXY_WITH_CLIENT, TLSHS_timeout), 2);
	rig_fini(&r);
}

static void th_140_a_client_whose_handshake_gave_way_is_hung_up_on_and_may_come_again(void **state)
{
	struct rig r;
	rig_init(&r, &(struct rig_conf){.front = true});
	r.w->wire.delay_ns = 20 * MS; // so long our answer is on its way
	world_open_client(r.w, 0, 0);
	while (!r.w->desk.census.open)
		world_run(r.w, MS);
	r.w->clients[0].secure.mute = true;
	world_run(r.w, MS);
	assert_int_equal(r.w->proxy->handshakes.n_with_clients, 1);
	desk_give_way(&r.w->desk);
	r.w->wire.hosts[HOST_PROXY].due = true;
	world_run(r.w, 100 * MS);
	assert_true(r.w->clients[0].over);
	assert_int_equal(r.w->proxy->handshakes.n_with_clients, 0);
	assert_int_equal(rig_shaken(&r, PROXY_WITH_CLIENT, TLSHS_gave_way), 1);
	world_open_client(r.w, 1, 0);
	world_run(r.w, 200 * MS);
	assert_int_equal(rig_shaken(&r, PROXY_WITH_CLIENT, TLSHS_ok), 1);
	rig_fini(&r);
}

static void tls_147_ends_are_announced_both_ways(void **state)
{
	struct rig r;
	rig_begin(&r, &(struct rig_conf){.front = true, .back = true});
	struct client *c = &r.w->clients[0];
	struct ask *a = ask(r.w, KIND_ECHO, 100);
	finish(r.w);
	assert_ok(r.w, a);
	tls_end_shutdown(&c->secure);
	c->host->due = true;
	world_run(r.w, 20 * MS);
	assert_true(c->secure.eof && c->over);
	assert_int_equal(r.w->link->counters.client_connections, 0);
	use_backends(r.w, 0x1); // the connection to the other one ends
	struct tls_end *gone = r.w->backends[1].newest;
	assert_non_null(gone);
	while (r.w->backends[1].n_conns && !gone->eof)
		world_run(r.w, MS);
	assert_true(gone->eof || !r.w->backends[1].n_conns);
	rig_fini(&r);
}

// The end of a backend's connection, and requests that would go over it, come in one turn.
static void ask_as_a_backend_ends(uint32_t corrupt)
{
	struct rig r;
	rig_begin(&r, &(struct rig_conf){.back = true});
	struct tls_end *last = r.w->backends[0].newest;
	struct ask *asks[4];
	assert_non_null(last);
	r.w->wire.jitter_ns = 0;
	last->corrupt = corrupt;
	tls_end_shutdown(last);
	r.w->backends[0].host->due = true;
	for (unsigned i = 0; i < 4; i++)
		asks[i] = ask(r.w, KIND_ECHO, 100);
	finish(r.w);
	for (unsigned i = 0; i < 4; i++)
		assert_ok(r.w, asks[i]);
	assert_in_range(world_counter(r.w, "transparent_retries"), 1, 4);
	rig_fini(&r);
}

// RT-11: nothing is sealed for who answers nothing any more.
static void rt_11_what_comes_with_a_backends_close_notify_goes_elsewhere(void **state)
{
	ask_as_a_backend_ends(0);
}

// RT-11: nor behind our alert.
static void rt_11_so_does_what_comes_with_a_record_that_is_wrong(void **state)
{
	ask_as_a_backend_ends(10);
}

static void tls_148_a_changed_byte_ends_the_connection_with_an_alert(void **state)
{
	struct rig r;
	rig_begin(&r, &(struct rig_conf){.front = true});
	struct client *c = &r.w->clients[0];
	struct ask *a = ask(r.w, KIND_ECHO, 3000);
	c->secure.corrupt = 100;
	for (uint64_t until = r.w->wire.now_ns + 5 * SECOND; !c->over; world_run(r.w, MS))
		assert_true(r.w->wire.now_ns < until);
	assert_true(a->closed && !a->got_end);
	assert_true(c->secure.failed && c->secure.by_peer);
	assert_int_equal(c->secure.alert, TLS_BAD_RECORD_MAC);
	rig_fini(&r);
}

static void clients_may_go_at_any_time(void **state)
{
	for (uint32_t ms = 0; ms < 12; ms++) {
		struct rig r;
		rig_init(&r, &(struct rig_conf){.front = true, .back = true, .piece = 300});
		use_backends(r.w, 0x3);
		world_open_client(r.w, 0, 0);
		world_run(r.w, ms * MS / 2 + MS);
		client_abort(&r.w->clients[0]);
		world_run(r.w, 100 * MS);
		backend_abort_conns(&r.w->backends[0]);
		world_run(r.w, 100 * MS);
		rig_fini(&r);
	}
}

static void a_thread_that_hangs_holds_up_no_connect_timeout(void **state)
{
	struct rig r;
	rig_init(&r, &(struct rig_conf){.back = true});
	r.w->desk.asleep = true;
	use_backends(r.w, 0x1);
	world_run(r.w, 21 * SECOND);
	assert_string_equal(r.w->control.last_why, "TLS: timeout");
	r.w->desk.asleep = false;
	rig_fini(&r);
}

// Windows stay shut while the client does not read, and open again.
static void a_client_that_does_not_read_is_waited_for(void **state)
{
	struct rig r;
	rig_begin(&r, &(struct rig_conf){.front = true, .back = true});
	struct client *c = &r.w->clients[0];
	c->deaf = true;
	struct ask *a = ask(r.w, KIND_DOWNLOAD, 3000000);
	world_run(r.w, 10 * SECOND);
	assert_false(a->closed);
	assert_in_range(r.w->max_chunks, 1, 1500);
	client_listen(c);
	finish(r.w);
	assert_ok(r.w, a);
	rig_fini(&r);
}

#define N_HALVES 40

// An honest client, the first, beside those who say nothing once they have shaken hands.
static void rig_begin_crowd(struct rig *r, uint32_t n_chunks)
{
	rig_begin(r,
		&(struct rig_conf){.front = true, .n_clients = N_HALVES + 1, .n_chunks = n_chunks});
	for (uint32_t i = 1; i <= N_HALVES; i++) {
		struct client *c = &r->w->clients[i];
		c->source = (uint8_t)(i + 1);
		world_open_client(r->w, i, 0);
		world_run(r->w, 20 * MS);
		assert_non_null(c->secure.tls);
		c->secure.mute = true;
	}
}

// Most of a record of 16 KiB.
static void say_half(struct rig *r, uint32_t i)
{
	static const uint8_t part[16000] = {23, 3, 3, 0x40, 0};
	client_say(&r->w->clients[i], part, sizeof(part));
}

// TH-70: all of them at once, before anybody is cut.
static void th_70_records_that_are_not_whole_leave_the_last_chunks_to_others(void **state)
{
	enum { CHUNKS = 256 };
	struct rig r;
	rig_begin_crowd(&r, CHUNKS);
	r.w->wire.jitter_ns = 0;
	for (uint32_t i = 1; i <= N_HALVES; i++)
		say_half(&r, i);
	struct ask *a = ask(r.w, KIND_DOWNLOAD, 100);
	finish(r.w);
	assert_ok(r.w, a);
	assert_in_range(r.w->max_chunks, CHUNKS / 2, CHUNKS - 1);
	rig_fini(&r);
}

// TH-141
static void th_141_records_that_are_never_whole_count_to_who_sent_them(void **state)
{
	struct rig r;
	rig_begin_crowd(&r, 512);
	for (uint32_t i = 1; i <= N_HALVES; i++) {
		say_half(&r, i);
		world_run(r.w, 50 * MS);
	}
	struct ask *page = ask(r.w, KIND_DOWNLOAD, 100000);
	finish(r.w);
	assert_ok(r.w, page);
	assert_in_range(world_counter(r.w, "clients_cut_for_memory"), 1, N_HALVES - 1);
	assert_in_range(world_chunks_used(r.w), 1, 512 / 2);
	rig_fini(&r);
}

// Everything but the control thread's part and the handshakes': a certificate is replaced between
// requests.
static void tls_25_a_worker_takes_no_memory_and_makes_no_system_call(void **state)
{
	struct rig r;
	if (!quiet_start())
		skip();
	rig_init(&r, &(struct rig_conf){.front = true, .back = true});
	r.w->wire.hosts[HOST_PROXY].watch = quiet_watch;
	use_backends(r.w, 0x3);
	open_client(r.w);
	world_run(r.w, 50 * MS);
	for (unsigned i = 0; i < 2; i++) {
		struct ask *a = ask(r.w, KIND_DOWNLOAD, 300000), *b = ask(r.w, KIND_ECHO, 100000);
		world_run(r.w, 5 * MS);
		renew(&r, &(struct side){.cert = i ? &rig_certs.server : &rig_certs.backend});
		if (!i)
			world_open_client(r.w, 1, 0);
		finish(r.w);
		assert_ok(r.w, a);
		assert_ok(r.w, b);
	}
	assert_int_equal(rig_shaken(&r, PROXY_WITH_CLIENT, TLSHS_ok), 2);
	r.w->wire.hosts[HOST_PROXY].watch = NULL;
	rig_fini(&r);
	struct quiet q = quiet_stop();
	assert_true(q.n_watched > 1000);
	assert_int_equal(q.n_allocations, 0);
	if (q.n_calls)
		fail_msg("%d system calls, the last one is %d", q.n_calls, q.last_call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tls_140_clients_and_backends_speak_tls),
		cmocka_unit_test(pp_13_a_client_may_go_while_its_connection_shakes_hands),
		cmocka_unit_test(bodies_of_megabytes_go_both_ways),
		cmocka_unit_test(bytes_may_be_cut_anywhere),
		cmocka_unit_test(segments_may_be_lost_and_rings_be_full),
		cmocka_unit_test(
			tls_141_a_failed_handshake_is_counted_by_its_cause_and_is_no_request),
		cmocka_unit_test(tls_142_without_a_certificate_a_frontend_refuses),
		cmocka_unit_test(a_client_that_names_no_protocol_speaks_http2),
		cmocka_unit_test(tls_180_what_was_agreed_upon_is_spoken),
		cmocka_unit_test(
			tls_182_who_agreed_upon_http1_has_ten_seconds_to_its_first_request),
		cmocka_unit_test(tls_63_a_handshake_is_given_what_it_may_take_the_rest_waits),
		cmocka_unit_test(tls_197_the_last_alert_counts_and_not_the_end_behind_it),
		cmocka_unit_test(tls_144_why_a_backend_is_not_connected_is_told),
		cmocka_unit_test(tls_145_a_backend_that_does_not_agree_to_http2_is_not_used),
		cmocka_unit_test(a_backend_refuses_our_certificate_by_an_alert_among_the_records),
		cmocka_unit_test(tls_142_a_backend_is_never_spoken_to_in_plain_text),
		cmocka_unit_test(the_endpoints_name_is_asked_for),
		cmocka_unit_test(tls_143_a_new_certificate_touches_no_connection),
		cmocka_unit_test(tls_149_what_a_client_has_proven_and_asked_for_is_known),
		cmocka_unit_test(hx_58_a_connection_tells_of_the_certificate_that_it_was_shown),
		cmocka_unit_test(tls_149_names_of_any_length_are_known),
		cmocka_unit_test(tls_146_a_client_has_ten_seconds_for_its_handshake),
		cmocka_unit_test(
			th_140_a_client_whose_handshake_gave_way_is_hung_up_on_and_may_come_again),
		cmocka_unit_test(tls_147_ends_are_announced_both_ways),
		cmocka_unit_test(rt_11_what_comes_with_a_backends_close_notify_goes_elsewhere),
		cmocka_unit_test(rt_11_so_does_what_comes_with_a_record_that_is_wrong),
		cmocka_unit_test(tls_148_a_changed_byte_ends_the_connection_with_an_alert),
		cmocka_unit_test(clients_may_go_at_any_time),
		cmocka_unit_test(a_thread_that_hangs_holds_up_no_connect_timeout),
		cmocka_unit_test(a_client_that_does_not_read_is_waited_for),
		cmocka_unit_test(th_70_records_that_are_not_whole_leave_the_last_chunks_to_others),
		cmocka_unit_test(th_141_records_that_are_never_whole_count_to_who_sent_them),
		cmocka_unit_test(tls_25_a_worker_takes_no_memory_and_makes_no_system_call),
	};
	return cmocka_run_group_tests_name("proxy/secure", tests, rig_setup, rig_teardown);
}
