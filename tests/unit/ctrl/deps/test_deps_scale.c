// SPDX-License-Identifier: Apache-2.0
// Many clusters: each step of the dependency manager takes time in proportion to what there is, not
// to its square. CPU time of two sizes is compared, in the same run.
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/federation.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/support/res_json.h"
#include "tests/unit/ctrl/deps/deps_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SMALL 1000 // enough for rests, too
#define FACTOR 10
#define N_MESSAGES 100
#define N_STORM 500
#define N_CHANGING 100
#define LATEST 15 // messages later each one counts
#define PER_INNER 50 // leaves of one inner aggregate

enum step { FIRST, AGAIN, ONE_ENDPOINT, MANY_ENDPOINTS, ONE_CLUSTER, RESOLVE, N_STEPS };
static const char *const step_names[] = {
	"first", "again", "one endpoint", "many endpoints", "one cluster", "resolve"};

struct list {
	struct fake_resource *at;
	size_t n;
};

static void add(struct list *l, const struct xds_type *type, const char *json)
{
	size_t len;
	const uint8_t *bytes = res_bytes_from_json(type, json, &len);
	l->at[l->n++] = (struct fake_resource){.bytes = bytes, .len = len};
}

static void add_text(struct list *l, const struct xds_type *type, FILE *f, char **text)
{
	assert_int_equal(fclose(f), 0);
	add(l, type, *text);
	free(*text);
}

// "<name>" with children p<first> … p<end - 1>.
static void add_aggregate(struct list *l, const char *name, char prefix, int first, int end)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	fprintf(f,
		"{'name':'%s','clusterType':{'name':'x','typedConfig':{'@type':"
		"'type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig',"
		"'clusters':[",
		name);
	for (int i = first; i < end; i++)
		fprintf(f, "%s'%c%d'", i == first ? "" : ",", prefix, i);
	fprintf(f, "]}}}");
	add_text(l, &res_type_cluster, f, &text);
}

static void add_endpoints(struct list *l, int i, int port)
{
	char json[512];
	snprintf(json, sizeof(json),
		"{'clusterName':'p%d','endpoints':[{'locality':{},'loadBalancingWeight':1,"
		"'lbEndpoints':[{'endpoint':{'address':{'socketAddress':"
		"{'address':'10.0.0.1','portValue':%d}}}}]}]}",
		i, port);
	add(l, &res_type_endpoints, json);
}

static void add_leaf(struct list *l, int i)
{
	char json[512];
	if (i % 2)
		snprintf(json, sizeof(json),
			"{'name':'p%d','type':'LOGICAL_DNS','loadAssignment':{'endpoints':[{"
			"'lbEndpoints':[{'endpoint':{'address':{'socketAddress':"
			"{'address':'h%d.example','portValue':80}}}}]}]}}",
			i, i);
	else
		snprintf(json, sizeof(json),
			"{'name':'p%d','type':'EDS','edsClusterConfig':{'edsConfig':{'ads':{}}}}",
			i);
	add(l, &res_type_cluster, json);
}

// "flat" has all leaves, "top" has them by way of inner aggregates; there is a route to each, and
// to each leaf.
static void fill(struct list *routes, struct list *clusters, struct list *endpoints, int n)
{
	char *text, name[16];
	size_t len;
	FILE *f = open_memstream(&text, &len);
	fprintf(f, "{'name':'rc','virtualHosts':[{'name':'v','domains':['*'],'routes':["
		   "{'match':{'prefix':'/a'},'route':{'cluster':'flat'}},"
		   "{'match':{'prefix':'/b'},'route':{'cluster':'top'}}");
	for (int i = 0; i < n; i++)
		fprintf(f, ",{'match':{'prefix':'/%d'},'route':{'cluster':'p%d'}}", i, i);
	fprintf(f, "]}]}");
	add_text(routes, &res_type_route_config, f, &text);
	add_aggregate(clusters, "flat", 'p', 0, n);
	add_aggregate(clusters, "top", 'i', 0, n / PER_INNER);
	for (int i = 0; i < n / PER_INNER; i++) {
		snprintf(name, sizeof(name), "i%d", i);
		add_aggregate(clusters, name, 'p', i * PER_INNER, (i + 1) * PER_INNER);
	}
	for (int i = 0; i < n; i++)
		add_leaf(clusters, i);
	for (int i = 0; i < n; i += 2)
		add_endpoints(endpoints, i, 80);
}

