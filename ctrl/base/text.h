// SPDX-License-Identifier: Apache-2.0
// A text of bounded length, written bit by bit, for operators. What has no room is left out, and
// the text then ends in "...".
// Thread: any; a text belongs to its writer.
#pragma once

#include <stddef.h>

struct xds_text {
	char *p; // always terminated
	size_t room, len; // room: at least 4
};

struct xds_text xds_text_of(char *p, size_t room);
void xds_text_add(struct xds_text *, const char *);
// A key, a value or a name as it is, or in double quotes where it is empty or holds more than
// letters, digits and ._:/@-; bytes outside printable ASCII as \xHH.
void xds_text_add_word(struct xds_text *, const char *word);
