// SPDX-License-Identifier: Apache-2.0
// The status page over loopback: who is answered what, who follows, and what that costs. Looks and
// connections age by the test's clocks; the loop turns in real time.
#include "ctrl/listen_port.h"
#include "ctrl/metrics/metrics_server.h"
#include "ctrl/page/page.h"
#include "ctrl/page/view.h"
#include "ctrl/stats/show.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/support/free_port.h"
#include "tests/support/rss.h"
#include "tests/unit/ctrl/page/page_world.h"

#include <event2/event.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE 250 // turns of 4 ms, on a busy machine

static struct event_base *base;
static struct page *page;
static struct metrics_page calls;
static struct metrics_server *server;
static uint16_t port;
static uint64_t now_ns, n_clock; // of connections and slices; how often that was asked
static char heard[1 << 20];

static uint64_t clock_ns(void)
{
	n_clock++;
	return now_ns;
}

// It tells of events on descriptors that are closed.
static void on_log(int severity, const char *text)
{
	if (severity >= EVENT_LOG_WARN)
		fail_msg("%s", text);
}

static void answer(void *ctx, struct evhttp_request *request)
{
	page_answer(ctx, request);
}

static void follow(void *ctx, struct evhttp_request *request, struct connections *connections)
{
	page_follow(ctx, request, connections);
}

static int open_port(void **state, bool is_local)
{
	char address[32];
	struct lb_err err = {""};
	if (page_set_up(state))
		return -1;
	struct world *w = *state;
	event_set_log_callback(on_log);
	now_ns = 1;
	base = event_base_new();
	port = free_port();
	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	const struct slice slice = {.clock_ns = clock_ns, .len_ns = 1000, .most = 16};
	page = page_new(&(struct page_conf){base, w->wheel, page_show, slice});
	calls = (struct metrics_page){answer, follow, page};
	server = metrics_server_new(&(struct metrics_server_conf){.base = base,
					    .listener = listen_port_open(address, false, &err),
					    .scrape = show_scrape_conf(page_show),
					    .page = &calls,
					    .is_local = is_local,
					    .slice = slice},
		&err);
	assert_string_equal(err.text, "");
	assert_non_null(server);
	metrics_server_begin(server);
	return 0;
}

static int set_up(void **state)
{
	return open_port(state, true);
}

static int set_up_remote(void **state)
{
	return open_port(state, false);
}

static int tear_down(void **state)
{
	metrics_server_free(server);
	page_free(page);
	event_base_free(base);
	return page_tear_down(state);
}

static void turn_loop(void)
{
	const struct timeval t = {.tv_usec = 4000};
	event_base_loopexit(base, &t);
	event_base_dispatch(base);
}

static int connect_with(int receive_buffer)
{
	const struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (receive_buffer)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static int ask_on(int fd, const char *request)
{
	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	turn_loop();
	return fd;
}

static int ask(const char *method, const char *path, const char *more)
{
	char request[8192];
	snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: 127.0.0.1:1\r\n%s\r\n", method,
		path, more);
	return ask_on(connect_with(0), request);
}

// What has come, into `heard`; its length. *ret_closed: nothing more will.
static size_t take(int fd, bool *ret_closed)
{
	size_t len = 0;
	ssize_t n;
	while (len < sizeof(heard) - 1 &&
		(n = recv(fd, heard + len, sizeof(heard) - 1 - len, 0)) > 0)
		len += (size_t)n;
	*ret_closed = len < sizeof(heard) - 1 && (n == 0 || errno != EAGAIN);
	heard[len] = 0;
	return len;
}

// Until something has come that has this part; it stays in `heard`.
static void hear(int fd, const char *part)
{
	char all[sizeof(heard)] = "";
	size_t len = 0;
	bool is_closed = false;
	for (int i = 0; i < PATIENCE && !strstr(all, part) && !is_closed; i++) {
		turn_loop();
		size_t n = take(fd, &is_closed);
		if (len + n < sizeof(all))
			memcpy(all + len, heard, n + 1);
		len += n;
	}
	if (!strstr(all, part))
		fail_msg("'%s' is not in: %.2000s", part, all);
	memcpy(heard, all, sizeof(heard));
}

