// SPDX-License-Identifier: Apache-2.0
// Compares lists of addresses of a balancing unit as sets.
// Thread: any. Pure.
#pragma once

#include "lb/base/ip.h"

#include <stdbool.h>
#include <stdint.h>

// In any order; duplicates must occur as often in both.
bool lb_addresses_same(const struct ip_port *, const struct ip_port *, uint32_t n);
