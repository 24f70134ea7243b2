// SPDX-License-Identifier: Apache-2.0
// Three strengths of assertion. Untrusted input never reaches one of them.
// Thread: any.
#pragma once

// Always on. What it guards would corrupt memory or lose a request: abort with file and line.
#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (__builtin_expect(!(x), 0))                                                     \
			check_failed(__FILE__, __LINE__, #x);                                      \
	} while (0)

// Debug builds only: contracts of callers.
#ifdef NDEBUG
#define DCHECK(x) ((void)sizeof(!(x)))
#else
#define DCHECK(x) CHECK(x)
#endif

_Noreturn void check_failed(const char *file, int line, const char *what);
