// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_trunk.h"

#include "ctrl/conf/config.h"

#include <string.h>

static bool is_same_bond(const struct config_bond *a, const struct config_bond *b)
{
	if (a->mode != b->mode || a->n_members != b->n_members)
		return false;
	for (unsigned i = 0; i < a->n_members; i++)
		if (strcmp(a->members[i], b->members[i]) != 0)
			return false;
	return true;
}

// A port without either, or with both, is wrong by itself.
static bool is_same_device(const struct config_port *a, const struct config_port *b)
{
	if (a->bond || b->bond)
		return a->bond && b->bond && is_same_bond(a->bond, b->bond);
	return a->device && b->device && strcmp(a->device, b->device) == 0;
}

unsigned config_trunk_find(const struct config *c, unsigned port)
{
	unsigned i = 0;
	while (i < port && !is_same_device(&c->ports[i], &c->ports[port]))
		i++;
	return i;
}

static int check_vlan(
	const struct config_port *p, unsigned port, unsigned other, struct lb_err *reterr)
{
	if (p->vlan)
		return lb_err_set(reterr,
			"ports[%u].vlan: %u is that of ports[%u], which has the same device", port,
			p->vlan, other);
	return lb_err_set(reterr,
		"ports[%u].vlan: there is none, as in ports[%u], which has the same device: of "
		"these one at most may be without",
		port, other);
}

int config_check_trunk(const struct config *c, unsigned port, struct lb_err *reterr)
{
	const struct config_port *p = &c->ports[port];
	for (unsigned i = p->carrier; i < port; i++)
		if (c->ports[i].carrier == p->carrier && c->ports[i].vlan == p->vlan)
			return check_vlan(p, port, i, reterr);
	if (p->steering != c->ports[p->carrier].steering)
		return lb_err_set(reterr,
			"ports[%u].steering: it is the device's, and ports[%u], which has the same "
			"one, says otherwise",
			port, p->carrier);
	return 0;
}

unsigned config_trunk_size(const struct config *c, unsigned carrier)
{
	unsigned n = 0;
	for (unsigned i = carrier; i < c->n_ports; i++)
		n += c->ports[i].carrier == carrier;
	return n;
}

unsigned config_trunk_longest(const struct config *c, unsigned carrier)
{
	unsigned port = carrier;
	for (unsigned i = carrier; i < c->n_ports; i++)
		if (c->ports[i].carrier == carrier && c->ports[i].mtu > c->ports[port].mtu)
			port = i;
	return port;
}

bool config_trunk_has_ip6(const struct config *c, unsigned carrier)
{
	bool any = false;
	for (unsigned i = carrier; i < c->n_ports; i++)
		any |= c->ports[i].carrier == carrier && c->ports[i].has_ip6;
	return any;
}

bool config_trunk_has_kernel(const struct config *c, unsigned carrier)
{
	bool any = false;
	for (unsigned i = carrier; i < c->n_ports; i++)
		any |= c->ports[i].carrier == carrier && c->ports[i].kernel;
	return any;
}
