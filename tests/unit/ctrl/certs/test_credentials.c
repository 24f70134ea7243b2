// SPDX-License-Identifier: Apache-2.0
// What frontends and clusters want of TLS becomes contexts, as handshakes of ours show, and they
// change with the files (TLS-160, TLS-163 to TLS-165). What could not be made is tried again.
#include "ctrl/certs/certs.h"
#include "ctrl/certs/credential.h"
#include "ctrl/certs/credential_maker.h"
#include "ctrl/certs/credentials.h"
#include "ctrl/certs/material.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/twheel.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/certs/pki.h"
#include "tlshs/handshake.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BOUND_MS 20000

static struct pki_cert ca, other_ca, server, client;
static struct twheel *wheel;
static struct certs *certs;
static struct credentials *all;
static struct lb_credential *stands[LB_MAX_CREDENTIALS]; // as was told
static uint32_t n_told;
static const char *tickets; // the file of their secret; NULL = none

static uint64_t wall_ns(void)
{
	return 1800000000 * NS_PER_SECOND;
}

static void on_changed(void *ctx, uint32_t id, struct lb_credential *c)
{
	stands[id] = c;
	n_told++;
}

static void on_certs(void *ctx, const char *name)
{
	if (all)
		credentials_renew(all, name);
}

static void write_identity(const char *name, const struct pki_cert *c)
{
	char file[64];
	snprintf(file, sizeof(file), "%s.key", name);
	pki_write(file, pki_key_pem(c->key));
	snprintf(file, sizeof(file), "%s.crt", name);
	pki_write(file, pki_cert_pem(c));
}

static char *path(const char *name)
{
	return (char *)(uintptr_t)pki_path(name);
}

// Providers: server, client, ca, map, none.
static void start_with_crls(const char *crl_directory)
{
	static char names[5][8] = {"server", "client", "ca", "map", "none"};
	static struct xds_cert_provider_conf p[5];
	static struct xds_bootstrap b;
	p[0] = (struct xds_cert_provider_conf){
		.name = names[0], .files = {.cert = path("server.crt"), .key = path("server.key")}};
	p[1] = (struct xds_cert_provider_conf){
		.name = names[1], .files = {.cert = path("client.crt"), .key = path("client.key")}};
	p[2] = (struct xds_cert_provider_conf){.name = names[2], .files = {.ca = path("ca.crt")}};
	p[3] = (struct xds_cert_provider_conf){.name = names[3], .files = {.spiffe = path("map")}};
	p[4] = (struct xds_cert_provider_conf){.name = names[4], .files = {.ca = path("missing")}};
	b = (struct xds_bootstrap){.cert_providers = p, .n_cert_providers = 5};
	for (int i = 0; i < 5; i++)
		p[i].files.refresh_ns = 600 * NS_PER_SECOND;
	struct certs_conf conf = {.bootstrap = &b,
		.crl_directory = crl_directory,
		.ticket_secret = tickets,
		.crl_refresh_ns = 600 * NS_PER_SECOND,
		.wheel = wheel,
		.wall_ns = wall_ns,
		.changed = on_certs};
	certs = certs_new(&conf);
	assert_non_null(certs);
	struct credentials_conf c = {.certs = certs,
		.wheel = wheel,
		.system_roots = pki_path("roots"),
		.changed = on_changed};
	all = credentials_new(&c);
	assert_non_null(all);
}

static void start(void)
{
	start_with_crls(NULL);
}

static int begin(void **state)
{
	pki_begin();
	ca = pki_make("ca", NULL, NULL, -1, 10);
	other_ca = pki_make("other", NULL, NULL, -1, 10);
	server = pki_make("server", "DNS:a.example,URI:spiffe://d/s", &ca, -1, 2);
	client = pki_make("client", "URI:spiffe://d/c", &ca, -1, 2);
	write_identity("server", &server);
	write_identity("client", &client);
	pki_write("ca.crt", pki_cert_pem(&ca));
	wheel = twheel_new(NS_PER_SECOND);
	memset(stands, 0, sizeof(stands));
	n_told = 0;
	tickets = NULL;
	return 0;
}

static void stop(void)
{
	credentials_free(all);
	all = NULL;
	certs_free(certs);
}

