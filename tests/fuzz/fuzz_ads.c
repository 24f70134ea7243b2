// SPDX-License-Identifier: Apache-2.0
// Any bytes as messages of an xDS server, state of the world and incremental, with lost streams and
// time in between, all the way into snapshots: the client answers each response once and never
// breaks the transport's contract (fake_ads.c CHECKs it), the dependency manager delivers what is
// complete, the assembler publishes it, and requests made of the routes' own domains and paths pick
// from each snapshot as a worker would. Input: records of an operation byte, two length bytes and
// that many bytes.
#include "ctrl/assemble/assemble.h"
#include "ctrl/conf/config.h"
#include "ctrl/deps/config.h"
#include "ctrl/deps/depmgr.h"
#include "ctrl/res/route.h"
#include "ctrl/res/types.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/federation.h"
#include "lb/base/check.h"
#include "lb/base/log.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/cluster.h"
#include "lb/pick/picker.h"
#include "lb/route/req.h"
#include "lb/route/route.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/fake_ads.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ASKED 200 // requests, of one snapshot
#define MAX_TEXT 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Made once: large, and written by workers alone, whose part is played here without counting.
static struct lb_shared *shared;
static struct lb_link *link;
static struct lb_route_scratch *scratch;
static char pick_scratch[64 << 10];
static uint32_t *positions;

struct world {
	struct twheel *wheel;
	struct rand rand;
	struct fake_ads server;
	struct lb_slot *slot;
	struct workers *workers;
	struct assembler *assembler;
	struct depmgr *depmgr;
	struct config_frontend frontend;
	struct config config;
	uint64_t ready[LB_MAX_ENDPOINTS / 64]; // connected endpoints
	uint64_t asked_version; // of the snapshot that was asked last
	uint32_t n_asked;
};

static bool has_regex(const struct res_route *r)
{
	bool has = r->path_kind == LB_PATH_REGEX;
	for (uint32_t i = 0; i < r->n_headers; i++)
		has = has || r->headers[i].kind == LB_HEADER_REGEX;
	return has;
}

// Patterns are compiled by another thread, in its own time; fuzz_rds.c has them.
static bool is_simple(const struct res_route_config *c)
{
	for (uint32_t v = 0; v < c->n_vhosts; v++)
		for (uint32_t i = 0; i < c->vhosts[v].n_routes; i++)
			if (has_regex(&c->vhosts[v].routes[i]))
				return false;
	return true;
}

static void on_update(void *ctx, struct xds_config *config)
{
	struct world *w = ctx;
	CHECK(config->listener && config->routes);
	if (is_simple(config->routes))
		assembler_update(w->assembler, 0, config);
}

static void on_error(void *ctx, const char *text)
{
	struct world *w = ctx;
	CHECK(*text);
	assembler_fail(w->assembler, 0, text);
}

static bool in_use(void *ctx, const char *cluster)
{
	struct world *w = ctx;
	return assembler_in_use(w->assembler, 0, cluster);
}

static void on_event(void *ctx, uint32_t worker, const struct lb_event *event)
{
	struct world *w = ctx;
	assembler_event(w->assembler, worker, event);
}

// The worker's health checks: likewise.
static void answer_probe(const struct lb_command *c)
{
	bool is_end = c->kind == LB_COMMAND_PROBE_END, passes = c->probe->addr.port % 2 == 0;
	struct lb_event e = {.kind = is_end ? LB_EVENT_PROBE_ENDED : LB_EVENT_PROBED,
		.probe = c->probe->id,
		.probed = {.result = passes ? LB_PROBE_PASSED : LB_PROBE_NETWORK, .why = "no"}};
	CHECK(spsc_write(&link->events, &e));
}

