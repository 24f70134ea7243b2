// SPDX-License-Identifier: Apache-2.0
#include "tools/shuntctl/candidates.h"

#include "lb/base/words.h"
#include "tools/shuntctl/ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Words that we know ourselves, as the first of a line.
static const char *const own[] = {"exit", "quit", "top"};

// The line's words as a command; the last one may be empty. False = it is too long, or no command.
static bool make_command(
	const char *line, size_t len, char command[STATS_MAX_COMMAND], char **ret_last)
{
	char copy[STATS_MAX_COMMAND];
	struct words words;
	if (len >= sizeof(copy))
		return false;
	snprintf(copy, sizeof(copy), "%.*s", (int)len, line);
	bool is_new = len == 0 || line[len - 1] == ' ';
	if (words_split(copy, &words))
		return false;
	strcpy(command, "complete");
	for (unsigned i = 0; i < words.n; i++)
		if (!words_append(command, STATS_MAX_COMMAND, words.list[i]))
			return false;
	bool has_last = !is_new && words.n;
	*ret_last = strdup(has_last ? words.list[words.n - 1] : "");
	return *ret_last && (has_last || words_append(command, STATS_MAX_COMMAND, ""));
}

static void add(struct candidates *c, const char *word, size_t len)
{
	char **list = realloc(c->list, (c->n + 1) * sizeof(*list));
	if (!list)
		return;
	c->list = list;
	list[c->n] = strndup(word, len);
	c->n += list[c->n] != NULL;
}

static void set_rest(struct candidates *c, size_t len)
{
	size_t most = strlen(c->list[0]);
	for (unsigned i = 1; i < c->n; i++) {
		size_t same = 0;
		while (same < most && c->list[i][same] == c->list[0][same])
			same++;
		most = same;
	}
	char last = most ? c->list[0][most - 1] : 0;
	bool is_whole = c->n == 1 && last != '=' && last != '/';
	snprintf(c->rest, sizeof(c->rest), "%.*s%s", most > len ? (int)(most - len) : 0,
		c->list[0] + (most > len ? len : most), is_whole ? " " : "");
}

bool candidates_ask(struct candidates *c, const char *socket, const char *line, size_t len)
{
	char command[STATS_MAX_COMMAND];
	char *last = NULL;
	*c = (struct candidates){0};
	if (!make_command(line, len, command, &last)) {
		free(last);
		return false;
	}
	char *text = ask_all(socket, command);
	for (const char *at = text; at && *at; at += strcspn(at, "\n") + 1)
		add(c, at, strcspn(at, "\n"));
	bool is_first = strspn(line, " ") + strlen(last) == len;
	for (size_t i = 0; is_first && i < sizeof(own) / sizeof(own[0]); i++)
		if (strncmp(own[i], last, strlen(last)) == 0)
			add(c, own[i], strlen(own[i]));
	free(text);
	if (c->n)
		set_rest(c, strlen(last));
	free(last);
	return c->n > 0;
}

void candidates_fini(struct candidates *c)
{
	for (unsigned i = 0; i < c->n; i++)
		free(c->list[i]);
	free(c->list);
	*c = (struct candidates){0};
}