static void respond(struct deps_fixture *f, const struct xds_type *type, const struct list *l)
{
	char tag[16];
	snprintf(tag, sizeof(tag), "%u", ++f->n_said);
	fake_ads_respond(&f->server, type->url, tag, tag, l->at, l->n);
	while (fake_ads_next(&f->server))
		;
}

static double elapsed(clock_t *since)
{
	clock_t before = *since;
	*since = clock();
	return (double)(*since - before) / CLOCKS_PER_SEC;
}

static void turn(struct deps_fixture *f, uint64_t ns)
{
	f->now_ns += ns + NS_PER_MS;
	twheel_advance(f->wheel, f->now_ns);
}

static void free_list(struct list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free((void *)(uintptr_t)l->at[i].bytes);
	free(l->at);
}

// In a message each, whose acknowledgement lists all names.
static void change_one_by_one(struct deps_fixture *f)
{
	for (int i = 0; i < N_MESSAGES; i++) {
		struct list one = {.at = calloc(1, sizeof(*one.at))};
		add_endpoints(&one, i * 2, 82);
		respond(f, &res_type_endpoints, &one);
		fake_ads_forget(&f->server);
		free_list(&one);
	}
}

static void run(int n, double *ret_s)
{
	struct deps_fixture f;
	struct list routes = {.at = calloc(1, sizeof(*routes.at))};
	struct list clusters = {.at = calloc((size_t)n * 2 + 2, sizeof(*clusters.at))};
	struct list endpoints = {.at = calloc((size_t)n + 1, sizeof(*endpoints.at))};
	fill(&routes, &clusters, &endpoints, n);
	deps_init(&f, "", NULL);
	hold_listener(&f, "rc");
	f.name_servers.instant = "10.0.0.9";
	say(&f, &res_type_listener);
	clock_t t = clock();
	respond(&f, &res_type_route_config, &routes);
	respond(&f, &res_type_cluster, &clusters);
	respond(&f, &res_type_cluster, &clusters); // the inner ones were not asked for before
	respond(&f, &res_type_endpoints, &endpoints);
	turn(&f, 0);
	ret_s[FIRST] = elapsed(&t);
	expect_updates(&f, 1, 0);
	const struct xds_cluster_config *top = xds_config_find_cluster(f.config, "top");
	assert_int_equal(top->n_leaves, n);
	assert_string_equal(
		top->leaves[n - 1], xds_config_find_cluster(f.config, "flat")->leaves[n - 1]);
	assert_non_null(xds_config_find_cluster(f.config, "p1")->endpoints);

	turn(&f, S);
	t = clock();
	respond(&f, &res_type_cluster, &clusters);
	ret_s[AGAIN] = elapsed(&t);
	expect_updates(&f, 0, 0);

	struct list one = {.at = calloc(1, sizeof(*one.at))};
	add_endpoints(&one, 0, 81);
	turn(&f, S);
	t = clock();
	respond(&f, &res_type_endpoints, &one);
	ret_s[ONE_ENDPOINT] = elapsed(&t);
	expect_updates(&f, 1, 0);
	free_list(&one);

	turn(&f, S);
	t = clock();
	change_one_by_one(&f);
	turn(&f, S);
	ret_s[MANY_ENDPOINTS] = elapsed(&t);
	expect_updates(&f, 2, 0); // the first at once, the others later and together
	const struct xds_cluster_config *last = xds_config_find_cluster(f.config, "p198");
	assert_int_equal(last->endpoints->list->addresses[0].port, 82);

	struct list kept = {.at = calloc((size_t)n * 2 + 2, sizeof(*kept.at))};
	memcpy(kept.at, clusters.at, clusters.n * sizeof(*kept.at));
	kept.n = clusters.n;
	struct list changed = {.at = calloc(1, sizeof(*changed.at))};
	add_aggregate(&changed, "top", 'i', 0, n / PER_INNER - 1);
	kept.at[1] = changed.at[0];
	turn(&f, S);
	t = clock();
	respond(&f, &res_type_cluster, &kept);
	ret_s[ONE_CLUSTER] = elapsed(&t);
	expect_updates(&f, 1, 0);
	free_list(&changed);
	free(kept.at);

	// Every connection fails, and every answer is another one.
	f.name_servers.instant = "10.0.0.10";
	turn(&f, 40 * S);
	t = clock();
	for (int i = 0; i < n; i++)
		depmgr_reresolve(f.dm);
	turn(&f, 40 * S);
	turn(&f, 0);
	ret_s[RESOLVE] = elapsed(&t);
	assert_true(f.n_updates >= 1 && f.n_updates <= 3);
	deps_fini(&f);
	free_list(&routes);
	free_list(&clusters);
	free_list(&endpoints);
}

