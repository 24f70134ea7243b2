// SPDX-License-Identifier: Apache-2.0
#include "ctrl/page/page.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/metrics/connections.h"
#include "ctrl/metrics/scrape.h"
#include "ctrl/page/shell.h"
#include "ctrl/page/view.h"
#include "ctrl/stats/show.h"
#include "lb/base/time.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRESH_NS NS_PER_SECOND // a text as young as that is told again
#define STALLED_S 30 // without a byte taken

// A page under way, or one who follows.
struct reader {
	struct reader *next;
	struct page *page;
	struct view *view;
	struct evhttp_request *request;
	struct connections *connections; // NULL = it waits for the page
	bool is_written; // an event that is not taken yet
};

struct page {
	struct page_conf conf;
	struct reader *readers; // owned
	struct view *views[PAGE_MAX_VIEWS]; // owned; without gaps
	uint32_t n_views, n_followers;
	bool has_left;
};

static bool is_followed(const struct page *p, const struct view *v)
{
	for (const struct reader *r = p->readers; r; r = r->next)
		if (r->view == v && r->connections)
			return true;
	return false;
}

static bool is_read(const struct page *p, const struct view *v)
{
	const struct reader *r = p->readers;
	while (r && r->view != v)
		r = r->next;
	return r;
}

static void reader_free(struct reader *r)
{
	struct page *p = r->page;
	struct reader **at = &p->readers;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	p->n_followers -= r->connections != NULL;
	view_follow(r->view, is_followed(p, r->view));
	free(r);
}

// A request whose connection ends before its answer does is cut loose, and then ours to free.
static void on_closed(struct evhttp_connection *c, void *arg)
{
	struct reader *r = arg;
	struct evhttp_request *request = r->request;
	reader_free(r);
	if (!evhttp_request_get_connection(request))
		evhttp_request_free(request);
}

// Answers.

static void add_headers(struct evhttp_request *request, const char *type)
{
	static const char *const headers[][2] = {{"Cache-Control", "no-store"},
		{"X-Content-Type-Options", "nosniff"}, {"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Cross-Origin-Opener-Policy", "same-origin"}};
	struct evkeyvalq *to = evhttp_request_get_output_headers(request);
	evhttp_add_header(to, "Content-Type", type);
	evhttp_add_header(to, "Content-Security-Policy", page_policy);
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		evhttp_add_header(to, headers[i][0], headers[i][1]);
}

static bool is_head(struct evhttp_request *request)
{
	return evhttp_request_get_command(request) == EVHTTP_REQ_HEAD;
}

static void refuse(struct evhttp_request *request, int status, const char *why)
{
	struct evbuffer *body = evbuffer_new();
	add_headers(request, "text/plain; charset=utf-8");
	if (body && !is_head(request))
		evbuffer_add_printf(body, "%s\n", why);
	evhttp_send_reply(request, status, why, body);
	if (body)
		evbuffer_free(body);
}

// evhttp would send it.
static void leave_out(struct evhttp_request *request, struct evbuffer *body)
{
	char len[24];
	snprintf(len, sizeof(len), "%zu", evbuffer_get_length(body));
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Length", len);
	evbuffer_drain(body, evbuffer_get_length(body));
}

static void send_page(struct evhttp_request *request, const struct view *v)
{
	size_t len;
	const char *text = view_text(v, &len);
	struct evbuffer *body = evbuffer_new();
	if (!body ||
		evbuffer_add_printf(
			body, "%s%s%s", page_before_title, view_title(v), page_before_main) < 0 ||
		evbuffer_add(body, text, len) ||
		evbuffer_add(body, page_after_main, strlen(page_after_main))) {
		refuse(request, HTTP_SERVUNAVAIL, "out of memory");
	} else {
		add_headers(request, "text/html; charset=utf-8");
		if (is_head(request))
			leave_out(request, body);
		evhttp_send_reply(request, HTTP_OK, "OK", body);
	}
	if (body)
		evbuffer_free(body);
}

