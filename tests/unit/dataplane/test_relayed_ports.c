// SPDX-License-Identifier: Apache-2.0
// Which of the older process's ports is which of ours; no device is opened.
#include "dataplane/port_bond_impl.h"
#include "dataplane/relayed_ports.h"
#include "tests/support/check.h"

#include <string.h>
#include <unistd.h>

#define CARD "0000:03:00.0"
#define OTHER "0000:04:00.0"

static struct relay_memory older;
static struct relayed_ports ours;
static struct lb_err err;

// What becomes of these, of the newer process, behind those.
static int init(const struct relay_port *its, uint32_t n_its, const struct port_conf *ports,
	uint32_t n_ports)
{
	err.text[0] = '\0';
	assert_int_equal(relay_memory_make(&older, its, n_its, 1, 2, &err), 0);
	return relayed_ports_init(&ours, ports, n_ports, 2, older.fd, &err);
}

static void fini(void)
{
	relayed_ports_fini(&ours);
	relay_memory_fini(&older);
}

static const struct relay_port trunk[] = {
	{CARD, {2, 0, 0, 0, 0, 7}, 1500, 7},
	{"", {0}, 0, 0}, // one that both have
	{CARD, {2, 0, 0, 0, 0, 7}, 1400, 9},
};

static void fl_110_vlans_of_a_card_are_found_by_their_vlan_whatever_their_numbers(void **state)
{
	static const struct port_conf ports[] = {{.device = "net_af_packet0,iface=a", .vlan = 9},
		{.device = "3:00.0,x=1", .vlan = 9}, {.device = "3:00.0,x=1", .vlan = 7}};
	assert_int_equal(init(trunk, 3, ports, 3), 0);
	assert_null(relayed_ports_find(&ours, 0));
	assert_int_equal(relayed_ports_find(&ours, 1)->mtu, 1400);
	assert_int_equal(relayed_ports_find(&ours, 2)->vlan, 7);
	fini();
}

static void fl_111_a_vlan_more_has_the_devices_address_and_no_frames(void **state)
{
	static const struct port_conf ports[] = {{.device = CARD, .vlan = 11},
		{.device = CARD, .vlan = 9}, {.device = CARD, .vlan = 7},
		{.device = OTHER, .vlan = 0}};
	static struct port *const none[4] = {NULL};
	assert_int_equal(init(trunk, 3, ports, 4), 0);
	assert_memory_equal(relayed_ports_find(&ours, 0)->mac, trunk[0].mac, 6);
	assert_null(relayed_ports_find(&ours, 3));
	assert_int_equal(relayed_ports_begin(&ours, none), 0);
	struct relay_end *end = relays_end(ours.relays, 0);
	relay_end_follow(end);
	for (uint32_t p = 0; p < 4; p++)
		assert_int_equal(relay_end_has(end, RELAY_TO_OLDER, p), p == 1 || p == 2);
	fini();
}

static void expect_refused(const struct relay_port *its, uint32_t n_its,
	const struct port_conf *ports, uint32_t n_ports, const char *why)
{
	assert_true(init(its, n_its, ports, n_ports) < 0);
	assert_string_equal(err.text, why);
	fini();
}

static void fl_111_one_that_lacks_a_vlan_of_a_card_is_refused(void **state)
{
	static const struct port_conf ports[] = {
		{.device = CARD, .vlan = 7}, {.device = OTHER, .vlan = 9}};
	static const struct relay_port untagged[] = {{CARD, {2}, 1500, 0}};
	expect_refused(trunk, 3, ports, 2,
		"ports: VLAN 9 of " CARD " is the older process's, and missing here");
	expect_refused(untagged, 1, ports, 2,
		"ports: " CARD " without a VLAN is the older process's, and missing here");
}

static void fl_109_one_that_lacks_a_card_is_refused(void **state)
{
	static const struct port_conf ports[] = {{.device = OTHER, .vlan = 0}};
	static const struct relay_port untagged[] = {{CARD, {2}, 1500, 0}};
	expect_refused(
		untagged, 1, ports, 1, "ports: " CARD " is the older process's, and missing here");
}

static void fl_116_a_memif_is_known_by_its_socket_and_id(void **state)
{
	static const struct relay_port its[] = {{"memif:1:@/a+b", {2}, 1500, 0}};
	static const struct port_conf same[] = {
		{.device = "net_memif9,role=client,id=1,socket=/a+b"}};
	static const struct port_conf others[] = {{.device = "net_memif0,id=1,socket=/a"},
		{.device = "net_memif1,id=1,socket=/a+b,socket-abstract=no"},
		{.device = "net_memif2,socket=/a+b"}};
	assert_int_equal(init(its, 1, same, 1), 0);
	assert_ptr_equal(relayed_ports_find(&ours, 0), &ours.older.ports[0]);
	fini();
	expect_refused(
		its, 1, others, 3, "ports: memif:1:@/a+b is the older process's, and missing here");
}

