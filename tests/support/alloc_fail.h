// SPDX-License-Identifier: Apache-2.0
// Failing each allocation of a builder once: list alloc_fail.c among the test's sources; it stands
// in for malloc, calloc and realloc (no change in production code).
// Thread: one; only the thread that armed it is counted.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// From now on this thread's allocation number `nth` (from 0) fails; SIZE_MAX = none does.
void alloc_fail_arm(size_t nth);
// False in a sanitizer's build: nothing is failed there, and nothing counted.
bool alloc_fail_works(void);
// Stops. True = an allocation was failed.
bool alloc_fail_disarm(void);
// Blocks allocated and not freed again since alloc_fail_arm(), by any function that it counts.
long alloc_fail_live(void);

// Runs `statement` with allocation 0, 1, 2, … failing, until none fails any more; `failed` (an
// expression) must then say that the constructor gave up, and nothing may be left allocated.
#define ALLOC_FAIL_EACH(statement, failed, undo)                                                   \
	do {                                                                                       \
		size_t alloc_nth = 0;                                                              \
		for (;; alloc_nth++) {                                                             \
			alloc_fail_arm(alloc_nth);                                                 \
			statement;                                                                 \
			bool alloc_hit = alloc_fail_disarm();                                      \
			if (!alloc_hit)                                                            \
				break;                                                             \
			assert_true(failed);                                                       \
			assert_int_equal(alloc_fail_live(), 0);                                    \
		}                                                                                  \
		assert_false(failed);                                                              \
		undo;                                                                              \
		assert_true(alloc_nth > 0 || !alloc_fail_works());                                 \
	} while (0)
