// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/leaf.h"

#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/leaf/affinity.h"
#include "lb/leaf/child_names.h"
#include "lb/leaf/ejection.h"
#include "lb/leaf/leaf_layout.h"
#include "lb/leaf/leaf_leaving.h"
#include "lb/member/connectivity.h"
#include "lb/member/member.h"
#include "lb/pick/breaker.h"
#include "lb/pick/leaf_endpoints.h"
#include "lb/pick/leaf_picker.h"
#include "lb/pick/loads.h"
#include "lb/pick/metrics.h"
#include "lb/pick/picker.h"
#include "lb/policy/dump.h"
#include "lb/policy/node.h"
#include "lb/policy/priority.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_NS NS_PER_SECOND // after running out of memory
#define TIDY_NS 10000000ull
// How many members requests make hurry at a time, and among how many these are looked for.
#define N_HURRIED 8
#define N_LOOKED_AT 1024
// How many members ask again in a turn.
#define N_A_TURN 2

// A member that a policy made for itself.
struct made {
	struct made *next;
	struct lb_member *member; // counted
};

struct lb_leaf {
	const struct lb_leaf_env *env;
	struct lb_leaf_parent parent;
	struct lb_member_env member_env; // of its members, which all are gone before
	struct lb_node_env node_env; // of its policies
	uint32_t id;
	uint32_t max_requests;
	struct lb_leaf_layout *layout; // owned; NULL before the first update
	struct lb_leaf_leaving leaving; // members that it lacks
	struct lb_priority *priority; // owned
	struct lb_ejection *ejection; // owned; NULL = nobody is to be (A50-E01)
	struct lb_affinity *affinity; // owned
	struct made *made;
	// Of the layer.
	struct lb_drops *drops; // counted; NULL = no category
	struct lb_loads *loads; // counted; NULL = none
	struct lb_breaker *breaker; // counted
	struct lb_metrics *metrics; // counted; NULL = none
	// Of the newest update, for lists that could not be made at once.
	uint64_t idle_timeout_ns;
	// What the priorities say.
	struct lb_picker *picker; // counted; NULL = nothing yet
	uint8_t state; // enum lb_state
	uint8_t session_health; // of the newest update
	bool ignores_reresolution; // of the layer
	uint32_t turn_at; // the member whose turn was last
	bool has_turns; // there was one
	bool updating; // what they say is told at the end
	bool publish_owed; // no memory
	bool configs_owed; // to the policies, of which some took those of an update that failed
	bool lists_owed; // to ejection and affinity
	struct twheel_timer later; // what is owed, and members that policies made
	char name[];
};

// One priority's policies.
struct child {
	struct lb_leaf *leaf;
	struct lb_priority_child *place;
	struct lb_graceful policy;
};

// The lists.

static bool has_child(const struct lb_leaf *leaf, uint32_t priority)
{
	return lb_priority_find(leaf->priority, leaf->layout->children[priority]);
}

// What sessions know may be of an earlier update, while those lists are owed.
static struct lb_member *find_member(void *ctx, const struct ip_port *addresses, uint32_t n)
{
	const struct lb_leaf *leaf = ctx;
	const struct lb_leaf_layout *l = leaf->layout;
	const struct lb_leaf_leaving *left = &leaf->leaving;
	struct lb_member *m = l ? lb_roster_find(l->roster, l->endpoints, addresses, n) : NULL;
	if (!m && left->roster)
		m = lb_roster_find(left->roster, left->endpoints, addresses, n);
	return m ? m : lb_affinity_find(leaf->affinity, addresses, n);
}

static int give_ejection(struct lb_leaf *leaf)
{
	const struct lb_leaf_layout *l = leaf->layout;
	return leaf->ejection ? lb_ejection_update(leaf->ejection, l->roster->members, l->roster->n)
	                      : 0;
}

// pick_first connects to members of its own, one for all endpoints.
static bool uses_members(const struct lb_policy_spec *spec)
{
	return spec->kind == LB_POLICY_WRR_LOCALITY ? uses_members(spec->child)
	                                            : spec->kind != LB_POLICY_PICK_FIRST;
}

