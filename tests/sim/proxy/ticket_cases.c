// SPDX-License-Identifier: Apache-2.0
// Backends that are spoken to by TLS anew: their sessions are resumed, also where the way to the
// thread is narrow.
#include "dataplane/proxy/state.h"
#include "lb/pick/credential.h"
#include "lb/pick/security.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"
#include "tests/unit/tlshs/pki.h"
#include "tlshs/context.h"
#include "tlshs/sessions.h"

#include <string.h>

enum { BACK = 2 }; // id of a credential

static struct pki_cert ca, backend_cert;

struct rig {
	struct world *w;
	struct tls_context *records; // of backends
	struct tlshs_context *backend;
	struct tls_end_conf backend_end;
	struct lb_credential *credential;
	struct lb_security *security;
};

static struct tlshs_context *context(struct tlshs_context_conf conf, uint16_t version)
{
	static const struct str h2 = STR("h2");
	struct lb_err err;
	conf.alpn = &h2;
	conf.n_alpn = 1;
	conf.min_version = conf.max_version = version;
	struct tlshs_context *c = tlshs_context_new(&conf, &err);
	if (!c)
		fail_msg("%s", err.text);
	return c;
}

static void rig_init(struct rig *r, uint16_t version, uint32_t n_slots)
{
	*r = (struct rig){0};
	struct world_conf world = world_conf_default(7);
	world.n_clients = 1;
	world.n_backends = 2;
	world.n_handshake_slots = n_slots;
	r->w = world_new(&world);
	struct tls_conf tls = {.max_conns = 64, .now_ns = &r->w->wire.now_ns};
	r->records = tls_context_new(&tls, &r->w->wire.hosts[HOST_BACKENDS].chunks);
	assert_non_null(r->records);
	r->backend = context((struct tlshs_context_conf){.role = TLSHS_SERVER,
				     .certificate_pem = backend_cert.pem,
				     .key_pem = backend_cert.key_pem,
				     .ticket_secret = STR("0123456789abcdef0123456789abcdef")},
		version);
	r->backend_end = (struct tls_end_conf){r->backend, r->records};
	r->credential = lb_credential_new(context((struct tlshs_context_conf){.role = TLSHS_CLIENT,
							  .ca_pem = ca.pem,
							  .max_sessions = 4},
						  version),
		tlshs_context_put);
	assert_non_null(r->credential);
	struct control *c = &r->w->control;
	c->credentials[BACK] = r->credential;
	c->security = r->security =
		lb_security_new_as(&(const struct lb_security_conf){BACK, STR("backend.test")});
	control_set_credentials(c);
	for (unsigned i = 0; i < 2; i++)
		r->w->backends[i].tls = &r->backend_end;
	use_backends(r->w, 0x3);
	open_client(r->w);
}

static void rig_fini(struct rig *r)
{
	r->w->control.security = NULL;
	memset(r->w->control.credentials, 0, sizeof(r->w->control.credentials));
	world_free(r->w);
	lb_security_put(r->security);
	tls_context_free(r->records);
	lb_credential_put(r->credential);
	tlshs_context_put(r->backend);
	assert_int_equal(tlshs_sessions_n(), 0);
}

static uint64_t shaken(const struct rig *r, enum tlshs_outcome how)
{
	return world_shaken(r->w, PROXY_WITH_BACKEND, how);
}

static void use_both(struct rig *r)
{
	struct ask *asks[8];
	for (unsigned i = 0; i < 8; i++)
		asks[i] = ask(r->w, i % 2 ? KIND_ECHO : KIND_DOWNLOAD, 3000);
	finish(r->w);
	for (unsigned i = 0; i < 8; i++)
		assert_ok(r->w, asks[i]);
}

static void lose_both(struct rig *r)
{
	for (unsigned i = 0; i < 2; i++)
		backend_abort_conns(&r->w->backends[i]);
	world_run(r->w, 5 * SECOND); // and connects anew
}

static void tls_226_a_backend_that_is_connected_anew_resumes_a_session(void **state)
{
	for (uint16_t version = TLS_1_2; version <= TLS_1_3; version++) {
		struct rig r;
		rig_init(&r, version, 64);
		world_run(r.w, 50 * MS);
		use_both(&r);
		assert_int_equal(shaken(&r, TLSHS_ok), 2);
		assert_int_equal(shaken(&r, TLSHS_resumed), 0);
		for (unsigned i = 1; i <= 5; i++) {
			lose_both(&r);
			use_both(&r);
			assert_int_equal(shaken(&r, TLSHS_ok), 2);
			assert_int_equal(shaken(&r, TLSHS_resumed), 2 * i);
		}
		assert_int_equal(r.w->proxy->counters[PROXY_tickets_dropped], 0);
		rig_fini(&r);
	}
}

// Its thread reads no orders, and the ring is full: that the handshake is over stands there.
static void tls_16_a_ticket_without_room_is_dropped_and_costs_nothing_else(void **state)
{
	struct rig r;
	rig_init(&r, TLS_1_3, 1);
	for (uint64_t until = r.w->wire.now_ns + SECOND; !shaken(&r, TLSHS_ok);
		world_run(r.w, MS / 20))
		assert_true(r.w->wire.now_ns < until);
	r.w->desk.asleep = true;
	world_run(r.w, 50 * MS);
	assert_true(r.w->proxy->counters[PROXY_tickets_dropped] > 0);
	r.w->desk.asleep = false;
	world_run(r.w, 50 * MS);
	use_both(&r);
	rig_fini(&r);
}

static int begin(void **state)
{
	ca = pki_make((struct pki_conf){.name = "CA"});
	backend_cert = pki_make(
		(struct pki_conf){.name = "backend", .issuer = &ca, .sans = "DNS:backend.test"});
	return 0;
}

static int end(void **state)
{
	pki_end();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tls_226_a_backend_that_is_connected_anew_resumes_a_session),
		cmocka_unit_test(tls_16_a_ticket_without_room_is_dropped_and_costs_nothing_else),
	};
	return cmocka_run_group_tests_name("proxy/tickets", tests, begin, end);
}
