// SPDX-License-Identifier: Apache-2.0
// `kill request` and `kill conn` (OPS-190 to OPS-193): what is in flight is listed as by `show
// requests` and `show conns`, and what the command chooses of it ends.
#include "ctrl/base/stats_proto.h"
#include "ctrl/stats/answer.h"
#include "ctrl/stats/inflight_args.h"
#include "ctrl/stats/inflight_ask.h"
#include "ctrl/stats/inflight_handle.h"
#include "ctrl/stats/inflight_rows.h"
#include "ctrl/stats/row_query.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "ctrl/stats/stats_server.h"
#include "lb/base/container_of.h"
#include "lb/base/log.h"
#include "lb/base/twheel.h"

#include <event2/buffer.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct kill {
	struct stats_follow follow;
	const struct show *show;
	struct inflight_ask *ask; // owned
	enum inflight_form form;
	struct row_query *query; // owned; NULL = no conditions but those that workers know
	bool json, has_id;
	bool ends; // all is chosen
	uint64_t n_matching;
	uint32_t n_chosen;
};

// Choosing.

static bool is_row(const struct kill *k, const struct inflight_told *told,
	const struct lb_inflight_handle *wanted)
{
	const struct lb_inflight_handle h = inflight_rows_handle(inflight_rows_kind(k->form), told);
	return h.began_ns == wanted->began_ns && h.slot == wanted->slot &&
	       h.worker == wanted->worker && h.is_backend == wanted->is_backend;
}

static void mark(struct kill *k, const struct inflight_sum *sum, const json_t *row)
{
	struct lb_inflight_handle h;
	const char *text = json_string_value(json_object_get(row, "handle"));
	if (!text || !inflight_handle_parse(inflight_rows_kind(k->form), text, &h))
		return; // no memory for it
	for (uint32_t i = 0; i < sum->n_rows; i++)
		if (is_row(k, &sum->rows[i], &h)) {
			inflight_ask_mark(k->ask, i);
			k->n_chosen++;
			return;
		}
}

// 0, -EINVAL with err, or -ENOMEM.
static int choose(struct kill *k, struct lb_err *err)
{
	struct inflight_sum sum;
	if (!inflight_ask_sum(k->ask, &sum))
		return -ENOMEM;
	json_t *rows = inflight_rows_build(k->show, k->form, &sum), *row;
	int ret = !rows ? -ENOMEM : k->query ? row_query_apply(k->query, &rows, err) : 0;
	size_t i;
	k->n_matching = sum.n_matching;
	if (ret == 0)
		json_array_foreach(rows, i, row) mark(k, &sum, row);
	json_decref(rows);
	return ret;
}

// The answer.

// What has a name must be there. NULL = it is, or a worker did not say.
static char *complaint(const struct kill *k)
{
	if (!k->has_id || k->n_matching)
		return NULL;
	json_t *silent = inflight_ask_silent(k->ask);
	bool is_sure = json_array_size(silent) == 0;
	json_decref(silent);
	return is_sure ? answer_error("nothing of that id is in flight, try show %s",
				 k->form == INFLIGHT_OF_REQUESTS ? "requests" : "conns")
	               : NULL;
}

static char *result(const struct kill *k)
{
	uint32_t n_ended = inflight_ask_n_ended(k->ask);
	log_info("operator's kill", "of=%s matching=%" PRIu64 " ended=%u",
		inflight_rows_key(k->form), k->n_matching, n_ended);
	char *wrong = complaint(k);
	if (wrong)
		return wrong;
	json_t *o = json_object();
	show_set_u64(o, "matching", k->n_matching);
	show_set_u64(o, "chosen", k->n_chosen);
	show_set_u64(o, "ended", n_ended);
	json_object_set_new(o, "silent_workers", inflight_ask_silent(k->ask));
	char *text = answer_tree(o, k->json, false);
	json_decref(o);
	return text;
}

static void tell(struct evbuffer *out, char *text)
{
	evbuffer_add_printf(out, "%s", text ? text : STATS_ERROR "out of memory\n");
	free(text);
}

