// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/proxy/control.h"

#include "lb/base/check.h"
#include "lb/cluster.h"
#include "lb/leaf/leaf.h"
#include "lb/member/connectivity.h"
#include "lb/member/probes.h"
#include "lb/pick/breaker.h"
#include "lb/pick/loads.h"
#include "lb/pick/metrics.h"
#include "lb/pick/orca.h"
#include "lb/pick/picker.h"
#include "lb/policy/node_ops.h"
#include "lb/route/filter.h"
#include "lb/snapshot.h"
#include "lb/vips.h"
#include "tests/support/leaf_update.h"
#include "tests/support/route_table.h"

#include <stdlib.h>

static struct lb_snapshot *draft(struct control *c)
{
	struct lb_snapshot *next = lb_snapshot_copy(c->snapshot);
	CHECK(next);
	return next;
}

static void publish(struct control *c, struct lb_snapshot *next)
{
	lb_snapshot_free(c->snapshot); // no turn is going on
	c->snapshot = next;
}

void control_set_cluster(struct control *c, struct lb_cluster *cluster)
{
	struct lb_snapshot *next = draft(c);
	CHECK(lb_snapshot_set_cluster(next, cluster->id, cluster) == 0);
	publish(c, next);
}

void control_set_credentials(struct control *c)
{
	struct lb_snapshot *next = draft(c);
	for (uint32_t i = 1; i < 3; i++)
		CHECK(lb_snapshot_set_credential(next, i, c->credentials[i]) == 0);
	for (uint32_t i = 0; i < next->n_frontends; i++)
		CHECK(lb_snapshot_set_frontend_credential(next, i, c->frontend_credential) == 0);
	publish(c, next);
}

void control_command(struct control *c, const struct lb_command *command)
{
	if (!c->n_backlog && spsc_write(&c->link->commands, command))
		return;
	CHECK(c->n_backlog < 256);
	c->backlog[c->n_backlog++] = *command;
}

static void imagine(struct control *c, enum lb_event_kind kind, uint32_t id)
{
	CHECK(c->n_imagined < 256);
	c->imagined[c->n_imagined++] = (struct lb_event){.kind = kind, .endpoint_id = id};
}

static void connect_at_anchor(void *ctx, struct lb_endpoint *ep)
{
	struct control *c = ctx;
	if (lb_endpoint_anchor(ep->id, c->n_workers) == 0)
		control_command(c, &(struct lb_command){LB_COMMAND_CONNECT, .endpoint = ep});
	else
		imagine(c, LB_EVENT_CONNECTED, ep->id);
}

static void release_everywhere(void *ctx, struct lb_endpoint *ep)
{
	struct control *c = ctx;
	control_command(c, &(struct lb_command){LB_COMMAND_RELEASE, .endpoint = ep});
	if (c->n_workers > 1)
		imagine(c, LB_EVENT_RELEASED, ep->id);
}

static struct lb_route_table *make_routes(const struct control *c)
{
	static const struct lb_weighted_cluster one[] = {{.cluster_id = 0, .weight = 1}},
						two[] = {{.cluster_id = 0, .weight = 1},
							{.cluster_id = 1, .weight = 3}},
						down[] = {{.cluster_id = 2, .weight = 1}};
	struct lb_route_conf routes[] = {
		[ROUTE_ONE] = {.name = STR("first"),
			.index = 7,
			.path = STR("/one/"),
			.clusters = one,
			.n_clusters = 1},
		[ROUTE_TWO] = {.path = STR("/two/"), .clusters = two, .n_clusters = 2},
		[ROUTE_DOWN] = {.path = STR("/down/"), .clusters = down, .n_clusters = 1},
		{.path = STR("/unsupported/"), .action = LB_ACTION_UNSUPPORTED},
	};
	for (size_t i = 0; i < 4; i++) {
		routes[i].case_sensitive = true;
		routes[i].ppm = LB_PPM_ALWAYS;
		routes[i].policy = c->policies[i];
	}
	struct lb_route_conf pinned = {.path = STR("/"),
		.case_sensitive = true,
		.ppm = LB_PPM_ALWAYS,
		.clusters = one,
		.n_clusters = 1,
		.policy = c->policies[ROUTE_PINNED]};
	static const struct str any[] = {STR("*")}, only[] = {STR("pinned.test")};
	struct lb_vhost_conf hosts[] = {
		{.name = STR("any"),
			.domains = any,
			.n_domains = 1,
			.routes = routes,
			.n_routes = 4,
			.number = c->counts_vhosts ? CONTROL_VHOST : 0},
		{.name = STR("pin"),
			.domains = only,
			.n_domains = 1,
			.routes = &pinned,
			.n_routes = 1},
	};
	struct lb_err err;
	struct lb_vhost *compiled[] = {
		lb_vhost_new(&hosts[0], &err), lb_vhost_new(&hosts[1], &err)};
	CHECK(compiled[0] && compiled[1]);
	const struct lb_route_table_conf conf = {.n_vhosts = 2, .n_workers = c->n_workers};
	struct lb_route_table *t = route_table_of(&conf, hosts, compiled, &err);
	CHECK(t);
	lb_vhost_put(compiled[0]);
	lb_vhost_put(compiled[1]);
	return t;
}

