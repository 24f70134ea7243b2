// SPDX-License-Identifier: Apache-2.0
#include "lb/base/ip.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"

#include <arpa/inet.h>
#include <stdio.h>

static void v4_and_v6_literals_parse_and_print_back(void **state)
{
	static const char *const texts[] = {"0.0.0.0", "10.0.0.7", "255.255.255.255", "::", "::1",
		"fd00::7", "2001:db8::a:0:1"};
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct ip_addr a;
		char text[IP_PORT_TEXT_MAX];
		assert_true(ip_parse(texts[i], &a));
		assert_string_equal(ip_print(&a, text), texts[i]);
	}
}

static void a_mapped_address_is_the_v4_address(void **state)
{
	struct ip_addr a, b;
	assert_true(ip_parse("::ffff:10.1.2.3", &a));
	assert_true(ip_parse("10.1.2.3", &b));
	assert_true(ip_eq(&a, &b));
	assert_true(ip_is_v4(&a));
	assert_true(ip_to_v4(&a) == 0x0a010203);
}

static void what_is_no_literal_is_refused_and_leaves_the_result_alone(void **state)
{
	static const char *const texts[] = {"", "10.0.0", "10.0.0.256", "localhost", "fd00::7::1",
		"10.0.0.1:80", "[::1]", " ::1"};
	struct ip_addr untouched = ip_from_v4(7), a = untouched;
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(ip_parse(texts[i], &a));
	assert_true(ip_eq(&a, &untouched));
}

// Read by hand for its speed: held against libc's on texts that are nearly addresses.
static void what_is_a_v4_literal_is_as_libc_has_it(void **state)
{
	static const char ALPHABET[] = "00112255689..... x";
	unsigned n_good = 0;
	struct rand r;
	rand_init(&r, 2);
	for (unsigned i = 0; i < 200000; i++) {
		char text[20] = "";
		size_t len = rand_below(&r, 18);
		for (size_t k = 0; k < len; k++)
			text[k] = ALPHABET[rand_below(&r, sizeof(ALPHABET) - 1)];
		if (i % 2) // nearer still
			len = (size_t)snprintf(text, sizeof(text), "%u.%.*s.%u.%02u",
				(unsigned)rand_below(&r, 270), (int)rand_below(&r, 4),
				text[0] ? text : "7", (unsigned)rand_below(&r, 300),
				(unsigned)rand_below(&r, 30));
		struct in_addr theirs;
		struct ip_addr ours;
		bool is_good = inet_pton(AF_INET, text, &theirs) == 1;
		n_good += is_good;
		assert_int_equal(ip_parse_str((struct str){text, strlen(text)}, &ours), is_good);
		assert_true(!is_good || ip_to_v4(&ours) == ntohl(theirs.s_addr));
	}
	assert_true(n_good > 1000);
}

static void a_text_ends_where_its_length_says(void **state)
{
	struct ip_addr a, b;
	assert_true(ip_parse_str((struct str){"10.0.0.77", 8}, &a));
	assert_true(ip_parse("10.0.0.7", &b) && ip_eq(&a, &b));
	assert_true(ip_parse_str((struct str){"fd00::77", 7}, &a));
	assert_true(ip_parse("fd00::7", &b) && ip_eq(&a, &b));
	assert_false(ip_parse_str((struct str){"fd00::7\0", 8}, &a));
	assert_false(ip_parse_str((struct str){"10.0.0.7\0", 9}, &a));
	assert_false(ip_parse_str((struct str){NULL, 0}, &a));
	char zeros[200];
	memset(zeros, '0', sizeof(zeros));
	assert_false(ip_parse_str((struct str){zeros, sizeof(zeros)}, &a));
}

static void a_port_is_printed_so_that_it_can_be_told_apart(void **state)
{
	struct ip_port p = {.ip = ip_from_v4(0x0a000007), .port = 8080};
	char text[IP_PORT_TEXT_MAX];
	assert_string_equal(ip_port_print(&p, text), "10.0.0.7:8080");
	assert_true(ip_parse("fd00::7", &p.ip));
	assert_string_equal(ip_port_print(&p, text), "[fd00::7]:8080");
	assert_true(ip_parse("1111:2222:3333:4444:5555:6666:7777:8888", &p.ip));
	p.port = 65535;
	assert_string_equal(
		ip_port_print(&p, text), "[1111:2222:3333:4444:5555:6666:7777:8888]:65535");
}

static void every_v4_number_survives(void **state)
{
	struct rand r;
	rand_init(&r, 1);
	for (unsigned i = 0; i < 1000; i++) {
		uint32_t v4 = (uint32_t)rand_u64(&r);
		struct ip_addr a = ip_from_v4(v4), b;
		char text[IP_PORT_TEXT_MAX];
		assert_true(ip_to_v4(&a) == v4);
		assert_true(ip_parse(ip_print(&a, text), &b));
		assert_true(ip_eq(&a, &b));
	}
}

static void an_address_with_a_port_parses_as_it_is_printed(void **state)
{
	static const char *const good[] = {"10.0.0.7:8080", "[fd00::7]:1", "0.0.0.0:65535"};
	static const char *const bad[] = {"", ":", ":80", "10.0.0.7", "10.0.0.7:", "10.0.0.7:65536",
		"10.0.0.7:+1", "10.0.0.7:000080", "fd00::7:80", "[10.0.0.7]:80", "[fd00::7]80",
		"[]:80", "x:80", "10.0.0.7:80 "};
	struct ip_port a;
	char text[IP_PORT_TEXT_MAX];
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(ip_port_parse(str_from(good[i]), &a));
		assert_string_equal(ip_port_print(&a, text), good[i]);
	}
	struct ip_port before = a;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (ip_port_parse(str_from(bad[i]), &a))
			fail_msg("'%s' is taken", bad[i]);
	assert_true(ip_port_eq(&a, &before));
}

static void addresses_have_an_order(void **state)
{
	static const char *const sorted[] = {"10.0.0.1:80", "10.0.0.1:8080", "10.0.0.2:80",
		"10.0.1.1:1", "200.0.0.1:1", "[fd00::1]:1", "[fd00::1]:65535", "[fd00::2]:1"};
	const int n = sizeof(sorted) / sizeof(sorted[0]);
	struct ip_port a, b;
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++) {
			assert_true(ip_port_parse(str_from(sorted[i]), &a));
			assert_true(ip_port_parse(str_from(sorted[k]), &b));
			int order = ip_port_cmp(&a, &b);
			assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
		}
}

RUN_SUITE("base/ip", cmocka_unit_test(v4_and_v6_literals_parse_and_print_back),
	cmocka_unit_test(a_mapped_address_is_the_v4_address),
	cmocka_unit_test(what_is_no_literal_is_refused_and_leaves_the_result_alone),
	cmocka_unit_test(what_is_a_v4_literal_is_as_libc_has_it),
	cmocka_unit_test(a_text_ends_where_its_length_says),
	cmocka_unit_test(a_port_is_printed_so_that_it_can_be_told_apart),
	cmocka_unit_test(an_address_with_a_port_parses_as_it_is_printed),
	cmocka_unit_test(every_v4_number_survives), cmocka_unit_test(addresses_have_an_order))
