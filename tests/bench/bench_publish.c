// SPDX-License-Identifier: Apache-2.0
// bench_publish: how long it takes from the bytes of a changed RouteConfiguration to a snapshot
// that workers adopt, a JSON object a line. tools/bench runs it.
#include "ctrl/assemble/cluster_set.h"
#include "ctrl/assemble/cluster_tree.h"
#include "ctrl/assemble/regex_cache.h"
#include "ctrl/assemble/route_compile.h"
#include "ctrl/res/route.h"
#include "lb/base/check.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/bench/measure.h"
#include "tests/bench/workload.h"
#include "tests/support/res_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N_ROUTES 10000
#define N_CLUSTERS 64
#define N_REPEATS 7

struct world {
	struct cluster_set *clusters;
	struct regex_cache *regexes;
	struct route_compiler *compiler;
	struct lb_slot *slot;
	struct workload workload;
};

// A configuration as the server has it.
struct wanted {
	uint32_t n_vhosts; // the routes are dealt out to them
	uint32_t n_routes; // of the workload
	uint32_t changed; // route with another cluster than before, UINT32_MAX = none
	bool extra, extra_regex; // a route more in the first virtual host
	uint32_t round; // makes the change another one each time
};

struct applied {
	struct xds_res *res;
	struct compiled_routes *routes;
	double decode_ms, compile_ms, publish_ms;
};

// Of this thread: what others do on a busy machine is not counted.
static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void world_init(struct world *w)
{
	static const struct cluster_tree_env nothing_changes;
	w->clusters = cluster_set_new(&nothing_changes, 1);
	w->regexes = regex_cache_new(&(struct regex_cache_conf){.synchronous = true});
	CHECK(w->clusters && w->regexes);
	for (uint32_t i = 0; i < N_CLUSTERS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "cluster%u", i);
		CHECK(cluster_set_obtain(w->clusters, name, NULL));
	}
	struct route_compiler_conf conf = {
		.clusters = w->clusters, .regexes = w->regexes, .n_workers = 2};
	w->compiler = route_compiler_new(&conf);
	struct lb_snapshot *first = lb_snapshot_new(1, "nothing yet");
	w->slot = first ? lb_slot_new(first) : NULL;
	CHECK(w->compiler && w->slot);
	workload_init(&w->workload, N_ROUTES, 10);
}

static void world_fini(struct world *w)
{
	workload_fini(&w->workload);
	lb_slot_free(w->slot);
	route_compiler_free(w->compiler);
	regex_cache_free(w->regexes);
	cluster_set_free(w->clusters);
}

static void print_route(FILE *to, const char *kind, struct str text, uint32_t cluster)
{
	fprintf(to, "{'match':{");
	if (strcmp(kind, "safe_regex") == 0)
		fprintf(to, "'safe_regex':{'regex':'%.*s'}", (int)text.len, text.p);
	else
		fprintf(to, "'%s':'%.*s'", kind, (int)text.len, text.p);
	fprintf(to, "},'route':{'cluster':'cluster%u'}},", cluster % N_CLUSTERS);
}

static uint8_t *encode(const struct world *w, const struct wanted *c, size_t *ret_len)
{
	char *json = NULL;
	size_t len;
	FILE *to = open_memstream(&json, &len);
	CHECK(to);
	fprintf(to, "{'name':'routes','virtual_hosts':[");
	for (uint32_t v = 0; v < c->n_vhosts; v++) {
		fprintf(to, "{'name':'host%u','domains':['%s%u.test'],'routes':[", v, "host", v);
		for (uint32_t i = v; i < c->n_routes; i += c->n_vhosts) {
			const struct bench_route *r = &w->workload.routes[i];
			print_route(to, r->is_regex ? "safe_regex" : "prefix", r->text,
				i + (i == c->changed) * (1 + c->round));
		}
		char text[64];
		snprintf(text, sizeof(text), "/more%u/", c->round);
		if (v == 0 && c->extra)
			print_route(to, "prefix", str_from(text), 0);
		snprintf(text, sizeof(text), "/v1/more-%u/[^/]+/Jobs/[0-9]+", c->round);
		if (v == 0 && c->extra_regex)
			print_route(to, "safe_regex", str_from(text), 0);
		print_route(to, "prefix", STR("/"), 0);
		fseek(to, -1, SEEK_CUR); // the last comma
		fprintf(to, "]},");
	}
	fseek(to, -1, SEEK_CUR);
	fprintf(to, "]}");
	CHECK(fclose(to) == 0);
	uint8_t *bytes = res_bytes_from_json(&res_type_route_config, json, ret_len);
	free(json);
	return bytes;
}

