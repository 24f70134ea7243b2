// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tls/rig.h"

#include "dataplane/tls/impl.h"

#include <stdlib.h>
#include <string.h>

const struct rig_suite rig_suites[] = {
	{TLS_1_3, TLS_AES_128_GCM, NULL, "1.3 AES-128-GCM"},
	{TLS_1_3, TLS_AES_256_GCM, NULL, "1.3 AES-256-GCM"},
	{TLS_1_3, TLS_CHACHA20_POLY1305, NULL, "1.3 ChaCha20-Poly1305"},
	{TLS_1_3, TLS_AES_256_GCM, &aead_evp, "1.3 AES-256-GCM by libcrypto"},
	{TLS_1_2, TLS_AES_128_GCM, NULL, "1.2 AES-128-GCM"},
	{TLS_1_2, TLS_CHACHA20_POLY1305, NULL, "1.2 ChaCha20-Poly1305"},
	{TLS_1_2, TLS_CHACHA20_POLY1305, &aead_evp, "1.2 ChaCha20-Poly1305 by libcrypto"},
};
const unsigned rig_n_suites = sizeof(rig_suites) / sizeof(rig_suites[0]);

void rig_randomize(struct rand *r, void *to, size_t len)
{
	for (uint8_t *p = to; len; len--)
		*p++ = (uint8_t)rand_below(r, 256);
}

struct tls_secrets rig_secrets(const struct rig_suite *suite, struct rand *r)
{
	struct tls_secrets s = {.version = suite->version, .aead = (uint8_t)suite->aead};
	s.hash = suite->aead == TLS_AES_256_GCM ? TLS_SHA384 : TLS_SHA256;
	struct tls_direction *both[] = {&s.read, &s.write};
	for (unsigned i = 0; i < 2; i++) {
		rig_randomize(r, both[i]->secret, sizeof(both[i]->secret));
		if (suite->version == TLS_1_3) {
			tlshs_hkdf_derive_keys(s.hash, s.aead, both[i]);
			continue;
		}
		both[i]->seq = 1; // behind Finished
		rig_randomize(r, both[i]->key, sizeof(both[i]->key));
		rig_randomize(r, both[i]->iv, suite->aead == TLS_CHACHA20_POLY1305 ? TLS_IV : 4);
	}
	return s;
}

struct tls_secrets rig_mirror(const struct tls_secrets *s)
{
	struct tls_secrets m = *s;
	m.read = s->write;
	m.write = s->read;
	return m;
}

static size_t on_plain(struct tls_conn *c, void *user, const uint8_t *p, size_t len)
{
	struct rig *g = user;
	size_t n = len < g->takes ? len : g->takes;
	assert_true(len > 0 && g->n_plain + n <= RIG_BYTES);
	memcpy(g->plain + g->n_plain, p, n);
	g->n_plain += n;
	g->takes -= n;
	g->n_calls++;
	return n;
}

static void on_eof(struct tls_conn *c, void *user)
{
	((struct rig *)user)->n_eofs++;
}

static void on_ticket(struct tls_conn *c, void *user, const uint8_t *p, size_t len)
{
	struct rig *g = user;
	g->n_tickets++;
	g->ticket_len = len;
}

static void on_opened(struct tls_conn *c, void *user, bool has_data, size_t len)
{
	((struct rig *)user)->opened[has_data] += len;
}

static const struct tls_events events = {on_plain, on_eof, on_ticket, on_opened};

void rig_init_conf(struct rig *g, const struct rig_suite *suite, enum tls_role role, uint64_t seed,
	struct tls_conf conf)
{
	*g = (struct rig){.now_ns = 1000 * NS_PER_SECOND, .takes = SIZE_MAX};
	rand_init(&g->rand, seed);
	g->plain = malloc(RIG_BYTES);
	assert_non_null(g->plain);
	assert_int_equal(buf_pool_init(&g->chunks, RIG_CHUNKS), 0);
	conf.max_conns = 4;
	conf.n_keys = conf.n_keys ? conf.n_keys : 8; // libcrypto takes its time to make them
	conf.now_ns = &g->now_ns;
	conf.aead = suite->ops;
	g->ctx = tls_context_new(&conf, &g->chunks);
	assert_non_null(g->ctx);
	g->secrets = rig_secrets(suite, &g->rand);
	g->conn = tls_conn_new(g->ctx, role, &g->secrets, &events, g);
	assert_non_null(g->conn);
	tls_forger_init(&g->peer, &g->secrets, &g->conn->read, &g->rand);
}

void rig_init(struct rig *g, const struct rig_suite *suite, enum tls_role role, uint64_t seed)
{
	rig_init_conf(g, suite, role, seed, (struct tls_conf){0});
}

void rig_fini(struct rig *g)
{
	tls_conn_free(g->conn);
	tls_forger_fini(&g->peer);
	buf_clear(&g->out, &g->chunks);
	assert_int_equal(g->chunks.n_used, 0);
	tls_context_free(g->ctx);
	pool_fini(&g->chunks);
	free(g->plain);
}

size_t rig_forge(
	struct rig *g, uint8_t type, const void *text, size_t len, size_t padding, uint8_t *to)
{
	return tls_forger_seal(&g->peer, type, text, len, padding, to);
}

void rig_send(struct rig *g, uint8_t type, const void *text, size_t len)
{
	static uint8_t record[TLS_MAX_PLAIN + 300];
	size_t n = rig_forge(g, type, text, len, 0, record);
	assert_int_equal(tls_conn_feed(g->conn, record, n), n);
}

void rig_update_peer(struct rig *g)
{
	struct tls_direction d = g->peer.d;
	tlshs_hkdf_update(g->conn->hash, g->conn->aead, &d);
	tls_forger_set(&g->peer, &d);
}

uint64_t rig_counter(const struct rig *g, enum tls_counter counter)
{
	return counter_read(&tls_context_counters(g->ctx).values[counter]);
}

void rig_expect_sound(struct rig *g)
{
	assert_false(tls_conn_failed(g->conn, NULL, NULL));
}

void rig_expect_failure(struct rig *g, uint8_t alert, enum tls_counter counter)
{
	uint8_t is;
	bool by_peer;
	size_t n_plain = g->n_plain;
	assert_true(tls_conn_failed(g->conn, &is, &by_peer));
	assert_int_equal(is, alert);
	assert_false(by_peer);
	assert_int_equal(rig_counter(g, counter), 1);
	for (enum tls_counter i = TLS_C_bad_tags; i <= TLS_C_sequence_ends; i++)
		assert_int_equal(rig_counter(g, i), i == counter);
	rig_send(g, TLS_DATA, "late", 4);
	assert_int_equal(g->n_plain, n_plain);
	struct buf plain = {0};
	assert_true(tls_conn_wants_seal(g->conn));
	assert_false(tls_conn_seal(g->conn, &plain, &g->out, 0));
	assert_true(tls_conn_is_shut(g->conn));
	assert_true(g->out.len > 20 && g->out.len < 100);
}
