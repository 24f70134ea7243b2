// SPDX-License-Identifier: Apache-2.0
// bench_pick [N]…: how long it takes to pick an endpoint for a request with a session cookie, a
// JSON object a line, beside a draw from an alias table over as many. tools/bench runs it.
//
// Ours is what a worker does with a request: the layer above the leaf's picks, drops, the session,
// and for those that it binds to nobody the priority's localities by weight and their endpoints in
// turn. What a breaker's two atomic instructions take besides is told apart (breaker_ns): an alias
// table has no such thing. Requests come at random.
#include "ctrl/res/endpoints.h"
#include "lb/base/check.h"
#include "lb/pick/affinity_map.h"
#include "lb/pick/breaker.h"
#include "lb/pick/drop.h"
#include "lb/pick/leaf_picker.h"
#include "lb/pick/limits.h"
#include "lb/pick/picker.h"
#include "tests/bench/leaf_world.h"
#include "tests/bench/measure.h"

#include <stdio.h>
#include <stdlib.h>

#define N_REPEATS 41
#define REPEAT_NS 30e6 // at least so long is measured each time
#define N_REQUESTS (1u << 16)
#define BATCH 4096

// What ours picks for.
struct bench {
	const struct lb_picker *picker;
	const struct ip_port *cookies; // [N_REQUESTS]
	struct lb_pick_ctx ctx;
};

// Vose's alias method: each column is its own index's up to the threshold, and above it another's.
struct column {
	uint32_t threshold, alias;
};
struct alias {
	struct rand rand;
	uint32_t n;
	struct column *columns;
	const struct lb_endpoint *endpoints;
};

static void alias_init(struct alias *a, uint32_t n)
{
	uint32_t *small = malloc(n * sizeof(*small)), *large = malloc(n * sizeof(*large));
	double *share = malloc(n * sizeof(*share)), sum = 0;
	struct lb_endpoint *endpoints = calloc(n, sizeof(*endpoints));
	uint32_t n_small = 0, n_large = 0;
	*a = (struct alias){.n = n, .columns = calloc(n, sizeof(*a->columns))};
	CHECK(small && large && share && endpoints && a->columns);
	rand_init(&a->rand, 1);
	for (uint32_t i = 0; i < n; i++)
		sum += 1 + i % 4;
	for (uint32_t i = 0; i < n; i++) {
		endpoints[i].id = i;
		a->columns[i] = (struct column){UINT32_MAX, i};
		share[i] = (1 + i % 4) * (double)n / sum;
		if (share[i] < 1)
			small[n_small++] = i;
		else
			large[n_large++] = i;
	}
	while (n_small && n_large) {
		uint32_t low = small[--n_small], high = large[--n_large];
		a->columns[low] = (struct column){(uint32_t)(share[low] * UINT32_MAX), high};
		share[high] -= 1 - share[low];
		if (share[high] < 1)
			small[n_small++] = high;
		else
			large[n_large++] = high;
	}
	a->endpoints = endpoints;
	free(small);
	free(large);
	free(share);
}

static void alias_fini(struct alias *a)
{
	free(a->columns);
	free((void *)(uintptr_t)a->endpoints);
}

static const struct lb_endpoint *alias_draw(struct alias *a)
{
	uint64_t x = rand_u64(&a->rand);
	uint32_t i = (uint32_t)((x >> 32) * a->n >> 32);
	const struct column *c = &a->columns[i];
	return &a->endpoints[(uint32_t)x <= c->threshold ? i : c->alias];
}

static inline const struct lb_cell *shunt_pick(
	struct bench *b, const struct ip_port *cookie, bool uses_breaker)
{
	struct lb_drop_once once = {0};
	const struct lb_leaf_layer *layer = lb_leaf_layer(b->picker);
	if (lb_drops_draw(layer->drops, &once, layer->id, b->ctx.rand) != LB_DROP_NONE)
		return NULL;
	if (uses_breaker && !lb_breaker_enter(layer->breaker, layer->max_requests))
		return NULL;
	const struct lb_cell *c = NULL;
	struct lb_affinity_host host;
	switch (lb_affinity_map_pick(layer->sessions, cookie, 1, &host)) {
	case LB_AFFINITY_USE:
		c = host.state;
		break;
	case LB_AFFINITY_CHILD:
		c = lb_pick(layer->picker, &b->ctx).cell;
		break;
	case LB_AFFINITY_QUEUE:
	case LB_AFFINITY_CONNECT:
		break;
	}
	if (uses_breaker)
		lb_breaker_leave(layer->breaker);
	return c;
}

