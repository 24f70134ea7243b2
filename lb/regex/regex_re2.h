// SPDX-License-Identifier: Apache-2.0
// RE2 for C. Nothing of C++ passes through here. RE2 cannot be left by an exception without harm,
// so where memory runs out inside it, the process ends.
// Thread: any. match() and replace() take locks and may allocate: RE2 builds its automata lazily.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct regex_re2;

// NULL = the pattern is invalid and why says so, terminated.
struct regex_re2 *regex_re2_new(const char *pattern, size_t len, char *why, size_t why_size);
void regex_re2_free(struct regex_re2 *); // NULL is fine
size_t regex_re2_steps(const struct regex_re2 *); // of its program: what the pattern costs
// RE2::FullMatch.
bool regex_re2_match(const struct regex_re2 *, const char *text, size_t len);
// Whether \1 and its like in the replacement name groups that are there.
bool regex_re2_rewrite_ok(
	const struct regex_re2 *, const char *rewrite, size_t len, char *why, size_t why_size);
// RE2::GlobalReplace. At most `room` bytes of the outcome go to out; how many.
size_t regex_re2_replace(const struct regex_re2 *, const char *rewrite, size_t rewrite_len,
	const char *text, size_t len, char *out, size_t room);

#ifdef __cplusplus
}
#endif
