// SPDX-License-Identifier: Apache-2.0
// Our records beside OpenSSL's: each side reads what the other writes.
#include "dataplane/tls/aead.h"
#include "dataplane/tls/counters.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "tests/support/check.h"
#include "tests/unit/tls/openssl_peer.h"

#include <stdlib.h>
#include <string.h>

#define N_CHUNKS 1024
#define MAX_WRITE 40000

static const struct {
	uint16_t version;
	const char *cipher;
	const struct aead_ops *ops;
} suites[] = {
	{TLS_1_3, "TLS_AES_128_GCM_SHA256", NULL},
	{TLS_1_3, "TLS_AES_256_GCM_SHA384", NULL},
	{TLS_1_3, "TLS_CHACHA20_POLY1305_SHA256", NULL},
	{TLS_1_3, "TLS_AES_128_GCM_SHA256", &aead_evp},
	{TLS_1_2, "ECDHE-ECDSA-AES128-GCM-SHA256", NULL},
	{TLS_1_2, "ECDHE-ECDSA-AES256-GCM-SHA384", NULL},
	{TLS_1_2, "ECDHE-ECDSA-CHACHA20-POLY1305", NULL},
	{TLS_1_2, "ECDHE-ECDSA-AES256-GCM-SHA384", &aead_evp},
};
#define N_SUITES (sizeof(suites) / sizeof(suites[0]))

static size_t n_bytes = 2u << 20; // each way, of a suite and role; argv[1]

struct world {
	struct openssl_peer peer;
	uint64_t now_ns;
	struct pool chunks;
	struct tls_context *ctx;
	struct tls_conn *conn;
	struct rand rand, sent, expected; // bytes to the peer, and what both sides expect
	struct rand peer_sent, peer_expected;
	uint64_t n_in, n_out, n_peer_out;
	unsigned n_eofs, n_tickets;
	bool is_slow; // on_plain does not always take all
	struct buf plain, out;
	uint8_t wire[1u << 20]; // from the peer, not consumed yet
	size_t n_wire;
};

static void generate(struct rand *r, uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)rand_u64(r);
}

static void expect(struct rand *r, const uint8_t *p, size_t len)
{
	uint8_t text[MAX_WRITE];
	assert_true(len <= sizeof(text));
	generate(r, text, len);
	assert_memory_equal(p, text, len);
}

static size_t on_plain(struct tls_conn *c, void *user, const uint8_t *p, size_t len)
{
	struct world *w = user;
	size_t n = w->is_slow ? rand_below(&w->rand, (uint32_t)len + 1) : len;
	expect(&w->peer_expected, p, n);
	w->n_in += n;
	return n;
}

static void on_eof(struct tls_conn *c, void *user)
{
	((struct world *)user)->n_eofs++;
}

static void on_ticket(struct tls_conn *c, void *user, const uint8_t *p, size_t len)
{
	((struct world *)user)->n_tickets++;
}

static const struct tls_events events = {on_plain, on_eof, on_ticket};

static struct world *world_new(unsigned suite, enum tls_role role, uint64_t seed)
{
	struct world *w = calloc(1, sizeof(*w));
	assert_non_null(w);
	w->now_ns = NS_PER_SECOND;
	openssl_peer_init(&w->peer, suites[suite].version, suites[suite].cipher, role);
	assert_int_equal(buf_pool_init(&w->chunks, N_CHUNKS), 0);
	struct tls_conf conf = {.max_conns = 1, .now_ns = &w->now_ns, .aead = suites[suite].ops};
	w->ctx = tls_context_new(&conf, &w->chunks);
	assert_non_null(w->ctx);
	w->conn = tls_conn_new(w->ctx, role, &w->peer.secrets, &events, w);
	rand_init(&w->rand, seed);
	rand_init(&w->sent, seed + 1);
	rand_init(&w->expected, seed + 1);
	rand_init(&w->peer_sent, seed + 2);
	rand_init(&w->peer_expected, seed + 2);
	memcpy(w->wire, w->peer.rest, w->n_wire = w->peer.n_rest);
	return w;
}

static void world_free(struct world *w)
{
	tls_conn_free(w->conn);
	buf_clear(&w->plain, &w->chunks);
	buf_clear(&w->out, &w->chunks);
	assert_int_equal(w->chunks.n_used, 0);
	tls_context_free(w->ctx);
	pool_fini(&w->chunks);
	openssl_peer_fini(&w->peer);
	free(w);
}

static void write_ours(struct world *w)
{
	uint8_t text[MAX_WRITE];
	size_t len = rand_below(&w->rand, rand_below(&w->rand, 3) ? MAX_WRITE : 100);
	generate(&w->sent, text, len);
	assert_true(buf_append(&w->plain, &w->chunks, text, len));
	w->n_out += len;
}

static void write_peers(struct world *w)
{
	uint8_t text[MAX_WRITE];
	int len = 1 + (int)rand_below(&w->rand, rand_below(&w->rand, 3) ? MAX_WRITE - 1 : 100);
	generate(&w->peer_sent, text, (size_t)len);
	assert_int_equal(SSL_write(w->peer.ssl, text, len), len);
	w->n_peer_out += (size_t)len;
}

// A part of what we have goes to the peer, which reads it.
static void to_peer(struct world *w)
{
	uint8_t bytes[MAX_WRITE];
	size_t room = 30 + rand_below(&w->rand, 60000);
	bool more = tls_conn_seal(w->conn, &w->plain, &w->out, room);
	assert_int_equal(more, w->plain.len > 0);
	size_t len = rand_below(&w->rand, (uint32_t)w->out.len + 1);
	while (len) {
		size_t n = len < sizeof(bytes) ? len : sizeof(bytes);
		buf_copy_out(&w->out, 0, bytes, n);
		buf_consume(&w->out, &w->chunks, n);
		assert_int_equal(BIO_write(w->peer.in, bytes, (int)n), n);
		len -= n;
	}
	for (int n; (n = SSL_read(w->peer.ssl, bytes, sizeof(bytes))) > 0;)
		expect(&w->expected, bytes, (size_t)n);
}