static inline __attribute__((always_inline)) double measure_shunt(
	struct bench *b, bool uses_breaker)
{
	uint64_t n = 0, sum = 0;
	double start = bench_now_ns(), elapsed;
	do {
		const struct ip_port *cookies = &b->cookies[n & (N_REQUESTS - 1)];
		for (uint32_t i = 0; i < BATCH; i++) {
			const struct lb_cell *c = shunt_pick(b, &cookies[i], uses_breaker);
			CHECK(c);
			sum += c->endpoint_id;
		}
		n += BATCH;
		elapsed = bench_now_ns() - start;
	} while (elapsed < REPEAT_NS);
	CHECK(sum > 0);
	return elapsed / (double)n;
}

static __attribute__((noinline)) double measure_alias(struct alias *a)
{
	uint64_t n = 0, sum = 0;
	double start = bench_now_ns(), elapsed;
	do {
		for (uint32_t i = 0; i < BATCH; i++, n++)
			sum += alias_draw(a)->id;
		elapsed = bench_now_ns() - start;
	} while (elapsed < REPEAT_NS);
	CHECK(sum > 0);
	return elapsed / (double)n;
}

static struct ip_port *cookies_new(struct rand *rand, uint32_t first, uint32_t n)
{
	struct ip_port *list = malloc(N_REQUESTS * sizeof(*list));
	CHECK(list);
	for (uint32_t i = 0; i < N_REQUESTS; i++)
		list[i] = leaf_address(first + (uint32_t)rand_below(rand, n));
	return list;
}

// Whoever else uses the core, or its other thread, only ever adds, and for seconds at a time.
static double least(const double *ns)
{
	double found = ns[0];
	for (int i = 1; i < N_REPEATS; i++)
		found = ns[i] < found ? ns[i] : found;
	return found;
}

static void report(const char *impl, const char *what, uint32_t n, double *ns, double breaker_ns)
{
	printf("{\"bench\":\"pick\",\"impl\":\"%s\",\"case\":\"%s\",\"n\":%u,\"ns_op\":%.2f", impl,
		what, n, least(ns));
	if (breaker_ns >= 0)
		printf(",\"breaker_ns\":%.2f", breaker_ns);
	printf("}\n");
	fflush(stdout);
}

static void compare(struct bench *b, struct alias *a, const char *what, uint32_t n)
{
	double ours[N_REPEATS], theirs[N_REPEATS], guarded[N_REPEATS];
	for (int i = 0; i < N_REPEATS; i++) {
		theirs[i] = measure_alias(a);
		ours[i] = measure_shunt(b, false);
		guarded[i] = measure_shunt(b, true);
	}
	double breaker_ns = least(guarded) - least(ours);
	report("shunt", what, n, ours, breaker_ns > 0 ? breaker_ns : 0);
	report("alias", what, n, theirs, -1);
}

static void bench(uint32_t n)
{
	static struct leaf_world world;
	static uint64_t ready[LB_MAX_ENDPOINTS / 64];
	static uint32_t positions[64];
	struct leaf_cluster cluster;
	struct alias alias;
	struct rand rand;
	struct lb_pick_hash hash = {0};
	size_t len;
	uint8_t *bytes = leaf_assignment(0, n, 0, &len);
	struct xds_decoded d = {0};
	res_type_endpoints.decode(bytes, len, &d);
	CHECK(d.res);
	leaf_world_init(&world);
	leaf_cluster_init(&cluster, &world, 0);
	leaf_cluster_update(&cluster, res_endpoints_from(d.res));
	leaf_world_connect(&world);
	leaf_world_publish(&world);
	memset(ready, 0xff, sizeof(ready));
	rand_init(&rand, n);
	for (uint32_t i = 0; i < 64; i++)
		positions[i] = (uint32_t)rand_u64(&rand);
	struct ip_port *unknown = cookies_new(&rand, n, 1u << 20);
	struct ip_port *known = cookies_new(&rand, 0, n - n / 100);
	struct bench b = {.picker = leaf_cluster_picker(&cluster),
		.cookies = unknown,
		.ctx = {.rand = &rand, .ready = ready, .positions = positions, .hash = &hash}};
	alias_init(&alias, n);
	compare(&b, &alias, "miss", n);
	b.cookies = known;
	compare(&b, &alias, "hit", n);
	alias_fini(&alias);
	free(unknown);
	free(known);
	leaf_cluster_fini(&cluster);
	leaf_world_fini(&world);
	xds_res_put(d.res);
	free(d.name);
	free(bytes);
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = {100, 100000};
	for (int i = 1; i < argc; i++)
		bench((uint32_t)strtoul(argv[i], NULL, 10));
	for (size_t i = 0; argc == 1 && i < sizeof(sizes) / sizeof(sizes[0]); i++)
		bench(sizes[i]);
	return 0;
}
