// SPDX-License-Identifier: Apache-2.0
// A port whose device is another process's for now, as one process follows another: its queues have
// what a relay brings (relay.h).
#include "dataplane/memif.h"
#include "dataplane/port_bond.h"
#include "dataplane/port_impl.h"
#include "dataplane/port_trunk.h"
#include "dataplane/remedy.h"
#include "dataplane/unplug.h"
#include "lb/base/devargs.h"

#include <rte_cycles.h>
#include <rte_eal.h>

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The kernel lets go of a queue of AF_XDP some time after its socket was closed, mostly at once.
#define BUSY_S 1
#define PAUSE_US 10000

#define MAX_CARDS 4 // of a bond whose name has room
// Four of any domain that there is so far, each with a sign behind it, or a zero.
_Static_assert(MAX_CARDS * sizeof("ffffff:ff:1f.7") <= RELAY_MAX_NAME, "a name has room");
_Static_assert(PCI_ADDR_TEXT_MAX <= RELAY_MAX_NAME, "a name has room");

static uint64_t place_of(const struct pci_addr *a)
{
	return (uint64_t)a->domain << 32 | (uint64_t)a->bus << 16 | (uint64_t)a->device << 8 |
	       a->function;
}

static int compare(const void *a, const void *b)
{
	uint64_t one = place_of(a), other = place_of(b);
	return one < other ? -1 : one > other;
}

static bool name_memif(const struct port_conf *conf, char ret[RELAY_MAX_NAME])
{
	struct memif memif;
	return !conf->bond && memif_parse(conf->device, &memif) && memif.is_client &&
	       memif_print(&memif, ret, RELAY_MAX_NAME);
}

static bool name_xdp(const struct port_conf *conf, char ret[RELAY_MAX_NAME])
{
	struct str interface = {0};
	if (!conf->bond)
		interface = devargs_find(conf->device, "iface");
	if (!interface.p || interface.len >= IFNAMSIZ ||
		!port_is_driver(conf->device, "net_af_xdp"))
		return false;
	snprintf(ret, RELAY_MAX_NAME, "net_af_xdp,iface=%.*s", (int)interface.len, interface.p);
	return true;
}

// Of a bond the cards in the order of their addresses.
static bool name_cards(const struct port_conf *conf, char ret[RELAY_MAX_NAME])
{
	struct pci_addr cards[PORT_MAX_MEMBERS];
	const char *const *devices = conf->bond ? conf->members : &conf->device;
	uint32_t n = conf->bond ? conf->n_members : 1;
	char name[PCI_ADDR_TEXT_MAX];
	size_t len = 0;
	if (n > MAX_CARDS)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!pci_addr_parse(devices[i], &cards[i]))
			return false;
	qsort(cards, n, sizeof(cards[0]), compare);
	for (uint32_t i = 0; i < n; i++) {
		const char *text = pci_addr_print(&cards[i], name);
		if (len + strlen(text) + 2 > RELAY_MAX_NAME)
			return false;
		len += (size_t)snprintf(
			ret + len, RELAY_MAX_NAME - len, "%s%s", i ? "+" : "", text);
	}
	return true;
}

bool port_relay_name(const struct port_conf *conf, char ret[RELAY_MAX_NAME])
{
	return name_memif(conf, ret) || name_xdp(conf, ret) || name_cards(conf, ret);
}

static bool are_interfaces(const struct port_conf *conf)
{
	const char *const *devices = conf->bond ? conf->members : &conf->device;
	for (uint32_t i = 0; i < (conf->bond ? conf->n_members : 1); i++)
		if (!port_is_driver(devices[i], "net_af_packet"))
			return false;
	return true;
}

int port_check_shared(const struct port_conf *conf, struct lb_err *reterr)
{
	char name[RELAY_MAX_NAME];
	struct memif memif;
	if (are_interfaces(conf) || port_relay_name(conf, name))
		return 0;
	if (conf->bond)
		return lb_err_set(reterr,
			"ports[%u].bond: cannot be taken over, only one of net_af_packet, or of at "
			"most %u cards on PCI, can",
			conf->index, MAX_CARDS);
	bool is_memif = memif_parse(conf->device, &memif);
	if (is_memif && !memif.is_client)
		return lb_err_set(reterr,
			"ports[%u].device: %s: cannot be taken over: a memif's client comes back "
			"from a server that has gone when it likes, if at all; role=client can be",
			conf->index, conf->device);
	if (is_memif)
		return lb_err_set(reterr,
			"ports[%u].device: %s: cannot be taken over: its id and the name of its "
			"socket are longer than %u bytes together",
			conf->index, conf->device, (unsigned)(RELAY_MAX_NAME - sizeof("memif::@")));
	return lb_err_set(reterr,
		"ports[%u].device: %s: cannot be taken over, only net_af_packet, net_af_xdp, cards "
		"on PCI and memifs of role=client can",
		conf->index, conf->device);
}

// Whose sockets are not known cannot be closed for good (wait_fd.h).
static bool can_be_closed(const struct port *port)
{
	if (!port->opened || !port_is_driver(port->driver, "net_af_xdp"))
		return true;
	for (uint16_t i = 0; i < port->n_queues; i++)
		if (wait_fd_find(&port->search, port->id, i) < 0)
			return false;
	return true;
}

