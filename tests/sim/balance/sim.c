// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/balance/sim.h"

#include "lb/member/connectivity.h"
#include "lb/pick/breaker.h"
#include "lb/policy/node_ops.h"
#include "tests/support/check.h"
#include "tests/support/leaf_update.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const struct lb_policy_spec round_robin = {.kind = LB_POLICY_ROUND_ROBIN};
static const struct lb_policy_spec by_locality = {
	.kind = LB_POLICY_WRR_LOCALITY, .child = &round_robin};

static uint32_t take(bool *taken, uint32_t *next)
{
	for (uint32_t i = 0; i < SIM_IDS; i++) {
		uint32_t id = (*next)++ % SIM_IDS;
		if (taken[id])
			continue;
		taken[id] = true;
		return id;
	}
	return UINT32_MAX;
}

static uint32_t member_take(void *ctx, void *owner)
{
	struct sim *s = ctx;
	s->n_members++;
	return take(s->member_taken, &s->next_member);
}

static void member_give(void *ctx, uint32_t id)
{
	struct sim *s = ctx;
	assert_true(s->member_taken[id]);
	s->member_taken[id] = false;
	s->n_members--;
	lb_orca_forget(s->orca, id);
}

static uint32_t slot_take(void *ctx)
{
	struct sim *s = ctx;
	s->n_slots++;
	return take(s->slot_taken, &s->next_slot);
}

static void slot_give(void *ctx, uint32_t id)
{
	struct sim *s = ctx;
	assert_true(s->slot_taken[id]);
	s->slot_taken[id] = false;
	s->n_slots--;
}

static void harvest(void *ctx, uint32_t member, uint64_t *ret_ok, uint64_t *ret_failed)
{
	struct sim *s = ctx;
	*ret_ok = *ret_failed = 0;
	for (uint32_t i = 0; i < s->n_workers; i++) {
		struct sim_worker *w = &s->workers[i];
		*ret_ok += w->n_ok[member];
		*ret_failed += w->n_failed[member];
		w->n_ok[member] = w->n_failed[member] = 0;
	}
}

static uint64_t last_used(void *ctx, uint32_t member)
{
	struct sim *s = ctx;
	uint64_t used = 0;
	for (uint32_t i = 0; i < s->n_workers; i++)
		if (s->workers[i].used_ns[member] > used)
			used = s->workers[i].used_ns[member];
	return used;
}

static void reresolve(void *ctx)
{
	((struct sim *)ctx)->n_resolutions++;
}

static void retire(struct sim *s, struct lb_picker *p)
{
	if (!p)
		return;
	assert_true(s->n_old < sizeof(s->old) / sizeof(s->old[0]));
	s->old[s->n_old].picker = p;
	s->old[s->n_old++].until_ns = twheel_now(s->wheel) + SIM_GRACE;
}

static int publish(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct sim *s = ctx;
	retire(s, s->picker);
	s->picker = picker;
	s->version++;
	if (state != s->state || s->version == 1)
		sim_write(s, "%s", lb_state_name(state));
	s->state = state;
	return 0;
}

static void on_connect(void *ctx, struct lb_endpoint *e)
{
	sim_connect(ctx, e);
}

static void on_release(void *ctx, struct lb_endpoint *e)
{
	sim_release(ctx, e);
}

static void init_env(struct sim *s)
{
	s->env = (struct lb_leaf_env){.wheel = s->wheel,
		.rand = &s->rand,
		.member_env = &s->member_env,
		.breakers = s->breakers,
		.orca = s->orca,
		.ops_of = lb_node_ops_of,
		.has_sessions = true,
		.member_take = member_take,
		.member_give = member_give,
		.slot_take = slot_take,
		.slot_give = slot_give,
		.harvest = harvest,
		.last_used = last_used,
		.reresolve = reresolve,
		.ctx = s};
}

struct sim *sim_new(uint32_t n_workers, uint64_t seed)
{
	return sim_new_paced(n_workers, seed, 0, 0);
}