static void on_written(struct evhttp_connection *c, void *arg)
{
	struct reader *r = arg;
	r->is_written = false;
	connections_answering(r->connections, r->request);
}

// One that has not taken the event before gets none: it will have the next one, which is newer.
static void send_event(struct reader *r)
{
	size_t len;
	const char *text = view_text(r->view, &len);
	struct evbuffer *out = r->is_written ? NULL : evbuffer_new();
	if (!out)
		return;
	if (evbuffer_add(out, "data: ", 6) == 0 && evbuffer_add(out, text, len) == 0 &&
		evbuffer_add(out, "\n\n", 2) == 0) {
		r->is_written = true;
		evhttp_send_reply_chunk_with_cb(r->request, out, on_written, r);
	}
	evbuffer_free(out);
}

static void finish_page(struct reader *r)
{
	struct evhttp_request *request = r->request;
	const struct view *v = r->view;
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
	reader_free(r);
	if (view_age_ns(v) < VIEW_ROUND_NS)
		send_page(request, v);
	else
		refuse(request, HTTP_SERVUNAVAIL, "out of memory");
}

static void on_looked(void *ctx, struct view *v, bool is_new)
{
	struct page *p = ctx;
	for (struct reader *r = p->readers, *next; r; r = next) {
		next = r->next;
		if (r->view != v)
			continue;
		if (!r->connections)
			finish_page(r);
		else if (is_new)
			send_event(r);
	}
}

// Views.

static void forget(struct page *p, uint32_t i)
{
	view_free(p->views[i]);
	p->views[i] = p->views[--p->n_views];
}

static void on_left(void *ctx, struct view *v)
{
	struct page *p = ctx;
	for (uint32_t i = 0; i < p->n_views; i++)
		if (p->views[i] == v && !is_read(p, v)) {
			forget(p, i);
			return;
		}
}

// Makes room for one more by forgetting the one that nobody reads for longest.
static bool has_room(struct page *p)
{
	uint32_t oldest = p->n_views;
	if (p->n_views < PAGE_MAX_VIEWS)
		return true;
	for (uint32_t i = 0; i < p->n_views; i++)
		if (!is_read(p, p->views[i]) &&
			(oldest == p->n_views ||
				view_age_ns(p->views[i]) > view_age_ns(p->views[oldest])))
			oldest = i;
	if (oldest == p->n_views)
		return false;
	forget(p, oldest);
	return true;
}

// NULL = there are too many, or no memory.
static struct view *find_view(struct page *p, const char *cluster)
{
	for (uint32_t i = 0; i < p->n_views; i++)
		if (view_is_of(p->views[i], cluster))
			return p->views[i];
	const struct view_conf conf = {.base = p->conf.base,
		.wheel = p->conf.wheel,
		.show = p->conf.show,
		.slice = p->conf.slice,
		.looked = on_looked,
		.left = on_left,
		.ctx = p};
	struct view *v = has_room(p) ? view_new(&conf, cluster) : NULL;
	if (v)
		p->views[p->n_views++] = v;
	return v;
}

// Requests.

// The cluster of the query, borrowed from it; NULL = all. What is wrong, else NULL.
static const char *read_query(
	const struct page *p, const struct evkeyvalq *query, const char **ret, int *ret_status)
{
	struct assembler_cluster_info info;
	const struct evkeyval *kv = query->tqh_first;
	*ret = NULL;
	*ret_status = HTTP_BADREQUEST;
	if (!kv)
		return NULL;
	if (strcmp(kv->key, "cluster") != 0 || kv->next.tqe_next)
		return "known is cluster=NAME";
	*ret = kv->value;
	*ret_status = HTTP_NOTFOUND;
	const struct assembler *a = show_scrape_conf(p->conf.show)->assembler;
	return assembler_find_without_endpoints(a, kv->value, &info) ? NULL : "no such cluster";
}

