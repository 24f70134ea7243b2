// SPDX-License-Identifier: Apache-2.0
// log: the last lines of the access log, the oldest first, and with -f those that come.
#include "ctrl/access_log/access_log.h"
#include "ctrl/access_log/line.h"
#include "ctrl/access_log/recent.h"
#include "ctrl/base/printout.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/render.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/stats_server.h"
#include "lb/base/container_of.h"

#include <event2/buffer.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FALLBACK 100 // lines, where the command says no number
#define N_KEYS 5
#define WORD_MAX 128
#define STATUS_MOST 999

// Which records are wanted.
struct log_filter {
	char cause[WORD_MAX], cluster[WORD_MAX], frontend[WORD_MAX], path[WORD_MAX]; // "" = any
	uint64_t min_status;
};

struct log_watch {
	struct stats_follow follow;
	const struct show *show;
	struct log_filter filter;
	uint64_t next; // number of the first record that was not looked at
	bool json;
};

static bool is_wanted(const struct log_filter *f, const struct access_recent_entry *e)
{
	const struct lb_access_record *a = &e->record;
	struct str cluster = lb_access_get(a, LB_ACCESS_CLUSTER);
	struct str path = lb_access_get(a, LB_ACCESS_PATH);
	const char *cause = lb_cause_info((enum lb_cause)a->brief.cause)->name;
	return a->brief.status >= f->min_status && (!f->cause[0] || strcmp(f->cause, cause) == 0) &&
	       (!f->cluster[0] || str_eq(str_from(f->cluster), cluster)) &&
	       (!f->frontend[0] || strcmp(f->frontend, e->frontend->name) == 0) &&
	       str_starts(path, str_from(f->path));
}

// Without its newline; valid until the next call.
static struct str line_of(
	const struct show *s, const struct access_recent_entry *e, bool json, char *room)
{
	struct access_line line = {.p = room, .size = ACCESS_LINE_MAX};
	access_log_print(s->conf.access_log, e, json, &line);
	size_t len = line.len;
	while (len && room[len - 1] == '\n')
		len--;
	return (struct str){room, len};
}

static void add_line(
	const struct log_watch *w, const struct access_recent_entry *e, struct evbuffer *out)
{
	char room[ACCESS_LINE_MAX];
	json_t *rows = json_pack("[o]", render_str(line_of(w->show, e, w->json, room)));
	char *text = rows ? show_log_text(rows) : NULL;
	if (text)
		evbuffer_add_printf(out, "%s", text);
	free(text);
	json_decref(rows);
}

static bool more(struct stats_follow *f, struct evbuffer *out)
{
	struct log_watch *w = CONTAINER_OF(f, struct log_watch, follow);
	struct access_recent *recent = access_log_recent(w->show->conf.access_log);
	struct access_recent_entry e;
	uint64_t n_lost = 0, end = access_recent_count(recent); // what comes meanwhile is for later
	while (evbuffer_get_length(out) < STATS_FOLLOW_UNREAD && w->next < end &&
		access_recent_read(recent, &w->next, &e, &n_lost)) {
		if (n_lost)
			evbuffer_add_printf(out,
				w->json ? "{\"lost\":%" PRIu64 "}\n"
					: "# %" PRIu64 " records were lost\n",
				n_lost);
		n_lost = 0;
		if (is_wanted(&w->filter, &e))
			add_line(w, &e, out);
	}
	return true;
}

static void log_watch_free(struct stats_follow *f)
{
	free(CONTAINER_OF(f, struct log_watch, follow));
}

char *show_log_text(json_t *rows)
{
	struct printout p;
	FILE *f = printout_begin(&p);
	if (!f)
		return NULL;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		render_print(f, json_string_value(json_array_get(rows, i)));
		fputc('\n', f);
	}
	return printout_end(&p);
}

// The last n_rows of the wanted ones.
static json_t *last(struct log_watch *w, uint64_t n_rows)
{
	struct access_recent *recent = access_log_recent(w->show->conf.access_log);
	uint64_t n = access_recent_count(recent), n_lost = 0;
	char room[ACCESS_LINE_MAX];
	struct access_recent_entry e;
	json_t *rows = json_array();
	while (rows && w->next < n && access_recent_read(recent, &w->next, &e, &n_lost)) {
		if (!is_wanted(&w->filter, &e))
			continue;
		struct str line = line_of(w->show, &e, w->json, room);
		json_array_append_new(
			rows, w->json ? json_loadb(line.p, line.len, 0, NULL) : render_str(line));
		if (json_array_size(rows) > n_rows)
			json_array_remove(rows, 0);
	}
	return rows;
}

// False = args->err says what there is not.
static bool check(const struct show *s, const struct log_filter *f, struct show_args *args)
{
	const char *ok = lb_cause_info(LB_CAUSE_OK)->name;
	return (!f->cause[0] || show_is_cause(args, f->cause, ok)) &&
	       (!f->frontend[0] ||
		       config_find_frontend(s->conf.config, f->frontend, &args->err) >= 0);
}

static bool read_filter(struct show_args *args, const char *word, struct log_filter *f)
{
	const struct {
		const char *key;
		char *to;
	} keys[N_KEYS] = {{"cause=", f->cause}, {"cluster=", f->cluster},
		{"frontend=", f->frontend}, {"path=", f->path}, {"status=", NULL}};
	int i = 0;
	while (i < N_KEYS && strncmp(word, keys[i].key, strlen(keys[i].key)) != 0)
		i++;
	const char *value = i < N_KEYS ? word + strlen(keys[i].key) : "";
	if (i == N_KEYS)
		lb_err_set(&args->err, "unexpected argument '%s', try help", word);
	else if (!keys[i].to && !str_number(str_from(value), STATUS_MOST, &f->min_status))
		lb_err_set(&args->err, "status: '%s' is not a number up to %d", value, STATUS_MOST);
	else if (!*value)
		lb_err_set(&args->err, "nothing follows %s", word);
	else if (strlen(value) >= WORD_MAX)
		lb_err_set(&args->err, "%s'%.32s…' is longer than %d bytes", keys[i].key, value,
			WORD_MAX - 1);
	else if (keys[i].to)
		strcpy(keys[i].to, value);
	return !args->err.text[0];
}

// `[N] [-f] [cause=C] [cluster=C] [frontend=F] [path=PREFIX] [status=LEAST] [json]`.
json_t *show_log(const struct show *s, struct show_args *args)
{
	uint64_t n_rows = FALLBACK;
	bool follows = false;
	struct log_watch now = {.follow = {more, log_watch_free}, .show = s};
	if (!s->conf.access_log) {
		lb_err_set(&args->err, "there is no access_log in shunt.yaml");
		return NULL;
	}
	for (unsigned i = 0; i < args->n; i++) {
		const char *word = args->words[i];
		if (show_comes_twice(args, 0, 1, i))
			return NULL;
		if (strcmp(word, "json") == 0 && i == args->n - 1) {
			args->json = now.json = true;
		} else if (strcmp(word, "-f") == 0) {
			follows = true;
		} else if (!str_number(str_from(word), UINT32_MAX, &n_rows) &&
			   !read_filter(args, word, &now.filter)) {
			return NULL;
		}
	}
	if (!check(s, &now.filter, args))
		return NULL;
	json_t *rows = last(&now, n_rows);
	struct log_watch *w = rows && follows ? malloc(sizeof(*w)) : NULL;
	if (w) {
		*w = now;
		args->follow = &w->follow;
	} else if (follows) {
		json_decref(rows);
		return NULL;
	}
	return rows;
}
