// SPDX-License-Identifier: Apache-2.0
// What is read of a connection's first bytes (A36-38), and how much of them it takes to know.
#include "dataplane/tls/hello.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

#define MAX_HELLO (64u << 10)
#define NAME_A                                                                                     \
	"\0\0\0\x10\0\x0e\0\0\x0b"                                                                 \
	"WwW.example"
#define ALPN_TWO "\0\x10\0\x0e\0\x0c\2h2\x08http/1.1"
#define OTHER "\xfa\xfa\0\1\0"

struct bytes {
	uint8_t p[MAX_HELLO];
	size_t len;
};

static void put(struct bytes *b, const void *p, size_t len)
{
	memcpy(b->p + b->len, p, len);
	b->len += len;
}

static void put_number(struct bytes *b, size_t value, int n)
{
	while (n--)
		b->p[b->len++] = (uint8_t)(value >> 8 * n);
}

// The message with these extensions, len of them; SIZE_MAX = none at all.
static void put_message(struct bytes *b, const char *extensions, size_t len)
{
	static const uint8_t random[32] = {1, 2, 3};
	bool none = len == SIZE_MAX;
	put_number(b, 1, 1);
	put_number(b, 2 + 32 + 1 + 4 + 2 + 4 + 1 + 1 + (none ? 0 : 2 + len), 3);
	put_number(b, 0x0303, 2);
	put(b, random, 32);
	put(b, "\4sess", 5);
	put(b, "\0\4\x13\x01\x13\x02", 6);
	put(b, "\1\0", 2);
	if (none)
		return;
	put_number(b, len, 2);
	put(b, extensions, len);
}

// In records of so many bytes.
static void put_records(struct bytes *b, const struct bytes *message, size_t each)
{
	for (size_t at = 0; at < message->len; at += each) {
		size_t n = message->len - at < each ? message->len - at : each;
		put(b, "\x16\3\1", 3);
		put_number(b, n, 2);
		put(b, message->p + at, n);
	}
}

static enum tls_hello_state read_copy(
	const struct bytes *b, size_t len, struct bytes *copy, struct tls_hello *ret)
{
	memcpy(copy->p, b->p, len);
	return tls_hello_read(copy->p, len, 0, ret);
}

static void check_text(struct str got, const char *wanted, size_t len)
{
	assert_int_equal(got.len, len);
	assert_memory_equal(got.len ? got.p : "", wanted, len);
}

#define TEXT(literal) (literal), sizeof(literal) - 1

struct row {
	const char *extensions;
	size_t len;
	enum tls_hello_state state;
	const char *name;
	const char *protocols;
	size_t protocols_len;
};

static const struct row rows[] = {
	{TEXT(NAME_A ALPN_TWO), TLS_HELLO_DONE, "www.example", TEXT("\2h2\x08http/1.1")},
	{TEXT(ALPN_TWO OTHER NAME_A), TLS_HELLO_DONE, "www.example", TEXT("\2h2\x08http/1.1")},
	{TEXT(OTHER), TLS_HELLO_DONE, "", TEXT("")},
	{TEXT(""), TLS_HELLO_DONE, "", TEXT("")},
	{NULL, SIZE_MAX, TLS_HELLO_DONE, "", TEXT("")},
	// Lists of protocols that are wrong are the handshake's.
	{TEXT("\0\x10\0\0"), TLS_HELLO_DONE, "", TEXT("")},
	{TEXT("\0\x10\0\2\0\0"), TLS_HELLO_DONE, "", TEXT("")},
	{TEXT("\0\x10\0\5\0\3\0\1x"), TLS_HELLO_DONE, "", TEXT("")},
	{TEXT("\0\x10\0\5\0\3\3h2"), TLS_HELLO_DONE, "", TEXT("")},
	{TEXT("\0\x10\0\6\0\3\2h2x"), TLS_HELLO_DONE, "", TEXT("")},
	// Names that are wrong make a hello of nobody, as in BoringSSL.
	{TEXT("\0\0\0\0"), TLS_HELLO_NONE, "", TEXT("")},
	{TEXT("\0\0\0\5\0\3\0\0\0"), TLS_HELLO_NONE, "", TEXT("")},
	{TEXT("\0\0\0\6\0\4\1\0\1x"), TLS_HELLO_NONE, "", TEXT("")},
	{TEXT("\0\0\0\6\0\4\0\0\2x"), TLS_HELLO_NONE, "", TEXT("")},
	{TEXT("\0\0\0\6\0\4\0\0\1\0"), TLS_HELLO_NONE, "", TEXT("")},
	{TEXT("\0\0\0\7\0\4\0\0\1xy"), TLS_HELLO_NONE, "", TEXT("")},
	{TEXT("\xfa\xfa\0\2\0"), TLS_HELLO_NONE, "", TEXT("")},
	{TEXT("\xfa\xfa\0"), TLS_HELLO_NONE, "", TEXT("")},
};