static int end(void **state)
{
	stop();
	twheel_free(wheel);
	pki_end();
	return 0;
}

static void wait_fd(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, BOUND_MS), 1);
}

static void wait_made(uint32_t id)
{
	while (credentials_is_new(all, id)) {
		wait_fd(credentials_fd(all));
		credentials_dispatch(all);
	}
}

// Until the files have been seen and something was told.
static void wait_told(void)
{
	uint32_t before = n_told;
	while (n_told == before) {
		struct pollfd p[] = {{.fd = certs_fd(certs), .events = POLLIN},
			{.fd = credentials_fd(all), .events = POLLIN}};
		assert_true(poll(p, 2, BOUND_MS) > 0);
		certs_dispatch(certs);
		credentials_dispatch(all);
	}
}

static void wait_error(uint32_t id, const char *part)
{
	while (!strstr(credentials_error(all, id), part)) {
		struct pollfd p[] = {{.fd = certs_fd(certs), .events = POLLIN},
			{.fd = credentials_fd(all), .events = POLLIN}};
		assert_true(poll(p, 2, BOUND_MS) > 0);
		certs_dispatch(certs);
		credentials_dispatch(all);
	}
}

static uint32_t take(const struct credential_want *w)
{
	uint32_t id = credentials_take(all, w);
	wait_made(id);
	return id;
}

struct sought {
	uint32_t id;
	int state; // -1 = it was not found
};

static void note_state(void *ctx, const struct credentials_info *i)
{
	struct sought *s = ctx;
	if (i->id == s->id)
		s->state = (int)credentials_state(i);
}

static void expect_state(uint32_t id, enum credentials_state state)
{
	struct sought s = {id, -1};
	credentials_each(all, note_state, &s);
	assert_int_equal(s.state, state);
}

static const struct credential_want plain_server = {.role = TLSHS_SERVER, .identity = "server"};
static const struct credential_want mutual_server = {
	.role = TLSHS_SERVER, .identity = "server", .ca = "ca", .require_peer_certificate = true};
static const struct credential_want plain_client = {.role = TLSHS_CLIENT, .ca = "ca"};

static bool move(struct tlshs_handshake *from, struct tlshs_handshake *to)
{
	uint8_t bytes[4096];
	size_t n = tlshs_handshake_drain(from, bytes, sizeof(bytes));
	if (n && !tlshs_handshake_ended(to))
		tlshs_handshake_feed(to, bytes, n);
	return n;
}

// A handshake of what stands at these ids. Returns the client's outcome, then the server's.
struct meeting {
	enum tlshs_outcome client, server;
	struct tlshs_result seen; // by the client
};
static struct meeting meet(uint32_t client_id, uint32_t server_id, const char *name)
{
	struct meeting m = {0};
	struct tlshs_handshake *c = tlshs_handshake_new(stands[client_id]->tls, str_from(name), 0);
	struct tlshs_handshake *s = tlshs_handshake_new(stands[server_id]->tls, STR(""), 0);
	while (move(c, s) || move(s, c))
		;
	m.client = tlshs_handshake_ended(c) ? tlshs_handshake_outcome(c) : TLSHS_lost;
	m.server = tlshs_handshake_ended(s) ? tlshs_handshake_outcome(s) : TLSHS_lost;
	if (m.client == TLSHS_ok)
		tlshs_handshake_take(c, &m.seen);
	tlshs_handshake_free(c);
	tlshs_handshake_free(s);
	return m;
}

static void the_same_want_is_the_same_id(void **state)
{
	start();
	uint32_t a = credentials_take(all, &plain_server);
	assert_in_range(a, 1, LB_NO_CREDENTIAL - 1);
	assert_int_equal(credentials_take(all, &plain_server), a);
	uint32_t b = credentials_take(all, &mutual_server);
	assert_int_not_equal(b, a);
	const struct lb_san_matcher_conf sans[] = {{LB_SAN_ALL, LB_SAN_EXACT, false, STR("a")},
		{LB_SAN_DNS, LB_SAN_EXACT, false, STR("a")}};
	uint32_t ids[3];
	for (uint32_t i = 0; i < 3; i++) {
		struct credential_want w = plain_client;
		w.sans = i < 2 ? &sans[i] : NULL;
		w.n_sans = i < 2;
		ids[i] = credentials_take(all, &w);
		for (uint32_t k = 0; k < i; k++)
			assert_int_not_equal(ids[i], ids[k]);
	}
	wait_made(a);
	credentials_give(all, a);
	assert_non_null(credentials_at(all, a));
	credentials_give(all, a);
	assert_null(credentials_at(all, a));
	assert_null(stands[a]);
	credentials_give(all, LB_PLAIN_TEXT);
	credentials_give(all, LB_NO_CREDENTIAL);
}

