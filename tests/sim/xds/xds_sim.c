// SPDX-License-Identifier: Apache-2.0
// Two frontends (one pinned to an authority) over one client against a server that answers at
// random: good, bad, partial, doubled and foreign resources, garbage, silence, lost streams; and
// over one resolver against name servers that answer, fail, stall and change their mind. Whatever
// happens, each response is answered once, each delivered configuration is whole, and when the
// servers calm down the frontends have what they say.
// usage: xds_sim [SEED [STEPS]]
#include "ctrl/deps/depmgr.h"
#include "ctrl/dns/names.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/res/types.h"
#include "ctrl/xds/bootstrap.h"
#include "ctrl/xds/client.h"
#include "lb/base/check.h"
#include "lb/base/rand.h"
#include "lb/base/twheel.h"
#include "tests/sim/xds/converged.h"
#include "tests/sim/xds/invariants.h"
#include "tests/sim/xds/world.h"
#include "tests/support/fake_ads.h"
#include "tests/support/fake_lookups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS 1000000ull
#define MAX_ENTRIES 48
#define DEFAULT_SEEDS 12
#define DEFAULT_STEPS 2000

typedef Envoy__Service__Discovery__V3__DiscoveryRequest Request;

// What the server knows of one type on the open stream.
struct server_type {
	uint32_t asked; // names of the last request, as bits
	bool requested;
	char nonce[16]; // of the last response; "" = none
	bool bad; // the last response must be NACKed
	bool answered;
	char accepted[16]; // version of the last ACKed response, of any stream
	char version[16]; // of the last response
};

struct frontend {
	struct depmgr *dm;
	int number;
	struct xds_config *config; // borrowed; NULL = none, or an error came after it
	uint32_t in_use; // clusters, by number, that requests hold
	uint32_t held; // that were held since the servers last calmed down
	unsigned n_updates, n_errors;
};

struct sim {
	struct rand rand;
	struct world world;
	struct fake_ads server;
	struct server_type types[RES_N_TYPES];
	unsigned stream; // whose state `types` is
	bool node_due; // on this stream
	unsigned n_said, n_responses, n_acks, n_nacks, n_losses;
	bool drops; // fail_on_data_errors
	struct xds_bootstrap *bootstrap;
	struct twheel *wheel;
	uint64_t now_ns;
	struct xds_client *client;
	struct fake_lookups name_servers;
	struct dns_resolver *resolver;
	unsigned n_answers; // of name servers
	struct converged_seen converged;
	struct frontend frontends[N_LISTENERS];
	struct xds_watcher stranger; // watches clusters at random
};

static bool chance(struct sim *s, unsigned percent)
{
	return rand_below(&s->rand, 100) < percent;
}

static void on_update(void *ctx, struct xds_config *config)
{
	struct frontend *f = ctx;
	check_config(config, f->number == 1, f->held);
	f->config = config;
	f->n_updates++;
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
	f->config = NULL;
	f->n_errors++;
}

static void stranger_event(struct xds_watcher *w, const struct xds_event *e)
{
	CHECK(w->entry || e->kind == XDS_EVENT_ERROR);
}

// The server

static void new_stream_state(struct sim *s)
{
	for (unsigned t = 0; t < RES_N_TYPES; t++) {
		struct server_type *st = &s->types[t];
		if (!st->answered && !st->bad) // accepted, and the ACK was lost with the stream
			strcpy(st->accepted, st->version);
		st->asked = 0;
		st->requested = st->bad = false;
		st->answered = true;
		st->nonce[0] = '\0';
	}
	s->stream = s->server.n_streams;
	s->node_due = true;
}

// PC-06, SW-02, SW-03: the first request with a nonce is the answer; later ones are no NACK.
static void check_answer(struct sim *s, struct server_type *st, const Request *r)
{
	CHECK(strcmp(r->response_nonce, st->nonce) == 0);
	if (st->answered) {
		CHECK(!r->error_detail);
	} else {
		st->answered = true;
		CHECK(!r->error_detail == !st->bad);
		if (r->error_detail) {
			CHECK(r->error_detail->code == 3 && *r->error_detail->message);
			s->n_nacks++;
		} else {
			strcpy(st->accepted, st->version);
			s->n_acks++;
		}
	}
	CHECK(strcmp(r->version_info, st->accepted) == 0); // SW-07
}

static void read_request(struct sim *s, const Request *r)
{
	unsigned t = 0;
	while (strcmp(res_types[t]->url, r->type_url) != 0)
		t++;
	struct server_type *st = &s->types[t];
	CHECK(!r->node == !s->node_due); // PC-03
	s->node_due = false;
	CHECK(st->requested || r->n_resource_names); // SW-09
	check_answer(s, st, r);
	st->requested = true;
	st->asked = 0;
	for (size_t i = 0; i < r->n_resource_names; i++) {
		int n = world_find(t, r->resource_names[i]);
		CHECK(n >= 0 && n < world_count(t));
		CHECK(!(st->asked >> n & 1)); // no name twice
		st->asked |= 1u << n;
	}
}