// The worker: endpoints of even ports connect, the others fail.
static void carry_out(struct world *w, const struct lb_command *c)
{
	if (c->kind == LB_COMMAND_PROBE || c->kind == LB_COMMAND_PROBE_END) {
		answer_probe(c);
		return;
	}
	uint32_t id = c->endpoint->id;
	struct lb_event e = {.endpoint_id = id, .why = "refused"};
	CHECK(id < LB_MAX_ENDPOINTS);
	w->ready[id / 64] &= ~(UINT64_C(1) << id % 64);
	if (c->kind == LB_COMMAND_CONNECT && c->endpoint->addr.port % 2 == 0) {
		e.kind = LB_EVENT_CONNECTED;
		w->ready[id / 64] |= UINT64_C(1) << id % 64;
	} else {
		e.kind = c->kind == LB_COMMAND_CONNECT ? LB_EVENT_FAILED : LB_EVENT_RELEASED;
	}
	CHECK(spsc_write(&link->events, &e));
}

static void check_pick(struct world *w, const struct lb_cluster *c, const struct lb_req *req,
	const struct lb_route_policy *policy)
{
	struct lb_pick_hash hash = {0};
	struct lb_pick_ctx ctx = {.req = req,
		.rand = &w->rand,
		.ready = w->ready,
		.hash = &hash,
		.recipe = {.policies = policy->hash, .n = policy->n_hash},
		.scratch = pick_scratch,
		.scratch_size = sizeof(pick_scratch),
		.positions = positions,
		.active = shared->active};
	struct lb_pick p = lb_pick(c->picker, &ctx);
	CHECK(p.kind != LB_PICK_FAIL || *p.text);
	if (p.kind != LB_PICK_ENDPOINT)
		return;
	uint32_t id = p.cell->endpoint_id;
	CHECK(w->ready[id / 64] >> id % 64 & 1 && p.cell->endpoint->id == id);
	CHECK(p.cell->endpoint->is_used && p.cell->member < LB_MAX_MEMBERS);
}

static void ask(struct world *w, const struct lb_snapshot *s, const char *domain, const char *path)
{
	char authority[MAX_TEXT];
	size_t n = strlen(domain);
	if (n >= sizeof(authority))
		return;
	for (size_t i = 0; i <= n; i++)
		authority[i] = domain[i] == '*' ? 'a' : domain[i];
	struct lb_req req = {.authority = str_from(authority),
		.path = str_from(path),
		.method = STR("GET"),
		.scheme = STR("http"),
		.is_grpc = w->n_asked & 1};
	struct lb_route_ctx ctx = {.rand = &w->rand, .scratch = scratch};
	struct lb_route_result found =
		lb_route_find(lb_snapshot_frontend(s, 0)->routes, &req, &ctx);
	w->n_asked++;
	if (found.kind != LB_ROUTE_CLUSTER)
		return;
	const struct lb_cluster *c = lb_snapshot_cluster(s, found.cluster_id);
	CHECK(c && c->id == found.cluster_id && c->picker);
	check_pick(w, c, &req, found.policy);
}

// Each new snapshot, and the same one again now and then: connections come and go.
static void ask_all(struct world *w)
{
	const struct lb_snapshot *s = lb_slot_current(w->slot);
	const struct lb_frontend *f = lb_snapshot_frontend(s, 0);
	struct assembler_routes routes;
	CHECK(!!f->routes == !*f->error && s->version >= w->asked_version);
	if (!f->routes || !assembler_frontend_routes(w->assembler, 0, &routes))
		return;
	w->asked_version = s->version;
	w->n_asked = 0;
	const struct res_route_config *c = routes.config->routes;
	for (uint32_t v = 0; v < c->n_vhosts; v++)
		for (uint32_t i = 0; i < c->vhosts[v].n_routes && w->n_asked < MAX_ASKED; i++)
			ask(w, s, c->vhosts[v].domains[0], c->vhosts[v].routes[i].path);
}

static void turn(struct world *w, uint64_t now_ns)
{
	struct lb_command c;
	twheel_advance(w->wheel, now_ns);
	while (spsc_read(&link->commands, &c))
		carry_out(w, &c);
	workers_poll(w->workers);
	assembler_tick(w->assembler);
	ask_all(w);
}