// A55-O02, A55-O03
static void list_uses(const struct lb_leaf *leaf, uint8_t *uses)
{
	const struct lb_leaf_layout *l = leaf->layout;
	const struct lb_leaf_endpoints *e = l->endpoints;
	for (uint32_t i = 0; i < e->n; i++)
		uses[i] = leaf->session_health >> e->health[i] & 1 ? LB_AFFINITY_TARGET : 0;
	for (uint32_t rank = 0; rank < l->n_priorities && uses_members(l->spec); rank++) {
		uint32_t n;
		const struct lb_leaf_span *spans = lb_leaf_layout_spans(l, rank, &n);
		if (!has_child(leaf, rank))
			continue;
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t k = 0; k < spans[i].n_serving; k++)
				uses[spans[i].first + k] |= LB_AFFINITY_IN_CHILD;
	}
}

// Requests with a session, and those that get their backend's host name, look for addresses.
static bool wants_map(const struct lb_leaf *leaf)
{
	const struct lb_leaf_endpoints *left = leaf->leaving.endpoints;
	return leaf->env->has_sessions || leaf->layout->endpoints->hostnames ||
	       (left && left->hostnames);
}

static int give_affinity(struct lb_leaf *leaf)
{
	const struct lb_leaf_layout *l = leaf->layout;
	uint8_t *uses = malloc(l->roster->n + (size_t)1);
	if (!uses)
		return -ENOMEM;
	list_uses(leaf, uses);
	const struct lb_affinity_list list = {l->endpoints, l->roster, uses,
		leaf->leaving.endpoints, leaf->leaving.roster, wants_map(leaf)};
	int err = lb_affinity_update(leaf->affinity, &list, leaf->idle_timeout_ns);
	free(uses);
	return err;
}

static void give_lists(struct lb_leaf *leaf)
{
	bool is_owed = give_affinity(leaf);
	leaf->lists_owed = give_ejection(leaf) || is_owed;
}

// Publishing.

static int publish_once(struct lb_leaf *leaf)
{
	struct lb_leaf_layer layer = {
		.name = leaf->name,
		.id = leaf->id,
		.max_requests = leaf->max_requests,
		.drops = leaf->drops,
		.loads = leaf->loads,
		.breaker = leaf->breaker,
		.affinity = lb_affinity_map_of(leaf->affinity),
		.metrics = leaf->metrics,
		.picker = leaf->picker,
	};
	layer.sessions = leaf->session_health ? layer.affinity : NULL;
	// A27-I02: what is dropped anyhow needs no endpoint.
	enum lb_state state = lb_drops_everything(leaf->drops) ? LB_READY : leaf->state;
	struct lb_picker *p = lb_leaf_picker_new(&layer);
	return p ? leaf->parent.publish(leaf->parent.ctx, state, p) : -ENOMEM;
}

// One timer for all that can wait, the soonest of which decides: leaves are many.
static void do_later(struct lb_leaf *leaf, uint64_t delay_ns)
{
	uint64_t at = twheel_now(leaf->env->wheel) + delay_ns;
	if (!twheel_armed(&leaf->later) || at < leaf->later.expires_tick * TWHEEL_NS_PER_TICK)
		twheel_arm(leaf->env->wheel, &leaf->later, at);
}

static bool owes(const struct lb_leaf *leaf)
{
	return leaf->publish_owed || leaf->lists_owed || leaf->configs_owed;
}

static void publish(struct lb_leaf *leaf)
{
	if (leaf->updating || !leaf->picker)
		return;
	leaf->publish_owed = publish_once(leaf);
	if (owes(leaf))
		do_later(leaf, RETRY_NS);
}

