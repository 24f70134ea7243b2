// SPDX-License-Identifier: Apache-2.0
// Times are uint64_t nanoseconds, both points of CLOCK_MONOTONIC and durations, unless a name gives
// another unit. Functions that need the time get it as an argument. DPDK defines an NS_PER_S of
// type int.
// Thread: any.
#pragma once

#include <stdint.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_SECOND UINT64_C(1000000000)