static void set_routes(struct control *c)
{
	struct lb_snapshot *next = draft(c);
	struct lb_route_table *routes = make_routes(c);
	CHECK(lb_snapshot_set_frontend(next, 0, routes, NULL) == 0);
	CHECK(lb_snapshot_set_frontend(next, 1, routes, NULL) == 0);
	CHECK(lb_snapshot_set_frontend(next, LAST_FRONTEND, routes, NULL) == 0);
	lb_route_table_put(routes);
	publish(c, next);
}

void control_count_vhosts(struct control *c)
{
	c->counts_vhosts = true;
	set_routes(c);
}

void control_set_policy(
	struct control *c, enum control_route route, const struct lb_route_policy *policy)
{
	c->policies[route] = *policy;
	set_routes(c);
}

void control_set_filters(struct control *c, uint32_t frontend, const struct lb_filter *filters,
	uint32_t n, uint64_t max_stream_duration_ns, uint64_t generation)
{
	struct lb_snapshot *next = draft(c);
	const struct lb_listener_timeouts timeouts = {
		max_stream_duration_ns, {c->idle_ns[0], c->idle_ns[1]}};
	struct lb_filter_chain *chain = lb_filter_chain_new(filters, n, &timeouts);
	CHECK(chain);
	chain->forwarding = c->forwarding;
	chain->tracing = c->tracing;
	CHECK(lb_snapshot_set_filters(next, frontend, chain, generation) == 0);
	lb_filter_chain_put(chain);
	publish(c, next);
}

void control_set_terms(struct control *c, const struct lb_terms *terms)
{
	struct lb_snapshot *next = draft(c);
	next->terms = *terms;
	next->terms.number = c->snapshot->terms.number + 1;
	publish(c, next);
}

void control_set_live(struct control *c, uint32_t frontend, struct lb_live_frontend *live)
{
	struct lb_snapshot *next = draft(c);
	CHECK(lb_snapshot_set_live(next, frontend, live) == 0);
	publish(c, next);
}

void control_set_chains(struct control *c, uint32_t frontend, struct lb_chain_set *chains)
{
	struct lb_snapshot *next = draft(c);
	CHECK(lb_snapshot_set_chains(next, frontend, chains) == 0);
	publish(c, next);
}

void control_set_vips(struct control *c, const struct lb_vip *list, uint32_t n)
{
	const struct lb_vips *before = c->snapshot->vips;
	struct lb_snapshot *next = draft(c);
	struct lb_vips *vips = lb_vips_new(list, n, before ? before->version + 1 : 1);
	CHECK(vips);
	lb_snapshot_set_vips(next, vips);
	lb_vips_put(vips);
	publish(c, next);
}

void control_set_logs(struct control *c, uint32_t frontend, struct lb_access_set *logs)
{
	struct lb_snapshot *next = draft(c);
	CHECK(lb_snapshot_set_access(next, frontend, logs) == 0);
	publish(c, next);
}

// The policy trees.

static const struct lb_policy_spec round_robin = {.kind = LB_POLICY_ROUND_ROBIN},
				   by_locality = {
					   .kind = LB_POLICY_WRR_LOCALITY, .child = &round_robin};
static const char *const names[N_CLUSTERS] = {"zero", "one", "two"};

