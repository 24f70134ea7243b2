// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/connect_answer.h"
#include "lb/base/str.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

#define MORE PROXY_CONNECT_MORE
#define OPEN PROXY_CONNECT_OPEN
#define REFUSED PROXY_CONNECT_REFUSED
#define MALFORMED PROXY_CONNECT_MALFORMED
#define TOO_LONG PROXY_CONNECT_TOO_LONG
#define MAX PROXY_CONNECT_ANSWER_MAX

struct row {
	struct str bytes;
	enum proxy_connect_state state;
	uint16_t status; // REFUSED, OPEN
	size_t rest; // OPEN: bytes behind the answer
};

// In pieces of this size; each is a block of its own, so that what is read beyond it is found.
static struct proxy_connect_answer feed(struct str s, size_t piece, size_t *used)
{
	struct proxy_connect_answer a = {0};
	*used = 0;
	while (*used < s.len && a.state == MORE) {
		size_t n = s.len - *used < piece ? s.len - *used : piece, taken;
		uint8_t *copy = malloc(n);
		memcpy(copy, s.p + *used, n);
		enum proxy_connect_state state = proxy_connect_answer_feed(&a, copy, n, &taken);
		free(copy);
		assert_int_equal(state, a.state);
		assert_true(taken <= n && (state != MORE || taken == n));
		*used += taken;
	}
	return a;
}

static void check(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t piece = 1; piece <= rows[i].bytes.len + 1; piece++) {
			size_t used;
			const struct proxy_connect_answer a = feed(rows[i].bytes, piece, &used);
			if (a.state != (uint8_t)rows[i].state)
				fail_msg("row %zu in pieces of %zu: %d", i, piece, a.state);
			if (rows[i].status)
				assert_int_equal(a.status, rows[i].status);
			if (a.state == OPEN)
				assert_int_equal(rows[i].bytes.len - used, rows[i].rest);
		}
	}
}
#define CHECK_ROWS(rows) check(rows, sizeof(rows) / sizeof((rows)[0]))

// HC-10, HC-12
static void a_status_of_2xx_opens_the_way(void **state)
{
	static const struct row rows[] = {
		{STR("HTTP/1.1 200 Connection established\r\n\r\n"), OPEN, 200},
		{STR("HTTP/1.0 200 OK\r\nProxy-agent: tinyproxy/1.11\r\n\r\n"), OPEN, 200},
		{STR("HTTP/1.1 200\r\n\r\n"), OPEN, 200},
		{STR("HTTP/1.1 200 \r\n\r\n"), OPEN, 200},
		{STR("HTTP/1.1 299 caf\xe9\t!\r\na:\r\nb: \t c\xff \r\n\r\n"), OPEN, 299},
		{STR("HTTP/1.1 200 OK\r\n\r\n\x16\x03\x03"), OPEN, 200, 3},
		{STR("HTTP/1.1 200 OK\r\n\r\n\r\n"), OPEN, 200, 2},
		// RFC 9110 9.3.6: what they say of a body is not looked at.
		{STR("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd"), OPEN, 200, 4},
		{STR("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"), OPEN, 200,
			5},
		// RFC 9110 15.2: any number of these before.
		{STR("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nLink: y\r\n\r\n"
		     "HTTP/1.1 204 none\r\n\r\nx"),
			OPEN, 204, 1},
	};
	CHECK_ROWS(rows);
}

// HC-11
static void any_other_status_refuses_at_the_end_of_its_line(void **state)
{
	static const struct row rows[] = {
		{STR("HTTP/1.1 407 Proxy Authentication Required\r\n"), REFUSED, 407},
		{STR("HTTP/1.1 407 Proxy Authentication Required\r"), MORE},
		{STR("HTTP/1.0 502 Bad Gateway\r\nendless: "), REFUSED, 502},
		{STR("HTTP/1.1 301 Moved\r\nLocation: http://x/\r\n\r\n"), REFUSED, 301},
		{STR("HTTP/1.1 101 Switching Protocols\r\n"), REFUSED, 101},
		{STR("HTTP/1.1 999\r\n"), REFUSED, 999},
		{STR("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 no\r\n"), REFUSED, 503},
	};
	CHECK_ROWS(rows);
}

