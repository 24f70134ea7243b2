// SPDX-License-Identifier: Apache-2.0
// Answers: framing by what the request and the answer are, and when the connection ends.
#include "tests/support/check.h"
#include "tests/unit/h1/h1_owner.h"

#include <string.h>

static struct owner us;

static int set_up(void **state)
{
	int r = owner_init(&us, 64);
	owner_connect(&us);
	us.leaves = true;
	return r;
}

static int tear_down(void **state)
{
	owner_fini(&us);
	return 0;
}

#define HOST "Host: a\r\n"
#define GET11 "GET / HTTP/1.1\r\n" HOST "\r\n"
#define GET10 "GET / HTTP/1.0\r\n" HOST "\r\n"
#define KEEP10 "GET / HTTP/1.0\r\n" HOST "Connection: keep-alive\r\n\r\n"
#define HEAD11 "HEAD / HTTP/1.1\r\n" HOST "\r\n"
#define LAST11 "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"
#define TRAILERS11 "GET / HTTP/1.1\r\n" HOST "Connection: TE\r\nTE: trailers\r\n\r\n"
#define POST11 "POST / HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nx"

static const struct row {
	const char *name, *request;
	uint16_t status;
	int64_t length;
	const char *body; // NULL = the head ends it
	const char *wire;
	bool closes;
} rows[] = {
	{"H1-17: length kept", GET11, 200, 5, "hello",
		"HTTP/1.1 200 OK\r\nx: y\r\ncontent-length: 5\r\n\r\nhello", false},
	{"H1-17: chunked without length", GET11, 200, -1, "hello",
		"HTTP/1.1 200 OK\r\nx: y\r\ntransfer-encoding: chunked\r\n\r\n"
		"5\r\nhello\r\n0\r\n\r\n",
		false},
	{"H1-17: nothing follows", GET11, 200, -1, NULL,
		"HTTP/1.1 200 OK\r\nx: y\r\ncontent-length: 0\r\n\r\n", false},
	{"H1-17: an empty chunked body", GET11, 200, -1, "",
		"HTTP/1.1 200 OK\r\nx: y\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", false},
	{"H1-17: no chunks for 1.0", GET10, 200, -1, "hello",
		"HTTP/1.1 200 OK\r\nx: y\r\nconnection: close\r\n\r\nhello", true},
	{"H1-17: nor for 1.0 that wants to stay", KEEP10, 200, -1, "hello",
		"HTTP/1.1 200 OK\r\nx: y\r\nconnection: close\r\n\r\nhello", true},
	{"H1-20: 1.0 stays with a length", KEEP10, 200, 5, "hello",
		"HTTP/1.1 200 OK\r\nx: y\r\ncontent-length: 5\r\nconnection: keep-alive\r\n\r\n"
		"hello",
		false},
	{"H1-20: 1.0 closes", GET10, 200, 5, "hello",
		"HTTP/1.1 200 OK\r\nx: y\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello",
		true},
	{"H1-20: the last request", LAST11, 200, 5, "hello",
		"HTTP/1.1 200 OK\r\nx: y\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello",
		true},
	{"H1-20: answered before it has come", POST11, 413, -1, NULL,
		"HTTP/1.1 413 Content Too Large\r\nx: y\r\ncontent-length: 0\r\n"
		"connection: close\r\n\r\n",
		true},
	{"H1-20: ended before it has come", POST11, 200, 5, "hello",
		"HTTP/1.1 200 OK\r\nx: y\r\ncontent-length: 5\r\n\r\nhello", true},
	{"H1-20: shorter than it said", GET11, 200, 9, "hello",
		"HTTP/1.1 200 OK\r\nx: y\r\ncontent-length: 9\r\n\r\nhello", true},
	{"H1-19: HEAD has a length and no body", HEAD11, 200, 5, "hello",
		"HTTP/1.1 200 OK\r\nx: y\r\ncontent-length: 5\r\n\r\n", false},
	{"H1-19: HEAD without length", HEAD11, 200, -1, "hello", "HTTP/1.1 200 OK\r\nx: y\r\n\r\n",
		false},
	{"H1-19: 204", GET11, 204, -1, "hello", "HTTP/1.1 204 No Content\r\nx: y\r\n\r\n", false},
	{"H1-19: 204 says no length", GET11, 204, 0, NULL,
		"HTTP/1.1 204 No Content\r\nx: y\r\n\r\n", false},
	{"H1-19: 304 says one", GET11, 304, 5, NULL,
		"HTTP/1.1 304 Not Modified\r\nx: y\r\ncontent-length: 5\r\n\r\n", false},
	{"H1-17: an unknown status", GET11, 299, 0, NULL,
		"HTTP/1.1 299 \r\nx: y\r\ncontent-length: 0\r\n\r\n", false},
	{"H1-18: no trailers unasked", GET11, 200, -1, "t",
		"HTTP/1.1 200 OK\r\nx: y\r\ntransfer-encoding: chunked\r\n\r\n"
		"1\r\nt\r\n0\r\n\r\n",
		false},
	{"H1-18: trailers", TRAILERS11, 200, -1, "t",
		"HTTP/1.1 200 OK\r\nx: y\r\ntransfer-encoding: chunked\r\n\r\n"
		"1\r\nt\r\n0\r\nsum: 7\r\n\r\n",
		false},
};

