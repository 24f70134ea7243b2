// SPDX-License-Identifier: Apache-2.0
// Static stride scheduler: picks proportional to weights without state but a sequence number, which
// each picking worker has its own of (gRFC A58; lb-tree.md A58-04, A58-05, A58-07, MC-11).
// Thread: new/free on ctrl; pick anywhere. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LB_STRIDE_MAX UINT16_MAX // the largest weight, once scaled

struct lb_stride;

// Weights that are not > 0 stand for the mean of the others (A58-04); all are kept within 0.01 and
// 10 times the mean (A58-07). NULL = no memory, or fewer than two are usable: use plain rotation.
struct lb_stride *lb_stride_new(const double *weights, uint32_t n);
void lb_stride_free(struct lb_stride *); // NULL is fine
// The same weights for callers who keep them: the largest becomes LB_STRIDE_MAX, none 0. False =
// fewer than two are usable, nothing is written.
bool lb_stride_scale(const double *weights, uint32_t n, uint16_t *ret_scaled);
// Whether sequence % n, whose weight this is, takes its turn at this place of the sequence.
static inline bool lb_stride_has_turn(uint64_t sequence, uint32_t n, uint16_t weight)
{
	// Offsets keep the indices out of step.
	uint64_t line = weight * (sequence / n) + sequence % n * (LB_STRIDE_MAX / 2);
	return line % LB_STRIDE_MAX >= (uint64_t)(LB_STRIDE_MAX - weight);
}
// The next index; moves *sequence on. Any start of the sequence is as good as another.
uint32_t lb_stride_pick(const struct lb_stride *, uint64_t *sequence);
