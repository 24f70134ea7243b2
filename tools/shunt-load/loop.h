// SPDX-License-Identifier: Apache-2.0
// The polling thread: runs the turns of client and echo backend, each on its host.
// Thread: main.
#pragma once

#include "lb/base/err.h"
#include "tools/shunt-load/options.h"
#include "tools/shunt-load/report.h"

struct loop;

// EAL must run. Returns NULL with reterr on failure. What options points to outlives it.
struct loop *loop_new(const struct options *, const struct plan *, struct lb_err *reterr);
void loop_free(struct loop *); // NULL is fine
// Runs until the plan is complete, its limits are reached, or a signal sets *stop; a second signal
// ends it at once.
void loop_run(struct loop *, const volatile int *stop);
struct report loop_report(const struct loop *);
