// SPDX-License-Identifier: Apache-2.0
// What an operator can do about a device or memory that DPDK could not get: DPDK's own words are
// about its attempt, the cause is to be seen in the kernel's files. root is put before their paths;
// "" is this machine.
// Thread: any.
#pragma once

#include "dataplane/pci_addr.h"

#include <stdbool.h>
#include <stddef.h>

#define REMEDY_MAX 256

// Of a PCI device that could not be opened, with or without hugepages: a text without a full stop;
// "" = nothing of what is looked at stands in the way.
const char *remedy_for_device(
	const char *root, const struct pci_addr *, bool hugepages, char ret[REMEDY_MAX]);
// Of memory that there was not enough of; never "".
const char *remedy_for_memory(const char *root, bool hugepages, char ret[REMEDY_MAX]);
