// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/assemble.h"

#include "ctrl/assemble/assemble_inside.h"
#include "ctrl/assemble/cluster_set.h"
#include "ctrl/assemble/cluster_tree.h"
#include "ctrl/assemble/frontend_clusters.h"
#include "ctrl/assemble/frontend_next.h"
#include "ctrl/assemble/load_report.h"
#include "ctrl/assemble/members.h"
#include "ctrl/assemble/outages.h"
#include "ctrl/assemble/regex_cache.h"
#include "ctrl/assemble/route_compile.h"
#include "ctrl/assemble/vhost_numbers.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/conf/config.h"
#include "lb/base/grow.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/cluster.h"
#include "lb/member/connectivity.h"
#include "lb/member/probes.h"
#include "lb/own_ranges.h"
#include "lb/pick/breaker.h"
#include "lb/pick/limits.h"
#include "lb/pick/link.h"
#include "lb/pick/orca.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "lb/vips.h"

#include <stdlib.h>
#include <string.h>

#define ATTEMPT_DELAY_NS (250 * NS_PER_MS) // PF-02
// Of all workers together: as many SYNs as one transmit queue of a device takes.
#define MAX_YOUNG_ATTEMPTS 1024
#define MAX_WAITING_ATTEMPTS 2048 // with all that each takes; others are put off
#define EXPEDITE_NS (20 * NS_PER_MS)
#define MAX_LOOKED_AT 16384 // endpoints a time: about a millisecond
#define SWEEP_NS (10 * NS_PER_SECOND) // unused patterns are forgotten
#define COMPILED_NS (100 * NS_PER_MS)
#define LEAVES_REST_NS (10 * NS_PER_SECOND)
#define LOOK_NS (100 * NS_PER_MS) // a long stream may hold a cluster that left for days

enum transition { TRANSITION_NONE, TRANSITION_UP, TRANSITION_DOWN };

static void on_cluster_change(void *ctx, struct lb_cluster *cluster)
{
	struct assembler *a = ctx;
	draft_set_cluster(&a->draft, cluster->id, cluster);
	outages_note(a->outages, cluster);
}

// False = out of memory.
static bool park(struct assembler *a, uint32_t endpoint)
{
	if (!grow(&a->parked, a->n_parked, &a->parked_room, sizeof(a->parked[0])))
		return false;
	a->parked[a->n_parked++] = endpoint;
	return true;
}

static void on_connect(void *ctx, struct lb_endpoint *endpoint)
{
	struct assembler *a = ctx;
	uint32_t n = workers_count(a->conf.workers);
	if (assembler_awaits_context(a, lb_endpoint_credential(endpoint)) && park(a, endpoint->id))
		return;
	struct lb_command c = {.kind = LB_COMMAND_CONNECT, .endpoint = endpoint};
	workers_send(a->conf.workers, lb_endpoint_anchor(endpoint->id, n), &c);
}

// After a snapshot was published.
static void unpark(struct assembler *a)
{
	uint32_t n = a->n_parked;
	a->n_parked = 0;
	for (uint32_t i = 0; i < n; i++) { // what must wait on moves up
		struct lb_endpoint *e =
			lb_endpoint_find(lb_connectivity_endpoints(a->connectivity), a->parked[i]);
		if (e && e->n_refs)
			on_connect(a, e);
	}
}

static void on_release(void *ctx, struct lb_endpoint *endpoint)
{
	struct assembler *a = ctx;
	struct lb_command c = {.kind = LB_COMMAND_RELEASE, .endpoint = endpoint};
	workers_send_all(a->conf.workers, &c);
}

static void on_reresolve(void *ctx)
{
	struct assembler *a = ctx;
	if (a->conf.reresolve)
		a->conf.reresolve(a->conf.ctx);
}

