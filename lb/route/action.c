// SPDX-License-Identifier: Apache-2.0
// What is the same is found by its bytes: a policy or an action is laid out flat, with the texts it
// points to, and looked up among those that are there.
#include "lb/route/action.h"

#include "lb/index/string_index.h"
#include "lb/regex/regex.h"
#include "lb/route/rbac.h"

#include <errno.h>
#include <stdlib.h>

struct flat {
	char *p; // owned
	size_t len, room;
	bool failed;
};

struct lb_action_builder {
	struct lb_string_index *policies, *actions; // flat; numbers as in lb_actions
	struct flat flat;
	const struct lb_route_policy *last; // the conf's that was looked up last …
	uint32_t last_number; // … and its number
};

static int no_memory(struct lb_err *reterr)
{
	return lb_err_set(reterr, "out of memory");
}

static void put(struct flat *f, const void *p, size_t len)
{
	if (f->len + len > f->room) {
		size_t room = 2 * (f->len + len) + 256;
		char *grown = realloc(f->p, room);
		if (!grown) {
			f->failed = true;
			return;
		}
		f->p = grown;
		f->room = room;
	}
	if (len)
		memcpy(f->p + f->len, p, len);
	f->len += len;
}

static void put_str(struct flat *f, struct str s)
{
	put(f, &s.len, sizeof(s.len));
	put(f, s.p, s.len);
}

static void put_overrides(struct flat *f, const struct lb_filter_overrides *o)
{
	put(f, &o->n, sizeof(o->n));
	for (uint32_t i = 0; i < o->n; i++) {
		const struct lb_filter *filter = &o->list[i];
		put_str(f, filter->name);
		put(f, &filter->kind, sizeof(filter->kind));
		put(f, &filter->disabled, sizeof(filter->disabled));
		if (filter->kind == LB_FILTER_FAULT)
			put(f, &filter->fault, sizeof(filter->fault));
		if (filter->kind == LB_FILTER_RBAC)
			put_str(f, filter->rbac.conf->bytes);
		if (filter->kind != LB_FILTER_SESSION)
			continue;
		put(f, &filter->session.enabled, sizeof(filter->session.enabled));
		put_str(f, filter->session.cookie);
		put_str(f, filter->session.path);
		put(f, &filter->session.ttl_s, sizeof(filter->session.ttl_s));
	}
}

static void put_policy(struct flat *f, const struct lb_route_policy *p)
{
	put(f, &p->timeouts, sizeof(p->timeouts));
	put(f, &p->retry, sizeof(p->retry));
	put(f, &p->auto_host_rewrite, sizeof(p->auto_host_rewrite));
	put(f, &p->n_hash, sizeof(p->n_hash));
	for (uint32_t i = 0; i < p->n_hash; i++) {
		const struct lb_hash_policy *h = &p->hash[i];
		put(f, &h->kind, sizeof(h->kind));
		put(f, &h->terminal, sizeof(h->terminal));
		put_str(f, h->header);
		put_str(f, h->pattern);
		put_str(f, h->substitution);
	}
	put_overrides(f, &p->overrides);
}

static void put_action(struct flat *f, const struct lb_route_conf *conf, uint32_t policy)
{
	uint32_t n = conf->action == LB_ACTION_CLUSTERS ? conf->n_clusters : 0;
	put(f, &conf->action, sizeof(conf->action));
	put(f, &policy, sizeof(policy));
	for (uint32_t i = 0; i < n; i++) {
		const struct lb_weighted_cluster *c = &conf->clusters[i];
		put(f, &c->cluster_id, sizeof(c->cluster_id));
		put(f, &c->weight, sizeof(c->weight));
		put_overrides(f, &c->overrides);
	}
}

// The number of what is laid out. LB_STRING_INDEX_NONE = out of memory.
static uint32_t number_of(struct flat *f, struct lb_string_index *among)
{
	uint32_t i = f->failed ? LB_STRING_INDEX_NONE
	                       : lb_string_index_add(among, (struct str){f->p, f->len});
	f->len = 0;
	return i;
}

