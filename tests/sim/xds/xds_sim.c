// SPDX-License-Identifier: Apache-2.0
// Two frontends (one pinned to an authority) over one client against servers that answer at random,
// in state of the world or incrementally: good, bad, partial, stale, repeated, deleted and foreign
// resources, in variants for this client and for others, errors, garbage, silence, lost streams and
// another server on the next one, servers that go down and come up again with others behind them;
// and over one resolver against name servers that answer, fail, stall and change their mind.
// Whatever happens, each response is answered once, each delivered configuration is whole and of
// one moment, no server that can't be reached takes one away, and when the servers calm down the
// frontends have what they say.
// usage: xds_sim [SEED [STEPS [SEEDS]]]: so many steps from each of so many seeds
#include "ctrl/deps/config.h"
#include "ctrl/deps/depmgr.h"
#include "ctrl/dns/names.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/res/types.h"
#include "ctrl/xds/federation.h"
#include "lb/base/check.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "tests/sim/xds/converged.h"
#include "tests/sim/xds/invariants.h"
#include "tests/sim/xds/net.h"
#include "tests/support/fake_lookups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_STRANGERS 4
#define N_SUBS 2 // of a frontend
#define DEFAULT_SEEDS 8
#define DEFAULT_STEPS 2000
#define CALM_ROUNDS 60
#define N_TURNS 3 // of the wheel in a step, at most

struct sim;

struct frontend {
	struct sim *sim;
	struct depmgr *dm;
	int number;
	struct xds_config *config; // counted; NULL = none, or an error came after it
	uint32_t in_use; // clusters, by number, that requests hold
	uint32_t held; // that were held or subscribed to since the servers last calmed down
	struct depmgr_sub *subs[N_SUBS];
	unsigned n_updates, n_errors, n_meanwhile;
};

struct sim {
	struct rand rand;
	struct net net;
	bool delta;
	unsigned n_losses, n_outages;
	unsigned n_fallen; // calm moments in which the second server served
	struct twheel *wheel;
	uint64_t now_ns;
	struct xds_federation *client;
	struct fake_lookups name_servers;
	struct dns_resolver *resolver;
	unsigned n_answers; // of name servers
	bool said[N_HOSTS][1 << N_ADDRESSES]; // by them, ever
	struct converged_seen converged;
	struct frontend frontends[N_LISTENERS];
	struct xds_watcher strangers[N_STRANGERS]; // watch anything at random
};

static bool chance(struct sim *s, unsigned percent)
{
	return rand_below(&s->rand, 100) < percent;
}

static void on_update(void *ctx, struct xds_config *config)
{
	struct frontend *f = ctx;
	bool is_waiting = *depmgr_waiting(f->dm);
	check_config(config, f->number == 1, f->held);
	check_names(config, f->sim->said);
	if (is_waiting)
		check_meanwhile(f->config, config, f->sim->client);
	else
		check_moment(config, f->sim->client);
	xds_config_put(f->config);
	f->config = xds_config_get(config);
	f->n_updates++;
	f->n_meanwhile += is_waiting;
}

static bool in_use(void *ctx, const char *cluster)
{
	struct frontend *f = ctx;
	uint32_t bit = 1u << world_find(0, cluster);
	f->held |= f->in_use & bit;
	return f->in_use & bit;
}

static void on_error(void *ctx, const char *text)
{
	struct frontend *f = ctx;
	CHECK(*text);
	// FM-09: who can't be asked takes nothing away.
	CHECK(!f->config || !strstr(text, "is not reachable"));
	xds_config_put(f->config);
	f->config = NULL;
	f->n_errors++;
}

static void stranger_event(struct xds_watcher *w, const struct xds_event *e)
{
	CHECK(w->entry || w->fallback || e->kind == XDS_EVENT_ERROR);
}

// Name servers

static void answer_name(struct sim *s, int host)
{
	char name[16], list[128];
	world_host(host, name);
	world_addresses(&s->net.world, host, list);
	if (!fake_lookups_asks(&s->name_servers, name))
		return;
	s->n_answers++;
	s->said[host][s->net.world.addresses[host]] = true;
	if (*list)
		fake_lookups_answer(&s->name_servers, name, list, 30);
	else
		fake_lookups_fail(&s->name_servers, name, "NXDOMAIN");
}

