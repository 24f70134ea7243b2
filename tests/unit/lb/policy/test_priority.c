// SPDX-License-Identifier: Apache-2.0
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/policy/priority.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/fake_node.h"

#include <errno.h>
#include <stdlib.h>

#define MS NS_PER_MS
#define S NS_PER_SECOND

struct fixture;

struct child {
	struct child *next;
	struct fixture *f;
	struct lb_priority_child *place;
	char name[16];
	uint32_t n_updates, n_exit_idle;
};

struct fixture {
	struct twheel *wheel;
	struct lb_priority *priority;
	struct child *children;
	uint32_t n_created;
	int says; // what a child reports in its first update; -1 = nothing
	int update_error;
	enum lb_state state;
	struct lb_picker *picker;
	uint32_t n_published;
	bool out_of_memory;
};

static void report(struct child *c, enum lb_state state)
{
	struct lb_picker *p = fake_picker_new(state, c->name);
	if (p)
		lb_priority_report(c->place, state, p);
}

static void *create(void *ctx, struct lb_priority_child *place, const char *name)
{
	struct fixture *f = ctx;
	struct child *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct child){.next = f->children, .f = f, .place = place};
	strncpy(c->name, name, sizeof(c->name) - 1);
	f->children = c;
	f->n_created++;
	return c;
}

static int update(void *ctx, void *child, const char *name)
{
	struct fixture *f = ctx;
	struct child *c = child;
	assert_string_equal(c->name, name);
	if (f->update_error)
		return f->update_error;
	if (c->n_updates++ == 0 && f->says >= 0)
		report(c, (enum lb_state)f->says);
	return 0;
}

static void exit_idle(void *ctx, void *child)
{
	((struct child *)child)->n_exit_idle++;
}

static void dump(void *ctx, const void *child, struct lb_dump *d)
{
	lb_dump_text(d, "of", ((const struct child *)child)->name);
}

static void child_free(void *ctx, void *child)
{
	struct fixture *f = ctx;
	struct child **link = &f->children;
	while (*link != child)
		link = &(*link)->next;
	*link = (*link)->next;
	free(child);
}

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

static const struct lb_priority_ops ops = {create, update, exit_idle, dump, child_free, on_publish};

static void init(struct fixture *f)
{
	*f = (struct fixture){.wheel = twheel_new(1000 * S), .says = -1};
	f->priority = lb_priority_new(&ops, f, f->wheel);
	assert_non_null(f->priority);
}

static void fini(struct fixture *f)
{
	lb_priority_free(f->priority);
	lb_picker_put(f->picker);
	assert_null(f->children);
	assert_true(twheel_next_ns(f->wheel) == UINT64_MAX);
	twheel_free(f->wheel);
}

static void pass(struct fixture *f, uint64_t ns)
{
	twheel_advance(f->wheel, twheel_now(f->wheel) + ns);
}

#define NAMES(...)                                                                                 \
	(const char *const[]){__VA_ARGS__},                                                        \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static void give(struct fixture *f, const char *const *names, uint32_t n)
{
	assert_int_equal(lb_priority_update(f->priority, names, n, "no priority"), 0);
}

static struct child *get(struct fixture *f, const char *name)
{
	struct child *c = lb_priority_find(f->priority, name);
	assert_non_null(c);
	return c;
}

static bool is_there(struct fixture *f, const char *name)
{
	return lb_priority_find(f->priority, name);
}

// Of whom requests hear: "" = they wait and nobody in particular has said so.
static const char *current(struct fixture *f)
{
	struct lb_pick_ctx ctx = {0};
	const char *text = lb_pick(f->picker, &ctx).text;
	return text ? text : "";
}

// A56-P01
static void lower_child_is_not_made_while_the_first_works(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_READY;
	give(&f, NAMES("p0", "p1"));
	pass(&f, 3600 * S);
	assert_int_equal(f.n_created, 1);
	assert_int_equal(f.state, LB_READY);
	assert_string_equal(current(&f), "p0");
	fini(&f);
}

// A56-P02
static void idle_child_is_as_good_as_a_ready_one(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_TRANSIENT_FAILURE;
	give(&f, NAMES("p0", "p1"));
	report(get(&f, "p1"), LB_READY);
	assert_string_equal(current(&f), "p1");
	report(get(&f, "p0"), LB_IDLE);
	assert_string_equal(current(&f), "p0");
	assert_int_equal(f.state, LB_IDLE);
	lb_priority_exit_idle(f.priority);
	assert_int_equal(get(&f, "p0")->n_exit_idle, 1);
	assert_int_equal(get(&f, "p1")->n_exit_idle, 0);
	fini(&f);
}