static void play(struct world *w, const uint8_t *data, size_t size)
{
	struct fake_ads *server = &w->server;
	uint64_t now_ns = twheel_now(w->wheel);
	while (size >= 3) {
		size_t len = (size_t)(data[1] | data[2] << 8);
		uint8_t op = data[0];
		data += 3;
		size -= 3;
		if (len > size)
			len = size;
		fake_ads_settle(server);
		server->n_read = server->n_sent;
		fake_ads_forget(server);
		if (op < 8)
			now_ns += (uint64_t)(op + 1) * 700 * NS_PER_MS;
		else if (op < 16 && server->stream)
			fake_ads_close(server, "bye");
		else if (server->stream && server->reading)
			fake_ads_say(server, data, len);
		turn(w, now_ns);
		data += len;
		size -= len;
	}
}

static void make_assembler(struct world *w)
{
	w->frontend = (struct config_frontend){.name = "web", .target = "web"};
	w->config = (struct config){.frontends = &w->frontend, .n_frontends = 1};
	w->slot = lb_slot_new(lb_snapshot_new(1, "nothing yet"));
	w->workers = workers_new(&link, 1, on_event, w);
	struct assembler_conf conf = {.config = &w->config,
		.slot = w->slot,
		.workers = w->workers,
		.wheel = w->wheel,
		.seed = 1};
	w->assembler = assembler_new(&conf);
	CHECK(w->slot && w->workers && w->assembler);
}

static void free_assembler(struct world *w)
{
	struct lb_command c;
	lb_slot_free(w->slot);
	assembler_free(w->assembler);
	workers_free(w->workers);
	while (spsc_read(&link->commands, &c))
		;
}

static void play_with(const struct xds_protocol *protocol, const uint8_t *data, size_t size)
{
	static const char JSON[] = "{\"xds_servers\":[{\"server_uri\":\"s\",\"channel_creds\":"
				   "[{\"type\":\"insecure\"}]}],\"node\":{\"id\":\"fuzz\"}}";
	struct world *w = calloc(1, sizeof(*w));
	struct xds_bootstrap *bootstrap;
	struct lb_err err;
	CHECK(w);
	rand_init(&w->rand, 1);
	CHECK(xds_bootstrap_parse(JSON, sizeof(JSON) - 1, "fuzz", &bootstrap, &err) == 0);
	w->wheel = twheel_new(NS_PER_SECOND);
	struct xds_federation *client = xds_federation_new(&(struct xds_client_conf){
		.bootstrap = bootstrap,
		.protocol = protocol,
		.types = res_types,
		.n_types = RES_N_TYPES,
		.transport = fake_ads_factory(&w->server),
		.wheel = w->wheel,
		.rand = &w->rand,
		.user_agent_version = "0",
	});
	make_assembler(w);
	w->depmgr = depmgr_new(&(struct depmgr_conf){
		.client = client,
		.wheel = w->wheel,
		.listener_name = "web",
		.node_id = "fuzz",
		.on_update = on_update,
		.on_error = on_error,
		.in_use = in_use,
		.ctx = w,
	});
	play(w, data, size);
	depmgr_free(w->depmgr);
	free_assembler(w);
	xds_federation_free(client);
	fake_ads_fini(&w->server);
	twheel_free(w->wheel);
	xds_bootstrap_free(bootstrap);
	free(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!link) {
		log_set_level(LOG_LEVEL_ERROR);
		shared = lb_shared_new();
		link = lb_link_new(0, 0, shared);
		scratch = lb_route_scratch_new(0, sizeof(pick_scratch));
		positions = calloc(LB_MAX_SLOTS, sizeof(*positions));
		CHECK(shared && link && scratch && positions);
	}
	play_with(&xds_protocol_sotw, data, size);
	play_with(&xds_protocol_delta, data, size);
	return 0;
}