static void set_picker(
	struct control *c, uint32_t id, enum lb_state state, struct lb_picker *picker)
{
	struct lb_cluster *cluster = lb_cluster_new(id, names[id], state, picker);
	CHECK(cluster);
	cluster->is_leaving = c->leaves[id].is_leaving;
	control_set_cluster(c, cluster);
	lb_cluster_put(cluster);
	lb_picker_put(picker);
}

static int on_publish(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct control_leaf *l = ctx;
	set_picker(l->control, l->id, state, picker);
	return 0;
}

static uint32_t member_take(void *ctx, void *owner)
{
	struct control *c = ((struct control_leaf *)ctx)->control;
	CHECK(c->n_members < LB_MAX_MEMBERS);
	return c->n_members++;
}

static uint32_t slot_take(void *ctx)
{
	struct control *c = ((struct control_leaf *)ctx)->control;
	CHECK(c->n_slots < LB_MAX_SLOTS);
	return c->n_slots++;
}

static void rests(void *ctx, uint32_t id)
{
}

// What came since it was asked last.
static void harvest(void *ctx, uint32_t member, uint64_t *ret_ok, uint64_t *ret_failed)
{
	struct control *c = ((struct control_leaf *)ctx)->control;
	const struct lb_member_counters *now = &c->link->members[member];
	struct lb_member_counters *seen = &c->harvested[member];
	*ret_ok = now->ok - seen->ok;
	*ret_failed = now->failed - seen->failed;
	*seen = *now;
}

static uint64_t last_used(void *ctx, uint32_t member)
{
	return ((struct control_leaf *)ctx)->control->link->members[member].used_ns;
}

static void init_leaf(struct control *c, uint32_t id)
{
	struct control_leaf *l = &c->leaves[id];
	*l = (struct control_leaf){.control = c,
		.id = id,
		.spec = &by_locality,
		.max_requests = 1024,
		.idle_timeout_ns = 3600 * SECOND};
	l->env = (struct lb_leaf_env){.loads = c->link->shared->loads,
		.wheel = c->wheel,
		.rand = &c->rand,
		.member_env = &c->member_env,
		.breakers = c->breakers,
		.orca = c->orca,
		.ops_of = lb_node_ops_of,
		.has_sessions = true,
		.member_take = member_take,
		.member_give = rests,
		.slot_take = slot_take,
		.slot_give = rests,
		.harvest = harvest,
		.last_used = last_used,
		.probes = c->probes,
		.ctx = l};
	l->leaf = lb_leaf_new(&l->env,
		(struct lb_leaf_parent){.publish = on_publish, .ctx = l, .counts = &l->counts},
		names[id], id);
	l->breaker = lb_breakers_get(c->breakers, names[id], "");
	CHECK(l->leaf && l->breaker);
	set_picker(c, id, LB_CONNECTING, lb_picker_queue());
}

static const struct control_host *host_of(const struct control_leaf *l, uint32_t backend)
{
	for (uint32_t i = 0; i < l->n_hosts; i++)
		if (l->hosts[i].backend == backend)
			return &l->hosts[i];
	return NULL;
}

// HEALTHY and DRAINING are for sessions, UNKNOWN is not.
#define SESSION_HEALTH (1u << LB_LEAF_HEALTHY | 1u << LB_LEAF_DRAINING)
struct listed {
	struct ip_port addresses[64][2];
	struct lb_leaf_endpoint endpoints[64];
	uint32_t n;
};

static void list(struct listed *list, const struct control_leaf *l, uint32_t backend, bool in_use)
{
	const struct control_host *h = host_of(l, backend);
	struct ip_port *a = list->addresses[list->n];
	if (!in_use && (!h || !h->is_session_target))
		return;
	a[0] = (struct ip_port){wire_address(l->host, backend), 50051};
	a[1] = (struct ip_port){wire_address(l->host, h ? h->also : 0), 50051};
	list->endpoints[list->n++] = (struct lb_leaf_endpoint){.addresses = a,
		.n_addresses = h && h->also ? 2 : 1,
		.weight = 1,
		.health = !in_use                     ? LB_LEAF_DRAINING
	                  : h && h->is_session_target ? LB_LEAF_HEALTHY
	                                              : LB_LEAF_UNKNOWN,
		.hostname = h ? str_from(h->hostname) : STR("")};
	if (h && h->proxy)
		list->endpoints[list->n - 1].proxy =
			(struct ip_port){wire_address(l->host, h->proxy), PROXY_PORT};
}