// A56-P03
static void child_has_10_seconds_from_its_creation(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_CONNECTING;
	give(&f, NAMES("p0", "p1"));
	assert_int_equal(f.state, LB_CONNECTING);
	pass(&f, 10 * S - MS);
	assert_false(is_there(&f, "p1"));
	f.says = LB_READY;
	pass(&f, MS);
	assert_string_equal(current(&f), "p1");
	assert_int_equal(f.state, LB_READY);
	fini(&f);
}

// A56-P03: it has lost READY, and gets the time again although p1 could serve.
static void requests_wait_while_the_timer_runs_although_a_lower_child_is_ready(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_TRANSIENT_FAILURE;
	give(&f, NAMES("p0", "p1"));
	report(get(&f, "p1"), LB_READY);
	report(get(&f, "p0"), LB_READY);
	report(get(&f, "p0"), LB_CONNECTING);
	assert_string_equal(current(&f), "p0");
	assert_int_equal(f.state, LB_CONNECTING);
	pass(&f, 10 * S - MS);
	assert_string_equal(current(&f), "p0");
	pass(&f, MS);
	assert_string_equal(current(&f), "p1");
	fini(&f);
}

// A56-P04
static void failure_moves_on_at_once(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_CONNECTING;
	give(&f, NAMES("p0", "p1"));
	pass(&f, 2 * S);
	report(get(&f, "p0"), LB_TRANSIENT_FAILURE);
	assert_true(is_there(&f, "p1"));
	assert_string_equal(current(&f), "p1");
	pass(&f, 10 * S);
	assert_string_equal(current(&f), "p1"); // the first that is CONNECTING
	fini(&f);
}

// A56-P05, A56-P07
static void expired_child_still_queues_when_nobody_serves(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_CONNECTING;
	give(&f, NAMES("p0", "p1"));
	pass(&f, 10 * S);
	assert_string_equal(current(&f), "p1"); // whose time has begun
	pass(&f, 10 * S);
	assert_int_equal(f.state, LB_CONNECTING);
	assert_string_equal(current(&f), "p0");
	pass(&f, 3600 * S);
	assert_int_equal(f.state, LB_CONNECTING);
	fini(&f);
}

// A56-P06
static void repeated_connecting_does_not_restart_the_timer(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_CONNECTING;
	give(&f, NAMES("p0", "p1"));
	pass(&f, 9 * S);
	report(get(&f, "p0"), LB_CONNECTING);
	pass(&f, S);
	assert_true(is_there(&f, "p1"));
	report(get(&f, "p1"), LB_READY);
	report(get(&f, "p0"), LB_CONNECTING); // after its expiry neither
	assert_string_equal(current(&f), "p1");
	fini(&f);
}

// A56-P06
static void timer_restarts_only_after_ready_or_idle(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_TRANSIENT_FAILURE;
	give(&f, NAMES("p0", "p1"));
	report(get(&f, "p1"), LB_READY);
	report(get(&f, "p0"), LB_CONNECTING); // failed later than it was READY
	assert_string_equal(current(&f), "p1");
	report(get(&f, "p0"), LB_IDLE);
	report(get(&f, "p0"), LB_CONNECTING);
	assert_string_equal(current(&f), "p0");
	report(get(&f, "p0"), LB_TRANSIENT_FAILURE);
	report(get(&f, "p0"), LB_CONNECTING);
	assert_string_equal(current(&f), "p1");
	fini(&f);
}

// A56-P07
static void all_failing_children_fail_with_the_last_ones_error(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_TRANSIENT_FAILURE;
	give(&f, NAMES("p0", "p1", "p2"));
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	assert_string_equal(current(&f), "p2");
	report(get(&f, "p1"), LB_CONNECTING);
	assert_int_equal(f.state, LB_CONNECTING);
	assert_string_equal(current(&f), "p1");
	fini(&f);
}

