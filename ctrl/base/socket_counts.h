// SPDX-License-Identifier: Apache-2.0
// What sockets with a bound on their connections count: those of operators and their tools, both
// together, and the status port.
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct socket_counts { // zero = none yet
	uint32_t n_open; // connections now
	uint64_t n_cut; // connections that were closed since a newcomer found all places taken
	uint64_t n_refused; // of the status port: that ended without a handshake of TLS
};
