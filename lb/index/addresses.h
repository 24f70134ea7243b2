// SPDX-License-Identifier: Apache-2.0
// Lists of addresses that are one balancing unit: whether two of them are the same set.
// Thread: any. Pure.
#pragma once

#include "lb/base/ip.h"

#include <stdbool.h>
#include <stdint.h>

// In whatever order; what is there twice is twice in both.
bool lb_addresses_same(const struct ip_port *, const struct ip_port *, uint32_t n);
