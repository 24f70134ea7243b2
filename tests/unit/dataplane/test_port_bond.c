// SPDX-License-Identifier: Apache-2.0
// A port of several devices: what is said of members that cannot be, and what LACP needs of those
// who send and receive. On net_ring, which gives back what is sent to it: a bond of two has itself
// as its partner.
#include "dataplane/eal.h"
#include "dataplane/port_bond_impl.h"
#include "dataplane/port_cable.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PATIENCE 3000 // turns of 10 ms

// Of net_null, members of an active-backup, as interfaces of the kernel whose links we set.
#define IF_INDEX 1000
static bool has_no_link[RTE_MAX_ETHPORTS];
static const char *driver_of_null = "net_null";
static bool bonds_verify; // as they say where all their members do

int __real_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *);
int __wrap_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *info)
{
	int rc = __real_rte_eth_dev_info_get(id, info);
	if (rc == 0 && strcmp(info->driver_name, "net_null") == 0) {
		info->if_index = IF_INDEX + id;
		info->driver_name = driver_of_null;
	} else if (rc == 0 && strcmp(info->driver_name, "net_bonding") == 0 && bonds_verify) {
		info->rx_offload_capa |= RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
	}
	return rc;
}

bool __wrap_interface_link(unsigned index, bool *ret_up, uint32_t *ret_mbps);
bool __wrap_interface_link(unsigned index, bool *ret_up, uint32_t *ret_mbps)
{
	if (index < IF_INDEX)
		return false;
	*ret_up = !has_no_link[index - IF_INDEX];
	*ret_mbps = 1000;
	return true;
}

static void ignore(void *ctx, int level, const char *line)
{
}

static int setup(void **state)
{
	static bool started; // EAL starts once
	int core = sched_getcpu();
	struct eal_conf eal = {
		.args = {.memory_mib = 128, .cores = &core, .n_cores = 1}, .log = ignore};
	struct lb_err err;
	if (!started)
		assert_int_equal(eal_start(&eal, &err), 0);
	started = true;
	return 0;
}

static struct port *open_bond(
	unsigned index, const char *first, const char *second, struct lb_err *err)
{
	static char name[32];
	static const char *members[2];
	snprintf(name, sizeof(name), "net_bonding%u", index);
	members[0] = first;
	members[1] = second;
	struct port_conf conf = {.index = index,
		.device = name,
		.bond = PORT_BOND_8023AD,
		.members = members,
		.n_members = 2,
		.n_queues = 1,
		.n_mbufs = 4095};
	return port_new(&conf, err);
}

// A turn of a worker that has nothing to send, and one of the control thread.
static void turn(struct port *port, struct port_queue *q, uint64_t *now_ns)
{
	struct rte_mbuf *frames[PORT_BURST];
	uint32_t n = port_queue_rx(q, frames);
	port_queue_done(q, frames, n);
	assert_int_equal(port_queue_flush(q), 0);
	port_queue_watch(q);
	(void)port_watch(port, *now_ns += 10 * NS_PER_MS);
	nanosleep(&(struct timespec){.tv_nsec = 10 * NS_PER_MS}, NULL);
}

// FL-91
static void what_is_wrong_with_a_member_is_said_of_its_field(void **state)
{
	struct lb_err err;
	assert_null(open_bond(3, "net_ring0", "net_nosuch0", &err));
	assert_non_null(strstr(err.text, "ports[3].bond.members[1]: net_nosuch0: cannot open: DPDK "
					 "has no driver of this name"));
	assert_null(open_bond(3, "net_af_packet7,iface=nosuch", "net_ring5", &err));
	assert_non_null(strstr(err.text, "ports[3].bond.members[0]: net_af_packet7: there is no "
					 "interface nosuch in this network namespace"));
}

// FL-96: DPDK's driver sends LACP's frames along with a burst, be it an empty one.
static void lacp_speaks_while_nobody_sends(void **state)
{
	struct lb_err err = {.text = ""};
	struct port *port = open_bond(4, "net_ring1", "net_ring2", &err);
	assert_string_equal(err.text, "");
	assert_int_equal(port_n_members(port), 2);
	assert_string_equal(port_driver(port), "net_bonding");
	struct port_queue *q = port_queue_of(port, 0);
	uint64_t now_ns = 1;
	int turns = 0;
	while (!port_member_of(port, 0).tx_frames || !port_member_of(port, 1).tx_frames) {
		assert_true(turns++ < PATIENCE);
		turn(port, q, &now_ns);
	}
	assert_string_equal(port_member_of(port, 1).driver, "net_ring");
	port_free(port);
}

