// SPDX-License-Identifier: Apache-2.0
// When the allocator, which keeps what as many handshakes took as were open at a time, is to give
// that back to the system (TLS-218): when most of a storm has ended, and again when most of those
// have who were open then, until nobody is left. To trim it stops others who allocate for some
// milliseconds, so it happens seldom. Zeroed = nothing was open yet.
// Thread: one handshake thread, for all of them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tlshs_storm {
	uint32_t peak; // most that were open at a time, since memory was given back
	uint32_t n_left; // that were open then: what they took is still due; 0 = nothing is
	uint64_t next_ns; // not before then
};

// So many are open now. Call it as one starts.
void tlshs_storm_see(struct tlshs_storm *, uint32_t n_open);
// Call it when there is nothing else to do. True = give memory back now.
bool tlshs_storm_is_over(struct tlshs_storm *, uint32_t n_open, uint64_t now_ns);
