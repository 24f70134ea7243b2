// SPDX-License-Identifier: Apache-2.0
// By which devices ports send, for processes of ours that have the same ones: all must send a
// port's frames by the same cable, since switches take an address for being where they saw it last,
// and a bond has several (docs/decisions/takeover.md).
// Thread: any.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LB_CABLE_NAME 16 // as a kernel's interface has, with a zero
#define LB_MAX_CABLES 8 // of each port one
#define LB_CABLE_MEMBERS 8 // of a bond

struct lb_cable {
	char name[LB_CABLE_NAME]; // of the kernel's interface
	uint8_t mac[6]; // that the port has
	bool is_bond; // it is one of several, of which another may carry next
	uint8_t n_members; // of the bond; 0 = the sender's version does not say
	// All processes have the same; without a link in one the next one carries, in this order.
	char members[LB_CABLE_MEMBERS][LB_CABLE_NAME];
};
// In a message, and compared, as bytes: what is not used is zero.
struct lb_cables {
	uint32_t n;
	struct lb_cable list[LB_MAX_CABLES];
};
