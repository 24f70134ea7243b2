// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/rollout.h"

#include "tools/fleet-sim/aging.h"

#include <stdlib.h>

// Host i is in wave i modulo their number: neighbors in the routers' list go at different times.
static void mark(const struct fleet *f, uint32_t wave, uint32_t n_waves, bool *is_in)
{
	for (uint32_t i = 0; i < f->conf.n_hosts; i++)
		is_in[i] = i % n_waves == wave;
}

static void set_up(struct fleet *f, const bool *is_in, bool is_up)
{
	for (uint32_t i = 0; i < f->conf.n_hosts; i++)
		if (is_in[i])
			f->is_up[i] = is_up;
}

// The most that any of them has, over the mean.
static double share(const struct fleet *f, const uint32_t *counts, const bool *is_in)
{
	uint32_t n_up = 0, most = 0;
	for (uint32_t i = 0; i < f->conf.n_hosts; i++) {
		n_up += f->is_up[i];
		if ((!is_in || is_in[i]) && counts[i] > most)
			most = counts[i];
	}
	return most / ((double)f->conf.n_connections / n_up);
}

static bool change(struct fleet *f, struct rollout *r, uint32_t *counts)
{
	struct fleet_cut cut;
	if (!fleet_change(f, &cut))
		return false;
	r->n_cut += cut.n_cut;
	r->n_lost += cut.n_lost;
	fleet_count(f, counts);
	double most = share(f, counts, NULL);
	r->most_share = most > r->most_share ? most : r->most_share;
	return true;
}

bool rollout_run(
	struct fleet *f, uint32_t n_waves, struct aging *aging, uint32_t wave_s, struct rollout *r)
{
	*r = (struct rollout){0};
	bool *is_in = calloc(f->conf.n_hosts, sizeof(*is_in));
	uint32_t *counts = calloc(f->conf.n_hosts, sizeof(*counts));
	bool ok = is_in && counts;
	for (uint32_t wave = 0; ok && wave < n_waves; wave++) {
		mark(f, wave, n_waves, is_in);
		r->n_moved += fleet_drain(f, is_in);
		set_up(f, is_in, false);
		ok = change(f, r, counts);
		set_up(f, is_in, true);
		ok = ok && change(f, r, counts);
		if (aging)
			aging_pass(aging, (wave + 1) * wave_s);
	}
	if (ok)
		fleet_count(f, counts);
	if (ok)
		r->last_share = share(f, counts, is_in);
	free(is_in);
	free(counts);
	return ok;
}
