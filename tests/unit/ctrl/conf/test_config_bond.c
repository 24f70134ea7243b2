// SPDX-License-Identifier: Apache-2.0
// Bonds in shunt.yaml: ports of several devices.
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_bond.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CARDS "members: [0000:01:00.0, 0000:02:00.0]"

// A port with these settings, and a second one; NULL with err.
static struct config *load_with(const char *settings, const char *more, struct lb_err *err)
{
	char path[] = "/tmp/shunt-config-XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");
	assert_non_null(f);
	fprintf(f,
		"ports:\n"
		"  - {%s, addresses: [10.0.0.1/24]}\n"
		"  - {device: '0000:03:00.0', addresses: [10.0.1.1/24]}\n"
		"frontends: [{name: a, address: 10.0.0.1, port: 80}]\n%s",
		settings, more);
	fclose(f);
	struct config *c = config_load(path, err);
	unlink(path);
	return c;
}

// FL-90
static void a_bond_has_a_mode_and_members_and_is_called_by_its_port(void **state)
{
	struct lb_err err = {.text = ""};
	struct config *c = load_with("bond: {mode: 802.3ad, " CARDS "}", "", &err);
	assert_string_equal(err.text, "");
	const struct config_port *p = &c->ports[0];
	assert_int_equal(p->bond->mode, CONFIG_BOND_8023AD);
	assert_int_equal(p->bond->n_members, 2);
	assert_string_equal(p->bond->members[1], "0000:02:00.0");
	assert_string_equal(p->device, "net_bonding0");
	assert_null(c->ports[1].bond);
	assert_string_equal(c->ports[1].device, "0000:03:00.0");
	config_free(c);
}

// FL-90
static void members_of_active_backup_may_be_interfaces_of_the_kernel(void **state)
{
	struct lb_err err = {.text = ""};
	struct config *c =
		load_with("bond: {mode: active-backup, members: ['net_af_packet0,iface=eth1', "
			  "'net_af_packet1,iface=eth2']}",
			"", &err);
	assert_string_equal(err.text, "");
	assert_int_equal(c->ports[0].bond->mode, CONFIG_BOND_ACTIVE_BACKUP);
	config_free(c);
}

// FL-90: a switch's port may insist on LACP where there is one cable.
static void lacp_may_have_one_member(void **state)
{
	struct lb_err err = {.text = ""};
	struct config *c = load_with("bond: {mode: 802.3ad, members: ['01:00.0']}", "", &err);
	assert_string_equal(err.text, "");
	config_free(c);
}