void control_want_metrics(struct control_leaf *l, const char *const *wanted, uint32_t n)
{
	lb_metrics_put(l->metrics);
	CHECK(lb_metrics_new(wanted, n, 7, &l->metrics) == 0);
}

void control_update(struct control *c, uint32_t cluster)
{
	struct control_leaf *l = &c->leaves[cluster];
	struct listed all[2] = {0};
	struct lb_leaf_locality localities[2];
	struct lb_leaf_priority priorities[2];
	for (uint32_t p = 0; p < 2; p++) {
		for (uint32_t i = 0; i < 32; i++)
			if (l->masks[p] >> i & 1)
				list(&all[p], l, i + 1, true);
		for (uint32_t i = 0; p == 0 && i < l->n_hosts; i++)
			if (!((l->masks[0] | l->masks[1]) >> (l->hosts[i].backend - 1) & 1))
				list(&all[p], l, l->hosts[i].backend, false);
		localities[p] = (struct lb_leaf_locality){
			p ? STR("far") : STR("near"), 1, all[p].endpoints, all[p].n};
		priorities[p] = (struct lb_leaf_priority){&localities[p], all[p].n ? 1 : 0};
	}
	const uint32_t loads[2] = {l->load, l->load};
	const struct lb_leaf_config conf = {.spec = l->spec,
		.locality_loads = loads,
		.drops = l->drops,
		.n_drops = l->n_drops,
		.loads = l->loads,
		.metrics = l->metrics,
		.max_requests = l->max_requests,
		.retry_budget = l->retry_budget,
		.eds_service_name = "",
		.outlier = l->outlier,
		.check = l->check,
		.security = l->control->security,
		.uses_proxies = true,
		.session_health = l->no_sessions ? 0 : SESSION_HEALTH,
		.idle_timeout_ns = l->idle_timeout_ns,
		.note = ""};
	CHECK(leaf_update(l->leaf, &conf, priorities, l->masks[1] ? 2 : 1) == 0);
}

void control_leave(struct control *c, uint32_t cluster)
{
	const struct lb_cluster *now = lb_snapshot_cluster(c->snapshot, cluster);
	c->leaves[cluster].is_leaving = true;
	set_picker(c, cluster, now->state, lb_picker_get(now->picker));
}

static bool send_probe(void *ctx, struct lb_probe *probe, bool is_end)
{
	const struct lb_command command = {
		.kind = is_end ? LB_COMMAND_PROBE_END : LB_COMMAND_PROBE, .probe = probe};
	control_command(ctx, &command);
	return true;
}

void control_init(struct control *c, struct wire *w, struct lb_link *link, uint32_t n_workers)
{
	*c = (struct control){.wire = w,
		.link = link,
		.n_workers = n_workers,
		.idle_ns = {300 * SECOND, LB_NO_TIMEOUT}};
	c->wheel = twheel_new(w->now_ns);
	rand_init(&c->rand, rand_u64(&w->rand));
	struct lb_connectivity_env env = {.wheel = c->wheel,
		.rand = &c->rand,
		.n_workers = n_workers,
		.connect = connect_at_anchor,
		.release = release_everywhere,
		.ctx = c,
		.on_state = lb_member_on_state};
	c->connectivity = lb_connectivity_new(&env);
	c->breakers = lb_breakers_new();
	c->orca = lb_orca_table_new();
	const struct lb_probes_env probes = {
		.wheel = c->wheel, .max_under_way = 4, .send = send_probe, .ctx = c};
	c->probes = lb_probes_new(&probes);
	c->harvested = calloc(LB_MAX_MEMBERS, sizeof(*c->harvested));
	c->snapshot = lb_snapshot_new(LAST_FRONTEND + 1, "not configured");
	CHECK(c->wheel && c->connectivity && c->probes && c->breakers && c->orca && c->harvested &&
		c->snapshot);
	c->member_env = (struct lb_member_env){c->connectivity, 250 * MS};
	set_routes(c);
	control_set_filters(c, 0, NULL, 0, LB_NO_TIMEOUT, 0);
	control_set_filters(c, 1, NULL, 0, LB_NO_TIMEOUT, 0);
	control_set_filters(c, LAST_FRONTEND, NULL, 0, LB_NO_TIMEOUT, 0);
	for (uint32_t i = 0; i < N_CLUSTERS; i++)
		init_leaf(c, i);
	set_picker(c, 2, LB_TRANSIENT_FAILURE, lb_picker_new_fail("cluster two: 100% broken"));
}

