// SPDX-License-Identifier: Apache-2.0
// The tunnels of shunt.yaml.
#include "ctrl/conf/config.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const least = "ports: [{device: net_tap0, addresses: [10.82.0.1/16]}]\n"
				 "frontends: [{name: a, address: 10.82.0.1, port: 80}]\n";

// Of those lines and these; writes them to a temporary file, loads it, removes it.
static struct config *load(const char *more, struct lb_err *err)
{
	char path[] = "/tmp/shunt-config-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_true(dprintf(fd, "%s%s", least, more) > 0);
	close(fd);
	struct config *c = config_load(path, err);
	unlink(path);
	return c;
}

// FL-30, FL-38
static void tunnels_are_who_may_send_packets_within_others(void **state)
{
	struct lb_err err = {0};
	struct config *c = load("vips: [{prefix: 10.9.0.0/24}]\n"
				"tunnels:\n"
				"  - {kind: ipip, from: [172.16.0.0/16, '100::/64']}\n"
				"  - {kind: gue, from: [10.0.5.7/32]}\n"
				"  - {kind: gue, from: [10.0.5.7/32], port: 19523, "
				"hops: [10.82.0.0/16]}\n",
		&err);
	assert_string_equal(err.text, "");
	assert_int_equal(c->n_tunnels, 3);
	const struct config_tunnel *t = c->tunnels;
	assert_int_equal(t[0].kind, CONFIG_TUNNEL_IPIP);
	assert_int_equal(t[0].udp_port, 0);
	assert_int_equal(t[0].sources[0].bits, IP_V4_BITS + 16);
	assert_int_equal(t[0].sources[1].bits, 64);
	assert_int_equal(t[1].udp_port, 6080);
	assert_int_equal(t[1].n_hops, 0);
	assert_int_equal(t[2].udp_port, 19523);
	assert_int_equal(t[2].relays[0].bits, IP_V4_BITS + 16);
	config_free(c);
}

// FL-30, FL-38
static void a_tunnel_that_cannot_be_is_an_error_of_its_field(void **state)
{
	static const struct {
		const char *vips, *tunnels, *why;
	} rows[] = {
		{"", "[{kind: ipip, from: [10.0.5.0/24]}]", ": tunnels: what they bring is for"},
		{"10.9.0.0/24", "[]", "tunnels: 0 of them, and"},
		{"10.9.0.0/24", "[{kind: ipip}]", "Missing required mapping field: from"},
		{"10.9.0.0/24", "[{from: [10.0.5.0/24]}]", "Missing required mapping field: kind"},
		{"10.9.0.0/24", "[{kind: gre, from: [10.0.5.0/24]}]", "ipip"},
		{"10.9.0.0/24", "[{kind: ipip, from: [10.0.5.1/24]}]",
			": tunnels[0]: from[0]: 10.0.5.1/24 has bits behind"},
		{"10.9.0.0/24", "[{kind: ipip, from: [10.0.5.0/24, '::/0']}]",
			": tunnels[0]: from[1]: ::/0 is not a prefix of hosts"},
		{"10.9.0.0/24", "[{kind: ipip, from: [10.0.5.0]}]", "'10.0.5.0' is not a prefix"},
		{"10.9.0.0/24", "[{kind: ipip, from: [10.0.0.0/8]}]",
			"from[0]: 10.0.0.0/8 overlaps vips[0]: 10.9.0.0/24"},
		{"10.9.0.0/24", "[{kind: ipip, from: [10.0.5.0/24], port: 5555}]",
			": tunnels[0]: port: only of kind gue"},
		{"10.9.0.0/24", "[{kind: ipip, from: [10.0.5.0/24], hops: [10.0.5.0/24]}]",
			": tunnels[0]: hops: only of kind gue"},
		{"10.9.0.0/24", "[{kind: gue, from: [10.0.5.0/24], port: 0}]",
			": tunnels[0]: port: 0 is outside 1..65535"},
		{"10.9.0.0/24", "[{kind: gue, from: [10.0.5.0/24], hops: ['fd00::/8']}]",
			": tunnels[0]: hops[0]: fd00::/8: GLB names hosts by IPv4"},
		{"10.9.0.0/24", "[{kind: gue, from: [10.0.5.0/24], hops: [10.0.5.1/8]}]",
			": tunnels[0]: hops[0]: 10.0.5.1/8 has bits behind"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {0};
		char text[512], vips[64] = "";
		if (rows[i].vips[0])
			snprintf(vips, sizeof(vips), "vips: [{prefix: %s}]\n", rows[i].vips);
		snprintf(text, sizeof(text), "%stunnels: %s\n", vips, rows[i].tunnels);
		assert_null(load(text, &err));
		if (!strstr(err.text, rows[i].why))
			fail_msg("row %zu: got \"%s\"", i, err.text);
	}
}

RUN_SUITE("conf/config_tunnels", cmocka_unit_test(tunnels_are_who_may_send_packets_within_others),
	cmocka_unit_test(a_tunnel_that_cannot_be_is_an_error_of_its_field))