// A56-P08
static void lower_children_live_15_minutes_more(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_TRANSIENT_FAILURE;
	give(&f, NAMES("p0", "p1", "p2"));
	report(get(&f, "p1"), LB_READY);
	struct child *p1 = get(&f, "p1");
	report(get(&f, "p0"), LB_READY);
	pass(&f, 14 * 60 * S);
	report(get(&f, "p0"), LB_READY); // does not begin the time anew
	pass(&f, 60 * S - MS);
	assert_ptr_equal(get(&f, "p1"), p1);
	report(get(&f, "p0"), LB_TRANSIENT_FAILURE);
	assert_string_equal(current(&f), "p1"); // at once, without another connection
	assert_int_equal(f.n_created, 3);
	pass(&f, MS);
	assert_false(is_there(&f, "p2")); // deactivated with p1 READY
	pass(&f, 3600 * S);
	assert_ptr_equal(get(&f, "p1"), p1);
	report(get(&f, "p0"), LB_READY);
	pass(&f, 15 * 60 * S);
	assert_false(is_there(&f, "p1"));
	fini(&f);
}

// A56-P08: none is deactivated for one that merely may still connect.
static void lower_children_stay_active_while_the_timer_runs(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_TRANSIENT_FAILURE;
	give(&f, NAMES("p0", "p1"));
	report(get(&f, "p0"), LB_READY);
	pass(&f, 15 * 60 * S - 5 * S);
	report(get(&f, "p0"), LB_CONNECTING); // p1's 15 minutes go on
	pass(&f, 5 * S);
	assert_false(is_there(&f, "p1"));
	pass(&f, 5 * S);
	assert_true(is_there(&f, "p1"));
	report(get(&f, "p1"), LB_READY);
	pass(&f, 3600 * S);
	assert_true(is_there(&f, "p1"));
	fini(&f);
}

// A56-P10
static void child_no_longer_named_is_dropped_at_once(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_TRANSIENT_FAILURE;
	give(&f, NAMES("p0", "p1"));
	f.says = LB_CONNECTING;
	give(&f, NAMES("p1"));
	assert_false(is_there(&f, "p0"));
	assert_string_equal(current(&f), "p1");
	fini(&f);
}

// A56-P11
static void child_moved_to_another_rank_is_not_made_anew(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_TRANSIENT_FAILURE;
	give(&f, NAMES("p0", "p1"));
	report(get(&f, "p1"), LB_READY);
	give(&f, NAMES("p1", "p0"));
	assert_int_equal(f.n_created, 2);
	assert_string_equal(current(&f), "p1");
	assert_int_equal(get(&f, "p1")->n_updates, 2);
	assert_int_equal(get(&f, "p0")->n_updates, 2);
	fini(&f);
}

// A56-P11
static void deactivated_child_gets_its_config_and_stays_deactivated(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_TRANSIENT_FAILURE;
	give(&f, NAMES("p0", "p1"));
	report(get(&f, "p0"), LB_READY);
	pass(&f, 10 * 60 * S);
	give(&f, NAMES("p0", "p1"));
	assert_int_equal(get(&f, "p1")->n_updates, 2);
	pass(&f, 5 * 60 * S);
	assert_false(is_there(&f, "p1"));
	fini(&f);
}

// A56-P12
static void unchanged_choice_publishes_nothing(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_READY;
	give(&f, NAMES("p0", "p1"));
	assert_int_equal(f.n_published, 1);
	give(&f, NAMES("p0", "p1"));
	give(&f, NAMES("p0"));
	assert_int_equal(f.n_published, 1);
	fini(&f);
}

// A56-P12: one choice an update, after all of its children have spoken.
static void update_of_several_children_publishes_once(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_TRANSIENT_FAILURE;
	give(&f, NAMES("p0", "p1", "p2"));
	assert_int_equal(f.n_published, 1);
	get(&f, "p0")->n_updates = get(&f, "p1")->n_updates = get(&f, "p2")->n_updates = 0;
	f.says = LB_READY;
	give(&f, NAMES("p0", "p1", "p2"));
	assert_int_equal(f.n_published, 2);
	assert_string_equal(current(&f), "p0");
	fini(&f);
}

// A56-P13
static void empty_list_fails(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_READY;
	give(&f, NULL, 0);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	assert_string_equal(current(&f), "no priority");
	give(&f, NAMES("p0"));
	assert_int_equal(f.state, LB_READY);
	give(&f, NULL, 0);
	assert_int_equal(f.state, LB_TRANSIENT_FAILURE);
	assert_null(f.children);
	fini(&f);
}

