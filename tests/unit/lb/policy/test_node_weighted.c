// SPDX-License-Identifier: Apache-2.0
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/policy/node_ops.h"
#include "lb/policy/weighted_picker.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/fake_node.h"

#include <errno.h>

#define S NS_PER_SECOND
#define START (1000 * S)

static const struct lb_policy_spec round_robin = {.kind = LB_POLICY_ROUND_ROBIN};
static const struct lb_policy_spec ring_hash = {.kind = LB_POLICY_RING_HASH};

struct fixture {
	struct twheel *wheel;
	struct rand rand;
	struct lb_node_env env;
	struct lb_policy_spec spec;
	struct lb_node *node;
	enum lb_state state;
	struct lb_picker *picker;
	uint32_t n_published;
	uint32_t n_slots;
	bool out_of_memory;
};

static int on_publish(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct fixture *f = ctx;
	if (f->out_of_memory) {
		lb_picker_put(picker);
		return -ENOMEM;
	}
	lb_picker_put(f->picker);
	f->picker = picker;
	f->state = state;
	f->n_published++;
	return 0;
}

static uint32_t slot_take(void *ctx)
{
	return ((struct fixture *)ctx)->n_slots++;
}

static void slot_give(void *ctx, uint32_t slot)
{
	((struct fixture *)ctx)->n_slots--;
}

static const struct lb_node_services services = {.slot_take = slot_take, .slot_give = slot_give};

static struct lb_node *node_new(struct fixture *f)
{
	return lb_node_weighted.new(&f->env, (struct lb_node_parent){on_publish, f});
}

static void init(struct fixture *f)
{
	*f = (struct fixture){.wheel = twheel_new(START)};
	f->spec = (struct lb_policy_spec){.kind = LB_POLICY_WRR_LOCALITY, .child = &round_robin};
	rand_init(&f->rand, 7);
	fake_first_state = -1;
	fake_update_error = 0;
	f->env = (struct lb_node_env){.cluster = "orders",
		.wheel = f->wheel,
		.rand = &f->rand,
		.ops_of = fake_ops_of,
		.services = &services,
		.ctx = f};
	lb_node_env_init(&f->env);
	f->node = node_new(f);
	assert_non_null(f->node);
}

static void fini(struct fixture *f)
{
	lb_node_free(f->node);
	lb_node_env_fini(&f->env);
	lb_picker_put(f->picker);
	assert_int_equal(fake_count(), 0);
	assert_true(twheel_next_ns(f->wheel) == UINT64_MAX);
	twheel_free(f->wheel);
}

static void pass(struct fixture *f, uint64_t ns)
{
	twheel_advance(f->wheel, twheel_now(f->wheel) + ns);
}

// "a", "b", … with these weights; UINT32_MAX = leave it out.
static int update_with(struct fixture *f, const uint32_t *weights, uint32_t n, uint32_t n_members,
	const char *note)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	struct lb_node_member members[1] = {{.weight = 1}};
	struct lb_node_locality list[4];
	uint32_t n_list = 0;
	for (uint32_t i = 0; i < n; i++)
		if (weights[i] != UINT32_MAX)
			list[n_list++] = (struct lb_node_locality){
				str_from(names[i]), weights[i], members, n_members};
	const struct lb_node_config config = {&f->spec, list, n_list};
	f->env.note = note;
	return f->node->ops->update(f->node, &config);
}

static void update(struct fixture *f, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	const uint32_t weights[] = {a, b, c, d};
	assert_int_equal(update_with(f, weights, 4, 1, ""), 0);
}

#define OUT UINT32_MAX

static struct lb_pick pick(struct fixture *f)
{
	struct lb_pick_ctx ctx = {.rand = &f->rand};
	return lb_pick(f->picker, &ctx);
}

static void draw(struct fixture *f, uint32_t n, uint32_t ret[4])
{
	memset(ret, 0, 4 * sizeof(ret[0]));
	for (uint32_t i = 0; i < n; i++)
		ret[pick(f).text[0] - 'a']++;
}