static int give_configs(struct lb_leaf *leaf)
{
	int err = lb_priority_update(
		leaf->priority, leaf->layout->children, leaf->layout->n_priorities, "");
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

static int on_priority(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct lb_leaf *leaf = ctx;
	lb_picker_put(leaf->picker);
	leaf->picker = picker;
	leaf->state = state;
	publish(leaf);
	return 0;
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

// Those that no policy has any more; their connections end (PF-07).
static void free_made(struct lb_leaf *leaf)
{
	struct made **link = &leaf->made;
	while (*link) {
		struct made *m = *link;
		if (lb_member_is_shared(m->member)) {
			link = &m->next;
			continue;
		}
		*link = m->next;
		lb_member_put(m->member);
		free(m);
	}
}

static void tidy(struct lb_leaf *leaf)
{
	free_made(leaf);
	bool has_left = lb_leaf_leaving_prune(&leaf->leaving);
	if (leaf->leaving.roster)
		do_later(leaf, RETRY_NS);
	if (!has_left)
		return;
	give_lists(leaf);
	publish(leaf);
}

// Policies that were replaced go at the next tick themselves.
static void tidy_soon(struct lb_leaf *leaf)
{
	if (leaf->made || leaf->leaving.roster)
		do_later(leaf, TIDY_NS);
}

static void later_fired(struct twheel_timer *t)
{
	struct lb_leaf *leaf = CONTAINER_OF(t, struct lb_leaf, later);
	if (owes(leaf))
		retry(leaf);
	tidy(leaf);
}

static void on_member(void *ctx, struct lb_member *m)
{
	struct lb_leaf *leaf = ctx;
	if (leaf->affinity)
		lb_affinity_note(leaf->affinity, m);
}

// Not sooner: what picks it counts under its number.
static void on_member_gone(void *ctx, uint32_t id)
{
	const struct lb_leaf_env *env = ((struct lb_leaf *)ctx)->env;
	env->member_give(env->ctx, id);
}

// The first one is by chance: other processes have the same lists.
static struct lb_member *next_in_turn(struct lb_leaf *leaf, const struct lb_roster *r)
{
	uint32_t last = leaf->has_turns ? leaf->turn_at : (uint32_t)rand_u64(leaf->env->rand);
	leaf->has_turns = true;
	leaf->turn_at = (last % r->n + 1) % r->n;
	return r->members[leaf->turn_at];
}

static void take_turn(struct lb_turn *t)
{
	struct lb_leaf *leaf = CONTAINER_OF(t, struct lb_leaf, member_env.turn);
	const struct lb_roster *r = leaf->layout ? leaf->layout->roster : NULL;
	uint32_t n = r ? r->n : 0, n_asked = 0;
	for (uint32_t i = 0; i < n && n_asked < N_A_TURN; i++)
		n_asked += lb_member_ask_again(next_in_turn(leaf, r));
	if (n_asked == N_A_TURN)
		lb_connectivity_queue(leaf->member_env.connectivity, t);
}

// The priorities' policies.

static int on_node(struct lb_graceful *g, enum lb_state state, struct lb_picker *picker)
{
	struct child *c = CONTAINER_OF(g, struct child, policy);
	tidy_soon(c->leaf); // one policy may have taken another's place
	lb_priority_report(c->place, state, picker);
	return 0;
}

static uint32_t slot_take(void *ctx)
{
	const struct lb_leaf_env *env = ((struct lb_leaf *)ctx)->env;
	return env->slot_take(env->ctx);
}

static void slot_give(void *ctx, uint32_t slot)
{
	const struct lb_leaf_env *env = ((struct lb_leaf *)ctx)->env;
	env->slot_give(env->ctx, slot);
}

// Counted.
static struct lb_member *make_member(void *ctx, const struct ip_port *addresses, uint32_t n)
{
	struct lb_leaf *leaf = ctx;
	const struct lb_leaf_env *env = leaf->env;
	uint32_t id = env->member_take(env->ctx, leaf->parent.owner);
	if (id == UINT32_MAX)
		return NULL;
	struct lb_member *m = lb_member_new(&leaf->member_env, id, addresses, n);
	if (!m)
		env->member_give(env->ctx, id);
	return m;
}

// Known while the policy has it: the same addresses are the same member.
static struct lb_member *member_new(void *ctx, const struct ip_port *addresses, uint32_t n)
{
	struct lb_leaf *leaf = ctx;
	for (struct made *m = leaf->made; m; m = m->next) {
		if (!lb_member_same_set(m->member, addresses, n))
			continue;
		lb_member_reorder(m->member, addresses);
		return lb_member_get(m->member);
	}
	struct made *m = calloc(1, sizeof(*m));
	if (m)
		m->member = make_member(leaf, addresses, n);
	if (!m || !m->member) {
		free(m);
		return NULL;
	}
	m->next = leaf->made;
	leaf->made = m;
	return lb_member_get(m->member);
}

// A56-P14, A74-C06
static void reresolve(void *ctx)
{
	const struct lb_leaf *leaf = ctx;
	if (leaf->env->reresolve && !leaf->ignores_reresolution)
		leaf->env->reresolve(leaf->env->ctx);
}

// During an update that is said in the lists.
static void tell_affinity(const struct child *c, bool in_child)
{
	const struct lb_leaf_layout *l = c->leaf->layout;
	uint32_t rank = lb_leaf_layout_find(l, lb_priority_child_name(c->place));
	if (rank == UINT32_MAX || c->leaf->updating || !uses_members(l->spec))
		return;
	uint32_t n;
	const struct lb_leaf_span *spans = lb_leaf_layout_spans(l, rank, &n);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < spans[i].n_serving; k++)
			lb_affinity_set_in_child(c->leaf->affinity,
				l->roster->members[spans[i].first + k], in_child);
}

static void *child_create(void *ctx, struct lb_priority_child *place, const char *name)
{
	struct lb_leaf *leaf = ctx;
	struct child *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct child){.leaf = leaf, .place = place};
	(void)name;
	lb_graceful_init(&c->policy, on_node);
	tell_affinity(c, true);
	return c;
}

