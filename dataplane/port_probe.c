// SPDX-License-Identifier: Apache-2.0
// A device found, claimed and probed, and what is said if it cannot be: a port's own, or a member
// of its bond.
#include "dataplane/eal.h"
#include "dataplane/interface.h"
#include "dataplane/memif.h"
#include "dataplane/pci_device.h"
#include "dataplane/port_bond.h"
#include "dataplane/port_impl.h"
#include "dataplane/remedy.h"
#include "dataplane/unplug.h"
#include "lb/base/devargs.h"

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVER_MS 1000 // in which a memif's server lets its client in; it takes some milliseconds

bool port_wants_pa(const char *device)
{
	struct pci_addr addr;
	struct pci_device found;
	if (!pci_addr_parse(device, &addr))
		return false;
	pci_device_look("", &addr, &found);
	return pci_device_wants_pa("", &found);
}

int port_take_claim(struct port *port, struct lb_err *reterr)
{
	const struct port_conf *conf = &port->conf;
	int rc = port_claim(conf->device, PORT_CLAIM_DIR, &port->claim);
	// Two processes may have packet sockets of an interface, and one any other device, whoever
	// follows whom.
	bool by_both = conf->shared && port_is_driver(conf->device, "net_af_packet");
	if (rc == 0 || rc == -ENODEV || (rc == -EADDRINUSE && by_both))
		return 0;
	if (rc == -EADDRINUSE)
		return lb_err_set(reterr, "ports[%u].%s: %s: another process drives it",
			conf->index, port_field(port), conf->device);
	return lb_err_set(reterr, "ports[%u].%s: %s: cannot be claimed (in %s): %s", conf->index,
		port_field(port), conf->device, PORT_CLAIM_DIR, strerror(-rc));
}

int port_claim_devices(struct port *port, struct lb_err *reterr)
{
	if (port->bond)
		return port_bond_claim(port->bond, reterr);
	return port->claim.name >= 0 ? 0 : port_take_claim(port, reterr);
}

void port_drop_claims(struct port *port)
{
	port_claim_drop(&port->claim);
	port_bond_drop_claims(port->bond);
}

void port_inherit_claim(struct port *port)
{
	if (port->conf.shared && port->claim.name < 0)
		(void)port_claim(port->conf.device, PORT_CLAIM_DIR, &port->claim);
}

int port_blame(struct lb_err *reterr, const struct port *port, const char *doing, int rc)
{
	char said[256];
	eal_blame(said, sizeof(said));
	lb_err_set(reterr, "ports[%u].%s: %s: %s: %s", port->conf.index, port_field(port),
		port->name, doing, said[0] ? said : rte_strerror(rc < 0 ? -rc : rc));
	return rc < 0 ? rc : -EINVAL;
}

// Whether the kernel has the interface that a device is on; a tap is made by opening it.
static bool has_interface(const struct port *port, char name[static 64])
{
	struct str interface = devargs_find(port->conf.device, "iface");
	snprintf(name, 64, "%.*s", (int)interface.len, interface.p);
	return port_is_driver(port->conf.device, "net_tap") || interface_find(name);
}

void port_blame_queues(const struct port *port, struct lb_err *reterr)
{
	char name[64], from[48] = "";
	const struct port_conf *conf = &port->conf;
	uint32_t all, wanted = port->first_queue + conf->n_queues;
	if (!port_is_driver(conf->device, "net_af_xdp") || !has_interface(port, name))
		return;
	uint32_t has = interface_queues(interface_find(name), &all);
	if (has >= conf->n_queues) // as DPDK counts them
		has = all;
	if (!has || has >= wanted)
		return;
	if (port->first_queue)
		snprintf(from, sizeof(from), ", from start_queue=%u on", port->first_queue);
	lb_err_set(reterr,
		"ports[%u].%s: %s: %s has %u queues for %u workers%s; if its driver can have more: "
		"ethtool -L %s combined %u",
		conf->index, port_field(port), port->name, name, has, conf->n_queues, from, name,
		wanted);
}

static void blame_interface(struct lb_err *reterr, const struct port *port)
{
	char name[64];
	if (has_interface(port, name))
		port_blame_queues(port, reterr);
	else
		lb_err_set(reterr,
			"ports[%u].%s: %s: there is no interface %s in this network namespace",
			port->conf.index, port_field(port), port->name, name);
}