static void check_row(const struct row *row, size_t each)
{
	static struct bytes message, stream, copy;
	struct tls_hello hello;
	message.len = stream.len = 0;
	put_message(&message, row->extensions, row->len);
	put_records(&stream, &message, each);
	for (size_t len = 0; len < stream.len; len++) {
		assert_int_equal(read_copy(&stream, len, &copy, &hello), TLS_HELLO_MORE);
		assert_in_range(hello.need, len + 1, stream.len);
	}
	assert_int_equal(read_copy(&stream, stream.len, &copy, &hello), row->state);
	if (row->state != TLS_HELLO_DONE)
		return;
	check_text(hello.server_name, row->name, strlen(row->name));
	check_text(hello.protocols, row->protocols, row->protocols_len);
	put(&stream, "more", 4); // that is not ours
	assert_int_equal(read_copy(&stream, stream.len, &copy, &hello), TLS_HELLO_DONE);
	check_text(hello.server_name, row->name, strlen(row->name));
}

static void a_hello_tells_its_name_and_protocols_in_any_records(void **state)
{
	static const size_t each[] = {1, 3, 7, 50, 16384};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t k = 0; k < sizeof(each) / sizeof(each[0]); k++)
			check_row(&rows[i], each[k]);
}

static void what_is_no_hello_is_known_by_its_first_bytes(void **state)
{
	static const struct {
		const char *p;
		size_t len, known_by;
	} others[] = {
		{TEXT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 1}, {TEXT("GET / HTTP/1.1\r\n"), 1},
		{TEXT("\x15\3\1\0\2\1\0"), 1}, // an alert
		{TEXT("\x16\2\1\0\5\1\0\0\1"), 2}, // SSL 2
		{TEXT("\x16\3\1\0\0"), 5}, // an empty record
		{TEXT("\x16\3\1\x40\1"), 5}, // one that is too large
		{TEXT("\x16\3\1\0\1\2"), 6}, // a ServerHello
	};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		uint8_t copy[64];
		struct tls_hello hello;
		for (size_t len = 0; len <= others[i].len; len++) {
			memcpy(copy, others[i].p, len);
			enum tls_hello_state is = tls_hello_read(copy, len, 0, &hello);
			assert_int_equal(
				is, len < others[i].known_by ? TLS_HELLO_MORE : TLS_HELLO_NONE);
		}
	}
}

// Of a message of so many bytes in records of `each`.
static enum tls_hello_state state_of(size_t len, size_t each)
{
	static struct bytes message, stream, copy;
	struct tls_hello hello;
	message.len = stream.len = 0;
	put_number(&message, 1, 1);
	put_number(&message, len, 3);
	size_t body = len < TLS_HELLO_MAX + 1 ? len : TLS_HELLO_MAX + 1;
	memset(message.p + 4, 0, body);
	message.len += body;
	put_records(&stream, &message, each);
	size_t most = stream.len < TLS_HELLO_STREAM_MAX ? stream.len : TLS_HELLO_STREAM_MAX;
	return read_copy(&stream, most, &copy, &hello);
}

// TH-138
static void a_hello_beyond_its_bound_is_too_large(void **state)
{
	assert_int_equal(state_of(TLS_HELLO_MAX, 16384), TLS_HELLO_NONE); // it is read
	assert_int_equal(state_of(TLS_HELLO_MAX + 1, 16384), TLS_HELLO_TOO_LARGE);
	assert_int_equal(state_of(0xffff, 4), TLS_HELLO_TOO_LARGE); // as soon as it says so
	assert_int_equal(state_of(TLS_HELLO_MAX, 8), TLS_HELLO_TOO_LARGE); // by its records' heads
}

