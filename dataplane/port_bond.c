// SPDX-License-Identifier: Apache-2.0
#include "dataplane/port_bond.h"

#include "dataplane/eal.h"
#include "dataplane/interface.h"
#include "dataplane/port_bond_impl.h"
#include "dataplane/remedy.h"
#include "lb/base/counter.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_bond.h>
#include <rte_eth_bond_8023ad.h>
#include <rte_malloc.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_STALE 16 // bursts of one member that stands by
// Of the driver's own pool of LACP's frames, which it makes when a link first comes up, and ends
// the process where it cannot: for each descriptor, with all that belongs to one of its mbufs.
#define LACP_MBUF 512
#define LACP_MBUFS 1024 // for each queue
#define UNSTARTED_NS 50000000 // five times as long as the driver waits between looks at its links
_Static_assert(PORT_MAX_DEVICES <= RTE_MAX_ETHPORTS, "devices that DPDK has room for");

// Life.

static void begin_to_follow(struct port *port, const struct lb_cables *cables)
{
	const struct lb_cable *cable = port_bond_follow(port->bond, cables);
	if (cable)
		port_bond_set_mac(port, cable->mac);
}

void port_bond_set_mac(struct port *port, const uint8_t mac[6])
{
	memcpy(port->mac.addr_bytes, mac, sizeof(port->mac.addr_bytes));
	port->bond->has_mac = true;
}

int port_bond_new(struct port *port, const struct lb_cables *cables, struct lb_err *reterr)
{
	const struct port_conf *conf = &port->conf;
	struct port_bond *b = calloc(1, sizeof(*b));
	if (!b)
		return lb_err_set(reterr, "ports[%u]: out of memory", conf->index);
	*b = (struct port_bond){.mode = conf->bond, .index = conf->index, .active = NO_ID};
	snprintf(port->field, sizeof(port->field), "bond");
	port->bond = b;
	for (uint32_t i = 0; i < conf->n_members; i++) {
		struct port *m = b->members[i].port = calloc(1, sizeof(*m));
		if (!m)
			return lb_err_set(reterr, "ports[%u]: out of memory", conf->index);
		b->n++;
		b->members[i].seen.state = PORT_MEMBER_DOWN;
		m->claim = PORT_CLAIM_NONE;
		m->conf = *conf;
		m->conf.device = conf->members[i];
		snprintf(m->field, sizeof(m->field), "bond.members[%u]", i);
	}
	begin_to_follow(port, cables);
	return 0;
}

int port_bond_claim(struct port_bond *b, struct lb_err *reterr)
{
	for (uint32_t i = 0; i < b->n; i++) {
		struct port *m = b->members[i].port;
		if (m->claim.name < 0 && port_take_claim(m, reterr) != 0)
			return -EINVAL;
	}
	return 0;
}

void port_bond_drop_claims(struct port_bond *b)
{
	for (uint32_t i = 0; b && i < b->n; i++)
		port_claim_drop(&b->members[i].port->claim);
}

void port_bond_free(struct port_bond *b)
{
	port_bond_drop_claims(b);
	for (uint32_t i = 0; b && i < b->n; i++)
		free(b->members[i].port);
	free(b);
}

static int probe_member(struct member *m, struct lb_err *reterr)
{
	struct rte_eth_dev_info info;
	int rc = port_probe(m->port, reterr);
	if (rc == 0)
		rc = rte_eth_dev_info_get(m->port->id, &info);
	if (rc < 0)
		return rc;
	m->port->device = info.device;
	m->port->if_index = info.if_index;
	m->port->driver = m->seen.driver = info.driver_name;
	(void)rte_eth_macaddr_get(m->port->id, &m->port->mac);
	return 0;
}

// At a start all of them have to be there, so that what is wrong is seen. 0, or negative.
static int probe_members(struct port_bond *b, struct lb_err *reterr)
{
	uint32_t n_open = 0;
	struct lb_err err = {0};
	for (uint32_t i = 0; i < b->n; i++) {
		struct member *m = &b->members[i];
		m->refused = false;
		if (b->was_open && !port_may_open(m->port))
			continue;
		int rc = probe_member(m, &err);
		if (rc == 0) {
			n_open++;
			continue;
		}
		if (!b->was_open) {
			*reterr = err;
			return rc;
		}
		port_close(m->port, true);
		m->refused = true;
	}
	if (n_open == 0)
		*reterr = err;
	return n_open ? 0 : -ENODEV;
}