// Of the fields, those that are ours to write are not taken (H1-14).
static const struct field fields[] = {{.name = STR("content-length"), .value = STR("77")},
	{.name = STR("connection"), .value = STR("x")}, {.name = STR("x"), .value = STR("y")},
	{.name = STR("transfer-encoding"), .value = STR("gzip")}};
static const struct field trailer = {.name = STR("sum"), .value = STR("7")};

static void send(const struct row *r, bool by_buf)
{
	struct h1_message m = {.kind = H1_RESPONSE,
		.status = r->status,
		.content_length = r->length,
		.end_stream = !r->body,
		.fields = fields,
		.n_fields = 4};
	const struct h1_message trailers = {.kind = H1_TRAILERS, .fields = &trailer, .n_fields = 1};
	assert_true(h1_conn_send_message(us.conn, &m));
	if (!r->body)
		return;
	size_t len = strlen(r->body);
	struct buf b = {0};
	if (by_buf) {
		assert_true(buf_append(&b, &us.chunks, r->body, len));
		assert_true(h1_conn_send_buf(us.conn, &b));
	} else {
		assert_true(h1_conn_send_data(us.conn, (const uint8_t *)r->body, len));
	}
	bool has_trailers = strcmp(r->body, "t") == 0;
	assert_true(h1_conn_send_end(us.conn, has_trailers ? &trailers : NULL));
}

static void answers_are_framed_for_the_client_that_asked(void **state)
{
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i / 2];
		owner_connect(&us);
		owner_feed(&us, r->request, strlen(r->request), 0);
		assert_int_equal(us.n_requests, 1);
		send(r, i % 2);
		assert_string_equal(owner_output(&us), r->wire);
		if (h1_conn_closes(us.conn) != r->closes)
			fail_msg("%s: closes or not", r->name);
		assert_false(h1_conn_busy(us.conn));
	}
}

static void ask(const char *request)
{
	owner_connect(&us);
	owner_feed(&us, request, strlen(request), 0);
}

// H1-19
static void informational_answers_are_for_http11_alone(void **state)
{
	const struct h1_message m = {.kind = H1_INFORMATIONAL, .status = 100, .content_length = -1};
	ask(GET11);
	assert_true(h1_conn_send_message(us.conn, &m));
	assert_string_equal(owner_output(&us), "HTTP/1.1 100 Continue\r\n\r\n");
	assert_true(h1_conn_busy(us.conn));
	ask(GET10);
	assert_true(h1_conn_send_message(us.conn, &m));
	assert_int_equal(us.out.len, 0);
	const struct h1_message switching = {.status = 101, .content_length = -1};
	assert_false(h1_conn_send_message(us.conn, &switching));
}

// H1-21
static void h1_21_text_that_would_cut_a_line_is_not_written(void **state)
{
	static const struct field bad[] = {{.name = STR("x"), .value = STR("a\r\nset-cookie: b")},
		{.name = STR("x\r\ny"), .value = STR("a")}, {.name = STR(""), .value = STR("a")},
		{.name = STR("x"), .value = STR("a\0")}, {.name = STR("x: y"), .value = STR("a")}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct h1_message m = {.status = 200,
			.content_length = -1,
			.end_stream = true,
			.fields = &bad[i],
			.n_fields = 1};
		ask(GET11);
		assert_false(h1_conn_send_message(us.conn, &m));
		assert_int_equal(us.out.len, 0);
		const struct field id = {.name = STR("x-request-id"), .value = STR("mine")};
		assert_true(h1_conn_refuse(us.conn, 502, &id, 1));
		assert_string_equal(owner_output(&us),
			"HTTP/1.1 502 Bad Gateway\r\nx-request-id: mine\r\ncontent-length: 0\r\n"
			"connection: close\r\n\r\n");
	}
}