// FL-95
static void a_member_without_a_link_is_told_and_counted(void **state)
{
	struct lb_err err = {.text = ""};
	struct port *port = open_bond(5, "net_ring3", "net_ring4", &err);
	assert_string_equal(err.text, "");
	struct port_queue *q = port_queue_of(port, 0);
	uint16_t id;
	uint64_t now_ns = 1;
	int turns = 0;
	while (port_member_of(port, 1).state <= PORT_MEMBER_DOWN) {
		assert_true(turns++ < PATIENCE);
		turn(port, q, &now_ns);
	}
	assert_int_equal(port_member_of(port, 1).n_downs, 0);
	assert_int_equal(rte_eth_dev_get_port_by_name("net_ring4", &id), 0);
	assert_int_equal(rte_eth_dev_set_link_down(id), 0);
	turn(port, q, &now_ns);
	assert_int_equal(port_member_of(port, 1).state, PORT_MEMBER_DOWN);
	assert_int_equal(port_member_of(port, 1).n_downs, 1);
	assert_int_equal(port_member_of(port, 1).since_ns, now_ns);
	assert_true(port_member_of(port, 0).state > PORT_MEMBER_DOWN);
	port_free(port);
}

// Members that another process has, too, which says by which it sends.
static struct port *open_backup_of(const struct lb_cables *cables, unsigned first, unsigned n)
{
	static char name[32], members[3][32];
	static const char *const list[] = {members[0], members[1], members[2]};
	struct lb_err err = {.text = ""};
	snprintf(name, sizeof(name), "net_bonding%u", first);
	for (unsigned i = 0; i < n; i++)
		snprintf(members[i], sizeof(members[i]), "net_null%u", first + i);
	struct port_conf conf = {.index = first,
		.device = name,
		.bond = PORT_BOND_ACTIVE_BACKUP,
		.members = list,
		.n_members = n,
		.n_queues = 1,
		.n_mbufs = 4095,
		.shared = true,
		.cables = cables};
	struct port *port = port_new(&conf, &err);
	assert_string_equal(err.text, "");
	return port;
}

static struct port *open_backup(const struct lb_cables *cables, unsigned first)
{
	return open_backup_of(cables, first, 2);
}

static struct lb_cables by(unsigned null)
{
	struct lb_cables cables = {1, {{"", {2, 0, 0, 0, 0, 9}, true}}};
	snprintf(cables.list[0].name, sizeof(cables.list[0].name), "net_null%u", null);
	return cables;
}

static void set_link(unsigned null, bool up)
{
	char name[32];
	uint16_t id;
	snprintf(name, sizeof(name), "net_null%u", null);
	assert_int_equal(rte_eth_dev_get_port_by_name(name, &id), 0);
	has_no_link[id] = !up;
}

static void expect_carries(struct port *port, unsigned null)
{
	struct port_queue *q = port_queue_of(port, 0);
	struct lb_cable cable = {.name = ""};
	char name[LB_CABLE_NAME];
	uint64_t now_ns = 1;
	snprintf(name, sizeof(name), "net_null%u", null);
	for (int turns = 0; strcmp(cable.name, name) != 0; turns++) {
		assert_true(turns < PATIENCE);
		turn(port, q, &now_ns);
		if (!port_cable_get(port, &cable))
			cable.name[0] = '\0';
	}
	assert_true(cable.is_bond);
	assert_memory_equal(cable.mac, port_mac(port), 6);
}

static void fl_113_a_bond_begins_with_the_member_and_the_address_of_the_older_process(void **state)
{
	static const uint8_t mac[] = {2, 0, 0, 0, 0, 9};
	struct lb_cables cables = by(21);
	struct lb_cable cable;
	struct port *port = open_backup(&cables, 20);
	assert_true(port_cable_get(port, &cable)); // before anybody has looked at a link
	assert_string_equal(cable.name, "net_null21");
	assert_memory_equal(port_mac(port), mac, 6);
	expect_carries(port, 21);
	port_free(port);
}

