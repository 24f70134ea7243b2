// SPDX-License-Identifier: Apache-2.0
// What the owner hears of requests: views as HTTP/2's, bodies, trailers, and when.
#include "tests/support/check.h"
#include "tests/unit/h1/h1_owner.h"

#include <stdio.h>
#include <string.h>

static struct owner us;

static int set_up(void **state)
{
	int r = owner_init(&us, 64);
	owner_connect(&us);
	return r;
}

static int tear_down(void **state)
{
	owner_fini(&us);
	return 0;
}

static const struct {
	const char *bytes, *log;
} rows[] = {
	// H1-01, H1-05: names in lower case, values trimmed, order and repetition as they came
	{"GET /a?b HTTP/1.1\r\nHost: a.test:80\r\nX-One:  1 \r\nx-two: 2\r\nX-ONE: 3\r\n\r\n",
		"GET http://a.test:80 /a?b [x-one:1] [x-two:2] [x-one:3]\nend\n"},
	// H1-06, H1-07: the target's authority rules
	{"GET hTTps://b.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n", "GET https://b.test /x\nend\n"},
	{"GET http://b.test HTTP/1.1\r\nHost:\r\n\r\n", "GET http://b.test /\nend\n"},
	{"OPTIONS http://b.test HTTP/1.1\r\nHost: b.test\r\n\r\n",
		"OPTIONS http://b.test *\nend\n"},
	{"OPTIONS * HTTP/1.1\r\nHost: b.test\r\n\r\n", "OPTIONS http://b.test *\nend\n"},
	// H1-09: in order, and none behind the last
	{"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
	 "\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a /1\nend\nGET http://a /2\nend\nclosed\n"},
	{"GET /1 HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\nGET /2 HTTP/1.0\r\n"
	 "Host: a\r\nConnection: keep-alive, close\r\n\r\n",
		"GET http://a /1\nend\nGET http://a /2\nend\nclosed\n"},
	// H1-12, H1-13: chunks are joined, their extensions dropped, trailers told
	{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n5;x=y\r\nhello\r\n"
	 "1\r\n!\r\n0\r\nX-Sum: 7\r\nConnection: x\r\n\r\n",
		"POST http://a /\nbody hello!\ntrailers [x-sum:7]\nend\n"},
	{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST http://a /\nend\n"},
	// H1-14: what ends at this hop, and te as HTTP/2 has it
	{"GET / HTTP/1.1\r\nConnection: X-Gone, te, keep-alive,,\r\nHost: a\r\nX-Gone: 1\r\n"
	 "Keep-Alive: 5\r\nProxy-Connection: x\r\nTE: gzip, trailers\r\nX-Stays: 2\r\n\r\n",
		"GET http://a / [x-stays:2] [te:trailers]\nend\n"},
	{"GET / HTTP/1.1\r\nHost: a\r\nTE: gzip\r\n\r\n", "GET http://a /\nend\n"},
	// H1-15: not for a client of 1.0, nor without a body
	{"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\nx",
		"PUT http://a / 1 continue [content-length:1]\nbody x\nend\n"},
	{"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", "PUT http://a /\nend\n"},
	{"PUT / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
		"PUT http://a / 1 [content-length:1]\nbody x\nend\nclosed\n"},
	// H1-16: an upgrade is ignored, with all that belongs to it
	{"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"
	 "HTTP2-Settings: AAMAAABk\r\nOrigin: b\r\n\r\n",
		"GET http://a / [origin:b]\nend\n"},
};

static void requests_become_the_views_of_http2(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		owner_connect(&us);
		owner_feed(&us, rows[i].bytes, strlen(rows[i].bytes), 0);
		assert_string_equal(owner_log(&us), rows[i].log);
	}
}

// H1-23
static void any_two_cuts_are_the_same(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *p = rows[i].bytes;
		size_t len = strlen(p);
		for (size_t a = 1; a < len; a++) {
			for (size_t b = a; b < len; b += 1 + a % 5) {
				owner_connect(&us);
				owner_feed(&us, p, a, 0);
				owner_feed(&us, p + a, b - a, 0);
				owner_feed(&us, p + b, len - b, 0);
				assert_string_equal(owner_log(&us), rows[i].log);
			}
		}
	}
}

