// SPDX-License-Identifier: Apache-2.0
#include "lb/base/time.h"
#include "lb/route/timeouts.h"
#include "tests/support/check.h"

#include <stddef.h>

#define S NS_PER_SECOND
#define NONE LB_NO_TIMEOUT

struct row {
	struct lb_timeouts route;
	uint64_t listener, client, effective;
};

static void check_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t ns =
			lb_timeouts_effective(&rows[i].route, rows[i].listener, rows[i].client);
		if (ns != rows[i].effective)
			fail_msg("row %zu: %llu", i, (unsigned long long)ns);
	}
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof(rows[0]))

// A31-T01: the first table of the gRFC.
static void the_routes_limit_counts_before_the_listeners(void **state)
{
	static const struct row rows[] = {
		{{.has_max = true, .max_ns = 10 * S}, NONE, 20 * S, 10 * S},
		{{.has_max = true, .max_ns = 10 * S}, NONE, NONE, 10 * S},
		{{.has_max = true, .max_ns = 10 * S}, 5 * S, NONE, 10 * S},
		{{0}, 5 * S, NONE, 5 * S},
		{{0}, 5 * S, 20 * S, 5 * S},
		{{0}, NONE, 20 * S, 20 * S},
		{{0}, NONE, NONE, NONE},
	};
	CHECK_ROWS(rows);
}

// A31-T02
static void a_limit_of_0_is_none_and_hides_the_listeners(void **state)
{
	static const struct row rows[] = {
		{{.has_max = true}, 5 * S, NONE, NONE},
		{{.has_max = true}, 5 * S, 20 * S, 20 * S},
		{{0}, 0, NONE, NONE},
		{{0}, 0, 20 * S, 20 * S},
	};
	CHECK_ROWS(rows);
}

// A31-T03, A31-T04
static void a_header_limit_hides_both_others(void **state)
{
	static const struct row rows[] = {
		{{.has_header_max = true, .has_max = true, .max_ns = 2 * S}, 3 * S, 20 * S, 20 * S},
		{{.has_header_max = true, .has_max = true, .max_ns = 2 * S}, 3 * S, NONE, NONE},
		{{.has_header_max = true, .header_max_ns = 10 * S}, 3 * S, 20 * S, 10 * S},
		{{.has_header_max = true, .header_max_ns = 10 * S}, 3 * S, 4 * S, 4 * S},
		{{.has_header_max = true, .header_max_ns = 10 * S}, 3 * S, NONE, 10 * S},
		{{.has_header_max = true, .header_max_ns = 10 * S, .has_max = true}, NONE, NONE,
			10 * S},
	};
	CHECK_ROWS(rows);
}

// A31-T05: whatever the limits are.
static void the_clients_deadline_is_never_extended(void **state)
{
	static const uint64_t values[] = {0, 1, S, 2 * S, NONE - 1, NONE};
	const size_t n = sizeof(values) / sizeof(values[0]);
	for (int bits = 0; bits < 4; bits++)
		for (size_t i = 0; i < n * n * n * n; i++) {
			struct lb_timeouts t = {.has_max = bits & 1,
				.has_header_max = bits & 2,
				.max_ns = values[i % n],
				.header_max_ns = values[i / n % n]};
			uint64_t client = values[i / n / n % n], listener = values[i / n / n / n];
			assert_true(lb_timeouts_effective(&t, listener, client) <= client);
		}
}

// TH-98: none is an answer of the route's, too.
static void the_routes_idle_limit_counts_before_the_listeners(void **state)
{
	static const struct lb_listener_timeouts listener = {NONE, {300 * S, NONE}};
	static const struct {
		uint64_t route, plain, grpc;
	} rows[] = {{0, 300 * S, NONE}, {S, S, S}, {NONE, NONE, NONE}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_timeouts t = {.idle_ns = rows[i].route};
		assert_true(lb_timeouts_idle(&t, &listener, 9 * S, false) == rows[i].plain);
		assert_true(lb_timeouts_idle(&t, &listener, 9 * S, true) == rows[i].grpc);
	}
	static const struct lb_listener_timeouts silent = {NONE, {0, NONE}};
	assert_true(lb_timeouts_idle(&(struct lb_timeouts){0}, &silent, 9 * S, false) == 9 * S);
	assert_true(lb_timeouts_idle(&(struct lb_timeouts){0}, &silent, 9 * S, true) == NONE);
}

RUN_SUITE("lb/timeouts", cmocka_unit_test(the_routes_limit_counts_before_the_listeners),
	cmocka_unit_test(a_limit_of_0_is_none_and_hides_the_listeners),
	cmocka_unit_test(a_header_limit_hides_both_others),
	cmocka_unit_test(the_clients_deadline_is_never_extended),
	cmocka_unit_test(the_routes_idle_limit_counts_before_the_listeners))