static void child_that_has_said_nothing_queues(void **state)
{
	struct fixture f;
	init(&f);
	give(&f, NAMES("p0"));
	struct lb_pick_ctx ctx = {0};
	assert_int_equal(f.state, LB_CONNECTING);
	assert_int_equal(lb_pick(f.picker, &ctx).kind, LB_PICK_QUEUE);
	fini(&f);
}

static void failed_publish_is_tried_again(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_CONNECTING;
	give(&f, NAMES("p0"));
	f.out_of_memory = true;
	report(get(&f, "p0"), LB_READY);
	assert_int_equal(f.state, LB_CONNECTING);
	pass(&f, S);
	f.out_of_memory = false;
	pass(&f, S);
	assert_int_equal(f.state, LB_READY);
	fini(&f);
}

static void child_that_memory_lacks_for_is_made_later(void **state)
{
	struct fixture f;
	init(&f);
	f.says = LB_CONNECTING;
	give(&f, NAMES("p0", "p1"));
	f.update_error = -ENOMEM;
	report(get(&f, "p0"), LB_TRANSIENT_FAILURE);
	assert_false(is_there(&f, "p1"));
	assert_string_equal(current(&f), "p0");
	f.update_error = 0;
	f.says = LB_READY;
	pass(&f, S);
	assert_string_equal(current(&f), "p1");
	fini(&f);
}

static void update_without_memory_leaves_it_as_before(void **state)
{
	struct fixture f;
	bool failed = true;
	init(&f);
	f.says = LB_READY;
	give(&f, NAMES("p0", "p1"));
	for (size_t nth = 0; failed && alloc_fail_works(); nth++) {
		alloc_fail_arm(nth);
		int err = lb_priority_update(f.priority, NAMES("p2", "p0"), "");
		failed = alloc_fail_disarm();
		assert_true(!err || err == -ENOMEM);
		pass(&f, 2 * S);
		// A child that lacked memory for its own picker says nothing: requests wait.
		bool waits = f.state == LB_CONNECTING;
		assert_string_equal(current(&f), err ? "p0" : waits ? "" : "p2");
		assert_true(f.state == LB_READY || (waits && !err));
		give(&f, NAMES("p0", "p1"));
		assert_string_equal(current(&f), "p0");
	}
	f.update_error = -ENOMEM;
	assert_int_equal(lb_priority_update(f.priority, NAMES("p0"), ""), -ENOMEM);
	f.update_error = 0;
	assert_string_equal(current(&f), "p0");
	fini(&f);
}

// A naive twin of the choice, on random states and times.
struct twin {
	bool made;
	enum lb_state state;
	bool failed_last;
	uint64_t timer_ns, leave_ns; // 0 = not armed
};

static int twin_choose(struct twin *t, int n, uint64_t now)
{
	int first_connecting = -1;
	for (int i = 0; i < n; i++) {
		if (!t[i].made)
			t[i] = (struct twin){true, LB_CONNECTING, false, now + 10 * S, 0};
		t[i].leave_ns = 0;
		if (t[i].state == LB_READY || t[i].state == LB_IDLE) {
			for (int j = i + 1; j < n; j++)
				if (t[j].made && !t[j].leave_ns)
					t[j].leave_ns = now + 15 * 60 * S;
			return i;
		}
		if (t[i].timer_ns)
			return i;
		if (first_connecting < 0 && t[i].state == LB_CONNECTING)
			first_connecting = i;
	}
	return first_connecting >= 0 ? first_connecting : n - 1;
}

static int twin_expire(struct twin *t, int n, uint64_t now)
{
	bool any = false;
	for (int i = 0; i < n; i++) {
		if (t[i].made && t[i].leave_ns && t[i].leave_ns <= now)
			t[i] = (struct twin){0};
		if (t[i].made && t[i].timer_ns && t[i].timer_ns <= now) {
			t[i].timer_ns = 0;
			any = true;
		}
	}
	return any;
}

