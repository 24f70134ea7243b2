// SPDX-License-Identifier: Apache-2.0
// An assembler with two frontends and one worker, which the test plays through its link, and
// resources made by hand.
// Thread: the test's.
#pragma once

#include "ctrl/assemble/assemble.h"
#include "ctrl/conf/config.h"
#include "ctrl/deps/config.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "lb/base/time.h"
#include "lb/route/route.h"

#include <stdint.h>

#define MS NS_PER_MS

struct world {
	struct config_frontend frontends[2]; // "web", "api"
	struct config config; // tells of the first one; a test may count in the second
	struct twheel *wheel;
	struct lb_slot *slot;
	struct lb_shared *shared;
	struct lb_link *link;
	struct workers *workers;
	struct assembler *assembler;
	uint64_t now;
};

// Fixtures of cmocka: with one frontend, with both.
int world_set_up(void **state);
int world_set_up_both(void **state);
int world_set_up_in_steps(void **state); // with one frontend; one step of each slice a turn
int world_set_up_with(void **state, struct config_sessions *); // borrowed; with one frontend
int world_set_up_counting(void **state); // virtual hosts, too; with one frontend
int world_tear_down(void **state);

// Turns of the loop; grace periods end by themselves, since nobody reads.
void turns(struct world *, int n);
void sleep_a_little(void); // a grace period may end
// Until the published snapshot is the only one alive.
void settle(struct world *);
// Until the frontend waits for nothing any more.
void await_patterns(struct world *, uint32_t frontend);

// Resources. They borrow what they are given. Count 1.

// An EDS resource, as tests write it.
struct told_endpoint {
	struct ip_port addr;
	uint8_t health; // enum lb_leaf_health
	uint32_t weight;
	// NULL = none of it.
	const struct told_endpoint_more {
		const struct ip_port *additional;
		uint32_t n_additional;
		const char *hostname, *hash_key;
	} * more;
};
struct told_locality {
	const char *region, *zone, *sub_zone;
	uint32_t weight;
	const struct told_endpoint *endpoints;
	uint32_t n_endpoints;
};
struct told_priority {
	const struct told_locality *localities;
	uint32_t n_localities;
};
struct res_endpoints *endpoints_of(const struct told_priority *, uint32_t n);
struct res_cluster *cluster_of(const char *name); // sessions may use UNKNOWN and HEALTHY
// Listeners of different versions differ.
struct res_listener *listener_of(
	const char *version, const struct lb_filter *filters, uint32_t n_filters);

// A config: takes references. Endpoints NULL = the cluster is in error.
struct xds_config *config_of(struct res_listener *, struct res_route_config *,
	const char *const *names, struct res_endpoints *const *, uint32_t n);
void update(struct world *, uint32_t frontend, struct xds_config *); // puts it, too
// The short form: one virtual host, a listener of its own.
void apply(struct world *, const struct res_vhost *, const char *const *names,
	struct res_endpoints *const *, uint32_t n);

// What a request for authority "x" finds in the published snapshot's first frontend.
uint32_t route(const struct world *, const char *path);
uint32_t expect_command(struct world *, enum lb_command_kind); // the endpoint's id
