// SPDX-License-Identifier: Apache-2.0
#include "lb/base/time.h"
#include "lb/route/fault.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

#define MS NS_PER_MS
#define N 100000

static struct rand rand;

static int setup(void **state)
{
	rand_init(&rand, 21);
	return 0;
}

// All requests, unless a test says otherwise.
static struct lb_fault always(void)
{
	return (struct lb_fault){.delay_numerator = 100,
		.delay_denominator = 100,
		.abort_numerator = 100,
		.abort_denominator = 100,
		.max_active = UINT32_MAX};
}

struct pair {
	const char *name, *value;
};

static struct lb_fault_draw draw(const struct lb_fault *f, const struct pair *pairs, size_t n)
{
	struct field fields[8];
	for (size_t i = 0; i < n; i++)
		fields[i] = (struct field){
			.name = str_from(pairs[i].name), .value = str_from(pairs[i].value)};
	struct lb_req req = {.fields = fields, .n_fields = n};
	return lb_fault_draw(f, &req, &rand);
}

// Draws that hit, of N.
static uint32_t count(const struct lb_fault *f, const struct pair *pairs, size_t n, bool delays)
{
	uint32_t hits = 0;
	for (int i = 0; i < N; i++) {
		struct lb_fault_draw d = draw(f, pairs, n);
		hits += delays ? d.delay_ns != 0 : d.abort != LB_ABORT_NONE;
	}
	return hits;
}

// Within five standard deviations.
static void expect_share(uint32_t hits, double p)
{
	assert_true(fabs(hits - p * N) <= 5 * sqrt(N * p * (1 - p)));
}

// FI-01
static void fixed_delay_is_as_configured(void **state)
{
	struct lb_fault f = always();
	f.delay = LB_DELAY_FIXED;
	f.delay_ns = 1234567;
	static const struct pair header[] = {{"x-envoy-fault-delay-request", "5"}};
	struct lb_fault_draw d = draw(&f, header, 1); // FI-06: no header_delay
	assert_int_equal(d.delay_ns, 1234567);
	assert_int_equal(d.abort, LB_ABORT_NONE);
}

// FI-01, FI-07
static void header_delay_is_milliseconds(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} rows[] = {{"53", 53 * MS}, {"0", 0}, {"", 0}, {"x", 0}, {"-1", 0}, {"+5", 0}, {"5ms", 0},
		{" 5", 0}, {"0x5", 0}, {"5.5", 0}, {"007", 7 * MS}, {"3600000", 3600000 * MS},
		{"3600001", 3600000 * MS}, // its bound
		{"18446744073710", 3600000 * MS}, {"99999999999999999999999", 0},
		{"18446744073709551617", 0}};
	struct lb_fault f = always();
	f.delay = LB_DELAY_HEADER;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pair p = {"x-envoy-fault-delay-request", rows[i].text};
		assert_int_equal(draw(&f, &p, 1).delay_ns, rows[i].ns);
	}
	assert_int_equal(draw(&f, NULL, 0).delay_ns, 0);
	static const struct pair two[] = {
		{"x-envoy-fault-delay-request", "junk"}, {"x-envoy-fault-delay-request", "8"}};
	assert_int_equal(draw(&f, two, 2).delay_ns, 8 * MS);
}

// FI-02, FI-04, FI-05
static void configured_abort_has_its_kind_and_status(void **state)
{
	struct lb_fault f = always();
	f.abort = LB_ABORT_HTTP;
	f.abort_status = 503;
	struct lb_fault_draw d = draw(&f, NULL, 0);
	assert_int_equal(d.abort, LB_ABORT_HTTP);
	assert_int_equal(d.status, 503);
	assert_int_equal(d.delay_ns, 0);
	static const uint32_t statuses[][2] = {{0, 0}, {7, 7}, {16, 16}, {17, 2}, {UINT32_MAX, 2}};
	f.abort = LB_ABORT_GRPC;
	for (size_t i = 0; i < 5; i++) {
		f.abort_status = statuses[i][0];
		d = draw(&f, NULL, 0);
		assert_int_equal(d.abort, LB_ABORT_GRPC);
		assert_int_equal(d.status, statuses[i][1]);
	}
}

