// SPDX-License-Identifier: Apache-2.0
// The state of the kernel interface behind a device (af_packet, af_xdp, tap): DPDK's drivers for
// these always report a link that is up, and never a removal.
// Thread: any.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Returns its index in this network namespace; 0 = none.
unsigned interface_find(const char *name);
// False = it was deleted, or moved to another namespace. A new interface of the same name is
// another one. True, too, if nobody can tell, as without a descriptor to ask by.
bool interface_exists(unsigned index);
// Returns -1 if unknown.
int interface_mtu(unsigned index);
// True = the kernel's driver of virtual pairs.
bool interface_is_veth(unsigned index);
// How many queues it has that receive and send, as `ethtool -L` sets them (combined); 1 if its
// driver has no such thing, 0 = unknown. *ret_all: of any kind; likewise 0.
uint32_t interface_queues(unsigned index, uint32_t *ret_all);
// Switches off that it merges received segments (GRO, LRO, also in hardware). False = it doesn't,
// or cannot be told.
bool interface_refuse_merging(unsigned index);
// Returns false if unknown. *ret_up: interface and link are up. *ret_mbps: 0 = unknown.
bool interface_link(unsigned index, bool *ret_up, uint32_t *ret_mbps);
