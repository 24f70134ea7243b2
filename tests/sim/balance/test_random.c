// SPDX-License-Identifier: Apache-2.0
// Lives of a cluster by chance: faults, updates of everything, sessions; the rules that hold at
// every step are looked at in every step. balance_random [first seed [number of seeds]]
#include "lb/base/time.h"
#include "tests/sim/balance/sim.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>

#define N_ADDRESSES 24
#define N_STEPS 400

static const struct lb_policy_spec round_robin = {.kind = LB_POLICY_ROUND_ROBIN};
static const struct lb_policy_spec least = {
	.kind = LB_POLICY_LEAST_REQUEST, .least_request = {.choice_count = 2}};
static const struct lb_policy_spec weighted = {.kind = LB_POLICY_WEIGHTED_ROUND_ROBIN,
	.wrr = {.update_ns = SIM_S, .expiration_ns = 180 * SIM_S, .blackout_ns = SIM_S}};
static const struct lb_policy_spec ring = {
	.kind = LB_POLICY_RING_HASH, .ring_hash = {.min_size = 64, .max_size = 256}};
static const struct lb_policy_spec first = {.kind = LB_POLICY_PICK_FIRST};
static const struct lb_policy_spec split[] = {
	{.kind = LB_POLICY_WRR_LOCALITY, .child = &round_robin},
	{.kind = LB_POLICY_WRR_LOCALITY, .child = &least},
	{.kind = LB_POLICY_WRR_LOCALITY, .child = &weighted},
};
static const struct lb_policy_spec *const specs[] = {
	&split[0], &split[1], &split[2], &round_robin, &least, &weighted, &ring, &first};

static uint64_t first_seed = 1, n_seeds = 60, last_seed;

struct life {
	struct sim *s;
	struct rand rand;
	char plan[1024];
	uint64_t left_ns[N_ADDRESSES]; // UINT64_MAX = it is in the configuration
	// Since an address was last connected, or nobody's, or fails for another reason: what BO-01
	// allows from there on.
	uint32_t n_tries[N_ADDRESSES];
	uint64_t since_ns[N_ADDRESSES];
};

static uint32_t below(struct life *l, uint32_t n)
{
	return (uint32_t)rand_below(&l->rand, n);
}

// Three priorities, four localities, each address in at most one of them.
static void make_plan(struct life *l)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	char *at = l->plan, *end = l->plan + sizeof(l->plan);
	uint32_t place[N_ADDRESSES], n_priorities = 1 + below(l, 3);
	bool used[4] = {0};
	for (uint32_t i = 0; i < N_ADDRESSES; i++)
		place[i] = below(l, 6); // of a locality; more = nowhere
	for (uint32_t p = 0; p < n_priorities; p++) {
		const char *comma = p ? "; " : "";
		for (uint32_t k = 0; k < 4; k++) {
			if (used[k] || (below(l, 2) && !(p + 1 == n_priorities && comma[0])))
				continue;
			char list[256];
			size_t n = 0;
			for (uint32_t i = 0; i < N_ADDRESSES; i++)
				if (place[i] == k)
					n += (size_t)snprintf(list + n, sizeof(list) - n, " %u%s",
						i, below(l, 12) ? "" : "d");
			if (n == 0)
				continue;
			used[k] = true;
			at += snprintf(at, (size_t)(end - at), "%s%s*%u:%s", comma, names[k],
				1 + below(l, 5), list);
			comma = ", ";
		}
		if (comma[0] != ',')
			break; // nothing is left for this one
	}
	if (at == l->plan)
		snprintf(l->plan, sizeof(l->plan), "a: 0 1 2");
}

static void update(struct life *l)
{
	struct sim *s = l->s;
	static struct plan plan;
	plan_read(&plan, l->plan);
	for (uint32_t i = 0; i < N_ADDRESSES; i++) {
		bool is_in = plan_priority_of(&plan, i) != UINT32_MAX;
		if (is_in)
			l->left_ns[i] = UINT64_MAX;
		else if (l->left_ns[i] == UINT64_MAX)
			l->left_ns[i] = sim_now(s);
	}
	sim_update(s, l->plan);
}

