// SPDX-License-Identifier: Apache-2.0
// Header blocks decoded in parts beside the same ones decoded whole: the same fields, but those of
// values too large for any table, and the same table afterwards. Blocks are nghttp2's, of random
// fields. Argument: a seed.
#include "dataplane/h2/hpack_memo.h"
#include "dataplane/h2/hpack_part.h"
#include "tests/support/check.h"

#include <nghttp2/nghttp2.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FIELDS 40
#define MAX_BLOCK (1 << 20)
#define LARGEST 60000 // that nghttp2 takes is 64 KiB

static uint64_t dice = 1;

static uint64_t roll(uint64_t n)
{
	dice = dice * 6364136223846793005u + 1442695040888963407u;
	return (dice >> 33) % n;
}

// Lengths and sums of the fields that were heard.
struct heard {
	size_t n;
	uint64_t sums[MAX_FIELDS];
	size_t value_lens[MAX_FIELDS];
};

static uint64_t sum_of(uint64_t sum, struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		sum = (sum ^ (uint8_t)s.p[i]) * 0x100000001b3;
	return sum * 31 + s.len;
}

static bool emit(void *ctx, struct hpack_field *f)
{
	struct heard *h = ctx;
	assert_true(h->n < MAX_FIELDS);
	h->value_lens[h->n] = f->value.len;
	h->sums[h->n++] = sum_of(sum_of(f->never_index, f->name), f->value);
	return true;
}

static void moves(void *ctx, const char *text, size_t len)
{
}

struct ends {
	struct hpack whole, parts;
	struct hpack_mem *memory;
	struct hpack_memo *memo;
	nghttp2_hd_deflater *deflater;
	uint8_t *block, *gathered;
	char *room;
};

static struct ends *ends_new(void)
{
	struct ends *e = calloc(1, sizeof(*e));
	e->memory = hpack_mem_new(16);
	e->memo = hpack_memo_new();
	hpack_init(&e->whole, false);
	hpack_init(&e->parts, false);
	assert_int_equal(nghttp2_hd_deflate_new(&e->deflater, 4096), 0);
	e->block = malloc(MAX_BLOCK);
	e->gathered = malloc(MAX_BLOCK);
	e->room = malloc(HPACK_ROOM(MAX_BLOCK));
	return e;
}

static void ends_free(struct ends *e)
{
	nghttp2_hd_deflate_del(e->deflater);
	hpack_fini(&e->whole, e->memory);
	hpack_fini(&e->parts, e->memory);
	assert_int_equal(hpack_mem_used(e->memory), 0);
	hpack_mem_free(e->memory);
	hpack_memo_free(e->memo);
	free(e->block);
	free(e->gathered);
	free(e->room);
	free(e);
}

static size_t some_len(void)
{
	static const size_t most[] = {10, 100, 4200, 16000, LARGEST};
	return roll(most[roll(5)] + 1);
}

static size_t some_block(struct ends *e)
{
	static char text[MAX_FIELDS][LARGEST], names[MAX_FIELDS][16];
	nghttp2_nv nvs[MAX_FIELDS];
	size_t n = 1 + roll(MAX_FIELDS - 1);
	for (size_t i = 0; i < n; i++) {
		size_t len = some_len();
		char from = roll(2) ? 'a' : 'X'; // short codes, and none
		for (size_t k = 0; k < len; k++)
			text[i][k] = (char)(from + (char)roll(20));
		nvs[i] = (nghttp2_nv){.name = (uint8_t *)names[i],
			.namelen = (size_t)snprintf(names[i], 16, "x-%d", (int)roll(20)),
			.value = (uint8_t *)text[i],
			.valuelen = len,
			.flags = roll(9) ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX};
	}
	if (roll(4) == 0)
		assert_int_equal(nghttp2_hd_deflate_change_table_size(e->deflater, roll(4097)), 0);
	ssize_t len = nghttp2_hd_deflate_hd(e->deflater, e->block, MAX_BLOCK, nvs, n);
	assert_true(len > 0);
	return (size_t)len;
}

// As a connection does it: gathers up to `most` bytes, of pieces of any length.
static enum hpack_result in_parts(struct ends *e, size_t len, size_t most, struct heard *ret)
{
	const struct hpack_sink sink = {emit, moves, ret};
	struct hpack_part part = {0};
	size_t have = 0;
	for (size_t at = 0; at < len;) {
		size_t n = 1 + roll(most / 2 + 1);
		n = n < len - at ? n : len - at;
		if (have + n > most) {
			size_t used;
			enum hpack_result r = hpack_decode_part(&part, &e->parts, e->memory,
				e->memo, e->gathered, have, e->room, &sink, &used);
			if (r != HPACK_OK)
				return r;
			assert_true(have - used <= HPACK_PART_LEFT_MAX);
			have -= used;
			memmove(e->gathered, e->gathered + used, have);
		}
		size_t skipped = part.skip < n ? part.skip : n;
		part.skip -= (uint32_t)skipped;
		memcpy(e->gathered + have, e->block + at + skipped, n - skipped);
		have += n - skipped;
		at += n;
	}
	return hpack_decode_last(
		&part, &e->parts, e->memory, e->memo, e->gathered, have, e->room, &sink);
}

