// SPDX-License-Identifier: Apache-2.0
// cmocka, with the includes it wants before itself. The only file that includes it.
// Thread: the test's own.
#pragma once

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

// One suite = one file: RUN_SUITE("lb/route", cmocka_unit_test(exact_domain_beats_wildcard), …).
#define RUN_SUITE(name, ...)                                                                       \
	int main(void)                                                                             \
	{                                                                                          \
		const struct CMUnitTest suite[] = {__VA_ARGS__};                                   \
		return cmocka_run_group_tests_name(name, suite, NULL, NULL);                       \
	}
