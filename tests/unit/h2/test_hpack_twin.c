// SPDX-License-Identifier: Apache-2.0
// The fuzz target's comparison with nghttp2's coder, on header blocks that nghttp2 made of random
// fields, with limits that change, and on the same with bytes altered; on Huffman code of all
// kinds, and on each name that we know. Argument: a seed.
#include "dataplane/h2/hpack_tables.h"
#include "tests/support/check.h"

#include <nghttp2/nghttp2.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern uint64_t fuzz_hpack_n_fields;

#define MAX_FIELDS 24
#define N_NAMES 48

static uint64_t dice = 1;

static uint64_t roll(uint64_t n)
{
	dice = dice * 6364136223846793005u + 1442695040888963407u;
	return (dice >> 33) % n;
}

static const char *const names[] = {":method", ":path", ":scheme", ":status", ":authority",
	"accept-encoding", "content-type", "content-length", "cookie", "authorization", "te",
	"user-agent", "grpc-status", "grpc-timeout", "set-cookie", "via", "date", "x-request-id"};
static const char *const values[] = {"GET", "POST", "/", "http", "200", "404", "gzip, deflate",
	"application/grpc", "trailers", "", "0", "a.test"};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static size_t some_bytes(char *out, size_t most, bool any)
{
	size_t len = roll(most + 1);
	for (size_t i = 0; i < len; i++)
		out[i] = (char)(any ? roll(256) : 'a' + roll(26));
	return len;
}

static nghttp2_nv some_field(char *name, char *value)
{
	nghttp2_nv nv = {.flags = roll(12) ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX};
	const char *known = names[roll(COUNT(names))], *text = values[roll(COUNT(values))];
	if (roll(3)) {
		nv.namelen = strlen(known);
		memcpy(name, known, nv.namelen);
	} else {
		nv.namelen = (size_t)snprintf(name, 16, "x-%d", (int)roll(N_NAMES));
	}
	switch (roll(8)) {
	case 0:
		nv.valuelen = some_bytes(value, roll(20) ? 40 : 1500, true);
		break;
	case 1:
		nv.valuelen = some_bytes(value, 60, false);
		break;
	case 2:
		nv.valuelen = (size_t)snprintf(value, 16, "%d", (int)roll(1000));
		break;
	default:
		nv.valuelen = strlen(text);
		memcpy(value, text, nv.valuelen);
	}
	nv.name = (uint8_t *)name;
	nv.value = (uint8_t *)value;
	return nv;
}

struct input {
	uint8_t bytes[1 << 16];
	size_t len;
};

static void add_block(struct input *in, nghttp2_hd_deflater *d)
{
	static char name_text[MAX_FIELDS][32], value_text[MAX_FIELDS][2000];
	nghttp2_nv nvs[MAX_FIELDS];
	static uint8_t block[65536];
	size_t n = roll(MAX_FIELDS);
	for (size_t i = 0; i < n; i++)
		nvs[i] = some_field(name_text[i], value_text[i]);
	if (roll(10) == 0)
		assert_int_equal(nghttp2_hd_deflate_change_table_size(d, roll(4200)), 0);
	ssize_t len = nghttp2_hd_deflate_hd(d, block, sizeof(block), nvs, n);
	assert_true(len >= 0);
	if (len > 4095) // it is never sent, nor is what follows
		return;
	uint64_t limit = roll(8) ? 0 : roll(16);
	if (in->len + 2 + (size_t)len > sizeof(in->bytes))
		return;
	in->bytes[in->len++] = (uint8_t)len;
	in->bytes[in->len++] = (uint8_t)((uint64_t)(len >> 8) | limit << 4);
	memcpy(in->bytes + in->len, block, (size_t)len);
	in->len += (size_t)len;
}

static void connection(struct input *in)
{
	nghttp2_hd_deflater *d;
	assert_int_equal(nghttp2_hd_deflate_new(&d, 4096), 0);
	in->len = 0;
	for (uint64_t n = 1 + roll(40); n; n--)
		add_block(in, d);
	nghttp2_hd_deflate_del(d);
}

