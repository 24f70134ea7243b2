// SPDX-License-Identifier: Apache-2.0
// What can be said of a pattern without running it: what every text that it covers starts with, and
// the same pattern in the few words that mean one thing alone to Hyperscan.
// Thread: any. Pure.
#pragma once

#include "lb/base/str.h"

// What Hyperscan could read in another way than RE2 never gets there: characters and classes are
// written out as bytes, flags are worked in, anchors at the ends (which say nothing here) are left
// out. On ASCII texts without NUL, and on those only, both engines then give the same verdict
// (RX-05, RX-07, RX-09, RX-10).
struct lb_regex_syntax {
	bool is_common; // false = RE2 alone can run it; all below is 0
	size_t prefix_len; // bytes of the literal start of all that match
	// So many of the prefix's bytes are the first things in the text, LB_REGEX_SYNTAX_BYTE
	// characters each: without them it is the pattern of what follows them.
	size_t n_bytes;
	size_t text_len;
};

#define LB_REGEX_SYNTAX_BYTE 4 // \x2f

// Room for the text of any pattern of so many bytes. More than a caller's stack should bear.
size_t lb_regex_syntax_room(size_t pattern_len);
// pattern: one that RE2 accepts. prefix[pattern.len] and text[lb_regex_syntax_room(pattern.len)]
// are written to; a NULL text is not wanted.
struct lb_regex_syntax lb_regex_syntax_read(struct str pattern, char *prefix, char *text);
