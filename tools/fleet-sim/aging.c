// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/aging.h"

#include "dataplane/proxy/age.h"
#include "lb/base/time.h"

#include <stdlib.h>

struct aging {
	struct fleet *fleet;
	struct rand rand;
	uint64_t age_ns;
	uint64_t *due_ns; // [n_connections], owned
	uint8_t *attempts; // [n_connections], owned: of which connection that is
};

struct aging *aging_new(struct fleet *f, uint32_t age_s)
{
	struct aging *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	*a = (struct aging){.fleet = f, .age_ns = age_s * NS_PER_SECOND};
	rand_init(&a->rand, f->conf.seed + 9);
	a->due_ns = malloc((f->conf.n_connections + (size_t)1) * sizeof(*a->due_ns));
	a->attempts = calloc(f->conf.n_connections + (size_t)1, sizeof(*a->attempts));
	if (!a->due_ns || !a->attempts) {
		aging_free(a);
		return NULL;
	}
	for (uint32_t i = 0; i < f->conf.n_connections; i++)
		a->due_ns[i] = rand_below(&a->rand, proxy_age_ns(a->age_ns, &a->rand));
	return a;
}

void aging_free(struct aging *a)
{
	if (!a)
		return;
	free(a->due_ns);
	free(a->attempts);
	free(a);
}

uint32_t aging_pass(struct aging *a, uint32_t until_s)
{
	struct fleet *f = a->fleet;
	uint64_t until_ns = until_s * NS_PER_SECOND;
	uint32_t n = 0;
	for (uint32_t i = 0; i < f->conf.n_connections; i++) {
		if (a->attempts[i] != f->attempts[i])
			a->due_ns[i] = until_ns + proxy_age_ns(a->age_ns, &a->rand);
		while (a->due_ns[i] <= until_ns) {
			fleet_reconnect(f, i);
			a->due_ns[i] += proxy_age_ns(a->age_ns, &a->rand);
			n++;
		}
		a->attempts[i] = f->attempts[i];
	}
	return n;
}
