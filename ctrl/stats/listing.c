// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/listing.h"

#include "ctrl/base/printout.h"
#include "ctrl/base/stats_proto.h"
#include "ctrl/stats/answer.h"
#include "ctrl/stats/render_table.h"
#include "ctrl/stats/row_order.h"
#include "ctrl/stats/row_query.h"
#include "ctrl/stats/stats_server.h"
#include "lb/base/container_of.h"

#include <event2/buffer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct listing {
	struct stats_follow follow;
	struct listing_source *source; // owned
	struct row_query *query; // owned; NULL = all rows
	struct row_order order; // of texts: a row's JSON, or its cells
	struct render_table table;
	struct slice slice;
	bool (*step)(struct listing *, FILE *out); // false = the answer is whole
	size_t at; // of order.rows: the next one to print
	bool json, failed;
};

static void listing_free(struct listing *l)
{
	l->source->free(l->source);
	row_order_fini(&l->order);
	row_query_free(l->query);
	render_table_fini(&l->table);
	free(l);
}

void listing_add(struct listing *l, json_t *row)
{
	if (row && row_query_matches(l->query, row) && row_order_wants(&l->order, row)) {
		char *text =
			l->json ? json_dumps(row, JSON_COMPACT) : render_table_take(&l->table, row);
		l->failed |= !text || row_order_add(&l->order, row, text) != 0;
	}
	l->failed |= !row;
	json_decref(row);
}

// The steps, one after the other.

static bool print(struct listing *l, FILE *out)
{
	if (l->at == l->order.n) {
		fputs(l->json ? "]}\n" : "", out);
		return false;
	}
	char *text = row_order_take(&l->order, l->at);
	if (l->json)
		fprintf(out, "%s%s", l->at ? "," : "", text);
	else
		render_table_print(&l->table, out, "", text);
	free(text);
	l->at++;
	return true;
}

static bool sort(struct listing *l, FILE *out)
{
	if (!row_order_step(&l->order))
		return true;
	if (l->json)
		fprintf(out, "{\"schema_version\":%d,\"data\":[", STATS_SCHEMA_VERSION);
	else if (l->order.n)
		render_table_print_names(&l->table, out, "");
	else
		fputs("none\n", out);
	l->step = print;
	return true;
}

static bool refuse(FILE *out, const char *why)
{
	char *text = answer_error("%s", why);
	fputs(text ? text : STATS_ERROR "out of memory\n", out);
	free(text);
	return false;
}

static bool gather(struct listing *l, FILE *out)
{
	struct lb_err err = {.text = ""};
	if (l->source->step(l->source, l))
		return true;
	if (l->failed)
		return refuse(out, "out of memory");
	if (l->query && row_query_check(l->query, &err))
		return refuse(out, err.text);
	l->step = sort;
	return true;
}

// A slice. True = there is more to do; *ret_text: from malloc, NULL = out of memory.
static bool run(struct listing *l, char **ret_text)
{
	bool more;
	struct printout p;
	*ret_text = NULL;
	FILE *out = printout_begin(&p);
	if (!out)
		return true;
	slice_begin(&l->slice);
	do
		more = l->step(l, out);
	while (more && !slice_over(&l->slice) && ftell(out) < (long)STATS_FOLLOW_UNREAD);
	*ret_text = printout_end(&p);
	return more;
}

static bool more(struct stats_follow *f, struct evbuffer *out)
{
	struct listing *l = CONTAINER_OF(f, struct listing, follow);
	char *text;
	bool is_more = run(l, &text);
	answer_append(out, text);
	return is_more;
}

static void follow_free(struct stats_follow *f)
{
	listing_free(CONTAINER_OF(f, struct listing, follow));
}

char *listing_answer(const struct show *s, struct show_args *args, struct listing_source *source)
{
	struct listing *l = calloc(1, sizeof(*l));
	if (!l) {
		source->free(source);
		return NULL;
	}
	*l = (struct listing){.follow = {more, follow_free, true},
		.source = source,
		.query = args->query,
		.slice = s->conf.slice,
		.step = gather,
		.json = args->json};
	args->query = NULL;
	render_table_init(&l->table, args->human);
	row_order_init(&l->order, l->query ? row_query_sort(l->query) : NULL,
		l->query && row_query_descends(l->query), l->query ? row_query_limit(l->query) : 0,
		free);
	char *text;
	if (run(l, &text) && text)
		args->follow = &l->follow;
	else
		listing_free(l);
	return text;
}
