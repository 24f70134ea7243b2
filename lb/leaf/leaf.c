// SPDX-License-Identifier: Apache-2.0
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/leaf/affinity.h"
#include "lb/leaf/leaf_inside.h"
#include "lb/leaf/leaf_layout.h"
#include "lb/member/connectivity.h"
#include "lb/pick/leaf_endpoints.h"
#include "lb/policy/priority.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_NS NS_PER_SECOND // after running out of memory
#define TIDY_NS (10 * NS_PER_MS)

// The lists.

static int give_ejection(struct lb_leaf *leaf)
{
	const struct lb_leaf_layout *l = leaf->members.layout;
	return leaf->ejection ? lb_ejection_update(leaf->ejection, l->roster->members, l->roster->n)
	                      : 0;
}

// Who has no requests is not asked either (A68-06).
static int check_members(struct lb_leaf *leaf)
{
	const struct lb_leaf_layout *l = leaf->members.layout;
	uint32_t n;
	struct lb_member **list = lb_leaf_layout_list(l, &n);
	int err = list ? lb_health_update(leaf->health, list, n, leaf->served_unchecked) : -ENOMEM;
	for (uint32_t i = n; !err && i < l->roster->n; i++)
		lb_member_set_health(list[i], LB_MEMBER_SERVES);
	free(list);
	return err;
}

// Without checks, a member that left with a verdict and came back before it was freed loses it.
static int give_health(struct lb_leaf *leaf)
{
	const struct lb_roster *r = leaf->members.layout->roster;
	int err = leaf->health ? check_members(leaf) : 0;
	for (uint32_t i = 0; !leaf->health && i < r->n; i++)
		lb_member_set_health(r->members[i], LB_MEMBER_SERVES);
	leaf->served_unchecked &= err != 0;
	return err;
}

// A55-O02, A55-O03
static void list_uses(const struct lb_leaf *leaf, uint8_t *uses)
{
	const struct lb_leaf_endpoints *e = leaf->members.layout->endpoints;
	for (uint32_t i = 0; i < e->n; i++)
		uses[i] = leaf->session_health >> e->health[i] & 1 ? LB_AFFINITY_TARGET : 0;
	lb_leaf_children_mark(&leaf->children, uses);
}

// Requests with a session, and those that get their backend's host name, look for addresses.
static bool wants_map(const struct lb_leaf *leaf)
{
	const struct lb_leaf_members *all = &leaf->members;
	const struct lb_leaf_endpoints *left = all->leaving.endpoints;
	return leaf->env->has_sessions || all->layout->endpoints->hostnames ||
	       (left && left->hostnames);
}

static int give_affinity(struct lb_leaf *leaf)
{
	const struct lb_leaf_members *all = &leaf->members;
	const struct lb_leaf_layout *l = all->layout;
	uint8_t *uses = malloc(l->roster->n + (size_t)1);
	if (!uses)
		return -ENOMEM;
	list_uses(leaf, uses);
	const struct lb_affinity_list list = {l->endpoints, l->roster, uses, all->leaving.endpoints,
		all->leaving.roster, wants_map(leaf)};
	int err = lb_affinity_update(leaf->members.affinity, &list, leaf->idle_timeout_ns);
	free(uses);
	return err;
}

static void give_lists(struct lb_leaf *leaf)
{
	bool is_owed = give_affinity(leaf);
	is_owed |= give_health(leaf) != 0;
	leaf->lists_owed = give_ejection(leaf) || is_owed;
}

// Publishing.

enum lb_state lb_leaf_state(const struct lb_leaf *leaf)
{
	// A27-I02: what is dropped anyhow needs no endpoint.
	return lb_drops_everything(leaf->layer.drops) ? LB_READY : leaf->state;
}

static int publish_once(struct lb_leaf *leaf)
{
	struct lb_leaf_layer layer = leaf->layer;
	layer.affinity = lb_affinity_map_of(leaf->members.affinity);
	layer.sessions = leaf->session_health ? layer.affinity : NULL;
	layer.picker = leaf->picker;
	struct lb_picker *p = lb_leaf_picker_new(&layer);
	return p ? leaf->parent.publish(leaf->parent.ctx, lb_leaf_state(leaf), p) : -ENOMEM;
}

