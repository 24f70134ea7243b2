// SPDX-License-Identifier: Apache-2.0
// What happened last: requests that failed, and events.
#include "ctrl/base/printout.h"
#include "ctrl/page/look_inside.h"
#include "ctrl/stats/failure_walk.h"
#include "ctrl/stats/show.h"

#include <jansson.h>

#include <stdlib.h>
#include <string.h>

#define TEXT_OF_2(x) #x
#define TEXT_OF(x) TEXT_OF_2(x)

static const char *text_of(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));
	return text ? text : "";
}

static void write_failure(struct html_table *t, const json_t *row, bool with_cause)
{
	html_row_begin(t, HTML_PLAIN);
	html_cell_ago(t, json_number_value(json_object_get(row, "age_s")));
	if (with_cause)
		html_cell_text(t, text_of(row, "cause"));
	html_cell_text(t, text_of(row, "frontend"));
	html_cell_text(t, text_of(row, "cluster"));
	html_cell_text(t, text_of(row, "endpoint"));
	html_cell_text(t, text_of(row, "text"));
	html_cell_begin(t);
	fputs("<code>", t->out);
	html_text(t->out, text_of(row, "id"));
	fputs("</code>", t->out);
	html_cell_end(t);
	html_row_end(t);
}

static json_t *failures(struct look *l, bool of_backends)
{
	char ours[] = "cause!=" FAILURE_ANSWERED, backends[] = "cause=" FAILURE_ANSWERED;
	char *of = NULL;
	if (l->cluster && asprintf(&of, "cluster=%s", l->cluster) < 0)
		return NULL;
	char *words[] = {
		"show", "failures", TEXT_OF(LOOK_FAILURES), of_backends ? backends : ours, of};
	json_t *rows = show_data(l->show, words, of ? 5 : 4);
	free(of);
	return rows;
}

static void write_rows(struct look *l, const json_t *rows, bool of_backends)
{
	static const struct html_column ours[] = {{"When", false}, {"Cause", false},
		{"Frontend", false}, {"Cluster", false}, {"Endpoint", false}, {"Text", false},
		{"Request id", false}};
	static const struct html_column backends[] = {{"When", false}, {"Frontend", false},
		{"Cluster", false}, {"Endpoint", false}, {"Text", false}, {"Request id", false}};
	struct html_table t;
	size_t i;
	const json_t *row;
	if (of_backends)
		LOOK_TABLE(&t, l, "Answers of backends that failed, the newest first", backends);
	else
		LOOK_TABLE(&t, l, "Failed requests, the newest first", ours);
	json_array_foreach(rows, i, row) write_failure(&t, row, !of_backends);
	html_table_end(&t);
}

static void write_failures(struct look *l, const char *id, const char *title, bool of_backends)
{
	json_t *rows = failures(l, of_backends);
	l->failed = l->failed || !rows;
	look_section_begin(l, id, title);
	if (!json_array_size(rows)) {
		look_note(l, "There are none.");
	} else {
		fputs("<p><code>shuntctl why ID</code> tells all that is known of one.</p>",
			l->out);
		write_rows(l, rows, of_backends);
	}
	look_section_end(l, 0, "");
	json_decref(rows);
}

void look_write_failures(struct look *l)
{
	write_failures(l, "failures", "Requests that failed here last", false);
}

void look_write_failed_answers(struct look *l)
{
	write_failures(l, "answers", "Requests that backends failed last", true);
}

static void write_event(struct html_table *t, const json_t *row)
{
	const char *level = text_of(row, "level");
	enum html_tone tone = strcmp(level, "error") == 0  ? HTML_BAD
	                      : strcmp(level, "warn") == 0 ? HTML_WARN
	                                                   : HTML_PLAIN;
	html_row_begin(t, tone);
	html_cell_text(t, text_of(row, "time"));
	html_cell_begin(t);
	html_badge(t->out, tone, level);
	html_cell_end(t);
	html_cell_text(t, text_of(row, "event"));
	html_cell_text(t, text_of(row, "details"));
	html_row_end(t);
}

void look_write_events(struct look *l)
{
	static const struct html_column columns[] = {
		{"Time", false}, {"Level", false}, {"Event", false}, {"Details", false}};
	char *words[] = {"show", "events", TEXT_OF(LOOK_EVENTS)};
	struct html_table t;
	if (l->cluster)
		return;
	json_t *rows = show_data(l->show, words, 3);
	l->failed = l->failed || !rows;
	look_section_begin(l, "events", "What changed last");
	if (!json_array_size(rows)) {
		look_note(l, "Nothing yet.");
	} else {
		LOOK_TABLE(&t, l, "Events, the newest first", columns);
		for (size_t i = json_array_size(rows); i > 0; i--)
			write_event(&t, json_array_get(rows, i - 1));
		html_table_end(&t);
	}
	look_section_end(l, 0, "");
	json_decref(rows);
}