static size_t feed(const char *text)
{
	return owner_feed(&us, text, strlen(text), 0);
}

// H1-03: a client that ends its requests by one CRLF too many is idle behind it
static void h1_03_an_empty_line_before_a_request_is_no_part_of_it(void **state)
{
	static const char *const pieces[][2] = {{"\r\n", ""}, {"\r", "\n"}};
	uint16_t status;
	for (size_t i = 0; i < 2; i++) {
		feed("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
		feed(pieces[i][0]);
		feed(pieces[i][1]);
		assert_false(h1_conn_in_head(us.conn));
		assert_int_equal(h1_conn_unfinished(us.conn), 0);
		feed("G");
		assert_true(h1_conn_in_head(us.conn));
		feed("ET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
		assert_int_equal(us.n_requests, 2 * (i + 1));
	}
	feed("\r\n");
	feed("\r\n");
	assert_int_equal(h1_conn_failed(us.conn, &status), H1_BAD_LINE_END);
}

// H1-09: bytes behind it stay with the owner, who must not lose them
static void h1_09_a_request_waits_for_the_answer_before_it(void **state)
{
	const char *first = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n", *second = "GET /2 HTTP/1.1\r\n";
	const struct h1_message answer = {.status = 200, .content_length = -1, .end_stream = true};
	us.leaves = true;
	assert_int_equal(feed(first), strlen(first));
	assert_int_equal(feed(second), 0);
	assert_int_equal(us.n_requests, 1);
	assert_true(h1_conn_send_message(us.conn, &answer));
	assert_int_equal(feed(second), strlen(second));
	assert_true(h1_conn_in_head(us.conn));
	assert_int_equal(feed("Host: a\r\n\r\n"), 11);
	assert_int_equal(us.n_requests, 2);
	us.leaves = false;
}

// H1-09
static void h1_09_nothing_waits_behind_the_last_request(void **state)
{
	us.leaves = true;
	feed("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
	assert_int_equal(feed("GET"), 3);
	assert_true(h1_conn_busy(us.conn));
	us.leaves = false;
}

static void a_body_stops_at_the_window_and_goes_on_with_credit(void **state)
{
	static const char head[] = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n";
	static char body[100000];
	memset(body, 'b', sizeof(body));
	assert_int_equal(feed(head), strlen(head));
	h1_conn_set_window(us.conn, 65536);
	assert_int_equal(owner_feed(&us, body, sizeof(body), 1000), 65536);
	assert_int_equal(owner_feed(&us, body, 1, 0), 0);
	assert_true(h1_conn_holds(us.conn));
	h1_conn_set_window(us.conn, 40000);
	assert_false(h1_conn_holds(us.conn));
	assert_int_equal(owner_feed(&us, body, sizeof(body) - 65536, 0), sizeof(body) - 65536);
	assert_string_equal(owner_log(&us) + us.log_len - 6, "b\nend\n");
	assert_false(h1_conn_busy(us.conn));
}

// H1-08: both bounds are of the list as well as of the bytes
static void h1_08_a_list_counts_32_bytes_a_field(void **state)
{
	static char bytes[1 << 17];
	for (size_t value = 440; value <= 460; value += 20) {
		size_t len = (size_t)sprintf(bytes, "GET / HTTP/1.1\r\nHost: a\r\n");
		for (int i = 0; i < 126; i++) {
			len += (size_t)sprintf(bytes + len, "x: ");
			memset(bytes + len, 'v', value);
			len += value;
			len += (size_t)sprintf(bytes + len, "\r\n");
		}
		len += (size_t)sprintf(bytes + len, "\r\n");
		assert_true(len < OWNER_HEADER_BYTES);
		uint16_t status;
		owner_connect(&us);
		owner_feed(&us, bytes, len, 0);
		assert_int_equal(h1_conn_failed(us.conn, &status),
			value == 440 ? H1_WELL_FORMED : H1_TOO_LARGE);
	}
}

// OPS-252: what could be read, whatever pieces it came in, and what is behind the fault, too.
static const struct {
	const char *bytes;
	enum h1_malformed why; // WELL_FORMED = its end does not come
	const char *known;
} unfit[] = {
	{"BAD METHOD /mark HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n", H1_BAD_REQUEST_LINE,
		"BAD a METHOD mine 1"},
	{"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", H1_BAD_REQUEST_LINE, "GET a /a  1"},
	{"get / HTTP/1.1\r\nHost: a\r\n\r\n", H1_BAD_REQUEST_LINE, " a   1"},
	{"GET /a HTTP/2.0\r\nHost: a\r\n\r\n", H1_BAD_VERSION, "GET a /a  1"},
	{"GET /a HTTP/1.0\r\nX-Request-Id: mine\r\n\r\n", H1_BAD_HOST, "GET  /a mine 0"},
	{"CONNECT b:1 HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n", H1_CONNECT,
		"CONNECT b:1  mine 1"},
	{"GET a HTTP/1.1\r\nHost: a\r\n\r\n", H1_BAD_TARGET, "GET a a  1"},
	{"GET /a HTTP/1.1\r\nb\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n", H1_BAD_NAME,
		"GET a /a mine 1"},
	{"GET /a HTTP/1.1\r\nX-Request-Id: a\1\r\nHost: a\r\n\r\n", H1_BAD_VALUE, "GET a /a  1"},
	{"GET /a HTTP/1.1\nHost: a\r\n\r\n", H1_BAD_LINE_END, "GET  /a  1"},
	{"GET /a HTTP/1.1\r\nX-Request-Id: mine\r\nHost: a\nx", H1_BAD_LINE_END, "GET  /a mine 1"},
	{"\r\n\r\nGET /a HTTP/1.1\r\n", H1_BAD_LINE_END, "    1"},
	{"\r\nGET /a HTTP/1.1\r\nHost: a\r\nX-Request-Id: mi", H1_WELL_FORMED, "GET a /a  1"},
	{"GET /a", H1_WELL_FORMED, "GET  /a  1"},
	{"G", H1_WELL_FORMED, "    1"},
};

static struct str id_of(const struct h1_message *m)
{
	for (size_t i = 0; i < m->n_fields; i++)
		if (str_eq(m->fields[i].name, STR("x-request-id")))
			return m->fields[i].value;
	return (struct str){0};
}

static void assert_known(const char *expected)
{
	char text[128];
	const struct h1_message *m = h1_conn_known(us.conn);
	struct str id = id_of(m);
	snprintf(text, sizeof(text), "%.*s %.*s %.*s %.*s %u", (int)m->method.len, m->method.p,
		(int)m->authority.len, m->authority.p, (int)m->path.len, m->path.p, (int)id.len,
		id.p, h1_conn_minor(us.conn));
	assert_string_equal(text, expected);
}

static void what_is_known_of_a_request_that_is_refused(void **state)
{
	for (size_t i = 0; i < sizeof(unfit) / sizeof(unfit[0]); i++) {
		const char *bytes = unfit[i].bytes;
		for (int step = 1; step <= 100; step *= 10) {
			size_t at = 0, len = strlen(bytes);
			uint16_t status;
			owner_connect(&us);
			while (at < len && !h1_conn_failed(us.conn, &status)) {
				size_t n = len - at < (size_t)step ? len - at : (size_t)step;
				at += h1_conn_feed(us.conn, (const uint8_t *)bytes + at, n);
			}
			assert_int_equal(h1_conn_failed(us.conn, &status), unfit[i].why);
			assert_known(unfit[i].known);
			assert_int_not_equal(h1_malformed_text(unfit[i].why).len, 0);
		}
	}
}

// Of one that is too long as much as was looked at.
static void what_is_known_of_a_request_that_is_too_long(void **state)
{
	static char bytes[1 << 17];
	uint16_t status;
	size_t len = (size_t)sprintf(bytes, "GET /a HTTP/1.1\r\nX-Request-Id: mine\r\nx: ");
	memset(bytes + len, 'v', sizeof(bytes) - len);
	owner_connect(&us);
	h1_conn_feed(us.conn, (const uint8_t *)bytes, sizeof(bytes));
	assert_int_equal(h1_conn_failed(us.conn, &status), H1_TOO_LARGE);
	assert_known("GET  /a mine 1");
	memset(bytes + 5, 'v', sizeof(bytes) - 5);
	owner_connect(&us);
	h1_conn_feed(us.conn, (const uint8_t *)bytes, 1000);
	h1_conn_feed(us.conn, (const uint8_t *)bytes + 1000, sizeof(bytes) - 1000);
	assert_int_equal(h1_conn_failed(us.conn, &status), H1_TARGET_TOO_LONG);
	const struct h1_message *m = h1_conn_known(us.conn);
	assert_true(str_eq(m->method, STR("GET")));
	assert_int_equal(m->path.len, OWNER_HEADER_BYTES - 4);
}

// Each pool may run out at any piece; what was taken comes back (tear_down looks).
static void without_chunks_a_head_in_pieces_is_refused(void **state)
{
	const char *bytes = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
	uint16_t status;
	void *taken[64];
	for (size_t i = 0; i < 64; i++)
		taken[i] = pool_take(&us.chunks);
	us.leaves = true;
	owner_feed(&us, bytes, strlen(bytes), 0); // whole: takes none
	assert_int_equal(us.n_requests, 1);
	for (size_t i = 0; i < 64; i++)
		pool_put(&us.chunks, taken[i]);
	owner_connect(&us);
	for (size_t i = 0; i < 56; i++) // the last ones are for the answer
		taken[i] = pool_take(&us.chunks);
	owner_feed(&us, bytes, strlen(bytes), 10);
	assert_int_equal(h1_conn_failed(us.conn, &status), H1_NO_MEMORY);
	assert_int_equal(status, 503);
	assert_string_equal(owner_log(&us), "503\nclosed\n");
	assert_non_null(strstr(owner_output(&us), "HTTP/1.1 503 "));
	for (size_t i = 0; i < 56; i++)
		pool_put(&us.chunks, taken[i]);
	us.leaves = false;
}

static void only_so_many_connections(void **state)
{
	struct h1_conn *second, *third;
	const struct h1_events none = {0};
	second = h1_conn_new(us.ctx, &none, &us.out, STR("http"), NULL);
	assert_non_null(second);
	third = h1_conn_new(us.ctx, &none, &us.out, STR("http"), NULL);
	assert_null(third);
	h1_conn_free(second);
}

static void counters_name_each_cause(void **state)
{
	struct counter_set set = h1_context_counters(us.ctx);
	bool found = false;
	owner_connect(&us);
	feed("GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n");
	for (uint32_t i = 0; i < set.n; i++) {
		if (strcmp(set.names[i], "malformed_name"))
			continue;
		found = true;
		assert_int_equal(counter_read(&set.values[i]), 1);
	}
	assert_true(found);
}

int main(void)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test_setup_teardown(
			requests_become_the_views_of_http2, set_up, tear_down),
		cmocka_unit_test_setup_teardown(any_two_cuts_are_the_same, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			h1_03_an_empty_line_before_a_request_is_no_part_of_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			h1_09_a_request_waits_for_the_answer_before_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			h1_09_nothing_waits_behind_the_last_request, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_body_stops_at_the_window_and_goes_on_with_credit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			h1_08_a_list_counts_32_bytes_a_field, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_is_known_of_a_request_that_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_is_known_of_a_request_that_is_too_long, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			without_chunks_a_head_in_pieces_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_so_many_connections, set_up, tear_down),
		cmocka_unit_test_setup_teardown(counters_name_each_cause, set_up, tear_down),
	};
	return cmocka_run_group_tests_name("dataplane/h1 requests", suite, NULL, NULL);
}
