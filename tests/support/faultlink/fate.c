// SPDX-License-Identifier: Apache-2.0
#include "tests/support/faultlink/fate.h"

#include "lb/base/rand.h"

// Uniform in [0, 1).
static double draw(struct rand *r)
{
	return (double)(rand_u64(r) >> 11) * 0x1p-53;
}

void fates_init(struct fates *f, uint64_t seed, unsigned direction)
{
	struct rand r;
	rand_init(&r, seed * 2 + direction);
	*f = (struct fates){.seed = rand_u64(&r)};
}

struct fate fates_next(struct fates *f, const struct faults *how)
{
	struct rand r;
	rand_init(&r, f->seed + f->number++);
	double loss = draw(&r), turn = draw(&r), corrupt = draw(&r), forged = draw(&r),
	       twice = draw(&r), reorder = draw(&r), late = draw(&r), jitter = draw(&r);
	if (turn < (f->in_burst ? how->burst_end : how->burst_begin))
		f->in_burst = !f->in_burst;
	return (struct fate){
		.lost = f->in_burst || loss < how->loss,
		.burst = f->in_burst,
		.corrupt = corrupt < how->corrupt,
		.forged = forged < how->forge,
		.twice = twice < how->duplicate,
		.late_ns = reorder < how->reorder ? (uint64_t)(late * (double)how->reorder_ns) : 0,
		.jitter_ns = (uint64_t)(jitter * (double)how->jitter_ns),
		.where = rand_u64(&r),
	};
}
