// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/proxy_header.h"
#include "lb/base/rand.h"
#include "lb/base/str.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MORE PROXY_HEADER_MORE
#define DONE PROXY_HEADER_DONE
#define MISSING PROXY_HEADER_MISSING
#define MALFORMED PROXY_HEADER_MALFORMED
#define TOO_LONG PROXY_HEADER_TOO_LONG

struct row {
	struct str bytes;
	enum proxy_header_state state;
	const char *source; // "address:port"; NULL = none
	size_t rest; // bytes behind the header
};

// In pieces of this size; each is a block of its own, so that what is read beyond it is found.
static struct proxy_header feed(
	const struct proxy_header *as, struct str s, size_t piece, size_t *used)
{
	struct proxy_header h = *as;
	*used = 0;
	while (*used < s.len && h.state == MORE) {
		size_t n = s.len - *used < piece ? s.len - *used : piece, taken;
		uint8_t *copy = malloc(n);
		memcpy(copy, s.p + *used, n);
		enum proxy_header_state state = proxy_header_feed(&h, copy, n, &taken);
		free(copy);
		assert_int_equal(state, h.state);
		assert_true(taken <= n && (state != MORE || taken == n));
		*used += taken;
	}
	return h;
}

static void check(const struct row *rows, size_t n, const struct proxy_header *as)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t piece = 1; piece <= rows[i].bytes.len + 1; piece++) {
			char text[IP_PORT_TEXT_MAX];
			size_t used;
			const struct proxy_header h = feed(as, rows[i].bytes, piece, &used);
			if (h.state != (uint8_t)rows[i].state)
				fail_msg("row %zu in pieces of %zu: %d", i, piece, h.state);
			if (h.state != DONE)
				continue;
			assert_int_equal(rows[i].bytes.len - used, rows[i].rest);
			assert_int_equal(h.has_source, rows[i].source != NULL);
			if (rows[i].source)
				assert_string_equal(ip_port_print(&h.source, text), rows[i].source);
		}
	}
}
#define CHECK_ROWS(rows, as) check(rows, sizeof(rows) / sizeof((rows)[0]), as)

static const struct proxy_header both = {.v1 = true, .v2 = true}, v1 = {.v1 = true},
				 v2 = {.v2 = true};

#define A8 "aaaaaaaa"
#define A64 A8 A8 A8 A8 A8 A8 A8 A8
// "PROXY UNKNOWN" and so many bytes: 13 + 92 + CR LF are 107.
#define A92 A64 A8 A8 A8 "aaaa"

// PP-02, PP-04, PP-06
static void a_line_of_version_1_names_the_source(void **state)
{
	static const struct row rows[] = {
		{STR("PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\n"), DONE, "1.2.3.4:9"},
		{STR("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\nPRI"), DONE,
			"255.255.255.255:65535", 3},
		{STR("PROXY TCP6 2001:db8::1 ::1 0 0\r\n"), DONE, "[2001:db8::1]:0"},
		{STR("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
		     "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"),
			DONE, "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"},
		{STR("PROXY TCP6 ::ffff:1.2.3.4 ::1 1 1\r\n"), DONE, "1.2.3.4:1"},
		{STR("PROXY UNKNOWN\r\n"), DONE},
		{STR("PROXY UNKNOWN \r\nGET"), DONE, NULL, 3},
		{STR("PROXY UNKNOWN ffff::1 what ever\r\n"), DONE},
		{STR("PROXY UNKNOWN" A92 "\r\n"), MALFORMED},
		{STR("PROXY UNKNOWN " A64 A8 A8 A8 "aaa\r\n"), DONE},
		{STR("PROXY UNKNOWN " A92 "\r\n"), TOO_LONG},
		{STR("PROXY UNKNOWN " A92 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), TOO_LONG},
		{STR("PROXY "), MORE},
		{STR("PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r"), MORE},
		{STR(""), MORE},
	};
	CHECK_ROWS(rows, &both);
	CHECK_ROWS(rows, &v1);
}

