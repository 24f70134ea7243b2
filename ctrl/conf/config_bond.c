// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_bond.h"

#include "ctrl/conf/config.h"
#include "ctrl/conf/config_trunk.h"
#include "lb/base/devargs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Of all ports, in their order.
struct list {
	unsigned n;
	struct entry {
		const char *device;
		char name[48]; // to people
	} entries[CONFIG_MAX_PORTS * (CONFIG_MAX_MEMBERS + 1)];
};

static bool starts(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

// Up to a comma.
static bool has_same_start(const char *a, const char *b)
{
	size_t len = strcspn(a, ",");
	return len == strcspn(b, ",") && strncmp(a, b, len) == 0;
}

static bool is_same(const char *a, const char *b)
{
	struct str of_a = devargs_find(a, "iface"), of_b = devargs_find(b, "iface");
	return has_same_start(a, b) || (of_a.p && of_b.p && str_eq(of_a, of_b));
}

// 0, or -EINVAL with reterr, if it is in the list.
static int add(struct list *l, const char *device, const char *name, const char *field,
	struct lb_err *reterr)
{
	for (unsigned i = 0; i < l->n; i++) {
		const char *other = l->entries[i].name;
		bool are_ports = !strstr(other, "bond") && !strstr(field, "bond");
		if (is_same(l->entries[i].device, device)) // in the same words it is a trunk
			return lb_err_set(reterr, "%s: '%s' is %s already%s", field, device, other,
				are_ports ? ", in other words" : "");
	}
	struct entry *e = &l->entries[l->n++];
	e->device = device;
	snprintf(e->name, sizeof(e->name), "%s", name);
	return 0;
}

// DPDK's drivers of these tell that there is a link as long as they are open. Of an active-backup
// Shunt itself looks at the kernel's interface, but LACP is DPDK's.
static const char *why_no_lacp(const char *device)
{
	if (devargs_find(device, "iface").p || starts(device, "net_tap"))
		return "DPDK does not see the link of the kernel's interfaces";
	return NULL;
}

static int check_mode(const struct config_bond *b, struct lb_err *reterr)
{
	if (b->mode == CONFIG_BOND_ACTIVE_BACKUP && b->n_members < 2)
		return lb_err_set(reterr, "members: active-backup needs two at least");
	for (unsigned i = 0; i < b->n_members && b->mode == CONFIG_BOND_8023AD; i++) {
		const char *why = why_no_lacp(b->members[i]);
		if (why)
			return lb_err_set(reterr,
				"members[%u]: %s: cannot be one of 802.3ad: %s (active-backup can)",
				i, b->members[i], why);
	}
	return 0;
}

static int check_bond(const struct config *c, unsigned port, struct list *l, struct lb_err *reterr)
{
	const struct config_bond *b = c->ports[port].bond;
	char field[48];
	if (check_mode(b, reterr))
		return lb_err_within(reterr, "ports[%u].bond", port);
	for (unsigned i = 0; i < b->n_members; i++) {
		snprintf(field, sizeof(field), "ports[%u].bond.members[%u]", port, i);
		if (starts(b->members[i], "net_bonding") || starts(b->members[i], "eth_bond"))
			return lb_err_set(reterr, "%s: a bond cannot be a member", field);
		if (add(l, b->members[i], field, field, reterr))
			return -EINVAL;
	}
	return 0;
}

static int check_device(struct config *c, unsigned port, struct list *l, struct lb_err *reterr)
{
	struct config_port *p = &c->ports[port];
	char text[48], name[48];
	if (p->device && p->bond)
		return lb_err_set(reterr, "ports[%u].bond: this port has a device besides", port);
	if (!p->device && !p->bond)
		return lb_err_set(
			reterr, "ports[%u]: device: there is neither one nor a bond", port);
	p->carrier = config_trunk_find(c, port);
	bool is_first = p->carrier == port;
	if (!is_first && config_check_trunk(c, port, reterr))
		return -EINVAL;
	if (is_first && p->bond && check_bond(c, port, l, reterr))
		return -EINVAL;
	if (p->bond) {
		snprintf(text, sizeof(text), "net_bonding%u", p->carrier);
		p->device = strdup(text);
		return p->device ? 0 : lb_err_set(reterr, "out of memory");
	}
	if (starts(p->device, "net_bonding") || starts(p->device, "eth_bond"))
		return lb_err_set(reterr,
			"ports[%u].device: %s: a bond is written as bond: {mode: …, members: […]}",
			port, p->device);
	if (!is_first)
		return 0;
	snprintf(text, sizeof(text), "ports[%u].device", port);
	snprintf(name, sizeof(name), "ports[%u]", port);
	return add(l, p->device, name, text, reterr);
}

int config_check_devices(struct config *c, struct lb_err *reterr)
{
	struct list l = {.n = 0};
	unsigned n_bonds = 0;
	for (unsigned i = 0; i < c->n_ports; i++) {
		if (check_device(c, i, &l, reterr))
			return -EINVAL;
		n_bonds += c->ports[i].bond && c->ports[i].carrier == i;
	}
	if (l.n + n_bonds > CONFIG_MAX_DEVICES)
		return lb_err_set(reterr, "ports: %u devices and bonds, and %u is the most",
			l.n + n_bonds, CONFIG_MAX_DEVICES);
	return 0;
}

static bool has_member(const struct config_bond *b, const char *interface)
{
	for (unsigned i = 0; i < b->n_members; i++)
		if (str_eq(devargs_find(b->members[i], "iface"), str_from(interface)))
			return true;
	return false;
}

static const struct config_bond *find_bond(const struct config *c, const char *interface)
{
	for (unsigned i = 0; i < c->n_ports; i++)
		if (c->ports[i].bond && has_member(c->ports[i].bond, interface))
			return c->ports[i].bond;
	return NULL;
}

static bool is_among(const struct lb_cable *cable, const char *device)
{
	struct str interface = devargs_find(device, "iface");
	for (unsigned i = 0; interface.p && i < cable->n_members; i++)
		if (str_eq(interface, str_from(cable->members[i])))
			return true;
	return false;
}

static int check_members(
	const struct config_bond *b, const struct lb_cable *cable, struct lb_err *reterr)
{
	static const char must[] = "both must have the same";
	for (unsigned i = 0; i < cable->n_members; i++)
		if (!has_member(b, cable->members[i]))
			return lb_err_set(reterr,
				"ports: %s is in the older process's bond of %s, and not here: %s",
				cable->members[i], cable->name, must);
	for (unsigned i = 0; i < b->n_members && cable->n_members; i++)
		if (!is_among(cable, b->members[i]))
			return lb_err_set(reterr,
				"ports: %s is in the bond of %s, and not in the older process's: "
				"%s",
				b->members[i], cable->name, must);
	return 0;
}

static int check_cable(const struct config *c, const struct lb_cable *cable, struct lb_err *reterr)
{
	const struct config_bond *b = find_bond(c, cable->name);
	if (b && cable->is_bond)
		return check_members(b, cable, reterr);
	if (b)
		return lb_err_set(reterr,
			"ports: %s is a port of the older process by itself, and a bond's member "
			"here",
			cable->name);
	if (!cable->is_bond)
		return 0;
	return lb_err_set(reterr,
		"ports: %s carries a bond of the older process, and is no member of one here",
		cable->name);
}

int config_check_cables(
	const struct config *c, const struct lb_cables *older, struct lb_err *reterr)
{
	for (uint32_t k = 0; k < older->n; k++)
		if (check_cable(c, &older->list[k], reterr) != 0)
			return -EINVAL;
	return 0;
}