// Asks once, on a connection that the answer ends.
static const char *get(const char *path, const char *more)
{
	char headers[1024];
	snprintf(headers, sizeof(headers), "%sConnection: close\r\n", more);
	int fd = ask("GET", path, headers);
	char all[sizeof(heard)] = "";
	size_t len = 0;
	bool is_closed = false;
	for (int i = 0; i < PATIENCE && !is_closed; i++) {
		turn_loop();
		size_t n = take(fd, &is_closed);
		assert_true(len + n < sizeof(all));
		memcpy(all + len, heard, n + 1);
		len += n;
	}
	assert_true(is_closed);
	close(fd);
	memcpy(heard, all, sizeof(heard));
	return heard;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static void expect(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %.3000s", part, text);
}

static void a_page_is_whole_by_itself(void **state)
{
	page_give_many(*state, 3, "");
	const char *text = get("/", "");
	assert_true(begins(text, "HTTP/1.1 200 OK\r\n"));
	expect(text, "Content-Security-Policy: default-src 'none'; style-src 'sha256-");
	expect(text, "X-Content-Type-Options: nosniff\r\n");
	expect(text, "Cache-Control: no-store\r\n");
	expect(text, "Content-Type: text/html; charset=utf-8\r\n");
	assert_null(strstr(text, "unsafe-"));
	expect(text, "<title>");
	expect(text, ">c002</a>");
	expect(text, "EventSource(");
	assert_true(strcmp(text + strlen(text) - 8, "</html>\n") == 0);
	// Nothing is fetched from elsewhere, but for a name of XML's that is no address.
	char *from = strstr(heard, "http://www.w3.org/2000/svg");
	assert_non_null(from);
	memset(from, ' ', 10);
	assert_null(strstr(heard, "://"));
	assert_null(strstr(heard, "<link rel=\"stylesheet\""));
	assert_null(strstr(heard, " src="));
	assert_null(strstr(heard, " style="));
	assert_null(strstr(heard, "<!--"));
}

// OPS-174
static void ops_174_it_only_reads(void **state)
{
	static const char *const methods[] = {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"};
	page_give_many(*state, 2, "");
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		int fd = ask(methods[i], "/", "Content-Length: 0\r\n");
		hear(fd, "HTTP/1.1 ");
		if (begins(heard, "HTTP/1.1 2"))
			fail_msg("%s: %.200s", methods[i], heard);
		close(fd);
	}
	static const char *const paths[] = {"/", "/events", "/metrics", "/ready"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		int fd = ask("HEAD", paths[i], "");
		hear(fd, "\r\n\r\n");
		assert_true(begins(heard, i == 3 ? "HTTP/1.1 503" : "HTTP/1.1 200"));
		assert_int_equal(strlen(strstr(heard, "\r\n\r\n")), 4);
		close(fd);
	}
}

// OPS-175
static void ops_175_a_browser_that_was_led_here_by_a_name_is_told_nothing(void **state)
{
	static const struct {
		const char *host;
		bool is_fine;
	} rows[] = {{"localhost", true}, {"LocalHost:9464", true}, {"a.localhost:1", true},
		{"127.0.0.1", true}, {"10.1.2.3:9464", true}, {"[::1]:9464", true},
		{"[fd00::1]", true}, {"evil.example", false}, {"evil.example:9464", false},
		{"localhost.evil.example", false}, {"evillocalhost", false},
		{"127.0.0.1.evil.example:9464", false}, {"[evil]", false}, {"[::1].evil", false}};
	static const char *const paths[] = {"/", "/events", "/metrics"};
	page_give_many(*state, 2, "");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t k = 0; k < 3; k++) {
			char request[256];
			snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n",
				paths[k], rows[i].host);
			int fd = ask_on(connect_with(0), request);
			hear(fd, "\r\n\r\n");
			if (begins(heard, "HTTP/1.1 200") != rows[i].is_fine ||
				begins(heard, "HTTP/1.1 421") == rows[i].is_fine)
				fail_msg("%s %s: %.100s", paths[k], rows[i].host, heard);
			assert_true(rows[i].is_fine || !strstr(heard, "c000"));
			close(fd);
		}
}

static void where_others_may_reach_it_its_name_is_theirs_to_choose(void **state)
{
	page_give_many(*state, 2, "");
	int fd = ask_on(connect_with(0), "GET / HTTP/1.1\r\nHost: lb1.example:9464\r\n\r\n");
	hear(fd, "c001");
	close(fd);
}

static void what_is_asked_for_and_is_not_there_is_told(void **state)
{
	page_give_many(*state, 2, "");
	assert_true(begins(get("/?cluster=c001", ""), "HTTP/1.1 200"));
	assert_null(strstr(heard, ">c000</a>"));
	assert_true(begins(get("/?cluster=none", ""), "HTTP/1.1 404"));
	assert_true(begins(get("/?cluster=c000&cluster=c001", ""), "HTTP/1.1 400"));
	assert_true(begins(get("/?x=y", ""), "HTTP/1.1 400"));
	assert_true(begins(get("/events?cluster=none", ""), "HTTP/1.1 404"));
	assert_true(begins(get("/nothing", ""), "HTTP/1.1 404"));
	assert_true(begins(get("/events", "Sec-Fetch-Site: cross-site\r\n"), "HTTP/1.1 403"));
}