// The same with what can be done about it, if that is to be seen.
static int blame_device(struct lb_err *reterr, const struct port *port, int rc)
{
	char text[REMEDY_MAX];
	rc = port_blame(reterr, port, "cannot open", rc);
	if (port->kind == PORT_INTERFACE)
		blame_interface(reterr, port);
	if (port->kind != PORT_PCI)
		return rc;
	remedy_for_device("", &port->pci_addr, rte_eal_has_hugepages(), text);
	if (text[0])
		lb_err_set(reterr, "ports[%u].%s: %s: %s", port->conf.index, port_field(port),
			port->name, text);
	else
		(void)port_blame(reterr, port, "DPDK has no driver for it, or that failed", rc);
	return rc;
}

// What is beyond `size` is cut.
static __attribute__((format(printf, 3, 4))) void add(
	char *text, size_t size, const char *format, ...)
{
	size_t n = strlen(text);
	va_list args;
	va_start(args, format);
	vsnprintf(text + n, size - n, format, args);
	va_end(args);
}

// PCI addresses are spelled as DPDK will call the port. af_packet's own default of 512 frames loses
// what arrives while this thread doesn't run: 4096 small frames are about 4 ms of a million a
// second.
void port_complete_devargs(const struct port_conf *conf, char *text, size_t size)
{
	struct pci_addr addr;
	char name[PCI_ADDR_TEXT_MAX];
	if (pci_addr_parse(conf->device, &addr)) {
		const char *rest = pci_addr_skip(conf->device);
		snprintf(text, size, "%s%s%s", pci_addr_print(&addr, name), *rest ? "," : "", rest);
		return;
	}
	snprintf(text, size, "%s", conf->device);
	bool large = port_is_large(conf);
	if (port_is_driver(text, "net_memif") && large && !devargs_find(text, "bsize").p)
		add(text, size, ",bsize=%u", PORT_LARGE_ROOM);
	if (port_is_driver(text, "net_af_xdp") && conf->n_queues > 1 &&
		!devargs_find(text, "queue_count").p)
		add(text, size, ",queue_count=%u", conf->n_queues);
	if (!port_is_driver(text, "net_af_packet"))
		return;
	bool rings = devargs_find(text, "framecnt").p || devargs_find(text, "framesz").p ||
	             devargs_find(text, "blocksz").p;
	if (conf->n_queues > 1 && !devargs_find(text, "qpairs").p)
		add(text, size, ",qpairs=%u", conf->n_queues);
	if (!rings && large)
		add(text, size, ",blocksz=%u,framesz=%u,framecnt=2048", PORT_LARGE_ROOM,
			PORT_LARGE_ROOM);
	else if (!rings)
		add(text, size, ",blocksz=65536,framesz=2048,framecnt=4096");
}

// A memif's client that names no address gets another one each time that it is opened.
static void keep_mac(const struct port *port, char *devargs, size_t size)
{
	char mac[RTE_ETHER_ADDR_FMT_SIZE];
	struct memif memif;
	if (!memif_parse(devargs, &memif) || memif.mac.p || rte_is_zero_ether_addr(&port->mac))
		return;
	rte_ether_format_addr(mac, sizeof(mac), &port->mac);
	add(devargs, size, ",mac=%s", mac);
}

static enum port_kind kind_of(const char *device)
{
	struct pci_addr addr;
	struct memif memif;
	if (pci_addr_parse(device, &addr))
		return PORT_PCI;
	if (memif_parse(device, &memif))
		return memif.is_client ? PORT_MEMIF : PORT_OTHER;
	return devargs_find(device, "iface").p ? PORT_INTERFACE : PORT_OTHER;
}

// A driver misspelled, or one that this DPDK comes without.
static bool has_driver(const char *devargs)
{
	struct rte_devargs parsed = {0};
	int rc = rte_devargs_parse(&parsed, devargs);
	free(parsed.data); // what rte_devargs_reset() does, which is not stable yet
	return rc == 0;
}

static void look(const struct port *port, struct pci_device *ret)
{
	pci_device_look("", &port->pci_addr, ret);
}

