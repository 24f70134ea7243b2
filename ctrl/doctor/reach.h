// SPDX-License-Identifier: Apache-2.0
// Whether servers can be reached by TCP, or at a Unix socket. Names are resolved by libc, which
// knows no deadline: each server has a child process of its own, which is ended when time is up.
// Thread: one of a process without others.
#pragma once

struct doctor_target;

#define REACH_S 2 // for all of them together

// A doctor_ops.reach.
void reach_targets(void *ctx, struct doctor_target *, unsigned n);
