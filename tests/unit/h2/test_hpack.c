// SPDX-License-Identifier: Apache-2.0
// HPACK: the examples of RFC 7541 Appendix C, what is no header block, what we choose when we
// encode, and want of memory.
#include "dataplane/h2/hpack.h"
#include "dataplane/h2/hpack_memo.h"
#include "dataplane/h2/huffman.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_PAGES 4

static struct hpack_mem *memory;
static struct hpack_memo *memo;
static struct hpack hpack;
static char text[4096]; // "name: value\n" of each field
static char room[HPACK_ROOM(8192)];

static int setup(void **state)
{
	memory = hpack_mem_new(N_PAGES);
	memo = hpack_memo_new();
	hpack_init(&hpack, true);
	return memory && memo ? 0 : -1;
}

static int teardown(void **state)
{
	hpack_fini(&hpack, memory);
	assert_int_equal(hpack_mem_used(memory), 0);
	hpack_mem_free(memory);
	hpack_memo_free(memo);
	return 0;
}

static bool write_down(void *ctx, struct hpack_field *f)
{
	size_t len = strlen(text);
	snprintf(text + len, sizeof(text) - len, "%.*s: %.*s%s\n", (int)f->name.len, f->name.p,
		(int)f->value.len, f->value.p, f->never_index ? " (never)" : "");
	return true;
}

static size_t n_moves;

static void count_move(void *ctx, const char *p, size_t len)
{
	n_moves++;
}

static void ignore_move(void *ctx, const char *p, size_t len)
{
}

static bool refuse(void *ctx, struct hpack_field *f)
{
	return false;
}

static const struct hpack_sink sink = {write_down, ignore_move, NULL};

static size_t from_hex(const char *hex, uint8_t *out)
{
	size_t len = 0;
	for (; *hex; hex++) {
		if (*hex == ' ')
			continue;
		unsigned byte;
		assert_int_equal(sscanf(hex, "%2x", &byte), 1);
		out[len++] = (uint8_t)byte;
		hex++;
	}
	return len;
}

static enum hpack_result decode(const char *hex)
{
	uint8_t in[4096];
	size_t len = from_hex(hex, in);
	uint8_t *copy = malloc(len + 1); // so that a sanitizer sees a read beyond it
	assert_non_null(copy);
	memcpy(copy, in, len);
	text[0] = '\0';
	enum hpack_result r = hpack_decode(&hpack, memory, memo, copy, len, room, &sink);
	free(copy);
	return r;
}

static void expect(const char *hex, const char *fields)
{
	assert_int_equal(decode(hex), HPACK_OK);
	assert_string_equal(text, fields);
}

// C.2
static void rfc7541_c2_each_representation(void **state)
{
	expect("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
		"custom-key: custom-header\n");
	expect("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path\n");
	expect("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret (never)\n");
	expect("82", ":method: GET\n");
	expect("be", "custom-key: custom-header\n");
}

#define C3_1 ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n"
#define C3_2 C3_1 "cache-control: no-cache\n"
#define C3_3                                                                                       \
	":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\n"          \
	"custom-key: custom-value\n"

static void rfc7541_c3_requests_without_huffman_coding(void **state)
{
	expect("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", C3_1);
	expect("8286 84be 5808 6e6f 2d63 6163 6865", C3_2);
	expect("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", C3_3);
}

static void rfc7541_c4_requests_with_huffman_coding(void **state)
{
	expect("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", C3_1);
	expect("8286 84be 5886 a8eb 1064 9cbf", C3_2);
	expect("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", C3_3);
}

#define C5_1                                                                                       \
	":status: 302\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\n"              \
	"location: https://www.example.com\n"
#define C5_2                                                                                       \
	":status: 307\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\n"              \
	"location: https://www.example.com\n"
#define C5_3                                                                                       \
	":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\n"              \
	"location: https://www.example.com\ncontent-encoding: gzip\n"                              \
	"set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1\n"

