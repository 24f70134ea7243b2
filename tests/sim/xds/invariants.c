// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/xds/invariants.h"

#include "ctrl/deps/config.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/res/types.h"
#include "ctrl/xds/federation.h"
#include "lb/base/check.h"
#include "tests/sim/xds/server.h"
#include "tests/sim/xds/world.h"

#include <stdio.h>
#include <string.h>

#define FORBIDDEN_DEPTH 16

// Clusters by number (world_find).
struct graph {
	const struct xds_cluster_config *entries[N_CLUSTERS]; // NULL = not in the configuration
};

// Of one aggregate.
struct flat {
	int list[N_CLUSTERS], n;
	bool seen[N_CLUSTERS];
	bool too_deep;
};

static bool is_aggregate(const struct xds_cluster_config *k)
{
	return k->cluster && k->cluster->kind == RES_CLUSTER_AGGREGATE;
}

// What an aggregate in error would list is not in the configuration: then only what its list may
// hold can be told, not what it must. False = such a one was met.
static bool flatten(const struct graph *g, int c, int depth, struct flat *f)
{
	const struct xds_cluster_config *k = g->entries[c];
	if (depth == FORBIDDEN_DEPTH || !k) {
		f->too_deep = true;
		return true;
	}
	if (f->seen[c])
		return true;
	f->seen[c] = true;
	if (!k->cluster)
		return !strstr(k->error, "aggregate cluster");
	if (!is_aggregate(k)) {
		f->list[f->n++] = c;
		return true;
	}
	bool known = true;
	for (uint32_t i = 0; i < k->cluster->n_children; i++)
		known &= flatten(g, world_find(0, k->cluster->children[i]), depth + 1, f);
	return known;
}

static void check_aggregate(const struct graph *g, const struct xds_cluster_config *k)
{
	struct flat f = {.n = 0};
	bool known = flatten(g, world_find(0, k->name), 0, &f);
	CHECK(!k->endpoints && k->n_leaves > 0);
	CHECK(!f.too_deep);
	for (uint32_t i = 0; i < k->n_leaves; i++) {
		const struct xds_cluster_config *leaf = g->entries[world_find(0, k->leaves[i])];
		CHECK(leaf && leaf->cluster && !is_aggregate(leaf));
	}
	if (!known)
		return;
	CHECK(k->n_leaves == (uint32_t)f.n);
	for (int i = 0; i < f.n; i++)
		CHECK(world_find(0, k->leaves[i]) == f.list[i]);
}

static void check_leaf(const struct xds_cluster_config *k)
{
	CHECK(!k->leaves && !k->n_leaves);
	if (k->cluster->kind == RES_CLUSTER_EDS) {
		if (k->endpoints)
			CHECK(strcmp(k->endpoints->base.name, k->cluster->eds_name) == 0);
		return;
	}
	char name[64];
	snprintf(name, sizeof(name), "%s:%d", k->cluster->dns.host, k->cluster->dns.port);
	if (k->endpoints)
		CHECK(strcmp(k->endpoints->base.name, name) == 0);
	else // A37-D03
		CHECK(strstr(k->resolution_note, "DNS resolution of"));
}

static void check_cluster(const struct graph *g, const struct xds_cluster_config *k)
{
	CHECK(!k->cluster == !!*k->error);
	CHECK(*k->resolution_note);
	if (!k->cluster) {
		CHECK(!k->endpoints && !k->leaves && !k->n_leaves);
	} else if (is_aggregate(k)) {
		check_aggregate(g, k);
	} else {
		check_leaf(k);
	}
}

// Everything that a cluster lists is there, unless it is too deep to be asked for, or the cluster
// itself is there for another reason than thought.
static void reach(const struct graph *g, int c, int depth, bool sure, int *least_depth)
{
	const struct xds_cluster_config *k = g->entries[c];
	if (depth >= FORBIDDEN_DEPTH || least_depth[c] <= depth || (!k && !sure))
		return;
	CHECK(k); // no route to nowhere
	least_depth[c] = depth;
	for (uint32_t i = 0; is_aggregate(k) && i < k->cluster->n_children; i++)
		reach(g, world_find(0, k->cluster->children[i]), depth + 1, sure, least_depth);
}

// The clusters that routes name.
static uint32_t find_roots(const struct xds_config *c)
{
	uint32_t roots = 0;
	for (uint32_t v = 0; v < c->routes->n_vhosts; v++) {
		const struct res_vhost *vhost = &c->routes->vhosts[v];
		if (c->vhost >= 0 && v != (uint32_t)c->vhost)
			continue;
		for (uint32_t r = 0; r < vhost->n_routes; r++)
			roots |= 1u << world_find(0, vhost->routes[r].clusters[0].name);
	}
	return roots;
}

