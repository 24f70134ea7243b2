// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/steer.h"
#include "tools/fleet-sim/fleet.h"
#include "tools/fleet-sim/flow.h"
#include "tools/fleet-sim/options.h"
#include "tools/fleet-sim/spread.h"
#include "tools/fleet-sim/tables.h"

#include <stdio.h>
#include <stdlib.h>

static void print(const char *of, const struct spread *s)
{
	printf("%-28s %10.0f %9.3f %9.3f %9.3f\n", of, s->mean, s->p1 / s->mean, s->p99 / s->mean,
		s->most / s->mean);
}

// Each host draws a key when it starts.
static struct steer *make_steers(const struct options *o)
{
	struct steer *s = aligned_alloc(_Alignof(struct steer), o->hosts * sizeof(*s));
	struct rand r;
	rand_init(&r, o->seed);
	for (uint32_t i = 0; s && i < o->hosts; i++) {
		uint8_t key[STEER_KEY_MAX];
		for (size_t k = 0; k < sizeof(key); k++)
			key[k] = (uint8_t)rand_below(&r, 256);
		steer_init(&s[i], o->workers, key);
		steer_settle(&s[i]);
	}
	return s;
}

static bool count_workers(const struct options *o, const struct fleet *f)
{
	uint32_t n = o->hosts * o->workers, *counts = calloc(n, sizeof(*counts));
	struct steer *steers = make_steers(o);
	for (uint32_t i = 0; counts && steers && i < o->connections; i++) {
		struct tcp_flow flow;
		flow_of(o->seed, i, f->attempts[i], &flow);
		counts[f->hosts[i] * o->workers + steer_owner(&steers[f->hosts[i]], &flow)]++;
	}
	bool ok = counts && steers;
	if (ok) {
		struct spread s = spread_of(counts, n);
		print("worker, behind Maglev", &s);
	}
	free(counts);
	free(steers);
	return ok;
}

bool tables_load(const struct options *o)
{
	printf("Connections of a host, %u over %u hosts, and of a worker, %u each:\n\n%-28s %10s "
	       "%9s %9s %9s\n",
		o->connections, o->hosts, o->workers, "", "mean", "p1/mean", "p99/mean",
		"most/mean");
	uint32_t *counts = calloc(o->hosts, sizeof(*counts));
	bool ok = counts;
	for (int k = 0; ok && k <= TIER_MAGLEV; k++) { // tracking changes nothing here
		const struct fleet_conf conf = {
			o->seed, o->hosts, o->connections, (enum tier_kind)k};
		struct fleet *f = fleet_new(&conf, NULL);
		ok = f;
		if (ok) {
			fleet_count(f, counts);
			struct spread s = spread_of(counts, o->hosts);
			print(tier_name((enum tier_kind)k), &s);
		}
		if (ok && k == TIER_MAGLEV)
			ok = count_workers(o, f);
		fleet_free(f);
	}
	free(counts);
	printf("\n");
	return ok;
}
