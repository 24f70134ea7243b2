// SPDX-License-Identifier: Apache-2.0
// bench_update [N]…: what changes of a cluster cost, a JSON object a line. tools/bench runs it.
//
// eds_to_picker: from the bytes of a ClusterLoadAssignment to the published picker, beside C++'s
// libprotobuf, which only parses the same bytes onto the heap. `first`: nothing is known of the
// endpoints. `again`: all are READY, and each has another weight. The same with a subset of 100.
// one_endpoint: one loses its connection or gets it back, until the next snapshot is published.
// memory: what endpoints and clusters take, resource and picker included.
#include "ctrl/res/endpoints.h"
#include "lb/base/check.h"
#include "tests/bench/leaf_world.h"
#include "tests/bench/measure.h"
#include "tests/bench/rival_protobuf.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#define N_REPEATS 5
#define N_CHANGES 200
#define N_KEPT 50
#define SETTLE_S 200 // no backoff is longer
#define N_CLUSTERS 10000
#define PER_CLUSTER 10
#define SUBSET 100

static struct leaf_world world;

static struct xds_res *decode(const uint8_t *bytes, size_t len)
{
	struct xds_decoded d = {0};
	res_type_endpoints.decode(bytes, len, &d);
	CHECK(d.res);
	free(d.name);
	return d.res;
}

static void report_update(
	const char *impl, const char *what, uint32_t n, double *ns, double *decoding)
{
	printf("{\"bench\":\"eds_to_picker\",\"impl\":\"%s\",\"case\":\"%s\",\"n\":%u,\"ns_op\":%."
	       "1f",
		impl, what, n, bench_median(ns, N_REPEATS) / n);
	if (decoding)
		printf(",\"decode_ns\":%.1f", bench_median(decoding, N_REPEATS) / n);
	printf("}\n");
	fflush(stdout);
}

static double parse(const uint8_t *bytes, size_t len)
{
	double start = bench_now_ns();
	void *m = rival_protobuf_parse(bytes, len);
	double ns = bench_now_ns() - start;
	CHECK(m);
	rival_protobuf_free(m);
	return ns;
}

// Decodes and updates; the resource takes the former one's place.
static double apply(struct leaf_cluster *c, const uint8_t *bytes, size_t len, struct xds_res **res,
	double *ret_decoding)
{
	double start = bench_now_ns();
	struct xds_res *old = *res;
	*res = decode(bytes, len);
	*ret_decoding = bench_now_ns() - start;
	leaf_cluster_update(c, res_endpoints_from(*res));
	leaf_world_publish(&world);
	double ns = bench_now_ns() - start;
	xds_res_put(old);
	return ns;
}

// With all of the endpoints, or (gRFC A68) a few of them.
static void bench_updates(uint32_t n, uint32_t subset_size, const char *impl)
{
	double theirs[N_REPEATS], first[N_REPEATS], again[N_REPEATS];
	double first_decoding[N_REPEATS], again_decoding[N_REPEATS];
	for (uint32_t i = 0; i < N_REPEATS; i++) {
		struct leaf_cluster c;
		struct xds_res *res = NULL;
		size_t len, other_len;
		uint8_t *bytes = leaf_assignment(0, n, 0, &len);
		uint8_t *other = leaf_assignment(0, n, 1, &other_len);
		theirs[i] = parse(bytes, len);
		leaf_world_init(&world);
		leaf_cluster_init(&c, &world, 0);
		c.spec.subset_size = subset_size;
		first[i] = apply(&c, bytes, len, &res, &first_decoding[i]);
		leaf_world_connect(&world);
		leaf_world_publish(&world);
		again[i] = apply(&c, other, other_len, &res, &again_decoding[i]);
		leaf_cluster_fini(&c);
		leaf_world_fini(&world);
		xds_res_put(res);
		free(bytes);
		free(other);
	}
	report_update(impl, "first", n, first, first_decoding);
	report_update(impl, "again", n, again, again_decoding);
	if (subset_size)
		return;
	report_update("libprotobuf_parse", "first", n, theirs, NULL);
	report_update("libprotobuf_parse", "again", n, theirs, NULL);
}

static void bench_both(uint32_t n)
{
	bench_updates(n, 0, "shunt");
	bench_updates(n, SUBSET, "shunt_subset");
}

// Loses one and gets it back again. Returns the time of both.
static void change_one(uint32_t n, double us[2])
{
	uint32_t endpoint = (uint32_t)rand_below(&world.rand, n - n / 100);
	for (int is_back = 0; is_back <= 1; is_back++) {
		double start = bench_now_ns();
		leaf_world_event(&world, endpoint, is_back);
		leaf_world_publish(&world);
		us[is_back] = (bench_now_ns() - start) / 1e3;
	}
	leaf_world_forget(&world);
}

