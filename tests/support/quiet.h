// SPDX-License-Identifier: Apache-2.0
// Whether parts of a program make system calls or allocate, counted while the rest may: what
// confined.h's child cannot tell of a world that needs both.
// Thread: one, in a process that has one.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct quiet {
	uint64_t n_watched; // parts
	uint64_t n_allocations; // parts with one; it failed
	int n_calls, last_call; // system calls, which fail
};

// False = this cannot be found out here: a sanitizer's build, or a kernel without user dispatch.
bool quiet_start(void);
// A part begins or ends.
void quiet_watch(bool begins);
// What there was since quiet_start().
struct quiet quiet_stop(void);
