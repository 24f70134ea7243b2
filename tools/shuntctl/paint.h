// SPDX-License-Identifier: Apache-2.0
// Colours of an answer's lines on a terminal: names of columns are bold, and states green, yellow
// or red, where they fill a cell.
// Thread: any. Pure, but for paint_wanted().
#pragma once

#include <stdbool.h>
#include <stdio.h>

// Whether this file is a terminal that shows colours, and nobody objects (NO_COLOR, TERM=dumb).
bool paint_wanted(FILE *);
struct paint {
	bool after_row; // a line of a table cannot be its names
};
// Writes an answer's next line, with its newline. Zeroed before the first one.
void paint_line(struct paint *, FILE *, const char *line);
