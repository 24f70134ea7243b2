// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/grpc_timeout.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/route/timeouts.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>

#define S NS_PER_SECOND

// A31-T10
static void each_unit_has_its_length(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} rows[] = {
		{"1n", 1}, {"1u", 1000}, {"1m", 1000000}, {"1S", S}, {"1M", 60 * S},
		{"1H", 3600 * S}, {"0S", 0}, {"00000007m", 7000000}, {"99999999n", 99999999},
		{"99999999S", 99999999 * S}, {"99999999M", 99999999 * (60 * S)},
		{"99999999H", LB_NO_TIMEOUT}, // no such instant
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t ns = 42;
		assert_true(proxy_grpc_timeout_parse(str_from(rows[i].text), &ns));
		assert_true(ns == rows[i].ns);
	}
}

// A31-T10
static void what_is_malformed_is_no_timeout(void **state)
{
	static const char *const rows[] = {"", "1", "S", "123456789S", "1s", "1 S", " 1S", "1S ",
		"-1S", "+1S", "1.5S", "0x1S", "1SS", "1h", "1N", "SS", "1\xb5", "100000000n"};
	uint64_t ns;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_false(proxy_grpc_timeout_parse(str_from(rows[i]), &ns));
	assert_false(proxy_grpc_timeout_parse((struct str){"1\0S", 3}, &ns));
	assert_false(proxy_grpc_timeout_parse((struct str){NULL, 0}, &ns));
}

// The grammar by libc's means.
static bool twin(const char *text, size_t len, uint64_t *ret_ns)
{
	static const char letters[] = "numSMH";
	static const double units[] = {1, 1e3, 1e6, 1e9, 60e9, 3600e9};
	char digits[16] = {0};
	int used = 0;
	char unit = 0;
	if (len > 9 || sscanf(text, "%8[0-9]%c%n", digits, &unit, &used) != 2 ||
		(size_t)used != len || !strchr(letters, unit))
		return false;
	size_t i = (size_t)(strchr(letters, unit) - letters);
	double ns = strtod(digits, NULL) * units[i];
	*ret_ns = ns >= 0x1p64 ? LB_NO_TIMEOUT : strtoull(digits, NULL, 10) * (uint64_t)units[i];
	return true;
}

static void parsing_agrees_with_its_twin(void **state)
{
	static const char alphabet[] = "0123456789numSMHx 0123456789";
	struct rand r;
	rand_init(&r, 1);
	int n_good = 0;
	for (int i = 0; i < 300000; i++) {
		char text[12] = {0};
		size_t len = rand_below(&r, 11);
		for (size_t j = 0; j < len; j++)
			text[j] = alphabet[rand_below(&r, j + 1 == len ? 17 : 28)];
		for (size_t j = 0; j + 1 < len && i % 2; j++)
			text[j] = (char)('0' + rand_below(&r, 10));
		uint64_t ns = 0, expected = 0;
		bool good = proxy_grpc_timeout_parse((struct str){text, len}, &ns);
		assert_int_equal(good, twin(text, len, &expected));
		assert_true(ns == expected);
		n_good += good;
	}
	assert_in_range(n_good, 10000, 200000);
}

// A31-T09: never less, and not much more.
static void what_is_written_is_read_again_rounded_up(void **state)
{
	struct rand r;
	rand_init(&r, 2);
	for (int i = 0; i < 300000; i++) {
		uint64_t ns = rand_u64(&r) >> rand_below(&r, 64), back;
		char out[PROXY_GRPC_TIMEOUT_MAX];
		size_t len = proxy_grpc_timeout_write(ns, out);
		assert_in_range(len, 2, 9);
		assert_true(proxy_grpc_timeout_parse((struct str){out, len}, &back));
		assert_true(back >= ns);
		// The next coarser unit is 3600 times as long at most, and has eight digits.
		assert_true(back - ns <= ns / (99999999 / 3600) + (ns == 0));
	}
}

static void the_finest_unit_that_fits_is_taken(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} rows[] = {
		{0, "1n"},
		{1, "1n"},
		{99999999, "99999999n"},
		{100000000, "100000u"},
		{100000001, "100001u"},
		{5 * S, "5000000u"},
		{99999999000, "99999999u"},
		{99999999001, "100000m"},
		{3600 * S, "3600000m"},
		{99999999 * S, "99999999S"},
		{99999999 * S + 1, "1666667M"},
		{UINT64_MAX, "5124096H"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char out[PROXY_GRPC_TIMEOUT_MAX + 1] = {0};
		size_t len = proxy_grpc_timeout_write(rows[i].ns, out);
		out[len] = '\0';
		assert_string_equal(out, rows[i].text);
	}
}

RUN_SUITE("proxy/grpc_timeout", cmocka_unit_test(each_unit_has_its_length),
	cmocka_unit_test(what_is_malformed_is_no_timeout),
	cmocka_unit_test(parsing_agrees_with_its_twin),
	cmocka_unit_test(what_is_written_is_read_again_rounded_up),
	cmocka_unit_test(the_finest_unit_that_fits_is_taken))
