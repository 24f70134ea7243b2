// SPDX-License-Identifier: Apache-2.0
// Static stride scheduler: picks in proportion to weights with no state but a sequence number, one
// per picking worker (gRFC A58; A58-04, A58-05, A58-07, MC-11). The picker keeps the sequence
// number.
// Thread: any. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LB_STRIDE_MAX UINT16_MAX // the largest weight, once scaled

// Scales weights. One that is not > 0 is replaced by the mean of the others (A58-04); all are
// clamped to 0.01 to 10 times the mean (A58-07). The largest becomes LB_STRIDE_MAX, none 0. Returns
// false if fewer than two are usable and nothing is written: use round robin.
bool lb_stride_scale(const double *weights, uint32_t n, uint16_t *ret_scaled);
// True if item sequence % n, with this weight, is picked at this place of the sequence. The
// sequence may start anywhere. An item of weight LB_STRIDE_MAX is always picked, so n steps always
// find one.
static inline bool lb_stride_has_turn(uint64_t sequence, uint32_t n, uint16_t weight)
{
	// Offsets keep the items out of step.
	uint64_t line = weight * (sequence / n) + sequence % n * (LB_STRIDE_MAX / 2);
	return line % LB_STRIDE_MAX >= (uint64_t)(LB_STRIDE_MAX - weight);
}
