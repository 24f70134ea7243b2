// SPDX-License-Identifier: Apache-2.0
// RE2 for C; nothing of C++ is visible here. An exception cannot leave RE2 safely, so the process
// ends if RE2 runs out of memory.
// Thread: any. match() and replace() take locks and may allocate: RE2 builds its automata lazily.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct regex_re2;

// Returns NULL if the pattern is invalid, with the reason in why, terminated.
struct regex_re2 *regex_re2_new(const char *pattern, size_t len, char *why, size_t why_size);
void regex_re2_free(struct regex_re2 *); // NULL is fine
size_t regex_re2_steps(const struct regex_re2 *); // of its program: what the pattern costs
// RE2::FullMatch.
bool regex_re2_match(const struct regex_re2 *, const char *text, size_t len);
// True if \1 and similar references in the replacement name existing groups.
bool regex_re2_rewrite_ok(
	const struct regex_re2 *, const char *rewrite, size_t len, char *why, size_t why_size);
// RE2::GlobalReplace. Writes at most `room` bytes of the result to out; returns how many.
size_t regex_re2_replace(const struct regex_re2 *, const char *rewrite, size_t rewrite_len,
	const char *text, size_t len, char *out, size_t room);

#ifdef __cplusplus
}
#endif