int port_bond_check_memory(const struct port *port, struct lb_err *reterr)
{
	const struct port_bond *b = port->bond;
	uint32_t n = b->n * LACP_MBUFS * (port->n_queues + 1);
	char text[REMEDY_MAX];
	if (b->mode != PORT_BOND_8023AD)
		return 0;
	void *probe = rte_malloc(NULL, (size_t)n * LACP_MBUF, 0);
	rte_free(probe);
	if (probe)
		return 0;
	return lb_err_set(reterr, "ports[%u].bond: no memory for LACP: %s", b->index,
		remedy_for_memory("", rte_eal_has_hugepages(), text));
}

static int make(struct port *port, struct lb_err *reterr)
{
	static const uint8_t modes[] = {
		[PORT_BOND_8023AD] = BONDING_MODE_8023AD,
		[PORT_BOND_ACTIVE_BACKUP] = BONDING_MODE_ACTIVE_BACKUP,
	};
	struct port_bond *b = port->bond;
	if (!b->was_open && port_bond_check_memory(port, reterr) != 0)
		return -EINVAL;
	eal_blame_start();
	int id = rte_eth_bond_create(b->name, modes[b->mode], 0);
	if (id < 0)
		return port_blame(reterr, port, "cannot be made", id);
	b->made = true;
	b->id = port->id = (uint16_t)id;
	if (b->mode == PORT_BOND_8023AD)
		(void)rte_eth_bond_xmit_policy_set(b->id, BALANCE_XMIT_POLICY_LAYER34);
	for (uint32_t i = 0; i < b->n; i++) {
		const struct port *m = b->members[i].port;
		if (m->opened && rte_eth_bond_slave_add(b->id, m->id) != 0)
			return port_blame(reterr, m, "does not become a member", -EINVAL);
	}
	// Others know the bond by the address that it had, whichever members are left.
	if (b->was_open || b->has_mac)
		(void)rte_eth_bond_mac_address_set(b->id, &port->mac);
	if (b->told && b->told->port->opened)
		(void)rte_eth_bond_primary_set(b->id, b->told->port->id);
	return 0;
}

int port_bond_open(struct port *port, struct lb_err *reterr)
{
	struct port_bond *b = port->bond;
	snprintf(b->name, sizeof(b->name), "%s", port->conf.device);
	memcpy(port->name, b->name, sizeof(port->name));
	int rc = probe_members(b, reterr);
	return rc ? rc : make(port, reterr);
}

// The driver gives the bond's address to the active member alone, and of LACP's to none; and it
// tells nobody but the active one which groups to receive.
bool port_bond_started(struct port *port)
{
	struct port_bond *b = port->bond;
	b->was_open = b->started = true;
	if (b->mode == PORT_BOND_8023AD)
		return rte_eth_promiscuous_enable(b->id) == 0;
	bool all = true;
	for (uint32_t i = 0; i < b->n; i++) {
		const struct port *m = b->members[i].port;
		if (m->opened)
			all &= m->if_index && rte_eth_promiscuous_enable(m->id) == 0;
	}
	return all;
}

static bool is_dead(const struct member *m)
{
	return __atomic_load_n(&m->dead, __ATOMIC_RELAXED);
}

static bool has_dead(const struct port_bond *b)
{
	for (uint32_t i = 0; b && i < b->n; i++)
		if (is_dead(&b->members[i]))
			return true;
	return false;
}

// One that was missing when the bond was opened again is none of its members since, and dead
// without having died here.
static bool can_move(const struct port_bond *b, const struct member *m)
{
	if (is_dead(m))
		return false;
	if (m->port->kind != PORT_PCI || !b->was_open)
		return true;
	return m->port->opened ? port_is_there(m->port) : !b->made && port_may_open(m->port);
}

bool port_bond_can_move(const struct port_bond *b)
{
	for (uint32_t i = 0; b && i < b->n; i++)
		if (!can_move(b, &b->members[i]))
			return false;
	return true;
}

// The driver gives its members their addresses back before it lets them go, and a virtio card that
// is gone never answers: then all that can be done is to stop the others. The process ends.
static void abandon(const struct port_bond *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		if (b->members[i].port->opened && !is_dead(&b->members[i]))
			(void)rte_eth_dev_stop(b->members[i].port->id);
}

