// SPDX-License-Identifier: Apache-2.0
// A line of the access log as it is built: bytes in a place of a fixed size. What does not fit is
// left out.
// Thread: any; one at a time.
#pragma once

#include "lb/base/str.h"

#include <stdint.h>

struct ip_addr;

// A line has no more bytes than this, its newline included.
#define ACCESS_LINE_MAX 8192

struct access_line {
	char *p; // borrowed
	size_t len, size;
};

void access_line_put(struct access_line *, struct str);
void access_line_number(struct access_line *, uint64_t);
// With bytes that end lines or move cursors as \xHH, so that a line is one line (OPS-37).
void access_line_plain(struct access_line *, struct str);
// As the inside of a string of JSON; what is no UTF-8 as U+FFFD.
void access_line_escaped(struct access_line *, struct str);
// The same with its quotes.
void access_line_json(struct access_line *, struct str);
