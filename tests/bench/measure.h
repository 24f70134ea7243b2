// SPDX-License-Identifier: Apache-2.0
// What benches measure by: the time that a thread has taken, and the median of what it took. Not
// what is measured (ways.h, leaf_world.h).
// Thread: any.
#pragma once

#include <stddef.h>

// CPU time of this thread: what others do on a busy machine is not counted.
double bench_now_ns(void);
// n > 0. Leaves the values in order.
double bench_median(double *values, size_t n);
