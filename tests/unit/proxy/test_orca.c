// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/orca.h"
#include "lb/base/base64.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static char named[256]; // "name=value " of each

static void on_named(void *ctx, struct str name, double value)
{
	assert_ptr_equal(ctx, named);
	size_t at = strlen(named);
	snprintf(named + at, sizeof(named) - at, "%.*s=%g ", (int)name.len, name.p, value);
}

static struct proxy_orca got;

static enum proxy_orca_kind read_fields(const struct field *f, size_t n)
{
	char scratch[512];
	const struct proxy_orca_listener l = {on_named, named};
	named[0] = '\0';
	got = (struct proxy_orca){.mem_utilization = 77};
	return proxy_orca_read(f, n, scratch, sizeof(scratch), &got, &l);
}

static enum proxy_orca_kind read_one(const char *name, struct str value)
{
	const struct field f[] = {{.name = STR("grpc-status"), .value = STR("0")},
		{.name = str_from(name), .value = value}};
	return read_fields(f, 2);
}

static enum proxy_orca_kind read_bytes(const char *bytes, size_t len, bool padded)
{
	char text[256];
	size_t n = base64_encode(bytes, len, text);
	while (!padded && n && text[n - 1] == '=')
		n--;
	return read_one("endpoint-load-metrics-bin", (struct str){text, n});
}

static void expect(double qps, double eps, double app, double cpu, double mem)
{
	assert_true(got.report.qps == qps && got.report.eps == eps);
	assert_true(got.report.application_utilization == app);
	assert_true(got.report.cpu_utilization == cpu && got.mem_utilization == mem);
}

// Fields in the order of their numbers, with the deprecated ones between: cpu 0.5, mem 0.25, rps 7,
// request_cost {c: 1}, utilization {u: 1}, rps_fractional 8, eps 2, named_metrics {k: 4, m: 0.5},
// application_utilization 1.5.
#define D(hi, lo) "\0\0\0\0\0\0" lo hi
// clang-format off
static const char whole[] =
	"\x09" D("\x3f", "\xe0") "\x11" D("\x3f", "\xd0") "\x18\x07"
	"\x22\x0c\x0a\x01" "c\x11" D("\x3f", "\xf0")
	"\x2a\x0c\x0a\x01" "u\x11" D("\x3f", "\xf0")
	"\x31" D("\x40", "\x20") "\x39" D("\x40", "\x00")
	"\x42\x0c\x0a\x01" "k\x11" D("\x40", "\x10")
	"\x42\x0c\x0a\x01" "m\x11" D("\x3f", "\xe0")
	"\x49" D("\x3f", "\xf8");
// clang-format on

static void a_binary_report_is_read_with_or_without_padding(void **state)
{
	for (int padded = 0; padded < 2; padded++) {
		assert_int_equal(read_bytes(whole, sizeof(whole) - 1, padded), PROXY_ORCA_READ);
		expect(8, 2, 1.5, 0.5, 0.25);
		assert_string_equal(named, "k=4 m=0.5 ");
	}
	// What is not told is 0, and so is everything.
	assert_int_equal(read_bytes("\x09" D("\x3f", "\xe0"), 9, false), PROXY_ORCA_READ);
	expect(0, 0, 0, 0.5, 0);
	assert_int_equal(read_bytes("", 0, false), PROXY_ORCA_READ);
	expect(0, 0, 0, 0, 0);
}

// protobuf: unknown numbers and known ones of another type are passed over.
static void what_is_unknown_is_passed_over(void **state)
{
	static const char bytes[] = "\x7a\x02hi"
				    "\xf8\x01\x05"
				    "\x85\x02"
				    "abcd"
				    "\x08\x03"
				    "\x09" D("\x3f", "\xe0");
	assert_int_equal(read_bytes(bytes, sizeof(bytes) - 1, true), PROXY_ORCA_READ);
	expect(0, 0, 0, 0.5, 0);
}