static void bench_one(uint32_t n)
{
	struct leaf_cluster c;
	struct xds_res *res = NULL;
	double us[2 * N_CHANGES], decoding, longest = 0;
	size_t len;
	uint8_t *bytes = leaf_assignment(0, n, 0, &len);
	leaf_world_init(&world);
	leaf_cluster_init(&c, &world, 0);
	apply(&c, bytes, len, &res, &decoding);
	leaf_world_connect(&world);
	leaf_world_publish(&world);
	for (uint32_t i = 0; i < N_CHANGES; i++) {
		while (leaf_world_reclaim(&world) > 1)
			;
		leaf_world_pass(&world, SETTLE_S);
		change_one(n, &us[2 * i]);
	}
	// While no snapshot goes no memory is used again.
	double ignored[2];
	size_t before = bench_heap();
	for (uint32_t i = 0; i < N_KEPT; i++)
		change_one(n, ignored);
	size_t each = (bench_heap() - before) / (2 * N_KEPT);
	for (uint32_t i = 0; i < 2 * N_CHANGES; i++)
		longest = us[i] > longest ? us[i] : longest;
	printf("{\"bench\":\"one_endpoint\",\"impl\":\"shunt\",\"n\":%u,\"us\":%.1f,"
	       "\"longest_us\":%.1f,\"bytes\":%zu}\n",
		n, bench_median(us, 2 * N_CHANGES), longest, each);
	fflush(stdout);
	leaf_cluster_fini(&c);
	leaf_world_fini(&world);
	xds_res_put(res);
	free(bytes);
}

// All READY; of what is decoded and of what balancing keeps, tables of the process included.
static double endpoint_bytes(uint32_t n)
{
	struct leaf_cluster c;
	struct xds_res *res = NULL;
	double decoding;
	size_t len;
	uint8_t *bytes = leaf_assignment(0, n, 0, &len);
	leaf_world_init(&world);
	malloc_trim(0);
	size_t before = bench_heap();
	leaf_cluster_init(&c, &world, 0);
	apply(&c, bytes, len, &res, &decoding);
	leaf_world_connect(&world);
	leaf_world_publish(&world);
	leaf_world_pass(&world, SETTLE_S);
	while (leaf_world_reclaim(&world) > 1)
		;
	double all = (double)(bench_heap() - before) / n;
	leaf_cluster_fini(&c);
	leaf_world_fini(&world);
	xds_res_put(res);
	free(bytes);
	return all;
}

static double resource_bytes(uint32_t n)
{
	size_t len;
	uint8_t *bytes = leaf_assignment(0, n, 0, &len);
	size_t before = bench_heap();
	struct xds_res *res = decode(bytes, len);
	double each = (double)(bench_heap() - before) / n;
	xds_res_put(res);
	free(bytes);
	return each;
}

static double cluster_bytes(double of_endpoints, uint32_t n_localities)
{
	struct leaf_cluster *c = calloc(N_CLUSTERS, sizeof(*c));
	struct xds_res **res = calloc(N_CLUSTERS, sizeof(struct xds_res *));
	double decoding;
	CHECK(c && res);
	leaf_world_init(&world);
	size_t before = bench_heap();
	for (uint32_t i = 0; i < N_CLUSTERS; i++) {
		size_t len;
		uint8_t *bytes =
			leaf_assignment_in(n_localities, i * PER_CLUSTER, PER_CLUSTER, 0, &len);
		leaf_cluster_init(&c[i], &world, i);
		apply(&c[i], bytes, len, &res[i], &decoding);
		leaf_world_connect(&world);
		leaf_world_publish(&world);
		free(bytes);
		if (i % 256 == 0)
			while (leaf_world_reclaim(&world) > 1)
				;
	}
	leaf_world_pass(&world, SETTLE_S);
	while (leaf_world_reclaim(&world) > 1)
		;
	double all = (double)(bench_heap() - before) / N_CLUSTERS;
	for (uint32_t i = 0; i < N_CLUSTERS; i++) {
		leaf_cluster_fini(&c[i]);
		xds_res_put(res[i]);
	}
	leaf_world_fini(&world);
	free(c);
	free(res);
	return all - PER_CLUSTER * of_endpoints;
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = {10000, 100000};
	mallopt(M_ARENA_MAX, 1);
	for (int i = 1; i < argc; i++)
		bench_both((uint32_t)strtoul(argv[i], NULL, 10));
	for (size_t i = 0; argc == 1 && i < sizeof(sizes) / sizeof(sizes[0]); i++)
		bench_both(sizes[i]);
	uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 100000;
	bench_one(n);
	double each = endpoint_bytes(n);
	printf("{\"bench\":\"memory\",\"impl\":\"shunt\",\"n\":%u,\"bytes_per_endpoint\":%.1f,"
	       "\"of_resource\":%.1f",
		n, each, resource_bytes(n));
	if (argc == 1)
		printf(",\"bytes_per_cluster\":%.0f,\"of_one_locality\":%.0f",
			cluster_bytes(each, 4), cluster_bytes(each, 1));
	printf("}\n");
	return 0;
}
