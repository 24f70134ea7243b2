// SPDX-License-Identifier: Apache-2.0
// The polling thread: client and echo backend, each on its host, in turns.
// Thread: main.
#pragma once

#include "lb/base/err.h"
#include "tools/shunt-load/options.h"
#include "tools/shunt-load/report.h"

struct loop;

// EAL runs. NULL = failed, reterr says why. What options points to outlives it.
struct loop *loop_new(const struct options *, const struct plan *, struct lb_err *reterr);
void loop_free(struct loop *); // NULL is fine
// Until the plan is carried out, its bounds are reached, or *stop is set (by a signal); once more
// ends it at once.
void loop_run(struct loop *, const volatile int *stop);
struct report loop_report(const struct loop *);
