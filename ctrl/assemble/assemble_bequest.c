// SPDX-License-Identifier: Apache-2.0
// What the clusters know by experience: told, for a process that follows, and taken from one that
// is followed.
#include "ctrl/assemble/assemble_inside.h"
#include "ctrl/assemble/cluster_set.h"
#include "ctrl/assemble/leaf_source.h"
#include "ctrl/assemble/overrides.h"
#include "lb/base/log.h"
#include "lb/pick/leaf_endpoints.h"

#include <string.h>

struct telling {
	struct assembler_bequest bequest;
	void (*fn)(void *ctx, const struct assembler_bequest *);
	void *ctx;
};

static void tell_leaf(void *ctx, const struct leaf_source *s, struct lb_leaf *leaf)
{
	struct telling *t = ctx;
	struct assembler_bequest *b = &t->bequest;
	const struct lb_leaf_endpoints *all = leaf && s->endpoints ? s->list : NULL;
	b->leaf = s->name;
	for (uint32_t i = 0; all && i < all->n_all; i++) {
		const struct lb_leaf_endpoint e = lb_leaf_endpoints_at(all, i);
		const struct lb_member *m = lb_leaf_member(leaf, e.addresses, e.n_addresses);
		if (!m || !lb_leaf_bequeath(leaf, m, &b->of))
			continue;
		b->addresses = e.addresses;
		b->n_addresses = e.n_addresses;
		t->fn(t->ctx, b);
	}
}

void assembler_bequeath(const struct assembler *a,
	void (*fn)(void *ctx, const struct assembler_bequest *), void *ctx)
{
	for (uint32_t i = 0; i < cluster_set_count(a->clusters); i++) {
		const struct cluster *c = cluster_set_at(a->clusters, i);
		struct telling t = {.bequest = {.cluster = c->name}, .fn = fn, .ctx = ctx};
		cluster_tree_each_leaf(c->tree, tell_leaf, &t);
	}
}

struct search {
	const struct assembler_bequest *bequest;
	bool took;
};

static void look_at_leaf(void *ctx, const struct leaf_source *s, struct lb_leaf *leaf)
{
	struct search *x = ctx;
	const struct assembler_bequest *b = x->bequest;
	struct lb_member *m = leaf && strcmp(s->name, b->leaf) == 0
	                              ? lb_leaf_member(leaf, b->addresses, b->n_addresses)
	                              : NULL;
	if (m)
		x->took |= lb_leaf_inherit(leaf, m, &b->of);
}

bool assembler_inherit(struct assembler *a, const struct assembler_bequest *b)
{
	struct search x = {b, false};
	const struct cluster *c = cluster_set_find(a->clusters, b->cluster);
	if (c)
		cluster_tree_each_leaf(c->tree, look_at_leaf, &x);
	return x.took;
}

bool assembler_inherit_override(struct assembler *a, const char *cluster,
	const struct ip_port *address, struct override what)
{
	struct lb_err err = {""};
	return overrides_set(a->tree_env.overrides, cluster, address, what, &err) == 0;
}

static void weigh_leaf(void *ctx, const struct leaf_source *s, struct lb_leaf *leaf)
{
	if (leaf)
		lb_leaf_weigh(leaf);
}

void assembler_settle_bequests(struct assembler *a)
{
	struct lb_err err = {""};
	if (assembler_apply_overrides(a, &err)) // the next update does it
		log_warn("overrides", "error=%s", log_quote(err.text));
	for (uint32_t i = 0; i < cluster_set_count(a->clusters); i++)
		cluster_tree_each_leaf(cluster_set_at(a->clusters, i)->tree, weigh_leaf, NULL);
}