static void change(struct life *l)
{
	struct sim *s = l->s;
	struct lb_leaf_config *c = &s->leaves[0].config;
	uint32_t i = below(l, N_ADDRESSES);
	switch (below(l, 12)) {
	case 0:
		make_plan(l);
		update(l);
		break;
	case 1:
		c->spec = specs[below(l, sizeof(specs) / sizeof(specs[0]))];
		update(l);
		break;
	case 2:
		c->session_health ^= 1 << LB_LEAF_DRAINING;
		c->idle_timeout_ns = (120 + below(l, 300)) * SIM_S;
		update(l);
		break;
	case 3:
		c->outlier = c->outlier ? NULL : &s->leaves[0].outlier;
		update(l);
		break;
	case 4:
	case 5:
		sim_set(s, i, (enum sim_host_kind)below(l, 4));
		l->n_tries[i] = 0;
		break;
	case 6:
		sim_set(s, i, SIM_UP);
		break;
	case 7:
		sim_reset(s, i);
		break;
	case 8:
		sim_reset_at(s, below(l, s->n_workers), i);
		break;
	case 9:
		sim_goaway(s, i);
		break;
	case 10:
		s->hosts[i].fails_percent = 100 - s->hosts[i].fails_percent;
		break;
	default:
		break; // only time passes
	}
}

// A58: whatever backends may say of themselves.
static void report(struct life *l)
{
	struct lb_orca_report r = {.qps = 1 + below(l, 100), .cpu_utilization = 0.5};
	lb_orca_report(l->s->orca, below(l, 64), &r, twheel_now(l->s->wheel));
}

static struct sim_request *request(struct life *l)
{
	struct sim_request *r = sim_begin(l->s, below(l, l->s->n_workers));
	if (below(l, 2))
		sim_bind(r, below(l, N_ADDRESSES));
	r->lasts_ns = below(l, 3000) * SIM_MS;
	r->deadline_ns = twheel_now(l->s->wheel) + 30 * SIM_S;
	sim_start(l->s, r);
	// MC-04: who fails a request is TRANSIENT_FAILURE for everybody.
	if (r->outcome == SIM_FAILED)
		assert_int_equal(l->s->state, LB_TRANSIENT_FAILURE);
	return r;
}

static bool is_usable(const struct sim *s, const struct lb_leaf_endpoint *e)
{
	struct lb_affinity_host h;
	const struct lb_leaf_layer *layer = sim_layer(s);
	bool is_barred = layer && lb_affinity_map_find(layer->affinity, &e->addresses[0], &h) &&
	                 h.state->is_barred;
	return e->health != LB_LEAF_DRAINING && !is_barred &&
	       sim_n_connections(s, plan_number(&e->addresses[0]));
}

static bool each_locality_has_somebody(const struct sim *s)
{
	const struct plan *p = &s->leaves[0].plan;
	for (uint32_t i = 0; i < p->n_localities; i++) {
		const struct lb_leaf_locality *l = &p->localities[i];
		uint32_t n = 0;
		for (uint32_t k = 0; k < l->n_endpoints; k++)
			n += is_usable(s, &l->endpoints[k]);
		if (n == 0)
			return false;
	}
	return true;
}

// UPD-03: nobody is picked who left more than two grace periods ago, unless a list in his place has
// nobody to take over (RR-04, A52-T12).
static void on_served(void *ctx, uint32_t address)
{
	struct life *l = ctx;
	if (l->left_ns[address] != UINT64_MAX &&
		sim_now(l->s) - l->left_ns[address] > 2 * SIM_GRACE)
		assert_false(each_locality_has_somebody(l->s));
}

// How many attempts BO-01 allows in this time, with the jitter that allows most.
static uint32_t allowed(uint64_t ns)
{
	double wait = 1, left = (double)ns / (double)NS_PER_SECOND;
	uint32_t n = 1;
	for (; left >= 0.8 * wait; n++) {
		left -= 0.8 * wait;
		wait = wait * 1.6 < 120 ? wait * 1.6 : 120;
	}
	return n;
}

// MC-07: as if there were one worker, but for one attempt of each, which may not have heard yet
// that the address is READY no more (MC-04).
static void on_syn(void *ctx, uint32_t i)
{
	struct life *l = ctx;
	uint64_t now = sim_now(l->s);
	if (sim_n_connections(l->s, i)) { // not dead: whoever lacks one tries for himself
		l->n_tries[i] = 0;
		return;
	}
	if (l->n_tries[i]++ == 0)
		l->since_ns[i] = now;
	uint32_t most = allowed(now - l->since_ns[i]) + l->s->n_workers;
	assert_true(l->n_tries[i] <= most);
}

static void on_connected(void *ctx, uint32_t i)
{
	struct life *l = ctx;
	l->n_tries[i] = 0;
}