static void fl_109_one_with_a_card_in_another_bond_is_refused_and_told_where_it_is(void **state)
{
	static const char *const both[] = {OTHER, CARD}, *const more[] = {CARD, "5:00.0"};
	static const struct relay_port alone[] = {{CARD, {2}, 1500, 0}};
	static const struct relay_port bond[] = {{CARD "+" OTHER, {2}, 1500, 7}};
	static const struct port_conf ports[] = {
		{.bond = PORT_BOND_8023AD, .members = both, .n_members = 2},
		{.device = OTHER, .vlan = 7},
		{.bond = PORT_BOND_8023AD, .members = more, .n_members = 2}};
	expect_refused(alone, 1, ports, 1,
		"ports: " CARD " is the older process's, and here " CARD " is in a bond");
	expect_refused(bond, 1, ports + 1, 1,
		"ports: " CARD "+" OTHER " is the older process's, and here " OTHER " is alone");
	expect_refused(bond, 1, ports + 2, 1,
		"ports: " CARD "+" OTHER " is the older process's, and here " CARD
		" is in another bond");
}

// FL-120: a sign in its name makes no bond of it.
static void fl_109_one_that_lacks_an_interface_behind_af_xdp_is_refused(void **state)
{
	static const struct relay_port xdp[] = {{"net_af_xdp,iface=a", {2}, 1500, 0}};
	static const struct port_conf ports[] = {
		{.device = "net_af_xdp0,iface=a+b"}, {.device = "net_af_packet0,iface=a"}};
	expect_refused(xdp, 1, ports, 2,
		"ports: net_af_xdp,iface=a is the older process's, and missing here");
}

// A bond as it is when it is open, of cards that are there or not.
static void fl_115_a_bond_of_which_a_card_is_gone_is_not_lent_and_named(void **state)
{
	static const char *const cards[] = {CARD, OTHER};
	static const char why[] =
		"a card of " CARD "+" OTHER " is gone, and the others go with this process";
	static const struct port_conf conf = {
		.bond = PORT_BOND_ACTIVE_BACKUP, .members = cards, .n_members = 2};
	static struct port members[2];
	static struct port_bond bond = {.n = 2, .members = {{&members[0]}, {&members[1]}}};
	static struct port port = {.bond = &bond, .mtu = 1500};
	struct port *const list[] = {&port};
	int fd = -1;
	err.text[0] = '\0';
	assert_int_equal(relayed_ports_init(&ours, &conf, 1, 1, -1, &err), 0);
	assert_int_equal(relayed_ports_begin(&ours, list), 0);
	bond.members[1].dead = true;
	assert_true(relayed_ports_lend(&ours, 2, &fd, &err) < 0);
	assert_string_equal(err.text, why);
	assert_int_equal(fd, -1);
	assert_false(relayed_ports_are_lent(&ours));
	bond.members[1].dead = false;
	assert_int_equal(relayed_ports_lend(&ours, 2, &fd, &err), 0);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(relayed_ports_may_leave(&ours, &err), 0);
	bond.members[0].dead = true; // until the newer one asks
	assert_true(relayed_ports_may_leave(&ours, &err) < 0);
	assert_string_equal(err.text, why);
	relayed_ports_fini(&ours);
}

RUN_SUITE("dataplane/relayed_ports",
	cmocka_unit_test(fl_110_vlans_of_a_card_are_found_by_their_vlan_whatever_their_numbers),
	cmocka_unit_test(fl_111_a_vlan_more_has_the_devices_address_and_no_frames),
	cmocka_unit_test(fl_111_one_that_lacks_a_vlan_of_a_card_is_refused),
	cmocka_unit_test(fl_109_one_with_a_card_in_another_bond_is_refused_and_told_where_it_is),
	cmocka_unit_test(fl_109_one_that_lacks_an_interface_behind_af_xdp_is_refused),
	cmocka_unit_test(fl_115_a_bond_of_which_a_card_is_gone_is_not_lent_and_named),
	cmocka_unit_test(fl_109_one_that_lacks_a_card_is_refused),
	cmocka_unit_test(fl_116_a_memif_is_known_by_its_socket_and_id))
