// SPDX-License-Identifier: Apache-2.0
// A client of HTTP/1.1 among those of HTTP/2: raw bytes in, raw bytes out.
#include "dataplane/proxy/state.h"
#include "lb/pick/answer.h"
#include "lb/pick/failures.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

struct raw {
	struct tcp_conn *tcp; // NULL = closed
	char heard[1 << 17];
	size_t len;
	bool deaf, got_fin, was_reset;
};

static struct raw raw;

static void on_established(struct tcp_conn *c, void *user)
{
}

static size_t on_data(struct tcp_conn *c, void *user, const uint8_t *p, size_t len)
{
	struct raw *r = user;
	if (r->deaf)
		return 0;
	size_t room = sizeof(r->heard) - 1 - r->len, n = len < room ? len : room;
	memcpy(r->heard + r->len, p, n);
	r->len += n;
	r->heard[r->len] = '\0';
	return len;
}

static void on_send_room(struct tcp_conn *c, void *user)
{
}

static void on_eof(struct tcp_conn *c, void *user)
{
	struct raw *r = user;
	r->got_fin = true;
	tcp_conn_shutdown(c);
}

static void on_closed(struct tcp_conn *c, void *user, enum tcp_close_reason reason)
{
	struct raw *r = user;
	r->was_reset = !r->got_fin;
	r->tcp = NULL;
}

static void open_raw(struct world *w, uint16_t port)
{
	static const struct tcp_conn_ops ops = {.on_established = on_established,
		.on_data = on_data,
		.on_send_room = on_send_room,
		.on_eof = on_eof,
		.on_closed = on_closed};
	struct host *h = &w->wire.hosts[HOST_CLIENTS];
	struct tcp_flow flow = {.local = wire_address(HOST_CLIENTS, 9),
		.local_port = port,
		.remote = w->frontends[0].address,
		.remote_port = 80};
	raw = (struct raw){.tcp = tcp_connect(h->tcp, &flow, SECOND, &ops, &raw)};
	assert_non_null(raw.tcp);
	h->due = true;
	world_run(w, 20 * MS);
}

static void say(struct world *w, const char *p, size_t len)
{
	struct host *h = &w->wire.hosts[HOST_CLIENTS];
	assert_true(buf_append(tcp_conn_sendq(raw.tcp), &h->chunks, p, len));
	tcp_conn_push(raw.tcp);
	h->due = true;
}

static void say_all(struct world *w, const char *text)
{
	say(w, text, strlen(text));
	world_run(w, 50 * MS);
}

static bool heard(size_t at, const char *what)
{
	size_t len = strlen(what);
	return at + len <= raw.len && memcmp(raw.heard + at, what, len) == 0;
}

static unsigned count(const char *what)
{
	unsigned n = 0;
	for (size_t at = 0; at < raw.len; at++)
		n += heard(at, what);
	return n;
}

static const char two_of_id[] =
	"POST /one/echo/%03zu/3 HTTP/1.1\r\nHost: calls.test\r\nTransfer-Encoding: chunked"
	"\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
	"GET /none HTTP/1.1\r\nHost: calls.test\r\n\r\n";

// H1-23, H1-09, H1-30
static void two_requests_cut_anywhere_are_answered_alike(void **state)
{
	struct world *w = ready_world(NULL);
	char two[sizeof(two_of_id)];
	size_t len = 1;
	for (size_t cut = 0; cut < len; cut++) {
		len = (size_t)snprintf(two, sizeof(two), two_of_id, 300 + cut);
		open_raw(w, (uint16_t)(2000 + cut));
		say(w, two, cut);
		world_run(w, 5 * MS);
		say(w, two + cut, len - cut);
		ask(w, KIND_ECHO, 1000);
		world_run(w, 50 * MS);
		assert_int_equal(count("HTTP/1.1 200 "), 1);
		assert_int_equal(count("0\r\n\r\nHTTP/1.1 404 "), 1);
		tcp_conn_abort(raw.tcp);
		w->wire.hosts[HOST_CLIENTS].due = true;
	}
	finish(w);
	world_free(w);
}