static int child_update(void *ctx, void *child, const char *name)
{
	struct lb_leaf *leaf = ctx;
	struct child *c = child;
	const struct lb_leaf_layout *l = leaf->layout;
	uint32_t rank = lb_leaf_layout_find(l, name);
	// A name of before an update that ran out of memory, and that is being taken back.
	if (rank == UINT32_MAX)
		return -ENOMEM;
	struct lb_node_config *config = lb_leaf_layout_config(l, rank);
	int err = config ? lb_graceful_update(&c->policy, &leaf->node_env, config) : -ENOMEM;
	free(config);
	return err;
}

static void child_exit_idle(void *ctx, void *child)
{
	(void)ctx;
	lb_graceful_exit_idle(&((struct child *)child)->policy);
}

static void child_dump(void *ctx, const void *child, struct lb_dump *d)
{
	(void)ctx;
	lb_graceful_dump(&((const struct child *)child)->policy, d);
}

static void child_free(void *ctx, void *child)
{
	struct child *c = child;
	(void)ctx;
	lb_graceful_fini(&c->policy);
	if (c->leaf->affinity)
		tell_affinity(c, false);
	tidy_soon(c->leaf);
	free(c);
}

static bool child_exists(void *ctx, uint32_t number)
{
	char name[LB_LEAF_CHILD_NAME_MAX];
	lb_leaf_child_name(number, name);
	return lb_priority_find(((struct lb_leaf *)ctx)->priority, name);
}

// The outside.

static bool make_parts(struct lb_leaf *leaf)
{
	static const struct lb_priority_ops priority = {
		child_create, child_update, child_exit_idle, child_dump, child_free, on_priority};
	const struct lb_affinity_env affinity = {
		leaf->env->wheel, last_used, on_affinity, leaf, leaf->env->sessions_use_ejected};
	leaf->priority = lb_priority_new(&priority, leaf, leaf->env->wheel);
	leaf->affinity = lb_affinity_new(&affinity);
	return leaf->priority && leaf->affinity;
}

static const struct lb_node_services node_services = {slot_take, slot_give, member_new, reresolve};

static void init_envs(struct lb_leaf *leaf)
{
	const struct lb_leaf_env *env = leaf->env;
	leaf->member_env = *env->member_env;
	leaf->member_env.on_change = on_member;
	leaf->member_env.on_gone = on_member_gone;
	leaf->member_env.turn.take = take_turn;
	leaf->member_env.ctx = leaf;
	leaf->node_env = (struct lb_node_env){
		.cluster = leaf->name,
		.note = "",
		.wheel = env->wheel,
		.rand = env->rand,
		.orca = env->orca,
		.ops_of = env->ops_of,
		.services = &node_services,
		.ctx = leaf,
	};
	lb_node_env_init(&leaf->node_env);
}

