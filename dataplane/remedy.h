// SPDX-License-Identifier: Apache-2.0
// Advice for an operator when DPDK could not get a device or memory: DPDK's messages describe its
// attempt, but the kernel's files show the cause. root is prepended to their paths; "" is this
// machine.
// Thread: any.
#pragma once

#include "dataplane/pci_addr.h"

#include <stdbool.h>
#include <stddef.h>

#define REMEDY_MAX 256

// For a PCI device that could not be opened, with or without hugepages: a text without a full stop;
// "" = no known obstacle.
const char *remedy_for_device(
	const char *root, const struct pci_addr *, bool hugepages, char ret[REMEDY_MAX]);
// For insufficient memory; never "".
const char *remedy_for_memory(const char *root, bool hugepages, char ret[REMEDY_MAX]);
