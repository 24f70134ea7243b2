// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/measure.h"

#include "lb/base/time.h"

#include <stdlib.h>
#include <time.h>

double bench_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * (double)NS_PER_SECOND + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double bench_median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return values[n / 2];
}