struct lb_leaf *lb_leaf_new(
	const struct lb_leaf_env *env, struct lb_leaf_parent parent, const char *name, uint32_t id)
{
	size_t size = strlen(name) + 1;
	struct lb_leaf *leaf = calloc(1, sizeof(*leaf) + size);
	if (!leaf)
		return NULL;
	*leaf = (struct lb_leaf){
		.env = env, .parent = parent, .id = id, .later = {.fire = later_fired}};
	memcpy(leaf->name, name, size);
	init_envs(leaf);
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
	leaf->updating = true; // nothing is told any more
	lb_priority_free(leaf->priority);
	lb_node_env_fini(&leaf->node_env);
	twheel_cancel(leaf->env->wheel, &leaf->later);
	lb_affinity_free(leaf->affinity);
	leaf->affinity = NULL;
	lb_ejection_free(leaf->ejection);
	free_made(leaf);
	lb_leaf_leaving_fini(&leaf->leaving);
	lb_leaf_layout_free(leaf->layout);
	lb_picker_put(leaf->picker);
	lb_drops_put(leaf->drops);
	lb_loads_put(leaf->loads);
	lb_metrics_put(leaf->metrics);
	lb_breaker_put(leaf->breaker);
	lb_connectivity_unqueue(leaf->env->member_env->connectivity, &leaf->member_env.turn);
	free(leaf);
}

// What an update needs before anything changes.
struct plan {
	struct lb_leaf_layout *layout;
	struct lb_leaf_leaving leaving;
	struct lb_drops *drops; // counted; NULL = no category
	struct lb_breaker *breaker; // counted
	struct lb_ejection *ejection; // owned; NULL = there is one, or is to be none
};

static bool has_outlier(const struct lb_leaf_config *config)
{
	return config->outlier && lb_outlier_counts(config->outlier);
}

static int plan_make(struct lb_leaf *leaf, const struct lb_leaf_config *config, struct plan *p)
{
	const struct lb_leaf_members from = {leaf->layout, find_member, make_member, leaf};
	uint32_t n = config->endpoints->n, n_before = leaf->layout ? leaf->layout->endpoints->n : 0;
	leaf->member_env.n_expected = n > n_before ? n - n_before : 0;
	*p = (struct plan){.layout = lb_leaf_layout_new(&from, config, child_exists, leaf)};
	leaf->member_env.n_expected = 0;
	int err = p->layout ? lb_leaf_leaving_init(
				      &p->leaving, &leaf->leaving, leaf->layout, p->layout)
	                    : -ENOMEM;
	if (leaf->drops && lb_drops_same(leaf->drops, config->drops, config->n_drops))
		p->drops = lb_drops_get(leaf->drops);
	else if (config->n_drops)
		p->drops = lb_drops_new(config->drops, config->n_drops);
	p->breaker = lb_breakers_get(leaf->env->breakers, leaf->name, config->eds_service_name);
	const struct lb_ejection_env ejection = {
		leaf->env->wheel, leaf->env->rand, leaf->env->harvest, leaf->env->ctx};
	bool begins = has_outlier(config) && !leaf->ejection;
	if (begins)
		p->ejection = lb_ejection_new(&ejection);
	return (p->drops || !config->n_drops) && p->breaker && (p->ejection || !begins) ? err
	                                                                                : -ENOMEM;
}

static void plan_drop(struct lb_leaf *leaf, struct plan *p)
{
	lb_leaf_leaving_fini(&p->leaving);
	lb_leaf_layout_free(p->layout);
	lb_drops_put(p->drops);
	lb_breaker_put(p->breaker);
	lb_ejection_free(p->ejection);
}

// What is so already is not written: of most nobody ever wants to know, and a table that nobody
// wrote to takes no memory.
static void book_member(uint32_t *load, uint32_t of_locality)
{
	if (__atomic_load_n(load, __ATOMIC_RELAXED) != of_locality)
		__atomic_store_n(load, of_locality, __ATOMIC_RELAXED);
}