// Reads what has arrived; with `settle` until the client has nothing more to send.
static void read_requests(struct sim *s, bool settle)
{
	if (s->stream != s->server.n_streams)
		new_stream_state(s);
	if (settle)
		fake_ads_settle(&s->server);
	for (const ProtobufCMessage *m; (m = fake_ads_arrived(&s->server));)
		read_request(s, (const Request *)m);
	fake_ads_forget(&s->server);
}

struct answer {
	struct fake_resource list[MAX_ENTRIES];
	size_t n;
	bool bad;
};

static void add(struct sim *s, struct answer *a, unsigned type, int i, bool bad, bool wrap)
{
	static char names[MAX_ENTRIES][16];
	if (a->n == MAX_ENTRIES)
		return;
	struct fake_resource *r = &a->list[a->n];
	world_name(type, i, names[a->n]);
	*r = (struct fake_resource){.wrapper_name = wrap ? names[a->n] : NULL};
	r->bytes = world_bytes(&s->world, type, i, bad, &r->len);
	a->bad = a->bad || bad;
	a->n++;
}

// wild: with omissions, bad ones, doubles and strangers.
static void respond(struct sim *s, unsigned type, bool wild)
{
	struct server_type *st = &s->types[type];
	struct answer a = {.n = 0};
	for (int i = 0; i < world_count(type); i++) {
		bool asked = st->asked >> i & 1;
		if (s->world.gone[type][i] || (!asked && !(wild && chance(s, 5))))
			continue;
		if (wild && chance(s, 10))
			continue;
		add(s, &a, type, i, wild && chance(s, 10), wild && chance(s, 30));
		if (wild && chance(s, 3)) {
			add(s, &a, type, i, false, false);
			a.bad = true; // PC-07
		}
	}
	if (wild && chance(s, 3) && a.n < MAX_ENTRIES) {
		a.list[a.n++] = (struct fake_resource){.bytes = (uint8_t *)calloc(1, 3), .len = 3};
		a.bad = true;
	}
	snprintf(st->nonce, sizeof(st->nonce), "n%u", ++s->n_said);
	snprintf(st->version, sizeof(st->version), "v%u", s->n_said);
	st->bad = a.bad;
	st->answered = false;
	s->n_responses++;
	fake_ads_respond(&s->server, res_types[type]->url, st->version, st->nonce, a.list, a.n);
	for (size_t i = 0; i < a.n; i++)
		free((void *)(uintptr_t)a.list[i].bytes);
}

static void respond_at_random(struct sim *s, bool wild)
{
	unsigned type = (unsigned)rand_below(&s->rand, RES_N_TYPES);
	read_requests(s, false);
	if (!s->server.stream || !s->server.reading)
		return;
	if (wild && chance(s, 3)) {
		fake_ads_say(&s->server, (const uint8_t *)"\x0a\xff", 2); // PC-05
	} else if (wild && chance(s, 3)) {
		fake_ads_respond(&s->server, "type.googleapis.com/x.Y", "1", "1", NULL, 0); // PC-04
	} else if (s->types[type].requested) {
		respond(s, type, wild);
	}
}

// Name servers

