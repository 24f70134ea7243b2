// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/options.h"

#include "lb/pick/farewell.h"
#include "lb/pick/limits.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct number {
	const char *name, *what;
	size_t at; // of a uint32_t in struct options
	uint32_t least, most;
} numbers[] = {
	{"hosts", "with Shunt (1000)", offsetof(struct options, hosts), 10, 10000},
	{"backends", "(100000)", offsetof(struct options, backends), 100, LB_MAX_ENDPOINTS},
	{"connections", "of clients (10000000)", offsetof(struct options, connections), 1000,
		100000000},
	{"requests", "of all hosts (100000000)", offsetof(struct options, requests), 1000,
		2000000000},
	{"under-way", "requests of a host at a time (1000)", offsetof(struct options, under_way), 1,
		1000000},
	{"workers", "of each host (8)", offsetof(struct options, workers), 1, 64},
	{"waves", "of a rolling upgrade (20)", offsetof(struct options, waves), 2, 1000},
	{"wave-s", "how long a wave takes (600)", offsetof(struct options, wave_s), 1, 86400},
	{"farewell-s", "farewell_s (300)", offsetof(struct options, farewell_s), 2, 3600},
	{"drain-s", "drain_s (30)", offsetof(struct options, drain_s), 0, 3600},
	{"lame-duck-s", "lame_duck_s (2)", offsetof(struct options, lame_duck_s), 0, 3600},
	{"start-s", "from a host's end until it is announced again (5)",
		offsetof(struct options, start_s), 0, 3600},
	{"stream-s", "how long streams last, on the average (60)",
		offsetof(struct options, stream_s), 1, 86400},
	{"age-s", "limits.max_connection_age_s (600)", offsetof(struct options, age_s), 10, 86400},
};
static const struct table {
	const char *name, *what;
	size_t at; // of a bool in struct options
} tables[] = {
	{"scale", "connections that are cut as hosts come and go", offsetof(struct options, scale)},
	{"load", "connections of a host and of a worker", offsetof(struct options, load)},
	{"subsets", "connections of a backend", offsetof(struct options, subsets)},
	{"requests", "requests of a backend", offsetof(struct options, spread)},
	{"rolling", "an upgrade of all hosts in waves", offsetof(struct options, rolling)},
	{"age", "how soon hosts that are new have their share", offsetof(struct options, age)},
};
#define N_OF(list) (sizeof(list) / sizeof((list)[0]))

static void explain(void)
{
	fprintf(stderr, "fleet-sim [--seed N] [--OPTION N]… [TABLE]…: what becomes of a fleet's "
			"connections (docs/scale.md)\n\n");
	for (size_t i = 0; i < N_OF(numbers); i++)
		fprintf(stderr, "  --%-12s %s\n", numbers[i].name, numbers[i].what);
	fprintf(stderr, "\n");
	for (size_t i = 0; i < N_OF(tables); i++)
		fprintf(stderr, "  %-14s %s\n", tables[i].name, tables[i].what);
}

static bool read_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret)
{
	char *end;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return !errno && *text && !*end && *text != '-' && *ret >= least && *ret <= most;
}

static bool set_number(struct options *o, const char *name, const char *text)
{
	uint64_t value;
	if (strcmp(name, "seed") == 0)
		return read_number(text, 0, UINT64_MAX, &o->seed);
	for (size_t i = 0; i < N_OF(numbers); i++) {
		const struct number *n = &numbers[i];
		if (strcmp(name, n->name) != 0)
			continue;
		if (!read_number(text, n->least, n->most, &value)) {
			fprintf(stderr, "fleet-sim: --%s: must be in [%u, %u]\n", name, n->least,
				n->most);
			return false;
		}
		*(uint32_t *)((char *)o + n->at) = (uint32_t)value;
		return true;
	}
	fprintf(stderr, "fleet-sim: --%s: there is no such option\n", name);
	return false;
}

static bool set_table(struct options *o, const char *name)
{
	for (size_t i = 0; i < N_OF(tables); i++) {
		if (strcmp(name, tables[i].name) != 0)
			continue;
		*(bool *)((char *)o + tables[i].at) = true;
		return true;
	}
	explain();
	return false;
}

// A wave is back before the next one begins; other tables have none.
static bool waves_fit(const struct options *o)
{
	if (!o->rolling)
		return true;
	uint32_t takes_s =
		o->farewell_s + lb_farewell_drain_s(o->drain_s) + o->lame_duck_s + o->start_s;
	if (takes_s > o->wave_s)
		fprintf(stderr, "fleet-sim: --wave-s: a wave takes %u s\n", takes_s);
	return takes_s <= o->wave_s;
}

bool options_read(int argc, char **argv, struct options *o)
{
	bool has_table = false;
	*o = (struct options){.seed = 1,
		.hosts = 1000,
		.backends = 100000,
		.connections = 10000000,
		.requests = 100000000,
		.under_way = 1000,
		.workers = 8,
		.waves = 20,
		.wave_s = 600,
		.farewell_s = 300,
		.drain_s = 30,
		.lame_duck_s = 2,
		.start_s = 5,
		.stream_s = 60,
		.age_s = 600};
	for (int i = 1; i < argc; i++) {
		bool is_option = strncmp(argv[i], "--", 2) == 0;
		if (is_option && (i + 1 == argc || !set_number(o, argv[i] + 2, argv[i + 1]))) {
			if (i + 1 == argc)
				explain();
			return false;
		}
		if (!is_option && !set_table(o, argv[i]))
			return false;
		has_table |= !is_option;
		i += is_option;
	}
	for (size_t i = 0; !has_table && i < N_OF(tables); i++)
		*(bool *)((char *)o + tables[i].at) = true;
	return waves_fit(o);
}
