// SPDX-License-Identifier: Apache-2.0
// A command line of the stats socket as words, and back (docs/stats.md): blanks part words; in
// double quotes a word may hold anything, with \\ \" \n \r \t and \xHH for bytes that would end the
// line or the word.
// Thread: any. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define WORDS_MAX 256

struct words {
	unsigned n;
	char *list[WORDS_MAX]; // into the text that was split
};

// Splits the text in place. NULL = done; else what is wrong with it, a constant text. A word never
// holds a NUL: \x00 is wrong.
const char *words_split(char *text, struct words *ret);
// Appends the word to line[room], after a blank if the line is not empty, in quotes when it needs
// them. False = no room, and the line is as before.
[[nodiscard]] bool words_append(char *line, size_t room, const char *word);
