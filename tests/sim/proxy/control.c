// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/proxy/control.h"

#include "lb/balancer.h"
#include "lb/base/check.h"
#include "lb/cluster.h"
#include "lb/connectivity.h"
#include "lb/filter.h"
#include "lb/hosts.h"
#include "lb/policy.h"
#include "lb/snapshot.h"
#include "lb/subchannel.h"

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

static void set_cluster(void *ctx, struct lb_cluster *cluster)
{
	control_set_cluster(ctx, cluster);
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
		[ROUTE_ONE] = {.path = STR("/one/"), .clusters = one, .n_clusters = 1},
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
			.n_routes = 4},
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
	struct lb_route_table *t = lb_route_table_new(&(struct lb_route_table_conf){.vhosts = hosts,
							      .compiled = compiled,
							      .n_vhosts = 2,
							      .n_workers = c->n_workers},
		&err);
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
	lb_route_table_put(routes);
	publish(c, next);
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
	struct lb_filter_chain *chain = lb_filter_chain_new(filters, n, max_stream_duration_ns);
	CHECK(chain);
	lb_snapshot_set_filters(next, frontend, chain, generation);
	lb_filter_chain_put(chain);
	publish(c, next);
}

void control_init(struct control *c, struct wire *w, struct lb_link *link, uint32_t n_workers)
{
	static const char *const names[N_CLUSTERS] = {"zero", "one", "two"};
	*c = (struct control){.wire = w, .link = link, .n_workers = n_workers};
	c->wheel = twheel_new(w->now_ns);
	rand_init(&c->rand, rand_u64(&w->rand));
	struct lb_connectivity_env env = {.wheel = c->wheel,
		.rand = &c->rand,
		.n_workers = n_workers,
		.connect = connect_at_anchor,
		.release = release_everywhere,
		.ctx = c};
	c->connectivity = lb_connectivity_new(&env);
	c->snapshot = lb_snapshot_new(N_FRONTENDS, "not configured");
	CHECK(c->wheel && c->connectivity && c->snapshot);
	set_routes(c);
	for (uint32_t i = 0; i < N_CLUSTERS; i++) {
		struct lb_balancer_env balancer = {c->connectivity, set_cluster, c};
		c->balancers[i] = lb_balancer_new(i, names[i], &balancer);
		CHECK(c->balancers[i]);
		set_cluster(c, lb_balancer_cluster(c->balancers[i]));
	}
	CHECK(lb_balancer_fail(c->balancers[2], "cluster two: 100% broken") == 0);
}

void control_set_endpoints(struct control *c, uint32_t cluster, uint32_t host, uint32_t mask)
{
	struct lb_policy_endpoint endpoints[32];
	uint32_t n = 0;
	for (uint32_t i = 0; i < 32; i++)
		if (mask >> i & 1)
			endpoints[n++] =
				(struct lb_policy_endpoint){{wire_address(host, i + 1), 50051}, 1};
	struct lb_policy_config conf = {endpoints, n, ""};
	CHECK(lb_balancer_update(c->balancers[cluster], &conf) == 0);
}

// Those of before are put last: endpoints that stay are never let go.
static void replace_held(
	struct control *c, uint32_t cluster, struct lb_subchannel **held, uint32_t n)
{
	for (uint32_t i = 0; i < MAX_HOSTS; i++) {
		struct lb_subchannel *old = c->held[cluster][i];
		c->held[cluster][i] = i < n ? held[i] : NULL;
		if (old)
			lb_connectivity_put(c->connectivity, old);
	}
}

void control_set_hosts(struct control *c, uint32_t cluster, uint32_t host,
	const struct control_host *list, uint32_t n)
{
	struct lb_subchannel *held[MAX_HOSTS];
	struct lb_host_conf conf[MAX_HOSTS];
	struct ip_port addresses[MAX_HOSTS][2];
	CHECK(n <= MAX_HOSTS);
	for (uint32_t i = 0; i < n; i++) {
		addresses[i][0] = (struct ip_port){wire_address(host, list[i].backend), 50051};
		addresses[i][1] = (struct ip_port){wire_address(host, list[i].also), 50051};
		held[i] = lb_connectivity_get(c->connectivity, &addresses[i][0]);
		CHECK(held[i]);
		conf[i] = (struct lb_host_conf){lb_subchannel_endpoint(held[i]), addresses[i],
			list[i].also ? 2 : 1, str_from(list[i].hostname),
			list[i].is_session_target};
	}
	struct lb_hosts *hosts = lb_hosts_new(conf, n, NULL);
	CHECK(hosts && lb_balancer_set_hosts(c->balancers[cluster], hosts) == 0);
	lb_hosts_put(hosts);
	replace_held(c, cluster, held, n);
}

void control_fini(struct control *c)
{
	for (uint32_t i = 0; i < N_CLUSTERS; i++) {
		replace_held(c, i, NULL, 0);
		lb_balancer_free(c->balancers[i]);
	}
	lb_snapshot_free(c->snapshot);
	lb_connectivity_free(c->connectivity);
	twheel_free(c->wheel);
}

static void on_event(struct control *c, uint32_t worker, const struct lb_event *e)
{
	c->n_events++;
	if (e->kind == LB_EVENT_DRAINED)
		c->drained = true;
	else
		lb_connectivity_event(c->connectivity, worker, e);
}

void control_turn(struct control *c)
{
	struct lb_event e;
	twheel_advance(c->wheel, c->wire->now_ns);
	while (c->n_imagined)
		on_event(c, 1, &c->imagined[--c->n_imagined]);
	while (!c->deaf && spsc_read(&c->link->events, &e))
		on_event(c, 0, &e);
	uint32_t done = 0;
	while (done < c->n_backlog && spsc_write(&c->link->commands, &c->backlog[done]))
		done++;
	for (uint32_t i = done; i < c->n_backlog; i++)
		c->backlog[i - done] = c->backlog[i];
	c->n_backlog -= done;
}
