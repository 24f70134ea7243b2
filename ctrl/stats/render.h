// SPDX-License-Identifier: Apache-2.0
// One answer, two forms: every `show` command builds a JSON tree; text is drawn from that tree, so
// the two can never say different things.
// Thread: ctrl.
#pragma once

#include "lb/base/str.h"

#include <jansson.h>

#include <stdio.h>

// A JSON string of any text, or null of NULL: what is not UTF-8 (a text cut in the middle of a
// character) becomes U+FFFD, since JSON would refuse the whole. NULL = out of memory.
json_t *render_string(const char *text);
json_t *render_str(struct str); // likewise; NULs are kept
// For text forms of one's own: the string with its control characters escaped.
void render_print(FILE *, const char *text);

// "key: value" lines for scalars, aligned columns for arrays of objects, a titled section for what
// nests. Control characters in strings are escaped: an answer is always as many lines as it has
// rows. From malloc; NULL = out of memory.
char *render_text(json_t *tree);
// Compact JSON on one line. From malloc; NULL = out of memory.
char *render_json(json_t *tree);
// Comma-separated lines: a header "# a,b,c" from `columns` (NULL-terminated) and a line for each
// object of the array; absent values stay empty, cells are quoted as in RFC 4180 where they must
// be, strings escaped as in text. From malloc; NULL = out of memory.
char *render_csv(const json_t *rows, const char *const *columns);