static enum hpack_result at_once(struct ends *e, struct hpack *h, size_t len, struct heard *ret)
{
	const struct hpack_sink sink = {emit, moves, ret};
	return hpack_decode(h, e->memory, e->memo, e->block, len, e->room, &sink);
}

// Those in parts are the others without some whose value is large.
static size_t compare(const struct heard *whole, const struct heard *parts)
{
	size_t k = 0, n_left_out = 0;
	for (size_t i = 0; i < whole->n; i++) {
		if (k < parts->n && parts->sums[k] == whole->sums[i]) {
			k++;
			continue;
		}
		assert_true(whole->value_lens[i] > 4096);
		n_left_out++;
	}
	assert_int_equal(k, parts->n);
	return n_left_out;
}

static void compare_tables(struct ends *e)
{
	for (unsigned i = 62; i < 62 + 128 + 1; i++) {
		struct heard a = {0}, b = {0};
		e->block[0] = (uint8_t)(i < 127 ? 0x80 | i : 0xff);
		e->block[1] = (uint8_t)(i - 127);
		size_t len = i < 127 ? 1 : 2;
		enum hpack_result r = at_once(e, &e->whole, len, &a);
		assert_int_equal(at_once(e, &e->parts, len, &b), r);
		assert_true(a.n == b.n && a.sums[0] == b.sums[0]);
		if (r != HPACK_OK)
			return;
	}
}

static void parts_of_a_block_mean_what_the_whole_means(void **state)
{
	size_t n_left_out = 0;
	for (int i = 0; i < 8; i++) {
		struct ends *e = ends_new();
		for (int k = 0; k < 12; k++) {
			struct heard whole = {0}, parts = {0};
			size_t len = some_block(e);
			size_t most = roll(3) ? 65536 : 1 + roll(40000);
			assert_int_equal(at_once(e, &e->whole, len, &whole), HPACK_OK);
			assert_int_equal(in_parts(e, len, most, &parts), HPACK_OK);
			n_left_out += compare(&whole, &parts);
			compare_tables(e);
		}
		ends_free(e);
	}
	assert_true(n_left_out > 20);
}

static enum hpack_result decode_two(const char *first, size_t n_first, const char *last, size_t n)
{
	struct ends *e = ends_new();
	struct heard heard = {0};
	const struct hpack_sink sink = {emit, moves, &heard};
	struct hpack_part part = {0};
	size_t used;
	enum hpack_result r = hpack_decode_part(&part, &e->parts, e->memory, NULL,
		(const uint8_t *)first, n_first, e->room, &sink, &used);
	if (r == HPACK_OK)
		r = hpack_decode_last(&part, &e->parts, e->memory, NULL, (const uint8_t *)last, n,
			e->room, &sink);
	ends_free(e);
	return r;
}

// RFC 7541 4.2, 5.1, 6.1, and what nobody can take.
static void parts_keep_the_rules_of_blocks(void **state)
{
	static const struct {
		const char *first, *last;
		size_t n_first, n_last;
		enum hpack_result r;
	} rows[] = {
		{"\x20\x20", "\x3f\xe1\x1f\x82", 2, 4, HPACK_OK}, // sizes, then a field
		{"\x82", "\x20", 1, 1, HPACK_BAD}, // a size behind a field
		{"\x80", "", 1, 0, HPACK_BAD}, // index 0
		{"\xff\xff\xff\xff\xff\xff\xff", "", 7, 0, HPACK_BAD}, // a number too large
		{"\x40\x01x\x7f\x81\xff\x03", "", 7, 0,
			HPACK_BAD}, // a large value that never comes
		{"\x7f\x20\x7f\x81\xff\x03", "", 6, 0, HPACK_BAD}, // … of a name of no entry
		{"\x40\x7f\x81\xff\x03x", "", 6, 0, HPACK_STOPPED}, // a large name
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(
			decode_two(rows[i].first, rows[i].n_first, rows[i].last, rows[i].n_last),
			rows[i].r);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_a_block_mean_what_the_whole_means),
		cmocka_unit_test(parts_keep_the_rules_of_blocks)};
	if (argc > 1)
		dice = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests_name("h2/hpack_part", tests, NULL, NULL);
}