// H1-33: one whose framing tells, and one that only a RST tells.
static void a_cut_answer_never_ends_cleanly(void **state)
{
	struct world *w = ready_world(NULL);
	open_raw(w, 2000);
	say_all(w, "GET /one/resetlate/1/2 HTTP/1.1\r\nHost: calls.test\r\n\r\n");
	assert_int_equal(count("HTTP/1.1 200 "), 1);
	assert_true(raw.got_fin);
	assert_int_equal(count("\r\n0\r\n"), 0);
	open_raw(w, 2001);
	say_all(w, "GET /one/resetlate/2/2 HTTP/1.0\r\nHost: calls.test\r\n\r\n");
	assert_true(raw.was_reset && !raw.got_fin);
	world_free(w);
}

// H1-35
static void a_head_that_does_not_end_is_408(void **state)
{
	struct world *w = ready_world(NULL);
	open_raw(w, 2000);
	say_all(w, "GET / HTTP/1.1\r\nHost:");
	world_run(w, 9 * SECOND);
	assert_int_equal(raw.len, 0);
	world_run(w, 3 * SECOND);
	assert_int_equal(count("HTTP/1.1 408 "), 1);
	assert_true(raw.got_fin);
	assert_int_equal(world_counter(w, "clients_in_header"), 1);
	world_free(w);
}

// H1-03, H1-35
static void an_empty_line_behind_a_request_begins_no_head(void **state)
{
	struct world *w = ready_world(NULL);
	open_raw(w, 2000);
	say_all(w, "GET /one/echo/1/1 HTTP/1.1\r\nHost: calls.test\r\n\r\n\r\n");
	assert_int_equal(count("HTTP/1.1 200 "), 1);
	world_run(w, 30 * SECOND);
	assert_int_equal(count("HTTP/1.1 "), 1);
	assert_int_equal(world_counter(w, "clients_in_header"), 0);
	say_all(w, "GET /one/echo/2/1 HTTP/1.1\r\nHost: calls.test\r\n\r\n");
	assert_int_equal(count("HTTP/1.1 200 "), 2);
	tcp_conn_abort(raw.tcp);
	w->wire.hosts[HOST_CLIENTS].due = true;
	world_free(w);
}

// H1-32: of a body that nobody reads, and of requests behind an open one.
static void what_is_not_taken_stays_in_tcp(void **state)
{
	static char body[60000];
	struct world *w = ready_world(NULL);
	open_raw(w, 2000);
	say_all(w, "POST /one/hang/1/1 HTTP/1.1\r\nHost: calls.test\r\nContent-Length: "
		   "10000000\r\n\r\n");
	for (int i = 0; i < 10; i++) {
		say(w, body, sizeof(body));
		world_run(w, SECOND / 10);
	}
	assert_in_range(world_chunks_used(w), 30, 300);
	ask(w, KIND_ECHO, 5000);
	world_run(w, SECOND);
	assert_ok(w, &w->asks[0]);
	assert_non_null(raw.tcp);
	tcp_conn_abort(raw.tcp);
	w->wire.hosts[HOST_CLIENTS].due = true;
	finish(w);
	world_run(w, SECOND);
	assert_int_equal(world_chunks_used(w), 0);
	world_free(w);
}

// H1-36
static void a_client_that_ends_its_side_has_its_request_cancelled(void **state)
{
	struct world *w = ready_world(NULL);
	open_raw(w, 2000);
	say_all(w, "GET /one/hang/1/1 HTTP/1.1\r\nHost: calls.test\r\n\r\n");
	tcp_conn_shutdown(raw.tcp);
	w->wire.hosts[HOST_CLIENTS].due = true;
	world_run(w, SECOND);
	assert_int_equal(world_counter(w, "requests"), 0);
	assert_int_equal(raw.len, 0);
	world_free(w);
}

// H1-31, TH-15
static void who_waits_for_100_gets_it_and_who_reads_nothing_is_let_go(void **state)
{
	struct world *w = ready_world(NULL);
	open_raw(w, 2000);
	say_all(w, "POST /one/echo/1/2 HTTP/1.1\r\nHost: calls.test\r\nExpect: 100-continue\r\n"
		   "Content-Length: 2\r\n\r\n");
	assert_int_equal(count("HTTP/1.1 100 "), 1);
	say_all(w, "ab");
	assert_int_equal(count("HTTP/1.1 200 "), 1);
	raw.deaf = true;
	say_all(w, "GET /one/plain/2/10000000 HTTP/1.1\r\nHost: calls.test\r\n\r\n");
	world_run(w, 100 * SECOND);
	assert_null(raw.tcp);
	assert_int_equal(world_counter(w, "clients_stalled"), 1);
	assert_int_equal(world_chunks_used(w), 0);
	world_free(w);
}

