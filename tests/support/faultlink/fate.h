// SPDX-License-Identifier: Apache-2.0
// What becomes of one frame, drawn from seed, direction and the frame's number alone: however
// frames lie in time, the one with a number has the same fate. Each frame takes the same number of
// draws, so that one fault more or less leaves the others where they were.
// Thread: the owner's.
#pragma once

#include "tests/support/faultlink/faults.h"

struct fate {
	bool lost;
	bool burst; // lost in a burst
	bool corrupt, forged, twice;
	uint64_t late_ns; // reordered: held back by so much
	uint64_t jitter_ns;
	uint64_t where; // of the bit to flip: any number
};

struct fates {
	uint64_t seed;
	uint64_t number; // of the next frame
	bool in_burst;
};

void fates_init(struct fates *, uint64_t seed, unsigned direction);
struct fate fates_next(struct fates *, const struct faults *);
