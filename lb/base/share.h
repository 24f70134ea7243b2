// SPDX-License-Identifier: Apache-2.0
// How much of what all share one holder may have, so that none shuts the others out: by the dynamic
// threshold of packet buffers (Choudhury and Hahne, 1998) a holder gets one more while it has less
// than SHARE_FACTOR times what is free. So N greedy holders who come and go leave one part in
// SHARE_FACTOR * N + 1 free. But when they begin one after the other and let nothing go, each takes
// most of what the one before it left. Therefore the last places, one in SHARE_RESERVE, go by a
// threshold of their own to whoever holds least: each newcomer leaves nearly all of them.
// Thread: any.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SHARE_FACTOR 3 // one greedy holder leaves a quarter
#define SHARE_RESERVE 8
#define SHARE_LITTLE 8 // one part of so many of what is free

// May a holder of n take one more?
static inline bool share_allows(uint64_t n, uint64_t n_free)
{
	return n < SHARE_FACTOR * n_free;
}
// The same with a reserve, of n_total in all.
static inline bool share_allows_place(uint64_t n, uint64_t n_free, uint64_t n_total)
{
	uint64_t reserve = n_total / SHARE_RESERVE;
	if (n_free > reserve && share_allows(n, n_free - reserve))
		return true;
	return n * SHARE_LITTLE < n_free;
}