// Of the counts against the weights; 16.27 is p = 0.001 with three degrees of freedom.
static double chi_squared(const uint32_t *counts, const uint32_t *weights, uint32_t n)
{
	double total = 0, drawn = 0, sum = 0;
	for (uint32_t i = 0; i < n; i++) {
		total += weights[i];
		drawn += counts[i];
	}
	for (uint32_t i = 0; i < n; i++) {
		double expected = drawn * weights[i] / total;
		sum += (counts[i] - expected) * (counts[i] - expected) / expected;
	}
	return sum;
}

// WT-10
static void draws_follow_the_weights(void **state)
{
	struct fixture f;
	const uint32_t weights[] = {1, 2, 3, 14};
	uint32_t counts[4];
	init(&f);
	fake_first_state = LB_READY;
	update(&f, 1, 2, 3, 14);
	assert_int_equal(f.state, LB_READY);
	draw(&f, 100000, counts);
	assert_true(chi_squared(counts, weights, 4) < 16.27);
	fini(&f);
}

// WT-10: a sum that 32 bits don't hold, and a weight of one beside the largest.
static void sum_of_weights_has_64_bits(void **state)
{
	struct fixture f;
	uint32_t counts[4];
	init(&f);
	fake_first_state = LB_READY;
	update(&f, UINT32_MAX - 1, UINT32_MAX - 1, OUT, OUT);
	draw(&f, 10000, counts);
	assert_in_range(counts[0], 4800, 5200);
	update(&f, UINT32_MAX - 1, 1, OUT, OUT);
	draw(&f, 10000, counts);
	assert_true(counts[0] >= 9999);
	fini(&f);
}

// WT-01
static void share_of_those_that_are_not_ready_spreads_in_proportion(void **state)
{
	struct fixture f;
	const uint32_t weights[] = {1, 2, 0, 3};
	uint32_t counts[4];
	init(&f);
	fake_first_state = LB_READY;
	update(&f, 1, 2, 14, 3);
	fake_report(fake_find("c"), LB_CONNECTING);
	assert_int_equal(f.state, LB_READY);
	draw(&f, 60000, counts);
	assert_int_equal(counts[2], 0);
	const uint32_t seen[] = {counts[0], counts[1], counts[3]};
	const uint32_t expected[] = {weights[0], weights[1], weights[3]};
	assert_true(chi_squared(seen, expected, 3) < 13.82);
	fake_report(fake_find("c"), LB_READY);
	draw(&f, 1000, counts);
	assert_true(counts[2] > 500);
	fini(&f);
}

// WT-02, WT-03
static void locality_that_returns_within_15_minutes_is_the_same(void **state)
{
	struct fixture f;
	uint32_t counts[4];
	init(&f);
	fake_first_state = LB_READY;
	update(&f, 1, 1, OUT, OUT);
	struct fake_node *b = fake_find("b");
	update(&f, 1, OUT, OUT, OUT);
	draw(&f, 1000, counts);
	assert_int_equal(counts[1], 0);
	pass(&f, 15 * 60 * S - NS_PER_MS);
	assert_ptr_equal(fake_find("b"), b);
	update(&f, 1, 1, OUT, OUT);
	assert_ptr_equal(fake_find("b"), b);
	assert_int_equal(b->n_updates, 2);
	draw(&f, 1000, counts);
	assert_in_range(counts[1], 400, 600);
	pass(&f, 3600 * S);
	assert_ptr_equal(fake_find("b"), b);
	fini(&f);
}

// WT-03
static void locality_that_stays_away_is_gone_after_15_minutes(void **state)
{
	struct fixture f;
	init(&f);
	fake_first_state = LB_READY;
	update(&f, 1, 1, OUT, OUT);
	update(&f, 1, OUT, OUT, OUT);
	pass(&f, 15 * 60 * S - NS_PER_MS);
	assert_int_equal(fake_count(), 2);
	uint32_t before = f.n_published;
	fake_report(fake_find("b"), LB_TRANSIENT_FAILURE); // nobody's business any more
	assert_int_equal(f.n_published, before);
	pass(&f, 2000000);
	assert_int_equal(fake_count(), 1);
	assert_null(fake_find("b"));
	fini(&f);
}

