// SPDX-License-Identifier: Apache-2.0
// show requests, show conns: what is in flight now, the oldest first.
#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/base/stats_proto.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/answer.h"
#include "ctrl/stats/endpoint_clusters.h"
#include "ctrl/stats/inflight_args.h"
#include "ctrl/stats/inflight_ask.h"
#include "ctrl/stats/row_query.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "ctrl/stats/stats_server.h"
#include "lb/base/container_of.h"
#include "lb/base/twheel.h"
#include "tlshs/secrets.h"

#include <event2/buffer.h>

#include <stdlib.h>

#define NS_PER_MS_F 1e6

// An answer that is yet to come.
struct inflight_answer {
	struct stats_follow follow;
	const struct show *show;
	struct inflight_ask *ask; // owned
	enum lb_inflight_kind kind;
	struct row_query *query; // owned; NULL = no conditions but those that workers know
	bool json, human;
};

// Rows.

static json_t *begin_row(
	const struct inflight_answer *a, const struct lb_inflight_row *from, uint64_t now_ns)
{
	json_t *row = json_object();
	uint64_t age_ns = now_ns > from->began_ns ? now_ns - from->began_ns : 0;
	json_object_set_new(row, "age_s", json_real(show_seconds(age_ns)));
	show_set_text(row, "state", lb_inflight_state_name(a->kind, from->state));
	return row;
}

static const char *frontend_of(const struct inflight_answer *a, const struct lb_inflight_row *row)
{
	return a->show->conf.config->frontends[row->frontend].name;
}

static json_t *request_row(
	const struct inflight_answer *a, const struct inflight_told *told, uint64_t now_ns)
{
	const struct lb_inflight_row *from = told->row;
	const struct lb_inflight_request *r = &from->request;
	json_t *row = begin_row(a, from, now_ns);
	show_set_text(row, "frontend", frontend_of(a, from));
	show_set_address(row, "client", &from->peer);
	show_set_text(row, "method", r->method);
	show_set_text(row, "authority", r->authority);
	show_set_text(row, "path", r->path);
	show_set_text(row, "virtual_host", r->vhost);
	show_set_text(row, "route", r->route);
	json_object_set_new(row, "route_index",
		r->route_index == UINT32_MAX ? json_null() : json_integer(r->route_index));
	show_set_text(row, "cluster", r->cluster);
	show_set_address(row, "endpoint", r->has_endpoint ? &r->endpoint : NULL);
	show_set_u64(row, "attempts", r->n_attempts);
	show_set_u64(row, "bytes_in", from->bytes_in);
	show_set_u64(row, "bytes_out", from->bytes_out);
	show_set_text(row, "id", r->id);
	show_set_u64(row, "worker", told->worker);
	return row;
}

static const char *tls_of(const struct lb_inflight_conn *c)
{
	return c->tls == TLS_1_3 ? "1.3" : c->tls == TLS_1_2 ? "1.2" : "";
}

static const char *http_of(const struct lb_inflight_conn *c)
{
	return c->http == 20 ? "2" : c->http == 11 ? "1.1" : c->http == 10 ? "1.0" : "";
}

static json_t *conn_row(
	const struct inflight_answer *a, const struct inflight_told *told, uint64_t now_ns)
{
	const struct lb_inflight_row *from = told->row;
	const struct lb_inflight_conn *c = &from->conn;
	bool is_client = c->endpoint == LB_INFLIGHT_ANY;
	json_t *row = begin_row(a, from, now_ns);
	show_set_text(row, "side", is_client ? "client" : "backend");
	show_set_address(row, "peer", &from->peer);
	show_set_address(row, "local", &c->local);
	show_set_text(row, "frontend", is_client ? frontend_of(a, from) : "");
	show_set_text(row, "cluster", "");
	show_set_text(row, "http", http_of(c));
	show_set_text(row, "tls", tls_of(c));
	show_set_u64(row, "streams", c->n_streams);
	show_set_u64(row, "bytes_in", from->bytes_in);
	show_set_u64(row, "bytes_out", from->bytes_out);
	show_set_u64(row, "waiting", c->waiting);
	json_object_set_new(row, "rtt_ms",
		c->rtt_ns ? json_real((double)c->rtt_ns / NS_PER_MS_F) : json_null());
	show_set_u64(row, "cwnd", c->cwnd);
	show_set_u64(row, "retransmits", c->n_resent);
	show_set_u64(row, "worker", told->worker);
	return row;
}

