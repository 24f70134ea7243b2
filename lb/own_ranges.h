// SPDX-License-Identifier: Apache-2.0
// The prefixes that this host answers for beside its ports' addresses, where a reload of shunt.yaml
// has changed them: `vips`. Immutable.
// Thread: built, counted and freed on ctrl; workers read.
#pragma once

#include "lb/base/ip.h"

#include <stdbool.h>
#include <stdint.h>

// Those of shunt.yaml, and as many that clients are leaving.
#define LB_MAX_OWN_RANGES 128

struct lb_own_range {
	struct ip_prefix prefix;
	bool answers; // ARP and neighbor discovery tell of it
};

struct lb_own_ranges {
	uint32_t n_refs; // ctrl only
	uint32_t n;
	uint64_t version; // of no two lists the same, and not 0
	struct lb_own_range list[]; // of an address in two the first counts
};

// Copies the list. Count 1. NULL = out of memory.
struct lb_own_ranges *lb_own_ranges_new(const struct lb_own_range *, uint32_t n, uint64_t version);
struct lb_own_ranges *lb_own_ranges_get(struct lb_own_ranges *); // NULL stays NULL
void lb_own_ranges_put(struct lb_own_ranges *); // NULL is fine
