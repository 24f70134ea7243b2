// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/xds/converged.h"

#include "ctrl/deps/config.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/route.h"
#include "lb/base/check.h"
#include "tests/sim/xds/world.h"

#include <string.h>

#define FORBIDDEN_DEPTH 16

struct walk {
	const struct world *w;
	uint32_t reached; // clusters less than the forbidden depth below a route
	uint32_t seen; // of one aggregate
	int list[N_CLUSTERS], n;
	bool too_deep;
};

static void reach(struct walk *k, uint32_t roots)
{
	uint32_t level = roots;
	for (int depth = 0; depth < FORBIDDEN_DEPTH; depth++) {
		uint32_t next = 0;
		k->reached |= level;
		for (int c = 0; c < N_CLUSTERS; c++) {
			const struct world_cluster *wc = &k->w->clusters[c];
			if (!(level >> c & 1) || wc->kind != WORLD_AGGREGATE)
				continue;
			for (int i = 0; i < wc->n_children; i++)
				next |= 1u << wc->children[i];
		}
		level = next & ~k->reached;
	}
}

static void flatten(struct walk *k, int c, int depth)
{
	const struct world_cluster *wc = &k->w->clusters[c];
	if (depth == FORBIDDEN_DEPTH || !(k->reached >> c & 1)) {
		k->too_deep = true;
		return;
	}
	if (k->seen >> c & 1)
		return;
	k->seen |= 1u << c;
	if (wc->kind != WORLD_AGGREGATE) {
		k->list[k->n++] = c;
		return;
	}
	for (int i = 0; i < wc->n_children; i++)
		flatten(k, wc->children[i], depth + 1);
}

static void check_aggregate(
	struct walk *k, int c, const struct xds_cluster_config *found, struct converged_seen *seen)
{
	k->seen = 0;
	k->n = 0;
	k->too_deep = false;
	flatten(k, c, 0);
	if (k->too_deep || !k->n) {
		CHECK(!found->cluster);
		CHECK(strstr(found->error, k->too_deep ? "max depth" : "no leaf clusters"));
		seen->n_too_deep += k->too_deep;
		seen->n_empty += !k->too_deep;
		return;
	}
	seen->n_flat++;
	CHECK(found->cluster && !found->endpoints && found->n_leaves == (uint32_t)k->n);
	for (int i = 0; i < k->n; i++)
		CHECK(world_find(0, found->leaves[i]) == k->list[i]);
}

static void check_endpoint(const struct world *w, int c, const struct lb_leaf_endpoints *list)
{
	const struct world_cluster *wc = &w->clusters[c];
	const struct lb_leaf_endpoint e = lb_leaf_endpoints_at(list, 0);
	if (wc->kind == WORLD_EDS) {
		CHECK(e.addresses[0].port == w->endpoints_port[wc->endpoints] + 1);
		return;
	}
	uint32_t found = 0;
	for (uint32_t i = 0; i < e.n_addresses; i++) {
		const struct ip_port *a = &e.addresses[i];
		CHECK(a->port == c + 1);
		CHECK(ip_to_v4(&a->ip) >> 8 == (0x0a0900u | (unsigned)wc->host));
		found |= 1u << (ip_to_v4(&a->ip) & 255);
	}
	CHECK(found == w->addresses[wc->host]);
}

void check_converged(const struct world *w, int listener, bool pinned, const struct xds_config *c,
	struct converged_seen *seen)
{
	CHECK(c);
	int rc = w->listener_routes[listener];
	CHECK(world_find(3, c->routes->base.name) == rc);
	const uint32_t *clusters =
		w->listener_inline[listener] ? w->inline_clusters[listener] : w->vhost_clusters[rc];
	uint32_t roots = clusters[1] | (pinned ? 0 : clusters[0]);
	struct walk k = {.w = w};
	reach(&k, roots);
	CHECK(c->n_clusters == (uint32_t)__builtin_popcount(k.reached)); // DM-14
	for (uint32_t i = 0; i < c->n_clusters; i++) {
		const struct xds_cluster_config *found = &c->clusters[i];
		int number = world_find(0, found->name);
		CHECK(k.reached >> number & 1);
		CHECK(found->is_root == (roots >> number & 1));
		if (w->clusters[number].kind == WORLD_AGGREGATE) {
			check_aggregate(&k, number, found, seen);
			continue;
		}
		CHECK(found->cluster && found->endpoints);
		check_endpoint(w, number, found->endpoints->list);
	}
}