// What the clusters' trees have in common. False = out of memory.
static bool make_tree_env(struct assembler *a)
{
	uint32_t n_workers = workers_count(a->conf.workers);
	struct lb_connectivity_env env = {
		.wheel = a->conf.wheel,
		.rand = &a->rand,
		.n_workers = n_workers,
		.max_young_attempts = MAX_YOUNG_ATTEMPTS,
		// The other half stays for clients and what is connected.
		.max_attempts = (n_workers * a->conf.max_connections + 1) / 2,
		.max_waiting = MAX_WAITING_ATTEMPTS,
		.connect = on_connect,
		.release = on_release,
		.ctx = a,
		.timers = workers_link(a->conf.workers, 0)->shared->timers,
		.on_state = lb_member_on_state,
	};
	const struct config_sessions *sessions = a->conf.config->sessions;
	a->connectivity = lb_connectivity_new(&env);
	a->probes = assembler_make_probes(a);
	a->orca = lb_orca_table_new();
	a->breakers = lb_breakers_new();
	a->members = a->orca ? members_new(a->conf.workers, a->orca, a->conf.wheel) : NULL;
	a->tree_env = (struct cluster_tree_env){
		.wheel = a->conf.wheel,
		.rand = &a->rand,
		.member_env = {a->connectivity, ATTEMPT_DELAY_NS},
		.members = a->members,
		.leaf_ids = &a->leaf_ids,
		.breakers = a->breakers,
		.orca = a->orca,
		.probes = a->probes,
		.member_loads = workers_link(a->conf.workers, 0)->shared->loads,
		.loads = a->conf.loads,
		.overrides = overrides_new(),
		.credentials = a->conf.credentials,
		.aggregate_policy = a->conf.aggregate_policy,
		.sessions_use_ejected = sessions && sessions->use_ejected,
		.subset_seed = a->conf.subset_seed,
		.on_change = on_cluster_change,
		.reresolve = on_reresolve,
		.ctx = a,
	};
	cluster_tree_env_init(&a->tree_env);
	return a->connectivity && a->probes && a->members && a->breakers && a->tree_env.overrides &&
	       ids_init(&a->leaf_ids, LB_MAX_LEAVES, LEAVES_REST_NS) == 0;
}

// Each starts somewhere (MC-10). False = out of memory.
static bool make_positions(struct assembler *a)
{
	a->positions = malloc(LB_MAX_SLOTS * sizeof(a->positions[0]));
	for (uint32_t i = 0; a->positions && i < LB_MAX_SLOTS; i++)
		a->positions[i] = (uint32_t)rand_u64(&a->rand);
	return a->positions;
}

struct assembler *assembler_new(const struct assembler_conf *conf)
{
	uint32_t n = config_n_places(conf->config);
	struct assembler *a = calloc(1, sizeof(*a) + n * sizeof(a->frontends[0]));
	if (!a)
		return NULL;
	a->conf = *conf;
	draft_init(&a->draft, conf->slot);
	rand_init(&a->rand, conf->seed);
	a->outages = outages_new();
	if (a->outages && make_tree_env(a) && make_positions(a))
		a->clusters = cluster_set_new(&a->tree_env, n);
	a->regexes = regex_cache_new(&(struct regex_cache_conf){0});
	const struct config_metrics *metrics = conf->config->metrics;
	bool counts_vhosts = metrics && metrics->virtual_hosts;
	if (counts_vhosts)
		a->numbers = vhost_numbers_new(conf->workers, conf->wheel);
	struct route_compiler_conf compiler = {
		.clusters = a->clusters,
		.regexes = a->regexes,
		.numbers = a->numbers,
		.n_workers = workers_count(conf->workers),
		.slice = conf->slice,
	};
	a->compiler = route_compiler_new(&compiler);
	a->frontend_env = (struct assembled_frontend_env){
		.config = conf->config,
		.workers = conf->workers,
		.wheel = conf->wheel,
		.draft = &a->draft,
		.compiler = a->compiler,
		.access_log = conf->access_log,
		.slice = conf->slice,
		.clusters = a->clusters,
		.trees = &a->tree_env,
		.all = a->frontends,
	};
	a->transitions = calloc(LB_MAX_ENDPOINTS, sizeof(*a->transitions));
	a->credentials = calloc((size_t)n + 1, sizeof(*a->credentials));
	bool ok = !counts_vhosts || a->numbers;
	ok = ok && a->clusters && a->regexes && a->compiler && a->transitions && a->credentials;
	for (uint32_t i = 0; i < n; i++)
		ok = assembled_frontend_init(&a->frontends[i], &a->frontend_env, i) && ok;
	if (ok && assembler_take_credentials(a))
		return a;
	assembler_free(a);
	return NULL;
}

void assembler_free(struct assembler *a)
{
	if (!a)
		return;
	for (uint32_t i = 0; i < config_n_places(a->conf.config); i++) {
		frontend_next_fini(&a->frontends[i]);
		assembled_frontend_fini(&a->frontends[i]);
	}
	route_compiler_free(a->compiler);
	vhost_numbers_free(a->numbers);
	regex_cache_free(a->regexes);
	cluster_set_free(a->clusters);
	outages_free(a->outages);
	draft_fini(&a->draft);
	members_free(a->members);
	lb_breakers_free(a->breakers);
	lb_orca_table_free(a->orca);
	lb_probes_free(a->probes);
	lb_connectivity_free(a->connectivity);
	ids_fini(&a->leaf_ids);
	assembler_give_credentials(a);
	overrides_free(a->tree_env.overrides);
	lb_vips_put(a->vips);
	lb_own_ranges_put(a->ranges);
	free(a->parked);
	free(a->positions);
	free(a->transitions);
	free(a);
}