// The examples' tables have 256 bytes: the first block says so.
static void rfc7541_c5_responses_that_evict(void **state)
{
	expect("3fe101 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 "
	       "3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 "
	       "6d70 6c65 2e63 6f6d",
		C5_1);
	expect("4803 3330 37c1 c0bf", C5_2);
	expect("88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d "
	       "54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 "
	       "5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e "
	       "3d31",
		C5_3);
}

static void rfc7541_c6_responses_with_huffman_coding(void **state)
{
	expect("3fe101 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 "
	       "82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
		C5_1);
	expect("4883 640e ffc1 c0bf", C5_2);
	expect("88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab "
	       "77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f "
	       "9587 3160 65c0 03ed 4ee5 b106 3d50 07",
		C5_3);
}

static void what_is_no_header_block_is_refused(void **state)
{
	static const char *const bad[] = {
		"80", // 6.1: index 0
		"be", // beyond the table
		"ff ffff ffff 0f", // 5.1: a number too large
		"ff 8080 8080 8000", // too long
		"ff", // cut short
		"40", "4001", "400161", "40016101", // cut short at each place
		"0001610f 61", // a length beyond the block
		"82 20", // 4.2: a change of the limit behind a field
		"3fe21f", // 6.3: above our limit of 4096
		"0001 61 81 ff", // 5.2: padding of 8 bits
		"0001 61 82 1fff", // 'a' and padding of 11 bits
		"0001 61 84 ffff ffff", // EOS
		"0001 61 81 18", // padding that is not EOS's beginning
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (decode(bad[i]) != HPACK_BAD)
			fail_msg("%s was taken", bad[i]);
	expect("3fe11f 82", ":method: GET\n"); // 4096 itself
	expect("20 3fe11f 82", ":method: GET\n"); // 4.2: lowered and raised
	expect("", "");
}

// RFC 7541 4.4
static void an_entry_larger_than_the_table_empties_it(void **state)
{
	expect("3f21 4001 6101 62", "a: b\n"); // a limit of 64
	expect("be", "a: b\n");
	expect("4001 6321 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 "
	       "3030 "
	       "3030 30",
		"c: 000000000000000000000000000000000\n");
	assert_int_equal(decode("be"), HPACK_BAD);
}

static void the_sink_stops_a_block(void **state)
{
	static const struct hpack_sink stops = {refuse, ignore_move, NULL};
	static const uint8_t in[] = {0x82, 0x84};
	assert_int_equal(
		hpack_decode(&hpack, memory, memo, in, sizeof(in), room, &stops), HPACK_STOPPED);
}

// What coding makes longer is not coded; behind enough of what it makes shorter it is.
static void every_byte_survives_huffman_coding(void **state)
{
	uint8_t coded[1024 + HUFFMAN_SLACK];
	char in[1024], out[HUFFMAN_ROOM(1024)];
	for (unsigned byte = 0; byte < 256; byte++)
		for (unsigned len = 1; len < 20; len++) {
			const unsigned before = 16 * len;
			memset(in, 'e', before);
			memset(in + before, (int)byte, len);
			size_t n = huffman_encode(in, before + len, coded);
			assert_true(n && n < before + len);
			assert_int_equal(huffman_decode(coded, n, out), before + len);
			assert_memory_equal(in, out, before + len);
		}
	memset(in, 0xff, sizeof(in));
	assert_int_equal(huffman_encode(in, sizeof(in), coded), 0);
}

// Encodes, and tells what a peer makes of it.
static size_t encode_to(struct hpack *peer, struct field f)
{
	uint8_t out[512];
	assert_true(hpack_bound(&f, 1) <= sizeof(out));
	size_t len = hpack_encode(&hpack, memory, &f, 1, out);
	text[0] = '\0';
	assert_int_equal(hpack_decode(peer, memory, memo, out, len, room, &sink), HPACK_OK);
	return len;
}

static void a_field_is_added_when_it_comes_again(void **state)
{
	struct hpack peer;
	struct field f = {.name = STR("x-tenant"), .value = STR("blue")};
	hpack_init(&peer, true);
	assert_true(encode_to(&peer, f) > 5);
	assert_null(peer.received);
	assert_true(encode_to(&peer, f) > 5);
	assert_non_null(peer.received);
	assert_int_equal(encode_to(&peer, f), 1);
	assert_string_equal(text, "x-tenant: blue\n");
	hpack_fini(&peer, memory);
}

// Whichever they are: none keeps another one from being remembered, but for two marks in thousands
// that are the same by chance.
static void all_fields_of_a_block_are_added_when_it_comes_again(void **state)
{
	struct field fields[10];
	char names[10][16], values[10][16];
	uint8_t out[1024];
	int n_whole = 0;
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 10; i++) {
			snprintf(names[i], sizeof(names[i]), "x-%d", 10 * round + i);
			snprintf(values[i], sizeof(values[i]), "%d", 7919 * round + i);
			fields[i] =
				(struct field){str_from(names[i]), str_from(values[i]), false, 0};
		}
		assert_true(hpack_bound(fields, 10) <= sizeof(out));
		assert_true(hpack_encode(&hpack, memory, fields, 10, out) > 10);
		assert_true(hpack_encode(&hpack, memory, fields, 10, out) > 10);
		n_whole += hpack_encode(&hpack, memory, fields, 10, out) == 10;
		assert_int_equal(hpack_encode(&hpack, memory, fields, 10, out), 10);
		hpack_fini(&hpack, memory);
	}
	assert_in_range(n_whole, 195, 200);
}