static void answer_name(struct sim *s, int host)
{
	char name[16], list[128];
	world_host(host, name);
	world_addresses(&s->world, host, list);
	if (!fake_lookups_asks(&s->name_servers, name))
		return;
	s->n_answers++;
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

static void toggle_stranger(struct sim *s)
{
	char name[16];
	if (s->stranger.entry) {
		xds_client_cancel(s->client, &s->stranger);
		return;
	}
	world_name(0, (int)rand_below(&s->rand, N_CLUSTERS), name);
	CHECK(xds_client_watch(s->client, &res_type_cluster, name, &s->stranger) == 0);
}

static void restart_frontend(struct sim *s, int n)
{
	struct frontend *f = &s->frontends[n];
	char name[16];
	depmgr_free(f->dm);
	world_name(2, n, name);
	*f = (struct frontend){.number = n};
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

static void step(struct sim *s)
{
	switch (rand_below(&s->rand, 14)) {
	case 0:
		world_change(&s->world, &s->rand);
		break;
	case 1:
	case 2:
		read_requests(s, true);
		break;
	case 3:
		pass_time(s, rand_below(&s->rand, 3000) * NS_PER_MS);
		break;
	case 4:
		if (chance(s, 10))
			pass_time(s, 20000 * NS_PER_MS);
		break;
	case 5:
		if (s->server.stream && chance(s, 20)) {
			read_requests(s, false);
			fake_ads_close(&s->server, chance(s, 50) ? "reset" : "refused");
			s->n_losses++;
		}
		break;
	case 6:
		if (chance(s, 20))
			toggle_stranger(s);
		s->frontends[rand_below(&s->rand, N_LISTENERS)].in_use =
			(uint32_t)rand_u64(&s->rand);
		if (chance(s, 2))
			restart_frontend(s, (int)rand_below(&s->rand, N_LISTENERS));
		break;
	case 7:
	case 8:
		name_server_at_random(s);
		break;
	default:
		respond_at_random(s, true);
		break;
	}
	for (int i = 0; i < N_LISTENERS; i++) {
		const struct frontend *f = &s->frontends[i];
		if (f->config)
			check_config(f->config, i == 1, f->held);
	}
}

// Convergence

static void converge(struct sim *s)
{
	world_heal(&s->world);
	s->name_servers.instant = NULL;
	s->name_servers.starve = false;
	for (int l = 0; l < N_LISTENERS; l++)
		s->frontends[l].in_use = 0;
	for (int round = 0; round < 80; round++) {
		pass_time(s, 5000 * NS_PER_MS); // past any backoff of a few failures
		for (unsigned t = 0; t < RES_N_TYPES; t++) {
			read_requests(s, true);
			if (s->server.stream && s->server.reading && s->types[t].requested)
				respond(s, t, false);
		}
		read_requests(s, true);
		for (int h = 0; h < N_HOSTS; h++)
			answer_name(s, h);
	}
	pass_time(s, NS_PER_MS);
	for (unsigned t = 0; t < RES_N_TYPES; t++)
		CHECK(s->types[t].answered);
	for (int l = 0; l < N_LISTENERS; l++)
		check_converged(&s->world, l, l == 1, s->frontends[l].config, &s->converged);
	for (int l = 0; l < N_LISTENERS; l++)
		s->frontends[l].held = 0;
}

static void sim_init(struct sim *s, uint64_t seed)
{
	*s = (struct sim){.now_ns = 1000000 * NS_PER_MS, .stranger.on_event = stranger_event};
	rand_init(&s->rand, seed);
	s->drops = seed % 3 == 0;
	world_init(&s->world, &s->rand, seed % 4 == 1);
	fake_lookups_init(&s->name_servers);
	char json[256];
	struct lb_err err;
	int len = snprintf(json, sizeof(json),
		"{\"xds_servers\":[{\"server_uri\":\"s\",\"channel_creds\":[{\"type\":"
		"\"insecure\"}]%s}],\"node\":{\"id\":\"sim\"}}",
		s->drops ? ",\"server_features\":[\"fail_on_data_errors\"]" : "");
	CHECK(xds_bootstrap_parse(json, (size_t)len, "sim", &s->bootstrap, &err) == 0);
	s->wheel = twheel_new(s->now_ns);
	s->client = xds_client_new(&(struct xds_client_conf){
		.bootstrap = s->bootstrap,
		.types = res_types,
		.n_types = RES_N_TYPES,
		.transport = fake_ads_factory(&s->server),
		.wheel = s->wheel,
		.rand = &s->rand,
		.user_agent_version = "0",
	});
	s->resolver = dns_names_new(&(struct dns_names_conf){
		.wheel = s->wheel, .rand = &s->rand, .lookups = &s->name_servers.base});
	CHECK(s->wheel && s->client && s->resolver);
	for (int i = 0; i < N_LISTENERS; i++)
		restart_frontend(s, i);
}

static void sim_fini(struct sim *s)
{
	for (int i = 0; i < N_LISTENERS; i++)
		depmgr_free(s->frontends[i].dm);
	xds_client_cancel(s->client, &s->stranger);
	s->resolver->ops->free(s->resolver);
	fake_lookups_fini(&s->name_servers);
	xds_client_free(s->client);
	fake_ads_fini(&s->server);
	twheel_free(s->wheel);
	xds_bootstrap_free(s->bootstrap);
}

static void run(uint64_t seed, unsigned steps)
{
	static struct sim s;
	printf("seed %llu: ", (unsigned long long)seed);
	fflush(stdout);
	sim_init(&s, seed);
	for (unsigned i = 0; i < steps; i++) {
		step(&s);
		if (i % 500 == 499)
			converge(&s);
	}
	converge(&s);
	unsigned updates = s.frontends[0].n_updates + s.frontends[1].n_updates;
	printf("%u responses, %u ACKs, %u NACKs, %u losses, %u answers, %u updates; "
	       "aggregates: %u flat, %u empty, %u too deep\n",
		s.n_responses, s.n_acks, s.n_nacks, s.n_losses, s.n_answers, updates,
		s.converged.n_flat, s.converged.n_empty, s.converged.n_too_deep);
	CHECK(s.n_acks && s.n_nacks && updates);
	sim_fini(&s);
}

int main(int argc, char **argv)
{
	unsigned steps = argc > 2 ? (unsigned)atoi(argv[2]) : DEFAULT_STEPS;
	if (argc > 1)
		run(strtoull(argv[1], NULL, 10), steps);
	else
		for (uint64_t seed = 1; seed <= DEFAULT_SEEDS; seed++)
			run(seed, steps);
	return 0;
}