// TLS-281
static void the_same_matchers_in_another_order_are_the_same_id(void **state)
{
	start();
	const struct lb_san_matcher_conf a = {LB_SAN_ALL, LB_SAN_EXACT, false, STR("a")},
					 ab = {LB_SAN_ALL, LB_SAN_EXACT, false, STR("ab")},
					 uri = {LB_SAN_URI, LB_SAN_EXACT, false, STR("a")},
					 prefix = {LB_SAN_ALL, LB_SAN_PREFIX, false, STR("a")},
					 fold = {LB_SAN_ALL, LB_SAN_EXACT, true, STR("a")};
	const struct lb_san_matcher_conf lists[][6] = {{a, ab, uri, prefix, fold},
		{fold, prefix, uri, ab, a}, {ab, fold, a, fold, prefix, uri}, {a, ab, uri, prefix}};
	const uint32_t n[] = {5, 5, 6, 4};
	uint32_t ids[4];
	for (uint32_t i = 0; i < 4; i++) {
		struct credential_want w = plain_client;
		w.sans = lists[i];
		w.n_sans = n[i];
		ids[i] = credentials_take(all, &w);
	}
	assert_int_equal(ids[1], ids[0]);
	assert_int_equal(ids[2], ids[0]);
	assert_int_not_equal(ids[3], ids[0]);
}

// TLS-164: connections that begin late find another's context at no id.
static void an_id_rests_before_it_means_something_else(void **state)
{
	start();
	for (uint32_t i = 0; i < 3 * LB_MAX_CREDENTIALS; i++) {
		char name[32];
		snprintf(name, sizeof(name), "n%u.example", i);
		const char *names[] = {name};
		struct credential_want w = plain_server;
		w.server_names = names;
		w.n_server_names = 1;
		w.identity = "none"; // has none, so that there is nothing to make
		uint32_t id = credentials_take(all, &w);
		if (i < LB_NO_CREDENTIAL - 1)
			assert_int_equal(id, i + 1);
		else
			assert_int_equal(id, LB_NO_CREDENTIAL);
		wait_made(id);
		credentials_give(all, id);
		if (i == LB_NO_CREDENTIAL)
			break;
	}
	twheel_advance(wheel, 62 * NS_PER_SECOND);
	assert_int_equal(credentials_take(all, &plain_server), 1);
}

static void both_sides_judge_each_other(void **state)
{
	start();
	struct credential_want w = plain_client;
	uint32_t s = take(&mutual_server), none = take(&w);
	w.identity = "client";
	uint32_t c = take(&w);
	struct meeting m = meet(c, s, "a.example");
	assert_int_equal(m.client, TLSHS_ok);
	assert_int_equal(m.server, TLSHS_ok);
	assert_int_equal(m.seen.alpn_len, 2);
	assert_memory_equal(m.seen.alpn, "h2", 2);
	assert_int_equal(meet(none, s, "").server, TLSHS_no_peer_certificate);
	pki_write("ca.crt", pki_cert_pem(&other_ca));
	for (uint32_t before = n_told; n_told < before + 3;) // all of them are made of it
		wait_told();
	assert_int_equal(meet(c, s, "").client, TLSHS_unknown_ca);
}