// One timer for all that can wait, the soonest of which decides: leaves are many.
static void do_later(struct lb_leaf *leaf, uint64_t delay_ns)
{
	uint64_t at = twheel_now(leaf->env->wheel) + delay_ns;
	if (!twheel_armed(&leaf->later) || at < twheel_expires_ns(&leaf->later))
		twheel_arm(leaf->env->wheel, &leaf->later, at);
}

static bool owes(const struct lb_leaf *leaf)
{
	return leaf->publish_owed || leaf->lists_owed || leaf->configs_owed;
}

static void publish(struct lb_leaf *leaf)
{
	if (leaf->children.is_updating || !leaf->picker)
		return;
	leaf->publish_owed = publish_once(leaf);
	if (owes(leaf))
		do_later(leaf, RETRY_NS);
}

static int give_configs(struct lb_leaf *leaf)
{
	int err = lb_leaf_children_update(&leaf->children);
	leaf->configs_owed = err;
	return err;
}

static void retry(struct lb_leaf *leaf)
{
	if (leaf->configs_owed)
		give_configs(leaf);
	if (leaf->lists_owed)
		give_lists(leaf);
	publish(leaf);
}

static void on_children(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct lb_leaf *leaf = ctx;
	lb_picker_put(leaf->picker);
	leaf->picker = picker;
	leaf->state = state;
	publish(leaf);
}

static uint64_t last_used(void *ctx, uint32_t member)
{
	const struct lb_leaf_env *env = ((struct lb_leaf *)ctx)->env;
	return env->last_used(env->ctx, member);
}

static void on_affinity(void *ctx)
{
	publish(ctx);
}

static void tidy(struct lb_leaf *leaf)
{
	lb_leaf_members_free_unused(&leaf->members);
	bool has_left = lb_leaf_leaving_prune(&leaf->members.leaving);
	if (leaf->members.leaving.roster)
		do_later(leaf, RETRY_NS);
	if (!has_left)
		return;
	give_lists(leaf);
	publish(leaf);
}

// Policies that were replaced go at the next tick themselves.
static void tidy_soon(void *ctx)
{
	struct lb_leaf *leaf = ctx;
	if (leaf->members.made || leaf->members.leaving.roster)
		do_later(leaf, TIDY_NS);
}

static void later_fired(struct twheel_timer *t)
{
	struct lb_leaf *leaf = CONTAINER_OF(t, struct lb_leaf, later);
	if (owes(leaf))
		retry(leaf);
	tidy(leaf);
}

// The outside.

static bool make_parts(struct lb_leaf *leaf)
{
	const struct lb_leaf_children_parent parent = {on_children, tidy_soon, leaf};
	const struct lb_affinity_env affinity = {
		leaf->env->wheel, last_used, on_affinity, leaf, leaf->env->sessions_use_ejected};
	lb_leaf_members_init(&leaf->members, leaf->env, leaf->parent.owner);
	bool has_children = lb_leaf_children_init(
		&leaf->children, &leaf->members, leaf->name, &leaf->counts->wrr, parent);
	leaf->members.env.connects = &leaf->counts->connects;
	leaf->members.affinity = lb_affinity_new(&affinity);
	return has_children && leaf->members.affinity;
}

struct lb_leaf *lb_leaf_new(
	const struct lb_leaf_env *env, struct lb_leaf_parent parent, const char *name, uint32_t id)
{
	size_t size = strlen(name) + 1;
	struct lb_leaf *leaf = calloc(1, sizeof(*leaf) + size);
	if (!leaf)
		return NULL;
	*leaf = (struct lb_leaf){.env = env, .parent = parent, .later = {.fire = later_fired}};
	leaf->counts = parent.counts ? parent.counts : &leaf->uncounted;
	leaf->layer = (struct lb_leaf_layer){.id = id, .name = memcpy(leaf->name, name, size)};
	if (!make_parts(leaf)) {
		lb_leaf_free(leaf);
		return NULL;
	}
	return leaf;
}

