// SPDX-License-Identifier: Apache-2.0
#include "ctrl/metrics/metrics_server.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/metrics/connections.h"
#include "ctrl/metrics/metric_text.h"
#include "ctrl/metrics/scrape.h"
#include "lb/base/ip.h"
#include "lb/base/str.h"
#include "lb/base/time.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define TIMEOUT_S 30 // without a byte moved
#define REQUEST_NS (10 * NS_PER_SECOND)
#define ANSWER_NS (60 * NS_PER_SECOND)
#define MAX_HEADERS_LEN 8192
#define MAX_BODY_LEN 8192 // of a request that is refused; with more it is by 413
#define MISDIRECTED 421 // RFC 9110 15.5.20
#define CHUNK_LEN ((size_t)256 << 10)

// An answer under way.
struct answer {
	struct answer *next;
	struct metrics_server *server;
	struct evhttp_request *request;
	struct scrape *scrape;
	struct metric_text text;
	struct evbuffer *out; // owned
	struct event *again; // owned: fires when the next slice is due
};

struct metrics_server {
	struct metrics_server_conf conf;
	struct evhttp *http;
	struct connections *connections;
	struct answer *answers;
	uint32_t n_answers;
};

static void answer_free(struct answer *a)
{
	struct answer **at = &a->server->answers;
	while (*at && *at != a)
		at = &(*at)->next;
	if (*at) {
		*at = a->next;
		a->server->n_answers--;
	}
	scrape_free(a->scrape);
	if (a->out)
		evbuffer_free(a->out);
	if (a->again)
		event_free(a->again);
	free(a);
}

// A request whose connection ends while its answer is made is cut loose, and then ours to free.
static void on_closed(struct evhttp_connection *c, void *arg)
{
	struct evhttp_request *request = ((struct answer *)arg)->request;
	answer_free(arg);
	if (!evhttp_request_get_connection(request))
		evhttp_request_free(request);
}

static void on_written(struct evhttp_connection *c, void *arg)
{
	struct answer *a = arg;
	event_active(a->again, EV_TIMEOUT, 0);
}

static void end(struct answer *a)
{
	struct evhttp_request *request = a->request;
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
	metric_text_end(&a->text);
	evhttp_send_reply_chunk(request, a->out);
	answer_free(a);
	evhttp_send_reply_end(request);
}

// A slice, and on when the reader has it.
static void go_on(evutil_socket_t fd, short what, void *arg)
{
	struct answer *a = arg;
	struct slice slice = a->server->conf.slice;
	slice_begin(&slice);
	int more;
	do
		more = scrape_step(a->scrape);
	while (more > 0 && evbuffer_get_length(a->out) < CHUNK_LEN && !slice_over(&slice));
	if (more < 0 || a->text.failed) {
		// Without its end it is no answer: what came would be taken for all.
		evhttp_connection_free(evhttp_request_get_connection(a->request));
		return;
	}
	static const struct timeval now;
	if (!more)
		end(a);
	else if (evbuffer_get_length(a->out) == 0)
		event_add(a->again, &now);
	else
		evhttp_send_reply_chunk_with_cb(a->request, a->out, on_written, a);
}

static bool is_head(struct evhttp_request *request)
{
	return evhttp_request_get_command(request) == EVHTTP_REQ_HEAD;
}

static void refuse(struct evhttp_request *request, int status, const char *why)
{
	struct evbuffer *body = evbuffer_new();
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", "text/plain");
	if (body && !is_head(request))
		evbuffer_add_printf(body, "%s\n", why);
	evhttp_send_reply(request, status, why, body);
	if (body)
		evbuffer_free(body);
}

// "localhost", "a.localhost", or an address: no name that somebody else can give a meaning to. Who
// says none is no browser.
static bool is_local_host(struct evhttp_request *request)
{
	const char *host = evhttp_request_get_host(request);
	static const char local[] = "localhost";
	struct str name = str_from(host ? host : local);
	struct ip_addr ip;
	if (name.len > 1 && name.p[0] == '[' && name.p[name.len - 1] == ']')
		name = (struct str){name.p + 1, name.len - 2};
	if (ip_parse_str(name, &ip))
		return true;
	size_t len = strlen(local);
	const char *end = name.p + name.len - len;
	return name.len >= len && strncasecmp(end, local, len) == 0 &&
	       (name.len == len || end[-1] == '.');
}

