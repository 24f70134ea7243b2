// SPDX-License-Identifier: Apache-2.0
#include "lb/action.h"

#include "lb/regex.h"

#include <stdlib.h>

static bool copy_filter(struct lb_arena *a, struct lb_filter *to)
{
	if (!lb_arena_copy(a, to->name, &to->name))
		return false;
	if (to->kind != LB_FILTER_SESSION)
		return true;
	return lb_arena_copy(a, to->session.cookie, &to->session.cookie) &&
	       lb_arena_copy(a, to->session.path, &to->session.path);
}

bool lb_overrides_copy(
	struct lb_arena *a, const struct lb_filter_overrides *from, struct lb_filter_overrides *ret)
{
	*ret = (struct lb_filter_overrides){0};
	if (from->n == 0)
		return true;
	struct lb_filter *list = lb_arena_alloc(a, from->n, sizeof(*list));
	if (!list)
		return false;
	for (uint32_t i = 0; i < from->n; i++) {
		list[i] = from->list[i];
		if (!copy_filter(a, &list[i]))
			return false;
	}
	*ret = (struct lb_filter_overrides){list, from->n};
	return true;
}

static int no_memory(struct lb_err *reterr)
{
	return lb_err_set(reterr, "no memory");
}

static int copy_policy(struct lb_actions *as, const struct lb_route_policy *from,
	const struct lb_route_policy **ret, struct lb_err *reterr)
{
	struct lb_route_policy *p = lb_arena_alloc(&as->arena, 1, sizeof(*p));
	if (!p)
		return no_memory(reterr);
	*p = *from;
	p->hash = NULL;
	if (from->n_hash)
		return lb_err_set(reterr, "hash policies are not built");
	if (!lb_overrides_copy(&as->arena, &from->overrides, &p->overrides))
		return no_memory(reterr);
	*ret = p;
	return 0;
}

static int copy_clusters(struct lb_actions *as, const struct lb_route_conf *conf,
	struct lb_action *to, struct lb_err *reterr)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < conf->n_clusters; i++)
		sum += conf->clusters[i].weight;
	if (sum == 0 || sum > UINT32_MAX) // A28-W03, A28-W04
		return lb_err_set(
			reterr, "sum of cluster weights is %llu", (unsigned long long)sum);
	struct lb_draw *draws = lb_arena_alloc(&as->arena, conf->n_clusters, sizeof(*draws));
	if (!draws)
		return no_memory(reterr);
	uint32_t upto = 0;
	for (uint32_t i = 0; i < conf->n_clusters; i++) {
		const struct lb_weighted_cluster *c = &conf->clusters[i];
		if (c->weight == 0)
			continue;
		upto += c->weight;
		struct lb_draw *d = &draws[to->n_draws++];
		*d = (struct lb_draw){.cluster_id = c->cluster_id, .upto = upto};
		if (!lb_overrides_copy(&as->arena, &c->overrides, &d->overrides))
			return no_memory(reterr);
	}
	to->draws = draws;
	return 0;
}

int lb_actions_add(struct lb_actions *as, const struct lb_route_conf *conf, uint32_t *ret,
	struct lb_err *reterr)
{
	if (as->n == as->room) {
		uint32_t room = as->room ? 2 * as->room : 8;
		struct lb_action *list = realloc(as->list, room * sizeof(*list));
		if (!list)
			return no_memory(reterr);
		as->list = list;
		as->room = room;
	}
	struct lb_action action = {.kind = conf->action};
	int err = copy_policy(as, &conf->policy, &action.policy, reterr);
	if (!err && conf->action == LB_ACTION_CLUSTERS)
		err = copy_clusters(as, conf, &action, reterr);
	if (err)
		return err;
	*ret = as->n;
	as->list[as->n++] = action;
	return 0;
}

void lb_actions_fini(struct lb_actions *as)
{
	free(as->list);
	lb_arena_fini(&as->arena);
	*as = (struct lb_actions){0};
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
