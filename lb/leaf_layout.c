// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf_layout.h"

#include "lb/child_names.h"
#include "lb/member.h"

#include <stdio.h>
#include <stdlib.h>

// Counted. Most updates leave most endpoints where they were. PF-08: the same in any order.
static struct lb_member *take_member(
	const struct lb_leaf_members *from, const struct lb_leaf_endpoint *conf, uint32_t at)
{
	const struct lb_leaf_layout *before = from->before;
	if (!before)
		return from->make(from->ctx, conf->addresses, conf->n_addresses);
	struct lb_member *m = at < before->n_endpoints ? before->endpoints[at].member : NULL;
	if (m && lb_member_same_set(m, conf->addresses, conf->n_addresses))
		return lb_member_get(m);
	m = from->find(from->ctx, conf->addresses, conf->n_addresses);
	if (m)
		return lb_member_get(m);
	return from->make(from->ctx, conf->addresses, conf->n_addresses);
}

static bool copy_text(struct lb_leaf_layout *l, struct str from, const char **ret)
{
	struct str copy;
	if (!lb_arena_copy(&l->arena, from, &copy))
		return false;
	*ret = copy.p;
	return true;
}

static bool add_hostname(struct lb_leaf_layout *l, struct str name, uint32_t n_endpoints)
{
	if (!l->hostnames)
		l->hostnames = lb_arena_alloc(&l->arena, n_endpoints, sizeof(char *));
	return l->hostnames && copy_text(l, name, &l->hostnames[l->n_endpoints]);
}

// A113: the product of both shares, as fractions of 2^31; no member weighs nothing.
static uint32_t weight_among_all(uint64_t locality, uint64_t localities, uint64_t own, uint64_t all)
{
	uint64_t product = (locality << 31) / localities * ((own << 31) / all) >> 31;
	return product ? (uint32_t)product : 1;
}

struct sums {
	uint64_t localities; // of a priority
	uint64_t endpoints; // of a locality
};

// What a layout is made of.
struct plan {
	const struct lb_leaf_members *from;
	const struct lb_leaf_config *config;
	uint32_t n_endpoints; // in all
};

static bool add_endpoint(struct lb_leaf_layout *l, const struct plan *p,
	const struct lb_leaf_endpoint *conf, uint32_t weight)
{
	if (conf->hostname.len && !add_hostname(l, conf->hostname, p->n_endpoints))
		return false;
	struct lb_member *m = take_member(p->from, conf, l->n_endpoints);
	if (!m)
		return false;
	lb_member_list(m);
	l->endpoints[l->n_endpoints] = (struct lb_node_member){m, weight};
	l->health[l->n_endpoints++] = (uint8_t)conf->health;
	return true;
}

static bool has_keys(const struct lb_leaf_locality *conf)
{
	for (uint32_t i = 0; i < conf->n_endpoints; i++)
		if (conf->endpoints[i].hash_key.len)
			return true;
	return false;
}

static bool add_locality(struct lb_leaf_layout *l, const struct plan *p,
	const struct lb_leaf_locality *conf, const struct sums *sums, struct lb_node_locality *ret)
{
	bool is_split = p->config->spec->kind == LB_POLICY_WRR_LOCALITY; // T09
	const char **keys = NULL;
	*ret = (struct lb_node_locality){
		.weight = conf->weight, .members = l->endpoints + l->n_endpoints};
	if (!lb_arena_copy(&l->arena, conf->name, &ret->name))
		return false;
	if (has_keys(conf) &&
		!(keys = lb_arena_alloc(&l->arena, conf->n_endpoints, sizeof(char *))))
		return false;
	ret->hash_keys = keys;
	for (int drains = 0; drains <= 1; drains++) { // O03
		for (uint32_t i = 0; i < conf->n_endpoints; i++) {
			const struct lb_leaf_endpoint *e = &conf->endpoints[i];
			if ((e->health == LB_LEAF_DRAINING) != drains)
				continue;
			uint32_t weight = is_split
			                          ? e->weight
			                          : weight_among_all(conf->weight, sums->localities,
							    e->weight, sums->endpoints);
			if (!add_endpoint(l, p, e, weight))
				return false;
			if (drains)
				continue;
			if (keys && !copy_text(l, e->hash_key, &keys[ret->n_members]))
				return false;
			ret->n_members++;
		}
	}
	return true;
}