// TH-130: half of the two places are taken, so that the second one is counted.
static void a_body_that_does_not_come_gives_way_with_408(void **state)
{
	struct world_conf conf = world_conf_default(7);
	struct world *w = ready_world(&conf);
	w->control.leaves[0].max_requests = 2;
	control_update(&w->control, 0);
	world_run(w, 20 * MS);
	struct ask *silent = ask(w, KIND_HANG, 0);
	world_run(w, 20 * MS);
	w->backends[0].mute = w->backends[1].mute = true;
	open_raw(w, 2000);
	say_all(w, "POST /one/plain/300/9 HTTP/1.1\r\nHost: calls.test\r\nContent-Length: "
		   "9\r\n\r\nabc");
	w->clients[1].source = 2;
	world_open_client(w, 1, 0);
	world_run(w, 3 * SECOND);
	assert_int_equal(raw.len, 0);
	w->backends[0].mute = w->backends[1].mute = false;
	struct ask *other = world_ask(w, "one", KIND_ECHO, 10);
	client_ask(&w->clients[1], other);
	finish_of(w, other);
	assert_ok(w, other);
	assert_int_equal(count("HTTP/1.1 408 "), 1);
	assert_true(raw.got_fin);
	assert_false(silent->closed);
	client_cancel(silent);
	finish(w);
	world_free(w);
}

static void drain(struct world *w)
{
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_DRAIN,
					     .deadline_ns = w->wire.now_ns + 60 * SECOND});
	world_run(w, 100 * MS);
}

enum { SETTINGS = 4, GOAWAY = 7 }; // RFC 9113 6

static unsigned count_frames(uint8_t type)
{
	unsigned n = 0;
	for (size_t at = 0; at + 9 <= raw.len;) {
		const uint8_t *head = (const uint8_t *)raw.heard + at;
		n += head[3] == type;
		at += 9 + ((size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2]);
	}
	return n;
}