// WT-04, A52-L01
static void weights_change_in_place(void **state)
{
	struct fixture f;
	uint32_t counts[4];
	init(&f);
	fake_first_state = LB_READY;
	update(&f, 1, 9, OUT, OUT);
	uint32_t made = fake_n_made;
	update(&f, 9, 1, OUT, OUT);
	assert_int_equal(fake_n_made, made);
	draw(&f, 10000, counts);
	assert_in_range(counts[0], 8800, 9200);
	fini(&f);
}

// WT-05, ST-01
static void state_is_the_best_that_any_child_has(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, 1, 1, 1, OUT);
	assert_int_equal(f.state, LB_CONNECTING); // WT-07: a new child counts as CONNECTING
	assert_int_equal(pick(&f).kind, LB_PICK_QUEUE);
	fake_report(fake_find("a"), LB_TRANSIENT_FAILURE);
	fake_report(fake_find("b"), LB_IDLE);
	assert_int_equal(f.state, LB_CONNECTING);
	fake_report(fake_find("c"), LB_TRANSIENT_FAILURE);
	assert_int_equal(f.state, LB_IDLE);
	assert_int_equal(pick(&f).kind, LB_PICK_QUEUE);
	fake_report(fake_find("b"), LB_TRANSIENT_FAILURE);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	fake_report(fake_find("c"), LB_READY);
	assert_int_equal(f.state, LB_READY);
	fini(&f);
}

// WT-05
static void idle_child_is_told_to_connect_at_once(void **state)
{
	struct fixture f;
	init(&f);
	fake_first_state = LB_IDLE;
	update(&f, 1, OUT, OUT, OUT);
	pass(&f, NS_PER_MS);
	assert_int_equal(fake_find("a")->n_exit_idle, 1);
	fake_report(fake_find("a"), LB_READY);
	pass(&f, S);
	assert_int_equal(fake_find("a")->n_exit_idle, 1);
	fake_report(fake_find("a"), LB_IDLE);
	pass(&f, NS_PER_MS);
	assert_int_equal(fake_find("a")->n_exit_idle, 2);
	fini(&f);
}

// WT-06
static void failure_is_that_of_a_child_drawn_by_weight(void **state)
{
	struct fixture f;
	uint32_t counts[4];
	init(&f);
	fake_first_state = LB_TRANSIENT_FAILURE;
	update(&f, 1, 3, OUT, OUT);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	assert_int_equal(pick(&f).kind, LB_PICK_FAIL);
	draw(&f, 10000, counts);
	assert_in_range(counts[1], 7300, 7700);
	fini(&f);
}

// WT-07, ST-02: it is its newest picker that picks.
static void failing_child_counts_as_failing_until_ready_though_its_requests_wait(void **state)
{
	struct fixture f;
	init(&f);
	fake_first_state = LB_TRANSIENT_FAILURE;
	update(&f, 1, 3, OUT, OUT);
	fake_report(fake_find("a"), LB_CONNECTING);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	uint32_t n_waiting = 0;
	for (int i = 0; i < 10000; i++)
		n_waiting += pick(&f).kind == LB_PICK_QUEUE;
	assert_in_range(n_waiting, 2300, 2700); // the others fail with b's error
	fake_report(fake_find("b"), LB_CONNECTING);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	for (int i = 0; i < 100; i++)
		assert_int_equal(pick(&f).kind, LB_PICK_QUEUE);
	fake_report(fake_find("a"), LB_TRANSIENT_FAILURE);
	fake_report(fake_find("b"), LB_TRANSIENT_FAILURE);
	for (int i = 0; i < 100; i++)
		assert_int_equal(pick(&f).kind, LB_PICK_FAIL);
	fake_report(fake_find("a"), LB_READY);
	assert_int_equal(f.state, LB_READY);
	fake_report(fake_find("a"), LB_CONNECTING);
	assert_int_equal(f.state, LB_CONNECTING);
	fini(&f);
}

// WT-08
static void no_target_fails_with_the_resolution_note(void **state)
{
	struct fixture f;
	init(&f);
	assert_int_equal(update_with(&f, NULL, 0, 0, "EDS orders-eds: does not exist"), 0);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	assert_string_equal(pick(&f).text, "cluster orders: no locality has usable endpoints "
					   "(EDS orders-eds: does not exist)");
	fini(&f);
}