static struct reader *reader_new(
	struct page *p, struct view *v, struct evhttp_request *request, struct connections *c)
{
	struct reader *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	*r = (struct reader){p->readers, p, v, request, c, false};
	p->readers = r;
	p->n_followers += c != NULL;
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_closed, r);
	return r;
}

static void begin_page(struct page *p, struct view *v, struct evhttp_request *request)
{
	if (view_age_ns(v) < FRESH_NS)
		send_page(request, v);
	else if (reader_new(p, v, request, NULL))
		view_look(v);
	else
		refuse(request, HTTP_SERVUNAVAIL, "out of memory");
}

// It sends nothing more, and takes what it is sent, or goes.
static void begin_events(
	struct page *p, struct view *v, struct evhttp_request *request, struct connections *c)
{
	static const struct timeval stalled = {.tv_sec = STALLED_S};
	struct reader *r = reader_new(p, v, request, c);
	if (!r) {
		refuse(request, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	bufferevent_set_timeouts(
		evhttp_connection_get_bufferevent(evhttp_request_get_connection(request)), NULL,
		&stalled);
	add_headers(request, "text/event-stream");
	evhttp_send_reply_start(request, HTTP_OK, "OK");
	view_follow(v, true);
	if (view_age_ns(v) < VIEW_ROUND_NS)
		send_event(r);
	else
		view_look(v);
}

// NULL = it is refused.
static struct view *view_for(struct page *p, struct evhttp_request *request)
{
	const char *text = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));
	struct evkeyvalq query = {0};
	const char *cluster = NULL, *wrong = "malformed query";
	int status = HTTP_BADREQUEST;
	struct view *v = NULL;
	if (evhttp_parse_query_str(text ? text : "", &query) == 0)
		wrong = read_query(p, &query, &cluster, &status);
	if (wrong)
		refuse(request, status, wrong);
	else if (!(v = find_view(p, cluster)))
		refuse(request, HTTP_SERVUNAVAIL, "too many clusters are looked at");
	evhttp_clear_headers(&query);
	return v;
}

void page_answer(struct page *p, struct evhttp_request *request)
{
	struct view *v = view_for(p, request);
	if (v)
		begin_page(p, v, request);
}

// Of another site's pages none may take the places of those who look.
static bool is_of_another_site(struct evhttp_request *request)
{
	const char *site =
		evhttp_find_header(evhttp_request_get_input_headers(request), "Sec-Fetch-Site");
	return site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
}

void page_follow(struct page *p, struct evhttp_request *request, struct connections *c)
{
	struct view *v;
	if (is_of_another_site(request)) {
		refuse(request, 403, "events are for the page itself");
	} else if (is_head(request) || p->has_left) { // an end has the browser ask again
		add_headers(request, "text/event-stream");
		evhttp_send_reply(request, HTTP_OK, "OK", NULL);
	} else if (p->n_followers == PAGE_MAX_FOLLOWERS) {
		evhttp_add_header(evhttp_request_get_output_headers(request), "Retry-After", "5");
		refuse(request, HTTP_SERVUNAVAIL, "as many as may follow do so");
	} else if ((v = view_for(p, request))) {
		begin_events(p, v, request, c);
	}
}

static void end_events(struct reader *r)
{
	struct evhttp_request *request = r->request;
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
	reader_free(r);
	evhttp_send_reply_end(request);
}

void page_leave(struct page *p)
{
	p->has_left = true;
	for (struct reader *r = p->readers, *next; r; r = next) {
		next = r->next;
		if (r->connections)
			end_events(r);
	}
}

struct page *page_new(const struct page_conf *conf)
{
	struct page *p = calloc(1, sizeof(*p));
	if (p)
		p->conf = *conf;
	return p;
}

void page_free(struct page *p)
{
	if (!p)
		return;
	while (p->n_views)
		forget(p, p->n_views - 1);
	free(p);
}
