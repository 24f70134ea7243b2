// SPDX-License-Identifier: Apache-2.0
// A bound of frames a second: a token bucket in time, which holds a tenth of a second's frames, or
// one.
// Thread: the one that has it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rate {
	uint64_t frame_ns; // of one frame
	uint64_t tokens_ns, last_ns; // accumulated time, and until when
};

// An empty one; per_second: from 1 to 10^9.
void rate_init(struct rate *, uint32_t per_second);
// True = one more is within it.
bool rate_take(struct rate *, uint64_t now_ns);
