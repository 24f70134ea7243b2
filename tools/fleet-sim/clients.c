// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/clients.h"

#include "dataplane/proxy/age.h"
#include "lb/base/min.h"
#include "lb/base/time.h"
#include "tools/fleet-sim/farewell.h"

#include <stdlib.h>

#define NEVER UINT64_MAX

struct clients {
	struct fleet *fleet;
	struct rand rand;
	uint64_t now_ns;
	uint64_t age_ns; // 0 = they don't age
	uint64_t *due_ns; // [n_connections], owned: when each has reached its age
	uint32_t *attempts; // [n_connections], owned: of which connection that is
};

static uint64_t next_due(struct clients *c, uint64_t from_ns)
{
	return c->age_ns ? from_ns + proxy_age_ns(c->age_ns, &c->rand) : NEVER;
}

struct clients *clients_new(struct fleet *f, uint32_t age_s)
{
	size_t n = f->conf.n_connections;
	struct clients *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct clients){.fleet = f, .age_ns = age_s * NS_PER_SECOND};
	rand_init(&c->rand, f->conf.seed + 9);
	c->due_ns = malloc((n + 1) * sizeof(*c->due_ns));
	c->attempts = calloc(n + 1, sizeof(*c->attempts));
	if (!c->due_ns || !c->attempts) {
		clients_free(c);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t due_ns = next_due(c, 0);
		c->due_ns[i] = due_ns == NEVER ? NEVER : rand_below(&c->rand, due_ns);
	}
	return c;
}

void clients_free(struct clients *c)
{
	if (!c)
		return;
	free(c->due_ns);
	free(c->attempts);
	free(c);
}

static uint64_t told_at(const struct clients *c, struct farewell *w, uint32_t i, uint64_t now_ns)
{
	return w ? farewell_tells_at(w, c->fleet->hosts[i], now_ns) : NEVER;
}

// What befalls one of them. Returns how often it reached its age.
static uint64_t live(struct clients *c, struct farewell *w, uint32_t i, uint64_t until_ns)
{
	uint64_t n_aged = 0, told_ns = told_at(c, w, i, c->now_ns);
	for (;;) {
		uint64_t at_ns = min_u64(c->due_ns[i], told_ns);
		if (at_ns > until_ns)
			return n_aged;
		if (told_ns == at_ns)
			farewell_tell(w, at_ns);
		else
			n_aged++;
		fleet_reconnect(c->fleet, i);
		c->due_ns[i] = next_due(c, at_ns);
		told_ns = told_at(c, w, i, at_ns);
	}
}

// In all this time the tier stays as it is, so that they are independent of each other.
uint64_t clients_pass(struct clients *c, struct farewell *w, uint64_t until_ns)
{
	struct fleet *f = c->fleet;
	uint64_t n_aged = 0;
	for (uint32_t i = 0; i < f->conf.n_connections; i++) {
		if (c->attempts[i] != f->attempts[i])
			c->due_ns[i] = next_due(c, c->now_ns);
		n_aged += live(c, w, i, until_ns);
		c->attempts[i] = f->attempts[i];
	}
	c->now_ns = until_ns;
	return n_aged;
}