static int copy_hash(struct lb_arena *a, const struct lb_hash_policy *from,
	struct lb_hash_policy *to, struct lb_err *reterr)
{
	*to = *from;
	to->rewrite = NULL;
	if (!lb_arena_copy(a, from->header, &to->header) ||
		!lb_arena_copy(a, from->pattern, &to->pattern) ||
		!lb_arena_copy(a, from->substitution, &to->substitution))
		return no_memory(reterr);
	if (from->pattern.len == 0)
		return 0;
	to->rewrite = lb_regex_rewrite_new(to->pattern, to->substitution, reterr);
	return to->rewrite ? 0 : lb_err_within(reterr, "regex_rewrite");
}

// What it points to, once *to is in the list of those that are freed.
static int copy_policy(struct lb_arena *a, const struct lb_route_policy *from,
	struct lb_route_policy *to, struct lb_err *reterr)
{
	to->timeouts = from->timeouts;
	to->retry = from->retry;
	to->auto_host_rewrite = from->auto_host_rewrite;
	int err = lb_overrides_copy(a, &from->overrides, &to->overrides, reterr);
	if (err)
		return err;
	if (from->n_hash == 0)
		return 0;
	struct lb_hash_policy *hash = lb_arena_alloc(a, from->n_hash, sizeof(*hash));
	if (!hash)
		return no_memory(reterr);
	to->hash = hash;
	for (; to->n_hash < from->n_hash; to->n_hash++) {
		err = copy_hash(a, &from->hash[to->n_hash], &hash[to->n_hash], reterr);
		if (err)
			return lb_err_within(reterr, "hash_policy[%u]", to->n_hash);
	}
	return 0;
}

static int add_policy(struct lb_actions *as, const struct lb_route_policy *conf, uint32_t *ret,
	struct lb_err *reterr)
{
	struct lb_action_builder *b = as->builder;
	// Neighbors mostly have the same one, down to what it points to.
	if (b->last && memcmp(b->last, conf, sizeof(*conf)) == 0) {
		*ret = b->last_number;
		return 0;
	}
	put_policy(&b->flat, conf);
	uint32_t i = number_of(&b->flat, b->policies);
	if (i == LB_STRING_INDEX_NONE)
		return no_memory(reterr);
	if (i == as->n_policies) {
		if (as->n_policies == as->policies_room) {
			uint32_t room = 2 * as->policies_room + 4;
			struct lb_route_policy **list =
				realloc(as->policies, room * sizeof(struct lb_route_policy *));
			if (!list)
				return no_memory(reterr);
			as->policies = list;
			as->policies_room = room;
		}
		struct lb_route_policy *p = lb_arena_alloc(&as->arena, 1, sizeof(*p));
		if (!p)
			return no_memory(reterr);
		as->policies[as->n_policies++] = p;
		int err = copy_policy(&as->arena, conf, p, reterr);
		if (err)
			return err;
	}
	b->last = conf;
	*ret = b->last_number = i;
	return 0;
}

static int check_weights(const struct lb_route_conf *conf, struct lb_err *reterr)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < conf->n_clusters; i++)
		sum += conf->clusters[i].weight;
	if (sum > 0 && sum <= UINT32_MAX) // A28-W03, A28-W04
		return 0;
	return lb_err_set(reterr, "sum of cluster weights is %llu", (unsigned long long)sum);
}

static int copy_clusters(struct lb_arena *a, const struct lb_route_conf *conf, struct lb_action *to,
	struct lb_err *reterr)
{
	struct lb_draw *draws = lb_arena_alloc(a, conf->n_clusters, sizeof(*draws));
	if (!draws)
		return no_memory(reterr);
	to->draws = draws;
	uint32_t upto = 0;
	for (uint32_t i = 0; i < conf->n_clusters; i++) {
		const struct lb_weighted_cluster *c = &conf->clusters[i];
		if (c->weight == 0)
			continue;
		upto += c->weight;
		struct lb_draw *d = &draws[to->n_draws++];
		*d = (struct lb_draw){.cluster_id = c->cluster_id, .upto = upto};
		int err = lb_overrides_copy(a, &c->overrides, &d->overrides, reterr);
		if (err)
			return err;
	}
	return 0;
}

