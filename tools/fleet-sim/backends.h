// SPDX-License-Identifier: Apache-2.0
// The backends of a fleet, as a management server describes them to all hosts.
// Thread: one.
#pragma once

#include <stdint.h>

struct lb_leaf_endpoints;

#define BACKENDS_LOCALITIES_MAX 8

// In so many localities of one size and weight, in one priority; their indexes are their numbers.
// The first n_replaced have other addresses than they had. Count 1. Returns NULL if out of memory.
struct lb_leaf_endpoints *backends_new(uint32_t n, uint32_t n_replaced, uint32_t n_localities);