// A whole hello of `len` bytes with its records' heads, of which this many have come.
static enum tls_hello_state state_within(size_t max, size_t len, size_t n_come, size_t *ret_need)
{
	static struct bytes message, stream;
	static char padding[2000] = "\0\x15"; // an extension as long as it takes
	size_t n = len - 5 - 4 - 2 - 32 - 1 - 4 - 2 - 4 - 1 - 1 - 2;
	struct tls_hello hello;
	padding[2] = (char)((n - 4) >> 8);
	padding[3] = (char)(n - 4);
	message.len = stream.len = 0;
	put_message(&message, padding, n);
	put_records(&stream, &message, 16384);
	assert_int_equal(stream.len, len);
	enum tls_hello_state state = tls_hello_read(stream.p, n_come, max, &hello);
	*ret_need = hello.need;
	return state;
}

static void tls_221_a_hello_is_bounded_by_its_listener(void **state)
{
	size_t need;
	assert_int_equal(state_within(1000, 1000, 1000, &need), TLS_HELLO_DONE);
	assert_int_equal(state_within(1000, 1000, 999, &need), TLS_HELLO_MORE);
	assert_int_equal(need, 1000);
	// As soon as it says so, and also if all of it is there.
	assert_int_equal(state_within(1000, 1001, 4, &need), TLS_HELLO_MORE);
	assert_int_equal(state_within(1000, 1001, 5, &need), TLS_HELLO_TOO_LARGE);
	assert_int_equal(state_within(1000, 1001, 1001, &need), TLS_HELLO_TOO_LARGE);
	assert_int_equal(state_within(0, 1001, 1001, &need), TLS_HELLO_DONE);
	assert_int_equal(state_within(SIZE_MAX, 1001, 1001, &need), TLS_HELLO_DONE);
}

static void tls_221_what_is_no_hello_may_be_of_any_length(void **state)
{
	static uint8_t text[2000] = "GET / HTTP/1.1\r\n";
	struct tls_hello hello;
	assert_int_equal(tls_hello_read(text, sizeof(text), 256, &hello), TLS_HELLO_NONE);
}

// How often a message of so many bytes in records of `each` is looked at, coming byte by byte.
static uint32_t looks_at(size_t len, size_t each)
{
	static struct bytes message, stream, copy;
	struct tls_hello hello = {.need = 0};
	enum tls_hello_state state = TLS_HELLO_MORE;
	uint32_t n = 0;
	message.len = stream.len = 0;
	put_number(&message, 1, 1);
	put_number(&message, len, 3);
	memset(message.p + 4, 0, len);
	message.len += len;
	put_records(&stream, &message, each);
	for (size_t at = 1; at <= stream.len && state == TLS_HELLO_MORE; at++) {
		if (at < hello.need)
			continue;
		state = read_copy(&stream, at, &copy, &hello);
		n++;
	}
	assert_int_not_equal(state, TLS_HELLO_MORE);
	return n;
}

// TH-138: what is read again and again is what a client says in small records.
static void small_records_are_not_looked_at_one_by_one(void **state)
{
	assert_in_range(looks_at(500, 504), 1, 16);
	assert_in_range(looks_at(2800, 1), 1, 64); // as many as fit
	assert_in_range(looks_at(TLS_HELLO_MAX, 2), 1, 64);
	assert_in_range(looks_at(TLS_HELLO_MAX, 100), 1, 64);
}

RUN_SUITE("tls/hello", cmocka_unit_test(a_hello_tells_its_name_and_protocols_in_any_records),
	cmocka_unit_test(what_is_no_hello_is_known_by_its_first_bytes),
	cmocka_unit_test(a_hello_beyond_its_bound_is_too_large),
	cmocka_unit_test(tls_221_a_hello_is_bounded_by_its_listener),
	cmocka_unit_test(tls_221_what_is_no_hello_may_be_of_any_length),
	cmocka_unit_test(small_records_are_not_looked_at_one_by_one))
