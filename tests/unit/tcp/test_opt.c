// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tcp/opt.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"

#include <string.h>

static bool parse(const char *bytes, size_t len, struct tcp_opts *ret)
{
	return tcp_opts_parse((const uint8_t *)bytes, len, ret);
}

static void a_linux_syn_is_understood(void **state)
{
	struct tcp_opts o;
	assert_true(parse("\2\4\5\xb4\4\2\x8\xa\0\0\0\7\0\0\0\0\1\3\3\7", 20, &o));
	assert_true(o.has_mss && o.has_ts && o.has_wscale && o.sack_ok);
	assert_int_equal(o.mss, 1460);
	assert_int_equal(o.ts_val, 7);
	assert_int_equal(o.wscale, 7);
}

static void sack_blocks_are_read_in_order(void **state)
{
	struct tcp_opts o;
	assert_true(parse("\1\1\5\x12\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4", 20, &o));
	assert_int_equal(o.n_sack, 2);
	assert_int_equal(o.sack[1].start, 3);
	assert_int_equal(o.sack[1].end, 4);
}

// TCP-05
static void unknown_options_and_what_follows_the_end_are_skipped(void **state)
{
	struct tcp_opts o;
	assert_true(parse("\xfe\4zz\2\4\1\0", 8, &o));
	assert_int_equal(o.mss, 256);
	assert_true(parse("\0\2\0\0", 4, &o));
	assert_false(o.has_mss);
	assert_true(parse("", 0, &o));
}

// TCP-35, RFC 7323 2.3.
static void a_scale_beyond_14_counts_as_14(void **state)
{
	struct tcp_opts o;
	assert_true(parse("\3\3\xff\1", 4, &o));
	assert_int_equal(o.wscale, 14);
}

// TCP-05, RFC 9293 3.2, MUST-7: an illegal length must do no harm.
static void impossible_lengths_are_refused(void **state)
{
	struct tcp_opts o = {.mss = 5};
	assert_false(parse("\2\0\5\xb4", 4, &o)); // zero
	assert_false(parse("\2\1\5\xb4", 4, &o)); // shorter than itself
	assert_false(parse("\2\5\5\xb4", 4, &o)); // over the end
	assert_false(parse("\1\1\1\2", 4, &o)); // no length at all
	assert_false(parse("\2\3\5\1", 4, &o)); // MSS of one byte
	assert_false(parse("\3\4\5\1", 4, &o));
	assert_false(parse("\4\3\5\1", 4, &o));
	assert_false(parse("\x8\4\5\1", 4, &o));
	assert_false(parse("\5\2\1\1", 4, &o)); // no block
	assert_false(parse("\5\6\1\1\1\1\1\1", 8, &o)); // half a block
	assert_int_equal(o.mss, 5); // untouched
}

static void what_is_written_reads_back_the_same(void **state)
{
	struct rand r;
	rand_init(&r, 1);
	for (unsigned i = 0; i < 20000; i++) {
		struct tcp_opts in = {0}, out;
		uint8_t bytes[TCP_OPT_MAX];
		in.has_mss = rand_below(&r, 2);
		in.mss = in.has_mss ? (uint16_t)rand_u64(&r) : 0;
		in.has_wscale = rand_below(&r, 2);
		in.wscale = in.has_wscale ? (uint8_t)rand_below(&r, 15) : 0;
		in.has_ts = rand_below(&r, 2);
		in.sack_ok = rand_below(&r, 2);
		if (in.has_ts) {
			in.ts_val = (uint32_t)rand_u64(&r);
			in.ts_ecr = (uint32_t)rand_u64(&r);
		}
		if (!in.has_mss && !in.has_wscale && !in.sack_ok) {
			in.n_sack = (uint8_t)rand_below(&r, 4);
			for (unsigned k = 0; k < in.n_sack; k++)
				in.sack[k] = (struct tcp_sack_block){(uint32_t)rand_u64(&r), k};
		}
		size_t len = tcp_opts_write(&in, bytes);
		assert_int_equal(len % 4, 0);
		assert_true(len <= TCP_OPT_MAX);
		assert_true(tcp_opts_parse(bytes, len, &out));
		assert_memory_equal(&in, &out, sizeof(in));
	}
}

// Four NOPs before it, and no SYN is the usual one.
static void the_usual_syn_is_read_as_any_other(void **state)
{
	uint8_t bytes[24] = "\1\1\1\1\2\4\5\xb4\4\2\x8\xa\0\0\0\7\0\0\0\1\1\3\3";
	struct tcp_opts usual, any;
	for (unsigned at = 4; at < sizeof(bytes); at++) {
		uint8_t right = bytes[at];
		for (unsigned wrong = 0; wrong < 256; wrong++) {
			bytes[at] = (uint8_t)wrong;
			bool fine = tcp_opts_parse(bytes + 4, 20, &usual);
			assert_int_equal(tcp_opts_parse(bytes, 24, &any), fine);
			if (fine)
				assert_memory_equal(&usual, &any, sizeof(any));
		}
		bytes[at] = right;
	}
}

static void what_follows_the_usual_syn_counts(void **state)
{
	uint8_t bytes[24] = "\2\4\5\xb4\4\2\x8\xa\0\0\0\7\0\0\0\1\1\3\3\7\2\4\4\0";
	struct tcp_opts o;
	assert_true(tcp_opts_parse(bytes, 24, &o));
	assert_int_equal(o.mss, 1024);
	assert_int_equal(o.wscale, 7);
	bytes[21] = 5; // one more than there are
	assert_false(tcp_opts_parse(bytes, 24, &o));
}

// TCP-05
static void random_bytes_never_read_beyond_the_end(void **state)
{
	struct rand r;
	rand_init(&r, 2);
	for (unsigned i = 0; i < 50000; i++) {
		size_t len = rand_below(&r, TCP_OPT_MAX + 1);
		uint8_t *bytes = test_malloc(len + 1); // ASan watches its end
		struct tcp_opts o;
		for (size_t k = 0; k < len; k++)
			bytes[k] = (uint8_t)rand_below(&r, rand_below(&r, 2) ? 12 : 256);
		if (tcp_opts_parse(bytes + 1, len ? len - 1 : 0, &o))
			assert_true(o.n_sack <= TCP_MAX_SACK_BLOCKS && o.wscale <= 14);
		test_free(bytes);
	}
}

RUN_SUITE("tcp/opt", cmocka_unit_test(a_linux_syn_is_understood),
	cmocka_unit_test(sack_blocks_are_read_in_order),
	cmocka_unit_test(unknown_options_and_what_follows_the_end_are_skipped),
	cmocka_unit_test(a_scale_beyond_14_counts_as_14),
	cmocka_unit_test(impossible_lengths_are_refused),
	cmocka_unit_test(what_is_written_reads_back_the_same),
	cmocka_unit_test(the_usual_syn_is_read_as_any_other),
	cmocka_unit_test(what_follows_the_usual_syn_counts),
	cmocka_unit_test(random_bytes_never_read_beyond_the_end))
