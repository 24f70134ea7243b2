// SPDX-License-Identifier: Apache-2.0
// help: the commands, and the manual page that is made of the same table.
#include "ctrl/stats/show.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"

#include <stdio.h>
#include <string.h>

// What tables have no room for: the words of its usage.
static json_t *arguments_json(const char *usage)
{
	json_t *list = json_array();
	while (*usage) {
		size_t len = strcspn(usage, " ");
		json_array_append_new(list, json_stringn(usage, len));
		usage += len + strspn(usage + len, " ");
	}
	return list;
}

json_t *show_help(const struct show *s, struct show_args *args)
{
	json_t *rows = json_array();
	struct show_usage u;
	for (size_t i = 0; rows && show_usage_at(i, &u); i++) {
		char text[256];
		snprintf(text, sizeof(text), "%s%s%s", u.help, u.usage[0] ? ": " : "", u.usage);
		json_t *row = json_object();
		show_set_text(row, "command", u.name);
		show_set_text(row, "level", stats_level_name(u.level));
		show_set_text(row, "help", text);
		json_object_set_new(row, "arguments", arguments_json(u.usage));
		json_object_set_new(row, "conditions", json_boolean(u.has_rows));
		json_array_append_new(rows, row);
	}
	return rows;
}

// roff takes a minus for a hyphen, and a dot or a quote at the beginning for its own.
static void print_roff(FILE *out, const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", out);
	for (; *text; text++) {
		if (*text == '-' || *text == '\\')
			fputc('\\', out);
		fputs(*text == '\\' ? "e" : (char[]){*text, 0}, out);
	}
}

void show_print_manual(FILE *out)
{
	struct show_usage u;
	fputs("[COMMANDS]\n", out);
	for (size_t i = 0; show_usage_at(i, &u); i++) {
		fputs(".TP\n\\fB", out);
		print_roff(out, u.name);
		fputs(u.usage[0] ? "\\fR " : "\\fR", out);
		print_roff(out, u.usage);
		fputs(u.has_rows ? " [CONDITION...]\n" : "\n", out);
		print_roff(out, u.help);
		fprintf(out, " (%s)\n", stats_level_name(u.level));
	}
	fputs("\n[CONDITIONS]\n"
	      "Of the rows of a listing those are told for which all conditions hold: a column, an "
	      "operator and a value in one word, as in \\fBstate!=READY\\fR. Operators are\n"
	      ".B = != < > <= >=\nand\n.B ~\n(holds the text). \\fBsort=\\fR[\\fB\\-\\fR]COLUMN "
	      "orders them, \\fBlimit=\\fRN tells so many at most.\n",
		out);
}
