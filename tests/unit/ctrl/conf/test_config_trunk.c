// SPDX-License-Identifier: Apache-2.0
// Ports in shunt.yaml that are VLANs of one device.
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_trunk.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CARD "device: '0000:01:00.0'"
#define BOND "bond: {mode: 802.3ad, members: ['01:00.0', '02:00.0']}"

// Ports with these settings, each with an address of its own; NULL with err.
static struct config *load(const char *const settings[4], struct lb_err *err)
{
	char path[] = "/tmp/shunt-config-XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");
	assert_non_null(f);
	fprintf(f, "frontends: [{name: a, address: 10.0.0.1, port: 80}]\nports:\n");
	for (unsigned i = 0; i < 4 && settings[i]; i++)
		fprintf(f, "  - {addresses: [10.0.%u.1/24], %s}\n", i, settings[i]);
	fclose(f);
	err->text[0] = '\0';
	struct config *c = config_load(path, err);
	unlink(path);
	return c;
}

// NET-40
static void ports_with_one_device_are_vlans_of_it(void **state)
{
	static const unsigned carriers[] = {0, 1, 0, 0};
	struct lb_err err;
	struct config *c = load((const char *const[4]){CARD ", vlan: 100", "device: net_tap0",
					CARD ", mtu: 9000", CARD ", vlan: 200"},
		&err);
	assert_string_equal(err.text, "");
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(c->ports[i].carrier, carriers[i]);
	assert_int_equal(config_trunk_size(c, 0), 3);
	assert_int_equal(config_trunk_size(c, 1), 1);
	assert_int_equal(config_trunk_longest(c, 0), 2);
	assert_int_equal(config_trunk_longest(c, 1), 1);
	c->takeover_socket = strdup("/t"); // FL-110
	assert_int_equal(config_check_trunk(c, 2, &err), 0);
	config_free(c);
}

// NET-40
static void a_bond_has_vlans_likewise_and_is_called_by_the_first(void **state)
{
	struct lb_err err;
	struct config *c =
		load((const char *const[4]){"device: net_tap0", BOND ", vlan: 100", BOND}, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(c->ports[2].carrier, 1);
	assert_string_equal(c->ports[1].device, "net_bonding1");
	assert_string_equal(c->ports[2].device, "net_bonding1");
	config_free(c);
}

// NET-40
static void what_one_of_them_has_counts_for_the_device(void **state)
{
	struct lb_err err;
	struct config *c = load(
		(const char *const[4]){CARD ", vlan: 1", CARD ", vlan: 2, kernel: {interface: s0}"},
		&err);
	assert_string_equal(err.text, "");
	assert_true(config_trunk_has_kernel(c, 0));
	assert_false(config_trunk_has_ip6(c, 0));
	c->ports[1].has_ip6 = true;
	assert_true(config_trunk_has_ip6(c, 0));
	config_free(c);
}

// NET-40
static void what_is_wrong_with_vlans_of_a_device_is_named(void **state)
{
	static const struct {
		const char *settings[4], *error;
	} rows[] = {
		{{CARD ", vlan: 5", CARD, CARD ", vlan: 5"},
			"ports[2].vlan: 5 is that of ports[0], which has the same device"},
		{{CARD, CARD},
			"ports[1].vlan: there is none, as in ports[0], which has the same device"},
		{{CARD ", vlan: 5", CARD, CARD ", vlan: 0"},
			"ports[2].vlan: there is none, as in ports[1]"},
		{{CARD, CARD ", vlan: 5, steering: software"},
			"ports[1].steering: it is the device's, and ports[0]"},
		{{CARD, CARD ", vlan: 4095"}, "ports[1]: vlan: 4095 is outside 0..4094"},
		{{CARD, "device: '0000:01:00.0,x=1', vlan: 5"},
			"ports[1].device: '0000:01:00.0,x=1' is ports[0] already, in other words"},
		{{"device: 'net_af_packet0,iface=e'", "device: 'net_af_packet1,iface=e', vlan: 5"},
			"ports[1].device: 'net_af_packet1,iface=e' is ports[0] already, in other "
			"words"},
		{{BOND, "bond: {mode: 802.3ad, members: ['01:00.0']}, vlan: 5"},
			"ports[1].bond.members[0]: '01:00.0' is ports[0].bond.members[0] already"},
		{{BOND, "bond: {mode: active-backup, members: ['01:00.0', '02:00.0']}, vlan: 5"},
			"ports[1].bond.members[0]: '01:00.0' is ports[0].bond.members[0] already"},
		{{BOND, "device: '01:00.0', vlan: 5"},
			"ports[1].device: '01:00.0' is ports[0].bond.members[0] already"},
		{{BOND, BOND}, "ports[1].vlan: there is none, as in ports[0]"},
		{{CARD ", kernel: {interface: s0}", CARD ", vlan: 5, kernel: {interface: s0}"},
			"ports[1].kernel: interface: 's0' is that of ports[0]"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err;
		struct config *c = load(rows[i].settings, &err);
		if (c || !strstr(err.text, rows[i].error))
			fail_msg("row %zu: %s", i, err.text);
	}
}

RUN_SUITE("ctrl/conf/config_trunk", cmocka_unit_test(ports_with_one_device_are_vlans_of_it),
	cmocka_unit_test(a_bond_has_vlans_likewise_and_is_called_by_the_first),
	cmocka_unit_test(what_one_of_them_has_counts_for_the_device),
	cmocka_unit_test(what_is_wrong_with_vlans_of_a_device_is_named))
