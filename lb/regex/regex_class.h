// SPDX-License-Identifier: Apache-2.0
// Reads what stands for one of several characters in a pattern: [...], [:name:] and escapes, as RE2
// defines them. Both functions begin at *p and leave it behind what they read. They return false
// where RE2 has to take over (regex_syntax.h).
// Thread: any. Pure.
#pragma once

#include "lb/regex/regex_chars.h"

#include <stdbool.h>

// [...] from its bracket on. fold: of (?i).
bool lb_regex_class_read(const char **p, const char *end, bool fold, struct lb_regex_chars *ret);
// A backslash and what follows it; *ret_literal says that it stands for one character.
bool lb_regex_class_read_escape(
	const char **p, const char *end, struct lb_regex_chars *ret, bool *ret_literal);