// RFC 7541 7.1.3
static void secrets_are_never_added(void **state)
{
	static const struct field secrets[] = {
		{STR("authorization"), STR("Bearer abcdefghijklmnopqrstuvwxyz"), false, 0},
		{STR("proxy-authorization"), STR("Basic abc"), false, 0},
		{STR("cookie"), STR("a=short"), false, 0},
		{STR("x-other"), STR("value"), true, 0},
	};
	struct hpack peer;
	hpack_init(&peer, true);
	for (int i = 0; i < 12; i++) {
		encode_to(&peer, secrets[i % 4]);
		assert_non_null(strstr(text, "(never)"));
	}
	assert_null(peer.received);
	hpack_fini(&peer, memory);
}

// Nor are they referred to, where the same text is in a table as no secret.
static void a_secret_is_sent_as_one_though_a_table_has_it(void **state)
{
	struct field fields[] = {
		{STR(":path"), STR("/"), false, HPACK_PATH},
		{STR("x-request-id"), STR("4711"), false, HPACK_X_REQUEST_ID},
		{STR("cookie"), STR("session=0123456789abcdef"), false, HPACK_COOKIE},
		{STR("x-tenant"), STR("blue"), false, 0},
	};
	struct hpack peer;
	hpack_init(&peer, true);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		encode_to(&peer, fields[i]);
		encode_to(&peer, fields[i]);
		assert_int_equal(encode_to(&peer, fields[i]), 1);
		fields[i].never_index = true;
		assert_true(encode_to(&peer, fields[i]) > 2);
		assert_non_null(strstr(text, "(never)"));
	}
	hpack_fini(&peer, memory);
}

// RFC 7541 4.2: lowest, then last, in the next block; a limit of 0 keeps both tables empty.
static void changes_of_the_limit_are_told_in_the_next_block(void **state)
{
	struct field f = {.name = STR(":method"), .value = STR("GET")};
	uint8_t out[64];
	hpack_set_table_size(&hpack, 65536); // no more than ours was: nothing to tell
	assert_int_equal(hpack_encode(&hpack, memory, &f, 1, out), 1);
	hpack_set_table_size(&hpack, 0);
	hpack_set_table_size(&hpack, 100);
	assert_int_equal(hpack_encode(&hpack, memory, &f, 1, out), 4);
	assert_memory_equal(out, "\x20\x3f\x45\x82", 4);
	hpack_set_table_size(&hpack, 0);
	struct hpack peer;
	hpack_init(&peer, true);
	f = (struct field){.name = STR("x-tenant"), .value = STR("blue")};
	for (int i = 0; i < 4; i++)
		encode_to(&peer, f);
	assert_null(peer.received);
	hpack_fini(&peer, memory);
}