void lb_leaf_free(struct lb_leaf *leaf)
{
	if (!leaf)
		return;
	leaf->children.is_updating = true; // nothing is told any more
	lb_leaf_children_fini(&leaf->children);
	twheel_cancel(leaf->env->wheel, &leaf->later);
	lb_affinity_free(leaf->members.affinity);
	leaf->members.affinity = NULL;
	lb_ejection_free(leaf->ejection);
	lb_health_free(leaf->health);
	lb_leaf_layout_free(leaf->members.layout);
	lb_leaf_members_fini(&leaf->members);
	lb_picker_put(leaf->picker);
	lb_leaf_layer_fini(&leaf->layer);
	free(leaf);
}

// What an update needs before anything changes.
struct plan {
	struct lb_leaf_layout *layout;
	struct lb_leaf_leaving leaving;
	struct lb_leaf_layer layer;
	struct lb_ejection *ejection; // owned; NULL = there is one, or is to be none
	struct lb_health *health; // likewise
};

static bool has_outlier(const struct lb_leaf_config *config)
{
	return config->outlier && lb_outlier_counts(config->outlier);
}

// pick_first makes members of its own, which nobody checks.
static bool has_check(const struct lb_leaf *leaf, const struct lb_leaf_config *config)
{
	const struct lb_policy_spec *spec = config->spec;
	while (spec->kind == LB_POLICY_WRR_LOCALITY)
		spec = spec->child;
	return config->check && leaf->env->probes && spec->kind != LB_POLICY_PICK_FIRST;
}

static struct lb_health *health_new(struct lb_leaf *leaf)
{
	const struct lb_health_env env = {
		.wheel = leaf->env->wheel,
		.rand = leaf->env->rand,
		.probes = leaf->env->probes,
		.security = leaf->members.env.security,
		.security_ctx = leaf->members.env.ctx,
		.is_used = leaf->env->is_used,
		.ctx = leaf->env->ctx,
		.cluster = leaf->name,
		.counts = &leaf->counts->checks,
	};
	return lb_health_new(&env);
}

static int plan_make(struct lb_leaf *leaf, const struct lb_leaf_config *config, struct plan *p)
{
	struct lb_leaf_members *all = &leaf->members;
	*p = (struct plan){.layout = lb_leaf_layout_new(
				   all, config, lb_leaf_children_exists, &leaf->children)};
	int err = p->layout
	                  ? lb_leaf_leaving_init(&p->leaving, &all->leaving, all->layout, p->layout)
	                  : -ENOMEM;
	int layer_err = lb_leaf_layer_init(&p->layer, &leaf->layer, leaf->env->breakers, config);
	const struct lb_ejection_env ejection = {leaf->env->wheel, leaf->env->rand,
		leaf->env->harvest, leaf->env->ctx, leaf->counts->outliers, leaf->name};
	bool begins = has_outlier(config) && !leaf->ejection;
	if (begins)
		p->ejection = lb_ejection_new(&ejection);
	bool checks_begin = has_check(leaf, config) && !leaf->health;
	if (checks_begin)
		p->health = health_new(leaf);
	bool lacks = (begins && !p->ejection) || (checks_begin && !p->health);
	return err || layer_err || lacks ? -ENOMEM : 0;
}

static void plan_drop(struct plan *p)
{
	lb_leaf_leaving_fini(&p->leaving);
	lb_leaf_layout_free(p->layout);
	lb_leaf_layer_fini(&p->layer);
	lb_ejection_free(p->ejection);
	lb_health_free(p->health);
}

static void end_ejection(struct lb_leaf *leaf)
{
	if (leaf->ejection)
		lb_ejection_end(leaf->ejection);
	lb_ejection_free(leaf->ejection);
	leaf->ejection = NULL;
}