// A75-O21: wherever a pick finds it.
static void book(uint32_t *loads, const struct lb_leaf_layout *l, const uint32_t *of_localities)
{
	for (uint32_t i = 0; loads && i < l->endpoints->n_spans; i++) {
		const struct lb_leaf_span *s = &l->endpoints->spans[i];
		for (uint32_t k = 0; k < s->n_serving + s->n_draining; k++)
			book_member(&loads[lb_member_id(l->roster->members[s->first + k])],
				of_localities ? of_localities[i] : 0);
	}
}

static void end_ejection(struct lb_leaf *leaf)
{
	if (leaf->ejection)
		lb_ejection_end(leaf->ejection);
	lb_ejection_free(leaf->ejection);
	leaf->ejection = NULL;
}

static void plan_commit(
	struct lb_leaf *leaf, const struct plan *p, const struct lb_leaf_config *config)
{
	lb_leaf_leaving_fini(&leaf->leaving);
	leaf->leaving = p->leaving;
	lb_drops_put(leaf->drops);
	lb_breaker_put(leaf->breaker);
	leaf->drops = p->drops;
	leaf->breaker = p->breaker;
	lb_loads_get(config->loads);
	lb_loads_put(leaf->loads);
	leaf->loads = config->loads;
	lb_metrics_get(config->metrics);
	lb_metrics_put(leaf->metrics);
	leaf->metrics = config->metrics;
	leaf->max_requests = config->max_requests;
	leaf->ignores_reresolution = config->ignores_reresolution;
	if (p->ejection)
		leaf->ejection = p->ejection;
	if (has_outlier(config))
		lb_ejection_configure(leaf->ejection, config->outlier);
	leaf->session_health = (uint8_t)config->session_health; // six bits
	leaf->idle_timeout_ns = config->idle_timeout_ns;
	book(leaf->env->loads, p->layout, config->locality_loads);
}

// Children read it.
static void set_layout(struct lb_leaf *leaf, struct lb_leaf_layout *l)
{
	leaf->layout = l;
	leaf->node_env.note = l ? l->note : "";
}

int lb_leaf_update(struct lb_leaf *leaf, const struct lb_leaf_config *config)
{
	struct lb_leaf_layout *before = leaf->layout;
	struct plan plan;
	int err = plan_make(leaf, config, &plan);
	if (err) {
		plan_drop(leaf, &plan);
		return err;
	}
	leaf->updating = true;
	leaf->member_env.rests_ns = 0;
	set_layout(leaf, plan.layout);
	uint32_t n = plan.layout->endpoints->n, n_before = before ? before->endpoints->n : 0;
	if (n > n_before)
		lb_connectivity_expect(leaf->member_env.connectivity, n - n_before);
	bool is_other = lb_leaf_layout_reorder(plan.layout);
	if (!before || leaf->configs_owed || is_other ||
		!lb_leaf_layout_same_configs(before, plan.layout))
		err = give_configs(leaf);
	if (!err) {
		plan_commit(leaf, &plan, config);
		lb_leaf_layout_free(before);
		lb_leaf_leaving_prune(&leaf->leaving);
		give_lists(leaf);
		if (!has_outlier(config))
			end_ejection(leaf);
	} else {
		set_layout(leaf, before);
		leaf->configs_owed = false;
		leaf->lists_owed = before; // of policies that came or went meanwhile
		if (before) // some may have taken theirs
			give_configs(leaf);
	}
	leaf->updating = false;
	tidy_soon(leaf);
	publish(leaf);
	if (err)
		plan_drop(leaf, &plan);
	return err;
}

void lb_leaf_want(struct lb_leaf *leaf, uint32_t member)
{
	lb_affinity_want(leaf->affinity, member);
	for (struct made *m = leaf->made; m; m = m->next)
		if (lb_member_id(m->member) == member)
			lb_member_need(m->member);
}

