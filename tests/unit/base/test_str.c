// SPDX-License-Identifier: Apache-2.0
#include "lb/base/str.h"
#include "tests/support/check.h"

static void numbers_are_digits_alone_up_to_the_most(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t most, value; // 77 = no number
	} rows[] = {
		{"0", 0, 0},
		{"16", 16, 16},
		{"17", 16, 77},
		{"0000000000000000000000016", 16, 16},
		{"18446744073709551615", UINT64_MAX, UINT64_MAX},
		{"18446744073709551616", UINT64_MAX, 77},
		{"184467440737095516150", UINT64_MAX, 77},
		{"18446744073709551617", 16, 77}, // 1, if it were cut
		{"", 16, 77},
		{"+1", 16, 77},
		{"-1", 16, 77},
		{" 1", 16, 77},
		{"1 ", 16, 77},
		{"1x", 16, 77},
		{"/", 16, 77},
		{":", 16, 77},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t n = 77;
		bool ok = str_number(str_from(rows[i].text), rows[i].most, &n);
		assert_int_equal(n, rows[i].value);
		assert_int_equal(ok, rows[i].value != 77);
	}
	uint64_t n = 77;
	assert_false(str_number((struct str){0}, 16, &n));
}

static void trimming_takes_blanks_and_tabs_from_the_ends(void **state)
{
	(void)state;
	static const char *const rows[][2] = {{" \t a b\t ", "a b"}, {"a", "a"}, {"", ""},
		{" ", ""}, {"\na\r", "\na\r"}, {"\t", ""}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_true(str_eq(str_trim(str_from(rows[i][0])), str_from(rows[i][1])));
	assert_int_equal(str_trim((struct str){0}).len, 0);
}

static void until_stops_at_the_first_one(void **state)
{
	(void)state;
	assert_true(str_eq(str_until(STR("a?b?c"), '?'), STR("a")));
	assert_true(str_eq(str_until(STR("?b"), '?'), STR("")));
	assert_true(str_eq(str_until(STR("ab"), '?'), STR("ab")));
	assert_true(str_eq(str_until(STR("ab\0c"), '\0'), STR("ab")));
	assert_int_equal(str_until((struct str){0}, '?').len, 0);
	const struct str part = {"ab?", 2}; // and looks no further
	assert_int_equal(str_until(part, '?').len, 2);
}

static void order_is_by_bytes_and_then_by_length(void **state)
{
	(void)state;
	static const struct str rows[] = {
		{0}, STR("A"), STR("a"), STR("a\0"), STR("ab"), STR("b"), STR("\xff")};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
			int order = str_order(rows[i], rows[k]);
			assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
		}
}

RUN_SUITE("base/str", cmocka_unit_test(numbers_are_digits_alone_up_to_the_most),
	cmocka_unit_test(trimming_takes_blanks_and_tabs_from_the_ends),
	cmocka_unit_test(until_stops_at_the_first_one),
	cmocka_unit_test(order_is_by_bytes_and_then_by_length))
