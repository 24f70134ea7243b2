// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf_layout.h"

#include "lb/child_names.h"
#include "lb/hash.h"
#include "lb/member.h"

#include <stdio.h>
#include <stdlib.h>

// PF-08: the same in any order.
static uint64_t hash_of(const struct ip_port *addresses, uint32_t n)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t key[sizeof(addresses->ip.b) + 2]; // without the padding
		memcpy(key, addresses[i].ip.b, sizeof(addresses->ip.b));
		memcpy(key + sizeof(addresses->ip.b), &addresses[i].port, 2);
		sum += lb_hash(key, sizeof(key));
	}
	return sum;
}

static int compare_hash(const void *a, const void *b)
{
	const struct lb_leaf_entry *x = *(struct lb_leaf_entry *const *)a;
	const struct lb_leaf_entry *y = *(struct lb_leaf_entry *const *)b;
	return (x->hash > y->hash) - (x->hash < y->hash);
}

static const struct lb_leaf_entry *find_set(
	const struct lb_leaf_layout *l, uint64_t hash, const struct ip_port *addresses, uint32_t n)
{
	uint32_t low = 0, high = l ? l->n_endpoints : 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (l->by_hash[middle]->hash < hash)
			low = middle + 1;
		else
			high = middle;
	}
	for (; l && low < l->n_endpoints && l->by_hash[low]->hash == hash; low++)
		if (lb_member_same_set(l->by_hash[low]->member, addresses, n))
			return l->by_hash[low];
	return NULL;
}

static struct lb_member *member_new(
	const struct lb_leaf_env *env, const struct ip_port *list, uint32_t n)
{
	uint32_t id = env->member_take(env->ctx);
	if (id == UINT32_MAX)
		return NULL;
	struct lb_member *m = lb_member_new(env->member_env, id, list, n);
	if (!m)
		env->member_give(env->ctx, id);
	return m;
}

static bool take_member(const struct lb_leaf_members *from, struct lb_leaf_entry *e)
{
	const struct lb_leaf_entry *old =
		find_set(from->before, e->hash, e->addresses, e->n_addresses);
	if (old)
		e->member = lb_member_get(old->member);
	else
		e->member = member_new(from->env, e->addresses, e->n_addresses);
	return e->member;
}

