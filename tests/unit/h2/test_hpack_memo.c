// SPDX-License-Identifier: Apache-2.0
// Literal fields that come again on other connections: which are kept, what is noted of them, and
// that what a message has borrowed stays.
#include "dataplane/h2/hpack_memo.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

#define MAX_FIELDS 8
#define NOTED 2

static struct hpack_mem *memory;
static struct hpack_memo *memo;
static char room[HPACK_ROOM(4096)];

// Of the last block.
static struct hpack hpack;
static struct hpack_field fields[MAX_FIELDS];
static size_t n_fields;

static int setup(void **state)
{
	memory = hpack_mem_new(4);
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

static bool note(void *ctx, struct hpack_field *f)
{
	assert_in_range(n_fields, 0, MAX_FIELDS - 1);
	fields[n_fields++] = *f;
	f->mark |= NOTED;
	return true;
}

static bool refuse(void *ctx, struct hpack_field *f)
{
	return false;
}

static void ignore_move(void *ctx, const char *text, size_t len)
{
}

// A block on a connection of its own.
static enum hpack_result decode(const void *block, size_t len)
{
	const struct hpack_sink sink = {note, ignore_move, NULL};
	hpack_fini(&hpack, memory);
	n_fields = 0;
	return hpack_decode(&hpack, memory, memo, block, len, room, &sink);
}

static void expect(const struct hpack_field *f, const char *name, const char *value, uint8_t mark)
{
	assert_int_equal(f->name.len, strlen(name));
	assert_memory_equal(f->name.p, name, f->name.len);
	assert_int_equal(f->value.len, strlen(value));
	assert_memory_equal(f->value.p, value, f->value.len);
	assert_int_equal(f->mark, mark);
}

// Whether the same block, of one field, is known when it comes for the third time.
static bool is_kept(const char *block, size_t len)
{
	for (int i = 0; i < 3; i++) {
		assert_int_equal(decode(block, len), HPACK_OK);
		assert_int_equal(n_fields, 1);
		assert_true(i == 2 || fields[0].mark == 0);
	}
	return fields[0].mark == NOTED;
}
#define IS_KEPT(literal) is_kept(literal, sizeof(literal) - 1)

static size_t numbered(char *block, unsigned n)
{
	return (size_t)snprintf(block, 32, "%c%cvia%c%06u", 0x40, 3, 6, n);
}

// A user-agent.
static size_t versioned(char *block, unsigned n)
{
	return (size_t)snprintf(block, 32, "%c%c%06u-the-same-end", 0x7a, 19, n);
}

// Another field, as write() makes it of some number, that has the place of this one.
static void find_rival(const char *block, size_t len, size_t (*write)(char *, unsigned), char *ret)
{
	struct hpack_memo_field *place = NULL, *other = NULL;
	assert_null(hpack_memo_find(memo, (const uint8_t *)block, len, &place));
	for (unsigned n = 1; other != place; n++) {
		assert_in_range(n, 1, 100000);
		size_t other_len = write(ret, n);
		assert_null(hpack_memo_find(memo, (uint8_t *)ret, other_len, &other));
	}
}

static void a_literal_is_kept_when_it_comes_again_on_any_connection(void **state)
{
	static const struct {
		const char *block, *name, *value;
		enum hpack_name id;
	} rows[] = {
		{"\x40\x02te\x08trailers", "te", "trailers", HPACK_TE},
		{"\x5f\x8b\x1d\x75\xd0\x62\x0d\x26\x3d\x4c\x4d\x65\x64", "content-type",
			"application/grpc", HPACK_CONTENT_TYPE}, // RFC 7541 5.2: Huffman coded
		{"\x04\x0c/sample/path", ":path", "/sample/path", HPACK_PATH},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int time = 0; time < 4; time++) {
			assert_int_equal(decode(rows[i].block, strlen(rows[i].block)), HPACK_OK);
			assert_int_equal(n_fields, 1);
			expect(&fields[0], rows[i].name, rows[i].value, time < 2 ? 0 : NOTED);
			assert_int_equal(fields[0].id, rows[i].id);
			assert_false(fields[0].never_index);
		}
	}
}