// PP-02, PP-07
static void a_line_that_is_not_to_the_letter_is_malformed(void **state)
{
	static const struct row rows[] = {
		{STR("PROXY TCP4 1.2.3.4 5.6.7.8 9 10\n"), MALFORMED},
		{STR("PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\r\n"), MALFORMED},
		{STR("PROXY TCP4 1.2.3.4\r 5.6.7.8 9 10\r\n"), MALFORMED},
		{STR("PROXY TCP4 1.2.3.4 5.6.7.8 9 10 \r\n"), MALFORMED},
		{STR("PROXY  TCP4 1.2.3.4 5.6.7.8 9 10\r\n"), MALFORMED},
		{STR("PROXY TCP4  1.2.3.4 5.6.7.8 9 10\r\n"), MALFORMED},
		{STR("PROXY TCP4\t1.2.3.4 5.6.7.8 9 10\r\n"), MALFORMED},
		{STR("PROXY tcp4 1.2.3.4 5.6.7.8 9 10\r\n"), MALFORMED},
		{STR("PROXY TCP 1.2.3.4 5.6.7.8 9 10\r\n"), MALFORMED},
		{STR("PROXY UDP4 1.2.3.4 5.6.7.8 9 10\r\n"), MALFORMED},
		{STR("PROXY UNKNOWNS\r\n"), MALFORMED},
		{STR("PROXY \r\n"), MALFORMED},
		{STR("PROXY TCP4\r\n"), MALFORMED},
		{STR("PROXY TCP4 1.2.3.4 5.6.7.8 9\r\n"), MALFORMED},
		{STR("PROXY TCP4 1.2.3.4 5.6.7.8 9 10 11\r\n"), MALFORMED},
		{STR("PROXY TCP4 1.2.3.4 5.6.7.8 65536 10\r\n"), MALFORMED},
		{STR("PROXY TCP4 1.2.3.4 5.6.7.8 9 65536\r\n"), MALFORMED},
		{STR("PROXY TCP4 1.2.3.4 5.6.7.8 09 10\r\n"), MALFORMED},
		{STR("PROXY TCP4 1.2.3.4 5.6.7.8 -9 10\r\n"), MALFORMED},
		{STR("PROXY TCP4 1.2.3.4 5.6.7.8 99999999999999999999 10\r\n"), MALFORMED},
		{STR("PROXY TCP4 1.2.3 5.6.7.8 9 10\r\n"), MALFORMED},
		{STR("PROXY TCP4 1.2.3.256 5.6.7.8 9 10\r\n"), MALFORMED},
		{STR("PROXY TCP4 01.2.3.4 5.6.7.8 9 10\r\n"), MALFORMED},
		{STR("PROXY TCP4 1.2.3.4 junk 9 10\r\n"), MALFORMED},
		{STR("PROXY TCP4 ::1 ::1 9 10\r\n"), MALFORMED},
		{STR("PROXY TCP6 1.2.3.4 ::1 9 10\r\n"), MALFORMED},
		{STR("PROXY TCP6 ::1 1.2.3.4 9 10\r\n"), MALFORMED},
		{STR("PROXY TCP6 fe80::1%eth0 ::1 9 10\r\n"), MALFORMED},
		{STR("PROXY TCP6 [::1] ::1 9 10\r\n"), MALFORMED},
		{STR("PROXY TCP4 1.2.3.4\0 5.6.7.8 9 10\r\n"), MALFORMED},
		{STR("proxy TCP4 1.2.3.4 5.6.7.8 9 10\r\n"), MISSING},
		{STR(" PROXY"), MISSING},
		{STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), MISSING},
		{STR("PROXYING"), MISSING},
		{STR("\x16\x03\x01"), MISSING},
		{STR("\r\n\r\nGET"), MISSING},
	};
	CHECK_ROWS(rows, &both);
}

#define SIG "\r\n\r\n\0\r\nQUIT\n"
#define IP4 "\x01\x02\x03\x04\x05\x06\x07\x08\x03\xe8\0\x50"
#define IP6                                                                                        \
	"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07"                                               \
	"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\xff\xff\0\x50"

