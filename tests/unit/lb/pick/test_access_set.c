// SPDX-License-Identifier: Apache-2.0
// Which of a listener's access logs want a request.
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/pick/access_set.h"
#include "lb/pick/cause.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#define ALL(k)                                                                                     \
	{                                                                                          \
		.kind = LB_ACCESS_ALL, .n = (k)                                                    \
	}
#define ANY(k)                                                                                     \
	{                                                                                          \
		.kind = LB_ACCESS_ANY, .n = (k)                                                    \
	}
#define STATUS(o, v)                                                                               \
	{                                                                                          \
		.kind = LB_ACCESS_STATUS, .op = LB_ACCESS_##o, .value = (v)                        \
	}
#define DURATION(o, v)                                                                             \
	{                                                                                          \
		.kind = LB_ACCESS_DURATION, .op = LB_ACCESS_##o, .value = (v)                      \
	}
#define CAUSES(v)                                                                                  \
	{                                                                                          \
		.kind = LB_ACCESS_CAUSES, .value = (v)                                             \
	}
#define GRPC(v)                                                                                    \
	{                                                                                          \
		.kind = LB_ACCESS_GRPC, .value = (v)                                               \
	}

#define PLAIN(s)                                                                                   \
	{                                                                                          \
		.status = (s), .grpc_status = LB_ACCESS_NO_GRPC                                    \
	}
#define CALL(s)                                                                                    \
	{                                                                                          \
		.status = 200, .grpc_status = (s)                                                  \
	}
#define TOOK(ns)                                                                                   \
	{                                                                                          \
		.began_ns = 5, .ended_ns = 5 + (ns)                                                \
	}
#define FAILED(c)                                                                                  \
	{                                                                                          \
		.status = 503, .grpc_status = LB_ACCESS_NO_GRPC, .cause = LB_CAUSE_##c             \
	}
#define DELAYED(c)                                                                                 \
	{                                                                                          \
		.cause = LB_CAUSE_##c, .delayed = true                                             \
	}