// TLS-165
static void names_of_the_server_are_compared_with_what_is_asked_for(void **state)
{
	static const struct lb_san_matcher_conf good = {
		LB_SAN_URI, LB_SAN_PREFIX, false, {"spiffe://d/", 11}};
	static const struct lb_san_matcher_conf bad = {
		LB_SAN_ALL, LB_SAN_EXACT, false, {"b.example", 9}};
	static const struct {
		const struct lb_san_matcher_conf *sans;
		bool sni_is_san;
		const char *name;
		enum tlshs_outcome outcome;
	} rows[] = {
		{&good, false, "b.example", TLSHS_ok},
		{&bad, false, "a.example", TLSHS_certificate_name},
		{&bad, true, "a.example", TLSHS_ok}, // A101: in place of the matchers
		{&good, true, "b.example", TLSHS_certificate_name},
		{&good, true, "", TLSHS_ok}, // nothing was sent: the matchers count
		{&bad, true, "", TLSHS_certificate_name},
		{NULL, true, "", TLSHS_ok},
	};
	start();
	uint32_t s = take(&plain_server);
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct credential_want w = plain_client;
		w.sans = rows[i].sans;
		w.n_sans = rows[i].sans != NULL;
		w.sni_is_san = rows[i].sni_is_san;
		struct meeting m = meet(take(&w), s, rows[i].name);
		if (m.client != rows[i].outcome)
			fail_msg("row %u: %s", i, tlshs_outcome_name(m.client));
	}
}

// TLS-163
static void a_new_file_is_a_new_context_under_the_same_id(void **state)
{
	start();
	uint32_t s = take(&plain_server), c = take(&plain_client);
	struct meeting before = meet(c, s, "");
	struct pki_cert newer = pki_make("newer", "DNS:a.example", &ca, -1, 2);
	write_identity("server", &newer);
	wait_told();
	struct meeting after = meet(c, s, "");
	assert_int_equal(after.client, TLSHS_ok);
	assert_memory_not_equal(before.seen.peer.sha256, after.seen.peer.sha256, 32);
	struct lb_credential *good = stands[s];
	pki_write("ca.crt", "garbage"); // of another provider: nothing is told
	pki_write("server.crt", pki_cert_pem(&client)); // not the key's
	struct pki_cert newest = pki_make("newest", "DNS:a.example", &ca, -1, 2);
	assert_ptr_equal(stands[s], good);
	write_identity("server", &newest);
	wait_told();
	assert_ptr_not_equal(stands[s], good);
	assert_int_equal(meet(c, s, "").client, TLSHS_ok);
}

static const char secret[] = "thirty-two bytes that are secret";

// TLS-219
static void another_process_s_secret_of_tickets_makes_contexts_of_servers_anew(void **state)
{
	start();
	uint32_t s = take(&plain_server), m = take(&mutual_server), c = take(&plain_client);
	const struct lb_credential *before[] = {stands[s], stands[m], stands[c]};
	assert_int_equal(credentials_own_tickets(all).len, 32);
	assert_false(str_eq(credentials_own_tickets(all), str_from(secret)));
	assert_true(credentials_inherit_tickets(all, str_from(secret)));
	credentials_await(all);
	while (stands[s] == before[0] || stands[m] == before[1]) // a busy machine
		wait_told();
	assert_ptr_equal(stands[c], before[2]);
	assert_int_equal(meet(c, s, "").client, TLSHS_ok);
	assert_true(str_eq(credentials_own_tickets(all), str_from(secret))); // for the next one
	credentials_await(all); // for nothing: returns at once
}

// TLS-219: the one that is being made goes by the secret before, and is made again.
static void a_secret_of_tickets_may_come_while_contexts_are_made(void **state)
{
	start();
	uint32_t ids[] = {
		credentials_take(all, &plain_server), credentials_take(all, &mutual_server)};
	for (int i = 0; i < 100; i++)
		assert_true(credentials_inherit_tickets(all, str_from(secret)));
	for (int i = 0; i < 2; i++) {
		wait_made(ids[i]);
		assert_non_null(stands[ids[i]]);
	}
}

// TLS-219: also before the file was ever good.
static void a_secret_of_tickets_that_is_configured_is_not_handed_over(void **state)
{
	tickets = pki_path("tickets");
	for (int has_file = 0; has_file < 2; has_file++) {
		if (has_file)
			pki_write("tickets", "another thirty-two secret bytes!");
		start();
		uint32_t s = take(&plain_server);
		const struct lb_credential *before = stands[s];
		assert_int_equal(credentials_own_tickets(all).len, 0);
		assert_false(credentials_inherit_tickets(all, str_from(secret)));
		credentials_await(all);
		assert_ptr_equal(stands[s], before);
		if (!has_file)
			stop();
	}
}

