// SPDX-License-Identifier: Apache-2.0
// What `show listeners` tells of a Listener that came by a wildcard.
// Thread: ctrl.
#pragma once

#include "lb/base/ip.h"

#include <stdint.h>

struct show_listener { // texts are borrowed for the call
	const char *name;
	// "serving", "waiting" (for what its chains need), "outside" (no address in vips),
	// "leaving" (it does not serve, and its clients have time), or "failing"
	const char *state;
	const struct ip_port *addresses; // where clients are taken
	uint32_t n_addresses;
	uint32_t n_chains; // those of clients that leave included
	const char *waiting; // for what; "" = nothing
	const char *refused; // why what is newer than what serves does not; "" = there is none
	const char *error; // why it does not serve; "" = it does
};