// FI-05, FI-06
static void header_abort_prefers_http_and_ignores_junk(void **state)
{
	static const char http[] = "x-envoy-fault-abort-request",
			  grpc[] = "x-envoy-fault-abort-grpc-request";
	static const struct {
		struct pair pairs[2];
		enum lb_fault_abort kind;
		uint32_t status;
	} rows[] = {
		{{{http, "503"}, {grpc, "3"}}, LB_ABORT_HTTP, 503},
		{{{grpc, "3"}, {http, "503"}}, LB_ABORT_HTTP, 503},
		{{{http, "200"}, {"x", "y"}}, LB_ABORT_HTTP, 200},
		{{{http, "599"}, {"x", "y"}}, LB_ABORT_HTTP, 599},
		{{{http, "600"}, {"x", "y"}}, LB_ABORT_NONE, 0},
		{{{http, "199"}, {"x", "y"}}, LB_ABORT_NONE, 0},
		{{{http, "junk"}, {grpc, "3"}}, LB_ABORT_GRPC, 3},
		{{{grpc, "0"}, {"x", "y"}}, LB_ABORT_GRPC, 0},
		{{{grpc, "17"}, {"x", "y"}}, LB_ABORT_GRPC, 2},
		{{{grpc, "-1"}, {"x", "y"}}, LB_ABORT_NONE, 0},
		{{{grpc, "99999999999"}, {"x", "y"}}, LB_ABORT_NONE, 0},
		{{{"x", "y"}, {"z", "503"}}, LB_ABORT_NONE, 0},
	};
	struct lb_fault f = always();
	f.abort = LB_ABORT_HEADER;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_fault_draw d = draw(&f, rows[i].pairs, 2);
		assert_int_equal(d.abort, rows[i].kind);
		assert_int_equal(d.status, rows[i].status);
	}
}

// FI-06
static void headers_do_nothing_where_they_are_not_configured(void **state)
{
	static const struct pair all[] = {{"x-envoy-fault-abort-request", "503"},
		{"x-envoy-fault-abort-grpc-request", "3"}, {"x-envoy-fault-delay-request", "5"},
		{"x-envoy-fault-abort-request-percentage", "0"},
		{"x-envoy-fault-delay-request-percentage", "0"}};
	struct lb_fault f = always();
	struct lb_fault_draw d = draw(&f, all, 5);
	assert_int_equal(d.delay_ns, 0);
	assert_int_equal(d.abort, LB_ABORT_NONE);
	f.delay = LB_DELAY_FIXED;
	f.delay_ns = 7;
	f.abort = LB_ABORT_GRPC;
	f.abort_status = 9;
	d = draw(&f, all, 5);
	assert_int_equal(d.delay_ns, 7);
	assert_int_equal(d.status, 9);
}

// FI-03: 20 % and 5 % touch 24 %.
static void delay_and_abort_are_drawn_independently(void **state)
{
	struct lb_fault f = always();
	f.delay = LB_DELAY_FIXED;
	f.delay_ns = 1;
	f.delay_numerator = 20;
	f.abort = LB_ABORT_GRPC;
	f.abort_status = 1;
	f.abort_numerator = 50000;
	f.abort_denominator = 1000000;
	uint32_t delayed = 0, aborted = 0, both = 0;
	for (int i = 0; i < N; i++) {
		struct lb_fault_draw d = draw(&f, NULL, 0);
		delayed += d.delay_ns != 0;
		aborted += d.abort != LB_ABORT_NONE;
		both += d.delay_ns && d.abort != LB_ABORT_NONE;
	}
	expect_share(delayed, 0.2);
	expect_share(aborted, 0.05);
	expect_share(both, 0.01);
	expect_share(delayed + aborted - both, 0.24);
}