// TLS-160
static void without_files_there_is_no_context_but_a_reason(void **state)
{
	start();
	struct credential_want w = plain_client;
	w.ca = "none";
	uint32_t id = take(&w);
	assert_null(credentials_at(all, id));
	expect_state(id, CREDENTIALS_REFUSING);
	assert_string_equal(
		credentials_error(all, id), "certificate provider \"none\": has nothing yet");
	pki_write("missing", pki_cert_pem(&ca));
	wait_told();
	assert_non_null(stands[id]);
	assert_string_equal(credentials_error(all, id), "");
	expect_state(id, CREDENTIALS_SERVED);
	w.ca = "server";
	id = take(&w);
	assert_string_equal(
		credentials_error(all, id), "certificate provider \"server\": has no CAs");
	w = plain_server;
	w.identity = "ca";
	id = take(&w);
	assert_string_equal(
		credentials_error(all, id), "certificate provider \"ca\": has no certificate");
}

// A87
static void an_empty_map_of_trust_domains_ends_trust(void **state)
{
	char map[4096];
	snprintf(map, sizeof(map),
		"{\"trust_domains\":{\"d\":{\"keys\":[{\"kty\":\"EC\",\"use\":\"x509-svid\","
		"\"x5c\":[\"%s\"]}]}}}",
		pki_base64_der(&ca));
	pki_write("map", map);
	start();
	struct credential_want w = plain_client;
	w.ca = "map";
	uint32_t c = take(&w), s = take(&plain_server);
	assert_int_equal(meet(c, s, "").client, TLSHS_ok);
	pki_write("map", "{\"trust_domains\":{}}");
	wait_told();
	assert_null(stands[c]);
	assert_string_equal(credentials_error(all, c), "the SPIFFE map has no CAs");
}

// TLS-124
static void the_systems_roots_are_trusted(void **state)
{
	pki_write("roots", pki_cert_pem(&ca));
	start();
	struct credential_want w = {.role = TLSHS_CLIENT, .system_roots = true};
	uint32_t c = take(&w), s = take(&plain_server);
	assert_int_equal(meet(c, s, "a.example").client, TLSHS_ok);
}

static void what_is_given_back_while_it_is_made_goes(void **state)
{
	start();
	for (int i = 0; i < 100; i++) {
		uint32_t id = credentials_take(all, &mutual_server);
		credentials_give(all, id);
		if (i % 2) // taken again before it has gone
			assert_int_equal(credentials_take(all, &mutual_server), id);
		if (i % 2)
			credentials_give(all, id);
		if (i % 7 == 0)
			credentials_dispatch(all);
	}
}

static void wrong_files_leave_what_was_good(void **state)
{
	start();
	pki_write("roots", pki_cert_pem(&ca));
	struct credential_want w = {
		.role = TLSHS_CLIENT, .identity = "client", .system_roots = true};
	uint32_t id = take(&w);
	struct lb_credential *good = stands[id];
	assert_non_null(good);
	pki_write("roots", "garbage");
	write_identity("client", &server); // a reason to make it anew
	wait_error(id, "ca_pem");
	assert_ptr_equal(stands[id], good);
	expect_state(id, CREDENTIALS_OUTDATED);
}

// TLS-253: who could not read it as a file must not try it again and again.
static void what_is_too_weak_for_the_library_is_no_lack_of_memory(void **state)
{
	start();
	struct pki_cert weak = pki_make_by("weak", &ca, (struct pki_way){.digest = "SHA1"});
	const char *cert = pki_cert_pem(&weak), *key = pki_key_pem(weak.key);
	struct cert_material m = {.cert = {(char *)(uintptr_t)cert, strlen(cert)},
		.key = {(char *)(uintptr_t)key, strlen(key)}};
	struct credential_parts parts = {.identity = &m};
	struct tlshs_context *context = NULL;
	struct lb_err err = {""};
	assert_int_equal(credential_make(&plain_server, &parts, &context, &err), -EINVAL);
	assert_null(context);
	assert_string_equal(err.text, "certificate_pem: ca md too weak");
}

