// SPDX-License-Identifier: Apache-2.0
// The picker of weighted_target: draws a child by weight, then calls the child's picker.
// Thread: built on ctrl; picks on workers.
#pragma once

#include <stdint.h>

struct lb_picker;

struct lb_weighted_picker_item {
	struct lb_picker *picker; // the weighted picker takes its own reference
	uint32_t weight; // 0 = never chosen
};

// The sum of weights is > 0. NULL = out of memory.
struct lb_picker *lb_weighted_picker_new(const struct lb_weighted_picker_item *, uint32_t n);