// A56-P01 to A56-P09
static void random_states_choose_as_the_naive_twin_does(void **state)
{
	static const char *const names[] = {"p0", "p1", "p2", "p3"};
	struct fixture f;
	struct twin twin[4] = {0};
	struct rand rand;
	init(&f);
	rand_init(&rand, 11);
	give(&f, names, 4);
	int expected = twin_choose(twin, 4, twheel_now(f.wheel));
	for (int round = 0; round < 20000; round++) {
		uint64_t step = rand_below(&rand, 50) == 0 ? 500 * S : rand_below(&rand, 4) * S;
		for (uint64_t end = twheel_now(f.wheel) + step; twheel_now(f.wheel) < end;) {
			pass(&f, S);
			if (twin_expire(twin, 4, twheel_now(f.wheel)))
				expected = twin_choose(twin, 4, twheel_now(f.wheel));
		}
		int i = (int)rand_below(&rand, 4);
		assert_int_equal(is_there(&f, names[i]), twin[i].made);
		if (twin[i].made) {
			enum lb_state s = (enum lb_state)rand_below(&rand, 4);
			bool begins = s == LB_CONNECTING && twin[i].state != s;
			twin[i].state = s;
			if (s != LB_CONNECTING) {
				twin[i].timer_ns = 0;
				twin[i].failed_last = s == LB_TRANSIENT_FAILURE;
			} else if (begins && !twin[i].failed_last && !twin[i].timer_ns) {
				twin[i].timer_ns = twheel_now(f.wheel) + 10 * S;
			}
			expected = twin_choose(twin, 4, twheel_now(f.wheel));
			report(get(&f, names[i]), s);
		}
		assert_int_equal(f.state, twin[expected].state);
		const char *who = current(&f);
		assert_true(!*who || strcmp(who, names[expected]) == 0);
	}
	fini(&f);
}

static void construction_without_memory_gives_nothing(void **state)
{
	struct fixture f;
	struct lb_priority *p = NULL;
	init(&f);
	ALLOC_FAIL_EACH(p = lb_priority_new(&ops, &f, f.wheel), !p, lb_priority_free(p));
	fini(&f);
}

static void dump_shows_children_by_rank(void **state)
{
	struct fixture f;
	struct fake_dump d;
	init(&f);
	f.says = LB_TRANSIENT_FAILURE;
	give(&f, NAMES("p0", "p1"));
	report(get(&f, "p0"), LB_READY);
	give(&f, NAMES("p0", "p2", "p1"));
	pass(&f, S);
	fake_dump_init(&d);
	lb_priority_dump(f.priority, &d.base);
	assert_string_equal(d.text, "priority READY\n"
				    "  p0 READY current=yes of=p0\n"
				    "  p2\n"
				    "  p1 TRANSIENT_FAILURE kept_ms=899000 of=p1");
	fini(&f);
}

RUN_SUITE("lb/priority", cmocka_unit_test(lower_child_is_not_made_while_the_first_works),
	cmocka_unit_test(idle_child_is_as_good_as_a_ready_one),
	cmocka_unit_test(child_has_10_seconds_from_its_creation),
	cmocka_unit_test(requests_wait_while_the_timer_runs_although_a_lower_child_is_ready),
	cmocka_unit_test(failure_moves_on_at_once),
	cmocka_unit_test(expired_child_still_queues_when_nobody_serves),
	cmocka_unit_test(repeated_connecting_does_not_restart_the_timer),
	cmocka_unit_test(timer_restarts_only_after_ready_or_idle),
	cmocka_unit_test(all_failing_children_fail_with_the_last_ones_error),
	cmocka_unit_test(lower_children_live_15_minutes_more),
	cmocka_unit_test(lower_children_stay_active_while_the_timer_runs),
	cmocka_unit_test(child_no_longer_named_is_dropped_at_once),
	cmocka_unit_test(child_moved_to_another_rank_is_not_made_anew),
	cmocka_unit_test(deactivated_child_gets_its_config_and_stays_deactivated),
	cmocka_unit_test(unchanged_choice_publishes_nothing),
	cmocka_unit_test(update_of_several_children_publishes_once),
	cmocka_unit_test(empty_list_fails), cmocka_unit_test(child_that_has_said_nothing_queues),
	cmocka_unit_test(failed_publish_is_tried_again),
	cmocka_unit_test(child_that_memory_lacks_for_is_made_later),
	cmocka_unit_test(update_without_memory_leaves_it_as_before),
	cmocka_unit_test(random_states_choose_as_the_naive_twin_does),
	cmocka_unit_test(construction_without_memory_gives_nothing),
	cmocka_unit_test(dump_shows_children_by_rank))