// First thing of each callback. True = it is refused (RFC 9110 15.5.6).
static bool is_other_method(struct metrics_server *s, struct evhttp_request *request)
{
	connections_answering(s->connections, request);
	enum evhttp_cmd_type method = evhttp_request_get_command(request);
	if (method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD)
		return false;
	evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "GET, HEAD");
	refuse(request, HTTP_BADMETHOD, "only GET and HEAD are allowed");
	return true;
}

// The same, of all that tells names.
static bool is_lured(struct metrics_server *s, struct evhttp_request *request)
{
	if (is_other_method(s, request))
		return true;
	if (!s->conf.is_local || is_local_host(request))
		return false;
	refuse(request, MISDIRECTED, "ask for an address or for localhost");
	return true;
}

// What the query asks for. NULL = all is well; else why not. The names are borrowed from `query`.
static const char *read_query(const struct evkeyvalq *query, struct scrape_ask *ret)
{
	*ret = (struct scrape_ask){0};
	for (const struct evkeyval *kv = query->tqh_first; kv; kv = kv->next.tqe_next) {
		if (strcmp(kv->key, "scope") == 0 && strcmp(kv->value, "endpoint") == 0) {
			ret->endpoints = true;
		} else if (strcmp(kv->key, "cluster") == 0) {
			if (!kv->value[0])
				return "cluster= is without a name";
			if (ret->n_names == SCRAPE_MAX_NAMES)
				return "too many clusters asked for";
			ret->names[ret->n_names++] = kv->value;
		} else {
			return "known are scope=endpoint and cluster=NAME";
		}
	}
	return NULL;
}

// One that has gone is no fault of who asks for several; without any the name is wrong.
static bool is_any_there(const struct metrics_server *s, const struct scrape_ask *ask)
{
	struct assembler_cluster_info info;
	for (uint32_t i = 0; i < ask->n_names; i++)
		if (assembler_find_without_endpoints(
			    s->conf.scrape->assembler, ask->names[i], &info))
			return true;
	return ask->n_names == 0;
}

// A line of text whatever the names are.
static void refuse_clusters(struct evhttp_request *request, const struct scrape_ask *ask)
{
	struct evbuffer *body = evbuffer_new();
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", "text/plain");
	for (uint32_t i = 0; body && !is_head(request) && i < ask->n_names; i++) {
		evbuffer_add_printf(body, "%s", i ? ", " : "no such cluster: ");
		for (const char *p = ask->names[i]; *p; p++)
			evbuffer_add(body, (unsigned char)*p < ' ' || *p == 0x7f ? "?" : p, 1);
	}
	if (body && !is_head(request))
		evbuffer_add(body, "\n", 1);
	evhttp_send_reply(request, HTTP_NOTFOUND, "no such cluster", body);
	if (body)
		evbuffer_free(body);
}

// Who asks for headers alone gets the form, and nothing is read for it.
static void tell_form(struct evhttp_request *request)
{
	bool is_open_metrics = metric_text_wants_open_metrics(
		evhttp_find_header(evhttp_request_get_input_headers(request), "Accept"));
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
		metric_text_content_type(is_open_metrics));
	evhttp_send_reply(request, HTTP_OK, "OK", NULL);
}

static bool begin(
	struct metrics_server *s, struct evhttp_request *request, const struct scrape_ask *ask)
{
	struct answer *a = calloc(1, sizeof(*a));
	if (!a)
		return false;
	const char *accept =
		evhttp_find_header(evhttp_request_get_input_headers(request), "Accept");
	bool is_open_metrics = metric_text_wants_open_metrics(accept);
	*a = (struct answer){.next = s->answers, .server = s, .request = request};
	s->answers = a;
	s->n_answers++;
	a->out = evbuffer_new();
	a->again = event_new(s->conf.base, -1, 0, go_on, a);
	if (a->out)
		metric_text_init(&a->text, a->out, is_open_metrics);
	a->scrape = scrape_new(s->conf.scrape, ask, &a->text.sink);
	if (!a->out || !a->again || !a->scrape) {
		answer_free(a);
		return false;
	}
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	evhttp_add_header(headers, "Content-Type", metric_text_content_type(is_open_metrics));
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_closed, a);
	evhttp_send_reply_start(request, HTTP_OK, "OK");
	event_active(a->again, EV_TIMEOUT, 0);
	return true;
}