static uint64_t sum_of_localities(const struct lb_leaf_priority *p)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < p->n_localities; i++)
		sum += p->localities[i].weight;
	return sum;
}

static uint64_t sum_of_endpoints(const struct lb_leaf_locality *l)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < l->n_endpoints; i++)
		sum += l->endpoints[i].weight;
	return sum;
}

static bool add_priority(struct lb_leaf_layout *l, const struct plan *plan, uint32_t rank)
{
	const struct lb_leaf_config *config = plan->config;
	static const struct lb_leaf_priority empty;
	const struct lb_leaf_priority *p =
		config->n_priorities ? &config->priorities[rank] : &empty;
	struct lb_node_locality *list = lb_arena_alloc(&l->arena, p->n_localities, sizeof(*list));
	if (!list)
		return false;
	struct sums sums = {.localities = sum_of_localities(p)};
	for (uint32_t i = 0; i < p->n_localities; i++) {
		sums.endpoints = sum_of_endpoints(&p->localities[i]);
		if (!add_locality(l, plan, &p->localities[i], &sums, &list[i]))
			return false;
	}
	l->ends[rank] = l->n_endpoints;
	l->configs[rank] = (struct lb_node_config){
		.spec = config->spec,
		.localities = list,
		.n_localities = p->n_localities,
	};
	return true;
}

void lb_leaf_child_name(uint32_t number, char ret[LB_LEAF_CHILD_NAME_MAX])
{
	snprintf(ret, LB_LEAF_CHILD_NAME_MAX, "child%u", number);
}

static bool add_names(struct lb_leaf_layout *l, const struct lb_leaf_members *from,
	bool (*exists)(void *ctx, uint32_t number), void *ctx)
{
	struct lb_child_names_priority *list = calloc(l->n_priorities, sizeof(*list));
	bool is_complete = list;
	for (uint32_t i = 0; is_complete && i < l->n_priorities; i++) {
		uint32_t n = l->configs[i].n_localities;
		struct str *names = lb_arena_alloc(&l->arena, n, sizeof(*names));
		is_complete = names;
		for (uint32_t j = 0; is_complete && j < n; j++)
			names[j] = l->configs[i].localities[j].name;
		list[i] = (struct lb_child_names_priority){names, n};
	}
	if (is_complete)
		l->names = lb_child_names_new(from->before ? from->before->names : NULL, list,
			l->n_priorities, exists, ctx);
	free(list);
	for (uint32_t i = 0; l->names && i < l->n_priorities; i++) {
		char *name = lb_arena_alloc(&l->arena, 1, LB_LEAF_CHILD_NAME_MAX);
		if (!name)
			return false;
		lb_leaf_child_name(lb_child_names_at(l->names, i), name);
		l->children[i] = name;
	}
	return l->names;
}

static uint32_t count_endpoints(const struct lb_leaf_config *config)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < config->n_priorities; i++)
		for (uint32_t j = 0; j < config->priorities[i].n_localities; j++)
			n += config->priorities[i].localities[j].n_endpoints;
	return n;
}

// *at moves on to the next locality's.
static bool reorder(
	const struct lb_leaf_layout *l, const struct lb_leaf_locality *conf, uint32_t *at)
{
	bool is_other = false;
	for (int drains = 0; drains <= 1; drains++)
		for (uint32_t i = 0; i < conf->n_endpoints; i++)
			if ((conf->endpoints[i].health == LB_LEAF_DRAINING) == drains)
				is_other |= lb_member_reorder(
					l->endpoints[(*at)++].member, conf->endpoints[i].addresses);
	return is_other;
}