// What is far from us is coded where that helps, what is near is not.
static void text_to_backends_is_not_coded(void **state)
{
	struct field f = {.name = STR(":authority"), .value = STR("www.example.com")};
	uint8_t out[64];
	assert_int_equal(hpack_encode(&hpack, memory, &f, 1, out), 14);
	hpack_fini(&hpack, memory);
	hpack_init(&hpack, false);
	assert_int_equal(hpack_encode(&hpack, memory, &f, 1, out), 17);
	assert_memory_equal(out + 2, "www.example.com", 15);
}

static void without_memory_fields_are_longer_but_go_out(void **state)
{
	struct hpack peer;
	struct field f = {.name = STR("x-tenant"), .value = STR("blue")};
	void *hidden[4096];
	size_t n = 0;
	while (n < 4096 && (hidden[n] = hpack_mem_take(memory, 8144)))
		n++;
	while (n < 4096 && (hidden[n] = hpack_mem_take(memory, 48)))
		n++;
	hpack_init(&peer, true);
	for (int i = 0; i < 4; i++) {
		encode_to(&peer, f);
		assert_string_equal(text, "x-tenant: blue\n");
	}
	assert_null(hpack.sent);
	// A peer that adds to its table needs one here.
	assert_int_equal(decode("4001 6101 62"), HPACK_NO_MEMORY);
	while (n)
		hpack_mem_put(memory, hidden[--n]);
	expect("4001 6101 62 be", "a: b\na: b\n");
	hpack_fini(&peer, memory);
}

