// SPDX-License-Identifier: Apache-2.0
// TLS-25: what records do where every system call but the last one kills, and no memory is to be
// had.
#include "dataplane/tls/impl.h"
#include "tests/support/confined.h"
#include "tests/unit/tls/rig.h"

#include <string.h>

// Both ends of one connection, in one context.
struct ends {
	struct rig g; // the server
	struct tls_conn *client;
	size_t n_in; // bytes that the client got
};

static size_t on_plain(struct tls_conn *c, void *user, const uint8_t *p, size_t len)
{
	struct ends *e = user;
	size_t n = len > 10 && e->n_in & 1 ? len / 2 : len;
	e->n_in += n;
	return n;
}

static void on_eof(struct tls_conn *c, void *user)
{
}

static const struct tls_events events = {on_plain, on_eof, NULL};

// What the server has to say goes to the client, in pieces of so many bytes.
static void carry(struct ends *e, struct buf *plain, size_t each)
{
	static uint8_t wire[100000];
	tls_conn_seal(e->g.conn, plain, &e->g.out, 90000);
	size_t len = e->g.out.len, at = 0;
	buf_copy_out(&e->g.out, 0, wire, len);
	buf_clear(&e->g.out, &e->g.chunks);
	while (at < len) {
		size_t n = each < len - at ? each : len - at;
		at += tls_conn_feed(e->client, wire + at, n);
	}
}

// False = something went wrong.
static bool talk(struct ends *e, const struct tls_secrets *server, const struct tls_secrets *client)
{
	static uint8_t text[30000], rubbish[100] = {23, 3, 3, 0, 90};
	struct buf plain = {0};
	struct rig *g = &e->g;
	for (unsigned i = 0; i < 300; i++) {
		size_t len = i % 3 ? 200 : sizeof(text);
		if (!buf_append(&plain, &g->chunks, text, len))
			return false;
		if (i % 5 == 0)
			tls_conn_update_keys(g->conn, true);
		e->n_in = i;
		carry(e, &plain, i % 2 ? 1460 : 90000);
		if (e->n_in != i + len || plain.len)
			return false;
		tls_conn_seal(e->client, &plain, &g->out, 100); // the answer to a KeyUpdate
		buf_clear(&g->out, &g->chunks);
		g->now_ns += 2 * NS_PER_SECOND;
	}
	tls_conn_shutdown(g->conn);
	carry(e, &plain, 1000);
	if (!tls_conn_ended(e->client))
		return false;
	tls_conn_free(g->conn);
	g->conn = tls_conn_new(g->ctx, TLS_SERVER, server, &events, e);
	tls_conn_feed(g->conn, rubbish, 95);
	carry(e, &plain, 1000);
	tls_conn_free(e->client);
	e->client = tls_conn_new(g->ctx, TLS_CLIENT, client, &events, e);
	return tls_conn_failed(g->conn, NULL, NULL) && !tls_conn_failed(e->client, NULL, NULL);
}

static bool talk_alone(void *user)
{
	struct ends *e = user;
	struct tls_secrets server = e->g.secrets, client = rig_mirror(&server);
	return talk(e, &server, &client);
}

// TLS-25
static void records_make_no_system_call_and_take_no_memory(void **state)
{
	for (unsigned s = 0; s < rig_n_suites; s++) {
		struct ends e = {0};
		rig_init(&e.g, &rig_suites[s], TLS_SERVER, s);
		struct tls_secrets mirror = rig_mirror(&e.g.secrets);
		e.client = tls_conn_new(e.g.ctx, TLS_CLIENT, &mirror, &events, &e);
		assert_non_null(e.client);
		assert_true(confined_run(talk_alone, &e));
		tls_conn_free(e.client);
		rig_fini(&e.g);
	}
}

RUN_SUITE("tls/quiet", cmocka_unit_test(records_make_no_system_call_and_take_no_memory))