void port_bond_close(struct port *port, bool forget)
{
	struct port_bond *b = port->bond;
	if (has_dead(b)) {
		abandon(b);
		return;
	}
	if (b->made) {
		// After a start that failed the driver may be about to look at its links, which
		// must not be closed then.
		if (rte_eth_dev_stop(b->id) != 0 || !b->started)
			nanosleep(&(struct timespec){.tv_nsec = UNSTARTED_NS}, NULL);
		(void)rte_eth_dev_close(b->id);
		(void)rte_eth_bond_free(b->name);
	}
	b->made = b->started = false;
	b->active = NO_ID;
	for (uint32_t i = 0; i < b->n; i++)
		port_close(b->members[i].port, forget);
}

uint16_t port_bond_mtu(const struct port_bond *b)
{
	uint16_t least = PORT_SMALL_MTU;
	for (uint32_t i = 0; i < b->n; i++) {
		const struct port *m = b->members[i].port;
		uint16_t mtu = RTE_ETHER_MTU;
		int of_kernel = m->opened && m->if_index ? interface_mtu(m->if_index) : -1;
		if (of_kernel > 0)
			mtu = (uint16_t)RTE_MIN(of_kernel, UINT16_MAX);
		if (m->opened)
			least = RTE_MIN(least, mtu);
	}
	return least;
}

static bool has_table(uint16_t id, const uint16_t *queues, uint32_t n_entries)
{
	struct rte_eth_rss_reta_entry64 groups[RTE_ETH_RSS_RETA_SIZE_512 / RTE_ETH_RETA_GROUP_SIZE];
	struct rte_eth_dev_info info;
	if (rte_eth_dev_info_get(id, &info) < 0 || info.reta_size % n_entries ||
		info.reta_size > RTE_ETH_RSS_RETA_SIZE_512)
		return false;
	memset(groups, 0, sizeof(groups));
	for (uint32_t i = 0; i < info.reta_size; i++)
		groups[i / RTE_ETH_RETA_GROUP_SIZE].mask |= UINT64_C(1)
		                                            << i % RTE_ETH_RETA_GROUP_SIZE;
	if (rte_eth_dev_rss_reta_query(id, groups, info.reta_size) != 0)
		return false;
	for (uint32_t i = 0; i < info.reta_size; i++)
		if (groups[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE] !=
			queues[i % n_entries])
			return false;
	return true;
}

bool port_bond_spreads(const struct port_bond *b, uint64_t hashes, const uint16_t *queues,
	uint32_t n_entries, const uint8_t *key, uint8_t key_len)
{
	for (uint32_t i = 0; i < b->n; i++) {
		const struct port *m = b->members[i].port;
		uint8_t own[UINT8_MAX] = {0};
		struct rte_eth_rss_conf rss = {.rss_key = own, .rss_key_len = sizeof(own)};
		if (!m->opened)
			continue;
		if (!has_table(m->id, queues, n_entries) ||
			rte_eth_dev_rss_hash_conf_get(m->id, &rss) != 0 || hashes & ~rss.rss_hf ||
			memcmp(own, key, key_len) != 0)
			return false;
	}
	return true;
}

bool port_bond_has(const struct port_bond *b, bool (*is)(const struct port *member))
{
	for (uint32_t i = 0; b && i < b->n; i++)
		if (is(b->members[i].port))
			return true;
	return false;
}

static bool is_card(const struct port *member)
{
	return member->kind == PORT_PCI;
}

bool port_bond_has_card(const struct port_bond *b)
{
	return port_bond_has(b, is_card);
}

// The watch.

bool port_bond_is_there(struct port_bond *b)
{
	bool is_there = true;
	if (has_dead(b))
		return true;
	for (uint32_t i = 0; i < b->n; i++) {
		struct member *m = &b->members[i];
		bool may = m->port->opened || port_may_open(m->port);
		if (!may)
			m->refused = false;
		bool is_card = m->port->kind == PORT_PCI; // of which look() tells
		is_there &=
			m->port->opened ? is_card || port_is_there(m->port) : !may || m->refused;
	}
	return is_there;
}

bool port_bond_may_open(const struct port_bond *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		if (port_may_open(b->members[i].port))
			return true;
	return false;
}

static enum port_member_state lacp_state(
	const struct port_bond *b, uint16_t id, struct port_member *to)
{
	struct rte_eth_bond_8023ad_slave_info info = {0};
	memset(to->partner, 0, sizeof(to->partner));
	if (rte_eth_bond_8023ad_slave_info(b->id, id, &info) != 0)
		return PORT_MEMBER_DOWN; // the driver has not seen its link yet
	if (!(info.actor_state & STATE_DEFAULTED))
		memcpy(to->partner, &info.partner.system, sizeof(to->partner));
	return info.actor_state & STATE_DISTRIBUTING ? PORT_MEMBER_DISTRIBUTING
	       : info.actor_state & STATE_COLLECTING ? PORT_MEMBER_COLLECTING
	                                             : PORT_MEMBER_WAITING;
}