static bool more(struct stats_follow *f, struct evbuffer *out)
{
	struct kill *k = CONTAINER_OF(f, struct kill, follow);
	uint64_t now_ns = twheel_now(k->show->conf.wheel);
	struct lb_err err = {.text = ""};
	enum inflight_progress got = inflight_ask_poll(k->ask, now_ns);
	if (got == INFLIGHT_PENDING)
		return true;
	if (got == INFLIGHT_BUSY) {
		tell(out, answer_error("others are asking, try again%s", ""));
		return false;
	}
	if (k->ends) {
		tell(out, result(k));
		return false;
	}
	if (choose(k, &err) != 0) {
		tell(out, err.text[0] ? answer_error("%s", err.text) : NULL);
		return false;
	}
	k->ends = true;
	inflight_ask_end(k->ask, now_ns);
	return true;
}

static void kill_free(struct stats_follow *f)
{
	struct kill *k = CONTAINER_OF(f, struct kill, follow);
	inflight_ask_free(k->ask);
	row_query_free(k->query);
	free(k);
}

// The command.

// `HANDLE`, or of a request what its x-request-id says. 0, or -EINVAL with args->err.
static int read_id(struct show_args *args, struct lb_inflight_query *query)
{
	const char *word = args->words[0];
	query->has_handle = inflight_handle_parse(query->kind, word, &query->handle);
	if (query->has_handle)
		return 0;
	if (query->kind != LB_INFLIGHT_REQUESTS)
		return lb_err_set(&args->err, "'%s' is no handle, try show conns", word);
	if (!*word || strlen(word) >= sizeof(query->id))
		return lb_err_set(&args->err, "an id has 1 to %zu bytes", sizeof(query->id) - 1);
	strcpy(query->id, word);
	return 0;
}

static bool is_id(const struct show_args *args)
{
	return args->n > 0 && !row_query_is_condition(args->words[0]);
}

static bool says_something(const struct show_args *args, const struct lb_inflight_query *q)
{
	return q->has_handle || q->id[0] || q->before_ns != UINT64_MAX || q->states != UINT32_MAX ||
	       q->frontend != LB_INFLIGHT_ANY || q->cluster != LB_INFLIGHT_ANY || q->has_source ||
	       q->by_endpoint || (args->query && row_query_has_conditions(args->query));
}

// 0, or -EINVAL with args->err.
static int read_words(const struct show *s, struct show_args *args, enum lb_inflight_kind kind,
	struct lb_inflight_query *ret)
{
	bool has_id = is_id(args);
	struct show_args rest = *args;
	rest.words += has_id;
	rest.n -= has_id;
	int ret_read = inflight_args_read(s, kind, &rest, ret);
	args->err = rest.err;
	if (ret_read || (has_id && read_id(args, ret)))
		return -EINVAL;
	if (!says_something(args, ret))
		return lb_err_set(&args->err, "an id or a condition must follow, not only a limit");
	if (!args->query)
		return 0;
	row_query_bound(args->query, ret->limit); // it chooses among as many as there may be
	ret->limit = LB_INFLIGHT_ROWS;
	return 0;
}

// NULL with args->follow: the answer is yet to come.
static json_t *begin(const struct show *s, struct show_args *args, enum inflight_form form)
{
	struct lb_inflight_query query;
	bool has_id = is_id(args);
	if (read_words(s, args, inflight_rows_kind(form), &query) ||
		(args->query && inflight_rows_check(s, form, args->query, &args->err)))
		return NULL;
	struct kill *k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	*k = (struct kill){.follow = {more, kill_free, true},
		.show = s,
		.ask = inflight_ask_new(s->inflight, &query, twheel_now(s->conf.wheel)),
		.form = form,
		.query = args->query,
		.json = args->json,
		.has_id = has_id};
	args->query = NULL;
	if (k->ask)
		args->follow = &k->follow;
	else
		kill_free(&k->follow);
	return NULL;
}

// `ID | CONDITION… [json]`.
json_t *show_kill_request(const struct show *s, struct show_args *args)
{
	return begin(s, args, INFLIGHT_OF_REQUESTS);
}

// Likewise.
json_t *show_kill_conn(const struct show *s, struct show_args *args)
{
	return begin(s, args, INFLIGHT_OF_CONNS);
}