// As many as a connection's first block has, of 40 bytes each: once there is a block of memory,
// nothing is put into a larger one. What comes later is.
static void the_first_block_makes_a_table_for_all_its_fields(void **state)
{
	const struct hpack_sink counts = {write_down, count_move, NULL};
	uint8_t in[21 * 40];
	for (size_t i = 0; i < 21; i++) {
		uint8_t *f = in + i * 40;
		memcpy(f, "\x40\x08x-field-\x1d", 11);
		memset(f + 11, 'a' + (int)i, 29);
	}
	text[0] = '\0';
	n_moves = 0;
	assert_int_equal(hpack_decode(&hpack, memory, memo, in, 7 * 40, room, &counts), HPACK_OK);
	assert_int_equal(n_moves, 0);
	assert_int_equal(
		hpack_decode(&hpack, memory, memo, in + 7 * 40, 14 * 40, room, &counts), HPACK_OK);
	assert_in_range(n_moves, 1, 2);
	expect("d2", "x-field-: aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
	expect("be", "x-field-: uuuuuuuuuuuuuuuuuuuuuuuuuuuuu\n");
}

// What follows may be anything but text for the table.
static void a_long_block_does_not_make_a_large_table(void **state)
{
	static const char head[] = "\x40\x01x\x01y\x10\x01x\x7f\xd1\x0e"; // 2000 bytes of value
	uint8_t in[sizeof(head) - 1 + 2000];
	memset(in, 'v', sizeof(in));
	memcpy(in, head, sizeof(head) - 1);
	text[0] = '\0';
	assert_int_equal(hpack_decode(&hpack, memory, memo, in, sizeof(in), room, &sink), HPACK_OK);
	assert_in_range(hpack_mem_size(memory, hpack.received), 1, 1024);
}

// An entry that found no place is none: later references count without it.
static void without_memory_for_a_larger_table_it_serves_on(void **state)
{
	static const uint16_t sizes[] = {8144, 4096, 2048, 1024, 512, 256};
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
	struct hpack_mem *theirs = hpack_mem_new(N_PAGES);
	struct hpack peer;
	void *hidden[4096];
	uint8_t out[256];
	size_t n_hidden = 0, n_indexed[3] = {0};
	assert_non_null(theirs);
	hpack_init(&peer, true);
	for (int round = 0; round < 9; round++) {
		if (round == 3)
			for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
				while (n_hidden < 4096 &&
					(hidden[n_hidden] = hpack_mem_take(memory, sizes[i])))
					n_hidden++;
		while (round == 6 && n_hidden)
			hpack_mem_put(memory, hidden[--n_hidden]);
		for (size_t i = 0; i < (round < 3 ? 4 : 26); i++) {
			struct field f = {.name = {letters + i, 1}, .value = STR("some value")};
			size_t len = hpack_encode(&hpack, memory, &f, 1, out);
			n_indexed[round / 3] += len == 1;
			text[0] = '\0';
			assert_int_equal(
				hpack_decode(&peer, theirs, memo, out, len, room, &sink), HPACK_OK);
			char expected[32];
			snprintf(expected, sizeof(expected), "%c: some value\n", letters[i]);
			assert_string_equal(text, expected);
		}
	}
	// Its block has places for eight.
	assert_int_equal(n_indexed[0], 4);
	assert_in_range(n_indexed[1], 3 * 4, 3 * 8);
	assert_true(n_indexed[2] > 3 * 8);
	hpack_fini(&peer, theirs);
	assert_int_equal(hpack_mem_used(theirs), 0);
	hpack_mem_free(theirs);
}

// An idle connection's tables are as large as what is in them.
static void tables_grow_with_their_entries(void **state)
{
	uint32_t before = hpack_mem_used(memory);
	expect("4001 6101 62", "a: b\n");
	assert_int_equal(hpack_mem_used(memory), before + 1);
	assert_int_equal(hpack_mem_size(memory, hpack.received), 256);
}

static void tables_that_a_limit_empties_give_back_their_memory(void **state)
{
	struct hpack peer;
	struct field f = {.name = STR("x-tenant"), .value = STR("blue")};
	uint32_t before = hpack_mem_used(memory);
	hpack_init(&peer, true);
	for (int i = 0; i < 3; i++) {
		for (int j = 0; j < 3; j++)
			encode_to(&peer, f);
		assert_int_equal(encode_to(&peer, f), 1);
		assert_true(hpack_mem_used(memory) >= before + 3);
		hpack_set_table_size(&hpack, 40);
		encode_to(&peer, (struct field){.name = STR(":method"), .value = STR("GET")});
		assert_null(hpack.sent);
		assert_null(peer.received);
		assert_int_equal(hpack_mem_used(memory), before);
		hpack_set_table_size(&hpack, HPACK_TABLE_SIZE);
	}
	hpack_fini(&peer, memory);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
RUN_SUITE("h2/hpack", CASE(rfc7541_c2_each_representation),
	CASE(rfc7541_c3_requests_without_huffman_coding),
	CASE(rfc7541_c4_requests_with_huffman_coding), CASE(rfc7541_c5_responses_that_evict),
	CASE(rfc7541_c6_responses_with_huffman_coding), CASE(what_is_no_header_block_is_refused),
	CASE(an_entry_larger_than_the_table_empties_it), CASE(the_sink_stops_a_block),
	CASE(every_byte_survives_huffman_coding), CASE(a_field_is_added_when_it_comes_again),
	CASE(all_fields_of_a_block_are_added_when_it_comes_again), CASE(secrets_are_never_added),
	CASE(a_secret_is_sent_as_one_though_a_table_has_it),
	CASE(changes_of_the_limit_are_told_in_the_next_block), CASE(text_to_backends_is_not_coded),
	CASE(without_memory_fields_are_longer_but_go_out),
	CASE(the_first_block_makes_a_table_for_all_its_fields),
	CASE(a_long_block_does_not_make_a_large_table),
	CASE(without_memory_for_a_larger_table_it_serves_on), CASE(tables_grow_with_their_entries),
	CASE(tables_that_a_limit_empties_give_back_their_memory))
