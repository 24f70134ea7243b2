// SPDX-License-Identifier: Apache-2.0
// A control thread in small: the real policy trees, connectivity and snapshots of lb/ over the
// rings of the one simulated worker. With a second, imagined worker every endpoint may be READY
// without a connection of the simulated one (MC-04).
// Thread: one.
#pragma once

#include "lb/leaf/leaf.h"
#include "lb/member/member.h"
#include "lb/pick/drop.h"
#include "lb/pick/endpoint.h"
#include "lb/pick/link.h"
#include "lb/route/forwarding.h"
#include "lb/route/route.h"
#include "lb/route/tracing.h"
#include "tests/sim/proxy/wire.h"

#include <stdbool.h>
#include <stdint.h>

#define N_CLUSTERS 3
#define N_FRONTENDS 3 // that most tests use
#define CONTROL_VHOST 3 // control_count_vhosts()
#define CONTROL_VHOST                                                                              \
	3 // number of the counters of the virtual host that all but "pinned.test" find
#define LAST_FRONTEND 259
#define MAX_HOSTS 8
// Clusters: routes /one/ lead to cluster 0, /two/ by weight to 0 (1) and 1 (3), /down/ to 2, which
// is in error until it gets endpoints. Frontend 1 is pinned to the authority "pinned.test",
// those from 2 on have no routes, but for the last.

enum control_route { ROUTE_ONE, ROUTE_TWO, ROUTE_DOWN, ROUTE_PINNED, N_ROUTES };

struct lb_access_set;
struct lb_breakers;
struct lb_chain_set;
struct lb_live_frontend;
struct lb_cluster;
struct lb_connectivity;
struct lb_filter;
struct lb_metrics;
struct lb_check;
struct lb_orca_table;
struct lb_probes;
struct lb_snapshot;
struct lb_terms;
struct lb_vip;

#define PROXY_PORT 3128 // of HTTP proxies
// What is known of the cluster's endpoints: those of the list are backends of this host.
struct control_host {
	uint32_t backend; // number of its address
	const char *hostname; // "" = none
	bool is_session_target;
	uint32_t also; // number of a second address; 0 = none
	uint32_t proxy; // number of its HTTP proxy's address; 0 = none
};

// One cluster's configuration, as CDS and EDS would have it. Change it and call control_update().
#define MAX_DROPS 4
#define MAX_DELAYED 64
struct control_leaf {
	struct control *control;
	struct lb_leaf_env env;
	struct lb_leaf *leaf;
	struct lb_breaker *breaker; // counted; the leaf's
	uint32_t id;
	const struct lb_policy_spec *spec; // round_robin in each locality
	uint32_t host; // of the backends
	uint32_t masks[2]; // backends of both priorities, by bit
	struct control_host hosts[MAX_HOSTS];
	uint32_t n_hosts;
	struct lb_drop_category drops[MAX_DROPS];
	uint32_t n_drops;
	uint32_t max_requests;
	struct lb_retry_budget retry_budget;
	const struct lb_outlier_conf *outlier;
	struct lb_check *check; // borrowed; NULL = no health checks
	struct lb_leaf_counts counts;
	uint32_t load; // of its locality, index of lb_link.loads
	struct lb_loads *loads; // counted; NULL = none
	uint64_t idle_timeout_ns;
	struct lb_metrics *metrics; // counted; NULL = none
	bool no_sessions;
	bool is_leaving; // control_leave()
};

struct control {
	struct wire *wire;
	struct lb_link *link;
	struct twheel *wheel;
	struct rand rand;
	uint32_t n_workers;
	struct lb_forwarding forwarding; // of listeners that are set from then on
	struct lb_connectivity *connectivity;
	struct lb_member_env member_env;
	struct lb_breakers *breakers;
	struct lb_orca_table *orca;
	struct lb_probes *probes; // all are the first worker's
	struct control_leaf leaves[N_CLUSTERS];
	uint32_t n_members, n_slots; // numbers given
	struct lb_member_counters *harvested; // owned; by member, as of the last time
	struct lb_route_policy policies[N_ROUTES];
	uint64_t idle_ns[2]; // of listeners (lb/route/timeouts.h), from control_set_filters() on
	struct lb_tracing tracing; // likewise; all zero = off
	struct lb_snapshot *snapshot;
	struct lb_command backlog[256]; // that the ring had no room for
	uint32_t n_backlog;
	struct lb_event imagined[256]; // of the second worker
	uint32_t n_imagined;
	uint32_t n_events;
	uint32_t n_connect_requests, n_reports, n_metrics;
	struct lb_event metrics[16]; // the first ones
	struct lb_event last_report;
	uint64_t reported_ns[16]; // when the first reports came
	bool counts_vhosts;
	bool drained;
	uint32_t n_cut; // requests, as the event of the drain says
	bool deaf; // reads no events
	struct lb_credential *credentials[3]; // borrowed, by id; NULL = none
	uint32_t frontend_credential; // of all frontends; 0 = plain text
	struct lb_security *security; // borrowed: of endpoints from now on; NULL = plain text
	char last_why[LB_ENDPOINT_WHY_MAX]; // of the last endpoint that could not be connected
	bool deaf_to_connect_requests;
};

void control_init(struct control *, struct wire *, struct lb_link *, uint32_t n_workers);
void control_fini(struct control *);
// The cluster's endpoints: addresses 10.0.<host>.x for the bits in mask.
void control_set_endpoints(struct control *, uint32_t cluster, uint32_t host, uint32_t mask);
void control_set_hosts(
	struct control *, uint32_t cluster, uint32_t host, const struct control_host *, uint32_t n);
// For load reports, from the next update on.
void control_want_metrics(struct control_leaf *, const char *const *wanted, uint32_t n);
void control_update(struct control *, uint32_t cluster);
// No configuration names it any more.
void control_leave(struct control *, uint32_t cluster);
// In place of the leaf's newest, until that has a new one.
void control_set_cluster(struct control *, struct lb_cluster *);
// What one route asks for from the next turn on.
// All requests but those to "pinned.test" find a virtual host with counters of this number.
void control_count_vhosts(struct control *);
void control_set_policy(struct control *, enum control_route, const struct lb_route_policy *);
// The access logs of a frontend's listener (lb/pick/access_set.h). NULL = none.
void control_set_logs(struct control *, uint32_t frontend, struct lb_access_set *);
// Other ones than the proxy has (lb/pick/terms.h), but for their number.
void control_set_terms(struct control *, const struct lb_terms *);
void control_set_live(struct control *, uint32_t frontend, struct lb_live_frontend *);
// The filter chains of a frontend (lb/chain_set.h), whose places are frontends.
void control_set_chains(struct control *, uint32_t frontend, struct lb_chain_set *);
// The table of Listeners' own addresses (lb/vips.h), of a world with them.
void control_set_vips(struct control *, const struct lb_vip *, uint32_t n);
// The filters of a frontend's listener, and its limit (lb/route/filter.h).
void control_set_filters(struct control *, uint32_t frontend, const struct lb_filter *, uint32_t n,
	uint64_t max_stream_duration_ns, uint64_t generation);
// What was set of the credentials counts from now on.
void control_set_credentials(struct control *);
void control_command(struct control *, const struct lb_command *);
void control_turn(struct control *);
