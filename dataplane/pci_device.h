// SPDX-License-Identifier: Apache-2.0
// What the kernel says of a PCI device: its driver, and so what DPDK can do with it. root is
// prepended to every path that is read: "" is this machine.
// Thread: any.
#pragma once

#include "dataplane/pci_addr.h"

#include <stdbool.h>
#include <stdint.h>

struct pci_device {
	bool exists;
	uint64_t id; // changes when the device was removed and returns, even at the same address
	char driver[32]; // of the kernel; "" = none
	bool is_uio; // driver is a UIO driver, usable by DPDK
	bool is_vfio; // driver is VFIO, usable by DPDK
};

void pci_device_look(const char *root, const struct pci_addr *, struct pci_device *ret);
// True if the device uses physical addresses because there is no IOMMU: it then needs hugepages.
bool pci_device_wants_pa(const char *root, const struct pci_device *);