static void on_metrics(struct evhttp_request *request, void *arg)
{
	struct metrics_server *s = arg;
	const char *text = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));
	struct evkeyvalq query = {0};
	struct scrape_ask ask;
	const char *wrong = NULL;
	if (is_lured(s, request))
		return;
	if (evhttp_parse_query_str(text ? text : "", &query) != 0)
		wrong = "malformed query";
	else
		wrong = read_query(&query, &ask);
	if (wrong) {
		refuse(request, HTTP_BADREQUEST, wrong);
	} else if (!is_any_there(s, &ask)) {
		refuse_clusters(request, &ask);
	} else if (is_head(request)) {
		tell_form(request);
	} else if (s->n_answers == METRICS_MAX_ANSWERS) {
		evhttp_add_header(evhttp_request_get_output_headers(request), "Retry-After", "1");
		refuse(request, HTTP_SERVUNAVAIL, "too many answers are under way");
	} else if (!begin(s, request, &ask)) {
		refuse(request, HTTP_SERVUNAVAIL, "out of memory");
	}
	evhttp_clear_headers(&query);
}

// Who is here while this process drains behind another asks for the host, which that one serves.
static bool host_is_ready(const struct metrics_server *s)
{
	const struct scrape_conf *c = s->conf.scrape;
	return connections_listener(s->connections) < 0 || c->is_ready(c->ctx);
}

static void on_ready(struct evhttp_request *request, void *arg)
{
	struct metrics_server *s = arg;
	if (is_other_method(s, request))
		return;
	bool is_ready = host_is_ready(s);
	refuse(request, is_ready ? HTTP_OK : HTTP_SERVUNAVAIL, is_ready ? "ready" : "not ready");
}

static void on_page(struct evhttp_request *request, void *arg)
{
	struct metrics_server *s = arg;
	if (!is_lured(s, request))
		s->conf.page->answer(s->conf.page->ctx, request);
}

static void on_events(struct evhttp_request *request, void *arg)
{
	struct metrics_server *s = arg;
	if (!is_lured(s, request))
		s->conf.page->follow(s->conf.page->ctx, request, s->connections);
}

static void on_other(struct evhttp_request *request, void *arg)
{
	if (!is_other_method(arg, request))
		refuse(request, HTTP_NOTFOUND, "there are /, /metrics and /ready");
}

static bool make_http(struct metrics_server *s)
{
	s->http = evhttp_new(s->conf.base);
	if (!s->http)
		return false;
	// The others are known so that they are refused by us: evhttp would say 501.
	evhttp_set_allowed_methods(s->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST |
						    EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
						    EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH);
	evhttp_set_timeout(s->http, TIMEOUT_S);
	evhttp_set_max_headers_size(s->http, MAX_HEADERS_LEN);
	evhttp_set_max_body_size(s->http, MAX_BODY_LEN);
	evhttp_set_gencb(s->http, on_other, s);
	if (evhttp_set_cb(s->http, "/metrics", on_metrics, s) ||
		evhttp_set_cb(s->http, "/ready", on_ready, s))
		return false;
	return !s->conf.page || (evhttp_set_cb(s->http, "/", on_page, s) == 0 &&
					evhttp_set_cb(s->http, "/events", on_events, s) == 0);
}

// Takes the listener.
static int start(struct metrics_server *s, struct lb_err *reterr)
{
	if (!make_http(s)) {
		close(s->conf.listener);
		return lb_err_set(reterr, "out of memory");
	}
	const struct connections_conf conf = {.base = s->conf.base,
		.http = s->http,
		.listener = s->conf.listener,
		.max = METRICS_MAX_CONNECTIONS,
		.clock_ns = s->conf.slice.clock_ns,
		.request_ns = REQUEST_NS,
		.answer_ns = ANSWER_NS};
	s->connections = connections_new(&conf, reterr);
	return s->connections ? 0 : -EINVAL;
}

struct metrics_server *metrics_server_new(
	const struct metrics_server_conf *conf, struct lb_err *reterr)
{
	struct metrics_server *s = calloc(1, sizeof(*s));
	if (!s) {
		close(conf->listener);
		lb_err_set(reterr, "out of memory");
		return NULL;
	}
	s->conf = *conf;
	if (start(s, reterr) == 0)
		return s;
	metrics_server_free(s);
	return NULL;
}

void metrics_server_begin(struct metrics_server *s)
{
	connections_begin(s->connections);
}

int metrics_server_listener(const struct metrics_server *s)
{
	return connections_listener(s->connections);
}

void metrics_server_leave(struct metrics_server *s)
{
	connections_leave(s->connections);
}

void metrics_server_free(struct metrics_server *s)
{
	if (!s)
		return;
	if (s->http)
		evhttp_free(s->http); // with its connections, whose answers end so
	connections_free(s->connections);
	free(s);
}
