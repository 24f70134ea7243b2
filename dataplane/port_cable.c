// SPDX-License-Identifier: Apache-2.0
#include "dataplane/port_cable.h"

#include "dataplane/device_name.h"
#include "dataplane/memif.h"
#include "dataplane/port_bond.h"
#include "dataplane/port_impl.h"

#include <string.h>

void port_cable_name(const char *device, char ret[LB_CABLE_NAME])
{
	size_t len;
	const char *interface = device_name_interface(device, &len);
	const char *name = interface ? interface : device;
	len = interface ? len : strcspn(name, ",");
	len = len < LB_CABLE_NAME ? len : LB_CABLE_NAME - 1;
	memset(ret, 0, LB_CABLE_NAME);
	memcpy(ret, name, len);
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
