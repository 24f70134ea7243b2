// SPDX-License-Identifier: Apache-2.0
// What the JSON tests do not reach of the text forms.
#include "proto/text.h"
#include "tests/support/check.h"

#include <string.h>

static void utf8_is_told_from_other_bytes(void **state)
{
	static const char *const good[] = {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
		"\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
		"\xf4\x8f\xbf\xbf", "a\xc3\xa9z"};
	static const char *const bad[] = {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2z",
		"\xe0\x9f\xbf", "\xe2\x82", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
		"\xf8\x88\x80\x80\x80", "\xff", "a\xc3"};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(proto_is_utf8(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(proto_is_utf8(bad[i]));
}

static void names_become_camels(void **state)
{
	char text[PROTO_NAME_MAX], at_most[PROTO_NAME_MAX];
	assert_string_equal(proto_camel_name("consecutive_5xx", text), "consecutive5xx");
	assert_string_equal(proto_camel_name("type_url", text), "typeUrl");
	assert_string_equal(proto_camel_name("http_11_proxy_", text), "http11Proxy");
	assert_string_equal(proto_camel_name("", text), "");
	char name[2 * PROTO_NAME_MAX];
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	memset(at_most, 'x', sizeof(at_most));
	at_most[sizeof(at_most) - 1] = '\0';
	assert_string_equal(proto_camel_name(name, text), at_most);
}

// Every day of 800 years there and back: two whole cycles of leap years.
static void days_are_counted_both_ways(void **state)
{
	char text[PROTO_TIME_TEXT_MAX], before[PROTO_TIME_TEXT_MAX] = "";
	for (int64_t day = -146097; day < 146097; day++) {
		int64_t seconds;
		int32_t nanos;
		proto_timestamp_print(day * 86400, 0, text);
		assert_true(proto_timestamp_parse(text, &seconds, &nanos));
		assert_int_equal(seconds, day * 86400);
		assert_true(strcmp(before, text) < 0);
		memcpy(before, text, sizeof(before));
	}
}

static void numbers_out_of_range_are_still_printed(void **state)
{
	char text[PROTO_TIME_TEXT_MAX];
	assert_string_equal(proto_timestamp_print(INT64_MAX, -1, text), "9999-12-31T23:59:59Z");
	assert_string_equal(
		proto_timestamp_print(INT64_MIN, INT32_MAX, text), "0001-01-01T00:00:00Z");
	assert_string_equal(
		proto_duration_print(INT64_MIN, INT32_MIN, text), "-9223372036854775808s");
	assert_string_equal(proto_duration_print(0, -1, text), "-0.000000001s");
}

RUN_SUITE("proto/text", cmocka_unit_test(utf8_is_told_from_other_bytes),
	cmocka_unit_test(names_become_camels), cmocka_unit_test(days_are_counted_both_ways),
	cmocka_unit_test(numbers_out_of_range_are_still_printed))
