// SPDX-License-Identifier: Apache-2.0
// One direction of a faultlink: frames go in, and come out when and as its faults say. Time is an
// argument, in ns since the link began.
// Thread: the owner's.
#pragma once

#include "tests/support/faultlink/fate.h"

#include <stddef.h>

// The counters, each of frames. Those that chance may fault are numbered; neighbors' questions and
// what is no IP are only delayed, and kept back while it is dark. missed: the program itself was
// too slow to read or to send them, which no test wants.
#define LINE_COUNTERS(X)                                                                           \
	X(numbered)                                                                                \
	X(others)                                                                                  \
	X(lost)                                                                                    \
	X(burst_lost)                                                                              \
	X(dark)                                                                                    \
	X(queue_full)                                                                              \
	X(too_big)                                                                                 \
	X(corrupted)                                                                               \
	X(forged)                                                                                  \
	X(duplicated)                                                                              \
	X(reordered)                                                                               \
	X(sent)                                                                                    \
	X(missed)

#define X(name) LINE_##name,
enum line_counter { LINE_COUNTERS(X) LINE_N_COUNTERS };
#undef X

struct line;

// Ends the program if out of memory, as do the others.
struct line *line_new(const struct faults *, uint64_t seed, unsigned direction);
void line_free(struct line *);

// A copy of the frame goes in. False = it is larger than the MTU, and the sender is to be told.
bool line_put(struct line *, const uint8_t *frame, size_t len, uint64_t now_ns);
// The same for a frame that the link itself made: only delayed.
void line_put_own(struct line *, const uint8_t *frame, size_t len, uint64_t now_ns);

// The next frame that is out by now, into ret, which has FRAME_MAX bytes. Returns its length, 0 =
// none.
size_t line_take(struct line *, uint64_t now_ns, uint8_t *ret);
// When that will be; UINT64_MAX = nothing is under way.
uint64_t line_next_ns(const struct line *);

void line_count(struct line *, enum line_counter, uint64_t n);
uint64_t line_counter(const struct line *, enum line_counter);
