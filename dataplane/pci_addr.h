// SPDX-License-Identifier: Apache-2.0
// The PCI address of a device, in all notations.
// Thread: any.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pci_addr {
	uint32_t domain;
	uint8_t bus, device, function;
};

// Reads it from the start of devargs, as DPDK does: "0000:03:00.0", "3:0.0" (domain 0), any case,
// after "pci:", "bus=pci,addr=" or nothing, up to the end, a comma or a slash. Returns false if
// devargs name no PCI device.
bool pci_addr_parse(const char *devargs, struct pci_addr *ret);
// In the kernel's and DPDK's notation: "0000:03:00.0".
#define PCI_ADDR_TEXT_MAX 20
const char *pci_addr_print(const struct pci_addr *, char text[PCI_ADDR_TEXT_MAX]);
bool pci_addr_eq(const struct pci_addr *, const struct pci_addr *);
// What follows the address in devargs: "vectorized=1"; "" = nothing.
const char *pci_addr_skip(const char *devargs);