static uint32_t count(const char *text, const char *part)
{
	uint32_t n = 0;
	for (const char *p = text; (p = strstr(p, part)); p++)
		n++;
	return n;
}

// FL-70: an end has a browser come again, by a new connection.
static void fl_70_who_follows_when_another_process_has_the_port_is_to_come_again(void **state)
{
	page_give_many(*state, 2, "");
	int fd = ask("GET", "/events", "Sec-Fetch-Site: same-origin\r\n"),
	    kept = ask("GET", "/", "");
	hear(fd, "data: ");
	hear(kept, "</html>");
	page_leave(page);
	metrics_server_leave(server);
	hear(fd, "0\r\n\r\n");
	ask_on(kept, "GET /events HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n");
	hear(kept, "\r\n\r\n");
	assert_true(begins(heard, "HTTP/1.1 200 OK\r\n"));
	expect(heard, "Content-Type: text/event-stream\r\n");
	expect(heard, "Connection: close\r\n");
	bool is_closed = false;
	for (int i = 0; i < PATIENCE && !is_closed; i++) {
		turn_loop();
		assert_int_equal(take(kept, &is_closed), 0);
	}
	assert_true(is_closed);
	close(fd);
	close(kept);
}

// FL-200: it asks for the host, which that process serves.
static void fl_200_who_asks_for_readiness_behind_another_process_hears_yes(void **state)
{
	(void)state;
	int kept = ask("GET", "/ready", "");
	hear(kept, "not ready\n");
	metrics_server_leave(server);
	ask_on(kept, "GET /ready HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n");
	hear(kept, "\r\n\r\nready\n");
	assert_true(begins(heard, "HTTP/1.1 200"));
	expect(heard, "Connection: close\r\n");
	close(kept);
}

// OPS-176
static void ops_176_who_follows_is_told_what_changes_and_nobody_costs_nothing(void **state)
{
	struct world *w = *state;
	page_give_many(w, 2, "");
	page_pass(w, 30000);
	uint64_t before = n_clock;
	for (int i = 0; i < 5; i++) {
		page_pass(w, 2000);
		turn_loop();
	}
	assert_int_equal(n_clock, before); // nobody looks
	int fd = ask("GET", "/events", "Sec-Fetch-Site: same-origin\r\n");
	hear(fd, "</main>\n\n");
	expect(heard, "Content-Type: text/event-stream\r\n");
	assert_int_equal(count(heard, "data: <main id=\"main\""), 1);
	for (int i = 0; i < 3; i++) {
		page_pass(w, 1000);
		page_count(w, "c001", 50, 0);
		page_pass(w, 1000);
		hear(fd, "</main>\n\n");
		assert_int_equal(count(heard, "data: <main id=\"main\""), 1);
		expect(heard, "data-title=\"Requests/s\" class=\"n\">25</td>");
	}
	close(fd);
	turn_loop();
	page_pass(w, 2000);
	turn_loop();
	before = n_clock;
	for (int i = 0; i < 5; i++) {
		page_pass(w, 2000);
		turn_loop();
	}
	assert_int_equal(n_clock, before);
}

// OPS-176
static void ops_176_so_many_follow_and_no_more(void **state)
{
	struct world *w = *state;
	int fds[PAGE_MAX_FOLLOWERS];
	page_give_many(w, 2, "");
	for (int i = 0; i < PAGE_MAX_FOLLOWERS; i++) {
		fds[i] = ask("GET", i % 2 ? "/events" : "/events?cluster=c000", "");
		hear(fds[i], "</main>\n\n");
	}
	assert_true(begins(get("/events", ""), "HTTP/1.1 503"));
	assert_true(begins(get("/", ""), "HTTP/1.1 200"));
	assert_true(begins(get("/metrics", ""), "HTTP/1.1 200"));
	close(fds[3]);
	turn_loop();
	fds[3] = ask("GET", "/events", "");
	hear(fds[3], "</main>\n\n");
	page_pass(w, 2000);
	for (int i = 0; i < PAGE_MAX_FOLLOWERS; i++) {
		hear(fds[i], "</main>\n\n");
		close(fds[i]);
	}
}

