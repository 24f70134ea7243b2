// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/grpc_frames.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"

#include <string.h>

#define SIZE 4096

static uint8_t body[SIZE];
static bool whole_at[SIZE + 1];

// Messages of random lengths, some of none, up to SIZE bytes; the last one may be cut.
static void make_body(struct rand *r)
{
	memset(whole_at, 0, sizeof(whole_at));
	size_t at = 0;
	while (at < SIZE) {
		whole_at[at] = true;
		uint32_t len = (uint32_t)rand_below(r, rand_below(r, 4) ? 20 : 2000);
		uint8_t prefix[PROXY_FRAME_PREFIX] = {
			(uint8_t)rand_below(r, 2), 0, 0, (uint8_t)(len >> 8), (uint8_t)len};
		for (size_t i = 0; i < sizeof(prefix) + len && at + i < SIZE; i++)
			body[at + i] = i < sizeof(prefix) ? prefix[i] : (uint8_t)rand_u64(r);
		at += sizeof(prefix) + len;
	}
	whole_at[SIZE] = at == SIZE;
}

// A31-T08: in whatever pieces it comes.
static void messages_end_where_their_lengths_say(void **state)
{
	struct rand r;
	rand_init(&r, 1);
	for (int round = 0; round < 500; round++) {
		make_body(&r);
		struct proxy_frames f = {0};
		size_t most = rand_below(&r, round % 2 ? 8 : 1000) + 1;
		for (size_t at = 0; at < SIZE;) {
			assert_int_equal(proxy_frames_whole(&f), whole_at[at]);
			size_t n = rand_below(&r, most + 1);
			n = n < SIZE - at ? n : SIZE - at;
			while (round % 3 == 0 && at + n < SIZE && !whole_at[at + n])
				n++; // to the end of a message
			proxy_frames_feed(&f, body + at, n);
			at += n;
		}
		assert_int_equal(proxy_frames_whole(&f), whole_at[SIZE]);
	}
}

static void a_length_has_32_bits(void **state)
{
	struct proxy_frames f = {0};
	static const uint8_t prefix[] = {0, 0xff, 0xff, 0xff, 0xff};
	static uint8_t zeros[1 << 16];
	proxy_frames_feed(&f, prefix, sizeof(prefix));
	for (int i = 0; i < 0xffff; i++)
		proxy_frames_feed(&f, zeros, sizeof(zeros));
	assert_false(proxy_frames_whole(&f));
	proxy_frames_feed(&f, zeros, sizeof(zeros) - 1);
	assert_true(proxy_frames_whole(&f));
}

RUN_SUITE("proxy/grpc_frames", cmocka_unit_test(messages_end_where_their_lengths_say),
	cmocka_unit_test(a_length_has_32_bits))