// While all of its endpoints are down a cluster has requests wait. So it is let rest while there is
// nothing to gain.
uint32_t lb_leaf_hurry(struct lb_leaf *leaf)
{
	struct lb_member_env *env = &leaf->member_env;
	const struct lb_connectivity *c = env->connectivity;
	if (twheel_now(leaf->env->wheel) < env->rests_ns)
		return 0;
	const struct lb_roster *r = leaf->layout ? leaf->layout->roster : NULL;
	uint32_t n = r ? r->n : 0, n_hurried = 0, i = 0, n_made = 0;
	uint32_t most = n < N_LOOKED_AT ? n : N_LOOKED_AT;
	for (; i < most && n_hurried < N_HURRIED && lb_connectivity_may_hurry(c); i++)
		n_hurried += lb_member_hurry(next_in_turn(leaf, r));
	struct made *m = leaf->made;
	for (; m && n_hurried < N_HURRIED && lb_connectivity_may_hurry(c); m = m->next, n_made++)
		n_hurried += lb_member_hurry(m->member);
	if (n_hurried == N_HURRIED)
		env->rests_ns = lb_connectivity_aging_ns(c);
	else if (i == n && lb_connectivity_may_hurry(c))
		env->rests_ns = UINT64_MAX;
	return i + n_made;
}

void lb_leaf_begin_sessions(struct lb_leaf *leaf)
{
	if (!leaf->layout)
		return;
	give_lists(leaf);
	publish(leaf);
}

void lb_leaf_exit_idle(struct lb_leaf *leaf)
{
	lb_priority_exit_idle(leaf->priority);
}

struct lb_member *lb_leaf_member(
	const struct lb_leaf *leaf, const struct ip_port *addresses, uint32_t n)
{
	return lb_affinity_find(leaf->affinity, addresses, n);
}

void lb_leaf_look(const struct lb_leaf *leaf, const struct lb_member *m, struct lb_leaf_record *ret)
{
	const struct lb_leaf_layout *l = leaf->layout;
	const struct lb_policy_spec *spec = l ? l->spec : NULL;
	*ret = (struct lb_leaf_record){0};
	if (leaf->ejection)
		(void)lb_ejection_find(leaf->ejection, m, &ret->ejection);
	while (spec && spec->kind == LB_POLICY_WRR_LOCALITY)
		spec = spec->child;
	if (!spec || spec->kind != LB_POLICY_WEIGHTED_ROUND_ROBIN || !leaf->env->orca)
		return;
	const struct lb_orca_conf conf = {
		spec->wrr.error_penalty, spec->wrr.blackout_ns, spec->wrr.expiration_ns};
	ret->is_weighed = true;
	ret->standing = lb_orca_look(leaf->env->orca, lb_member_id(m), &conf,
		twheel_now(leaf->env->wheel), &ret->weight);
}

static void dump_drops(const struct lb_drops *drops, struct lb_dump *d)
{
	for (uint32_t i = 0; drops && i < lb_drops_count(drops); i++) {
		d->enter(d, "drop", "");
		lb_dump_text(d, "category", lb_drops_name(drops, i));
		lb_dump_number(d, "per_million", lb_drops_per_million(drops, i));
		lb_dump_leave(d);
	}
}

// A75-T01
void lb_leaf_dump(const struct lb_leaf *leaf, struct lb_dump *d)
{
	enum lb_state state = lb_drops_everything(leaf->drops) ? LB_READY : leaf->state;
	lb_dump_enter(d, "cds", leaf->picker ? state : LB_CONNECTING);
	lb_dump_text(d, "cluster", leaf->name);
	d->enter(d, "outlier_detection", "");
	lb_dump_text(d, "counts", leaf->ejection ? "yes" : "no");
	lb_dump_number(d, "ejected", leaf->ejection ? lb_ejection_n_ejected(leaf->ejection) : 0);
	if (leaf->ejection)
		lb_ejection_dump(leaf->ejection, d);
	d->enter(d, "xds_cluster_impl", "");
	lb_dump_number(d, "max_requests", leaf->max_requests);
	lb_dump_number(d, "in_flight", leaf->breaker ? lb_breaker_in_flight(leaf->breaker) : 0);
	lb_dump_number(d, "drop_categories", leaf->drops ? lb_drops_count(leaf->drops) : 0);
	dump_drops(leaf->drops, d);
	d->enter(d, "xds_override_host", "");
	lb_affinity_dump(leaf->affinity, d);
	lb_priority_dump(leaf->priority, d);
	for (int i = 0; i < 4; i++)
		lb_dump_leave(d);
}
