// SPDX-License-Identifier: Apache-2.0
#include "dataplane/device_name.h"

#include "dataplane/pci_addr.h"
#include "lb/base/devargs.h"
#include "lb/base/min.h"

#include <string.h>

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

int device_name_check(const char *device, struct lb_err *reterr)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_";
	struct pci_addr addr;
	struct str iface = devargs_find(device, "iface");
	size_t len = strcspn(device, ",");
	if (pci_addr_parse(device, &addr))
		return 0;
	if ((begins(device, "net_af_packet") || begins(device, "net_af_xdp")) && !iface.p)
		return lb_err_set(reterr, "'%.64s' names no interface, as in %.*s,iface=INTERFACE",
			device, len > 32 ? 32 : (int)len, device);
	// DPDK's virtual devices begin so, by their names or older ones. On its other buses names
	// have dots, colons or dashes.
	if (len == 0 || strspn(device, plain) != len || begins(device, "net_") ||
		begins(device, "eth_"))
		return 0;
	struct str name = iface.p ? iface : (struct str){device, len};
	return lb_err_set(reterr,
		"'%.64s' is neither a PCI address nor a device of DPDK's; an interface of the "
		"kernel's is net_af_packet0,iface=%.*s",
		device, (int)min_size(name.len, 15), name.p);
}
