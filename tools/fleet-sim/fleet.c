// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/fleet.h"

#include "tools/fleet-sim/flow.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash_of(const struct fleet *f, uint32_t connection)
{
	struct tcp_flow flow;
	flow_of(f->conf.seed, connection, f->attempts[connection], &flow);
	return flow_hash(f->conf.seed, &flow);
}

void fleet_reconnect(struct fleet *f, uint32_t connection)
{
	f->attempts[connection]++;
	f->hashes[connection] = hash_of(f, connection);
	f->hosts[connection] = tier_find(f->tier, f->hashes[connection]);
}

struct fleet *fleet_new(const struct fleet_conf *conf, const bool *is_up)
{
	size_t n = conf->n_connections;
	struct fleet *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->conf = *conf;
	f->tier = tier_new(conf->tier, conf->n_hosts);
	f->is_up = calloc(conf->n_hosts, sizeof(*f->is_up));
	f->hashes = malloc((n + 1) * sizeof(*f->hashes));
	f->hosts = malloc((n + 1) * sizeof(*f->hosts));
	f->attempts = calloc(n + 1, sizeof(*f->attempts));
	bool ok = f->tier && f->is_up && f->hashes && f->hosts && f->attempts;
	for (uint32_t i = 0; ok && i < conf->n_hosts; i++)
		f->is_up[i] = !is_up || is_up[i];
	if (!ok || !tier_update(f->tier, f->is_up)) {
		fleet_free(f);
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++) {
		f->hashes[i] = hash_of(f, i);
		f->hosts[i] = tier_find(f->tier, f->hashes[i]);
	}
	return f;
}

void fleet_free(struct fleet *f)
{
	if (!f)
		return;
	tier_free(f->tier);
	free(f->is_up);
	free(f->hashes);
	free(f->hosts);
	free(f->attempts);
	free(f);
}

bool fleet_change(struct fleet *f, struct fleet_cut *ret)
{
	*ret = (struct fleet_cut){0};
	if (!tier_update(f->tier, f->is_up))
		return false;
	for (uint32_t i = 0; i < f->conf.n_connections; i++) {
		uint32_t host = f->hosts[i];
		bool is_lost = !f->is_up[host];
		if (!is_lost && tier_find_open(f->tier, f->hashes[i], host) == host)
			continue;
		ret->n_lost += is_lost;
		ret->n_cut += !is_lost;
		fleet_reconnect(f, i);
	}
	return true;
}

void fleet_count(const struct fleet *f, uint32_t *counts)
{
	memset(counts, 0, f->conf.n_hosts * sizeof(*counts));
	for (uint32_t i = 0; i < f->conf.n_connections; i++)
		counts[f->hosts[i]]++;
}