struct lb_leaf_layout *lb_leaf_layout_new(const struct lb_leaf_members *from,
	const struct lb_leaf_config *config, bool (*exists)(void *ctx, uint32_t number), void *ctx)
{
	struct lb_leaf_layout *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	const struct plan plan = {from, config, count_endpoints(config)};
	uint32_t n_priorities = config->n_priorities ? config->n_priorities : 1;
	l->endpoints = lb_arena_alloc(&l->arena, plan.n_endpoints, sizeof(*l->endpoints));
	l->health = lb_arena_alloc(&l->arena, plan.n_endpoints, 1);
	l->configs = lb_arena_alloc(&l->arena, n_priorities, sizeof(*l->configs));
	l->children = lb_arena_alloc(&l->arena, n_priorities, sizeof(char *));
	l->ends = lb_arena_alloc(&l->arena, n_priorities, sizeof(*l->ends));
	bool is_complete = l->endpoints && l->health && l->configs && l->children && l->ends &&
	                   copy_text(l, str_from(config->note), &l->note);
	while (is_complete && l->n_priorities < n_priorities)
		is_complete = add_priority(l, &plan, l->n_priorities++);
	if (is_complete && add_names(l, from, exists, ctx))
		return l;
	lb_leaf_layout_free(l);
	return NULL;
}

struct str lb_leaf_layout_hostname(const struct lb_leaf_layout *l, uint32_t endpoint)
{
	const char *name = l->hostnames ? l->hostnames[endpoint] : NULL;
	return name ? str_from(name) : STR("");
}

bool lb_leaf_layout_reorder(const struct lb_leaf_layout *l, const struct lb_leaf_config *config)
{
	bool is_other = false;
	uint32_t at = 0;
	for (uint32_t i = 0; i < config->n_priorities; i++)
		for (uint32_t j = 0; j < config->priorities[i].n_localities; j++)
			is_other |= reorder(l, &config->priorities[i].localities[j], &at);
	return is_other;
}

void lb_leaf_layout_free(struct lb_leaf_layout *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; i < l->n_endpoints; i++) {
		lb_member_unlist(l->endpoints[i].member);
		lb_member_put(l->endpoints[i].member);
	}
	lb_child_names_free(l->names);
	lb_arena_fini(&l->arena);
	free(l);
}

static const char *key_of(const struct lb_node_locality *l, uint32_t i)
{
	return l->hash_keys ? l->hash_keys[i] : "";
}

static bool same_locality(const struct lb_node_locality *a, const struct lb_node_locality *b)
{
	if (!str_eq(a->name, b->name) || a->weight != b->weight || a->n_members != b->n_members)
		return false;
	for (uint32_t i = 0; i < a->n_members; i++) {
		const struct lb_node_member *x = &a->members[i], *y = &b->members[i];
		if (x->member != y->member || x->weight != y->weight ||
			strcmp(key_of(a, i), key_of(b, i)) != 0)
			return false;
	}
	return true;
}

static bool same_config(const struct lb_node_config *a, const struct lb_node_config *b)
{
	if (a->spec != b->spec || a->n_localities != b->n_localities)
		return false;
	for (uint32_t i = 0; i < a->n_localities; i++)
		if (!same_locality(&a->localities[i], &b->localities[i]))
			return false;
	return true;
}

bool lb_leaf_layout_same_configs(const struct lb_leaf_layout *a, const struct lb_leaf_layout *b)
{
	if (a->n_priorities != b->n_priorities || strcmp(a->note, b->note) != 0)
		return false;
	for (uint32_t i = 0; i < a->n_priorities; i++)
		if (strcmp(a->children[i], b->children[i]) != 0 ||
			!same_config(&a->configs[i], &b->configs[i]))
			return false;
	return true;
}

uint32_t lb_leaf_layout_find(const struct lb_leaf_layout *l, const char *child)
{
	for (uint32_t i = 0; i < l->n_priorities; i++)
		if (strcmp(l->children[i], child) == 0)
			return i;
	return UINT32_MAX;
}
