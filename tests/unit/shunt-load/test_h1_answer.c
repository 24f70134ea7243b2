// SPDX-License-Identifier: Apache-2.0
#include "tests/support/check.h"
#include "tools/shunt-load/h1_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct h1_answer answer;
static char heard[1024];

static void on_head(void *user, uint16_t status)
{
	size_t len = strlen(heard);
	snprintf(heard + len, sizeof(heard) - len, "%u ", status);
}

static void on_data(void *user, const uint8_t *p, size_t len)
{
	assert_true(len > 0 && strlen(heard) + len < sizeof(heard));
	strncat(heard, (const char *)p, len);
}

static const struct h1_answer_events events = {.on_head = on_head, .on_data = on_data};

// In pieces of `step` bytes. Returns how many bytes were taken.
static size_t feed(const char *bytes, size_t len, size_t step)
{
	size_t at = 0, n = step;
	h1_answer_init(&answer);
	heard[0] = '\0';
	while (at < len && n == step) {
		step = len - at < step ? len - at : step;
		n = h1_answer_feed(&answer, (const uint8_t *)bytes + at, step, &events, NULL);
		at += n;
	}
	return at;
}

#define OK "HTTP/1.1 200 OK\r\n"

static void an_answer_is_the_same_however_it_is_cut(void **state)
{
	static const struct {
		const char *bytes, *heard;
		bool closes;
		size_t n_behind; // bytes that are not of it
	} rows[] = {
		{OK "content-length: 5\r\n\r\nhello", "200 hello", false, 0},
		{OK "Content-Length:5\r\nX: \r\n\r\nhelloHTTP", "200 hello", false, 4},
		{OK "content-length: 0\r\n\r\n", "200 ", false, 0},
		{"HTTP/1.1 503 \r\ncontent-length: 2\r\n\r\nno", "503 no", false, 0},
		{"HTTP/1.1 204 None\r\n\r\n", "204 ", false, 0},
		{"HTTP/1.1 304 Same\r\ncontent-length: 9\r\n\r\n", "304 ", false, 0},
		{"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Hints\r\nlink: x\r\n\r\n" OK
		 "content-length: 1\r\n\r\nx",
			"200 x", false, 0},
		{OK "transfer-encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "200 hello", false,
			0},
		{OK "transfer-encoding: chunked\r\n\r\n"
		    "003;a=b\r\nhel\r\nA ; q=\"x\"\r\nlo, world!\r\n000\r\nx-sum: 1\r\n\r\nmore",
			"200 hello, world!", false, 4},
		{OK "transfer-encoding: chunked\r\n\r\n0\r\n\r\n", "200 ", false, 0},
		{OK "connection: close\r\ncontent-length: 1\r\n\r\nx", "200 x", true, 0},
		{OK "connection: upgrade, Close\r\ncontent-length: 1\r\n\r\nx", "200 x", true, 0},
		{OK "connection: keep-alive\r\ncontent-length: 1\r\n\r\nx", "200 x", false, 0},
		{OK "x-connection: close\r\ncontent-length: 1\r\n\r\nx", "200 x", false, 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t len = strlen(rows[i].bytes);
		for (size_t step = 1; step <= len; step++) {
			size_t n = feed(rows[i].bytes, len, step);
			if (!h1_answer_has_ended(&answer))
				fail_msg("row %zu by %zu: %s", i, step, answer.why);
			assert_null(h1_answer_malformed(&answer));
			assert_string_equal(heard, rows[i].heard);
			assert_int_equal(len - n, rows[i].n_behind);
			assert_int_equal(h1_answer_closes(&answer), rows[i].closes);
		}
	}
}

static void what_could_be_read_in_two_ways_is_malformed(void **state)
{
	static const char *const rows[][2] = {
		{"HTTP/1.0 200 OK\r\n", "no status line"},
		{"HTTP/1.1 200\r\n", "no status line"},
		{"HTTP/1.1  200 OK\r\n", "no status line"},
		{"HTTP/1.1 20 OK\r\n", "no status line"},
		{"HTTP/1.1 099 OK\r\n", "no status line"},
		{"HTTP/1.1 200\tOK\r\n", "no status line"},
		{"HTTP/1.1 2000 OK\r\n", "no status line"},
		{"HTTP/1.1 200 O\x01K\r\n", "no status line"},
		{"HTTP/1.1 101 Switching\r\n", "no status line"},
		{"PRI * HTTP/2.0\r\n", "no status line"},
		{"\r\n", "no status line"},
		{"HTTP/1.1 200 OK\n", "without CR"},
		{OK "a: b\n", "without CR"},
		{OK "a b\r\n", "not a field"},
		{OK "a : b\r\n", "not a field"},
		{OK ": b\r\n", "not a field"},
		{OK "a: b\r\n c\r\n", "not a field"},
		{OK "a: b\x01\r\n", "control byte"},
		{OK "a: b\rc\r\n", "control byte"},
		{OK "\r\n", "where the body ends"},
		{OK "connection: close\r\n\r\n", "where the body ends"},
		{OK "content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", "both"},
		{OK "content-length: 1\r\ncontent-length: 1\r\n", "content-length is"},
		{OK "content-length: 1, 1\r\n", "content-length is"},
		{OK "content-length: -1\r\n", "content-length is"},
		{OK "content-length: +1\r\n", "content-length is"},
		{OK "content-length:\r\n", "content-length is"},
		{OK "content-length: 9223372036854775808\r\n", "content-length is"},
		{OK "transfer-encoding: gzip, chunked\r\n", "transfer-encoding is"},
		{OK "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
			"transfer-encoding is"},
		{"HTTP/1.1 100 Go\r\ncontent-length: 0\r\n", "where none can be"},
#define CHUNKED OK "transfer-encoding: chunked\r\n\r\n"
		{CHUNKED "\r\n", "size is not a number"},
		{CHUNKED "x\r\n", "size is not a number"},
		{CHUNKED "0x1\r\n", "size is not a number"},
		{CHUNKED " 1\r\n", "size is not a number"},
		{CHUNKED "1 \r\n", "size is not a number"},
		{CHUNKED "1 x\r\n", "size is not a number"},
		{CHUNKED "1;\x01\r\n", "size is not a number"},
		{CHUNKED "1000000000000000\r\n", "size is not a number"},
		{CHUNKED "1\r\nxy\r\n", "longer than its size"},
		{CHUNKED "1\r\nx\n", "without CR"},
		{CHUNKED "0\r\ncontent-length: 3\r\n", "where none can be"},
		{CHUNKED "0\r\ntransfer-encoding: chunked\r\n", "where none can be"},
		{CHUNKED "0\r\nno field\r\n", "not a field"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t len = strlen(rows[i][0]);
		for (size_t step = 1; step <= len; step++) {
			feed(rows[i][0], len, step);
			const char *why = h1_answer_malformed(&answer);
			if (!why || !strstr(why, rows[i][1]))
				fail_msg("row %zu by %zu: %s", i, step, why ? why : "taken");
			assert_false(h1_answer_has_ended(&answer));
		}
	}
}

static void what_is_cut_has_not_ended(void **state)
{
	static const char *const rows[] = {
		OK "content-length: 5\r\n\r\nhello", CHUNKED "5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n"};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t len = 0; len < strlen(rows[i]); len++) {
			assert_int_equal(feed(rows[i], len, len ? len : 1), len);
			assert_int_equal(h1_answer_has_begun(&answer), len > 0);
			assert_false(h1_answer_has_ended(&answer));
			assert_null(h1_answer_malformed(&answer));
		}
}

// `text` so often, behind `head`.
static const char *why_of_many(const char *head, const char *text, size_t n, size_t step)
{
	size_t len = strlen(head) + n * strlen(text);
	char *bytes = malloc(len + 1), *to = bytes + strlen(head);
	assert_non_null(bytes);
	memcpy(bytes, head, strlen(head));
	for (size_t i = 0; i < n; i++, to += strlen(text))
		memcpy(to, text, strlen(text));
	feed(bytes, len, step);
	free(bytes);
	return h1_answer_malformed(&answer);
}

static void lines_and_heads_have_a_bound(void **state)
{
	for (size_t step = 1; step < 5000; step += 999) {
		assert_null(why_of_many(OK "a: ", "x", H1_ANSWER_MAX_LINE - 3, step));
		assert_non_null(why_of_many(OK "a: ", "x", H1_ANSWER_MAX_LINE - 2, step));
		assert_null(why_of_many(OK, "a: b\r\n", 10000, step));
		assert_non_null(why_of_many(OK, "a: b\r\n", 11000, step));
		assert_non_null(why_of_many("", "HTTP/1.1 100 Go\r\n\r\n", 4000, step));
		assert_null(why_of_many(CHUNKED, "1\r\nx\r\n", 900, step));
		assert_non_null(why_of_many(CHUNKED "0\r\n", "a: b\r\n", 11000, step));
	}
}

RUN_SUITE("shunt-load/h1_answer", cmocka_unit_test(an_answer_is_the_same_however_it_is_cut),
	cmocka_unit_test(what_could_be_read_in_two_ways_is_malformed),
	cmocka_unit_test(what_is_cut_has_not_ended), cmocka_unit_test(lines_and_heads_have_a_bound))