int port_probe(struct port *port, struct lb_err *reterr)
{
	const struct port_conf *conf = &port->conf;
	char devargs[PORT_MAX_DEVARGS];
	struct pci_device pci = {0};
	port->kind = kind_of(conf->device);
	(void)pci_addr_parse(conf->device, &port->pci_addr);
	port->first_queue = devargs_number(conf->device, "start_queue");
	if (strlen(conf->device) > PORT_MAX_DEVICE)
		return lb_err_set(reterr, "ports[%u].%s: %.64s…: longer than %u bytes", conf->index,
			port_field(port), conf->device, PORT_MAX_DEVICE);
	port_complete_devargs(conf, devargs, sizeof(devargs));
	keep_mac(port, devargs, sizeof(devargs));
	size_t len = strcspn(devargs, ",");
	if (len == 0 || len >= sizeof(port->name))
		return lb_err_set(reterr, "ports[%u].%s: %s: no device name", conf->index,
			port_field(port), conf->device);
	memcpy(port->name, devargs, len);
	if (rte_eth_dev_get_port_by_name(port->name, &port->id) == 0)
		return lb_err_set(reterr, "ports[%u].%s: %s is in use already", conf->index,
			port_field(port), port->name);
	eal_blame_start();
	if (port->kind == PORT_PCI) {
		look(port, &pci);
		port->pci_id = pci.id;
		memcpy(port->pci_driver, pci.driver, sizeof(port->pci_driver));
		if (!pci.driver[0]) // DPDK would say that there is no such device
			return blame_device(reterr, port, -ENODEV);
		port->listens = unplug_listen(port->name, &port->asked_away) == 0;
	}
	if (!has_driver(devargs))
		return lb_err_set(reterr,
			"ports[%u].%s: %s: cannot open: DPDK has no driver of this name, as are "
			"net_af_packet, net_af_xdp, net_tap and net_memif",
			conf->index, port_field(port), port->name);
	int rc = rte_dev_probe(devargs);
	if (rc < 0)
		return blame_device(reterr, port, rc);
	rc = rte_eth_dev_get_port_by_name(port->name, &port->id);
	if (rc < 0) {
		rc = port_blame(reterr, port, "is not a network device", rc);
		(void)rte_eal_hotplug_remove(port->kind == PORT_PCI ? "pci" : "vdev", port->name);
		return rc;
	}
	port->opened = true;
	return 0;
}

bool port_is_there(const struct port *port)
{
	struct pci_device pci;
	if (port->bond)
		return port_bond_is_there(port->bond);
	switch (port->kind) {
	case PORT_PCI:
		if (__atomic_load_n(&port->asked_away, __ATOMIC_RELAXED))
			return false;
		look(port, &pci);
		return pci.exists && pci.id == port->pci_id &&
		       strcmp(pci.driver, port->pci_driver) == 0;
	case PORT_INTERFACE:
		return !port->if_index || interface_exists(port->if_index);
	default:
		return true;
	}
}

bool port_may_open(const struct port *port)
{
	struct pci_device pci;
	struct memif memif;
	char name[64];
	if (port->bond)
		return port_bond_may_open(port->bond);
	switch (port->kind) {
	case PORT_PCI:
		look(port, &pci);
		return pci.is_uio || pci.is_vfio ||
		       (pci.driver[0] && strcmp(pci.driver, port->pci_driver) == 0);
	case PORT_INTERFACE:
		return has_interface(port, name);
	case PORT_MEMIF:
		return !memif_parse(port->conf.device, &memif) || memif_has_socket(&memif);
	default:
		return true;
	}
}

bool port_link(const struct port *port, uint32_t *ret_mbps)
{
	struct rte_eth_link link = {0};
	bool up;
	*ret_mbps = 0;
	if (port->bond)
		return port_bond_link(port->bond, ret_mbps);
	if (port->if_index && interface_link(port->if_index, &up, ret_mbps))
		return up;
	if (rte_eth_link_get_nowait(port->id, &link) < 0 || !link.link_status)
		return false;
	*ret_mbps = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
	return true;
}

int port_blame_server(const struct port *port, struct lb_err *reterr)
{
	return lb_err_set(reterr,
		"ports[%u].%s: %s: the memif's server does not let it in: it has a client, or "
		"wants another id or secret, or fewer queues",
		port->conf.index, port_field(port), port->name);
}

int port_await_server(const struct port *port, struct lb_err *reterr)
{
	uint32_t mbps;
	if (port->kind != PORT_MEMIF)
		return 0;
	for (int ms = 0; ms < SERVER_MS; ms++) {
		if (port_link(port, &mbps))
			return 0;
		usleep(1000);
	}
	return port_blame_server(port, reterr);
}
