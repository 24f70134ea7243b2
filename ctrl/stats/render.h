// SPDX-License-Identifier: Apache-2.0
// Output of `show` commands: each builds a JSON tree, and the text form is made from that tree, so
// that both always agree.
// Thread: ctrl.
#pragma once

#include "lb/base/str.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdio.h>

// A JSON string of any text, or JSON null for NULL. Bytes that are not UTF-8 (a text cut inside a
// character) become U+FFFD, since JSON does not allow them. Returns NULL if out of memory.
json_t *render_string(const char *text);
json_t *render_str(struct str); // likewise; NULs are kept
// For custom text forms: the string with its control characters escaped.
void render_print(FILE *, const char *text);
// The same as a cell of CSV, quoted where necessary.
void render_print_csv(FILE *, const char *text);

// A scalar as tables have it. unit_of: the name of its column, for durations (…_s) and bytes with
// units that people read; NULL = the number as it is.
void render_scalar(FILE *, const char *unit_of, const json_t *);

// Writes "key: value" lines for scalars, aligned columns for arrays of objects, and a titled
// section for nested objects. Escapes control characters, so that each row is one line.
// human: with units. From malloc; NULL = out of memory.
char *render_text(json_t *tree, bool human);
// Compact JSON on one line. From malloc; NULL = out of memory.
char *render_json(json_t *tree);
// Writes comma-separated lines: a header "# a,b,c" from `columns` (NULL-terminated) and a line for
// each object of the array; absent values are empty, cells are quoted as in RFC 4180 where
// necessary, strings escaped as in text. From malloc; NULL = out of memory.
char *render_csv(const json_t *rows, const char *const *columns);