// OPS-41, OPS-301
static void conditions_hold_as_envoys_do(void **state)
{
	static const struct {
		struct lb_access_test tests[8];
		struct lb_access_brief brief;
		bool holds;
	} rows[] = {
		{{ALL(0)}, PLAIN(200), true},
		{{ANY(0)}, PLAIN(200), false},
		{{STATUS(EQ, 200)}, PLAIN(200), true},
		{{STATUS(EQ, 200)}, PLAIN(201), false},
		{{STATUS(GE, 500)}, PLAIN(499), false},
		{{STATUS(GE, 500)}, PLAIN(500), true},
		{{STATUS(LE, 0)}, PLAIN(0), true},
		{{STATUS(LE, 399)}, PLAIN(400), false},
		{{STATUS(NE, 404)}, PLAIN(404), false},
		{{STATUS(NE, 404)}, PLAIN(200), true},
		{{DURATION(GE, 1)}, TOOK(NS_PER_MS - 1), false},
		{{DURATION(GE, 1)}, TOOK(NS_PER_MS), true},
		{{DURATION(EQ, 2)}, TOOK(3 * NS_PER_MS - 1), true},
		{{CAUSES(1 << LB_CAUSE_TIMEOUT)}, FAILED(TIMEOUT), true},
		{{CAUSES(1 << LB_CAUSE_TIMEOUT)}, FAILED(NO_ROUTE), false},
		{{CAUSES(LB_ACCESS_DELAYED)}, FAILED(TIMEOUT), false},
		{{CAUSES(LB_ACCESS_DELAYED)}, DELAYED(OK), true},
		{{CAUSES(1 << LB_CAUSE_TIMEOUT)}, DELAYED(TIMEOUT), true},
		{{CAUSES(1 << LB_CAUSE_TIMEOUT)}, DELAYED(NO_ROUTE), false},
		{{GRPC(1 << 0)}, CALL(0), true},
		{{GRPC(1 << 0)}, CALL(16), false},
		{{GRPC(1 << 16)}, CALL(16), true},
		{{GRPC(1 << 13)}, PLAIN(400), true},
		{{GRPC(1 << 16)}, PLAIN(401), true},
		{{GRPC(1 << 7)}, PLAIN(403), true},
		{{GRPC(1 << 12)}, PLAIN(404), true},
		{{GRPC(1 << 14)}, PLAIN(429), true},
		{{GRPC(1 << 14)}, PLAIN(503), true},
		{{GRPC(1 << 2)}, PLAIN(200), true},
		{{ALL(2), STATUS(GE, 200), STATUS(LE, 299)}, PLAIN(204), true},
		{{ALL(2), STATUS(GE, 200), STATUS(LE, 299)}, PLAIN(304), false},
		{{ANY(2), STATUS(EQ, 200), STATUS(EQ, 404)}, PLAIN(404), true},
		{{ANY(2), STATUS(EQ, 200), STATUS(EQ, 404)}, PLAIN(403), false},
		// What is within one is passed over as a whole.
		{{ALL(4), ANY(2), STATUS(EQ, 200), STATUS(EQ, 404), STATUS(NE, 200)}, PLAIN(404),
			true},
		{{ALL(4), ANY(2), STATUS(EQ, 200), STATUS(EQ, 404), STATUS(NE, 200)}, PLAIN(200),
			false},
		{{ANY(4), ALL(2), STATUS(EQ, 1), STATUS(EQ, 200), STATUS(EQ, 7)}, PLAIN(200),
			false},
		{{ANY(4), ALL(2), STATUS(EQ, 1), STATUS(EQ, 200), STATUS(EQ, 7)}, PLAIN(7), true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (lb_access_holds(rows[i].tests, &rows[i].brief) != rows[i].holds)
			fail_msg("row %zu", i);
}

#define DRAWS 100000

// OPS-41: one draw serves all of them; those with salts are draws of their own.
static void chances_are_as_large_as_asked_for(void **state)
{
	const struct lb_access_test quarter = {
		.kind = LB_ACCESS_CHANCE, .value = LB_ACCESS_SAMPLE_ALL / 4};
	struct lb_access_test both[] = {ALL(2), quarter, quarter};
	struct lb_access_test apart[] = {ALL(2), quarter, quarter};
	const struct lb_access_test never = {.kind = LB_ACCESS_CHANCE, .value = 0};
	const struct lb_access_test always = {
		.kind = LB_ACCESS_CHANCE, .salt = 9, .value = LB_ACCESS_SAMPLE_ALL};
	uint32_t n_both = 0, n_apart = 0;
	struct rand rand;
	rand_init(&rand, 11);
	apart[1].salt = UINT32_C(0x9e3779b9);
	apart[2].salt = 2 * UINT32_C(0x9e3779b9);
	for (int i = 0; i < DRAWS; i++) {
		const struct lb_access_brief brief = {.draw = rand_u32(&rand)};
		n_both += lb_access_holds(both, &brief);
		n_apart += lb_access_holds(apart, &brief);
		assert_false(lb_access_holds(&never, &brief));
		assert_true(lb_access_holds(&always, &brief));
	}
	assert_in_range(n_both, DRAWS / 4 - 600, DRAWS / 4 + 600); // four standard deviations
	assert_in_range(n_apart, DRAWS / 16 - 310, DRAWS / 16 + 310);
}

// OPS-40
static void a_set_has_the_bits_of_those_that_want_it(void **state)
{
	struct lb_access_test errors[] = {ANY(2), STATUS(GE, 500), STATUS(EQ, 0)};
	struct lb_access_test good = STATUS(LE, 399);
	const struct lb_access_log logs[] = {{2, errors}, {8, NULL}, {UINT64_C(1) << 63, &good}};
	struct lb_access_set *s = lb_access_set_new(logs, 3);
	errors[1].value = good.value = 0; // they were copied
	const struct lb_access_brief ok = PLAIN(200), bad = PLAIN(500), none = PLAIN(0);
	assert_int_equal(lb_access_set_want(s, &ok), 8 | UINT64_C(1) << 63);
	assert_int_equal(lb_access_set_want(s, &bad), 2 | 8);
	assert_int_equal(lb_access_set_want(s, &none), 2 | 8 | UINT64_C(1) << 63);
	assert_int_equal(lb_access_set_want(NULL, &ok), 0);
	assert_ptr_equal(lb_access_set_get(s), s);
	lb_access_set_put(s);
	assert_int_equal(lb_access_set_want(s, &bad), 2 | 8);
	lb_access_set_put(s);
	lb_access_set_put(lb_access_set_get(NULL));
	ALLOC_FAIL_EACH(s = lb_access_set_new(logs, 3), !s, lb_access_set_put(s));
}

RUN_SUITE("lb/access_set", cmocka_unit_test(conditions_hold_as_envoys_do),
	cmocka_unit_test(chances_are_as_large_as_asked_for),
	cmocka_unit_test(a_set_has_the_bits_of_those_that_want_it))