// A27-L02
static void locality_without_endpoints_or_weight_is_no_target(void **state)
{
	struct fixture f;
	const uint32_t weights[] = {1, 0};
	init(&f);
	assert_int_equal(update_with(&f, weights, 2, 0, ""), 0);
	assert_int_equal(fake_count(), 0);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	fake_first_state = LB_READY;
	assert_int_equal(update_with(&f, weights, 2, 1, ""), 0);
	assert_int_equal(fake_count(), 1);
	assert_non_null(fake_find("a"));
	assert_int_equal(f.state, LB_READY);
	assert_int_equal(update_with(&f, weights, 2, 0, ""), 0);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	assert_int_equal(fake_count(), 1); // WT-02: kept
	fini(&f);
}

// WT-09
static void one_update_publishes_once(void **state)
{
	struct fixture f;
	init(&f);
	fake_first_state = LB_READY;
	update(&f, 1, 1, 1, 1);
	assert_int_equal(f.n_published, 1);
	update(&f, 1, 1, 1, 2);
	assert_int_equal(f.n_published, 2);
	fini(&f);
}

// MC-09: localities do not share a place in the rotation, whoever came first.
static void each_node_below_gets_a_slot_of_its_own(void **state)
{
	struct fixture f;
	init(&f);
	update(&f, 1, 1, OUT, OUT);
	struct fake_node *a = fake_find("a"), *b = fake_find("b");
	uint32_t first = a->base.env->services->slot_take(a->base.env->ctx),
		 second = b->base.env->services->slot_take(b->base.env->ctx);
	assert_int_not_equal(first, second);
	assert_int_equal(f.n_slots, 2);
	a->base.env->services->slot_give(a->base.env->ctx, first);
	b->base.env->services->slot_give(b->base.env->ctx, second);
	assert_int_equal(f.n_slots, 0);
	fini(&f);
}

// A52-T12
static void other_policy_takes_over_when_it_serves(void **state)
{
	struct fixture f;
	init(&f);
	fake_first_state = LB_READY;
	update(&f, 1, OUT, OUT, OUT);
	struct lb_picker *before = lb_picker_get(f.picker);
	fake_first_state = LB_CONNECTING;
	f.spec.child = &ring_hash;
	update(&f, 1, OUT, OUT, OUT);
	assert_int_equal(fake_count(), 2);
	assert_int_equal(fake_nodes->kind, LB_POLICY_RING_HASH);
	assert_int_equal(f.state, LB_READY);
	fake_report(fake_nodes, LB_READY);
	pass(&f, NS_PER_MS);
	assert_int_equal(fake_count(), 1);
	assert_int_equal(fake_nodes->kind, LB_POLICY_RING_HASH);
	assert_int_equal(f.state, LB_READY);
	lb_picker_put(before);
	fini(&f);
}

// A52-T12
static void other_policy_takes_over_when_the_old_one_leaves_ready(void **state)
{
	struct fixture f;
	init(&f);
	fake_first_state = LB_READY;
	update(&f, 1, OUT, OUT, OUT);
	fake_first_state = LB_CONNECTING;
	f.spec.child = &ring_hash;
	update(&f, 1, OUT, OUT, OUT);
	struct fake_node *old = fake_nodes->next;
	fake_report(old, LB_READY);
	assert_int_equal(f.state, LB_READY);
	fake_report(old, LB_TRANSIENT_FAILURE);
	assert_int_equal(f.state, LB_CONNECTING);
	pass(&f, NS_PER_MS);
	assert_int_equal(fake_count(), 1);
	// Back to the first kind before the second has said anything good, and again.
	fake_report(fake_nodes, LB_READY);
	f.spec.child = &round_robin;
	update(&f, 1, OUT, OUT, OUT);
	f.spec.child = &ring_hash;
	update(&f, 1, OUT, OUT, OUT);
	pass(&f, NS_PER_MS);
	assert_int_equal(fake_count(), 2);
	assert_int_equal(f.state, LB_READY);
	fini(&f);
}