static void ten_times_as_many_clusters_cost_ten_times_as_much(void **state)
{
	double small[N_STEPS], large[N_STEPS];
	run(SMALL, small); // warm
	run(SMALL, small);
	run(SMALL * FACTOR, large);
	for (int i = 0; i < N_STEPS; i++) {
		printf("%s: %.2f ms, %.2f ms\n", step_names[i], small[i] * 1e3, large[i] * 1e3);
		// Caches have their say, too; the square would be 100 times as much.
		assert_true(large[i] <= 40 * (small[i] + 0.0005));
	}
}

// Of the cluster that message i changes.
static uint32_t port_of(const struct deps_fixture *f, int i)
{
	char name[16];
	snprintf(name, sizeof(name), "p%d", i % N_CHANGING * 2);
	return xds_config_find_cluster(f->config, name)->endpoints->list->addresses[0].port;
}

// A message a millisecond, while a configuration of so many clusters rests for ten.
static void a_thousand_endpoint_updates_a_second_are_taken_together(void **state)
{
	struct deps_fixture f;
	struct list routes = {.at = calloc(1, sizeof(*routes.at))};
	struct list clusters = {.at = calloc((size_t)SMALL * 2 + 2, sizeof(*clusters.at))};
	struct list endpoints = {.at = calloc((size_t)SMALL + 1, sizeof(*endpoints.at))};
	fill(&routes, &clusters, &endpoints, SMALL);
	deps_init(&f, "", NULL);
	hold_listener(&f, "rc");
	f.name_servers.instant = "10.0.0.9";
	say(&f, &res_type_listener);
	respond(&f, &res_type_route_config, &routes);
	respond(&f, &res_type_cluster, &clusters);
	respond(&f, &res_type_cluster, &clusters);
	respond(&f, &res_type_endpoints, &endpoints);
	turn(&f, S);
	expect_updates(&f, 1, 0);
	for (int i = 0; i < N_STORM; i++) {
		struct list one = {.at = calloc(1, sizeof(*one.at))};
		add_endpoints(&one, i % N_CHANGING * 2, 1000 + i);
		respond(&f, &res_type_endpoints, &one);
		fake_ads_forget(&f.server);
		free_list(&one);
		turn(&f, 0);
		// Nothing waits for the end of the storm.
		if (i >= LATEST)
			assert_true(port_of(&f, i - LATEST) >= 1000u + (uint32_t)(i - LATEST));
	}
	assert_in_range(f.n_updates, N_STORM / LATEST, N_STORM / 10 + 1);
	turn(&f, S);
	for (int i = N_STORM - N_CHANGING; i < N_STORM; i++)
		assert_int_equal(port_of(&f, i), 1000 + i);
	deps_fini(&f);
	free_list(&routes);
	free_list(&clusters);
	free_list(&endpoints);
}

RUN_SUITE("deps/deps_scale", cmocka_unit_test(ten_times_as_many_clusters_cost_ten_times_as_much),
	cmocka_unit_test(a_thousand_endpoint_updates_a_second_are_taken_together))
