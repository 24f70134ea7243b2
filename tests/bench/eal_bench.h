// SPDX-License-Identifier: Apache-2.0
// EAL for benches of what has devices: both ends of memifs, on the one thread of the program.
// Thread: the one that starts it.
#pragma once

#include <stddef.h>

struct lb_err;

// name: of the program, for its messages.
void eal_bench_start(const char *name);
_Noreturn void eal_bench_die(const struct lb_err *);
// Writes the device of one end, and returns the text: ends 2 * link and 2 * link + 1 are of one
// memif.
const char *eal_bench_memif(char *text, size_t size, unsigned end);
