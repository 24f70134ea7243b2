// SPDX-License-Identifier: Apache-2.0
// A port's clients on loopback that mean no good. Ages are by the test's clock; the loop, which
// looks at them each second, turns in real time.
#include "ctrl/listen_port.h"
#include "ctrl/metrics/connections.h"
#include "tests/support/check.h"
#include "tests/support/free_port.h"
#include "tests/support/rss.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX 4
#define REQUEST_NS UINT64_C(10000000000)
#define ANSWER_NS UINT64_C(60000000000)
#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static uint64_t now_ns;

static uint64_t clock_ns(void)
{
	return now_ns;
}

// It tells of events on descriptors that are closed.
static void on_log(int severity, const char *text)
{
	if (severity >= EVENT_LOG_WARN)
		fail_msg("%s", text);
}

struct port {
	struct event_base *base;
	struct evhttp *http;
	struct connections *connections;
	uint16_t number;
};

static void on_request(struct evhttp_request *request, void *arg)
{
	struct port *p = arg;
	connections_answering(p->connections, request);
	struct evbuffer *body = evbuffer_new();
	if (strcmp(evhttp_request_get_uri(request), "/long") == 0)
		evbuffer_add_printf(body, "%*d", 32 << 20, 1); // more than sockets hold
	else
		evbuffer_add_printf(body, "short");
	evhttp_send_reply(request, HTTP_OK, "OK", body);
	evbuffer_free(body);
}

static void open_port(struct port *p)
{
	char address[32];
	struct lb_err err = {""};
	now_ns = 1;
	event_set_log_callback(on_log);
	*p = (struct port){.base = event_base_new(), .number = free_port()};
	p->http = evhttp_new(p->base);
	evhttp_set_gencb(p->http, on_request, p);
	snprintf(address, sizeof(address), "127.0.0.1:%u", p->number);
	const struct connections_conf conf = {.base = p->base,
		.http = p->http,
		.listener = listen_port_open(address, false, &err),
		.max = MAX,
		.clock_ns = clock_ns,
		.request_ns = REQUEST_NS,
		.answer_ns = ANSWER_NS};
	p->connections = connections_new(&conf, &err);
	assert_string_equal(err.text, "");
	assert_non_null(p->connections);
	connections_begin(p->connections);
}

static void close_port(struct port *p)
{
	evhttp_free(p->http);
	connections_free(p->connections);
	event_base_free(p->base);
}

static void turn(struct port *p, unsigned ms)
{
	const struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
	event_base_loopexit(p->base, &t);
	event_base_dispatch(p->base);
}

static struct sockaddr_in address_of(const struct port *p)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(p->number)};
}

static int connect_to(struct port *p, const char *text)
{
	const struct sockaddr_in at = address_of(p);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	turn(p, 20);
	return fd;
}

// Bytes that are there; 0 = it is closed, -1 = nothing yet.
static ssize_t received(int fd)
{
	char buf[4096];
	ssize_t n = recv(fd, buf, sizeof(buf), 0);
	return n < 0 && errno != EAGAIN ? 0 : n;
}

static bool is_closed(int fd)
{
	ssize_t n;
	do
		n = received(fd);
	while (n > 0);
	return n == 0;
}

// The kernel may take its time, on a busy machine.
#define PATIENCE 250

static bool hears(struct port *p, int fd)
{
	ssize_t n = received(fd);
	for (int i = 0; n < 0 && i < PATIENCE; i++) {
		turn(p, 20);
		n = received(fd);
	}
	return n > 0;
}

static bool closes(struct port *p, int fd)
{
	bool is = is_closed(fd);
	for (int i = 0; !is && i < PATIENCE; i++) {
		turn(p, 20);
		is = is_closed(fd);
	}
	return is;
}

