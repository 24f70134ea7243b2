// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_vips.h"
#include "tests/support/check.h"

#include <string.h>

#define OWN4 "10.81.0.10"
#define OWN6 "2001:db8::10"

static const struct {
	const char *prefix;
	bool answers;
	const char *expected; // NULL = fine
} rows[] = {
	{"10.81.0.0/24", false,
		"vips[0].prefix: 10.81.0.0/24 contains ports[1].addresses[0]: " OWN4},
	{"10.81.0.0/24", true, "contains ports[1].addresses[0]"},
	{"10.0.0.0/8", false, "contains ports[1].addresses[0]"},
	{OWN4 "/32", false, OWN4 "/32 contains ports[1].addresses[0]: " OWN4 "/24"},
	{OWN4 "/32", true, "contains ports[1].addresses[0]"},
	{OWN6 "/128", false, OWN6 "/128 contains ports[1].addresses[1]: " OWN6 "/64"},
	{"2001:db8::/64", true, "contains ports[1].addresses[1]"},
	// A part of a link's subnet, without the port's own, is VIPs as any.
	{"10.81.0.128/25", true, NULL},
	{"10.81.0.11/32", false, NULL},
	{"10.9.0.0/24", false, NULL},
	{"2001:db8:0:0:1::/80", true, NULL},
};

static void fl_173_no_prefix_contains_an_address_of_a_port(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *texts[] = {(char[]){OWN4 "/24"}, (char[]){OWN6 "/64"}}, prefix[64];
		struct ip_addr ips[2];
		assert_true(ip_parse(OWN4, &ips[0]) && ip_parse(OWN6, &ips[1]));
		struct config_port ports[2] = {
			{0}, {.addresses = texts, .n_addresses = 2, .address_ips = ips}};
		bool answers = rows[i].answers;
		struct config_vip vip = {.prefix = strcpy(prefix, rows[i].prefix), .arp = &answers};
		struct config c = {.ports = ports, .n_ports = 2, .vips = &vip, .n_vips = 1};
		struct lb_err err = {0};
		int rc = config_check_vips(&c, &err);
		if (rows[i].expected ? !strstr(err.text, rows[i].expected) : err.text[0])
			fail_msg("row %zu: got \"%s\"", i, err.text);
		assert_int_equal(rc == 0, !rows[i].expected);
	}
}

RUN_SUITE("ctrl/config_vips", cmocka_unit_test(fl_173_no_prefix_contains_an_address_of_a_port))