// They are told apart by all their bytes.
static void what_is_kept_is_not_taken_for_another(void **state)
{
	assert_true(IS_KEPT("\x40\x08location\x04"
			    "blue"));
	assert_int_equal(decode("\x40\x08location\x04"
				"blu\0",
				 15),
		HPACK_OK);
	assert_int_equal(fields[0].mark, 0);
	assert_int_equal(fields[0].value.p[3], '\0');
	assert_int_equal(decode("\x40\x08locatioo\x04"
				"blue",
				 15),
		HPACK_OK);
	expect(&fields[0], "locatioo", "blue", 0);
}

// So are two in one place that differ in nothing but the first bytes.
static void what_is_kept_is_not_taken_for_one_in_its_place(void **state)
{
	char a[32], b[32];
	size_t len = versioned(a, 0);
	find_rival(a, len, versioned, b);
	assert_true(is_kept(a, len));
	assert_int_equal(decode(b, len), HPACK_OK);
	assert_int_equal(fields[0].mark, 0);
	assert_memory_equal(fields[0].value.p, b + 2, 6);
}

// The sink has not said that its text is fine.
static void what_the_sink_refuses_has_no_mark(void **state)
{
	static const struct hpack_sink stops = {refuse, ignore_move, NULL};
	char a[32], b[32];
	size_t len = numbered(a, 0);
	find_rival(a, len, numbered, b);
	assert_true(is_kept(a, len));
	for (int time = 0; time < 2; time++) // the second time it replaces a
		assert_int_equal(
			hpack_decode(&hpack, memory, memo, (uint8_t *)b, len, room, &stops),
			HPACK_STOPPED);
	assert_int_equal(decode(b, len), HPACK_OK);
	expect(&fields[0], "via", b + 6, 0);
}

static void nothing_that_may_be_secret_is_kept(void **state)
{
	assert_true(IS_KEPT("\x40\x08location\x06public"));
	assert_false(IS_KEPT("\x10\x08location\x06secret")); // never indexed
	assert_false(IS_KEPT("\x40\x09x-api-key\x06secret")); // who knows?
	assert_false(IS_KEPT("\x57\x06secret")); // authorization
	assert_false(IS_KEPT("\x40\x0d"
			     "authorization\x06secret"));
	assert_false(IS_KEPT("\x40\x13proxy-authorization\x06secret"));
	assert_false(IS_KEPT("\x60\x06"
			     "a=1234")); // cookie
	assert_false(IS_KEPT("\x77\x06"
			     "a=1234")); // set-cookie
}

// Not even that one came can be told by what becomes of another field in its place.
static void a_secret_leaves_no_trace(void **state)
{
	static const char secret[] = "\x57\x06secret";
	char a[32];
	size_t len = numbered(a, 0);
	find_rival(secret, 8, numbered, a);
	assert_int_equal(decode(a, len), HPACK_OK);
	assert_int_equal(decode(secret, 8), HPACK_OK);
	assert_int_equal(decode(a, len), HPACK_OK);
	assert_int_equal(decode(a, len), HPACK_OK);
	expect(&fields[0], "via", a + 6, NOTED);
}

static void only_what_is_neither_short_nor_long_is_kept(void **state)
{
	char block[128] = "\x7a"; // user-agent
	for (size_t value = 0; value < 100; value++) {
		block[1] = (char)value;
		memset(block + 2, 'v', value);
		size_t len = 2 + value;
		assert_int_equal(
			is_kept(block, len), len >= HPACK_MEMO_MIN && len <= HPACK_MEMO_MAX);
		assert_int_equal(fields[0].value.len, value);
	}
}

