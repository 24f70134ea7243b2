// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/base/siphash.h"
#include "tests/support/check.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>

#include <string.h>

typedef uint64_t (*siphash_fn)(struct sip, const uint64_t *words, size_t n, uint64_t last);

// As words and what is left of them, which is how it is given to us.
static uint64_t ours(siphash_fn hash, const uint8_t *key, const uint8_t *data, size_t len)
{
	uint64_t words[16], last = 0;
	size_t n = len / 8;
	memcpy(words, data, 8 * n);
	memcpy(&last, data + 8 * n, len % 8);
	return hash(sip_init(key), words, n, last | (uint64_t)len << 56);
}

// The vector in appendix A of the SipHash paper.
static void the_published_vector_holds(void **state)
{
	uint8_t key[16], data[15];
	for (unsigned i = 0; i < 16; i++)
		key[i] = (uint8_t)i;
	for (unsigned i = 0; i < 15; i++)
		data[i] = (uint8_t)i;
	assert_true(ours(siphash24, key, data, 15) == UINT64_C(0xa129ca6149be45e5));
}

// SipHash-c-d
static uint64_t openssl_siphash(
	EVP_MAC *mac, unsigned c, unsigned d, const uint8_t *key, const uint8_t *data, size_t len)
{
	uint64_t out = 0;
	size_t out_len = 0, size = sizeof(out);
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(mac);
	OSSL_PARAM params[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
		OSSL_PARAM_construct_uint(OSSL_MAC_PARAM_C_ROUNDS, &c),
		OSSL_PARAM_construct_uint(OSSL_MAC_PARAM_D_ROUNDS, &d), OSSL_PARAM_construct_end()};
	assert_non_null(ctx);
	assert_int_equal(EVP_MAC_init(ctx, key, 16, params), 1);
	assert_int_equal(EVP_MAC_update(ctx, data, len), 1);
	assert_int_equal(EVP_MAC_final(ctx, (uint8_t *)&out, &out_len, sizeof(out)), 1);
	assert_int_equal(out_len, sizeof(out));
	EVP_MAC_CTX_free(ctx);
	return out;
}

static void equals_openssl_for_every_length(void **state)
{
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "SIPHASH", NULL);
	struct rand r;
	assert_non_null(mac);
	rand_init(&r, 1);
	for (unsigned round = 0; round < 3000; round++) {
		uint8_t key[16], data[128];
		size_t len = round % (sizeof(data) + 1);
		for (unsigned i = 0; i < sizeof(key); i++)
			key[i] = (uint8_t)rand_u64(&r);
		for (size_t i = 0; i < len; i++)
			data[i] = (uint8_t)rand_u64(&r);
		assert_true(ours(siphash24, key, data, len) ==
			    openssl_siphash(mac, 2, 4, key, data, len));
		assert_true(ours(siphash13, key, data, len) ==
			    openssl_siphash(mac, 1, 3, key, data, len));
	}
	EVP_MAC_free(mac);
}

RUN_SUITE("base/siphash", cmocka_unit_test(the_published_vector_holds),
	cmocka_unit_test(equals_openssl_for_every_length))