static enum port_member_state state_of(const struct port_bond *b, struct member *m)
{
	if (!m->there)
		return PORT_MEMBER_GONE;
	if (!m->link)
		return PORT_MEMBER_DOWN;
	if (b->mode == PORT_BOND_8023AD)
		return lacp_state(b, m->port->id, &m->seen);
	return m->port->id == b->active ? PORT_MEMBER_ACTIVE : PORT_MEMBER_STANDBY;
}

static void look(struct port_bond *b, uint64_t now_ns)
{
	for (uint32_t i = 0; i < b->n; i++) {
		struct member *m = &b->members[i];
		enum port_member_state is = state_of(b, m), was = m->seen.state;
		if (is == was && m->seen.since_ns)
			continue;
		m->seen.n_downs += is <= PORT_MEMBER_DOWN && was > PORT_MEMBER_DOWN;
		m->seen.state = is;
		m->seen.since_ns = now_ns;
	}
}

static void look_at_links(struct port_bond *b)
{
	for (uint32_t i = 0; i < b->n; i++) {
		struct member *m = &b->members[i];
		m->there = m->port->opened && !is_dead(m) && port_is_there(m->port);
		if (m->port->opened && !m->there && m->port->kind == PORT_PCI)
			__atomic_store_n(&m->dead, true, __ATOMIC_RELAXED);
		m->link = m->there && port_link(m->port, &m->seen.mbps);
	}
}

bool port_bond_watch(struct port *port, uint64_t now_ns)
{
	struct port_bond *b = port->bond;
	uint16_t was = b->active;
	look_at_links(b);
	for (uint32_t i = 0; i < b->n; i++)
		port_inherit_claim(b->members[i].port);
	if (b->made && b->mode == PORT_BOND_ACTIVE_BACKUP) {
		port_bond_choose(port);
		b->active = (uint16_t)rte_eth_bond_primary_get(b->id);
	}
	look(b, now_ns);
	return was != NO_ID && was != b->active;
}

bool port_bond_link(const struct port_bond *b, uint32_t *ret_mbps)
{
	bool up = false;
	*ret_mbps = 0;
	for (uint32_t i = 0; i < b->n; i++) {
		const struct port_member *m = &b->members[i].seen;
		if (m->state != PORT_MEMBER_ACTIVE && m->state != PORT_MEMBER_DISTRIBUTING)
			continue;
		up = true;
		*ret_mbps += m->mbps;
	}
	return up;
}

uint32_t port_n_members(const struct port *port)
{
	return port->bond && !port->relayed ? port->bond->n : 0;
}

struct port_member port_member_of(const struct port *port, uint32_t member)
{
	const struct member *from = &port->bond->members[member];
	struct port_member m = from->seen;
	m.driver = m.driver ? m.driver : "";
	memcpy(m.mac, from->port->mac.addr_bytes, sizeof(m.mac));
	m.rx_frames = counter_read(&from->rx_frames);
	m.tx_frames = counter_read(&from->tx_frames);
	return m;
}

// Workers.

// What waits at a member that stands by would be taken for new when it becomes active, and is
// counted as lost when there is no more room.
static void drop_stale(const struct port *member, uint16_t queue)
{
	struct rte_mbuf *frames[PORT_BURST];
	uint16_t n = PORT_BURST;
	for (int i = 0; i < MAX_STALE && n == PORT_BURST; i++) {
		n = rte_eth_rx_burst(member->id, queue, frames, PORT_BURST);
		rte_pktmbuf_free_bulk(frames, n);
	}
}

void port_bond_count(struct port_bond *b, uint16_t queue)
{
	bool one_is_active = b->mode == PORT_BOND_ACTIVE_BACKUP;
	int active = one_is_active ? rte_eth_bond_primary_get(b->id) : 0;
	for (uint32_t i = 0; i < b->n; i++) {
		struct member *m = &b->members[i];
		struct rte_eth_stats stats = {0};
		if (!m->port->opened || is_dead(m))
			continue;
		if (one_is_active && m->port->id != active)
			drop_stale(m->port, queue);
		if (queue != 0 || rte_eth_stats_get(m->port->id, &stats) != 0)
			continue;
		counter_set_to(&m->rx_frames, stats.ipackets);
		counter_set_to(&m->tx_frames, stats.opackets);
	}
}