static void fl_112_a_bond_goes_by_what_it_is_told_while_that_has_a_link(void **state)
{
	struct port *port = open_backup(NULL, 22);
	struct lb_cables first = by(22), second = by(23);
	expect_carries(port, 22);
	port_follow(port, &second);
	expect_carries(port, 23);
	// By itself it would stay there.
	port_follow(port, &first);
	expect_carries(port, 22);
	set_link(22, false);
	expect_carries(port, 23);
	set_link(22, true); // nobody has said anything else meanwhile
	expect_carries(port, 22);
	port_follow(port, NULL);
	set_link(22, false);
	expect_carries(port, 23);
	set_link(22, true);
	for (int i = 0; i < 20; i++)
		expect_carries(port, 23);
	port_free(port);
}

// Or two processes whose first one fails would go on by different ones until they are told.
static void fl_112_members_carry_in_the_order_of_the_process_in_front(void **state)
{
	struct port *port = open_backup_of(NULL, 32, 3);
	struct lb_cables front = {1, {{"net_null34", {2}, true, 4,
					     {"net_null34", "lacks", "net_null33", "net_null34"}}}};
	struct lb_cable cable;
	expect_carries(port, 32);
	port_follow(port, &front);
	expect_carries(port, 34);
	assert_true(port_cable_get(port, &cable)); // those behind it are told the same
	assert_int_equal(cable.n_members, 3);
	assert_string_equal(cable.members[0], "net_null34");
	assert_string_equal(cable.members[1], "net_null33");
	assert_string_equal(cable.members[2], "net_null32");
	set_link(34, false);
	expect_carries(port, 33);
	port_follow(port, NULL);
	set_link(33, false);
	expect_carries(port, 32);
	assert_true(port_cable_get(port, &cable));
	assert_string_equal(cable.members[0], "net_null32");
	set_link(33, true);
	set_link(34, true);
	port_free(port);
}

static void fl_112_cables_of_others_are_nothing_to_a_bond(void **state)
{
	struct port *port = open_backup(NULL, 24);
	struct lb_cables others = {
		3, {{"net_null2", {2}, true}, {"eth0", {2}, false}, {"net_null25", {2}, false}}};
	expect_carries(port, 24);
	port_follow(port, &others);
	for (int i = 0; i < 20; i++)
		expect_carries(port, 24);
	port_free(port);
}

// Whatever the bond says: the driver of one member never says of a checksum that it is right.
static void fl_151_checksums_of_a_bond_are_softwares_where_those_of_a_member_are(void **state)
{
	driver_of_null = "net_e1000_em";
	bonds_verify = true;
	struct port *port = open_backup(NULL, 36);
	assert_false(port_verifies_checksums(port));
	port_free(port);
	driver_of_null = "net_null";
	bonds_verify = false;
}

static void expect_passes_on(struct port *port)
{
	struct port_queue *q = port_queue_of(port, 0);
	uint64_t now_ns = 1;
	port_pass_on(port);
	for (int turns = 0; !port_is_passed_on(port, now_ns); turns++) {
		assert_true(turns < PATIENCE);
		if (!port_queue_is_live(q))
			assert_false(port_queue_settle(q));
		nanosleep(&(struct timespec){.tv_nsec = 10 * NS_PER_MS}, NULL);
	}
	assert_int_equal(port_n_members(port), 0);
	assert_int_equal(port_queue_far(q), RELAY_TO_NEWER);
}

static bool is_open(const char *name)
{
	uint16_t id;
	return rte_eth_dev_get_port_by_name(name, &id) == 0;
}

static void fl_115_a_bond_is_passed_on_with_all_members_and_taken_back(void **state)
{
	uint8_t mac[6];
	struct port *port = open_backup(NULL, 26);
	struct port_queue *q = port_queue_of(port, 0);
	expect_carries(port, 26);
	memcpy(mac, port_mac(port), sizeof(mac));
	expect_passes_on(port);
	assert_false(is_open("net_null26") || is_open("net_null27") || is_open("net_bonding26"));
	port_take_back(port, NS_PER_SECOND);
	assert_int_equal(port_watch(port, NS_PER_SECOND), PORT_EVENT_BACK);
	assert_true(port_queue_settle(q));
	assert_int_equal(port_n_members(port), 2);
	assert_memory_equal(port_mac(port), mac, sizeof(mac));
	expect_carries(port, 26);
	port_free(port);
}

