// SPDX-License-Identifier: Apache-2.0
// The key schedule that the TLS library finds is ours, and gives the bytes of the library's own.
#include "lb/base/rand.h"
#include "tests/support/check.h"
#include "tlshs/hkdf.h"
#include "tlshs/impl.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/provider.h>

#include <string.h>

#define N_ROUNDS 200

struct question {
	int mode;
	const char *digest;
	struct str key, salt, prefix, label, data; // p NULL = not given
};

static EVP_KDF_CTX *ours, *theirs;

static EVP_KDF_CTX *find(OSSL_LIB_CTX *library, const char *preference, const char *provider)
{
	EVP_KDF *kdf = EVP_KDF_fetch(library, OSSL_KDF_NAME_TLS1_3_KDF, preference);
	assert_non_null(kdf);
	assert_string_equal(OSSL_PROVIDER_get0_name(EVP_KDF_get0_provider(kdf)), provider);
	EVP_KDF_CTX *c = EVP_KDF_CTX_new(kdf);
	assert_non_null(c);
	EVP_KDF_free(kdf);
	return c;
}

static int set_up(void **state)
{
	assert_non_null(tlshs_library());
	assert_ptr_equal(tlshs_library(), tlshs_library());
	ours = find(tlshs_library(), TLSHS_PREFERENCE, "shunt");
	theirs = find(NULL, NULL, "default");
	return 0;
}

static int tear_down(void **state)
{
	EVP_KDF_CTX_free(ours);
	EVP_KDF_CTX_free(theirs);
	return 0;
}

static OSSL_PARAM *add(OSSL_PARAM *at, const char *name, struct str s)
{
	if (s.p)
		*at++ = OSSL_PARAM_construct_octet_string(name, (void *)(uintptr_t)s.p, s.len);
	return at;
}

static bool ask(EVP_KDF_CTX *c, const struct question *q, uint8_t *ret, size_t len)
{
	int mode = q->mode;
	char digest[16];
	OSSL_PARAM params[8], *at = params;
	*at++ = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
	if (q->digest) {
		strcpy(digest, q->digest);
		*at++ = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0);
	}
	at = add(at, OSSL_KDF_PARAM_KEY, q->key);
	at = add(at, OSSL_KDF_PARAM_SALT, q->salt);
	at = add(at, OSSL_KDF_PARAM_PREFIX, q->prefix);
	at = add(at, OSSL_KDF_PARAM_LABEL, q->label);
	at = add(at, OSSL_KDF_PARAM_DATA, q->data);
	*at = OSSL_PARAM_construct_end();
	return EVP_KDF_derive(c, ret, len, params) > 0;
}

static struct str any(struct rand *r, uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)rand_u64(r);
	return (struct str){(const char *)to, len};
}

static void expect_the_same(const struct question *q, size_t len)
{
	uint8_t is[TLS_MAX_SECRET], expected[TLS_MAX_SECRET];
	EVP_KDF_CTX_reset(theirs); // it keeps what it was told
	assert_true(ask(theirs, q, expected, len));
	assert_true(ask(ours, q, is, len));
	assert_memory_equal(is, expected, len);
}

static const struct {
	const char *name;
	size_t len;
} digests[] = {{"SHA256", 32}, {"SHA2-256", 32}, {"SHA384", 48}, {"SHA2-384", 48}};

static void secrets_are_extracted_as_the_library_does(void **state)
{
	struct rand r;
	rand_init(&r, 1);
	for (unsigned i = 0; i < N_ROUNDS; i++) {
		uint8_t key[100], salt[TLS_MAX_SECRET];
		size_t len = digests[i % 4].len;
		struct question q = {.mode = EVP_KDF_HKDF_MODE_EXTRACT_ONLY,
			.digest = digests[i % 4].name,
			.prefix = STR("tls13 "),
			.label = STR("derived")};
		if (rand_u64(&r) % 4)
			q.key = any(&r, key, 1 + rand_u64(&r) % sizeof(key));
		if (rand_u64(&r) % 4)
			q.salt = any(&r, salt, len);
		expect_the_same(&q, len);
	}
}

static void labels_are_expanded_as_the_library_does(void **state)
{
	static const struct str labels[] = {STR("key"), STR("iv"), STR("finished"),
		STR("c ap traffic"), STR("res master"), STR("")};
	struct rand r;
	rand_init(&r, 2);
	for (unsigned i = 0; i < N_ROUNDS; i++) {
		uint8_t key[TLS_MAX_SECRET], data[TLS_MAX_SECRET];
		size_t len = digests[i % 4].len;
		struct question q = {.mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY,
			.digest = digests[i % 4].name,
			.key = any(&r, key, len),
			.prefix = STR("tls13 "),
			.label = labels[rand_u64(&r) % 6]};
		if (rand_u64(&r) % 2)
			q.data = any(&r, data, rand_u64(&r) % 2 ? len : 8);
		expect_the_same(&q, 1 + rand_u64(&r) % len);
	}
}

static void what_tls_13_never_asks_for_is_refused(void **state)
{
	static uint8_t bytes[TLS_MAX_SECRET + 1], ret[TLS_MAX_SECRET + 1];
	const char *p = (const char *)bytes;
	const struct question good = {.mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY,
		.digest = "SHA256",
		.key = {p, 32},
		.prefix = STR("tls13 "),
		.label = STR("key")};
	struct question bad[7];
	assert_true(ask(ours, &good, ret, 32));
	assert_false(ask(ours, &good, ret, 33));
	for (size_t i = 0; i < 7; i++)
		bad[i] = good;
	bad[0].digest = "SHA512";
	bad[1].digest = NULL;
	bad[2].key.len = 31;
	bad[3].prefix = STR("dtls13");
	bad[4].label = (struct str){p, TLSHS_HKDF_MAX_LABEL + 1};
	bad[5].data = (struct str){p, TLS_MAX_SECRET + 1};
	bad[6].mode = EVP_KDF_HKDF_MODE_EXTRACT_AND_EXPAND;
	for (size_t i = 0; i < 7; i++)
		assert_false(ask(ours, &bad[i], ret, 32));
	struct question extract = good;
	extract.mode = EVP_KDF_HKDF_MODE_EXTRACT_ONLY;
	extract.salt = (struct str){p, 31};
	assert_false(ask(ours, &extract, ret, 32));
	extract.salt.len = 32;
	assert_false(ask(ours, &extract, ret, 31));
	assert_true(ask(ours, &extract, ret, 32));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_SUITE("tlshs/kdf", CASE(secrets_are_extracted_as_the_library_does),
	CASE(labels_are_expanded_as_the_library_does), CASE(what_tls_13_never_asks_for_is_refused))
