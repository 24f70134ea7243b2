// SPDX-License-Identifier: Apache-2.0
// The picker of weighted_target: one draw by weight, then the drawn one's own pick.
// Thread: built on ctrl; picks on workers.
#pragma once

#include <stdint.h>

struct lb_picker;

struct lb_weighted_picker_item {
	struct lb_picker *picker; // the result takes its own reference
	uint32_t weight; // 0 = never drawn
};

// The sum of weights is > 0. NULL = out of memory.
struct lb_picker *lb_weighted_picker_new(const struct lb_weighted_picker_item *, uint32_t n);
