// SPDX-License-Identifier: Apache-2.0
// Gateways of a port in shunt.yaml, and their watch.
#include "ctrl/conf/config.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A port with these settings; NULL with err.
static struct config *load_with(const char *settings, struct lb_err *err)
{
	char path[] = "/tmp/shunt-config-XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");
	assert_non_null(f);
	fprintf(f,
		"ports: [{device: net_tap0, addresses: [10.0.0.1/24, 'fd00::1/64']%s%s}]\n"
		"frontends: [{name: a, address: 10.0.0.1, port: 80}]\n",
		settings[0] ? ", " : "", settings);
	fclose(f);
	struct config *c = config_load(path, err);
	unlink(path);
	return c;
}

// FL-69
static void a_list_has_gateways_of_both_families_in_its_order(void **state)
{
	struct lb_err err = {.text = ""};
	struct config *c = load_with("gateways: [10.0.0.8, 'fe80::1', 10.0.0.9], "
				     "gateway_choice: first, gateway_watch: {interval_ms: 50, "
				     "missed: 2}",
		&err);
	assert_string_equal(err.text, "");
	const struct config_port *p = &c->ports[0];
	assert_int_equal(p->n_gateway_ips, 3);
	assert_int_equal(ip_to_v4(&p->gateway_ips[0]), 0x0a000008);
	assert_true(ip_is_link_local(&p->gateway_ips[1]));
	assert_int_equal(ip_to_v4(&p->gateway_ips[2]), 0x0a000009);
	assert_int_equal(p->gateway_choice, CONFIG_GATEWAY_FIRST);
	assert_int_equal(p->watch.interval_ms, 50);
	assert_int_equal(p->watch.missed, 2);
	assert_int_equal(p->watch.answered, 3);
	config_free(c);
}

// FL-62
static void lone_gateways_are_watched_by_default(void **state)
{
	struct lb_err err = {.text = ""};
	struct config *c = load_with("gateway: 10.0.0.8, gateway6: 'fe80::1'", &err);
	assert_string_equal(err.text, "");
	const struct config_port *p = &c->ports[0];
	assert_int_equal(p->n_gateway_ips, 2);
	assert_int_equal(p->gateway_choice, CONFIG_GATEWAY_HASH);
	assert_int_equal(p->watch.interval_ms, 500);
	assert_int_equal(p->watch.missed, 3);
	config_free(c);
}

// FL-69
static void what_is_wrong_with_gateways_is_named(void **state)
{
	static const struct {
		const char *settings, *error;
	} rows[] = {
		{"gateways: [10.0.0.8, host]", "ports[0]: gateways[1]: 'host' is not an IP"},
		{"gateways: [10.0.1.8]", "gateways[0]: 10.0.1.8 is in no subnet of this port"},
		{"gateways: [10.0.0.8, 10.0.0.8]", "gateways[1]: 10.0.0.8 is in the list already"},
		{"gateways: [10.0.0.8], gateway: 10.0.0.9", "gateways: this port has a gateway "},
		{"gateways: [10.0.0.8], gateway6: 'fe80::1'", "gateways: this port has a gateway6"},
		{"gateways: ['fe80::1'], accept_ra: true",
			"accept_ra: this port has a gateway for IPv6"},
		{"gateway6: 'fe80::1', accept_ra: true", "accept_ra: this port has a gateway6"},
		{"gateways: []", "gateways: 0 of them, and"},
		{"gateways: [10.0.0.2, 10.0.0.3, 10.0.0.4, 10.0.0.5, 10.0.0.6, 10.0.0.7, 10.0.0.8, "
		 "10.0.0.9, 10.0.0.10]",
			"ports[0].gateways: more than 8 of them"},
		{"gateway_choice: random", "gateway_choice: "},
		{"gateway_watch: {interval_ms: 49}",
			"gateway_watch.interval_ms: 49 is neither 0 nor at least 50"},
		{"gateway_watch: {interval_ms: 60001}",
			"gateway_watch.interval_ms: 60001 is outside 0..60000"},
		{"gateway_watch: {missed: 0}", "gateway_watch.missed: 0 is outside 1..100"},
		{"gateway_watch: {answered: 101}", "gateway_watch.answered: 101 is outside 1..100"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {.text = ""};
		struct config *c = load_with(rows[i].settings, &err);
		if (c || !strstr(err.text, rows[i].error))
			fail_msg("%s: %s", rows[i].settings, err.text);
	}
}

// FL-62
static void a_watch_may_be_off(void **state)
{
	struct lb_err err = {.text = ""};
	struct config *c = load_with("gateway_watch: {interval_ms: 0}", &err);
	assert_string_equal(err.text, "");
	assert_int_equal(c->ports[0].watch.interval_ms, 0);
	config_free(c);
}

RUN_SUITE("ctrl/conf/config_gateways",
	cmocka_unit_test(a_list_has_gateways_of_both_families_in_its_order),
	cmocka_unit_test(lone_gateways_are_watched_by_default),
	cmocka_unit_test(what_is_wrong_with_gateways_is_named),
	cmocka_unit_test(a_watch_may_be_off))
