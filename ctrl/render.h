// SPDX-License-Identifier: Apache-2.0
// One answer, two forms: every `show` command builds a JSON tree; text is drawn from that tree, so
// the two can never say different things.
// Thread: ctrl.
#pragma once

#include <jansson.h>

// "key: value" lines for scalars, aligned columns for arrays of objects, a titled section for what
// nests. From malloc; NULL = no memory.
char *render_text(json_t *tree);
// Compact JSON on one line. From malloc; NULL = no memory.
char *render_json(json_t *tree);
// Comma-separated lines: a header "# a,b,c" from `columns` (NULL-terminated) and a line for each
// object of the array; absent values stay empty. From malloc; NULL = no memory.
char *render_csv(const json_t *rows, const char *const *columns);
