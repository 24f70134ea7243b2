// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/tier.h"

#include "tools/fleet-sim/maglev.h"

#include <stdlib.h>
#include <string.h>

#define NOBODY UINT32_MAX
#define BUCKETS 65536 // of resilient groups; Linux has 2^16 - 1 at most

struct tier {
	enum tier_kind kind;
	uint32_t n_hosts, n_up;
	bool *is_up; // [n_hosts]
	uint32_t *up; // [n_hosts], the first n_up: who is
	uint32_t *table; // [n_table]: the host of each bucket, or place
	uint32_t n_table; // 0 = it needs none
};

const char *tier_name(enum tier_kind kind)
{
	static const char *const names[TIER_N] = {
		"ECMP, modulo",
		"ECMP, threshold",
		"ECMP, resilient",
		"Maglev",
		"Maglev, tracked",
	};
	return names[kind];
}

struct tier *tier_new(enum tier_kind kind, uint32_t n_hosts)
{
	struct tier *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	*t = (struct tier){.kind = kind, .n_hosts = n_hosts};
	if (kind == TIER_RESILIENT)
		t->n_table = BUCKETS;
	else if (kind == TIER_MAGLEV || kind == TIER_TRACKED)
		t->n_table = MAGLEV_SIZE;
	t->is_up = calloc(n_hosts, sizeof(*t->is_up));
	t->up = calloc(n_hosts, sizeof(*t->up));
	t->table = malloc((t->n_table + (size_t)1) * sizeof(*t->table));
	if (!t->is_up || !t->up || !t->table) {
		tier_free(t);
		return NULL;
	}
	memset(t->table, 0xff, t->n_table * sizeof(*t->table)); // NOBODY
	return t;
}

void tier_free(struct tier *t)
{
	if (!t)
		return;
	free(t->is_up);
	free(t->up);
	free(t->table);
	free(t);
}

// How many buckets this one is to have, of those who are up in order.
static uint32_t share(const struct tier *t, uint32_t nth)
{
	return BUCKETS / t->n_up + (nth < BUCKETS % t->n_up);
}

// Buckets of hosts that are down, or that have more than their share, go to those with less.
static bool balance(struct tier *t)
{
	uint32_t *missing = calloc(t->n_hosts, sizeof(*missing)); // of each one's share
	if (!missing)
		return false;
	for (uint32_t i = 0; i < t->n_up; i++)
		missing[t->up[i]] = share(t, i);
	for (uint32_t i = 0; i < BUCKETS; i++) {
		uint32_t host = t->table[i];
		if (host != NOBODY && missing[host])
			missing[host]--;
		else
			t->table[i] = NOBODY;
	}
	for (uint32_t i = 0, nth = 0; i < BUCKETS; i++) {
		if (t->table[i] != NOBODY)
			continue;
		while (!missing[t->up[nth]])
			nth++;
		t->table[i] = t->up[nth];
		missing[t->up[nth]]--;
	}
	free(missing);
	return true;
}

bool tier_update(struct tier *t, const bool *is_up)
{
	memcpy(t->is_up, is_up, t->n_hosts * sizeof(*is_up));
	t->n_up = 0;
	for (uint32_t i = 0; i < t->n_hosts; i++)
		if (is_up[i])
			t->up[t->n_up++] = i;
	if (t->kind == TIER_RESILIENT)
		return balance(t);
	return !t->n_table || maglev_fill(t->table, t->up, t->n_up);
}

uint32_t tier_find(const struct tier *t, uint32_t hash)
{
	switch (t->kind) {
	case TIER_MODULO:
		return t->up[hash % t->n_up];
	case TIER_THRESHOLD:
		return t->up[(uint64_t)hash * t->n_up >> 32];
	default:
		return t->table[(uint64_t)hash * t->n_table >> 32];
	}
}

uint32_t tier_find_open(const struct tier *t, uint32_t hash, uint32_t host)
{
	return t->kind == TIER_TRACKED && t->is_up[host] ? host : tier_find(t, hash);
}
