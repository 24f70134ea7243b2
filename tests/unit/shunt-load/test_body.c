// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "tests/support/check.h"
#include "tools/shunt-load/body.h"
#include "tools/shunt-load/seen.h"

#include <string.h>

#define MAX 5000

static size_t make(uint64_t id, size_t size, bool is_grpc, uint8_t *out)
{
	size_t n = is_grpc ? BODY_GRPC_PREFIX : 0;
	memset(out, 0, n);
	if (is_grpc) {
		out[3] = (uint8_t)(size >> 8);
		out[4] = (uint8_t)size;
	}
	body_fill(id, 0, out + n, size);
	return n + size;
}

// In pieces of random length.
static void feed(struct body_in *in, struct rand *rand, const uint8_t *p, size_t len)
{
	while (len) {
		size_t n = 1 + rand_below(rand, len);
		body_in_feed(in, p, n);
		p += n;
		len -= n;
	}
}

static void a_body_is_right_however_it_is_cut(void **state)
{
	uint8_t bytes[MAX + BODY_GRPC_PREFIX];
	struct rand rand;
	rand_init(&rand, 3);
	for (int i = 0; i < 2000; i++) {
		bool is_grpc = i & 1, known = i & 2;
		size_t size = rand_below(&rand, i & 4 ? 20 : MAX);
		uint64_t id = rand_u64(&rand), said;
		size_t len = make(id, size, is_grpc, bytes);
		struct body_in in = {.is_grpc = is_grpc, .id_known = known, .id = known ? id : 0};
		feed(&in, &rand, bytes, len);
		assert_true(body_in_is(&in, size));
		assert_false(body_in_is(&in, size + 1));
		assert_int_equal(body_in_said_id(&in, &said), size >= BODY_ID_LEN);
		if (size >= BODY_ID_LEN)
			assert_true(said == id && in.id_known && in.id == id);
	}
}

static void each_altered_byte_is_found(void **state)
{
	uint8_t bytes[100 + BODY_GRPC_PREFIX];
	struct rand rand;
	rand_init(&rand, 4);
	for (size_t at = 0; at < sizeof(bytes); at++) {
		size_t len = make(77, 100, true, bytes);
		assert_int_equal(len, sizeof(bytes));
		bytes[at] ^= (uint8_t)(1 + rand_below(&rand, 255));
		struct body_in in = {.is_grpc = true, .id_known = true, .id = 77};
		feed(&in, &rand, bytes, len);
		assert_false(body_in_is(&in, 100));
	}
}

static void missing_and_surplus_bytes_are_found(void **state)
{
	uint8_t bytes[101];
	make(77, 101, false, bytes);
	for (size_t len = 0; len <= 101; len++) {
		struct body_in in = {.id_known = true, .id = 77};
		body_in_feed(&in, bytes, len);
		assert_int_equal(body_in_is(&in, 100), len == 100);
	}
}

static void another_requests_body_is_told_by_its_id(void **state)
{
	uint8_t bytes[64];
	uint64_t said;
	make(body_id(5, 1000), 64, false, bytes);
	struct body_in in = {.id_known = true, .id = body_id(5, 1001)};
	body_in_feed(&in, bytes, 64);
	assert_false(body_in_is(&in, 64));
	assert_true(body_in_said_id(&in, &said));
	assert_int_equal(body_id_tag(said), 5);
	assert_int_equal(body_id_seq(said), 1000);
}

static void a_number_is_new_once(void **state)
{
	static struct seen seen;
	static bool naive[4 * SEEN_WINDOW];
	struct rand rand;
	rand_init(&rand, 5);
	uint64_t n = 0;
	for (int i = 0; i < 200000; i++) {
		// Mostly forwards, some jumps, some from behind.
		n += rand_below(&rand, 1000) == 0 ? 5000 : 2;
		uint64_t behind = rand_below(&rand, 50);
		uint64_t x = n > behind ? n - behind : 0;
		assert_true(x < 4 * SEEN_WINDOW);
		assert_int_equal(seen_before(&seen, x), naive[x]);
		naive[x] = true;
	}
	assert_false(seen_before(&seen, 40 * SEEN_WINDOW));
	assert_true(seen_before(&seen, 40 * SEEN_WINDOW));
	assert_false(seen_before(&seen, n)); // too long ago to know
}

RUN_SUITE("shunt-load/body", cmocka_unit_test(a_body_is_right_however_it_is_cut),
	cmocka_unit_test(each_altered_byte_is_found),
	cmocka_unit_test(missing_and_surplus_bytes_are_found),
	cmocka_unit_test(another_requests_body_is_told_by_its_id),
	cmocka_unit_test(a_number_is_new_once))
