// SPDX-License-Identifier: Apache-2.0
// Static stride scheduler: picks proportional to weights without state but a sequence number, which
// each picking worker has its own of (gRFC A58; A58-04, A58-05, A58-07, MC-11).
// Not what walks the sequence: that is its picker's.
// Thread: any. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LB_STRIDE_MAX UINT16_MAX // the largest weight, once scaled

// Weights that are not > 0 stand for the mean of the others (A58-04); all are kept within 0.01 and
// 10 times the mean (A58-07). The largest becomes LB_STRIDE_MAX, none 0. False = fewer than two are
// usable, nothing is written: use plain rotation.
bool lb_stride_scale(const double *weights, uint32_t n, uint16_t *ret_scaled);
// Whether sequence % n, whose weight this is, takes its turn at this place of the sequence. Any
// start of the sequence is as good as another. Who weighs LB_STRIDE_MAX takes every turn, so that
// one is found within n places.
static inline bool lb_stride_has_turn(uint64_t sequence, uint32_t n, uint16_t weight)
{
	// Offsets keep the indices out of step.
	uint64_t line = weight * (sequence / n) + sequence % n * (LB_STRIDE_MAX / 2);
	return line % LB_STRIDE_MAX >= (uint64_t)(LB_STRIDE_MAX - weight);
}