static void apply(struct world *w, const struct wanted *c, struct applied *a)
{
	size_t len;
	uint8_t *bytes = encode(w, c, &len);
	struct xds_decoded d = {0};
	double start = now_ms();
	res_type_route_config.decode(bytes, len, &d);
	CHECK(d.res);
	double decoded = now_ms();
	struct lb_err err = {0};
	struct route_job *job = route_job_new(
		w->compiler, res_route_config_from(d.res), (struct route_compile_how){.vhost = -1});
	CHECK(job && route_job_run(job, &a->routes, &err) == ROUTE_COMPILED);
	route_job_free(job);
	double compiled = now_ms();
	struct lb_snapshot *s = lb_snapshot_copy(lb_slot_current(w->slot));
	CHECK(s);
	CHECK(lb_snapshot_set_frontend(s, 0, compiled_routes_table(a->routes), NULL) == 0);
	lb_slot_publish(w->slot, s);
	double published = now_ms();
	a->res = d.res;
	a->decode_ms = decoded - start;
	a->compile_ms = compiled - decoded;
	a->publish_ms = published - compiled;
	free(d.name);
	free(bytes);
}

static void applied_fini(struct applied *a)
{
	compiled_routes_free(a->routes);
	xds_res_put(a->res);
}

// From `before` to `after`, again and again.
static void bench(struct world *w, const char *name, struct wanted before, struct wanted after)
{
	double all[N_REPEATS], decode[N_REPEATS], compile[N_REPEATS], publish[N_REPEATS];
	for (uint32_t i = 0; i < N_REPEATS; i++) {
		struct applied old, new;
		before.round = after.round = i;
		apply(w, &before, &old);
		apply(w, &after, &new);
		decode[i] = new.decode_ms;
		compile[i] = new.compile_ms;
		publish[i] = new.publish_ms;
		all[i] = decode[i] + compile[i] + publish[i];
		applied_fini(&old);
		applied_fini(&new);
		while (lb_slot_reclaim(w->slot) > 1)
			;
	}
	printf("{\"bench\":\"route_publish\",\"impl\":\"shunt\",\"case\":\"%s\",\"n\":%u,"
	       "\"regexes\":%u,\"ms\":%.2f,\"decode_ms\":%.2f,\"compile_ms\":%.2f,"
	       "\"publish_ms\":%.3f}\n",
		name, N_ROUTES, w->workload.n_regexes, bench_median(all, N_REPEATS),
		bench_median(decode, N_REPEATS), bench_median(compile, N_REPEATS),
		bench_median(publish, N_REPEATS));
	fflush(stdout);
}

int main(void)
{
	struct world w;
	world_init(&w);
	const struct wanted one = {.n_vhosts = 1, .n_routes = N_ROUTES, .changed = UINT32_MAX};
	struct wanted extra = one, extra_regex = one, changed = one, shared = one;
	extra.extra = extra_regex.extra_regex = true;
	changed.changed = N_ROUTES / 2;
	bench(&w, "add", one, extra);
	bench(&w, "add_regex", one, extra_regex);
	bench(&w, "change", one, changed);
	bench(&w, "remove", extra, one);
	shared.n_vhosts = 100;
	struct wanted one_of_100 = shared;
	one_of_100.changed = N_ROUTES / 2;
	bench(&w, "change_one_host_of_100", shared, one_of_100);
	world_fini(&w);
	return 0;
}
