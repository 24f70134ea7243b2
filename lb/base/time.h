// SPDX-License-Identifier: Apache-2.0
// Times are uint64_t nanoseconds, points of CLOCK_MONOTONIC and spans alike, unless a name says
// another unit. Whoever needs the time gets it as an argument.
// DPDK has an NS_PER_S of its own, of type int.
// Thread: any.
#pragma once

#include <stdint.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_SECOND UINT64_C(1000000000)