static bool have_builder(struct lb_actions *as)
{
	if (as->builder)
		return true;
	struct lb_action_builder *b = as->builder = calloc(1, sizeof(*b));
	if (!b)
		return false;
	b->policies = lb_string_index_new(0, 0);
	b->actions = lb_string_index_new(0, 0);
	return b->policies && b->actions;
}

int lb_actions_add(struct lb_actions *as, const struct lb_route_conf *conf, uint32_t *ret,
	struct lb_err *reterr)
{
	bool has_clusters = conf->action == LB_ACTION_CLUSTERS;
	if (has_clusters && check_weights(conf, reterr))
		return -EINVAL;
	if (!have_builder(as))
		return no_memory(reterr);
	uint32_t policy = 0;
	if (add_policy(as, &conf->policy, &policy, reterr))
		return -EINVAL;
	put_action(&as->builder->flat, conf, policy);
	uint32_t i = number_of(&as->builder->flat, as->builder->actions);
	if (i == LB_STRING_INDEX_NONE)
		return no_memory(reterr);
	*ret = i;
	if (i < as->n)
		return 0;
	if (as->n == as->room) {
		uint32_t room = 2 * as->room + 8;
		struct lb_action *list = realloc(as->list, room * sizeof(*list));
		if (!list)
			return no_memory(reterr);
		as->list = list;
		as->room = room;
	}
	as->list[i] = (struct lb_action){.kind = conf->action, .policy = as->policies[policy]};
	as->n++; // freed from now on
	return has_clusters ? copy_clusters(&as->arena, conf, &as->list[i], reterr) : 0;
}

static void builder_free(struct lb_action_builder *b)
{
	if (!b)
		return;
	lb_string_index_free(b->policies);
	lb_string_index_free(b->actions);
	free(b->flat.p);
	free(b);
}

bool lb_actions_seal(struct lb_actions *as)
{
	builder_free(as->builder);
	as->builder = NULL;
	if (as->n == 0)
		return true;
	struct lb_action *list = realloc(as->list, as->n * sizeof(*list));
	if (!list)
		return false;
	as->list = list;
	as->room = as->n;
	return true;
}

void lb_actions_fini(struct lb_actions *as)
{
	builder_free(as->builder);
	for (uint32_t i = 0; i < as->n_policies; i++) {
		for (uint32_t k = 0; k < as->policies[i]->n_hash; k++)
			lb_regex_rewrite_free(as->policies[i]->hash[k].rewrite);
		lb_overrides_fini(&as->policies[i]->overrides);
	}
	for (uint32_t i = 0; i < as->n; i++)
		for (uint32_t k = 0; k < as->list[i].n_draws; k++)
			lb_overrides_fini(&as->list[i].draws[k].overrides);
	free(as->policies);
	free(as->list);
	lb_arena_fini(&as->arena);
	*as = (struct lb_actions){0};
}

size_t lb_actions_size(const struct lb_actions *as)
{
	return as->arena.n_bytes + as->room * sizeof(as->list[0]) +
	       as->policies_room * sizeof(as->policies[0]);
}

const struct lb_draw *lb_action_draw(const struct lb_action *action, struct rand *rand)
{
	const struct lb_draw *d = action->draws;
	if (action->n_draws == 1)
		return d;
	uint64_t point = rand_below(rand, d[action->n_draws - 1].upto);
	uint32_t low = 0, high = action->n_draws - 1; // the answer is in [low, high]
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		if (point < d[mid].upto)
			high = mid;
		else
			low = mid + 1;
	}
	return &d[low];
}