static void name_server_at_random(struct sim *s)
{
	int host = (int)rand_below(&s->rand, N_HOSTS);
	char name[16];
	world_host(host, name);
	switch (rand_below(&s->rand, 8)) {
	case 0:
		if (fake_lookups_asks(&s->name_servers, name))
			fake_lookups_fail(&s->name_servers, name, "SERVFAIL");
		break;
	case 1: // of the hosts file
		s->name_servers.instant = chance(s, 20) ? "10.8.0.1" : NULL;
		break;
	case 2:
		s->name_servers.starve = chance(s, 20);
		break;
	case 3:
		depmgr_reresolve(s->frontends[rand_below(&s->rand, N_LISTENERS)].dm);
		break;
	default:
		answer_name(s, host);
		break;
	}
}

// The world goes on

static void pass_time(struct sim *s, uint64_t ns)
{
	s->now_ns += ns;
	twheel_advance(s->wheel, s->now_ns);
}

// What is taken in bit by bit goes on; other things happen in between.
static void turn(struct sim *s)
{
	uint64_t n = fake_ads_slice().most ? N_TURNS : 0;
	for (uint64_t i = 0; i < n && twheel_next_ns(s->wheel) <= s->now_ns; i++)
		twheel_advance(s->wheel, s->now_ns);
}

// Then nothing happens in between.
static void take_in_at_once(struct sim *s, bool at_once)
{
	for (int i = 0; i < N_SERVERS; i++)
		s->net.servers[i].ads.wheel = at_once ? s->wheel : NULL;
}

static void toggle_stranger(struct sim *s)
{
	char name[WORLD_NAME_SIZE];
	struct xds_watcher *w = &s->strangers[rand_below(&s->rand, N_STRANGERS)];
	bool is_there = w->entry || w->fallback;
	bool again = is_there && chance(s, 30); // WA-13, DL-09
	xds_federation_begin(s->client);
	if (is_there)
		xds_federation_cancel(s->client, w);
	else
		again = true;
	unsigned type = (unsigned)rand_below(&s->rand, RES_N_TYPES);
	world_name(&s->net.world.shape, type,
		(int)rand_below(&s->rand, (uint64_t)world_count(type)), name);
	if (chance(s, 5)) // FE-04
		strcpy(name, "xdstp://nowhere/envoy.config.cluster.v3.Cluster/c1");
	if (again)
		CHECK(xds_federation_watch(s->client, res_types[type], name, w) == 0);
	xds_federation_end(s->client);
}

static void unsubscribe(struct frontend *f)
{
	for (int i = 0; i < N_SUBS; i++)
		depmgr_unsubscribe(&f->subs[i]);
}

// DM-20
static void toggle_sub(struct sim *s, struct frontend *f)
{
	char name[WORLD_NAME_SIZE];
	int number = (int)rand_below(&s->rand, N_CLUSTERS);
	struct depmgr_sub **sub = &f->subs[rand_below(&s->rand, N_SUBS)];
	if (*sub) {
		depmgr_unsubscribe(sub);
		return;
	}
	world_name(&s->net.world.shape, 0, number, name);
	*sub = depmgr_subscribe(f->dm, name);
	CHECK(*sub);
	f->held |= 1u << number;
}

static void restart_frontend(struct sim *s, int n)
{
	struct frontend *f = &s->frontends[n];
	char name[WORLD_NAME_SIZE];
	unsubscribe(f);
	depmgr_free(f->dm);
	xds_config_put(f->config);
	world_name(&s->net.world.shape, 2, n, name);
	*f = (struct frontend){.sim = s, .number = n};
	f->dm = depmgr_new(&(struct depmgr_conf){
		.client = s->client,
		.dns = s->resolver,
		.wheel = s->wheel,
		.listener_name = name,
		.authority = n == 1 ? "b.example" : NULL,
		.node_id = "sim",
		.on_update = on_update,
		.on_error = on_error,
		.in_use = in_use,
		.ctx = f,
	});
	CHECK(f->dm);
}

static void fail_a_server(struct sim *s)
{
	struct server *server = net_pick(&s->net, &s->rand);
	if (server->ads.stream && chance(s, 20)) {
		server_lose(server, chance(s, 50) ? "reset" : "refused");
		s->n_losses++;
	} else if (chance(s, server->is_down ? 30 : 5)) {
		server_toggle(server);
		s->n_outages += server->is_down;
	}
}

