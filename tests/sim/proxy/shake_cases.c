// SPDX-License-Identifier: Apache-2.0
// Clients whose handshake waits for its thread: what they hear meanwhile.
#include "dataplane/proxy/state.h"
#include "dataplane/tcp/counters.h"
#include "lb/pick/credential.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"
#include "tests/unit/tlshs/pki.h"
#include "tlshs/context.h"

#include <string.h>

enum { FRONT = 1 }; // id of a credential

static struct lb_credential *credential(void)
{
	static const struct str h2 = STR("h2");
	struct lb_err err;
	struct pki_cert cert = pki_make((struct pki_conf){.name = "front"});
	struct tlshs_context_conf conf = {.role = TLSHS_SERVER,
		.alpn = &h2,
		.n_alpn = 1,
		.certificate_pem = cert.pem,
		.key_pem = cert.key_pem};
	struct tlshs_context *c = tlshs_context_new(&conf, &err);
	if (!c)
		fail_msg("%s", err.text);
	return lb_credential_new(c, tlshs_context_put);
}

// The thread reads nothing.
static struct world *waiting_world(struct lb_credential *of_front)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 1;
	conf.n_backends = 1;
	conf.n_handshake_slots = 64;
	struct world *w = world_new(&conf);
	w->control.credentials[FRONT] = of_front;
	w->control.frontend_credential = FRONT;
	control_set_credentials(&w->control);
	w->desk.asleep = true;
	w->clients[0].silent = true;
	open_client(w);
	return w;
}

static void end(struct world *w)
{
	client_abort(&w->clients[0]);
	world_run(w, 10 * MS);
	w->desk.asleep = false;
	memset(w->control.credentials, 0, sizeof(w->control.credentials));
	world_free(w);
}

static void say(struct world *w, struct str bytes)
{
	struct client *c = &w->clients[0];
	assert_true(buf_append(tcp_conn_sendq(c->tcp), &c->host->chunks, bytes.p, bytes.len));
	tcp_conn_push(c->tcp);
	c->host->due = true;
}

static uint64_t n_acks(const struct world *w)
{
	struct counter_set set = tcp_stack_counters(w->wire.hosts[HOST_PROXY].tcp);
	return counter_read(&set.values[TCP_acks_out]);
}

static void tls_260_the_ack_of_a_whole_hello_waits_for_its_answer_others_do_not(void **state)
{
	static const struct {
		struct str bytes;
		uint64_t waits_ms;
	} rows[] = {
		{STR("\x16\3\1\0\4\1\0\0\0"), 40}, // a record of four bytes
		{STR("\x16\3\1\0\4\1\0\0"), 1},
		{STR("\x16\3\1\0"), 1},
	};
	struct lb_credential *c = credential();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = waiting_world(c);
		uint64_t delay_ms =
			w->wire.delay_ns / MS + 2; // to the proxy, and a tick's rounding
		say(w, rows[i].bytes);
		world_run(w, (rows[i].waits_ms - 1) * MS);
		assert_int_equal(n_acks(w), 0);
		world_run(w, (1 + delay_ms) * MS);
		assert_int_equal(n_acks(w), 1);
		end(w);
	}
	lb_credential_put(c);
	pki_end();
}

RUN_SUITE("proxy/shake_cases",
	cmocka_unit_test(tls_260_the_ack_of_a_whole_hello_waits_for_its_answer_others_do_not))