// Each transition once, with its cause; how often an attempt fails is in `show clusters`. The loss
// of a connection is none until the attempt that follows at once has failed: some backends say
// goodbye after so many requests.
static void log_transition(struct assembler *a, const struct lb_event *event)
{
	bool up = event->kind == LB_EVENT_CONNECTED;
	const struct lb_endpoint *e =
		lb_endpoint_find(lb_connectivity_endpoints(a->connectivity), event->endpoint_id);
	if (!e)
		return;
	char text[IP_PORT_TEXT_MAX];
	ip_port_print(&e->addr, text);
	if (event->kind == LB_EVENT_LOST) {
		log_debug("endpoint lost its last connection", "endpoint=%s cause=%s", text,
			log_quote(event->why));
		return;
	}
	enum transition transition = up ? TRANSITION_UP : TRANSITION_DOWN;
	if (a->transitions[e->id] == transition)
		return;
	a->transitions[e->id] = transition;
	if (up)
		log_info("endpoint connected", "endpoint=%s", text);
	else
		log_warn("endpoint unreachable", "endpoint=%s event=%s cause=%s", text,
			event->kind == LB_EVENT_FAILED ? "failed" : "lost", log_quote(event->why));
}

static void on_connect_request(struct assembler *a, uint32_t member)
{
	struct cluster_tree *tree = members_owner(a->members, member);
	if (tree)
		cluster_tree_want(tree, member);
}

void assembler_event(struct assembler *a, uint32_t worker, const struct lb_event *event)
{
	switch (event->kind) {
	case LB_EVENT_CONNECT_REQUEST:
		on_connect_request(a, event->member);
		return;
	case LB_EVENT_ORCA:
		if (members_owner(a->members, event->member))
			lb_orca_report(
				a->orca, event->member, &event->orca, twheel_now(a->conf.wheel));
		return;
	case LB_EVENT_METRIC:
		if (a->conf.loads)
			load_report_event(a->conf.loads, event);
		return;
	case LB_EVENT_PROBED:
	case LB_EVENT_PROBE_ENDED:
		lb_probes_event(a->probes, event);
		return;
	case LB_EVENT_RELEASED:
		a->transitions[event->endpoint_id] = TRANSITION_NONE;
		break;
	case LB_EVENT_CONNECTED:
	case LB_EVENT_FAILED:
	case LB_EVENT_LOST:
	case LB_EVENT_SHORT_LIVED:
		log_transition(a, event);
		break;
	case LB_EVENT_DRAINED:
	case LB_EVENT_NEIGHBOR:
		break;
	}
	lb_connectivity_event(a->connectivity, worker, event);
}

static void redraft(struct assembler *a)
{
	draft_reset(&a->draft);
	assembler_draft_credentials(a);
	draft_set_vips(&a->draft, a->vips);
	draft_set_ranges(&a->draft, a->ranges);
	for (uint32_t i = 0; i < config_n_places(a->conf.config) && !a->draft.is_lost; i++)
		assembled_frontend_draft(&a->frontends[i]);
	for (uint32_t i = 0; i < cluster_set_count(a->clusters) && !a->draft.is_lost; i++) {
		struct cluster *c = cluster_set_at(a->clusters, i);
		draft_set_cluster(&a->draft, c->id, cluster_tree_object(c->tree));
	}
}

// A cluster can go when no snapshot that a worker may still read routes to it, and no request that
// chose it is alive: however many were published since, and are alive.
static void drop_left_clusters(struct assembler *a)
{
	uint64_t now = twheel_now(a->conf.wheel);
	uint64_t oldest = lb_slot_oldest(a->conf.slot)->version, left_by = 0;
	if (!a->frontend_env.left_by || oldest < a->frontend_env.left_by || now < a->look_ns)
		return;
	a->look_ns = now + LOOK_NS;
	for (uint32_t i = cluster_set_count(a->clusters); i-- > 0;) {
		struct cluster *c = cluster_set_at(a->clusters, i);
		if (c->n_users)
			continue;
		if (oldest < c->left_by || workers_cluster_active(a->conf.workers, c->id)) {
			if (!left_by || c->left_by < left_by)
				left_by = c->left_by;
			continue;
		}
		draft_set_cluster(&a->draft, c->id, NULL);
		if (a->draft.is_lost)
			return;
		outages_forget(a->outages, c->id);
		cluster_set_drop(a->clusters, c);
	}
	a->frontend_env.left_by = left_by;
}