// H1-17: the order of calls, and more than was announced
static void what_does_not_fit_the_answer_is_refused(void **state)
{
	const struct h1_message m = {.status = 200, .content_length = 2};
	const uint8_t body[] = "abc";
	owner_connect(&us);
	assert_false(h1_conn_send_message(us.conn, &m));
	ask(GET11);
	assert_false(h1_conn_send_data(us.conn, body, 1));
	assert_false(h1_conn_send_end(us.conn, NULL));
	assert_true(h1_conn_send_message(us.conn, &m));
	assert_false(h1_conn_send_message(us.conn, &m));
	assert_false(h1_conn_refuse(us.conn, 500, NULL, 0));
	assert_false(h1_conn_send_data(us.conn, body, 3));
	assert_true(h1_conn_send_data(us.conn, body, 2));
	assert_true(h1_conn_send_end(us.conn, NULL));
	assert_false(h1_conn_closes(us.conn));
}

// H1-20
static void a_drain_lets_the_open_request_end_and_says_so(void **state)
{
	owner_connect(&us);
	ask(GET11);
	h1_conn_drain(us.conn);
	assert_false(h1_conn_closes(us.conn));
	send(&rows[0], false);
	assert_non_null(strstr(owner_output(&us), "\r\nconnection: close\r\n"));
	assert_true(h1_conn_closes(us.conn));
	owner_connect(&us);
	owner_feed(&us, GET11, 5, 0);
	h1_conn_drain(us.conn);
	assert_false(h1_conn_closes(us.conn));
	owner_feed(&us, &GET11[5], sizeof(GET11) - 6, 0);
	assert_int_equal(us.n_requests, 1);
}

// H1-17: a body of many chunks of memory, and one that no chunk of memory holds
static void large_answers_come_whole(void **state)
{
	static char body[20000];
	static const struct field big = {.name = STR("x"), .value = {body, 5000}};
	const struct h1_message m = {
		.status = 200, .content_length = -1, .fields = &big, .n_fields = 1};
	memset(body, 'b', sizeof(body));
	ask(GET11);
	assert_true(h1_conn_send_message(us.conn, &m));
	assert_true(h1_conn_send_data(us.conn, (const uint8_t *)body, sizeof(body)));
	assert_true(h1_conn_send_end(us.conn, NULL));
	const char *out = owner_output(&us);
	const char *at = strstr(out, "\r\n\r\n4e20\r\nb");
	assert_non_null(at);
	assert_int_equal(strlen(at), 4 + 6 + sizeof(body) + 2 + 5);
}

static void without_chunks_nothing_of_a_head_is_written(void **state)
{
	void *taken[64];
	const struct h1_message m = {.status = 200, .content_length = -1, .end_stream = true};
	ask(GET11);
	for (size_t i = 0; i < 64; i++)
		taken[i] = pool_take(&us.chunks);
	assert_false(h1_conn_send_message(us.conn, &m));
	for (size_t i = 0; i < 64; i++)
		pool_put(&us.chunks, taken[i]);
	assert_true(h1_conn_busy(us.conn));
	assert_true(h1_conn_send_message(us.conn, &m));
	assert_false(h1_conn_closes(us.conn));
}

int main(void)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(answers_are_framed_for_the_client_that_asked),
		cmocka_unit_test(informational_answers_are_for_http11_alone),
		cmocka_unit_test(h1_21_text_that_would_cut_a_line_is_not_written),
		cmocka_unit_test(what_does_not_fit_the_answer_is_refused),
		cmocka_unit_test(a_drain_lets_the_open_request_end_and_says_so),
		cmocka_unit_test(large_answers_come_whole),
		cmocka_unit_test(without_chunks_nothing_of_a_head_is_written),
	};
	return cmocka_run_group_tests_name("dataplane/h1 answers", suite, set_up, tear_down);
}
