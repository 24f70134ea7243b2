// SPDX-License-Identifier: Apache-2.0
#include "tools/shuntctl/paint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOLD "\033[1m"
#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

static const struct {
	const char *word, *color;
} states[] = {{"READY", GREEN}, {"ACKED", GREEN}, {"ready", GREEN}, {"serving", GREEN},
	{"up", GREEN}, {"UP", GREEN}, {"OPEN", GREEN}, {"served", GREEN}, {"applied", GREEN},
	{"HEALTHY", GREEN}, {"CONNECTING", YELLOW}, {"starting", YELLOW}, {"draining", YELLOW},
	{"lame_duck", YELLOW}, {"drained", YELLOW}, {"waiting", YELLOW}, {"outdated", YELLOW},
	{"REQUESTED", YELLOW}, {"DRAINING", YELLOW}, {"warn", YELLOW}, {"warning", YELLOW},
	{"TRANSIENT_FAILURE", RED}, {"NACKED", RED}, {"DOES_NOT_EXIST", RED},
	{"RECEIVED_ERROR", RED}, {"TIMEOUT", RED}, {"failing", RED}, {"down", RED}, {"DOWN", RED},
	{"gone", RED}, {"refusing", RED}, {"UNHEALTHY", RED}, {"error", RED}};
#define N_STATES (sizeof(states) / sizeof(states[0]))

bool paint_wanted(FILE *f)
{
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
	return isatty(fileno(f)) && !(none && *none) && term && *term && strcmp(term, "dumb") != 0;
}

// Two names of columns at least: `cluster  state  requests`; rows of names may look so, too, but
// stand behind them.
static bool is_head(const char *line)
{
	size_t len = strspn(line, "abcdefghijklmnopqrstuvwxyz0123456789_ ");
	const char *text = line + strspn(line, " ");
	return (line[len] == '\n' || !line[len]) && strstr(text, "  ");
}

static const char *color_of(const char *cell, size_t len)
{
	for (size_t i = 0; i < N_STATES; i++)
		if (strlen(states[i].word) == len && strncmp(states[i].word, cell, len) == 0)
			return states[i].color;
	return NULL;
}

// Up to the end of the cell: two blanks, or the line's end; behind `key: ` another one begins.
static size_t cell_len(const char *at)
{
	size_t len = 0;
	while (at[len] && at[len] != '\n' && !(at[len] == ' ' && at[len + 1] == ' ')) {
		len++;
		if (at[len - 1] == ' ' && len > 1 && at[len - 2] == ':')
			break;
	}
	return len;
}

void paint_line(struct paint *p, FILE *out, const char *line)
{
	size_t end = strcspn(line, "\n");
	bool may_be_head = !p->after_row;
	p->after_row = end == 0 || line[end - 1] != ':'; // a table's title
	if (may_be_head && is_head(line)) {
		fprintf(out, BOLD "%.*s" PLAIN "%s", (int)end, line, line + end);
		return;
	}
	for (const char *at = line; *at;) {
		size_t blanks = strspn(at, " \n");
		fprintf(out, "%.*s", (int)blanks, at);
		at += blanks;
		size_t len = cell_len(at);
		const char *color = color_of(at, len);
		fprintf(out, "%s%.*s%s", color ? color : "", (int)len, at, color ? PLAIN : "");
		at += len;
	}
}