static void step(struct sim *s)
{
	switch (rand_below(&s->rand, 14)) {
	case 0:
		net_change_world(&s->net, &s->rand);
		break;
	case 1:
	case 2:
		server_read(net_pick(&s->net, &s->rand), true);
		break;
	case 3:
		pass_time(s, rand_below(&s->rand, 3000) * NS_PER_MS);
		break;
	case 4:
		if (chance(s, 10))
			pass_time(s, 20000 * NS_PER_MS);
		break;
	case 5:
		fail_a_server(s);
		break;
	case 6:
		if (chance(s, 40))
			toggle_stranger(s);
		s->frontends[rand_below(&s->rand, N_LISTENERS)].in_use =
			(uint32_t)rand_u64(&s->rand);
		if (chance(s, 30))
			toggle_sub(s, &s->frontends[rand_below(&s->rand, N_LISTENERS)]);
		if (chance(s, 2))
			restart_frontend(s, (int)rand_below(&s->rand, N_LISTENERS));
		break;
	case 7:
	case 8:
		name_server_at_random(s);
		break;
	default:
		server_respond_at_random(net_pick(&s->net, &s->rand));
		break;
	}
	turn(s);
	for (int i = 0; i < N_LISTENERS; i++) {
		const struct frontend *f = &s->frontends[i];
		if (f->config)
			check_config(f->config, i == 1, f->held);
	}
}

// Convergence

struct truth {
	struct world world;
	bool known[2]; // by authority
	bool delta;
};

// What is watched is as its server has it. No trouble outlives its cause, but for a refusal that an
// incremental server does not know to be over: it hears that its version is held (DL-02).
static void check_entry(void *ctx, const struct xds_entry_info *e)
{
	const struct truth *t = ctx;
	unsigned type = 0;
	size_t len;
	while (res_types[type] != e->type)
		type++;
	int i = world_find(type, e->name);
	if (!t->known[world_authority(&t->world.shape, i)])
		return;
	uint8_t *bytes = world_bytes(&t->world, type, i, false, &len);
	CHECK(e->res && e->res->len == len && memcmp(e->res->bytes, bytes, len) == 0);
	CHECK(e->status == XDS_STATUS_ACKED || (t->delta && e->status == XDS_STATUS_NACKED));
	CHECK(!*e->error == (e->status == XDS_STATUS_ACKED));
	free(bytes);
}

static void stay_calm(struct sim *s, unsigned n_rounds)
{
	take_in_at_once(s, fake_ads_slice().most);
	for (unsigned round = 0; round < n_rounds; round++) {
		pass_time(s, 5000 * NS_PER_MS); // past any backoff of a few failures
		for (int i = 0; i < N_SERVERS; i++)
			server_say_all(&s->net.servers[i]);
		for (int h = 0; h < N_HOSTS; h++)
			answer_name(s, h);
	}
	pass_time(s, NS_PER_MS);
	for (int i = 0; i < N_SERVERS; i++)
		server_check_answered(&s->net.servers[i]);
	take_in_at_once(s, false);
}

static void check_truth(struct sim *s)
{
	struct truth t = {.delta = s->delta};
	net_truth(&s->net, &t.world, t.known);
	xds_federation_each(s->client, check_entry, &t);
	for (int l = 0; l < N_LISTENERS && t.known[0] && t.known[1]; l++)
		check_converged(&t.world, l, l == 1, s->frontends[l].config, &s->converged);
}

// The first server is down: whether the second one is asked depends on what is needed (FB-01).
static void calm_without_the_first(struct sim *s)
{
	struct xds_server_info info;
	net_calm(&s->net, &s->net.servers[0]);
	stay_calm(s, CALM_ROUNDS);
	xds_federation_server(s->client, &info);
	if (strcmp(info.uri, "s1") != 0)
		return;
	s->n_fallen++;
	check_truth(s);
}

static void converge(struct sim *s)
{
	s->name_servers.instant = NULL;
	s->name_servers.starve = false;
	for (int l = 0; l < N_LISTENERS; l++) {
		s->frontends[l].in_use = 0;
		unsubscribe(&s->frontends[l]);
	}
	if (s->net.has_fallback)
		calm_without_the_first(s);
	net_calm(&s->net, NULL);
	stay_calm(s, CALM_ROUNDS);
	check_truth(s);
	for (int l = 0; l < N_LISTENERS; l++)
		s->frontends[l].held = 0;
}