// TLS-190: revocation that is configured is never left out.
static void nobody_is_judged_before_the_crls_were_read(void **state)
{
	start_with_crls(pki_path("crls"));
	uint32_t ids[] = {take(&plain_client), take(&mutual_server)}, plain = take(&plain_server);
	assert_non_null(stands[plain]); // judges nobody
	for (int i = 0; i < 2; i++) {
		assert_null(stands[ids[i]]);
		assert_string_equal(credentials_error(all, ids[i]),
			"crl_directory: has not been read completely yet");
	}
	assert_int_equal(mkdir(pki_path("crls"), 0755), 0);
	pki_write("crls/ca.pem", pki_crl_pem(&ca, 5));
	while (!stands[ids[0]] || !stands[ids[1]])
		wait_told();
	assert_string_equal(credentials_error(all, ids[0]), "");
	assert_int_equal(meet(ids[0], plain, "").client, TLSHS_ok);
}

// TLS-190: whose CRL is in the bad file is not known.
static void a_bad_crl_at_the_start_is_as_none(void **state)
{
	assert_int_equal(mkdir(pki_path("crls"), 0755), 0);
	pki_write("crls/a.pem", pki_crl_pem(&ca, 5));
	pki_write("crls/b.pem", "garbage");
	start_with_crls(pki_path("crls"));
	uint32_t id = take(&plain_client);
	assert_null(stands[id]);
	pki_write("crls/b.pem", pki_crl_pem(&other_ca, 5));
	wait_told();
	assert_non_null(stands[id]);
	struct lb_credential *good = stands[id];
	pki_write("crls/b.pem", "garbage"); // what was good stays
	pki_write("crls/c.pem", pki_crl_pem(&server, 5));
	wait_told();
	assert_ptr_not_equal(stands[id], good);
}

// Until the job that a timer began is done.
static void wait_error_again(uint32_t id)
{
	wait_fd(credentials_fd(all));
	credentials_dispatch(all);
	assert_non_null(strstr(credentials_error(all, id), "system_root_certs"));
}

// TLS-191
static void what_no_file_tells_of_is_made_again_with_backoff(void **state)
{
	start();
	struct credential_want w = {.role = TLSHS_CLIENT, .system_roots = true};
	uint32_t id = take(&w);
	assert_null(stands[id]);
	uint64_t waits_ms[4];
	for (int i = 0; i < 4; i++) {
		uint64_t began_ns = twheel_now(wheel);
		uint64_t at_ns = twheel_next_ns(wheel); // a lower bound
		while (!twheel_advance(wheel, at_ns))
			at_ns = twheel_next_ns(wheel);
		waits_ms[i] = (twheel_now(wheel) - began_ns) / NS_PER_MS;
		wait_error_again(id);
	}
	assert_in_range(waits_ms[0], 800, 1201);
	assert_in_range(waits_ms[1], 1280, 1921);
	assert_in_range(waits_ms[3], 3276, 4917);
	pki_write("roots", pki_cert_pem(&ca));
	twheel_advance(wheel, twheel_now(wheel) + 8 * NS_PER_SECOND);
	wait_told();
	assert_non_null(stands[id]);
	assert_string_equal(credentials_error(all, id), "");
	assert_int_equal(meet(id, take(&plain_server), "a.example").client, TLSHS_ok);
}

// TLS-191: a file's change comes first, and what waits for one is not tried in vain.
static void what_waits_for_a_file_waits_for_nothing_else(void **state)
{
	start();
	struct credential_want w = plain_client;
	w.ca = "none";
	uint32_t id = take(&w);
	assert_null(stands[id]);
	twheel_advance(wheel, twheel_now(wheel) + 300 * NS_PER_SECOND);
	struct pollfd p = {.fd = credentials_fd(all), .events = POLLIN};
	assert_int_equal(poll(&p, 1, 20), 0);
	w.ca = NULL;
	w.system_roots = true;
	w.identity = "client";
	id = take(&w);
	credentials_give(all, id); // with its timer
	twheel_advance(wheel, twheel_now(wheel) + 300 * NS_PER_SECOND);
	assert_int_equal(poll(&p, 1, 20), 0);
}

