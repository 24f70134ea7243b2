// SPDX-License-Identifier: Apache-2.0
// Examples of others: FIPS 180-4's, and RFC 8448's.
#include "tests/support/check.h"
#include "tlshs/hkdf.h"

#include <stdio.h>
#include <string.h>

static void from_hex(uint8_t *to, const char *hex)
{
	for (; *hex; hex += 2) {
		unsigned x;
		assert_int_equal(sscanf(hex, "%2x", &x), 1);
		*to++ = (uint8_t)x;
	}
}

static void hashes_give_the_standard_s_bytes(void **state)
{
	uint8_t expected[48], is[48];
	from_hex(expected, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	tlshs_hkdf_hash(TLS_SHA256, "abc", 3, is);
	assert_memory_equal(is, expected, 32);
	from_hex(expected, "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed"
			   "8086072ba1e7cc2358baeca134c825a7");
	tlshs_hkdf_hash(TLS_SHA384, "abc", 3, is);
	assert_memory_equal(is, expected, 48);
}

// RFC 8448 3: the early secret, and that of the handshake.
static void a_salt_and_a_text_make_a_secret(void **state)
{
	uint8_t salt[32] = {0}, text[32] = {0}, expected[32], is[32];
	struct str what = {(const char *)text, sizeof(text)};
	from_hex(expected, "33ad0a1c607ec03b09e6cd9893680ce210adf300aa1f2660e1b22e10f170f92a");
	tlshs_hkdf_extract(TLS_SHA256, salt, what, is);
	assert_memory_equal(is, expected, 32);
	from_hex(salt, "6f2615a108c702c5678f54fc9dbab69716c076189c48250cebeac3576c3611ba");
	from_hex(text, "8bd4054fb55b9d63fdfbacf9f04b9f0d35e6d63f537563efd46272900f89492d");
	from_hex(expected, "1dc826e93606aa6fdc0aadc12f741b01046aa6b99f691ed221a9f0ca043fbeac");
	tlshs_hkdf_extract(TLS_SHA256, salt, what, is);
	assert_memory_equal(is, expected, 32);
}

// RFC 5869 A.1: longer than a hash.
static void as_many_bytes_as_are_wanted_come_of_a_secret(void **state)
{
	uint8_t secret[32], info[10], expected[42], is[42];
	from_hex(secret, "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
	from_hex(info, "f0f1f2f3f4f5f6f7f8f9");
	from_hex(expected, "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
			   "34007208d5b887185865");
	tlshs_hkdf_expand(
		TLS_SHA256, secret, (struct str){(const char *)info, sizeof(info)}, is, sizeof(is));
	assert_memory_equal(is, expected, sizeof(is));
}

// RFC 8448 3: what follows the early secret, in the context of no messages.
static void a_label_and_a_context_make_a_secret(void **state)
{
	uint8_t secret[32], nothing[32], expected[32], is[32];
	from_hex(secret, "33ad0a1c607ec03b09e6cd9893680ce210adf300aa1f2660e1b22e10f170f92a");
	from_hex(expected, "6f2615a108c702c5678f54fc9dbab69716c076189c48250cebeac3576c3611ba");
	tlshs_hkdf_hash(TLS_SHA256, "", 0, nothing);
	struct str context = {(const char *)nothing, sizeof(nothing)};
	tlshs_hkdf_expand_label(TLS_SHA256, secret, STR("derived"), context, is, 32);
	assert_memory_equal(is, expected, 32);
	tlshs_hkdf_expand_label(TLS_SHA256, secret, STR("derived"), context, secret, 32);
	assert_memory_equal(secret, expected, 32);
}

// RFC 8448 3: the server's keys of data.
static void a_traffic_secret_makes_key_and_iv(void **state)
{
	uint8_t key[16], iv[12];
	struct tls_direction d = {.seq = 7};
	from_hex(d.secret, "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643");
	from_hex(key, "9f02283b6c9c07efc26bb9f2ac92e356");
	from_hex(iv, "cf782b88dd83549aadf1e984");
	tlshs_hkdf_derive_keys(TLS_SHA256, TLS_AES_128_GCM, &d);
	assert_memory_equal(d.key, key, sizeof(key));
	assert_memory_equal(d.iv, iv, sizeof(iv));
	assert_int_equal(d.seq, 7);
}

RUN_SUITE("tlshs/hkdf", cmocka_unit_test(hashes_give_the_standard_s_bytes),
	cmocka_unit_test(a_salt_and_a_text_make_a_secret),
	cmocka_unit_test(as_many_bytes_as_are_wanted_come_of_a_secret),
	cmocka_unit_test(a_label_and_a_context_make_a_secret),
	cmocka_unit_test(a_traffic_secret_makes_key_and_iv))
