// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/ways.h"

#include "lb/base/check.h"
#include "tests/bench/measure.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_REPEATS 7
#define REPEAT_NS 30e6 // at least so long is measured each time
#define MAX_WAYS 16

static double measure(const struct bench_way *w, uint64_t n_ops)
{
	double start = bench_now_ns();
	w->run(w->ctx, n_ops);
	return bench_now_ns() - start;
}

// Also warms up.
static uint64_t ops_of_a_repeat(const struct bench_way *w)
{
	uint64_t n = 256;
	for (;;) {
		double ns = measure(w, n);
		if (ns >= REPEAT_NS / 4)
			return (uint64_t)((double)n * REPEAT_NS / ns) + 1;
		n *= 2;
	}
}

static void report(const char *bench, const struct bench_way *w, double *ns_op)
{
	printf("{\"bench\":\"%s\",\"impl\":\"%s\",\"case\":\"%s\",\"n\":%u,\"ns_op\":%.1f", bench,
		w->impl, w->name, w->n, bench_median(ns_op, N_REPEATS));
	if (w->wire_bytes)
		printf(",\"bytes\":%u", w->wire_bytes);
	printf("}\n");
	fflush(stdout);
}

// A symbol of its own, for callgrind's --toggle-collect, to which optimisers add endings.
void bench_counted(const struct bench_way *, uint64_t n_ops);
static bool is_counted; // it runs
__attribute__((noinline)) void bench_counted(const struct bench_way *w, uint64_t n_ops)
{
	w->run(w->ctx, n_ops);
	__asm__ volatile("" : : : "memory"); // no tail call: the function lasts as long as the run
}

// Likewise: callgrind counts the other way round until it returns.
void bench_counted_aside(void (*run)(void *ctx), void *ctx);
__attribute__((noinline)) void bench_counted_aside(void (*run)(void *ctx), void *ctx)
{
	run(ctx);
	__asm__ volatile("" : : : "memory");
}

void bench_aside(void (*run)(void *ctx), void *ctx)
{
	if (is_counted)
		bench_counted_aside(run, ctx);
	else
		run(ctx);
}

int bench_ways(const char *bench, struct bench_way *ways, size_t n, int argc, char **argv)
{
	CHECK(n <= MAX_WAYS);
	if (argc == 4 && strcmp(argv[1], "count") == 0) {
		size_t i = strtoul(argv[2], NULL, 10);
		uint64_t n_ops = strtoull(argv[3], NULL, 10);
		CHECK(i < n && n_ops);
		ways[i].run(ways[i].ctx, n_ops); // what is done once is over
		is_counted = true;
		bench_counted(&ways[i], n_ops);
		return 0;
	}
	double ns_op[MAX_WAYS][N_REPEATS];
	uint64_t n_ops[MAX_WAYS];
	for (size_t i = 0; i < n; i++)
		n_ops[i] = ops_of_a_repeat(&ways[i]);
	for (int r = 0; r < N_REPEATS; r++)
		for (size_t i = 0; i < n; i++)
			ns_op[i][r] = measure(&ways[i], n_ops[i]) / (double)n_ops[i];
	for (size_t i = 0; i < n; i++)
		report(bench, &ways[i], ns_op[i]);
	return 0;
}