// TLS-191: whichever allocation fails, the outcome says that another time may do.
static void lack_of_memory_is_no_fault_of_the_parts(void **state)
{
	start();
	const struct lb_san_matcher_conf sans = {LB_SAN_ALL, LB_SAN_EXACT, false, STR("a")};
	struct credential_want w = plain_client;
	struct credential_parts parts = {
		.identity = certs_find(certs, "client"), .ca = certs_find(certs, "ca")};
	w.identity = "client";
	w.sans = &sans;
	w.n_sans = 1;
	size_t n_failed = 0, step = 1;
	for (size_t nth = 0;; nth += step) {
		struct tlshs_context *context = NULL;
		struct lb_err err = {""};
		alloc_fail_arm(nth);
		int rc = credential_make(&w, &parts, &context, &err);
		bool hit = alloc_fail_disarm();
		assert_int_equal(rc, context ? 0 : -EAGAIN);
		assert_true(context || *err.text);
		n_failed += !context;
		tlshs_context_put(context);
		if (!hit)
			break;
		step = nth / 50 + 1; // the library's are many
	}
	assert_true(n_failed > 10 || !alloc_fail_works());
}

#define N_JOBS 20

// The place in which the job of a server is done that was given behind those of clients.
static uint32_t place_of_server(void)
{
	struct credential_maker *m = credential_maker_new();
	struct credential_job jobs[N_JOBS + 1];
	uint32_t place = 0;
	assert_non_null(m);
	for (uint32_t i = 0; i <= N_JOBS; i++) {
		jobs[i] = (struct credential_job){
			.id = i, .want = i < N_JOBS ? &plain_client : &plain_server};
		jobs[i].parts.ca = certs_find(certs, "ca");
		jobs[i].parts.identity = certs_find(certs, "server");
		credential_maker_give(m, &jobs[i]);
	}
	for (uint32_t n = 0; n <= N_JOBS;) {
		struct credential_job *j = credential_maker_take(m);
		if (!j) {
			wait_fd(credential_maker_fd(m));
			continue;
		}
		assert_int_equal(j->rc, 0);
		tlshs_context_put(j->context);
		if (j->id == N_JOBS)
			place = n;
		n++;
	}
	credential_maker_free(m);
	return place;
}

// TLS-192: whether it is first depends on when the thread runs; in a queue it would always be last.
static void servers_do_not_wait_for_clients(void **state)
{
	uint32_t place = N_JOBS;
	start();
	for (int i = 0; i < 100 && place == N_JOBS; i++)
		place = place_of_server();
	assert_in_range(place, 0, N_JOBS - 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
RUN_SUITE("ctrl/credentials", TEST(the_same_want_is_the_same_id),
	TEST(the_same_matchers_in_another_order_are_the_same_id),
	TEST(an_id_rests_before_it_means_something_else), TEST(both_sides_judge_each_other),
	TEST(names_of_the_server_are_compared_with_what_is_asked_for),
	TEST(a_new_file_is_a_new_context_under_the_same_id),
	TEST(another_process_s_secret_of_tickets_makes_contexts_of_servers_anew),
	TEST(a_secret_of_tickets_may_come_while_contexts_are_made),
	TEST(a_secret_of_tickets_that_is_configured_is_not_handed_over),
	TEST(without_files_there_is_no_context_but_a_reason),
	TEST(an_empty_map_of_trust_domains_ends_trust), TEST(the_systems_roots_are_trusted),
	TEST(what_is_given_back_while_it_is_made_goes), TEST(wrong_files_leave_what_was_good),
	TEST(what_is_too_weak_for_the_library_is_no_lack_of_memory),
	TEST(nobody_is_judged_before_the_crls_were_read), TEST(a_bad_crl_at_the_start_is_as_none),
	TEST(what_no_file_tells_of_is_made_again_with_backoff),
	TEST(what_waits_for_a_file_waits_for_nothing_else),
	TEST(lack_of_memory_is_no_fault_of_the_parts), TEST(servers_do_not_wait_for_clients))
