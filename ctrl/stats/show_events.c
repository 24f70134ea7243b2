// SPDX-License-Identifier: Apache-2.0
// show events: the last lines of the log as events, the oldest first, and with -w those that come.
#include "ctrl/base/events.h"
#include "ctrl/base/printout.h"
#include "ctrl/stats/render.h"
#include "ctrl/stats/row_query.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "ctrl/stats/stats_server.h"
#include "lb/base/container_of.h"
#include "lb/base/str.h"

#include <event2/buffer.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FALLBACK 100 // rows, where the command says no number

struct watch {
	struct stats_follow follow;
	struct events *events;
	uint64_t next; // number of the first one that was not told
	struct row_query *query; // owned; NULL = all
	bool json;
};

static void set_time(json_t *row, uint64_t wall_ns)
{
	time_t s = (time_t)(wall_ns / NS_PER_SECOND);
	struct tm tm;
	char day[32] = "", text[48];
	if (gmtime_r(&s, &tm))
		strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%03uZ", day,
		(unsigned)(wall_ns % NS_PER_SECOND / NS_PER_MS));
	show_set_text(row, "time", text);
}

static json_t *row_of(const struct event_entry *e)
{
	json_t *row = json_object();
	set_time(row, e->wall_ns);
	show_set_text(row, "level", log_level_name(e->level));
	show_set_text(row, "event", e->text);
	show_set_text(row, "details", event_rest(e));
	return row;
}

static void print_row(FILE *f, json_t *row)
{
	static const char *const keys[] = {"time", "level", "event", "details"};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *text = json_string_value(json_object_get(row, keys[i]));
		if (i && text && text[0])
			fputs(i == 1 ? " " : "  ", f);
		render_print(f, text ? text : "");
	}
	fputc('\n', f);
}

char *show_events_text(json_t *rows)
{
	struct printout p;
	FILE *f = printout_begin(&p);
	if (!f)
		return NULL;
	for (size_t i = 0; i < json_array_size(rows); i++)
		print_row(f, json_array_get(rows, i));
	return printout_end(&p);
}

static void add_line(const struct watch *w, const struct event_entry *e, struct evbuffer *out)
{
	json_t *row = row_of(e), *rows = json_pack("[O]", row);
	char *text = !row_query_matches(w->query, row) ? NULL
	             : w->json                         ? render_json(row)
	             : rows                            ? show_events_text(rows)
	                                               : NULL;
	if (text)
		evbuffer_add_printf(out, "%s", text);
	free(text);
	json_decref(rows);
	json_decref(row);
}

static void add_lost(const struct watch *w, uint64_t n_lost, struct evbuffer *out)
{
	evbuffer_add_printf(out,
		w->json ? "{\"lost\":%" PRIu64 "}\n" : "# %" PRIu64 " events were lost\n", n_lost);
}

static bool more(struct stats_follow *f, struct evbuffer *out)
{
	struct watch *w = CONTAINER_OF(f, struct watch, follow);
	struct event_entry e;
	uint64_t n_lost = 0;
	while (evbuffer_get_length(out) < STATS_FOLLOW_UNREAD &&
		events_read(w->events, &w->next, &e, &n_lost)) {
		if (n_lost)
			add_lost(w, n_lost, out);
		n_lost = 0;
		add_line(w, &e, out);
	}
	return true;
}

static void watch_free(struct stats_follow *f)
{
	struct watch *w = CONTAINER_OF(f, struct watch, follow);
	row_query_free(w->query);
	free(w);
}

static json_t *last(struct events *events, uint64_t n_rows, uint64_t *ret_next)
{
	uint64_t n = events_count(events), n_lost = 0;
	uint64_t next = n > n_rows ? n - n_rows : 0;
	struct event_entry e;
	json_t *rows = json_array();
	while (rows && next < n && events_read(events, &next, &e, &n_lost))
		json_array_append_new(rows, row_of(&e));
	*ret_next = next;
	return rows;
}

static bool read_words(struct show_args *args, uint64_t *ret_rows, bool *ret_watch)
{
	bool has_number = false;
	for (unsigned i = 0; i < args->n; i++) {
		const char *word = args->words[i];
		if (strcmp(word, "json") == 0 && i == args->n - 1) {
			args->json = true;
		} else if (strcmp(word, "-w") == 0 && !*ret_watch) {
			*ret_watch = true;
		} else if (has_number || !str_number(str_from(word), UINT32_MAX, ret_rows)) {
			lb_err_set(&args->err, "unexpected argument '%s', try help", word);
			return false;
		} else {
			has_number = true;
		}
	}
	return true;
}

// What is yet to come has no order, and no number.
static bool check_query(struct show_args *args)
{
	if (!args->query || (!row_query_sort(args->query) && !row_query_limit(args->query)))
		return true;
	lb_err_set(&args->err, "with -w there is no sort and no limit");
	return false;
}

// `[N] [-w] [json]`.
json_t *show_events(const struct show *s, struct show_args *args)
{
	uint64_t n_rows = FALLBACK;
	bool watches = false;
	if (!read_words(args, &n_rows, &watches) || (watches && !check_query(args)))
		return NULL;
	struct watch *w = watches ? calloc(1, sizeof(*w)) : NULL;
	uint64_t next = 0;
	json_t *rows = watches && !w ? NULL : last(s->conf.events, n_rows, &next);
	if (!rows || !w) {
		free(w);
		return rows;
	}
	if (args->query && row_query_apply(args->query, &rows, &args->err) != 0) {
		free(w);
		json_decref(rows);
		return NULL;
	}
	*w = (struct watch){.follow = {more, watch_free},
		.events = s->conf.events,
		.next = next,
		.query = args->query,
		.json = args->json};
	args->query = NULL;
	args->follow = &w->follow;
	return rows;
}