void check_config(const struct xds_config *c, bool pinned, uint32_t held)
{
	struct graph g = {.entries = {0}};
	int least_depth[N_CLUSTERS];
	bool unknown = false; // members of an aggregate in error, which is not there to ask
	CHECK(c->listener && c->listener->is_api && c->routes);
	if (c->listener->rds_name) // DM-25
		CHECK(strcmp(c->listener->rds_name, c->routes->base.name) == 0);
	CHECK(pinned == (c->vhost >= 0));
	for (uint32_t i = 0; i < c->n_clusters; i++) {
		const struct xds_cluster_config *k = &c->clusters[i];
		CHECK(i == 0 || strcmp(k[-1].name, k->name) < 0);
		CHECK(xds_config_find_cluster(c, k->name) == k);
		g.entries[world_find(0, k->name)] = k;
		unknown |= !k->cluster && strstr(k->error, "aggregate cluster");
	}
	uint32_t roots = find_roots(c);
	for (int i = 0; i < N_CLUSTERS; i++)
		least_depth[i] = FORBIDDEN_DEPTH;
	for (int i = 0; i < N_CLUSTERS; i++)
		if (roots >> i & 1)
			reach(&g, i, 0, true, least_depth);
	for (int i = 0; i < N_CLUSTERS; i++)
		if (held >> i & 1)
			reach(&g, i, 0, false, least_depth);
	for (int i = 0; i < N_CLUSTERS; i++) {
		if (!g.entries[i])
			continue;
		CHECK(least_depth[i] < FORBIDDEN_DEPTH || unknown); // DM-14
		CHECK(g.entries[i]->is_root == (roots >> i & 1));
		check_cluster(&g, g.entries[i]);
	}
}

struct moment {
	const struct xds_res *res[RES_N_TYPES][N_CLUSTERS]; // by number
};

static void note_entry(void *ctx, const struct xds_entry_info *e)
{
	struct moment *m = ctx;
	unsigned t = 0;
	while (res_types[t] != e->type)
		t++;
	int i = world_find(t, e->name);
	CHECK(!m->res[t][i]); // each name is there once
	CHECK(strncmp(e->version, SERVER_TWICE, strlen(SERVER_TWICE)) != 0); // PC-07
	m->res[t][i] = e->res;
}

static const struct xds_res *now_of(
	const struct moment *m, const struct xds_type *type, const char *name)
{
	unsigned t = 0;
	while (res_types[t] != type)
		t++;
	return m->res[t][world_find(t, name)];
}

static void check_part(const struct moment *m, const struct xds_res *res)
{
	const struct xds_res *now = now_of(m, res->type, res->name);
	CHECK(now && xds_res_eq(now, res));
}

// An aggregate may be there, and its entry in error because of what it names.
static void check_no_part(
	const struct moment *m, const struct xds_type *type, const struct xds_cluster_config *k)
{
	const char *name = k->cluster ? k->cluster->eds_name : k->name;
	CHECK(!now_of(m, type, name) || (!k->cluster && strstr(k->error, "aggregate cluster")));
}

void check_moment(const struct xds_config *c, const struct xds_federation *client)
{
	struct moment m = {.res = {{NULL}}};
	xds_federation_each(client, note_entry, &m);
	check_part(&m, &c->listener->base);
	if (c->listener->rds_name)
		check_part(&m, &c->routes->base);
	else
		CHECK(xds_res_eq(&c->routes->base, &c->listener->routes->base));
	for (uint32_t i = 0; i < c->n_clusters; i++) {
		const struct xds_cluster_config *k = &c->clusters[i];
		if (!k->cluster) {
			check_no_part(&m, &res_type_cluster, k);
			continue;
		}
		check_part(&m, &k->cluster->base);
		if (k->cluster->kind != RES_CLUSTER_EDS)
			continue;
		if (k->endpoints)
			check_part(&m, &k->endpoints->base);
		else
			check_no_part(&m, &res_type_endpoints, k);
	}
}

static void check_same(const struct xds_cluster_config *a, const struct xds_cluster_config *b)
{
	CHECK(strcmp(a->name, b->name) == 0 && strcmp(a->error, b->error) == 0);
	CHECK(a->cluster == b->cluster && a->is_root == b->is_root);
	CHECK(a->n_leaves == b->n_leaves);
	for (uint32_t i = 0; i < a->n_leaves; i++)
		CHECK(strcmp(a->leaves[i], b->leaves[i]) == 0);
}

void check_meanwhile(const struct xds_config *before, const struct xds_config *c,
	const struct xds_federation *client)
{
	struct moment m = {.res = {{NULL}}};
	bool is_newer = false;
	xds_federation_each(client, note_entry, &m);
	CHECK(before && c->listener == before->listener && c->routes == before->routes);
	CHECK(c->vhost == before->vhost && c->n_clusters == before->n_clusters);
	for (uint32_t i = 0; i < c->n_clusters; i++) {
		const struct xds_cluster_config *k = &c->clusters[i];
		check_same(&before->clusters[i], k);
		if (k->endpoints == before->clusters[i].endpoints)
			continue;
		is_newer = true;
		check_part(&m, &k->cluster->base);
		if (k->cluster->kind == RES_CLUSTER_EDS)
			check_part(&m, &k->endpoints->base);
	}
	CHECK(is_newer);
}

void check_names(const struct xds_config *c, const bool said[][1 << 6])
{
	for (uint32_t i = 0; i < c->n_clusters; i++) {
		const struct xds_cluster_config *k = &c->clusters[i];
		if (!k->cluster || k->cluster->kind != RES_CLUSTER_LOGICAL_DNS || !k->endpoints)
			continue;
		const struct lb_leaf_endpoint e = lb_leaf_endpoints_at(k->endpoints->list, 0);
		uint32_t host = (uint32_t)(k->cluster->dns.host[1] - '0'), found = 0;
		for (uint32_t n = 0; n < e.n_addresses; n++) {
			uint32_t ip = ip_to_v4(&e.addresses[n].ip);
			bool is_of_file = ip == 0x0a080001u;
			CHECK(is_of_file ? e.n_addresses == 1 : ip >> 8 == (0x0a0900u | host));
			found |= is_of_file ? 0 : 1u << (ip & 255);
		}
		CHECK(host < N_HOSTS && (!found || said[host][found]));
	}
}
