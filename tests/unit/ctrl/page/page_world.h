// SPDX-License-Identifier: Apache-2.0
// A daemon with as many clusters as a test wants, which share two endpoints, and what shows it.
// Thread: the test's.
#pragma once

#include "tests/unit/ctrl/assembler_world.h"

struct events;
struct show;

extern struct show *page_show; // of the test
extern struct events *page_events;

int page_set_up(void **state); // as cmocka calls it; the state is a struct world
int page_tear_down(void **state);
// These are the clusters from now on, each with both endpoints. Names are borrowed until the end.
void page_give(struct world *, const char *const *names, uint32_t n);
// n of the form "c000", and with what stands behind it.
void page_give_many(struct world *, uint32_t n, const char *end);
// Requests of a cluster that were begun, and that failed, more than before.
void page_count(struct world *, const char *cluster, uint64_t requests, uint64_t failed);
// Requests that its backends answered with a status that blames them, beside these.
void page_count_bad(struct world *, const char *cluster, uint64_t n);
void page_pass(struct world *, unsigned ms); // virtual time
