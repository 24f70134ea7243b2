// SPDX-License-Identifier: Apache-2.0
// Ways of doing the same thing, measured beside each other: in turns within one process, so that
// what else the machine does befalls all of them.
// Thread: one.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct bench_way {
	const char *impl; // "shunt", or a rival's name
	const char *name; // of the case
	uint32_t n; // size of the case
	void (*run)(void *ctx, uint64_t n_ops); // does it n_ops times
	void *ctx;
	uint32_t wire_bytes; // of one operation; 0 = means nothing here
};

// main() of a bench. Without arguments it prints one row for each way, a JSON object a line. With
// `count I OPS` it does way I OPS times inside bench_counted(), which callgrind is told to watch.
int bench_ways(const char *bench, struct bench_way *, size_t n, int argc, char **argv);

// Runs what stands beside what is measured, as the far ends of connections do: within a way's run,
// where callgrind does not count it. Its time counts.
void bench_aside(void (*run)(void *ctx), void *ctx);
