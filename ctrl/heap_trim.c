// SPDX-License-Identifier: Apache-2.0
#include "ctrl/heap_trim.h"

#include "lb/base/time.h"

#include <malloc.h>

#define LARGE_LEN (64 << 10) // what libgrpc reads long messages into, among others
#define MAX_LARGE 4096 // a process has 65,530 mappings at most
#define TOP_LEN (1 << 20) // free at the heap's end, below which it does not shrink
#define WORTH_LEN ((size_t)1 << 20) // so much leaves enough behind
#define QUIET_LEN ((size_t)1 << 16) // a second with less: no update of many resources is under way
#define INTERVAL_NS (10 * NS_PER_SECOND)

// What fails leaves malloc as it is.
void heap_trim_begin(void)
{
	mallopt(M_MMAP_THRESHOLD, LARGE_LEN);
	mallopt(M_MMAP_MAX, MAX_LARGE);
	mallopt(M_TRIM_THRESHOLD, TOP_LEN);
}

void heap_trim_heard(struct heap_trim *t, size_t len)
{
	t->n_heard += len;
	t->n_recent += len;
}

bool heap_trim_due(struct heap_trim *t, uint64_t now_ns)
{
	bool quiet = t->n_recent < QUIET_LEN;
	t->n_recent = 0;
	if (!quiet || t->n_heard < WORTH_LEN || now_ns < t->next_ns)
		return false;
	t->n_heard = 0;
	t->next_ns = now_ns + INTERVAL_NS;
	return true;
}