// Who comes after it could not be let in either; what the watch saw last may be over.
static bool has_server(const struct port *port)
{
	uint32_t mbps;
	return port->kind != PORT_MEMIF ||
	       (port->status.state != PORT_GONE && (!port->opened || port_link(port, &mbps)));
}

const char *port_why_stays(const struct port *port)
{
	if (port->relayed || port->stopping)
		return NULL;
	if (!port_bond_can_move(port->bond))
		return "is gone, and the others go with this process";
	if (!can_be_closed(port))
		return "cannot be closed: its sockets are not known";
	return has_server(port) ? NULL : "has no server that would let the newer process in";
}

// All of a trunk: each has rings of its own in the relay, and no tag there.
static void go_far(struct port *port, enum relay_side side)
{
	struct port *p;
	for (uint32_t k = 0; (p = port_trunk_port(port, k)); k++)
		for (uint32_t i = 0; i < p->n_queues; i++)
			p->queues[i].far = side;
	port->relayed = true;
	port->leaves = false;
	port_pass_queues(port, QUEUE_FAR);
}

// The older process's connections are at the address that it has.
static int check_mac(
	const struct port_conf *conf, const struct relay_port *is, struct lb_err *reterr)
{
	struct memif memif;
	struct rte_ether_addr mac, its;
	char text[RTE_ETHER_ADDR_FMT_SIZE], its_text[RTE_ETHER_ADDR_FMT_SIZE];
	memcpy(its.addr_bytes, is->mac, sizeof(is->mac));
	if (conf->bond || !memif_parse(conf->device, &memif) || !memif.mac.p)
		return 0;
	snprintf(text, sizeof(text), "%.*s", (int)memif.mac.len, memif.mac.p);
	if (rte_ether_unformat_addr(text, &mac) == 0 && rte_is_same_ether_addr(&mac, &its))
		return 0;
	rte_ether_format_addr(its_text, sizeof(its_text), &its);
	return lb_err_set(reterr, "ports[%u].device: mac=%s: the older process has %s there",
		conf->index, text, its_text);
}

int port_relay_new(struct port *port, const struct relay_port *is, struct lb_err *reterr)
{
	const struct port_conf *conf = &port->conf;
	if (check_mac(conf, is, reterr) != 0)
		return -EINVAL;
	if (conf->bond) {
		int rc = port_bond_new(port, NULL, reterr);
		if (rc)
			return rc;
		port_bond_set_mac(port, is->mac);
	} else {
		memcpy(port->mac.addr_bytes, is->mac, sizeof(is->mac));
	}
	port->driver = "relay";
	port->mtu = conf->mtu ? conf->mtu : is->mtu < PORT_SMALL_MTU ? is->mtu : PORT_SMALL_MTU;
	port->status.state = PORT_UP;
	for (uint16_t i = 0; i < port->n_queues; i++) {
		struct port_queue *q = &port->queues[i];
		char name[RTE_MEMPOOL_NAMESIZE];
		snprintf(name, sizeof(name), "mbufs-relay%u-%u", conf->index, i);
		q->index = i;
		q->wait_fd = -1;
		q->trunk = port->trunk;
		if (!port_make_mbufs(q, conf, name, SOCKET_ID_ANY)) {
			char text[REMEDY_MAX];
			return lb_err_set(reterr,
				"ports[%u].device: %s: no memory for its packets: %s", conf->index,
				conf->device, remedy_for_memory("", rte_eal_has_hugepages(), text));
		}
	}
	// Of a bond now: nobody could help it once the device is here.
	if (port->bond && port_bond_check_memory(port, reterr) != 0)
		return -EINVAL;
	go_far(port, RELAY_TO_OLDER);
	return 0;
}

void port_pass_on(struct port *port)
{
	port->leaves = !port->is_carried && !port->relayed;
}

void port_relay_leave(struct port *port)
{
	port_drop_claims(port);
	port->status.state = PORT_UP; // as far as is known
	if (!port->stopgap) {
		go_far(port, RELAY_TO_NEWER);
		return;
	}
	port->relayed = true; // its queues go far when they see that the newer one has it
	port->leaves = port->returns = false;
}

// Whether its queues are in use still. The driver does not tell that from other failures.
static bool is_busy(const struct port *port)
{
	return port_is_driver(port->conf.device, "net_af_xdp") && port_may_open(port);
}

int port_take(struct port *port, struct lb_err *reterr)
{
	if (!port->relayed)
		return 0;
	int rc = port_reopen(port, true, reterr);
	// A clock, since each opening takes what it takes.
	uint64_t end = rte_get_timer_cycles() + BUSY_S * rte_get_timer_hz();
	while (rc != 0 && is_busy(port) && rte_get_timer_cycles() < end) {
		usleep(PAUSE_US);
		rc = port_reopen(port, true, reterr);
	}
	if (rc != 0) {
		port_drop_claims(port);
		return rc;
	}
	port->relayed = false;
	if (port->kind == PORT_PCI || port_bond_has_card(port->bond))
		(void)unplug_survive(); // as in port_new()
	return 0;
}