static void failed_publish_is_tried_again(void **state)
{
	struct fixture f;
	init(&f);
	fake_first_state = LB_CONNECTING;
	update(&f, 1, 1, OUT, OUT);
	f.out_of_memory = true;
	fake_report(fake_find("a"), LB_READY);
	assert_int_equal(f.state, LB_CONNECTING);
	pass(&f, S);
	f.out_of_memory = false;
	pass(&f, S);
	assert_int_equal(f.state, LB_READY);
	assert_string_equal(pick(&f).text, "a");
	fini(&f);
}

static void update_without_memory_leaves_it_as_before(void **state)
{
	struct fixture f;
	uint32_t counts[4];
	const uint32_t weights[] = {OUT, 1, 1, 1};
	bool failed = true;
	init(&f);
	fake_first_state = LB_READY;
	update(&f, 1, 1, OUT, OUT);
	for (size_t nth = 0; failed && alloc_fail_works(); nth++) {
		alloc_fail_arm(nth);
		int err = update_with(&f, weights, 4, 1, "");
		failed = alloc_fail_disarm();
		pass(&f, 2 * S); // what could not be published
		draw(&f, 200, counts);
		// The update counts, or it doesn't: nothing in between.
		assert_true((counts[0] == 0) == (err == 0));
		assert_true((counts[2] + counts[3] == 0) == (err != 0));
		if (err == 0)
			update(&f, 1, 1, OUT, OUT); // again from the start
		else
			assert_int_equal(err, -ENOMEM);
		pass(&f, 3600 * S);
		assert_int_equal(fake_count(), 2);
	}
	fake_update_error = -ENOMEM;
	assert_int_equal(update_with(&f, weights, 4, 1, ""), -ENOMEM);
	fake_update_error = 0;
	draw(&f, 200, counts);
	assert_int_equal(counts[0] + counts[1], 200);
	fini(&f);
}

static void construction_without_memory_gives_nothing(void **state)
{
	struct fixture f;
	struct lb_node *n = NULL;
	init(&f);
	ALLOC_FAIL_EACH(n = node_new(&f), !n, lb_node_free(n));
	fini(&f);
}

static void dump_shows_localities_in_order(void **state)
{
	struct fixture f;
	struct fake_dump d;
	init(&f);
	fake_first_state = LB_READY;
	update(&f, 3, 1, OUT, OUT);
	update(&f, 3, OUT, 2, OUT);
	pass(&f, 60 * S);
	fake_dump_init(&d);
	lb_dump_node(&d.base, f.node, f.state);
	assert_string_equal(d.text, "wrr_locality READY\n"
				    "  weighted_target READY\n"
				    "    a READY weight=3\n"
				    "      round_robin READY\n"
				    "    b READY kept_s=840\n"
				    "      round_robin READY\n"
				    "    c READY weight=2\n"
				    "      round_robin READY");
	fini(&f);
}

RUN_SUITE("lb/node_weighted", cmocka_unit_test(draws_follow_the_weights),
	cmocka_unit_test(sum_of_weights_has_64_bits),
	cmocka_unit_test(share_of_those_that_are_not_ready_spreads_in_proportion),
	cmocka_unit_test(locality_that_returns_within_15_minutes_is_the_same),
	cmocka_unit_test(locality_that_stays_away_is_gone_after_15_minutes),
	cmocka_unit_test(weights_change_in_place),
	cmocka_unit_test(state_is_the_best_that_any_child_has),
	cmocka_unit_test(idle_child_is_told_to_connect_at_once),
	cmocka_unit_test(failure_is_that_of_a_child_drawn_by_weight),
	cmocka_unit_test(failing_child_counts_as_failing_until_ready_though_its_requests_wait),
	cmocka_unit_test(no_target_fails_with_the_resolution_note),
	cmocka_unit_test(locality_without_endpoints_or_weight_is_no_target),
	cmocka_unit_test(one_update_publishes_once),
	cmocka_unit_test(each_node_below_gets_a_slot_of_its_own),
	cmocka_unit_test(other_policy_takes_over_when_it_serves),
	cmocka_unit_test(other_policy_takes_over_when_the_old_one_leaves_ready),
	cmocka_unit_test(failed_publish_is_tried_again),
	cmocka_unit_test(update_without_memory_leaves_it_as_before),
	cmocka_unit_test(construction_without_memory_gives_nothing),
	cmocka_unit_test(dump_shows_localities_in_order))
