// SPDX-License-Identifier: Apache-2.0
// Any bytes as a resource of each type: a verdict with a reason, and what is accepted keeps its
// promises. Input: a byte that chooses the type, and the resource.
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/res/types.h"
#include "ctrl/xds/type.h"
#include "lb/base/check.h"
#include "lb/route/rbac.h"
#include "lb/route/req.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_routes(const struct res_route_config *c)
{
	for (uint32_t v = 0; v < c->n_vhosts; v++) {
		CHECK(c->vhosts[v].n_domains > 0);
		for (uint32_t r = 0; r < c->vhosts[v].n_routes; r++) {
			const struct res_route *route = &c->vhosts[v].routes[r];
			uint64_t sum = 0;
			for (uint32_t i = 0; i < route->n_clusters; i++) {
				CHECK(*route->clusters[i].name);
				sum += route->clusters[i].weight;
			}
			CHECK(route->action != LB_ACTION_CLUSTERS ||
				(sum > 0 && sum <= UINT32_MAX));
		}
	}
	(void)res_route_config_choose(c, "example.com");
}

static void check_endpoints(const struct res_endpoints *e)
{
	const struct lb_leaf_endpoints *l = e->list;
	const uint32_t *ends = lb_leaf_endpoints_ends(l);
	for (uint32_t i = 0; i < l->n_priorities; i++)
		CHECK(ends[i] > (i ? ends[i - 1] : 0));
	for (uint32_t i = 0; i < l->n_spans; i++)
		CHECK(l->spans[i].weight > 0);
	for (uint32_t i = 0; i < l->n_all; i++)
		CHECK(l->weights[i] > 0);
	for (uint32_t i = 0; i < l->n_addresses; i++)
		CHECK(l->addresses[i].port &&
			lb_address_index_find(&l->index, &l->addresses[i]) == i);
}

// A request that has nothing passes all filters of access control, one way or another.
static void check_listener(const struct res_listener *l)
{
	if (!l->is_api)
		return;
	CHECK(!l->rds_name != !l->routes);
	char buf[1];
	const struct lb_req req = {.n_fields = 0};
	const struct lb_peer_info peer = {.n_sans = 0};
	struct lb_filter_chain *c =
		lb_filter_chain_new(l->filters, l->n_filters, &lb_no_listener_timeouts);
	CHECK(c);
	for (uint32_t i = 0; i < c->n; i++)
		if (c->filters[i].kind == LB_FILTER_RBAC)
			(void)lb_rbac_check(
				c->filters[i].rbac.compiled, &req, &peer, buf, sizeof(buf));
	lb_filter_chain_put(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	const struct xds_type *type = res_types[data[0] % RES_N_TYPES];
	struct xds_decoded d = {0};
	type->decode(data + 1, size - 1, &d);
	CHECK(!d.res == !!*d.err.text);
	if (d.res) {
		CHECK(d.res->len == size - 1 && memcmp(d.res->bytes, data + 1, size - 1) == 0);
		CHECK(strcmp(d.name, d.res->name) == 0);
		if (type == &res_type_route_config)
			check_routes(res_route_config_from(d.res));
		else if (type == &res_type_endpoints)
			check_endpoints(res_endpoints_from(d.res));
		else if (type == &res_type_cluster)
			CHECK(res_cluster_from(d.res)->eds_name);
		else
			check_listener(res_listener_from(d.res));
	}
	xds_res_put(d.res);
	free(d.name);
	return 0;
}
