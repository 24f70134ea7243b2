// SPDX-License-Identifier: Apache-2.0
#include "dataplane/port_cable.h"

#include "dataplane/memif.h"
#include "dataplane/port_bond.h"
#include "dataplane/port_impl.h"
#include "lb/base/devargs.h"
#include "lb/base/min.h"

#include <string.h>

void port_cable_name(const char *device, char ret[LB_CABLE_NAME])
{
	struct str interface = devargs_find(device, "iface");
	struct str name = interface.p ? interface : str_until(str_from(device), ',');
	memset(ret, 0, LB_CABLE_NAME);
	memcpy(ret, name.p, min_size(name.len, LB_CABLE_NAME - 1));
}

bool port_cable_get(const struct port *port, struct lb_cable *ret)
{
	struct pci_addr addr;
	struct memif memif;
	if (port->is_carried || port->stopping) // what is being closed is the closer's alone
		return false;
	const char *device = port->bond ? port_bond_carries(port->bond) : port->conf.device;
	if (!device || pci_addr_parse(device, &addr) || memif_parse(device, &memif))
		return false;
	*ret = (struct lb_cable){0};
	if (port->bond)
		port_bond_tell(port->bond, ret);
	port_cable_name(device, ret->name);
	memcpy(ret->mac, port->mac.addr_bytes, sizeof(ret->mac));
	return true;
}

void port_follow(struct port *port, const struct lb_cables *cables)
{
	if (port->bond)
		(void)port_bond_follow(port->bond, cables);
}