static void end_health(struct lb_leaf *leaf)
{
	if (leaf->health)
		lb_health_end(leaf->health);
	lb_health_free(leaf->health);
	leaf->health = NULL;
}

static void plan_commit(
	struct lb_leaf *leaf, const struct plan *p, const struct lb_leaf_config *config)
{
	lb_leaf_members_set_timers(&leaf->members, config->timers);
	lb_leaf_leaving_fini(&leaf->members.leaving);
	leaf->members.leaving = p->leaving;
	lb_leaf_layer_fini(&leaf->layer);
	leaf->layer = p->layer;
	leaf->children.ignores_reresolution = config->ignores_reresolution;
	if (p->ejection)
		leaf->ejection = p->ejection;
	if (has_outlier(config))
		lb_ejection_configure(leaf->ejection, config->outlier);
	if (p->health)
		leaf->health = p->health;
	if (has_check(leaf, config))
		lb_health_configure(leaf->health, config->check);
	leaf->session_health = (uint8_t)config->session_health; // six bits
	leaf->idle_timeout_ns = config->idle_timeout_ns;
	lb_leaf_layout_book(p->layout, leaf->env->loads, config->locality_loads);
}

// Children read it.
static void set_layout(struct lb_leaf *leaf, struct lb_leaf_layout *l)
{
	leaf->members.layout = l;
	leaf->children.env.note = l ? l->note : "";
}

int lb_leaf_update(struct lb_leaf *leaf, const struct lb_leaf_config *config)
{
	struct lb_leaf_layout *before = leaf->members.layout;
	struct plan plan;
	int err = plan_make(leaf, config, &plan);
	if (err) {
		plan_drop(&plan);
		return err;
	}
	leaf->children.is_updating = true;
	leaf->members.env.rests_ns = 0;
	set_layout(leaf, plan.layout);
	uint32_t n = plan.layout->endpoints->n, n_before = before ? before->endpoints->n : 0;
	if (n > n_before)
		lb_connectivity_expect(leaf->members.env.connectivity, n - n_before);
	bool is_other = lb_leaf_layout_reorder(plan.layout);
	if (!before || leaf->configs_owed || is_other ||
		!lb_leaf_layout_same_configs(before, plan.layout))
		err = give_configs(leaf);
	if (!err) {
		plan_commit(leaf, &plan, config);
		leaf->served_unchecked = plan.health && before;
		lb_leaf_layout_free(before);
		lb_leaf_leaving_prune(&leaf->members.leaving);
		give_lists(leaf);
		if (!has_outlier(config))
			end_ejection(leaf);
		if (!has_check(leaf, config))
			end_health(leaf);
	} else {
		set_layout(leaf, before);
		leaf->configs_owed = false;
		leaf->lists_owed = before; // of policies that came or went meanwhile
		if (before) // some may have taken theirs
			give_configs(leaf);
	}
	leaf->children.is_updating = false;
	tidy_soon(leaf);
	publish(leaf);
	if (err)
		plan_drop(&plan);
	return err;
}

void lb_leaf_weigh(struct lb_leaf *leaf)
{
	if (!leaf->must_weigh)
		return;
	leaf->must_weigh = false;
	give_configs(leaf);
	publish(leaf);
}

void lb_leaf_want(struct lb_leaf *leaf, uint32_t member)
{
	lb_affinity_want(leaf->members.affinity, member);
	lb_leaf_members_want(&leaf->members, member);
}

uint32_t lb_leaf_expedite(struct lb_leaf *leaf)
{
	return lb_leaf_members_expedite(&leaf->members);
}

void lb_leaf_begin_sessions(struct lb_leaf *leaf)
{
	if (!leaf->members.layout)
		return;
	give_lists(leaf);
	publish(leaf);
}

void lb_leaf_exit_idle(struct lb_leaf *leaf)
{
	lb_priority_exit_idle(leaf->children.priority);
}

struct lb_member *lb_leaf_member(
	const struct lb_leaf *leaf, const struct ip_port *addresses, uint32_t n)
{
	return lb_affinity_find(leaf->members.affinity, addresses, n);
}
