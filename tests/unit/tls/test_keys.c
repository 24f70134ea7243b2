// SPDX-License-Identifier: Apache-2.0
// What is left of a key in the process's memory.
#include "dataplane/tls/impl.h"
#include "tests/support/alloc_fail.h"
#include "tests/unit/tls/rig.h"

#include <openssl/evp.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUND_KEY 16
#define STACK_BYTES (1u << 20)

// In what malloc takes small blocks from.
static unsigned count_in_heap(const uint8_t *what)
{
	char line[400];
	void *begin = NULL, *end = NULL;
	unsigned n = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	assert_non_null(maps);
	while (!end && fgets(line, sizeof(line), maps))
		if (strstr(line, "[heap]"))
			assert_int_equal(sscanf(line, "%p-%p", &begin, &end), 2);
	fclose(maps);
	assert_non_null(end);
	for (uint8_t *at = begin; (at = memmem(at, (size_t)((uint8_t *)end - at), what, ROUND_KEY));
		at++)
		n++;
	return n;
}

// FIPS 197 5.2: the third round key of AES-256, for a key that ends in four zeros: the S-box makes
// 0x63 of each, and the round's constant 0x62 of the first. A raw key does not hold it, and one of
// ChaCha20 does not reach so far.
static void third_round_key(const uint8_t *key, uint8_t *ret)
{
	for (unsigned i = 0; i < ROUND_KEY; i++)
		ret[i] = key[i] ^ (i == 0 ? 0x62 : i < 4 ? 0x63 : ret[i - 4]);
}

static void seal_some(struct rig *g, struct tls_conn *c)
{
	struct buf plain = {0}, out = {0};
	assert_true(buf_append(&plain, &g->chunks, "abc", 3));
	assert_false(tls_conn_seal(c, &plain, &out, 1000));
	buf_clear(&out, &g->chunks);
}

// Another connection's key takes its place; none of it stays behind the other's shorter schedule.
static void a_key_that_is_pushed_out_leaves_nothing(void **state)
{
	static const struct aead_ops *const ops[] = {NULL, &aead_evp};
	static const struct tls_events none;
	for (unsigned i = 0; alloc_fail_works() && i < 2; i++) { // sanitizers have another heap
		const struct rig_suite aes = {TLS_1_2, TLS_AES_256_GCM, ops[i], "AES-256-GCM"};
		const struct rig_suite chacha = {.version = TLS_1_2, .aead = TLS_CHACHA20_POLY1305};
		uint8_t round_key[ROUND_KEY];
		struct rig g;
		rig_init_conf(&g, &aes, TLS_SERVER, i, (struct tls_conf){.n_keys = 2});
		struct tls_secrets other = rig_secrets(&chacha, &g.rand);
		struct tls_conn *c = tls_conn_new(g.ctx, TLS_SERVER, &other, &none, NULL);
		assert_non_null(c);
		memset(g.conn->write.key + 28, 0, 4);
		third_round_key(g.conn->write.key, round_key);
		assert_int_equal(count_in_heap(round_key), 0);
		seal_some(&g, g.conn);
		assert_true(count_in_heap(round_key) > 0);
		seal_some(&g, c);
		assert_int_equal(count_in_heap(round_key), 0);
		tls_conn_free(c);
		rig_fini(&g);
	}
}

// Runs f on a stack of its own. True = that holds these bytes when f is over.
static bool leaves_on_stack(void *(*f)(void *), void *arg, const void *what, size_t len)
{
	pthread_attr_t attr;
	pthread_t thread;
	uint8_t *stack = aligned_alloc(4096, STACK_BYTES);
	assert_non_null(stack);
	memset(stack, 0, STACK_BYTES);
	assert_int_equal(pthread_attr_init(&attr), 0);
	assert_int_equal(pthread_attr_setstack(&attr, stack, STACK_BYTES), 0);
	assert_int_equal(pthread_create(&thread, &attr, f, arg), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attr);
	bool found = memmem(stack, STACK_BYTES, what, len) != NULL;
	free(stack);
	return found;
}

static const uint8_t zeros[TLS_MAX_KEY];

struct sealing {
	struct aead *aead;
	struct aead_record record;
	uint8_t text[300], tag[AEAD_TAG];
};

static void *seal_one(void *arg)
{
	struct sealing *s = arg;
	aead_mb.seal(s->aead, 0, &s->record, s->tag);
	return NULL;
}

// RFC 8439 2.6: the cipher's first block, of counter 0.
static void poly1305_key(const uint8_t *key, const uint8_t *nonce, uint8_t *ret)
{
	uint8_t iv[4 + AEAD_NONCE] = {0};
	int n;
	memcpy(iv + 4, nonce, AEAD_NONCE);
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	assert_non_null(c);
	assert_true(EVP_EncryptInit_ex(c, EVP_chacha20(), NULL, key, iv));
	assert_true(EVP_EncryptUpdate(c, ret, &n, zeros, 32));
	EVP_CIPHER_CTX_free(c);
}

static void the_one_time_key_of_a_record_does_not_stay_on_the_stack(void **state)
{
	static const uint8_t key[TLS_MAX_KEY] = {7, 8, 9};
	uint8_t one_time[32];
	struct sealing s = {.aead = aead_mb.new(1), .record = {.nonce = {1, 2}, .aad_len = 5}};
	if (!s.aead || !alloc_fail_works()) {
		aead_mb.free(s.aead);
		return;
	}
	s.record.n_pieces = 1;
	s.record.pieces[0] = (struct aead_piece){s.text, s.text, sizeof(s.text)};
	aead_mb.set_key(s.aead, 0, TLS_CHACHA20_POLY1305, key);
	poly1305_key(key, s.record.nonce, one_time);
	// Its second half: the first is clamped before it is used.
	assert_false(leaves_on_stack(seal_one, &s, one_time + 16, 16));
	aead_mb.free(s.aead);
}

struct beginning {
	struct rig rig;
	struct tls_secrets secrets;
	struct tls_conn *conn;
};

static void *begin_one(void *arg)
{
	static const struct tls_events none;
	struct beginning *b = arg;
	b->conn = tls_conn_new(b->rig.ctx, TLS_SERVER, &b->secrets, &none, NULL);
	return NULL;
}

static void a_new_connection_leaves_no_secret_on_the_stack(void **state)
{
	for (unsigned s = 0; alloc_fail_works() && s < rig_n_suites; s++) {
		struct beginning b;
		rig_init(&b.rig, &rig_suites[s], TLS_SERVER, s);
		b.secrets = rig_secrets(&rig_suites[s], &b.rig.rand);
		const struct tls_direction *d = &b.secrets.write;
		assert_false(leaves_on_stack(begin_one, &b, d->secret, 32));
		assert_non_null(b.conn);
		tls_conn_free(b.conn);
		rig_fini(&b.rig);
	}
}

RUN_SUITE("tls/keys", cmocka_unit_test(a_key_that_is_pushed_out_leaves_nothing),
	cmocka_unit_test(the_one_time_key_of_a_record_does_not_stay_on_the_stack),
	cmocka_unit_test(a_new_connection_leaves_no_secret_on_the_stack))