// OPS-176: events of 250 KiB, which it does not take.
static void ops_176_who_takes_nothing_holds_one_event_and_is_dropped(void **state)
{
	struct world *w = *state;
	static char end[2400];
	memset(end, 'x', sizeof(end) - 1);
	page_give_many(w, 60, end);
	int slow = connect_with(4096), quick = ask("GET", "/events", "");
	ask_on(slow, "GET /events HTTP/1.1\r\nHost: [::1]\r\n\r\n");
	hear(quick, "</main>\n\n");
	long before = 0;
	for (int i = 0; i < 60; i++) {
		page_pass(w, 2000);
		hear(quick, "</main>\n\n");
		if (i == 40) // sockets are full
			before = rss_kib();
	}
	assert_true(rss_kib() - before < 4096);
	now_ns += 30 * NS_PER_SECOND; // the other has taken an event in this time, and will again
	page_pass(w, 2000);
	hear(quick, "</main>\n\n");
	now_ns += 31 * NS_PER_SECOND;
	for (int i = 0; i < PATIENCE + 300; i++)
		turn_loop();
	page_pass(w, 2000);
	hear(quick, "</main>\n\n");
	bool is_closed = false;
	size_t len = 0;
	for (int i = 0; i < PATIENCE && !is_closed; i++) {
		turn_loop();
		len += take(slow, &is_closed);
	}
	assert_true(is_closed);
	assert_true(len < (size_t)60 * 250 << 10); // most of the events were never for it
	close(slow);
	close(quick);
}

// Each view costs a walk over its cluster, and what it has found.
static void pages_of_many_clusters_take_each_others_places(void **state)
{
	struct world *w = *state;
	int fds[PAGE_MAX_FOLLOWERS];
	page_give_many(w, 30, "");
	for (int i = 0; i < 30; i++) {
		char path[32];
		snprintf(path, sizeof(path), "/?cluster=c%03d", i);
		assert_true(begins(get(path, ""), "HTTP/1.1 200"));
		page_pass(w, 10);
	}
	for (int i = 0; i < PAGE_MAX_FOLLOWERS; i++) {
		char path[32];
		snprintf(path, sizeof(path), "/events?cluster=c%03d", i);
		fds[i] = ask("GET", path, "");
		hear(fds[i], "</main>\n\n");
	}
	_Static_assert(PAGE_MAX_VIEWS == PAGE_MAX_FOLLOWERS, "each takes one");
	assert_true(begins(get("/", ""), "HTTP/1.1 503"));
	close(fds[0]);
	turn_loop();
	assert_true(begins(get("/", ""), "HTTP/1.1 200"));
	for (int i = 1; i < PAGE_MAX_FOLLOWERS; i++)
		close(fds[i]);
}

// What was found is kept for a minute, so that who comes back has rates, and then forgotten.
static void without_scripts_the_second_look_has_rates(void **state)
{
	struct world *w = *state;
	page_give_many(w, 1, "");
	get("/", "");
	page_count(w, "c000", 300, 0);
	page_pass(w, 10000);
	expect(get("/", ""), "data-title=\"Requests/s\" class=\"n\">30</td>");
	page_pass(w, 70000);
	expect(get("/", ""), "data-title=\"Requests/s\" class=\"n\">\u2013</td>");
}

// Whoever goes in the middle of a look leaves nothing behind.
static void readers_go_at_any_moment(void **state)
{
	page_give_many(*state, 100, "");
	for (int i = 0; i < 20; i++) {
		int fd = connect_with(0);
		const char *request = i % 2 ? "GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n"
		                            : "GET /events HTTP/1.1\r\nHost: [::1]\r\n\r\n";
		send(fd, request, strlen(request), MSG_NOSIGNAL);
		for (int k = 0; k < i; k++)
			event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		close(fd);
	}
	turn_loop();
	assert_true(begins(get("/", ""), "HTTP/1.1 200"));
	ask("GET", "/events", ""); // and some are there at the end
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
#define CASE_REMOTE(f) cmocka_unit_test_setup_teardown(f, set_up_remote, tear_down)
RUN_SUITE("ctrl/page/page", CASE(a_page_is_whole_by_itself), CASE(ops_174_it_only_reads),
	CASE(ops_175_a_browser_that_was_led_here_by_a_name_is_told_nothing),
	CASE_REMOTE(where_others_may_reach_it_its_name_is_theirs_to_choose),
	CASE(what_is_asked_for_and_is_not_there_is_told),
	CASE(fl_70_who_follows_when_another_process_has_the_port_is_to_come_again),
	CASE(fl_200_who_asks_for_readiness_behind_another_process_hears_yes),
	CASE(ops_176_who_follows_is_told_what_changes_and_nobody_costs_nothing),
	CASE(ops_176_so_many_follow_and_no_more),
	CASE(ops_176_who_takes_nothing_holds_one_event_and_is_dropped),
	CASE(pages_of_many_clusters_take_each_others_places),
	CASE(without_scripts_the_second_look_has_rates), CASE(readers_go_at_any_moment))
