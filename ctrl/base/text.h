// SPDX-License-Identifier: Apache-2.0
// A text of bounded length, written in pieces, for display. What does not fit is omitted, and the
// text then ends in "...".
// Thread: any; a text belongs to its writer.
#pragma once

#include <stddef.h>

// The text that may not be there, as one that can be printed.
static inline const char *text_or_empty(const char *s)
{
	return s ? s : "";
}

struct xds_text {
	char *p; // always terminated
	size_t room, len; // room: at least 4
};

struct xds_text xds_text_of(char *p, size_t room);
void xds_text_add(struct xds_text *, const char *);
// Appends a key, value or name as it is, or in double quotes if it is empty or contains more than
// letters, digits and ._:/@-; bytes outside printable ASCII as \xHH.
void xds_text_add_word(struct xds_text *, const char *word);