// H1-34: it may be a client of either protocol, and is told in the one that it begins with.
static void a_drain_says_nothing_to_whom_has_said_nothing(void **state)
{
	static const char http2[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	static const char settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
	struct world *w = ready_world(NULL);
	open_raw(w, 2000);
	drain(w);
	assert_int_equal(raw.len, 0);
	say_all(w, "GET /one/plain/2/10 HTTP/1.1\r\nHost: calls.test\r\n\r\n");
	assert_int_equal(count("HTTP/1.1 200 "), 1);
	assert_int_equal(count("connection: close\r\n"), 1);
	assert_true(raw.got_fin);
	world_free(w);
	w = ready_world(NULL);
	open_raw(w, 2000);
	drain(w);
	say(w, http2, sizeof(http2) - 1);
	say(w, settings, sizeof(settings));
	world_run(w, 100 * MS);
	assert_int_equal(raw.heard[3], SETTINGS);
	assert_int_equal(count_frames(GOAWAY), 1);
	world_run(w, 2 * SECOND);
	assert_true(raw.got_fin && w->control.drained);
	world_free(w);
}

// H1-34, H1-35: of a connection that is told nothing, since it waits for the next request.
static void a_drain_waits_for_a_head_that_has_begun(void **state)
{
	struct world *w = ready_world(NULL);
	open_raw(w, 2000);
	say_all(w, "GET /none HTTP/1.1\r\nHost: calls.test\r\n\r\n");
	assert_int_equal(count("HTTP/1.1 404 "), 1);
	drain(w);
	say_all(w, "GET /one/plain/2/10 HT");
	world_run(w, 3 * SECOND);
	assert_false(raw.got_fin);
	say_all(w, "TP/1.1\r\nHost: calls.test\r\n\r\n");
	assert_int_equal(count("HTTP/1.1 200 "), 1);
	assert_int_equal(count("connection: close\r\n"), 1);
	assert_true(raw.got_fin);
	world_free(w);
	w = ready_world(NULL);
	open_raw(w, 2000);
	say_all(w, "GET /none HTTP/1.1\r\nHost: calls.test\r\n\r\n");
	drain(w);
	say_all(w, "GET / HT");
	world_run(w, 12 * SECOND);
	assert_int_equal(count("HTTP/1.1 408 "), 1);
	assert_true(raw.got_fin);
	world_free(w);
}

// H1-34, FL-98
static void a_drain_lets_go_of_whom_never_says_anything(void **state)
{
	struct world *w = ready_world(NULL);
	open_raw(w, 2000);
	drain(w);
	world_run(w, 8 * SECOND);
	assert_false(raw.got_fin || w->control.drained);
	world_run(w, 3 * SECOND);
	assert_int_equal(raw.len, 0);
	assert_true(raw.got_fin && w->control.drained);
	world_free(w);
}

static struct world *logged_world(void)
{
	static const struct lb_access_filter all = {.sample = LB_ACCESS_SAMPLE_ALL};
	struct world_conf conf = world_conf_default(7);
	conf.log = &all;
	return ready_world(&conf);
}

struct expected {
	const char *says; // to the proxy
	uint16_t status; // 0 = reset
	enum lb_cause cause;
	uint8_t version;
	const char *method, *authority, *path, *id, *text; // id NULL = the proxy's own
};

// It is one request more, with one ending: in the counters, among the failures, in the log, and by
// the same id in the answer.
static void assert_told(struct world *w, const struct expected *e, uint64_t n_before)
{
	const struct lb_link *link = w->link;
	const struct lb_frontend_times *times = &link->frontends[0];
	struct lb_failure f;
	struct lb_access_record a;
	char text[LB_ACCESS_BYTES];
	assert_int_equal(link->counters.frontend_requests[0], n_before + 1);
	assert_int_equal(times->ended[e->cause], n_before + 1);
	assert_int_equal(world_ended(w, e->cause), n_before + 1);
	assert_int_equal(times->answers[lb_answer_http(e->status)], n_before + 1);
	assert_int_equal(lb_failures_count(link->failures), n_before + 1);
	assert_true(lb_failures_read(link->failures, n_before, &f));
	assert_int_equal(f.cause, e->cause);
	assert_string_equal(f.method, e->method);
	assert_string_equal(f.authority, e->authority);
	assert_string_equal(f.path, e->path);
	assert_string_equal(f.text, e->text);
	if (e->id)
		assert_string_equal(f.id, e->id);
	else
		assert_int_equal(strlen(f.id), 36);
	assert_true(spsc_read(&link->access->ring, &a));
	assert_int_equal(a.brief.status, e->status);
	assert_int_equal(a.brief.cause, e->cause);
	assert_int_equal(a.protocol, e->version);
	struct str id = lb_access_get(&a, LB_ACCESS_REQUEST_ID);
	snprintf(text, sizeof(text), "%.*s", (int)id.len, id.p);
	assert_string_equal(text, f.id);
	struct str path = lb_access_get(&a, LB_ACCESS_PATH);
	snprintf(text, sizeof(text), "%.*s", (int)path.len, path.p);
	assert_string_equal(text, e->path);
	assert_true(spsc_is_empty(&link->access->ring));
	if (e->version == 20)
		return;
	snprintf(text, sizeof(text), "HTTP/1.1 %u ", e->status);
	assert_int_equal(count(text), 1);
	snprintf(text, sizeof(text), "\r\nx-request-id: %s\r\n", f.id);
	assert_int_equal(count(text), 1);
	assert_int_equal(count("\r\nconnection: close\r\n"), 1);
	assert_true(raw.got_fin);
}

#define HOST "Host: calls.test\r\n"
#define ID "X-Request-Id: mine\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"

static const struct expected refused_heads[] = {
	{"BAD METHOD /mark HTTP/1.1\r\n" HOST ID "\r\n", 400, LB_CAUSE_CLIENT_PROTOCOL, 11, "BAD",
		"calls.test", "METHOD", "mine", "malformed request line"},
	{"\1\2\r\n\r\n", 400, LB_CAUSE_CLIENT_PROTOCOL, 11, "", "", "", NULL,
		"malformed request line"},
	{"GET /a HTTP/1.0\r\n\r\n", 400, LB_CAUSE_CLIENT_PROTOCOL, 10, "GET", "", "/a", NULL,
		"no Host, or a malformed one, or several"},
	{"CONNECT b:1 HTTP/1.1\r\n" HOST "\r\n", 501, LB_CAUSE_CLIENT_PROTOCOL, 11, "CONNECT",
		"b:1", "", NULL, "CONNECT in HTTP/1.1"},
	{"HEAD /a HTTP/9.9\r\n" HOST "\r\n", 505, LB_CAUSE_CLIENT_PROTOCOL, 11, "HEAD",
		"calls.test", "/a", NULL, "unknown version of HTTP"},
	{"POST /a HTTP/1.1\r\n" HOST "Content-Type: application/grpc\r\n\r\n", 415,
		LB_CAUSE_CLIENT_PROTOCOL, 11, "POST", "calls.test", "/a", NULL, "gRPC in HTTP/1.1"},
};

#define N_REFUSED_HEADS (sizeof(refused_heads) / sizeof(refused_heads[0]))

// OPS-251
static void what_is_refused_before_it_is_a_request_is_one(void **state)
{
	for (size_t i = 0; i < N_REFUSED_HEADS; i++) {
		struct world *w = logged_world();
		open_raw(w, 2000);
		say_all(w, refused_heads[i].says);
		assert_told(w, &refused_heads[i], 0);
		world_free(w);
	}
}

// OPS-251: of all pieces of a request's rest.
static void so_is_what_is_refused_in_its_body(void **state)
{
	static const struct expected rows[] = {
		{"POST /one/hang/1/1 HTTP/1.1\r\n" HOST ID CHUNKED "\r\nx\r\nno more\r\n", 400,
			LB_CAUSE_CLIENT_PROTOCOL, 11, "POST", "calls.test", "/one/hang/1/1", "mine",
			"the rest of the request is malformed"},
		{"POST /one/hang/1/1 HTTP/1.1\r\n" HOST CHUNKED "\r\n0\r\nHost: x\r\n\r\nGET /",
			400, LB_CAUSE_CLIENT_PROTOCOL, 11, "POST", "calls.test", "/one/hang/1/1",
			NULL, "the rest of the request is malformed"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = logged_world();
		open_raw(w, 2000);
		say_all(w, rows[i].says);
		assert_told(w, &rows[i], 0);
		assert_int_equal(count("\r\n\r\nthe rest of the request is malformed"), 1);
		world_free(w);
	}
}

// OPS-251, H1-35
static void so_is_what_does_not_come_in_time(void **state)
{
	static const struct expected rows[] = {
		{"GET /a HTTP/1.1\r\n" ID "Host:", 408, LB_CAUSE_CLIENT_PROTOCOL, 11, "GET", "",
			"/a", "mine", "the request did not come in time"},
		{"GE", 408, LB_CAUSE_CLIENT_PROTOCOL, 11, "", "", "", NULL,
			"the request did not come in time"},
		{"POST /one/hang/1/1 HTTP/1.1\r\n" HOST CHUNKED "\r\n0\r\na:", 408,
			LB_CAUSE_CLIENT_PROTOCOL, 11, "POST", "calls.test", "/one/hang/1/1", NULL,
			"the rest of the request did not come in time"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = logged_world();
		open_raw(w, 2000);
		say_all(w, rows[i].says);
		world_run(w, 12 * SECOND);
		assert_told(w, &rows[i], 0);
		world_free(w);
	}
}

// TH-91: a backend has it, and has to end it, too.
static void what_is_malformed_behind_its_head_is_ended_early(void **state)
{
	struct world *w = ready_world(NULL);
	struct ip_addr address = wire_address(HOST_CLIENTS, 9);
	open_raw(w, 2000);
	const struct proxy_sources *sources = &w->proxy->sources;
	uint64_t hash = proxy_source_hash(sources, &address);
	const struct proxy_source *source = proxy_source_find(sources, &address, hash);
	assert_non_null(source);
	say_all(w, "POST /one/hang/1/1 HTTP/1.1\r\n" HOST CHUNKED "\r\n");
	assert_int_equal(source->early_ends.full_at_ns, 0);
	say_all(w, "x\r\n");
	assert_true(raw.got_fin);
	assert_int_not_equal(source->early_ends.full_at_ns, 0);
	world_free(w);
}

// OPS-252: nobody asked for anything.
static void who_goes_before_its_head_is_complete_has_asked_nothing(void **state)
{
	static const char *const rows[] = {"", "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\n"};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = logged_world();
		open_raw(w, 2000);
		say_all(w, rows[i]);
		tcp_conn_shutdown(raw.tcp);
		w->wire.hosts[HOST_CLIENTS].due = true;
		world_run(w, SECOND);
		assert_null(raw.tcp);
		assert_int_equal(w->link->counters.requests, 0);
		assert_int_equal(lb_failures_count(w->link->failures), 0);
		assert_true(spsc_is_empty(&w->link->access->ring));
		world_free(w);
	}
}

// OPS-253: a flood goes over the oldest that are kept, and takes no memory.
static void a_flood_of_what_is_refused_costs_no_memory(void **state)
{
	struct world *w = ready_world(NULL);
	uint64_t n = 0;
	for (; n < LB_FAILURES + 10; n++) {
		open_raw(w, (uint16_t)(2000 + n));
		say_all(w, refused_heads[n % N_REFUSED_HEADS].says);
		assert_true(raw.got_fin);
	}
	struct lb_failure f;
	assert_int_equal(lb_failures_count(w->link->failures), n);
	assert_false(lb_failures_read(w->link->failures, 0, &f));
	assert_true(lb_failures_read(w->link->failures, n - 1, &f));
	assert_int_equal(w->link->counters.requests, n);
	assert_int_equal(world_counter(w, "requests"), 0);
	world_run(w, SECOND);
	assert_int_equal(world_chunks_used(w), 0);
	world_free(w);
}

// Frames by hand: the preface, empty SETTINGS, and these.
static void say_http2(struct world *w, const char *frames, size_t len)
{
	static const char head[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
	open_raw(w, 2000);
	say(w, head, sizeof(head) - 1);
	say(w, frames, len);
	world_run(w, 50 * MS);
}

// GET, http, /a, authority calls.test, x-request-id mine (RFC 7541 6.1, 6.2.2).
#define FIELDS "\x82\x86\4\2/a\1\012calls.test\0\014x-request-id\4mine"

// OPS-251
static void a_malformed_request_of_http_2_is_told_of_though_it_is_reset(void **state)
{
	static const struct expected expected = {NULL, 0, LB_CAUSE_CLIENT_PROTOCOL, 20, "GET",
		"calls.test", "/a", "mine", "te other than trailers"};
	static const char frames[] = "\0\0\056\1\5\0\0\0\1" FIELDS "\0\2te\4gzip";
	struct world *w = logged_world();
	say_http2(w, frames, sizeof(frames) - 1);
	assert_int_equal(count_frames(3), 1); // RST_STREAM
	assert_told(w, &expected, 0);
	tcp_conn_abort(raw.tcp);
	w->wire.hosts[HOST_CLIENTS].due = true;
	world_free(w);
}

// OPS-251: more of a body than was announced.
static void so_is_a_request_of_http_2_whose_body_is_malformed(void **state)
{
	static const struct expected expected = {NULL, 0, LB_CAUSE_CLIENT_PROTOCOL, 20, "GET",
		"calls.test", "/one/hang/1/1", "mine", "the client broke the protocol"};
	static const char frames[] =
		"\0\0\064\1\4\0\0\0\1\x82\x86\4\015/one/hang/1/1\1\012calls.test"
		"\0\014x-request-id\4mine\017\015\0011"
		"\0\0\2\0\1\0\0\0\1xx";
	struct world *w = logged_world();
	say_http2(w, frames, sizeof(frames) - 1);
	assert_int_equal(count_frames(3), 1);
	assert_told(w, &expected, 0);
	tcp_conn_abort(raw.tcp);
	w->wire.hosts[HOST_CLIENTS].due = true;
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_requests_cut_anywhere_are_answered_alike),
		cmocka_unit_test(a_cut_answer_never_ends_cleanly),
		cmocka_unit_test(a_head_that_does_not_end_is_408),
		cmocka_unit_test(an_empty_line_behind_a_request_begins_no_head),
		cmocka_unit_test(what_is_not_taken_stays_in_tcp),
		cmocka_unit_test(a_client_that_ends_its_side_has_its_request_cancelled),
		cmocka_unit_test(who_waits_for_100_gets_it_and_who_reads_nothing_is_let_go),
		cmocka_unit_test(a_body_that_does_not_come_gives_way_with_408),
		cmocka_unit_test(a_drain_says_nothing_to_whom_has_said_nothing),
		cmocka_unit_test(a_drain_waits_for_a_head_that_has_begun),
		cmocka_unit_test(a_drain_lets_go_of_whom_never_says_anything),
		cmocka_unit_test(what_is_refused_before_it_is_a_request_is_one),
		cmocka_unit_test(so_is_what_is_refused_in_its_body),
		cmocka_unit_test(what_is_malformed_behind_its_head_is_ended_early),
		cmocka_unit_test(so_is_what_does_not_come_in_time),
		cmocka_unit_test(who_goes_before_its_head_is_complete_has_asked_nothing),
		cmocka_unit_test(a_flood_of_what_is_refused_costs_no_memory),
		cmocka_unit_test(a_malformed_request_of_http_2_is_told_of_though_it_is_reset),
		cmocka_unit_test(so_is_a_request_of_http_2_whose_body_is_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