// PP-03..PP-06
static void a_header_of_version_2_names_the_source(void **state)
{
	static const struct row rows[] = {
		{STR(SIG "\x21\x11\0\x0c" IP4), DONE, "1.2.3.4:1000"},
		{STR(SIG "\x21\x11\0\x0c" IP4 "PRI"), DONE, "1.2.3.4:1000", 3},
		{STR(SIG "\x21\x21\0\x24" IP6), DONE, "[2001:db8::7]:65535"},
		{STR(SIG "\x21\x11\0\x13" IP4 "\x04\0\x04" A8), DONE, "1.2.3.4:1000", 4},
		{STR(SIG "\x21\x21\0\x2c" IP6 A8 "PRI"), DONE, "[2001:db8::7]:65535", 3},
		{STR(SIG "\x20\0\0\0"), DONE},
		{STR(SIG "\x20\0\0\0PRI"), DONE, NULL, 3},
		{STR(SIG "\x20\x11\0\x0c" IP4), DONE},
		{STR(SIG "\x20\xff\0\x08" A8 "x"), DONE, NULL, 1},
		{STR(SIG "\x21\0\0\0"), DONE},
		{STR(SIG "\x21\0\0\x08" A8), DONE},
		{STR(SIG "\x21\x31\0\xd8" A64 A64 A64 A8 A8 A8 "x"), DONE, NULL, 1},
		{STR(SIG), MORE},
		{STR(SIG "\x21\x11\0"), MORE},
		{STR(SIG "\x21\x11\0\x0c" A8), MORE},
		{STR(SIG "\x21\x11\0\x14" IP4), MORE},
	};
	CHECK_ROWS(rows, &both);
	CHECK_ROWS(rows, &v2);
}

// PP-03, PP-05
static void what_version_2_does_not_know_is_malformed(void **state)
{
	static const struct row rows[] = {
		{STR(SIG "\x11\x11\0\x0c" IP4), MALFORMED},
		{STR(SIG "\x31\x11\0\x0c" IP4), MALFORMED},
		{STR(SIG "\x22\x11\0\x0c" IP4), MALFORMED},
		{STR(SIG "\x2f\x11\0\x0c" IP4), MALFORMED},
		{STR(SIG "\x21\x12\0\x0c" IP4), MALFORMED},
		{STR(SIG "\x21\x22\0\x24" IP6), MALFORMED},
		{STR(SIG "\x21\x10\0\x0c" IP4), MALFORMED},
		{STR(SIG "\x21\x41\0\x0c" IP4), MALFORMED},
		{STR(SIG "\x21\x01\0\x0c" IP4), MALFORMED},
		{STR(SIG "\x21\x11\0\x0b" IP4), MALFORMED},
		{STR(SIG "\x21\x21\0\x23" IP6), MALFORMED},
		{STR(SIG "\x21\x31\0\xd7"), MALFORMED},
		{STR(SIG "\x21\x11\x04\x0d" IP4), TOO_LONG},
		{STR(SIG "\x21\x21\x04\x25" IP6), TOO_LONG},
		{STR(SIG "\x20\0\x04\xd9"), TOO_LONG},
		{STR(SIG "\x21\0\xff\xff"), TOO_LONG},
		{STR("\r\n\r\n\0\r\nQUIT\r\x21\x11\0\x0c" IP4), MISSING},
	};
	CHECK_ROWS(rows, &both);
}

// PP-05
static void the_longest_headers_are_taken(void **state)
{
	static const struct {
		struct str begin;
		size_t len;
	} rows[] = {{STR(SIG "\x21\x11\x04\x0c" IP4), 16 + 12 + 1024},
		{STR(SIG "\x21\x21\x04\x24" IP6), 16 + 36 + 1024},
		{STR(SIG "\x21\x31\x04\xd8"), PROXY_HEADER_V2_MAX},
		{STR(SIG "\x20\0\x04\xd8"), PROXY_HEADER_V2_MAX}};
	char bytes[PROXY_HEADER_V2_MAX + 1];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t used;
		memset(bytes, 'a', sizeof(bytes));
		memcpy(bytes, rows[i].begin.p, rows[i].begin.len);
		const struct proxy_header h =
			feed(&both, (struct str){bytes, sizeof(bytes)}, 100, &used);
		assert_int_equal(h.state, DONE);
		assert_int_equal(used, rows[i].len);
	}
}

