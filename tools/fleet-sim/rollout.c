// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/rollout.h"

#include "lb/base/time.h"
#include "tools/fleet-sim/clients.h"

#include <stdlib.h>

struct run {
	const struct rollout_conf *conf;
	struct fleet *fleet;
	struct clients *clients;
	bool *is_in; // [n_hosts], owned: this wave
	uint32_t *counts; // [n_hosts], owned
	struct rollout *result;
};

// Host i is in wave i modulo their number: neighbors in the routers' list go at different times.
static void mark(struct run *r, uint32_t wave)
{
	for (uint32_t i = 0; i < r->fleet->conf.n_hosts; i++)
		r->is_in[i] = i % r->conf->n_waves == wave;
}

// The most that any of them has, over the mean.
static double share(const struct run *r, const bool *is_in)
{
	const struct fleet *f = r->fleet;
	uint32_t n_up = 0, most = 0;
	for (uint32_t i = 0; i < f->conf.n_hosts; i++) {
		n_up += f->is_up[i];
		if ((!is_in || is_in[i]) && r->counts[i] > most)
			most = r->counts[i];
	}
	return most / ((double)f->conf.n_connections / n_up);
}

// The wave leaves, or comes back. Who is at a host that has left heard nothing there, since all
// others were told.
static bool change(struct run *r, bool is_up)
{
	struct fleet_cut cut;
	for (uint32_t i = 0; i < r->fleet->conf.n_hosts; i++)
		if (r->is_in[i])
			r->fleet->is_up[i] = is_up;
	if (!fleet_change(r->fleet, &cut))
		return false;
	r->result->n_cut += cut.n_cut;
	r->result->n_unheard += cut.n_lost;
	fleet_count(r->fleet, r->counts);
	double most = share(r, NULL);
	if (most > r->result->most_share)
		r->result->most_share = most;
	return true;
}

static bool run_wave(struct run *r, uint32_t wave)
{
	const struct rollout_conf *conf = r->conf;
	uint64_t begin_ns = (uint64_t)wave * conf->wave_s * NS_PER_SECOND;
	struct farewell f;
	mark(r, wave);
	farewell_begin(&f, &conf->farewell, r->is_in, begin_ns);
	clients_pass(r->clients, &f, f.until_ns);
	uint64_t left_ns = farewell_ends_at(&f);
	clients_pass(r->clients, &f, left_ns);
	r->result->n_moved += f.n_told;
	r->result->n_streams_cut += f.n_streams_cut;
	if (!change(r, false))
		return false;
	uint64_t away_ns = (conf->lame_duck_s + conf->start_s) * NS_PER_SECOND;
	clients_pass(r->clients, NULL, left_ns + away_ns);
	if (!change(r, true))
		return false;
	clients_pass(r->clients, NULL, begin_ns + conf->wave_s * NS_PER_SECOND);
	return true;
}

bool rollout_run(struct fleet *f, struct clients *clients, const struct rollout_conf *conf,
	struct rollout *ret)
{
	struct run r = {.conf = conf, .fleet = f, .clients = clients, .result = ret};
	*ret = (struct rollout){0};
	r.is_in = calloc(f->conf.n_hosts, sizeof(*r.is_in));
	r.counts = calloc(f->conf.n_hosts, sizeof(*r.counts));
	bool ok = r.is_in && r.counts;
	for (uint32_t wave = 0; ok && wave < conf->n_waves; wave++)
		ok = run_wave(&r, wave);
	if (ok)
		fleet_count(f, r.counts);
	if (ok)
		ret->last_share = share(&r, r.is_in);
	free(r.is_in);
	free(r.counts);
	return ok;
}

double rollout_part_cut(const struct rollout *r)
{
	return r->n_moved ? (double)r->n_streams_cut / (double)r->n_moved : 0;
}
