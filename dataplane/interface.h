// SPDX-License-Identifier: Apache-2.0
// The kernel's interface behind a device (af_packet, af_xdp, tap), which DPDK's drivers say little
// of: theirs report a link that is always up, and no end.
// Thread: any.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Its index in this network namespace; 0 = there is none.
unsigned interface_find(const char *name);
// False = it was deleted, or moved to another namespace. A new one of its name is another one.
bool interface_exists(unsigned index);
// -1 = unknown.
int interface_mtu(unsigned index);
// False = unknown. *ret_up: it is up, and so is its link. *ret_mbps: 0 = unknown.
bool interface_link(unsigned index, bool *ret_up, uint32_t *ret_mbps);