struct sim *sim_new_paced(
	uint32_t n_workers, uint64_t seed, uint32_t max_young, uint32_t max_attempts)
{
	struct sim *s = calloc(1, sizeof(*s));
	assert_non_null(s);
	s->n_workers = n_workers;
	s->wheel = twheel_new(SIM_START);
	rand_init(&s->rand, seed);
	s->probes = true;
	s->load_worker = n_workers - 1;
	s->breakers = lb_breakers_new();
	s->orca = lb_orca_table_new();
	s->connectivity = lb_connectivity_new(&(struct lb_connectivity_env){.wheel = s->wheel,
		.rand = &s->rand,
		.n_workers = n_workers,
		.connect = on_connect,
		.release = on_release,
		.ctx = s,
		.max_young_attempts = max_young,
		.max_attempts = max_attempts,
		.max_waiting = max_young,
		.on_state = lb_member_on_state});
	s->member_env = (struct lb_member_env){s->connectivity, 250 * SIM_MS};
	init_env(s);
	for (uint32_t i = 0; i < n_workers; i++) {
		struct sim_worker *w = &s->workers[i];
		rand_init(&w->rand, seed * 64 + i);
		for (uint32_t k = 0; k < SIM_IDS; k++)
			w->positions[k] = (uint32_t)rand_u64(&w->rand);
	}
	for (uint32_t i = 0; i < PLAN_ADDRESSES; i++)
		s->hosts[i] = (struct sim_host){SIM_UP, SIM_MS, SIM_MS, 0};
	for (uint32_t i = 0; i < SIM_LEAVES; i++)
		s->leaves[i].config = (struct lb_leaf_config){.spec = &by_locality,
			.max_requests = 1024,
			.eds_service_name = "",
			.session_health = 1 << LB_LEAF_UNKNOWN | 1 << LB_LEAF_HEALTHY,
			.idle_timeout_ns = 3600 * SIM_S,
			.note = ""};
	s->log = calloc(1, 1);
	return s;
}

static void put_old(struct sim *s, uint64_t now)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n_old; i++) {
		if (s->old[i].until_ns <= now)
			lb_picker_put(s->old[i].picker);
		else
			s->old[n++] = s->old[i];
	}
	s->n_old = n;
}

void sim_free(struct sim *s)
{
	for (uint32_t i = 0; i < SIM_REQUESTS; i++)
		if (s->requests[i].in_use)
			sim_end(s, &s->requests[i]);
	s->load_ns = 0;
	s->probes = false;
	lb_leaf_free(s->leaf);
	lb_aggregate_free(s->aggregate);
	for (uint32_t i = 0; i < s->n_workers; i++)
		lb_picker_put(s->workers[i].picker);
	lb_picker_put(s->picker);
	put_old(s, UINT64_MAX);
	sim_turn_workers(s);
	assert_int_equal(s->n_members, 0);
	assert_int_equal(s->n_slots, 0);
	assert_int_equal(lb_breakers_count(s->breakers), 0);
	assert_int_equal(lb_endpoint_table_count(lb_connectivity_endpoints(s->connectivity)), 0);
	for (uint32_t i = 0; i < SIM_IDS; i++)
		assert_int_equal(s->active[i], 0); // MC-12
	assert_true(twheel_next_ns(s->wheel) == UINT64_MAX);
	lb_connectivity_free(s->connectivity);
	lb_breakers_free(s->breakers);
	lb_orca_table_free(s->orca);
	twheel_free(s->wheel);
	free(s->log);
	free(s);
}

uint64_t sim_now(const struct sim *s)
{
	return twheel_now(s->wheel) - SIM_START;
}

static void give(struct sim_leaf *l, struct lb_leaf *leaf)
{
	assert_int_equal(
		leaf_update(leaf, &l->config, l->plan.priorities, l->plan.n_priorities), 0);
}

static void turn(struct sim *);

void sim_update(struct sim *s, const char *plan)
{
	struct sim_leaf *l = &s->leaves[0];
	if (!s->leaf) {
		s->leaf = lb_leaf_new(&s->env, (struct lb_leaf_parent){publish, s}, "orders", 1);
		snprintf(l->name, sizeof(l->name), "orders");
		s->n_leaves = 1;
	}
	plan_read(&l->plan, plan);
	give(l, s->leaf);
	turn(s);
}

static int configure(void *ctx, struct lb_leaf *leaf, const char *name)
{
	struct sim *s = ctx;
	for (uint32_t i = 0; i < SIM_LEAVES; i++)
		if (strcmp(s->leaves[i].name, name) == 0)
			give(&s->leaves[i], leaf);
	return 0;
}

static uint32_t leaf_id(void *ctx, const char *name)
{
	(void)ctx;
	return (uint32_t)(name[strlen(name) - 1] - '0') + 1;
}

void sim_aggregate(struct sim *s, uint32_t n, const char *const *names)
{
	if (!s->aggregate) {
		const struct lb_aggregate_env env = {&s->env, {publish, s}, configure, leaf_id};
		s->aggregate = lb_aggregate_new(&env, "all");
		s->n_leaves = SIM_LEAVES;
	}
	assert_int_equal(lb_aggregate_update(s->aggregate, names, n, ""), 0);
	turn(s);
}

void sim_update_leaf(struct sim *s, uint32_t leaf, const char *plan)
{
	struct sim_leaf *l = &s->leaves[leaf];
	snprintf(l->name, sizeof(l->name), "leaf%u", leaf);
	plan_read(&l->plan, plan);
	struct lb_leaf *made = s->aggregate ? lb_aggregate_leaf(s->aggregate, l->name) : NULL;
	if (!made)
		return;
	give(l, made);
	turn(s);
}