// PP-21, PP-22: where somebody wants them, and of a connection that somebody has.
static void tlvs_are_kept_where_there_is_room_for_them(void **state)
{
	static const struct {
		struct str bytes;
		enum proxy_header_state state;
		struct str kept;
	} rows[] = {
		{STR(SIG "\x21\x11\0\x0c" IP4), DONE, {0}},
		{STR(SIG "\x21\x11\0\x13" IP4 "\x04\0\x04" A8), DONE,
			STR("\x04\0\x04"
			    "aaaa")},
		{STR(SIG "\x21\x21\0\x2b" IP6 "\x04\0\1a\x04\0\0PRI"), DONE,
			STR("\x04\0\1a\x04\0\0")},
		{STR(SIG "\x21\x11\0\x14" IP4 A8), PROXY_HEADER_BAD_TLVS, {0}},
		{STR(SIG "\x21\x11\0\x0d" IP4 "\4"), PROXY_HEADER_BAD_TLVS, {0}},
		{STR(SIG "\x21\x11\0\x10" IP4 "\4\0\2a"), PROXY_HEADER_BAD_TLVS, {0}},
		{STR(SIG "\x20\x11\0\x14" IP4 A8), DONE, {0}},
		{STR(SIG "\x21\0\0\x08" A8), DONE, {0}},
		{STR("PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\n"), DONE, {0}},
	};
	uint8_t room[PROXY_HEADER_TLVS_MAX];
	const struct proxy_header as = {.v1 = true, .v2 = true, .tlvs = room};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t piece = 1; piece <= rows[i].bytes.len + 1; piece++) {
			size_t used;
			struct proxy_header h = feed(&as, rows[i].bytes, piece, &used);
			if (h.state != (uint8_t)rows[i].state)
				fail_msg("row %zu in pieces of %zu: %d", i, piece, h.state);
			if (h.state == DONE)
				assert_true(str_eq(
					(struct str){(const char *)room, h.n_tlvs}, rows[i].kept));
			h = feed(&both, rows[i].bytes, piece, &used);
			assert_int_equal(h.state, DONE); // where nobody does
			assert_int_equal(h.n_tlvs, 0);
		}
}

// PP-07
static void a_version_that_is_not_taken_is_no_header(void **state)
{
	static const struct row old[] = {{STR("PROXY UNKNOWN\r\n"), MISSING}, {STR("P"), MISSING}},
				new[] = {{STR(SIG "\x20\0\0\0"), MISSING}, {STR("\r"), MISSING}};
	CHECK_ROWS(old, &v2);
	CHECK_ROWS(new, &v1);
}

// What is written.

static struct ip_port at(const char *text)
{
	struct ip_port p;
	assert_true(ip_port_parse(str_from(text), &p));
	return p;
}