// The longest name that an index stands for, and of the shortest codes as many as there may be.
static void the_longest_text_is_kept(void **state)
{
	char block[HPACK_MEMO_MAX], value[128];
	block[0] = 0x54; // access-control-allow-origin
	block[1] = (char)(0x80 | (HPACK_MEMO_MAX - 2));
	memset(block + 2, 0, HPACK_MEMO_MAX - 2); // '0' is 00000
	size_t n = (HPACK_MEMO_MAX - 2) * 8 / 5;
	// The last of the bits are not of a code, and so have to be of padding.
	block[HPACK_MEMO_MAX - 1] |= (char)((1 << ((HPACK_MEMO_MAX - 2) * 8 % 5)) - 1);
	memset(value, '0', n);
	value[n] = '\0';
	assert_true(is_kept(block, sizeof(block)));
	expect(&fields[0], "access-control-allow-origin", value, NOTED);
}

static void what_is_cut_short_is_bad_however_often_it_comes(void **state)
{
	static const char block[] = "\x40\x08location\x04"
				    "blue";
	assert_true(IS_KEPT("\x40\x08location\x04"
			    "blue"));
	for (int time = 0; time < 3; time++)
		for (size_t len = 1; len < sizeof(block) - 1; len++)
			assert_int_equal(decode(block, len), HPACK_BAD);
}

// RFC 7541 5.1: of 4 bits, one above 14 takes more bytes.
static void a_longer_index_is_not_kept(void **state)
{
	static const char block[] = "\x0f\x09\x06secret\x40\x01x\x01y"; // cache-control
	for (int time = 0; time < 4; time++) {
		assert_int_equal(decode(block, sizeof(block) - 1), HPACK_OK);
		assert_int_equal(n_fields, 2);
		expect(&fields[0], "cache-control", "secret", 0);
		expect(&fields[1], "x", "y", 0);
	}
}

// A name of the dynamic table is a connection's own.
static void a_name_that_the_connection_gave_is_not_kept(void **state)
{
	static const char first[] = "\x40\x03via\x06secret\x7e\x07"
				    "a value";
	static const char second[] = "\x40\x03"
				     "age\x06secret\x7e\x07"
				     "a value";
	for (int time = 0; time < 3; time++) {
		assert_int_equal(decode(first, sizeof(first) - 1), HPACK_OK);
		expect(&fields[1], "via", "a value", 0);
		assert_int_equal(decode(second, sizeof(second) - 1), HPACK_OK);
		expect(&fields[1], "age", "a value", 0);
	}
}

// Two fields that take turns in one place, in one block and in several.
static void what_a_message_has_borrowed_is_not_replaced(void **state)
{
	char a[32], b[32], both[64];
	size_t len = numbered(a, 0);
	find_rival(a, len, numbered, b);
	memcpy(both, a, len);
	memcpy(both + len, b, len);
	assert_true(is_kept(a, len));
	for (int time = 0; time < 4; time++) {
		assert_int_equal(decode(both, 2 * len), HPACK_OK);
		expect(&fields[0], "via", a + 6, NOTED);
		expect(&fields[1], "via", b + 6, 0);
	}
	assert_int_equal(decode(b, len), HPACK_OK); // replaces a
	assert_int_equal(decode(b, len), HPACK_OK);
	expect(&fields[0], "via", b + 6, NOTED);
	assert_int_equal(decode(a, len), HPACK_OK);
	expect(&fields[0], "via", a + 6, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_literal_is_kept_when_it_comes_again_on_any_connection, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_is_kept_is_not_taken_for_another, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_is_kept_is_not_taken_for_one_in_its_place, setup, teardown),
		cmocka_unit_test_setup_teardown(what_the_sink_refuses_has_no_mark, setup, teardown),
		cmocka_unit_test_setup_teardown(
			nothing_that_may_be_secret_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(a_secret_leaves_no_trace, setup, teardown),
		cmocka_unit_test_setup_teardown(
			only_what_is_neither_short_nor_long_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(the_longest_text_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_is_cut_short_is_bad_however_often_it_comes, setup, teardown),
		cmocka_unit_test_setup_teardown(a_longer_index_is_not_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_name_that_the_connection_gave_is_not_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_a_message_has_borrowed_is_not_replaced, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
