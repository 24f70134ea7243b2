// SPDX-License-Identifier: Apache-2.0
#include "lb/base/ip.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"

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

RUN_SUITE("base/ip", cmocka_unit_test(v4_and_v6_literals_parse_and_print_back),
	cmocka_unit_test(a_mapped_address_is_the_v4_address),
	cmocka_unit_test(what_is_no_literal_is_refused_and_leaves_the_result_alone),
	cmocka_unit_test(a_port_is_printed_so_that_it_can_be_told_apart),
	cmocka_unit_test(every_v4_number_survives))