// Its backoff goes with the record, as with a subchannel of gRPC's: whoever takes the address up
// again, be it an update or a session, begins with the shortest wait.
static void on_released(void *ctx, uint32_t i)
{
	((struct life *)ctx)->n_tries[i] = 0;
}

static void end_requests(struct life *l)
{
	for (uint32_t i = 0; i < SIM_REQUESTS; i++) {
		struct sim_request *r = &l->s->requests[i];
		bool is_over = r->in_use && r->outcome != SIM_WAITS && r->outcome != SIM_SENT;
		if (is_over)
			sim_end(l->s, r);
	}
}

static void step(struct life *l)
{
	change(l);
	for (uint32_t k = below(l, 4); k > 0; k--)
		request(l);
	report(l);
	sim_run(l->s, below(l, 10) ? below(l, 500) * SIM_MS : below(l, 60) * SIM_S);
	end_requests(l);
}

// Once nothing is wrong any more, whoever lives in the first priority has all the requests.
static void settle(struct life *l)
{
	struct sim *s = l->s;
	for (uint32_t i = 0; i < N_ADDRESSES; i++) {
		sim_set(s, i, SIM_UP);
		s->hosts[i].fails_percent = 0;
	}
	snprintf(l->plan, sizeof(l->plan), "a: 0 1 2, b: 3 4; c: 5 6 7; d: 8");
	s->leaves[0].config.outlier = NULL;
	update(l);
	sim_run(s, 200 * SIM_S); // more than any backoff
	assert_int_equal(s->state == LB_READY || s->state == LB_IDLE, true);
	for (uint32_t i = 0; i < 100; i++) {
		for (uint32_t k = 0; k < s->n_workers; k++)
			sim_once(s, k);
		sim_run(s, 10 * SIM_MS);
	}
	for (uint32_t k = 0; k < s->n_workers; k++)
		for (uint32_t i = 0; i < 50; i++) {
			struct sim_request *r = sim_begin(s, k);
			sim_start(s, r);
			sim_run(s, 5 * SIM_MS);
			assert_int_equal(r->outcome, SIM_SENT);
			assert_in_range(r->address, 0, 4);
			sim_end(s, r);
		}
}

static void live(uint64_t seed)
{
	struct life *l = calloc(1, sizeof(*l));
	uint32_t n_workers = 1 + (uint32_t)(seed % 4), max_attempts = (uint32_t)(seed % 3) * 2;
	struct sim *s = l->s = sim_new_paced(n_workers, seed, max_attempts, 2 * max_attempts);
	rand_init(&l->rand, seed + 5000);
	s->probes = false;
	s->on_served = on_served;
	s->on_syn = on_syn;
	s->on_connected = on_connected;
	s->on_released = on_released;
	s->on_ctx = l;
	s->leaves[0].outlier = (struct lb_outlier_conf){.interval_ns = 2 * SIM_S,
		.base_ejection_ns = 5 * SIM_S,
		.max_ejection_ns = 60 * SIM_S,
		.max_ejection_percent = 60,
		.threshold_percent = 50,
		.failure_percentage = {true, 100, 1, 1}};
	for (uint32_t i = 0; i < N_ADDRESSES; i++)
		l->left_ns[i] = 0;
	make_plan(l);
	update(l);
	for (int i = 0; i < N_STEPS; i++)
		step(l);
	settle(l);
	sim_free(s); // counts are zero, nothing is left
	free(l);
}

// MC-04, MC-07, MC-12, BO-01, UPD-03
static void lives_by_chance_keep_the_rules(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed; seed < first_seed + n_seeds; seed++) {
		last_seed = seed;
		live(seed);
	}
}

// Put off although a worker was still connected to it.
static void what_is_being_released_can_be_taken_up_at_once(void **state)
{
	(void)state;
	live(20224);
	live(40555);
}

// An address that was given up three times while its host was dead (BO-01, MC-07).
static void what_was_given_up_is_tried_as_if_it_were_new(void **state)
{
	(void)state;
	live(60636);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		first_seed = strtoull(argv[1], NULL, 10);
	n_seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : argc > 1 ? 1 : n_seeds;
	const struct CMUnitTest suite[] = {cmocka_unit_test(lives_by_chance_keep_the_rules),
		cmocka_unit_test(what_is_being_released_can_be_taken_up_at_once),
		cmocka_unit_test(what_was_given_up_is_tried_as_if_it_were_new)};
	int n_failed = cmocka_run_group_tests_name("sim/balance/random", suite, NULL, NULL);
	printf("last seed %llu\n", (unsigned long long)last_seed);
	return n_failed;
}