void control_set_endpoints(struct control *c, uint32_t cluster, uint32_t host, uint32_t mask)
{
	c->leaves[cluster].host = host;
	c->leaves[cluster].masks[0] = mask;
	c->leaves[cluster].masks[1] = 0;
	control_update(c, cluster);
}

void control_set_hosts(struct control *c, uint32_t cluster, uint32_t host,
	const struct control_host *hosts, uint32_t n)
{
	struct control_leaf *l = &c->leaves[cluster];
	CHECK(n <= MAX_HOSTS);
	l->host = host;
	l->n_hosts = n;
	for (uint32_t i = 0; i < n; i++)
		l->hosts[i] = hosts[i];
	control_update(c, cluster);
}

void control_fini(struct control *c)
{
	for (uint32_t i = 0; i < N_CLUSTERS; i++) {
		lb_leaf_free(c->leaves[i].leaf);
		lb_loads_put(c->leaves[i].loads);
		lb_metrics_put(c->leaves[i].metrics);
		lb_breaker_put(c->leaves[i].breaker);
	}
	lb_snapshot_free(c->snapshot);
	CHECK(lb_breakers_count(c->breakers) == 0);
	lb_breakers_free(c->breakers);
	lb_orca_table_free(c->orca);
	free(c->harvested);
	lb_probes_free(c->probes);
	lb_connectivity_free(c->connectivity);
	twheel_free(c->wheel);
}

static void on_connect_request(struct control *c, uint32_t member)
{
	c->n_connect_requests++;
	for (uint32_t i = 0; !c->deaf_to_connect_requests && i < N_CLUSTERS; i++)
		lb_leaf_want(c->leaves[i].leaf, member);
}

static void on_event(struct control *c, uint32_t worker, const struct lb_event *e)
{
	c->n_events++;
	switch (e->kind) {
	case LB_EVENT_DRAINED:
		c->drained = true;
		c->n_cut = e->n_cut;
		return;
	case LB_EVENT_CONNECT_REQUEST:
		on_connect_request(c, e->member);
		return;
	case LB_EVENT_ORCA:
		if (c->n_reports < 16)
			c->reported_ns[c->n_reports] = c->wire->now_ns;
		c->n_reports++;
		c->last_report = *e;
		lb_orca_report(c->orca, e->member, &e->orca, c->wire->now_ns);
		return;
	case LB_EVENT_METRIC:
		if (c->n_metrics < 16)
			c->metrics[c->n_metrics] = *e;
		c->n_metrics++;
		return;
	case LB_EVENT_FAILED:
		memcpy(c->last_why, e->why, sizeof(c->last_why));
		[[fallthrough]];
	case LB_EVENT_CONNECTED:
	case LB_EVENT_LOST:
	case LB_EVENT_SHORT_LIVED:
	case LB_EVENT_RELEASED:
	case LB_EVENT_NEIGHBOR:
		lb_connectivity_event(c->connectivity, worker, e);
		return;
	case LB_EVENT_PROBED:
	case LB_EVENT_PROBE_ENDED:
		lb_probes_event(c->probes, e);
		return;
	}
}

void control_turn(struct control *c)
{
	struct lb_event e;
	twheel_advance(c->wheel, c->wire->now_ns);
	for (uint32_t i = 0; i < c->n_imagined; i++) // more may come
		on_event(c, 1, &c->imagined[i]);
	c->n_imagined = 0;
	while (!c->deaf && spsc_read(&c->link->events, &e))
		on_event(c, 0, &e);
	uint32_t done = 0;
	while (done < c->n_backlog && spsc_write(&c->link->commands, &c->backlog[done]))
		done++;
	for (uint32_t i = done; i < c->n_backlog; i++)
		c->backlog[i - done] = c->backlog[i];
	c->n_backlog -= done;
}
