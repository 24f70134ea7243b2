// SPDX-License-Identifier: Apache-2.0
// The process's resident memory, in KiB. Under AddressSanitizer what is freed stays there, unless
// its quarantine is off.
// Thread: the test's own.
#pragma once

#include "tests/support/check.h"

#include <stdio.h>
#include <unistd.h>

static inline long rss_kib(void)
{
	long size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	assert_int_equal(fscanf(f, "%ld %ld", &size, &pages), 2);
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}