void sim_want(struct sim *s, uint32_t member)
{
	if (s->leaf)
		lb_leaf_want(s->leaf, member);
	for (uint32_t i = 0; s->aggregate && i < s->n_leaves; i++) {
		struct lb_leaf *leaf = lb_aggregate_leaf(s->aggregate, s->leaves[i].name);
		if (leaf)
			lb_leaf_want(leaf, member);
	}
}

static bool requests_wait(const struct sim *s)
{
	for (uint32_t i = 0; i < s->n_slots_used; i++)
		if (s->requests[i].in_use && s->requests[i].outcome == SIM_WAITS)
			return true;
	return false;
}

static void expedite(struct sim *s)
{
	uint64_t now = twheel_now(s->wheel);
	if (!lb_connectivity_n_waiting(s->connectivity) || now < s->expedite_ns)
		return;
	s->expedite_ns = now + 20 * SIM_MS;
	if (s->state == LB_READY || !requests_wait(s))
		return;
	if (s->leaf)
		lb_leaf_expedite(s->leaf);
	for (uint32_t i = 0; s->aggregate && i < s->n_leaves; i++) {
		struct lb_leaf *leaf = lb_aggregate_leaf(s->aggregate, s->leaves[i].name);
		if (leaf)
			lb_leaf_expedite(leaf);
	}
}

static void adopt(struct sim *s, struct sim_worker *w)
{
	if (w->version == s->version)
		return;
	if (w->picker)
		lb_picker_put(w->picker); // retire() keeps it for others
	w->picker = lb_picker_get(s->picker);
	w->version = s->version;
	w->changed = true;
}

static void send_load(struct sim *s)
{
	while (s->load_ns && s->load_at_ns <= twheel_now(s->wheel)) {
		s->load_at_ns += s->load_ns;
		s->load_worker = (s->load_worker + 1) % s->n_workers;
		struct sim_request *r = sim_begin(s, s->load_worker);
		sim_start(s, r);
		sim_end(s, r);
	}
}

// Everything that is due now, until nothing follows from it any more.
static void turn(struct sim *s)
{
	bool again = true;
	sim_requests_expire(s);
	expedite(s);
	for (int i = 0; again && i < 100; i++) {
		uint64_t version = s->version;
		uint32_t n_syns = s->n_syns;
		sim_turn_workers(s);
		again = false;
		for (uint32_t k = 0; k < s->n_workers; k++) {
			adopt(s, &s->workers[k]);
			if (!s->workers[k].changed)
				continue;
			sim_requests_turn(s, k);
			again = true;
		}
		again |= s->version != version || s->n_syns != n_syns;
	}
	assert_false(again);
	put_old(s, twheel_now(s->wheel));
	if (s->load_ns && s->load_at_ns == 0)
		s->load_at_ns = twheel_now(s->wheel);
	send_load(s);
	if (s->probes && s->picker) {
		sim_probe(s);
		sim_turn_workers(s);
	}
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void sim_run_to(struct sim *s, uint64_t ns)
{
	uint64_t end = SIM_START + ns;
	while (twheel_now(s->wheel) < end) {
		uint64_t now = twheel_now(s->wheel), next = twheel_next_ns(s->wheel);
		next = earliest(next, sim_next_of_workers(s));
		next = earliest(next, sim_next_of_requests(s));
		for (uint32_t i = 0; i < s->n_old; i++)
			next = earliest(next, s->old[i].until_ns);
		if (lb_connectivity_n_waiting(s->connectivity))
			next = earliest(next, s->expedite_ns);
		if (next <= now)
			next = now + SIM_MS;
		twheel_advance(s->wheel, earliest(next, end));
		turn(s);
	}
}

void sim_run(struct sim *s, uint64_t ns)
{
	sim_run_to(s, sim_now(s) + ns);
}

void sim_write(struct sim *s, const char *format, ...)
{
	char line[400];
	va_list args;
	va_start(args, format);
	uint64_t us = sim_now(s) / 1000;
	int n = snprintf(line, sizeof(line), "%llu.%03llu ", (unsigned long long)(us / 1000000),
		(unsigned long long)(us / 1000 % 1000));
	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
	va_end(args);
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	s->log = realloc(s->log, s->log_len + (size_t)n + 1);
	assert_non_null(s->log);
	memcpy(s->log + s->log_len, line, (size_t)n);
	s->log_len += (size_t)n;
	s->log[s->log_len] = 0;
}

void sim_expect(struct sim *s, const char *lines)
{
	assert_string_equal(s->log, lines);
	sim_forget(s);
}

void sim_forget(struct sim *s)
{
	s->log_len = 0;
	s->log[0] = 0;
}