// FI-03
static void none_and_all_are_exact(void **state)
{
	static const uint32_t denominators[] = {100, 10000, 1000000};
	struct lb_fault f = always();
	f.delay = LB_DELAY_FIXED;
	f.delay_ns = 1;
	for (size_t i = 0; i < 3; i++) {
		f.delay_denominator = denominators[i];
		f.delay_numerator = 0;
		assert_int_equal(count(&f, NULL, 0, true), 0);
		f.delay_numerator = denominators[i];
		assert_int_equal(count(&f, NULL, 0, true), N);
		f.delay_numerator = denominators[i] / 4;
		expect_share(count(&f, NULL, 0, true), 0.25);
		f.delay_numerator = UINT32_MAX;
		assert_int_equal(count(&f, NULL, 0, true), N);
	}
}

// FI-07
static void headers_lower_the_share_and_never_raise_it(void **state)
{
	static const struct {
		const char *text;
		double share;
	} rows[] = {{"10", 0.1}, {"0", 0}, {"50", 0.5}, {"51", 0.5}, {"100", 0.5}, {"junk", 0.5},
		{"-1", 0.5}, {"99999999999999999999", 0.5}};
	struct lb_fault f = always();
	f.delay = LB_DELAY_HEADER;
	f.delay_numerator = 50;
	f.abort = LB_ABORT_HEADER;
	f.abort_numerator = 50;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct pair delay[] = {{"x-envoy-fault-delay-request", "5"},
			{"x-envoy-fault-delay-request-percentage", rows[i].text}};
		const struct pair abort[] = {{"x-envoy-fault-abort-request", "503"},
			{"x-envoy-fault-abort-request-percentage", rows[i].text}};
		expect_share(count(&f, delay, 2, true), rows[i].share);
		expect_share(count(&f, abort, 2, false), rows[i].share);
	}
	// Not the name that C-core reads.
	static const struct pair core[] = {
		{"x-envoy-fault-abort-request", "503"}, {"x-envoy-fault-abort-percentage", "0"}};
	expect_share(count(&f, core, 2, false), 0.5);
}

// FI-08
static void limit_of_zero_turns_the_filter_off(void **state)
{
	struct lb_fault f = always();
	f.delay = LB_DELAY_FIXED;
	f.delay_ns = 1;
	f.abort = LB_ABORT_GRPC;
	f.max_active = 0;
	struct lb_fault_draw d = draw(&f, NULL, 0);
	assert_int_equal(d.delay_ns, 0);
	assert_int_equal(d.abort, LB_ABORT_NONE);
}

// FI-08
static void gauge_admits_up_to_each_limit(void **state)
{
	uint32_t active = 0;
	assert_true(lb_fault_begin(&active, 2));
	assert_true(lb_fault_begin(&active, 2));
	assert_false(lb_fault_begin(&active, 2));
	assert_int_equal(active, 2);
	assert_true(lb_fault_begin(&active, UINT32_MAX)); // another filter's limit, one gauge
	assert_int_equal(active, 3);
	lb_fault_end(&active);
	lb_fault_end(&active);
	assert_true(lb_fault_begin(&active, 2));
	assert_int_equal(active, 2);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

RUN_SUITE("lb/fault", TEST(fixed_delay_is_as_configured), TEST(header_delay_is_milliseconds),
	TEST(configured_abort_has_its_kind_and_status),
	TEST(header_abort_prefers_http_and_ignores_junk),
	TEST(headers_do_nothing_where_they_are_not_configured),
	TEST(delay_and_abort_are_drawn_independently), TEST(none_and_all_are_exact),
	TEST(headers_lower_the_share_and_never_raise_it), TEST(limit_of_zero_turns_the_filter_off),
	TEST(gauge_admits_up_to_each_limit))