// FL-91
static void what_is_wrong_with_a_bond_is_named(void **state)
{
	static const struct {
		const char *settings, *error;
	} rows[] = {
		{"vlan: 7", "ports[0]: device: there is neither one nor a bond"},
		{"device: net_tap0, bond: {mode: 802.3ad, " CARDS "}",
			"ports[0].bond: this port has a device besides"},
		{"bond: {mode: balance-rr, " CARDS "}",
			"ports[0].bond.mode: 'balance-rr' is not one of 802.3ad, active-backup"},
		{"bond: {" CARDS "}", "ports[0].bond: Missing required mapping field: mode"},
		{"bond: {mode: 802.3ad}", "ports[0].bond: Missing required mapping field: members"},
		{"bond: {mode: 802.3ad, members: []}", "bond.members: 0 of them, and"},
		{"bond: {mode: 802.3ad, members: [a, b, c, d, e, f, g, h, i]}",
			"ports[0].bond.members: more than 8 of them"},
		{"bond: {mode: active-backup, members: ['01:00.0']}",
			"ports[0].bond: members: active-backup needs two at least"},
		{"bond: {mode: 802.3ad, members: ['01:00.0', '01:00.0,x=1']}",
			"ports[0].bond.members[1]: '01:00.0,x=1' is ports[0].bond.members[0] "
			"already"},
		{"bond: {mode: active-backup, members: ['net_af_packet0,iface=e', "
		 "'net_af_packet1,iface=e,qpairs=1']}",
			"ports[0].bond.members[1]: 'net_af_packet1,iface=e,qpairs=1' is "
			"ports[0].bond.members[0] already"},
		{"bond: {mode: 802.3ad, members: ['01:00.0', '0000:03:00.0']}",
			"ports[1].device: '0000:03:00.0' is ports[0].bond.members[1] already"},
		{"bond: {mode: 802.3ad, members: ['01:00.0', net_bonding1]}",
			"ports[0].bond.members[1]: a bond cannot be a member"},
		{"device: 'net_bonding0,mode=1,slave=x'",
			"ports[0].device: net_bonding0,mode=1,slave=x: a bond is written as "
			"bond: "},
		{"bond: {mode: 802.3ad, members: ['01:00.0', 'net_af_packet0,iface=eth1']}",
			"ports[0].bond: members[1]: net_af_packet0,iface=eth1: cannot be one of "
			"802.3ad: DPDK does not see the link of the kernel's interfaces"},
		{"bond: {mode: 802.3ad, members: [net_tap0, '01:00.0']}",
			"ports[0].bond: members[0]: net_tap0: cannot be one of 802.3ad"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {.text = ""};
		struct config *c = load_with(rows[i].settings, "", &err);
		if (c || !strstr(err.text, rows[i].error))
			fail_msg("%s: %s", rows[i].settings, err.text);
	}
}

// FL-97: that is refused to a process that is to follow another one.
static void one_that_nobody_can_take_over_may_have_a_socket_for_it(void **state)
{
	struct lb_err err = {.text = ""};
	struct config *c = load_with("bond: {mode: 802.3ad, " CARDS "}",
		"takeover_socket: /run/shunt/takeover.sock\n", &err);
	assert_string_equal(err.text, "");
	config_free(c);
}

static void fl_114_a_bond_of_the_older_process_is_one_of_the_same_members_here(void **state)
{
	static const char other[] =
		"ports: eth3 carries a bond of the older process, and is no member of one here";
	static const struct {
		struct lb_cables older;
		const char *error;
	} rows[] = {
		{{0}, ""},
		{{1, {{"eth2", {2}, true}}}, ""}, // of a version that does not say more
		{{1, {{"eth2", {2}, true, 2, {"eth1", "eth2"}}}}, ""},
		{{1, {{"eth2", {2}, true, 2, {"eth2", "eth1"}}}}, ""},
		{{1, {{"eth3", {2}, true}}}, other},
		{{1, {{"eth3", {2}, true, 2, {"eth1", "eth3"}}}}, other},
		{{1, {{"eth", {2}, true}}},
			"ports: eth carries a bond of the older process, and is no member of one "
			"here"},
		{{1, {{"eth1", {2}, true, 2, {"eth1", "eth3"}}}},
			"ports: eth3 is in the older process's bond of eth1, and not here: both "
			"must have the same"},
		{{1, {{"eth1", {2}, true, 1, {"eth1"}}}},
			"ports: net_af_packet1,iface=eth2,qpairs=1 is in the bond of eth1, and not "
			"in the older process's: both must have the same"},
		{{1, {{"eth3", {2}, false}}}, ""}, // no bond's: it may be gone
		{{1, {{"eth1", {2}, false}}},
			"ports: eth1 is a port of the older process by itself, and a bond's member "
			"here"},
		{{2, {{"eth1", {2}, true}, {"eth3", {2}, true}}}, other},
	};
	struct lb_err err = {.text = ""};
	struct config *c =
		load_with("bond: {mode: active-backup, members: ['net_af_packet0,iface=eth1', "
			  "'net_af_packet1,iface=eth2,qpairs=1']}",
			"", &err);
	assert_string_equal(err.text, "");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		err.text[0] = '\0';
		assert_int_equal(config_check_cables(c, &rows[i].older, &err) != 0,
			rows[i].error[0] != '\0');
		assert_string_equal(err.text, rows[i].error);
	}
	config_free(c);
}

// FL-91: DPDK has room for so many.
static void all_ports_together_have_so_many_devices_at_most(void **state)
{
	char path[] = "/tmp/shunt-config-XXXXXX";
	struct lb_err err = {.text = ""};
	FILE *f = fdopen(mkstemp(path), "w");
	assert_non_null(f);
	fprintf(f, "frontends: [{name: a, address: 10.0.0.1, port: 80}]\nports:\n");
	for (int i = 0; i < 4; i++) {
		fprintf(f, "  - {addresses: [10.0.%d.1/24], bond: {mode: 802.3ad, members: [", i);
		for (int k = 0; k < 8; k++)
			fprintf(f, "%s'%02x:00.0'", k ? ", " : "", i * 8 + k);
		fprintf(f, "]}}\n");
	}
	fclose(f);
	assert_null(config_load(path, &err));
	unlink(path);
	assert_non_null(strstr(err.text, "ports: 36 devices and bonds, and 32 is the most"));
}

RUN_SUITE("ctrl/conf/config_bond",
	cmocka_unit_test(a_bond_has_a_mode_and_members_and_is_called_by_its_port),
	cmocka_unit_test(members_of_active_backup_may_be_interfaces_of_the_kernel),
	cmocka_unit_test(lacp_may_have_one_member),
	cmocka_unit_test(what_is_wrong_with_a_bond_is_named),
	cmocka_unit_test(one_that_nobody_can_take_over_may_have_a_socket_for_it),
	cmocka_unit_test(fl_114_a_bond_of_the_older_process_is_one_of_the_same_members_here),
	cmocka_unit_test(all_ports_together_have_so_many_devices_at_most))
