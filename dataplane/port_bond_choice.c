// SPDX-License-Identifier: Apache-2.0
// Which member of an active-backup carries.
#include "dataplane/port_bond_impl.h"
#include "dataplane/port_cable.h"

#include <rte_eth_bond.h>

#include <string.h>

// The driver leaves a card by itself whose link goes. It hears nothing of one that is gone, and of
// the link of kernel interfaces neither, which their drivers report as up, always.
static bool may_stay(const struct member *m)
{
	return m->there && (m->link || !m->port->if_index);
}

static void carry_by(struct port *port, const struct port *m)
{
	(void)rte_eth_bond_primary_set(port->bond->id, m->id);
	if (!m->if_index) // which are promiscuous
		(void)rte_eth_dev_default_mac_addr_set(m->id, &port->mac);
}

void port_bond_choose(struct port *port)
{
	const struct port_bond *b = port->bond;
	int now = rte_eth_bond_primary_get(b->id);
	if (b->told && may_stay(b->told)) {
		if (b->told->port->id != now)
			carry_by(port, b->told->port);
		return;
	}
	for (uint32_t i = 0; i < b->n; i++)
		if (b->members[i].port->id == now && may_stay(&b->members[i]))
			return;
	for (uint32_t i = 0; i < b->n; i++) {
		const struct member *m = &b->members[b->order[i]];
		if (!m->link)
			continue;
		carry_by(port, m->port);
		return;
	}
}

static const struct member *find(const struct port_bond *b, const char *cable)
{
	char name[LB_CABLE_NAME];
	for (uint32_t i = 0; i < b->n; i++) {
		port_cable_name(b->members[i].port->conf.device, name);
		if (strcmp(name, cable) == 0)
			return &b->members[i];
	}
	return NULL;
}

// All members once, whatever was said. NULL = in ours.
static void set_order(struct port_bond *b, const struct lb_cable *cable)
{
	bool has[PORT_MAX_MEMBERS] = {false};
	uint32_t n = 0;
	for (uint32_t i = 0; cable && i < cable->n_members; i++) {
		const struct member *m = find(b, cable->members[i]);
		if (!m || has[m - b->members])
			continue;
		has[m - b->members] = true;
		b->order[n++] = (uint8_t)(m - b->members);
	}
	for (uint32_t i = 0; i < b->n; i++)
		if (!has[i])
			b->order[n++] = (uint8_t)i;
}

const struct lb_cable *port_bond_follow(struct port_bond *b, const struct lb_cables *cables)
{
	const struct lb_cable *found = NULL;
	b->told = NULL;
	for (uint32_t k = 0;
		cables && b->mode == PORT_BOND_ACTIVE_BACKUP && k < cables->n && !found; k++) {
		if (cables->list[k].is_bond)
			b->told = find(b, cables->list[k].name);
		found = b->told ? &cables->list[k] : NULL;
	}
	set_order(b, found);
	return found;
}

void port_bond_tell(const struct port_bond *b, struct lb_cable *ret)
{
	ret->is_bond = true;
	ret->n_members = (uint8_t)b->n;
	for (uint32_t i = 0; i < b->n; i++)
		port_cable_name(b->members[b->order[i]].port->conf.device, ret->members[i]);
}

const char *port_bond_carries(const struct port_bond *b)
{
	int now = b->made && b->mode == PORT_BOND_ACTIVE_BACKUP ? rte_eth_bond_primary_get(b->id)
	                                                        : -1;
	for (uint32_t i = 0; i < b->n; i++)
		if (b->members[i].port->opened && b->members[i].port->id == now)
			return b->members[i].port->conf.device;
	return NULL;
}