// HC-11
static void what_is_no_answer_is_malformed(void **state)
{
	static const struct row rows[] = {
		{STR("HTTP/2.0 200 OK\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.2 200 OK\r\n\r\n"), MALFORMED},
		{STR("http/1.1 200 OK\r\n\r\n"), MALFORMED},
		{STR("ICY 200 OK\r\n\r\n"), MALFORMED},
		{STR(" HTTP/1.1 200 OK\r\n\r\n"), MALFORMED},
		{STR("\r\nHTTP/1.1 200 OK\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.1  200 OK\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 20 OK\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 2000 OK\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 099 OK\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 2x0 OK\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 -20 OK\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 200\tOK\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 200 O\0K\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 200 OK\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 200 OK\r\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 200 OK\rx"), MALFORMED},
		{STR("HTTP/1.1 200 OK\r\n folded: x\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 200 OK\r\na : b\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 200 OK\r\n: b\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 200 OK\r\nno colon\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 200 OK\r\na: b\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 200 OK\r\na: \x01\r\n\r\n"), MALFORMED},
		{STR("HTTP/1.1 200 OK\r\n\rx"), MALFORMED},
		{STR("HTTP/1.1 200 OK\r\n\n"), MALFORMED},
		{STR("HTTP/1.1 100 a\r\n\r\nx"), MALFORMED},
		{STR("SSH-2.0-OpenSSH_9.2\r\n"), MALFORMED},
		{STR("\x15\x03\x01\0\x02\x02\x50"), MALFORMED},
		{STR("\0"), MALFORMED},
	};
	CHECK_ROWS(rows);
}

static void what_is_cut_anywhere_is_waited_for(void **state)
{
	static const char whole[] = "HTTP/1.1 100 a\r\nb: c\r\n\r\nHTTP/1.0 200 OK\r\nd: e\r\n\r\n";
	for (size_t n = 0; n < sizeof(whole) - 1; n++) {
		const struct row row = {{whole, n}, MORE};
		check(&row, 1);
	}
}

// HC-11: a whole answer of the limit's length is taken, one byte more is not.
static void an_answer_has_a_limit(void **state)
{
	static const char begin[] = "HTTP/1.1 200 OK\r\nx: ";
	char text[MAX + 64];
	size_t used, n = sizeof(begin) - 1;
	memset(text, 'a', sizeof(text));
	memcpy(text, begin, n);
	assert_int_equal(feed((struct str){text, MAX - 1}, 7, &used).state, MORE);
	assert_int_equal(feed((struct str){text, sizeof(text)}, 7, &used).state, TOO_LONG);
	assert_int_equal(used, MAX);
	memcpy(text + MAX - 4, "\r\n\r\nmore", 8);
	assert_int_equal(feed((struct str){text, sizeof(text)}, MAX + 64, &used).state, OPEN);
	assert_int_equal(used, MAX);
	memcpy(text + MAX - 4, "a\r\n\r\n", 5);
	assert_int_equal(feed((struct str){text, sizeof(text)}, 1, &used).state, TOO_LONG);
}

// HC-11: all of them count together.
static void informational_answers_do_not_go_on_for_ever(void **state)
{
	static const char one[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct proxy_connect_answer a = {0};
	size_t used, n = 0;
	while (a.state == MORE && n <= MAX) {
		proxy_connect_answer_feed(&a, (const uint8_t *)one, sizeof(one) - 1, &used);
		n += used;
	}
	assert_int_equal(a.state, TOO_LONG);
	assert_int_equal(n, MAX);
}

RUN_SUITE("proxy/connect_answer", cmocka_unit_test(a_status_of_2xx_opens_the_way),
	cmocka_unit_test(any_other_status_refuses_at_the_end_of_its_line),
	cmocka_unit_test(what_is_no_answer_is_malformed),
	cmocka_unit_test(what_is_cut_anywhere_is_waited_for),
	cmocka_unit_test(an_answer_has_a_limit),
	cmocka_unit_test(informational_answers_do_not_go_on_for_ever))
