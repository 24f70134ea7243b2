// SPDX-License-Identifier: Apache-2.0
#include "lb/base/base64.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"

#include <openssl/evp.h>

#include <string.h>

// RFC 4648 10
static void vectors_of_the_rfc(void **state)
{
	static const struct {
		const char *plain, *text;
	} rows[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="},
		{"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff\xbf", "+/+/"}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char out[16];
		size_t len = base64_encode(rows[i].plain, strlen(rows[i].plain), out);
		assert_int_equal(len, strlen(rows[i].text));
		assert_memory_equal(out, rows[i].text, len);
		assert_true(base64_decode(str_from(rows[i].text), out, &len));
		assert_int_equal(len, strlen(rows[i].plain));
		assert_memory_equal(out, rows[i].plain, len);
	}
}

static void anything_else_is_refused(void **state)
{
	static const char *const bad[] = {"Z", "Zg", "Zg=", "=",
		"====", "Z===", "Zg==Zg==", "Zm8=\n", "Zm-_", "Zm 9",
		"Zh==", "Zm9=", "Z=g=", "\x80\x80\x80\x80"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint8_t out[16];
		size_t len = 77;
		assert_false(base64_decode(str_from(bad[i]), out, &len));
		assert_int_equal(len, 77);
	}
	uint8_t out[4];
	size_t len;
	assert_false(base64_decode((struct str){"Zm\0v", 4}, out, &len));
}

static void random_bytes_encode_as_openssl_does_and_come_back(void **state)
{
	struct rand rand;
	rand_init(&rand, 5);
	for (int i = 0; i < 20000; i++) {
		uint8_t plain[48];
		char text[BASE64_SIZE(sizeof(plain))], twin[BASE64_SIZE(sizeof(plain)) + 1];
		size_t len = rand_below(&rand, sizeof(plain) + 1), n;
		for (size_t j = 0; j < len; j++)
			plain[j] = (uint8_t)rand_u64(&rand);
		n = base64_encode(plain, len, text);
		assert_int_equal(n, EVP_EncodeBlock((uint8_t *)twin, plain, (int)len));
		assert_memory_equal(text, twin, n);
		size_t back;
		assert_true(base64_decode((struct str){text, n}, text, &back)); // in place
		assert_int_equal(back, len);
		assert_memory_equal(text, plain, len);
	}
}

// A text that decodes is the only one of its bytes.
static void whatever_decodes_encodes_to_the_same_text(void **state)
{
	static const char some[] = "ABab01+/==Q=\n";
	struct rand rand;
	rand_init(&rand, 6);
	int n_decoded = 0;
	for (int i = 0; i < 200000; i++) {
		char text[12], again[12];
		uint8_t plain[9];
		size_t len = rand_below(&rand, sizeof(text) + 1), n;
		for (size_t j = 0; j < len; j++)
			text[j] = some[rand_below(&rand, sizeof(some) - 1)];
		if (!base64_decode((struct str){text, len}, plain, &n))
			continue;
		n_decoded++;
		assert_int_equal(base64_encode(plain, n, again), len);
		assert_memory_equal(again, text, len);
	}
	assert_true(n_decoded > 1000);
}

RUN_SUITE("base/base64", cmocka_unit_test(vectors_of_the_rfc),
	cmocka_unit_test(anything_else_is_refused),
	cmocka_unit_test(random_bytes_encode_as_openssl_does_and_come_back),
	cmocka_unit_test(whatever_decodes_encodes_to_the_same_text))
