// SPDX-License-Identifier: Apache-2.0
// bench_route [IMPL | ROUTES]…: how long a route lookup takes, a JSON object a line, beside a
// linear scan, RE2::Set and Hyperscan on the same table and the same requests. tools/bench runs it.
#include "lb/base/check.h"
#include "tests/bench/impl.h"
#include "tests/bench/measure.h"

#include <stdio.h>
#include <stdlib.h>

#define N_IMPLS 4
#define N_REPEATS 5
#define REPEAT_NS 40e6 // at least so long is measured each time
#define BUILDS 5 // of the product's, while they are short; once of the others
#define SHORT_MS 1000

static const struct impl *const impls[N_IMPLS] = {
	&impl_shunt, &impl_linear, &impl_re2_set, &impl_hyperscan};

struct run {
	void *table; // NULL = left out
	double build_ms, ns_op[N_REPEATS];
};

static const char *only; // this one, NULL = all

static void build(struct run *run, const struct impl *impl, const struct workload *w)
{
	if (only && strcmp(only, impl->name) != 0 && impl != &impl_shunt)
		return;
	if (w->n_routes > impl->max_routes) {
		fprintf(stderr, "%s with %u routes left out: %s\n", impl->name, w->n_routes,
			impl->why);
		return;
	}
	double ms[BUILDS];
	size_t n = 0, most = impl == &impl_shunt ? BUILDS : 1;
	do {
		if (run->table)
			impl->free(run->table);
		double start = bench_now_ns();
		run->table = impl->build(w);
		ms[n++] = (bench_now_ns() - start) / 1e6;
	} while (n < most && ms[n - 1] < SHORT_MS);
	run->build_ms = bench_median(ms, n);
	if (!run->table)
		fprintf(stderr, "%s with %u routes left out: it can't build that\n", impl->name,
			w->n_routes);
}

static double measure(const struct run *run, const struct impl *impl, const struct workload *w)
{
	uint64_t n = 0, sum = 0, batch = 1;
	double start = bench_now_ns(), elapsed;
	do {
		for (uint64_t i = 0; i < batch; i++) {
			// A request's path is in the cache when it is routed: it has just come.
			__builtin_prefetch(w->paths[(n + 4) & (w->n_paths - 1)].p);
			sum += impl->find(run->table, w->paths[n++ & (w->n_paths - 1)]);
		}
		elapsed = bench_now_ns() - start;
		if (elapsed < REPEAT_NS / 16)
			batch *= 2;
	} while (elapsed < REPEAT_NS);
	CHECK(sum > 0 || w->n_routes == 1); // and the loop is not optimised away
	return elapsed / (double)n;
}

// All say the same, or what they take means nothing.
static void compare(const struct run *runs, const struct workload *w)
{
	uint32_t n = w->n_paths < 2048 ? w->n_paths : 2048;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t ours = impl_shunt.find(runs[0].table, w->paths[i]);
		for (int k = 1; k < N_IMPLS; k++) {
			if (!runs[k].table)
				continue;
			uint32_t theirs = impls[k]->find(runs[k].table, w->paths[i]);
			if (theirs == ours)
				continue;
			fprintf(stderr, "%.*s: shunt says %u, %s says %u\n", (int)w->paths[i].len,
				w->paths[i].p, ours, impls[k]->name, theirs);
			exit(1);
		}
	}
}

static void report(struct run *run, const struct impl *impl, const struct workload *w)
{
	double bytes = impl->bytes(run->table, w);
	char per_route[32] = "null";
	if (bytes >= 0)
		snprintf(per_route, sizeof(per_route), "%.1f",
			(bytes - (double)w->n_text) / w->n_routes);
	printf("{\"bench\":\"route_find\",\"impl\":\"%s\",\"case\":\"%s\",\"n\":%u,"
	       "\"ns_op\":%.1f,\"build_ms\":%.3f,\"bytes_per_route\":%s}\n",
		impl->name, w->n_regexes ? "regex10" : "prefix", w->n_routes,
		bench_median(run->ns_op, N_REPEATS), run->build_ms, per_route);
	fflush(stdout);
}

static void bench(uint32_t n_routes, uint32_t regex_percent)
{
	struct workload w;
	struct run runs[N_IMPLS] = {0};
	workload_init(&w, n_routes, regex_percent);
	for (int k = 0; k < N_IMPLS; k++)
		build(&runs[k], impls[k], &w);
	compare(runs, &w);
	for (int i = 0; i < N_REPEATS; i++)
		for (int k = 0; k < N_IMPLS; k++)
			if (runs[k].table)
				runs[k].ns_op[i] = measure(&runs[k], impls[k], &w);
	for (int k = 0; k < N_IMPLS; k++) {
		if (!runs[k].table)
			continue;
		report(&runs[k], impls[k], &w);
		impls[k]->free(runs[k].table);
	}
	workload_fini(&w);
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = {10, 1000, 10000, 100000};
	bool sized = false;
	for (int i = 1; i < argc; i++) {
		uint32_t n = (uint32_t)strtoul(argv[i], NULL, 10);
		if (n == 0) {
			only = argv[i];
			continue;
		}
		sized = true;
		bench(n, 0);
		bench(n, 10);
	}
	if (sized)
		return 0;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		bench(sizes[i], 0);
		bench(sizes[i], 10);
	}
	return 0;
}