// Pieces of any length of what the peer has; what we do not consume comes again.
static void from_peer(struct world *w)
{
	int n = BIO_read(w->peer.out, w->wire + w->n_wire, (int)(sizeof(w->wire) - w->n_wire));
	w->n_wire += n > 0 ? (size_t)n : 0;
	size_t at = 0;
	while (at < w->n_wire) {
		size_t len = 1 + rand_below(&w->rand, rand_below(&w->rand, 2) ? 1460 : 70000);
		len = len < w->n_wire - at ? len : w->n_wire - at;
		size_t took = tls_conn_feed(w->conn, w->wire + at, len);
		at += took;
		if (took < len)
			break;
	}
	w->n_wire -= at;
	memmove(w->wire, w->wire + at, w->n_wire);
}

static void update_keys(struct world *w)
{
	if (rand_below(&w->rand, 2))
		tls_conn_update_keys(w->conn, rand_below(&w->rand, 2));
	else
		assert_int_equal(SSL_key_update(w->peer.ssl,
					 rand_below(&w->rand, 2) ? SSL_KEY_UPDATE_REQUESTED
								 : SSL_KEY_UPDATE_NOT_REQUESTED),
			1);
	w->now_ns += 2 * NS_PER_SECOND; // keeps within the budget
}

static void drain(struct world *w)
{
	w->is_slow = false;
	for (unsigned i = 0; i < 200; i++) {
		to_peer(w);
		from_peer(w);
	}
	while (w->plain.len || w->out.len)
		to_peer(w);
	assert_int_equal(w->n_wire, 0);
	assert_false(tls_conn_failed(w->conn, NULL, NULL));
	assert_int_equal(w->n_in, w->n_peer_out);
	// Both streams of bytes stand where they were written to.
	assert_int_equal(rand_u64(&w->sent), rand_u64(&w->expected));
	assert_int_equal(rand_u64(&w->peer_sent), rand_u64(&w->peer_expected));
}

// TLS-01, TLS-02, TLS-11..TLS-14, TLS-16
static void streams_arrive_both_ways(void **state)
{
	for (unsigned s = 0; s < N_SUITES; s++) {
		for (enum tls_role role = TLS_SERVER; role <= TLS_CLIENT; role++) {
			struct world *w = world_new(s, role, s);
			w->is_slow = s & 1;
			while (w->n_out < n_bytes || w->n_peer_out < n_bytes) {
				if (w->plain.len < 300000 && w->n_out < n_bytes)
					write_ours(w);
				if (w->n_wire < 300000 && w->n_peer_out < n_bytes)
					write_peers(w);
				to_peer(w);
				from_peer(w);
				if (suites[s].version == TLS_1_3 && rand_below(&w->rand, 20) == 0)
					update_keys(w);
			}
			drain(w);
			bool is_13 = suites[s].version == TLS_1_3;
			assert_int_equal(w->n_tickets, is_13 && role == TLS_CLIENT ? 2 : 0);
			world_free(w);
		}
	}
}

// TLS-20: each half by itself, both orders.
static void close_notify_ends_a_half_each(void **state)
{
	for (unsigned s = 0; s < N_SUITES; s++) {
		for (unsigned ours_first = 0; ours_first < 2; ours_first++) {
			struct world *w = world_new(s, ours_first ? TLS_SERVER : TLS_CLIENT, s);
			write_ours(w);
			write_peers(w);
			if (ours_first) {
				tls_conn_shutdown(w->conn);
				drain(w);
				assert_int_equal(
					SSL_get_shutdown(w->peer.ssl), SSL_RECEIVED_SHUTDOWN);
				assert_int_equal(w->n_eofs, 0);
				SSL_shutdown(w->peer.ssl);
				from_peer(w);
			} else {
				SSL_shutdown(w->peer.ssl);
				from_peer(w);
				assert_int_equal(w->n_eofs, 1);
				tls_conn_shutdown(w->conn);
				while (!tls_conn_is_shut(w->conn) || w->out.len)
					to_peer(w);
			}
			assert_int_equal(w->n_eofs, 1);
			assert_true(tls_conn_ended(w->conn));
			assert_true(tls_conn_is_shut(w->conn));
			assert_int_equal(SSL_get_shutdown(w->peer.ssl),
				SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
			world_free(w);
		}
	}
}

// The alert that we send is one that OpenSSL understands.
static void a_broken_record_is_told_to_the_peer(void **state)
{
	for (unsigned s = 0; s < N_SUITES; s++) {
		struct world *w = world_new(s, TLS_SERVER, s);
		uint8_t bytes[100] = {23, 3, 3, 0, 90};
		tls_conn_feed(w->conn, bytes, 95);
		assert_true(tls_conn_failed(w->conn, NULL, NULL));
		while (!tls_conn_is_shut(w->conn) || w->out.len)
			to_peer(w);
		assert_int_equal(SSL_get_shutdown(w->peer.ssl), SSL_RECEIVED_SHUTDOWN);
		world_free(w);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		n_bytes = (size_t)strtoull(argv[1], NULL, 10);
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(streams_arrive_both_ways),
		cmocka_unit_test(close_notify_ends_a_half_each),
		cmocka_unit_test(a_broken_record_is_told_to_the_peer),
	};
	return cmocka_run_group_tests_name("tls/openssl", suite, NULL, NULL);
}