// TH-32
static void a_report_that_is_cut_anywhere_is_bad_or_says_less(void **state)
{
	for (size_t len = 0; len < sizeof(whole) - 1; len++) {
		enum proxy_orca_kind kind = read_bytes(whole, len, len % 2);
		assert_true(kind == PROXY_ORCA_READ || !named[0]);
		assert_true(len % 9 != 5 || len > 9 || kind == PROXY_ORCA_BAD);
	}
}

// TH-32
static void nothing_that_is_no_report_is_read(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{"\x00", 1}, // number 0
		{"\x0b", 1}, // a group
		{"\x0a\x05"
		 "abc",
			5}, // more than there is
		{"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},
		{"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, // no varint
		{"\x09\0\0\0\0\0\0\xf8\x7f", 9}, // NaN
		{"\x31\0\0\0\0\0\0\xf0\x7f", 9}, // infinite
		{"\x42\x02\x11\x00", 4}, // a bad entry
		{"\x09\0\0", 3},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(read_bytes(bad[i].bytes, bad[i].len, false), PROXY_ORCA_BAD);
		assert_string_equal(named, "");
	}
	assert_int_equal(read_one("endpoint-load-metrics-bin", STR("!!!!")), PROXY_ORCA_BAD);
	assert_int_equal(read_one("endpoint-load-metrics-bin", STR("A")), PROXY_ORCA_BAD);
	static char long_one[600];
	memset(long_one, 'A', sizeof(long_one));
	assert_int_equal(
		read_one("endpoint-load-metrics-bin", (struct str){long_one, sizeof(long_one)}),
		PROXY_ORCA_BAD);
}

static void envoys_field_is_read_as_text_and_binary(void **state)
{
	assert_int_equal(read_one("endpoint-load-metrics",
				 STR("TEXT cpu_utilization=0.3, mem_utilization=0.8,"
				     "rps_fractional=1e3,eps = 2,application_utilization=0.9,"
				     "named_metrics.a=1,named_metrics.b.c=-2.5,utilization.x=1")),
		PROXY_ORCA_READ);
	expect(1000, 2, 0.9, 0.3, 0.8);
	assert_string_equal(named, "a=1 b.c=-2.5 ");
	assert_int_equal(
		read_one("endpoint-load-metrics", STR("BIN CQAAAAAAAOA/")), PROXY_ORCA_READ);
	expect(0, 0, 0, 0.5, 0);
	static const char *const bad[] = {"", "JSON {}", "cpu_utilization=1", "TEXT x",
		"TEXT eps=", "TEXT eps=1x", "TEXT eps=nan", "TEXT eps=inf", "TEXT =1",
		"TEXT named_metrics.a=1,eps=", "BIN !", "TEXT eps=1,,cpu_utilization=1",
		"TEXT eps=00000000000000000000000000000000000000000000000000000000000000001"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(
			read_one("endpoint-load-metrics", str_from(bad[i])), PROXY_ORCA_BAD);
		assert_string_equal(named, "");
	}
}

static void no_field_is_no_report_and_grpcs_goes_first(void **state)
{
	assert_int_equal(read_one("endpoint-load-metrics-bin2", STR("AAAA")), PROXY_ORCA_NONE);
	assert_int_equal(read_fields(NULL, 0), PROXY_ORCA_NONE);
	assert_true(got.mem_utilization == 77);
	const struct field both[] = {
		{.name = STR("endpoint-load-metrics"), .value = STR("TEXT eps=1")},
		{.name = STR("endpoint-load-metrics-bin"), .value = STR("CQAAAAAAAOA/")}};
	assert_int_equal(read_fields(both, 2), PROXY_ORCA_READ);
	expect(0, 0, 0, 0.5, 0);
}

RUN_SUITE("proxy/orca", cmocka_unit_test(a_binary_report_is_read_with_or_without_padding),
	cmocka_unit_test(what_is_unknown_is_passed_over),
	cmocka_unit_test(a_report_that_is_cut_anywhere_is_bad_or_says_less),
	cmocka_unit_test(nothing_that_is_no_report_is_read),
	cmocka_unit_test(envoys_field_is_read_as_text_and_binary),
	cmocka_unit_test(no_field_is_no_report_and_grpcs_goes_first))