static void sim_init(struct sim *s, uint64_t seed, bool delta)
{
	*s = (struct sim){.now_ns = 1000000 * NS_PER_MS, .delta = delta};
	for (int i = 0; i < N_STRANGERS; i++)
		s->strangers[i].on_event = stranger_event;
	rand_init(&s->rand, seed);
	net_init(&s->net, &s->rand, seed);
	fake_lookups_init(&s->name_servers);
	s->wheel = twheel_new(s->now_ns);
	s->client = xds_federation_new(&(struct xds_client_conf){
		.bootstrap = s->net.bootstrap,
		.protocol = delta ? &xds_protocol_delta : &xds_protocol_sotw,
		.types = res_types,
		.n_types = RES_N_TYPES,
		.transport = net_transport(&s->net),
		.wheel = s->wheel,
		.rand = &s->rand,
		.user_agent_version = "0",
		.slice = fake_ads_slice(),
	});
	s->resolver = dns_names_new(&(struct dns_names_conf){
		.wheel = s->wheel, .rand = &s->rand, .lookups = &s->name_servers.base});
	CHECK(s->wheel && s->client && s->resolver);
	for (int i = 0; i < N_LISTENERS; i++)
		restart_frontend(s, i);
}

static void sim_fini(struct sim *s)
{
	for (int i = 0; i < N_LISTENERS; i++) {
		unsubscribe(&s->frontends[i]);
		depmgr_free(s->frontends[i].dm);
		xds_config_put(s->frontends[i].config);
	}
	for (int i = 0; i < N_STRANGERS; i++)
		xds_federation_cancel(s->client, &s->strangers[i]);
	s->resolver->ops->free(s->resolver);
	fake_lookups_fini(&s->name_servers);
	xds_federation_free(s->client);
	net_fini(&s->net);
	twheel_free(s->wheel);
}

static void print_run(const struct sim *s)
{
	unsigned responses = 0, acks = 0, nacks = 0, taken_back = 0, held = 0;
	unsigned updates = s->frontends[0].n_updates + s->frontends[1].n_updates;
	unsigned meanwhile = s->frontends[0].n_meanwhile + s->frontends[1].n_meanwhile;
	for (int i = 0; i < N_SERVERS; i++) {
		const struct server *server = &s->net.servers[i];
		responses += server->n_responses;
		acks += server->n_acks;
		nacks += server->n_nacks;
		taken_back += server->n_taken_back;
		held += server->n_held;
	}
	printf("%u responses, %u ACKs, %u NACKs (%u with names twice), %u losses, %u outages, %u "
	       "fallen, %u held, %u answers, %u updates (%u meanwhile); aggregates: %u flat, %u "
	       "empty, %u too deep\n",
		responses, acks, nacks, taken_back, s->n_losses, s->n_outages, s->n_fallen, held,
		s->n_answers, updates, meanwhile, s->converged.n_flat, s->converged.n_empty,
		s->converged.n_too_deep);
	CHECK(acks && nacks && updates);
	CHECK(!s->delta == !held);
}

static void run(uint64_t seed, unsigned steps, bool delta)
{
	static struct sim s;
	printf("seed %llu, %s: ", (unsigned long long)seed, delta ? "delta" : "sotw");
	fflush(stdout);
	sim_init(&s, seed, delta);
	for (unsigned i = 0; i < steps; i++) {
		step(&s);
		if (i % 500 == 499)
			converge(&s);
	}
	converge(&s);
	print_run(&s);
	sim_fini(&s);
}

int main(int argc, char **argv)
{
	unsigned steps = argc > 2 ? (unsigned)atoi(argv[2]) : DEFAULT_STEPS;
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	uint64_t n = argc > 3 ? strtoull(argv[3], NULL, 10) : argc > 1 ? 1 : DEFAULT_SEEDS;
	variants_init();
	for (uint64_t seed = first; seed < first + n; seed++) {
		run(seed, steps, false);
		run(seed, steps, true);
	}
	variants_fini();
	return 0;
}
