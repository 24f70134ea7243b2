// SPDX-License-Identifier: Apache-2.0
// Splits a command line of the stats socket into words, and back (docs/stats.md): blanks separate
// words; a word in double quotes may contain anything, with \\ \" \n \r \t and \xHH for bytes that
// would end the line or the word.
// Thread: any. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define WORDS_MAX 256 // as the error says

struct words {
	unsigned n;
	char *list[WORDS_MAX]; // into the text that was split
};

// Splits the text in place. Returns NULL, or the error as a constant text. Words contain no NUL:
// \x00 is an error.
const char *words_split(char *text, struct words *ret);
// Appends the word to line[room], after a blank if the line is not empty, quoted if necessary.
// Returns false with the line unchanged if it does not fit.
[[nodiscard]] bool words_append(char *line, size_t room, const char *word);
