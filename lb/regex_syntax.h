// SPDX-License-Identifier: Apache-2.0
// What can be said of a pattern without running it: whether Hyperscan gives RE2's verdict, and what
// every text that it covers starts with.
// Thread: any. Pure.
#pragma once

#include "lb/base/str.h"

struct lb_regex_syntax {
	// The pattern uses only what means the same to Hyperscan and RE2 on ASCII texts without NUL
	// (routing.md RX-05, RX-07, RX-09, RX-10). False = leave it to RE2.
	bool is_common;
	struct str core; // without a leading ^ and a trailing $, which say nothing here
	size_t prefix_len; // of the literal text that matches start with; "" when not is_common
};

// pattern: one that RE2 accepts. Writes the prefix to out[pattern.len].
struct lb_regex_syntax lb_regex_syntax_read(struct str pattern, char *out);
