// SPDX-License-Identifier: Apache-2.0
// show requests, show conns, show tcp: what is in flight now, the oldest first; and show neighbors
// and show addresses, which workers are asked for in the same way.
#include "ctrl/base/stats_proto.h"
#include "ctrl/stats/answer.h"
#include "ctrl/stats/inflight_args.h"
#include "ctrl/stats/inflight_ask.h"
#include "ctrl/stats/inflight_rows.h"
#include "ctrl/stats/row_query.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "ctrl/stats/stats_server.h"
#include "lb/base/container_of.h"
#include "lb/base/twheel.h"

#include <event2/buffer.h>

#include <stdlib.h>

// An answer that is yet to come.
struct inflight_answer {
	struct stats_follow follow;
	const struct show *show;
	struct inflight_ask *ask; // owned
	enum inflight_form form;
	struct row_query *query; // owned; NULL = no conditions but those that workers know
	bool json, human;
};

static json_t *build(const struct inflight_answer *a)
{
	struct inflight_sum sum;
	json_t *o = inflight_ask_sum(a->ask, &sum) ? json_object() : NULL;
	json_t *rows = o ? inflight_rows_build(a->show, a->form, &sum) : NULL;
	if (!rows) {
		json_decref(o);
		return NULL;
	}
	show_set_u64(o, inflight_rows_all_key(a->form), sum.n_all);
	show_set_u64(o, "matching", sum.n_matching);
	show_set_u64(o, "shown", json_array_size(rows));
	json_object_set_new(o, "silent_workers", inflight_ask_silent(a->ask));
	json_object_set_new(o, inflight_rows_key(a->form), rows);
	return o;
}

static int choose(const struct inflight_answer *a, json_t **tree, struct lb_err *err)
{
	const char *key = inflight_rows_key(a->form);
	// The list of silent workers is no table of rows.
	json_t *rows = json_incref(json_object_get(*tree, key));
	int ret = row_query_apply(a->query, &rows, err);
	if (ret == 0) {
		show_set_u64(*tree, "shown", json_array_size(rows));
		json_object_set(*tree, key, rows);
	}
	json_decref(rows);
	return ret;
}

// NULL = out of memory.
static char *text_of(const struct inflight_answer *a)
{
	struct lb_err err = {.text = ""};
	json_t *tree = build(a);
	int ret = tree && a->query ? choose(a, &tree, &err) : 0;
	char *text = tree && ret == 0 ? answer_tree(tree, a->json, a->human)
	             : err.text[0]    ? answer_error("%s", err.text)
	                              : NULL;
	json_decref(tree);
	return text;
}

static bool more(struct stats_follow *f, struct evbuffer *out)
{
	const struct inflight_answer *a = CONTAINER_OF(f, struct inflight_answer, follow);
	enum inflight_progress got = inflight_ask_poll(a->ask, twheel_now(a->show->conf.wheel));
	if (got == INFLIGHT_PENDING)
		return true;
	char *text = got == INFLIGHT_BUSY ? answer_error("others are asking, try again%s", "")
	                                  : text_of(a);
	evbuffer_add_printf(out, "%s", text ? text : STATS_ERROR "out of memory\n");
	free(text);
	return false;
}

static void answer_free(struct stats_follow *f)
{
	struct inflight_answer *a = CONTAINER_OF(f, struct inflight_answer, follow);
	inflight_ask_free(a->ask);
	row_query_free(a->query);
	free(a);
}

// NULL with args->follow: the answer is yet to come.
static json_t *ask(const struct show *s, struct show_args *args, enum inflight_form form)
{
	struct lb_inflight_query query;
	if (inflight_args_read(s, inflight_rows_kind(form), args, &query))
		return NULL;
	if (args->query) { // which chooses among as many as there may be
		row_query_bound(args->query, query.limit);
		query.limit = LB_INFLIGHT_ROWS;
	}
	struct inflight_answer *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	*a = (struct inflight_answer){.follow = {more, answer_free, true},
		.show = s,
		.ask = inflight_ask_new(s->inflight, &query, twheel_now(s->conf.wheel)),
		.form = form,
		.json = args->json,
		.human = args->human};
	if (!a->ask || (args->query && inflight_rows_check(s, form, args->query, &args->err))) {
		answer_free(&a->follow);
		return NULL;
	}
	a->query = args->query;
	args->query = NULL;
	args->follow = &a->follow;
	return NULL;
}

// `[cluster=C] [frontend=F] [source=ADDRESS[/BITS]] [state=S] [older=SECONDS] [limit=N] [json]`.
json_t *show_requests(const struct show *s, struct show_args *args)
{
	return ask(s, args, INFLIGHT_OF_REQUESTS);
}

// Likewise.
json_t *show_conns(const struct show *s, struct show_args *args)
{
	return ask(s, args, INFLIGHT_OF_CONNS);
}

// Likewise, but without a state of its own to ask for.
json_t *show_tcp(const struct show *s, struct show_args *args)
{
	return ask(s, args, INFLIGHT_OF_TCP);
}

// `[address=ADDRESS[/BITS]] [limit=N] [json]`.
json_t *show_neighbors(const struct show *s, struct show_args *args)
{
	return ask(s, args, INFLIGHT_OF_NEIGHBORS);
}

// Likewise.
json_t *show_addresses(const struct show *s, struct show_args *args)
{
	return ask(s, args, INFLIGHT_OF_ADDRESSES);
}
