// SPDX-License-Identifier: Apache-2.0
// Logs why requests fail, from what workers keep of the last ones (lb/pick/failures.h): one line
// for a cause and a cluster in a while, and no more pairs at a time than a table holds, so that no
// client can fill the log.
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct failure_log;
struct workers;

// Workers are borrowed and outlive it. NULL = out of memory.
struct failure_log *failure_log_new(const struct workers *);
void failure_log_free(struct failure_log *); // NULL is fine
// Call every second. Returns how many lines were written.
uint32_t failure_log_look(struct failure_log *, uint64_t now_ns);