// As cards that are gone: one that was a member, and one that was not there when the bond was
// opened again.
static void fl_115_a_bond_that_lacks_a_card_stays_as_it_is(void **state)
{
	struct port *port = open_backup(NULL, 30);
	struct port_queue *q = port_queue_of(port, 0);
	struct member *m = &port->bond->members[1];
	uint64_t now_ns = 1;
	expect_carries(port, 30);
	assert_null(port_why_stays(port));
	m->dead = true;
	assert_non_null(port_why_stays(port));
	port_pass_on(port);
	for (int i = 0; i < 20; i++) {
		assert_false(port_is_passed_on(port, now_ns += 10 * NS_PER_MS));
		assert_true(port_queue_is_live(q));
	}
	port_take_back(port, now_ns);
	m->dead = false;
	m->port->kind = PORT_PCI;
	m->port->opened = false;
	assert_non_null(port_why_stays(port));
	m->port->kind = PORT_OTHER;
	m->port->opened = true;
	assert_null(port_why_stays(port));
	expect_carries(port, 30);
	port_free(port);
}

static void fl_115_a_bond_begins_behind_the_relay_and_takes_its_members(void **state)
{
	static const char *const members[] = {"net_null28", "net_null29"};
	static const struct relay_port there = {"", {2, 0, 0, 0, 0, 5}, 1400, 0};
	struct port_conf conf = {.device = "net_bonding28",
		.bond = PORT_BOND_ACTIVE_BACKUP,
		.members = members,
		.n_members = 2,
		.n_queues = 1,
		.n_mbufs = 4095,
		.relayed = &there};
	struct lb_err err = {.text = ""};
	struct port *port = port_new(&conf, &err);
	assert_string_equal(err.text, "");
	assert_memory_equal(port_mac(port), there.mac, 6);
	assert_int_equal(port_mtu(port), 1400);
	assert_int_equal(port_n_members(port), 0);
	assert_int_equal(port_watch(port, 1), PORT_EVENT_NONE);
	assert_false(is_open("net_null28"));
	assert_int_equal(port_take(port, &err), 0);
	assert_string_equal(err.text, "");
	assert_true(port_queue_settle(port_queue_of(port, 0)));
	assert_memory_equal(port_mac(port), there.mac, 6);
	expect_carries(port, 28);
	port_free(port);
}

// As the driver ends the process where it has none.
static void fl_115_one_of_lacp_without_memory_is_refused_before_the_card_is_asked_for(void **state)
{
	enum { N = 2048, BIG = 5 << 19, SMALL = 1 << 15 };
	static void *held[N];
	static const char *const member = "net_ring20";
	static const struct relay_port there = {"", {2, 0, 0, 0, 0, 5}, 1400, 0};
	struct port_conf conf = {.index = 3,
		.device = "net_bonding35",
		.bond = PORT_BOND_8023AD,
		.members = &member,
		.n_members = 1,
		.n_queues = 7, // with which LACP needs 4 MiB in one piece

		.n_mbufs = 1023,
		.relayed = &there};
	struct lb_err err = {.text = ""};
	uint32_t n = 0;
	for (size_t size = BIG; size >= SMALL; size = size == BIG ? SMALL : 0)
		while (n < N && (held[n] = rte_malloc(NULL, size, 0)))
			n++;
	assert_true(n > 40 && n < N);
	for (uint32_t i = 0; i < 40; i += 2) { // for its packets
		rte_free(held[i]);
		held[i] = NULL;
	}
	assert_null(port_new(&conf, &err));
	for (uint32_t i = 0; i < n; i++)
		rte_free(held[i]);
	assert_non_null(strstr(err.text, "ports[3].bond: no memory for LACP"));
	struct port *port = port_new(&conf, &err);
	assert_non_null(port);
	port_free(port);
}

#define CASE(f) cmocka_unit_test_setup(f, setup)
RUN_SUITE("dataplane/port_bond", CASE(what_is_wrong_with_a_member_is_said_of_its_field),
	CASE(fl_151_checksums_of_a_bond_are_softwares_where_those_of_a_member_are),
	CASE(lacp_speaks_while_nobody_sends), CASE(a_member_without_a_link_is_told_and_counted),
	CASE(fl_113_a_bond_begins_with_the_member_and_the_address_of_the_older_process),
	CASE(fl_112_a_bond_goes_by_what_it_is_told_while_that_has_a_link),
	CASE(fl_112_members_carry_in_the_order_of_the_process_in_front),
	CASE(fl_112_cables_of_others_are_nothing_to_a_bond),
	CASE(fl_115_a_bond_is_passed_on_with_all_members_and_taken_back),
	CASE(fl_115_one_of_lacp_without_memory_is_refused_before_the_card_is_asked_for),
	CASE(fl_115_a_bond_that_lacks_a_card_stays_as_it_is),
	CASE(fl_115_a_bond_begins_behind_the_relay_and_takes_its_members))
