// SPDX-License-Identifier: Apache-2.0
// A port whose device is another process's for now, as one process follows another: its queues have
// what a relay brings (relay.h).
#include "dataplane/port_impl.h"
#include "dataplane/remedy.h"
#include "dataplane/unplug.h"

#include <rte_eal.h>

#include <stdio.h>
#include <string.h>

bool port_relay_name(const char *device, char ret[RELAY_MAX_NAME])
{
	struct pci_addr addr;
	char name[PCI_ADDR_TEXT_MAX];
	if (!pci_addr_parse(device, &addr))
		return false;
	_Static_assert(PCI_ADDR_TEXT_MAX <= RELAY_MAX_NAME, "a name has room");
	snprintf(ret, RELAY_MAX_NAME, "%s", pci_addr_print(&addr, name));
	return true;
}

static void go_far(struct port *port, enum relay_side side)
{
	for (uint32_t i = 0; i < port->n_queues; i++)
		port->queues[i].far = side;
	port->relayed = true;
	port->leaves = false;
	port_pass_queues(port, QUEUE_FAR);
}

int port_relay_new(struct port *port, const struct relay_port *is, struct lb_err *reterr)
{
	const struct port_conf *conf = &port->conf;
	if (is->vlan != conf->vlan)
		return lb_err_set(reterr, "ports[%u].vlan: %u, and the older process has %u",
			conf->index, conf->vlan, is->vlan);
	port->driver = "relay";
	port->mtu = conf->mtu ? conf->mtu : is->mtu < PORT_SMALL_MTU ? is->mtu : PORT_SMALL_MTU;
	memcpy(port->mac.addr_bytes, is->mac, sizeof(is->mac));
	port->status.state = PORT_UP;
	for (uint16_t i = 0; i < port->n_queues; i++) {
		struct port_queue *q = &port->queues[i];
		char name[RTE_MEMPOOL_NAMESIZE];
		snprintf(name, sizeof(name), "mbufs-relay%u-%u", conf->index, i);
		q->index = i;
		q->wait_fd = -1;
		if (!port_make_mbufs(q, conf, name, SOCKET_ID_ANY)) {
			char text[REMEDY_MAX];
			return lb_err_set(reterr,
				"ports[%u].device: %s: no memory for its packets: %s", conf->index,
				conf->device, remedy_for_memory("", rte_eal_has_hugepages(), text));
		}
	}
	go_far(port, RELAY_TO_OLDER);
	return 0;
}

void port_relay_leave(struct port *port)
{
	port_claim_drop(&port->claim);
	port->status.state = PORT_UP; // as far as is known
	go_far(port, RELAY_TO_NEWER);
}

int port_take(struct port *port, struct lb_err *reterr)
{
	if (!port->relayed)
		return 0;
	int rc = port_reopen(port, reterr);
	if (rc != 0) {
		port_claim_drop(&port->claim);
		return rc;
	}
	port->relayed = false;
	(void)unplug_survive(); // as in port_new()
	return 0;
}
