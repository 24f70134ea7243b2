// SPDX-License-Identifier: Apache-2.0
// What is known of a pattern without running it: the literal prefix of its matches, and an
// equivalent pattern in syntax that Hyperscan and RE2 read alike.
// Thread: any. Pure.
#pragma once

#include "lb/base/str.h"

// The text avoids everything that Hyperscan could read differently from RE2: characters and classes
// are written as bytes, flags are applied, anchors at the ends (which have no effect here) are
// omitted. On ASCII subjects without NUL, and only on those, both engines then agree (RX-05, RX-07,
// RX-09, RX-10).
struct lb_regex_syntax {
	bool is_common; // false = only RE2 can run it; all fields below are 0
	size_t prefix_len; // bytes of the literal prefix of all matches
	// Number of the prefix's bytes with which the text begins, LB_REGEX_SYNTAX_BYTE characters
	// each: without them it is the pattern of what follows the prefix.
	size_t n_bytes;
	size_t text_len;
};

#define LB_REGEX_SYNTAX_BYTE 4 // \x2f

// Size of the text for any pattern of this many bytes; too large for a stack.
size_t lb_regex_syntax_room(size_t pattern_len);
// pattern: accepted by RE2. Writes prefix[pattern.len] and text[lb_regex_syntax_room(pattern.len)];
// text may be NULL.
struct lb_regex_syntax lb_regex_syntax_read(struct str pattern, char *prefix, char *text);
// Bytes 0x01 to 0x7f only: subjects that both engines read alike (RX-09, RX-10).
bool lb_regex_syntax_is_common_text(struct str);
