// SPDX-License-Identifier: Apache-2.0
// Pieces of HTML. Names and texts come from xDS servers, clients and files: they are written by
// these functions alone, which make text of whatever they are given. What is written has no line
// break, so that it fits a line of an event stream.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// As text or as the value of an attribute in double quotes. What is no UTF-8, control characters
// and those that turn the direction of writing become U+FFFD.
void html_text(FILE *, const char *text);
// As a value in the query of a URL, in an attribute.
void html_query_value(FILE *, const char *text);
// "12 s", "5 min", "3 h", "9 d": the nearest below, for people.
void html_duration(FILE *, double seconds);

enum html_tone { HTML_PLAIN, HTML_GOOD, HTML_WARN, HTML_BAD };
// A word with a sign of its own, so that colour is not all that tells them apart.
void html_badge(FILE *, enum html_tone, const char *text);

struct html_column {
	const char *title; // our own text
	bool is_number;
};
// A table, whose cells are written in order; on a narrow screen each stands with its title.
struct html_table {
	FILE *out;
	const struct html_column *columns;
	uint32_t n, at;
};

void html_table_begin(
	struct html_table *, FILE *, const char *caption, const struct html_column *, uint32_t n);
void html_table_end(struct html_table *);
void html_row_begin(struct html_table *, enum html_tone);
void html_row_end(struct html_table *);
// The cell's content may be anything that is written between the two.
void html_cell_begin(struct html_table *);
void html_cell_end(struct html_table *);
void html_cell_text(struct html_table *, const char *text);
void html_cell_count(struct html_table *, uint64_t n);
void html_cell_rate(struct html_table *, double per_s); // below 0: it is not known yet
void html_cell_ago(struct html_table *, double seconds); // below 0: not known