static void name_endpoint(void *ctx, const char *cluster, uint32_t id)
{
	endpoint_clusters_add(ctx, cluster, id);
}

static void set_clusters(json_t *row, const struct endpoint_clusters *of, uint32_t id)
{
	char *text = endpoint_clusters_text(of, id);
	show_set_text(row, "cluster", text ? text : "");
	free(text);
}

static void name_clusters(const struct show *s, const struct inflight_sum *sum, json_t *rows)
{
	struct endpoint_clusters *of = endpoint_clusters_new(sum->n_rows);
	bool any = false;
	for (uint32_t i = 0; of && i < sum->n_rows; i++) {
		uint32_t id = sum->rows[i].row->conn.endpoint;
		if (id == LB_INFLIGHT_ANY)
			continue;
		endpoint_clusters_want(of, id);
		any = true;
	}
	if (any)
		assembler_each_endpoint_id(s->conf.assembler, NULL, name_endpoint, of);
	for (uint32_t i = 0; any && i < sum->n_rows; i++)
		set_clusters(json_array_get(rows, i), of, sum->rows[i].row->conn.endpoint);
	endpoint_clusters_free(of);
}

static json_t *silent_workers(const struct inflight_answer *a)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < workers_count(a->show->conf.workers); i++)
		if (inflight_ask_is_silent(a->ask, i))
			json_array_append_new(list, json_integer(i));
	return list;
}

static json_t *build(const struct inflight_answer *a)
{
	uint64_t now_ns = twheel_now(a->show->conf.wheel);
	bool is_requests = a->kind == LB_INFLIGHT_REQUESTS;
	struct inflight_sum sum;
	json_t *o = inflight_ask_sum(a->ask, &sum) ? json_object() : NULL;
	json_t *rows = o ? json_array() : NULL;
	if (!rows) {
		json_decref(o);
		return NULL;
	}
	for (uint32_t i = 0; i < sum.n_rows; i++)
		json_array_append_new(rows, is_requests ? request_row(a, &sum.rows[i], now_ns)
							: conn_row(a, &sum.rows[i], now_ns));
	if (!is_requests)
		name_clusters(a->show, &sum, rows);
	show_set_u64(o, "in_flight", sum.n_all);
	show_set_u64(o, "matching", sum.n_matching);
	show_set_u64(o, "shown", sum.n_rows);
	json_object_set_new(o, "silent_workers", silent_workers(a));
	json_object_set_new(o, is_requests ? "requests" : "connections", rows);
	return o;
}

// The answer.

static int choose(const struct inflight_answer *a, json_t **tree, struct lb_err *err)
{
	const char *key = a->kind == LB_INFLIGHT_REQUESTS ? "requests" : "connections";
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

// Before anybody is asked: all rows have the columns of any. 0, or -EINVAL with err.
static int check_columns(
	const struct inflight_answer *a, struct row_query *query, struct lb_err *err)
{
	static const struct lb_inflight_row any;
	const struct inflight_told told = {.row = &any};
	json_t *row =
		a->kind == LB_INFLIGHT_REQUESTS ? request_row(a, &told, 0) : conn_row(a, &told, 0);
	row_query_matches(query, row);
	json_decref(row);
	return row_query_check(query, err);
}

// NULL with args->follow: the answer is yet to come.
static json_t *ask(const struct show *s, struct show_args *args, enum lb_inflight_kind kind)
{
	struct lb_inflight_query query;
	if (inflight_args_read(s, kind, args, &query))
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
		.kind = kind,
		.json = args->json,
		.human = args->human};
	if (!a->ask || (args->query && check_columns(a, args->query, &args->err))) {
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
	return ask(s, args, LB_INFLIGHT_REQUESTS);
}

// Likewise.
json_t *show_conns(const struct show *s, struct show_args *args)
{
	return ask(s, args, LB_INFLIGHT_CONNS);
}
