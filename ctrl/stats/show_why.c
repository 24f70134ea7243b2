// SPDX-License-Identifier: Apache-2.0
// why: all that is known of one request that failed, by its x-request-id.
#include "ctrl/stats/failure_walk.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"

#include <stdlib.h>
#include <string.h>

#define MS_PER_US 1e-3

// Null = it has none.
static void set_status(json_t *o, const char *key, bool has, uint32_t status)
{
	json_object_set_new(o, key, has ? json_integer(status) : json_null());
}

static json_t *attempts_of(const struct lb_failure *f)
{
	json_t *rows = json_array();
	for (uint32_t i = 0; rows && i < f->n_kept; i++) {
		const struct lb_failure_attempt *a = &f->attempts[i];
		const char *cause = lb_cause_info((enum lb_cause)a->cause)->name;
		json_t *row = json_object();
		show_set_u64(row, "attempt", f->n_attempts - f->n_kept + i + 1);
		show_set_address(row, "endpoint", a->has_backend ? &a->backend : NULL);
		json_object_set_new(row, "after_ms", json_real(a->after_us * MS_PER_US));
		json_object_set_new(row, "took_ms", json_real(a->took_us * MS_PER_US));
		show_set_text(row, "result", a->cause == LB_CAUSE_OK ? FAILURE_ANSWERED : cause);
		set_status(
			row, "grpc_status", a->grpc_status != LB_FAILURE_NO_GRPC, a->grpc_status);
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *tell(const struct show *s, const struct lb_failure *f, uint32_t worker)
{
	const struct lb_cause_info *cause = lb_cause_info((enum lb_cause)f->cause);
	json_t *o = json_object();
	show_set_text(o, "id", f->id);
	json_object_set_new(o, "age_s", json_real(show_age_s(s, f->at_ns)));
	show_set_u64(o, "worker", worker);
	show_set_text(o, "frontend", failure_frontend(s->conf.config, f));
	show_set_text(o, "method", f->method);
	show_set_text(o, "authority", f->authority);
	show_set_text(o, "path", f->path);
	show_set_text(o, "virtual_host", f->vhost);
	show_set_text(o, "route", f->route);
	json_object_set_new(o, "route_index",
		f->route_index == UINT32_MAX ? json_null() : json_integer(f->route_index));
	show_set_text(o, "cluster", f->cluster);
	show_set_address(o, "endpoint", f->has_backend ? &f->backend : NULL);
	show_set_text(o, "cause", failure_cause(f));
	show_set_text(o, "flag", cause->flag);
	show_set_text(o, "text", f->text);
	bool is_answered = f->cause == LB_CAUSE_OK, is_grpc = f->grpc_status != LB_FAILURE_NO_GRPC;
	set_status(o, "http_status", is_answered && f->http_status, f->http_status);
	set_status(o, "grpc_status", is_answered && is_grpc, f->grpc_status);
	json_object_set_new(o, "took_ms",
		json_real((double)((f->at_ns - f->began_ns) / NS_PER_US) * MS_PER_US));
	show_set_u64(o, "n_attempts", f->n_attempts);
	json_object_set_new(o, "attempts", attempts_of(f));
	return o;
}

// Longer ids are kept cut.
static bool has_id(const struct lb_failure *f, const char *id)
{
	return f->id[0] && strncmp(f->id, id, LB_FAILURE_ID_MAX) == 0;
}

static json_t *find(const struct show *s, const char *id, struct failure_walk *walk)
{
	const struct lb_failure *f;
	uint32_t worker;
	json_t *told = NULL;
	uint64_t n_older = 0;
	while ((f = failure_walk_next(walk, &worker))) {
		if (!has_id(f, id))
			continue;
		if (told)
			n_older++;
		else
			told = tell(s, f, worker);
	}
	if (told)
		show_set_u64(told, "n_older", n_older);
	return told;
}

// `ID [json]`.
json_t *show_why(const struct show *s, struct show_args *args)
{
	if (args->n == 2 && strcmp(args->words[1], "json") == 0) {
		args->json = true;
		args->n--;
	}
	if (args->n != 1) {
		lb_err_set(&args->err, "expected one x-request-id, try help");
		return NULL;
	}
	struct failure_walk *walk = failure_walk_new(s->conf.workers, FAILURE_ALL);
	json_t *told = walk ? find(s, args->words[0], walk) : NULL;
	if (walk && !told)
		lb_err_set(&args->err,
			"no request '%s': each worker keeps the last %d that it answered or cut "
			"itself, and as many that backends answered with a status of failure",
			args->words[0], LB_FAILURES);
	failure_walk_free(walk);
	return told;
}
