// SPDX-License-Identifier: Apache-2.0
// A text of any length that is printed piece by piece.
// Thread: any; a printout belongs to its writer.
#pragma once

#include <stddef.h>
#include <stdio.h>

struct printout {
	char *text;
	size_t len;
	FILE *to;
};

// Where to print; printout_end() must follow. NULL = out of memory, and there is nothing to end.
FILE *printout_begin(struct printout *);
// The text, to the caller: from malloc, terminated, p->len bytes. NULL = out of memory.
char *printout_end(struct printout *p);
