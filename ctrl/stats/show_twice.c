// SPDX-License-Identifier: Apache-2.0
// What is said twice in a command, where one of both would count (OPS-237).
#include "ctrl/stats/show_inside.h"

#include <string.h>

static size_t key_len(const char *word)
{
	size_t digits = strspn(word, "0123456789");
	return digits && !word[digits] ? 0 : strcspn(word, "=");
}

bool show_comes_twice(struct show_args *args, unsigned first, unsigned step, unsigned at)
{
	const char *word = args->words[at];
	size_t len = key_len(word);
	for (unsigned i = first; i < at; i += step)
		if (key_len(args->words[i]) == len && memcmp(args->words[i], word, len) == 0) {
			lb_err_set(&args->err, "%.*s is given twice", len ? (int)len : 8,
				len ? word : "a number");
			return true;
		}
	return false;
}