static void blocks_of_nghttp2_mean_the_same_to_us(void **state)
{
	static struct input in;
	fuzz_hpack_n_fields = 0;
	for (int i = 0; i < 400; i++) {
		connection(&in);
		LLVMFuzzerTestOneInput(in.bytes, in.len);
	}
	assert_true(fuzz_hpack_n_fields > 50000);
}

// TH-07
static void altered_blocks_are_judged_as_by_nghttp2(void **state)
{
	static struct input in;
	for (int i = 0; i < 3000; i++) {
		connection(&in);
		for (uint64_t n = 1 + roll(4); n && in.len; n--)
			in.bytes[roll(in.len)] = (uint8_t)roll(256);
		LLVMFuzzerTestOneInput(in.bytes, roll(4) ? in.len : roll(in.len + 1));
	}
}

// TH-07
static void noise_is_judged_as_by_nghttp2(void **state)
{
	uint8_t noise[64];
	for (int i = 0; i < 30000; i++) {
		size_t len = 2 + roll(sizeof(noise) - 2);
		for (size_t k = 0; k < len; k++)
			noise[k] = (uint8_t)(roll(4) ? 0x80 | roll(0x80) : roll(256));
		noise[0] = (uint8_t)roll(len);
		noise[1] = 0;
		LLVMFuzzerTestOneInput(noise, len);
	}
}

// A field that is never indexed. An input of odd length has our own block Huffman coded.
static void judge_literal(struct str name, const uint8_t *value, size_t len, bool huffman)
{
	uint8_t in[128] = {0, 0, 0x10, (uint8_t)name.len};
	size_t n = 4;
	memcpy(in + n, name.p, name.len);
	n += name.len;
	in[n++] = (uint8_t)(len | (huffman ? 0x80 : 0));
	memcpy(in + n, value, len);
	n += len;
	in[0] = (uint8_t)(n - 2);
	LLVMFuzzerTestOneInput(in, n | 1); // one byte more makes no block
}

// Padding, EOS, codes that are cut off, longer than a look-up (RFC 7541 5.2).
static void huffman_code_is_judged_as_by_nghttp2(void **state)
{
	const struct str name = {"a", 1};
	uint8_t code[32];
	for (unsigned i = 0; i < 1u << 16; i++) {
		code[0] = (uint8_t)(i >> 8);
		code[1] = (uint8_t)i;
		judge_literal(name, code, i % 256 ? 2 : 1, true);
	}
	fuzz_hpack_n_fields = 0;
	for (int i = 0; i < 30000; i++) {
		size_t len = roll(sizeof(code) + 1);
		for (size_t k = 0; k < len; k++)
			code[k] = (uint8_t)(roll(5) ? roll(256) : 0xff);
		if (len && roll(2))
			code[len - 1] |= (uint8_t)(0xff >> roll(8));
		judge_literal(name, code, len, true);
	}
	assert_true(fuzz_hpack_n_fields > 3000);
}

static void each_name_we_know_is_understood_by_nghttp2(void **state)
{
	const uint8_t value[] = "some value";
	for (uint32_t i = 1; i < HPACK_N_NAMES; i++) {
		const struct hpack_known *k = &hpack_known[i];
		if (!k->len)
			continue;
		fuzz_hpack_n_fields = 0;
		judge_literal((struct str){k->name, k->len}, value, sizeof(value) - 1, false);
		// As read, as read in parts, and as read of what we wrote.
		assert_int_equal(fuzz_hpack_n_fields, 3);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_of_nghttp2_mean_the_same_to_us),
		cmocka_unit_test(altered_blocks_are_judged_as_by_nghttp2),
		cmocka_unit_test(noise_is_judged_as_by_nghttp2),
		cmocka_unit_test(huffman_code_is_judged_as_by_nghttp2),
		cmocka_unit_test(each_name_we_know_is_understood_by_nghttp2)};
	if (argc > 1)
		dice = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests_name("h2/hpack_twin", tests, NULL, NULL);
}