// While attempts to connect wait, those of clusters whose requests wait go first: in turn, where
// there is no room for all of them.
static void expedite(struct assembler *a)
{
	uint64_t now = twheel_now(a->conf.wheel);
	if (!lb_connectivity_may_expedite(a->connectivity) || now < a->expedite_ns)
		return;
	a->expedite_ns = now + EXPEDITE_NS;
	uint32_t n = cluster_set_count(a->clusters), n_looked_at = 0;
	for (uint32_t i = 0; i < n && n_looked_at < MAX_LOOKED_AT; i++) {
		a->expedite_at = (a->expedite_at + 1) % n;
		const struct cluster *c = cluster_set_at(a->clusters, a->expedite_at);
		if (!workers_cluster_queued(a->conf.workers, c->id))
			continue;
		n_looked_at += cluster_tree_expedite(c->tree);
		if (!lb_connectivity_may_expedite(a->connectivity))
			return;
	}
}

// True = what waits for patterns may go on: all are there, or a while has passed since the last try
// (each one reads the whole configuration).
static bool patterns_came(struct assembler *a)
{
	uint64_t now = twheel_now(a->conf.wheel);
	if (now >= a->sweep_ns) {
		a->sweep_ns = now + SWEEP_NS;
		regex_cache_sweep(a->regexes);
	}
	a->patterns_came |= regex_cache_poll(a->regexes);
	if (!a->patterns_came || (regex_cache_count(a->regexes).n_pending && now < a->compiled_ns))
		return false;
	a->patterns_came = false;
	a->compiled_ns = now + COMPILED_NS;
	regex_cache_forget_unasked(a->regexes); // who waits asks for all of his each time
	return true;
}

static void retry(struct assembler *a)
{
	bool came = patterns_came(a);
	if (!a->unsettled)
		return;
	a->unsettled = false;
	for (uint32_t i = 0; i < config_n_places(a->conf.config); i++) {
		struct assembled_frontend *f = &a->frontends[i];
		a->unsettled |= assembled_frontend_retry(f, came);
		if (f->next)
			a->unsettled |= assembled_frontend_retry(f->next, came);
	}
}

void assembler_tick(struct assembler *a)
{
	expedite(a);
	draft_reclaim(&a->draft);
	route_compiler_tidy(a->compiler);
	retry(a);
	drop_left_clusters(a);
	if (a->draft.is_lost)
		redraft(a);
	draft_publish(&a->draft, twheel_now(a->conf.wheel));
	outages_tell(a->outages, twheel_now(a->conf.wheel), assembler_why_failing, a);
	if (a->n_parked)
		unpark(a);
}

void assembler_update(struct assembler *a, uint32_t frontend, struct xds_config *config)
{
	assembled_frontend_update(&a->frontends[frontend], config);
	a->unsettled = true;
}

void assembler_fail(struct assembler *a, uint32_t frontend, const char *text)
{
	assembled_frontend_fail(&a->frontends[frontend], text);
}

void assembler_set_chains(
	struct assembler *a, uint32_t frontend, struct lb_chain_set *chains, const char *error)
{
	assembled_frontend_set_chains(&a->frontends[frontend], chains, error);
}

void assembler_set_terms(struct assembler *a, const struct lb_terms *terms)
{
	draft_set_terms(&a->draft, terms);
}

void assembler_set_owner(struct assembler *a, uint32_t chain, uint32_t frontend)
{
	a->frontends[chain].owner = frontend;
	assembled_frontend_send_away(&a->frontends[chain]); // whoever was here before
}

void assembler_send_away(struct assembler *a, uint32_t chain)
{
	assembled_frontend_send_away(&a->frontends[chain]);
}

bool assembler_in_use(struct assembler *a, uint32_t frontend, const char *cluster)
{
	return frontend_clusters_in_use(&a->frontends[frontend], cluster);
}

uint64_t assembler_published_ns(const struct assembler *a)
{
	return a->draft.published_ns;
}

uint64_t assembler_n_snapshots(const struct assembler *a)
{
	return a->draft.n_published;
}

uint64_t assembler_snapshot_version(const struct assembler *a)
{
	return a->draft.n_published + 1;
}

unsigned assembler_n_live_snapshots(const struct assembler *a)
{
	return a->draft.n_live;
}

uint32_t assembler_n_waiting_attempts(const struct assembler *a)
{
	return lb_connectivity_n_waiting(a->connectivity);
}

uint32_t assembler_n_attempts(const struct assembler *a)
{
	return lb_connectivity_n_attempts(a->connectivity);
}

uint32_t assembler_link_up(struct assembler *a)
{
	return lb_connectivity_heard(a->connectivity, NULL);
}

uint32_t assembler_reconnect(struct assembler *a, const struct ip_port *address)
{
	return lb_connectivity_retry(a->connectivity, address);
}