// To the letter, from the document that defines it; PP-16.
static void what_is_written_is_to_the_letter(void **state)
{
	static const struct {
		const char *source, *target; // NULL = LOCAL
		struct str tlvs;
		uint8_t version;
		struct str bytes;
	} rows[] = {
		{"1.2.3.4:9", "5.6.7.8:10", {0}, 1, STR("PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\n")},
		{"255.255.255.255:65535", "255.255.255.255:65535", {0}, 1,
			STR("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n")},
		{"[2001:db8::1]:0", "[::1]:1", {0}, 1, STR("PROXY TCP6 2001:db8::1 ::1 0 1\r\n")},
		{"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff1]:65535",
			"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff2]:65534", {0}, 1,
			STR("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff1 "
			    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff2 65535 65534\r\n")},
		{"1.2.3.4:1", "[::1]:2", {0}, 1, STR("PROXY TCP6 ::ffff:1.2.3.4 ::1 1 2\r\n")},
		{"[::1]:2", "1.2.3.4:1", {0}, 1, STR("PROXY TCP6 ::1 ::ffff:1.2.3.4 2 1\r\n")},
		{"1.2.3.4:1000", "5.6.7.8:80", {0}, 2, STR(SIG "\x21\x11\0\x0c" IP4)},
		{"[2001:db8::7]:65535", "[::1]:80", {0}, 2, STR(SIG "\x21\x21\0\x24" IP6)},
		{"1.2.3.4:1000", "5.6.7.8:80",
			STR("\xe0\0\4"
			    "abcd"),
			2,
			STR(SIG "\x21\x11\0\x13" IP4 "\xe0\0\4"
				"abcd")},
		{"[2001:db8::7]:65535", "[::1]:80", STR("\xe0\0\1z"), 2,
			STR(SIG "\x21\x21\0\x28" IP6 "\xe0\0\1z")},
		{"1.2.3.4:1", "[::1]:2", {0}, 2,
			STR(SIG "\x21\x21\0\x24\0\0\0\0\0\0\0\0\0\0\xff\xff\1\2\3\4"
				"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\1\0\2")},
		{NULL, NULL, STR("\xe0\0\1z"), 2, STR(SIG "\x20\0\0\0")},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool is_local = !rows[i].source;
		const struct ip_port from = is_local ? (struct ip_port){0} : at(rows[i].source),
				     to = is_local ? (struct ip_port){0} : at(rows[i].target);
		const struct proxy_header_text text = {.source = is_local ? NULL : &from,
			.target = is_local ? NULL : &to,
			.tlvs = rows[i].tlvs,
			.version = rows[i].version};
		uint8_t *bytes = malloc(PROXY_HEADER_WRITTEN_MAX);
		size_t n = proxy_header_write(&text, bytes);
		if (!str_eq((struct str){(const char *)bytes, n}, rows[i].bytes))
			fail_msg("row %zu", i);
		free(bytes);
	}
}

// PP-21: ours are in front, and the client's follow of the types that are asked for and not ours.
static void a_clients_tlvs_follow_ours(void **state)
{
	static const struct {
		struct str ours, clients, passed; // passed: types
		struct str written;
	} rows[] = {
		{{0}, STR("\xe0\0\1a\2\0\0"), STR("\xe0\2"), STR("\xe0\0\1a\2\0\0")},
		{STR("\5\0\1z"), STR("\xe0\0\1a\2\0\0"), STR("\xe0"), STR("\5\0\1z\xe0\0\1a")},
		{STR("\2\0\1z"), STR("\xe0\0\1a\2\0\1b"), STR("\xe0\2"), STR("\2\0\1z\xe0\0\1a")},
		{{0}, STR("\xe0\0\1a\xe0\0\1b"), STR("\xe0"), STR("\xe0\0\1a\xe0\0\1b")},
		{STR("\5\0\1z"), STR("\xe0\0\1a"), {0}, STR("\5\0\1z")},
		{STR("\5\0\1z"), {0}, STR("\xe0"), STR("\5\0\1z")},
	};
	const struct ip_port from = at("1.2.3.4:1000"), to = at("5.6.7.8:80");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct proxy_header_text text = {.source = &from,
			.target = &to,
			.tlvs = rows[i].ours,
			.clients_tlvs = rows[i].clients,
			.version = 2};
		for (size_t k = 0; k < rows[i].passed.len; k++)
			tlv_types_add(&text.passed, (uint8_t)rows[i].passed.p[k]);
		uint8_t bytes[PROXY_HEADER_WRITTEN_MAX];
		size_t n = proxy_header_write(&text, bytes), len = 12 + rows[i].written.len;
		assert_int_equal(n, 16 + len);
		assert_int_equal(bytes[14] << 8 | bytes[15], len);
		const struct str tail = {(const char *)bytes + 28, n - 28};
		if (!str_eq(tail, rows[i].written))
			fail_msg("row %zu", i);
		text.source = text.target = NULL; // of nobody's connection nothing is said
		assert_int_equal(proxy_header_write(&text, bytes), 16);
	}
}

// One that takes so many bytes, or nothing if that is too few.
static struct str entry(char *bytes, size_t len)
{
	if (len < TLV_FIXED)
		return (struct str){0};
	bytes[1] = (char)((len - TLV_FIXED) >> 8);
	bytes[2] = (char)(len - TLV_FIXED);
	return (struct str){bytes, len};
}

static void the_longest_of_both_have_room(void **state)
{
	static char ours[PROXY_HEADER_TLVS_MAX] = {1}, clients[PROXY_HEADER_TLVS_MAX] = {2};
	const struct ip_port from = at("[2001:db8::7]:65535"), to = at("[::1]:80");
	struct proxy_header_text text = {.source = &from,
		.target = &to,
		.tlvs = entry(ours, sizeof(ours)),
		.clients_tlvs = entry(clients, sizeof(clients)),
		.version = 2};
	tlv_types_add(&text.passed, 2);
	uint8_t *bytes = malloc(PROXY_HEADER_WRITTEN_MAX);
	assert_int_equal(proxy_header_write(&text, bytes), PROXY_HEADER_WRITTEN_MAX);
	free(bytes);
}

// Of any addresses and any length of TLVs: the two are each other's twins.
static void what_is_written_is_read_again(void **state)
{
	static char tlvs[PROXY_HEADER_TLVS_MAX];
	struct rand rand;
	rand_init(&rand, 11);
	for (size_t i = 0; i < 2 * (PROXY_HEADER_TLVS_MAX + 1); i++) {
		struct ip_port ends[2] = {0};
		bool is_v4 = rand_below(&rand, 2);
		for (int k = 0; k < 2; k++) {
			for (int b = 0; b < 16; b++)
				ends[k].ip.b[b] = (uint8_t)rand_u64(&rand);
			if (is_v4)
				ends[k].ip = ip_from_v4((uint32_t)rand_u64(&rand));
			ends[k].port = (uint16_t)rand_u64(&rand);
		}
		const struct proxy_header_text text = {.source = &ends[0],
			.target = &ends[1],
			.tlvs = entry(tlvs, i % 2 ? i / 2 : 0),
			.version = i % 2 ? 2 : 1};
		uint8_t bytes[PROXY_HEADER_WRITTEN_MAX];
		size_t n = proxy_header_write(&text, bytes), used;
		size_t most = i % 2 ? PROXY_HEADER_V2_MAX : PROXY_HEADER_V1_MAX;
		assert_in_range(n, 28, most);
		const struct proxy_header h =
			feed(&both, (struct str){(const char *)bytes, n}, 1 + i % 60, &used);
		assert_int_equal(h.state, DONE);
		assert_int_equal(used, n);
		assert_true(h.has_source);
		assert_true(ip_port_eq(&h.source, &ends[0]));
		assert_true(ip_port_eq(&h.target, &ends[1]));
	}
}

RUN_SUITE("proxy/proxy_header", cmocka_unit_test(a_line_of_version_1_names_the_source),
	cmocka_unit_test(a_line_that_is_not_to_the_letter_is_malformed),
	cmocka_unit_test(a_header_of_version_2_names_the_source),
	cmocka_unit_test(what_version_2_does_not_know_is_malformed),
	cmocka_unit_test(the_longest_headers_are_taken),
	cmocka_unit_test(tlvs_are_kept_where_there_is_room_for_them),
	cmocka_unit_test(a_version_that_is_not_taken_is_no_header),
	cmocka_unit_test(what_is_written_is_to_the_letter),
	cmocka_unit_test(a_clients_tlvs_follow_ours),
	cmocka_unit_test(the_longest_of_both_have_room),
	cmocka_unit_test(what_is_written_is_read_again))
