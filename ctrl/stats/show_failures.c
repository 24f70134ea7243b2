// SPDX-License-Identifier: Apache-2.0
// show failures: the last requests that failed, whoever answered them, the newest first.
#include "ctrl/conf/config.h"
#include "ctrl/stats/failure_walk.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "lb/base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FALLBACK 100 // rows, where the command says no number

// Of a backend's answer its statuses, and what it says.
static void set_text(json_t *row, const struct lb_failure *f)
{
	char text[sizeof(f->text) + 48] = "";
	size_t len = 0, size = sizeof(text);
	bool is_grpc = f->grpc_status != LB_FAILURE_NO_GRPC;
	if (f->cause == LB_CAUSE_OK && (!is_grpc || (f->http_status && f->http_status != 200)))
		len += (size_t)snprintf(text, size, "HTTP status %u", f->http_status);
	if (f->cause == LB_CAUSE_OK && is_grpc)
		len += (size_t)snprintf(text + len, size - len, "%sgRPC status %u", len ? ", " : "",
			f->grpc_status);
	snprintf(text + len, size - len, "%s%s", len && f->text[0] ? ": " : "", f->text);
	show_set_text(row, "text", text);
}

static json_t *row_of(const struct show *s, uint32_t worker, const struct lb_failure *f)
{
	json_t *row = json_object();
	json_object_set_new(row, "age_s", json_real(show_age_s(s, f->at_ns)));
	show_set_u64(row, "worker", worker);
	show_set_text(row, "frontend", failure_frontend(s->conf.config, f));
	show_set_text(row, "cause", failure_cause(f));
	show_set_text(row, "cluster", f->cluster);
	show_set_address(row, "endpoint", f->has_backend ? &f->backend : NULL);
	show_set_text(row, "id", f->id);
	set_text(row, f);
	return row;
}

// What rows have to be, and what not; NULL = anything.
struct wanted {
	const char *cause, *not_cause, *cluster, *frontend;
	uint64_t n_rows;
};

static bool is_wanted(const struct show *s, const struct wanted *w, const struct lb_failure *f)
{
	return (!w->cause || strcmp(w->cause, failure_cause(f)) == 0) &&
	       (!w->not_cause || strcmp(w->not_cause, failure_cause(f)) != 0) &&
	       (!w->cluster || strcmp(w->cluster, f->cluster) == 0) &&
	       (!w->frontend || strcmp(w->frontend, failure_frontend(s->conf.config, f)) == 0);
}

// False = args->err says what there is not.
static bool check(const struct show *s, const struct wanted *w, struct show_args *args)
{
	const char *causes[] = {w->cause, w->not_cause};
	for (int i = 0; i < 2; i++)
		if (causes[i] && !show_is_cause(args, causes[i], FAILURE_ANSWERED))
			return false;
	return !w->frontend || config_find_frontend(s->conf.config, w->frontend, &args->err) >= 0;
}

// Whom to ask at all: either may have many that the other's are behind.
static enum failure_whose whose(const struct wanted *w)
{
	if (w->cause)
		return strcmp(w->cause, FAILURE_ANSWERED) == 0 ? FAILURE_BACKENDS : FAILURE_OURS;
	bool not_theirs = w->not_cause && strcmp(w->not_cause, FAILURE_ANSWERED) == 0;
	return not_theirs ? FAILURE_OURS : FAILURE_ALL;
}

// False = it is none of these.
static bool read_word(const char *word, struct wanted *ret)
{
	const struct {
		const char *key;
		const char **to;
	} keys[] = {{"cause=", &ret->cause}, {"cause!=", &ret->not_cause},
		{"cluster=", &ret->cluster}, {"frontend=", &ret->frontend}};
	const unsigned n_keys = sizeof(keys) / sizeof(keys[0]);
	unsigned i = 0;
	while (i < n_keys && strncmp(word, keys[i].key, strlen(keys[i].key)) != 0)
		i++;
	if (i == n_keys)
		return str_number(str_from(word), UINT32_MAX, &ret->n_rows);
	*keys[i].to = word + strlen(keys[i].key);
	return true;
}

static void take_json(struct show_args *args)
{
	if (args->n && strcmp(args->words[args->n - 1], "json") == 0) {
		args->json = true;
		args->n--;
	}
}

// `[N] [cause=C] [cause!=C] [cluster=C] [frontend=F] [json]`, each at most once.
json_t *show_failures(const struct show *s, struct show_args *args)
{
	struct wanted wanted = {.n_rows = FALLBACK};
	take_json(args);
	for (unsigned i = 0; i < args->n; i++) {
		if (show_comes_twice(args, 0, 1, i))
			return NULL;
		if (!read_word(args->words[i], &wanted)) {
			lb_err_set(
				&args->err, "unexpected argument '%s', try help", args->words[i]);
			return NULL;
		}
	}
	if (!check(s, &wanted, args))
		return NULL;
	struct failure_walk *walk = failure_walk_new(s->conf.workers, whose(&wanted));
	json_t *rows = walk ? json_array() : NULL;
	const struct lb_failure *f;
	uint32_t worker;
	while (rows && json_array_size(rows) < wanted.n_rows &&
		(f = failure_walk_next(walk, &worker)))
		if (is_wanted(s, &wanted, f))
			json_array_append_new(rows, row_of(s, worker, f));
	failure_walk_free(walk);
	return rows;
}
