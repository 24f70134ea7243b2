// SPDX-License-Identifier: Apache-2.0
// What a command's answer looks like on the socket (docs/stats.md), whenever it is made. Each is
// text without the final empty line, from malloc; NULL = out of memory.
// Thread: ctrl.
#pragma once

#include <jansson.h>

#include <stdbool.h>

struct evbuffer;

// fmt has one %s at most.
char *answer_error(const char *fmt, const char *what);
char *answer_json(json_t *tree);
char *answer_tree(json_t *tree, bool json, bool human); // without json as render_text() has it
// The tree, which is taken; without one, why there is none.
char *answer_either(json_t *tree, bool json, const char *why);

// Takes the text; NULL appends nothing.
void answer_append(struct evbuffer *out, char *text);
