// SPDX-License-Identifier: Apache-2.0
// What the kernel says of a device on the PCI bus: who drives it, and so what DPDK can do with it.
// root is put before every path that is read: "" is this machine.
// Thread: any.
#pragma once

#include "dataplane/pci_addr.h"

#include <stdbool.h>
#include <stdint.h>

struct pci_device {
	bool exists;
	uint64_t id; // another one after it was away, at the same address, too
	char driver[32]; // of the kernel; "" = none
	bool is_uio; // driver: one that gives the device to us
	bool is_vfio; // likewise
};

void pci_device_look(const char *root, const struct pci_addr *, struct pci_device *ret);
// Whether the device sees physical addresses, since no IOMMU is between: then only hugepages are
// memory to it.
bool pci_device_wants_pa(const char *root, const struct pci_device *);