static bool add_endpoint(struct lb_leaf_layout *l, const struct lb_leaf_members *from,
	const struct lb_leaf_endpoint *conf, uint32_t priority, struct str locality)
{
	struct lb_leaf_entry *e = &l->endpoints[l->n_endpoints];
	*e = (struct lb_leaf_entry){.hash = hash_of(conf->addresses, conf->n_addresses),
		.n_addresses = conf->n_addresses,
		.health = conf->health,
		.priority = priority,
		.locality = locality};
	struct ip_port *addresses =
		lb_arena_alloc(&l->arena, conf->n_addresses, sizeof(*addresses));
	if (!addresses || !lb_arena_copy(&l->arena, conf->hostname, &e->hostname))
		return false;
	memcpy(addresses, conf->addresses, conf->n_addresses * sizeof(*addresses));
	e->addresses = addresses;
	if (!take_member(from, e))
		return false;
	l->by_hash[l->n_endpoints++] = e;
	return true;
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

static bool add_locality(struct lb_leaf_layout *l, const struct lb_leaf_members *from,
	const struct lb_leaf_locality *conf, uint32_t priority, const struct sums *sums,
	bool is_split, struct lb_node_locality *ret)
{
	struct lb_node_member *members =
		lb_arena_alloc(&l->arena, conf->n_endpoints, sizeof(*members));
	*ret = (struct lb_node_locality){.weight = conf->weight, .members = members};
	if (!members || !lb_arena_copy(&l->arena, conf->name, &ret->name))
		return false;
	for (uint32_t i = 0; i < conf->n_endpoints; i++) {
		const struct lb_leaf_endpoint *e = &conf->endpoints[i];
		if (!add_endpoint(l, from, e, priority, ret->name))
			return false;
		if (e->health == LB_LEAF_DRAINING)
			continue; // O03
		struct lb_node_member *m = &members[ret->n_members++];
		m->member = l->endpoints[l->n_endpoints - 1].member;
		m->weight = is_split ? e->weight
		                     : weight_among_all(conf->weight, sums->localities, e->weight,
					       sums->endpoints);
		if (!lb_arena_copy(&l->arena, e->hash_key, &m->hash_key))
			return false;
	}
	return true;
}

static struct sums sums_of(const struct lb_leaf_priority *p, uint32_t locality)
{
	struct sums s = {0, 0};
	for (uint32_t i = 0; i < p->n_localities; i++)
		s.localities += p->localities[i].weight;
	for (uint32_t i = 0; i < p->localities[locality].n_endpoints; i++)
		s.endpoints += p->localities[locality].endpoints[i].weight;
	return s;
}

static bool add_priority(struct lb_leaf_layout *l, const struct lb_leaf_members *from,
	const struct lb_leaf_config *config, uint32_t rank)
{
	static const struct lb_leaf_priority empty;
	const struct lb_leaf_priority *p =
		config->n_priorities ? &config->priorities[rank] : &empty;
	struct lb_node_locality *list = lb_arena_alloc(&l->arena, p->n_localities, sizeof(*list));
	struct str note;
	if (!list || !lb_arena_copy(&l->arena, str_from(config->note), &note))
		return false;
	bool is_split = config->spec->kind == LB_POLICY_WRR_LOCALITY; // T09
	for (uint32_t i = 0; i < p->n_localities; i++) {
		struct sums sums = sums_of(p, i);
		if (!add_locality(l, from, &p->localities[i], rank, &sums, is_split, &list[i]))
			return false;
	}
	l->configs[rank] = (struct lb_node_config){
		.spec = config->spec,
		.localities = list,
		.n_localities = p->n_localities,
		.note = note.p ? note.p : "",
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

static size_t count_endpoints(const struct lb_leaf_config *config)
{
	size_t n = 0;
	for (uint32_t i = 0; i < config->n_priorities; i++)
		for (uint32_t j = 0; j < config->priorities[i].n_localities; j++)
			n += config->priorities[i].localities[j].n_endpoints;
	return n;
}

struct lb_leaf_layout *lb_leaf_layout_new(const struct lb_leaf_members *from,
	const struct lb_leaf_config *config, bool (*exists)(void *ctx, uint32_t number), void *ctx)
{
	struct lb_leaf_layout *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	size_t n = count_endpoints(config);
	uint32_t n_priorities = config->n_priorities ? config->n_priorities : 1;
	l->endpoints = lb_arena_alloc(&l->arena, n, sizeof(*l->endpoints));
	l->by_hash = lb_arena_alloc(&l->arena, n, sizeof(struct lb_leaf_entry *));
	l->configs = lb_arena_alloc(&l->arena, n_priorities, sizeof(*l->configs));
	l->children = lb_arena_alloc(&l->arena, n_priorities, sizeof(char *));
	bool is_complete = l->endpoints && l->by_hash && l->configs && l->children;
	while (is_complete && l->n_priorities < n_priorities)
		is_complete = add_priority(l, from, config, l->n_priorities++);
	if (is_complete && add_names(l, from, exists, ctx)) {
		qsort(l->by_hash, l->n_endpoints, sizeof(struct lb_leaf_entry *), compare_hash);
		return l;
	}
	lb_leaf_layout_free(l, from->env, from->before);
	return NULL;
}

void lb_leaf_layout_free(
	struct lb_leaf_layout *l, const struct lb_leaf_env *env, const struct lb_leaf_layout *kept)
{
	if (!l)
		return;
	for (uint32_t i = 0; i < l->n_endpoints; i++) {
		struct lb_leaf_entry *e = &l->endpoints[i];
		const struct lb_leaf_entry *other =
			find_set(kept, e->hash, e->addresses, e->n_addresses);
		if (!other || other->member != e->member)
			env->member_give(env->ctx, lb_member_id(e->member));
		lb_member_put(e->member);
	}
	lb_child_names_free(l->names);
	lb_arena_fini(&l->arena);
	free(l);
}

struct lb_member *lb_leaf_layout_member(
	const struct lb_leaf_layout *l, const struct ip_port *addresses, uint32_t n)
{
	const struct lb_leaf_entry *e = find_set(l, hash_of(addresses, n), addresses, n);
	return e ? e->member : NULL;
}

static bool same_locality(const struct lb_node_locality *a, const struct lb_node_locality *b)
{
	if (!str_eq(a->name, b->name) || a->weight != b->weight || a->n_members != b->n_members)
		return false;
	for (uint32_t i = 0; i < a->n_members; i++) {
		const struct lb_node_member *x = &a->members[i], *y = &b->members[i];
		if (x->member != y->member || x->weight != y->weight ||
			!str_eq(x->hash_key, y->hash_key))
			return false;
	}
	return true;
}

static bool same_config(const struct lb_node_config *a, const struct lb_node_config *b)
{
	if (a->spec != b->spec || a->n_localities != b->n_localities ||
		strcmp(a->note, b->note) != 0)
		return false;
	for (uint32_t i = 0; i < a->n_localities; i++)
		if (!same_locality(&a->localities[i], &b->localities[i]))
			return false;
	return true;
}

bool lb_leaf_layout_same_configs(const struct lb_leaf_layout *a, const struct lb_leaf_layout *b)
{
	if (a->n_priorities != b->n_priorities)
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
