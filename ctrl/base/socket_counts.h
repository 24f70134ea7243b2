// SPDX-License-Identifier: Apache-2.0
// What the sockets of operators and their tools count, both together.
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct socket_counts { // zero = none yet
	uint32_t n_open; // connections now
	uint64_t n_cut; // connections that were closed since a newcomer found all places taken
};
