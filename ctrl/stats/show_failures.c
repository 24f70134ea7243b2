// SPDX-License-Identifier: Apache-2.0
// show failures: the last requests that workers answered or cut themselves, the newest first.
#include "ctrl/conf/config.h"
#include "ctrl/stats/failure_walk.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "lb/base/str.h"
#include "lb/base/twheel.h"

#include <stdlib.h>
#include <string.h>

#define FALLBACK 100 // rows, where the command says no number

static double age_s(const struct show *s, const struct lb_failure *f)
{
	uint64_t now_ns = twheel_now(s->conf.wheel);
	// Its clock may be a tick ahead.
	return now_ns > f->at_ns ? show_seconds(now_ns - f->at_ns) : 0;
}

static const char *frontend_of(const struct show *s, const struct lb_failure *f)
{
	return s->conf.config->frontends[f->frontend].name;
}

static json_t *row_of(const struct show *s, uint32_t worker, const struct lb_failure *f)
{
	json_t *row = json_object();
	json_object_set_new(row, "age_s", json_real(age_s(s, f)));
	show_set_u64(row, "worker", worker);
	show_set_text(row, "frontend", frontend_of(s, f));
	show_set_text(row, "cause", lb_cause_info((enum lb_cause)f->cause)->name);
	show_set_text(row, "cluster", f->cluster);
	show_set_address(row, "endpoint", f->has_backend ? &f->backend : NULL);
	show_set_text(row, "id", f->id);
	show_set_text(row, "text", f->text);
	return row;
}

// What rows have to be; NULL = anything.
struct wanted {
	const char *cause, *cluster, *frontend;
	uint64_t n_rows;
};

static bool is_wanted(const struct show *s, const struct wanted *w, const struct lb_failure *f)
{
	return (!w->cause || strcmp(w->cause, lb_cause_info((enum lb_cause)f->cause)->name) == 0) &&
	       (!w->cluster || strcmp(w->cluster, f->cluster) == 0) &&
	       (!w->frontend || strcmp(w->frontend, frontend_of(s, f)) == 0);
}

static bool is_cause(const char *name)
{
	for (int i = 0; i < LB_N_CAUSES; i++)
		if (strcmp(lb_cause_info((enum lb_cause)i)->name, name) == 0)
			return true;
	return false;
}

// False = it is none of these.
static bool read_word(const char *word, struct wanted *ret)
{
	const struct {
		const char *key;
		const char **to;
	} keys[] = {{"cause=", &ret->cause}, {"cluster=", &ret->cluster},
		{"frontend=", &ret->frontend}};
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

// `[N] [cause=C] [cluster=C] [frontend=F] [json]`, each at most once.
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
	if (wanted.cause && !is_cause(wanted.cause)) {
		lb_err_set(&args->err, "'%s' is not the name of a cause", wanted.cause);
		return NULL;
	}
	struct failure_walk *walk = failure_walk_new(s->conf.workers);
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