// OPS-16
static void ops_16_what_comes_behind_a_request_is_not_read(void **state)
{
	static char flood[1 << 20];
	struct port p;
	open_port(&p);
	int fd = connect_to(&p, GET("/long"));
	long before = rss_kib();
	size_t sent = 0;
	for (int i = 0; i < 200; i++) {
		ssize_t n = send(fd, flood, sizeof(flood), MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		turn(&p, 2);
	}
	assert_true(sent < (size_t)32 << 20);
	assert_true(rss_kib() - before < 16 << 10);
	close(fd);
	close_port(&p);
}

// OPS-16
static void ops_16_a_request_that_drips_has_ten_seconds_in_all(void **state)
{
	struct port p;
	open_port(&p);
	int fd = connect_to(&p, "GET /");
	for (int i = 0; i < 2; i++) {
		now_ns += REQUEST_NS * 9 / 20;
		assert_int_equal(send(fd, "x", 1, MSG_NOSIGNAL), 1);
		turn(&p, 1100);
		assert_false(is_closed(fd));
	}
	now_ns += REQUEST_NS / 10;
	turn(&p, 1100);
	assert_true(closes(&p, fd));
	close(fd);
	close_port(&p);
}

// OPS-16
static void ops_16_an_answer_has_a_minute_and_the_next_request_its_own_time(void **state)
{
	struct port p;
	open_port(&p);
	int slow = connect_to(&p, GET("/long")), kept = connect_to(&p, GET("/"));
	now_ns += REQUEST_NS - 1;
	turn(&p, 1100);
	assert_true(hears(&p, kept));
	assert_int_equal(send(kept, GET("/"), strlen(GET("/")), MSG_NOSIGNAL), strlen(GET("/")));
	turn(&p, 20);
	now_ns += REQUEST_NS - 1;
	turn(&p, 1100);
	assert_true(hears(&p, kept));
	assert_false(is_closed(kept));
	assert_true(hears(&p, slow));
	now_ns += ANSWER_NS - 2 * REQUEST_NS + 2;
	turn(&p, 1100);
	assert_true(closes(&p, kept));
	assert_true(closes(&p, slow));
	close(slow);
	close(kept);
	close_port(&p);
}

// OPS-16
static void ops_16_who_asks_nothing_gives_way_then_the_oldest_answer(void **state)
{
	struct port p;
	int fds[MAX];
	open_port(&p);
	for (int i = 0; i < MAX; i++) {
		fds[i] = connect_to(&p, i < 2 ? GET("/long") : "GET");
		now_ns++;
	}
	static const int order[] = {2, 3, 0, 1};
	for (int i = 0; i < MAX; i++) {
		int next = connect_to(&p, GET("/long"));
		assert_true(hears(&p, next));
		assert_true(closes(&p, fds[order[i]]));
		if (i < 2)
			assert_true(hears(&p, fds[0]) && hears(&p, fds[1]));
		close(fds[order[i]]);
		fds[order[i]] = next;
		now_ns++;
	}
	for (int i = 0; i < MAX; i++)
		close(fds[i]);
	close_port(&p);
}

// OPS-16
static void ops_16_without_a_descriptor_who_comes_waits(void **state)
{
	struct port p;
	struct rlimit before, none;
	open_port(&p);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	const struct sockaddr_in at = address_of(&p);
	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	turn(&p, 20);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(send(fd, GET("/"), strlen(GET("/")), MSG_NOSIGNAL), strlen(GET("/")));
	assert_true(hears(&p, fd));
	close(fd);
	close_port(&p);
}

// FL-70: who is answered has all of it, who comes back on its connection is answered once more.
static void fl_70_who_is_left_behind_is_answered_and_goes(void **state)
{
	struct port p;
	open_port(&p);
	int slow = connect_to(&p, GET("/long")), half = connect_to(&p, "GET / HTTP/1.1\r\n");
	int kept = connect_to(&p, GET("/")), other = dup(connections_listener(p.connections));
	assert_true(hears(&p, kept));
	connections_leave(p.connections);
	assert_int_equal(connections_listener(p.connections), -1);
	turn(&p, 20);
	assert_false(is_closed(kept) || is_closed(half));
	assert_int_equal(send(half, "Host: a\r\n\r\n", 11, MSG_NOSIGNAL), 11);
	assert_true(hears(&p, half));
	assert_int_equal(send(kept, GET("/"), strlen(GET("/")), MSG_NOSIGNAL), strlen(GET("/")));
	assert_true(hears(&p, kept));
	assert_true(closes(&p, kept) && closes(&p, half));
	const size_t whole = (size_t)32 << 20;
	ssize_t n = 0;
	for (size_t len = 0; len < whole; assert_int_equal(n, -1)) { // it is not closed
		turn(&p, 1);
		while ((n = received(slow)) > 0)
			len += (size_t)n;
	}
	int late = connect_to(&p, GET("/")); // the other process's
	turn(&p, 20);
	assert_int_equal(received(late), -1);
	int fds[] = {slow, half, kept, late, other};
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		close(fds[i]);
	close_port(&p);
}

RUN_SUITE("ctrl/metrics/connections",
	cmocka_unit_test(ops_16_what_comes_behind_a_request_is_not_read),
	cmocka_unit_test(ops_16_without_a_descriptor_who_comes_waits),
	cmocka_unit_test(ops_16_a_request_that_drips_has_ten_seconds_in_all),
	cmocka_unit_test(ops_16_an_answer_has_a_minute_and_the_next_request_its_own_time),
	cmocka_unit_test(fl_70_who_is_left_behind_is_answered_and_goes),
	cmocka_unit_test(ops_16_who_asks_nothing_gives_way_then_the_oldest_answer))
