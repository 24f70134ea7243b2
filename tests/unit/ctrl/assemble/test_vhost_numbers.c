// SPDX-License-Identifier: Apache-2.0
// Which virtual hosts are counted apart, and since when.
#include "ctrl/assemble/vhost_numbers.h"
#include "ctrl/assemble/workers.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/pick/link.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <stdio.h>

struct counted {
	struct lb_shared *shared;
	struct lb_link *links[2];
	struct workers *workers;
	struct twheel *wheel;
	struct vhost_numbers *numbers;
};

static void on_event(void *ctx, uint32_t worker, const struct lb_event *e)
{
}

static struct counted *set_up(void)
{
	static struct counted c;
	c.shared = lb_shared_new();
	for (uint32_t i = 0; i < 2; i++)
		c.links[i] = lb_link_new(i, 0, c.shared);
	c.workers = workers_new(c.links, 2, on_event, NULL);
	c.wheel = twheel_new(NS_PER_SECOND);
	c.numbers = vhost_numbers_new(c.workers, c.wheel);
	assert_non_null(c.numbers);
	return &c;
}

static void tear_down(struct counted *c)
{
	vhost_numbers_free(c->numbers);
	twheel_free(c->wheel);
	workers_free(c->workers);
	lb_link_free(c->links[0]);
	lb_link_free(c->links[1]);
	lb_shared_free(c->shared);
}

static void after_s(struct counted *c, uint64_t s)
{
	twheel_advance(c->wheel, twheel_now(c->wheel) + s * NS_PER_SECOND);
}

static void request(struct lb_link *l, uint16_t number, uint64_t ns)
{
	struct lb_vhost_counters *v = &l->vhosts[number];
	counter_add(&v->started, 1);
	counter_add(&v->ended[LB_CAUSE_OK], 1);
	counter_add(&v->answers[lb_answer_http(200)], 1);
	histogram_add(&v->request, histogram_place(ns), ns);
}

static void expect(struct counted *c, uint16_t number, uint64_t n, uint64_t ns)
{
	struct lb_vhost_counters v;
	vhost_numbers_read(c->numbers, number, &v);
	assert_int_equal(v.started, n);
	assert_int_equal(v.ended[LB_CAUSE_OK], n);
	assert_int_equal(v.answers[lb_answer_http(200)], n);
	assert_int_equal(v.request.sum_ns, ns);
	assert_int_equal(v.request.counts[histogram_index(2000)], n);
}

static void ops_270_a_name_has_one_number_as_long_as_anybody_has_it(void **state)
{
	struct counted *c = set_up();
	assert_int_equal(vhost_numbers_take(NULL, "a"), 0);
	vhost_numbers_give(NULL, 0);
	uint16_t a = vhost_numbers_take(c->numbers, "a");
	uint16_t b = vhost_numbers_take(c->numbers, "b");
	assert_true(a > 0 && b > 0 && a != b);
	assert_int_equal(vhost_numbers_take(c->numbers, "a"), a);
	request(c->links[0], a, 2000);
	request(c->links[1], a, 2000);
	vhost_numbers_give(c->numbers, a);
	assert_string_equal(vhost_numbers_name(c->numbers, a), "a");
	expect(c, a, 2, 4000);
	expect(c, b, 0, 0);
	assert_int_equal(vhost_numbers_end(c->numbers), 3);
	vhost_numbers_give(c->numbers, a);
	assert_null(vhost_numbers_name(c->numbers, a));
	assert_int_not_equal(vhost_numbers_take(c->numbers, "a"), a); // it rests
	tear_down(c);
}

static void ops_270_who_gets_anothers_number_begins_at_zero(void **state)
{
	struct counted *c = set_up();
	uint16_t a = vhost_numbers_take(c->numbers, "a");
	request(c->links[0], a, 2000);
	vhost_numbers_give(c->numbers, a);
	after_s(c, 599);
	uint16_t b = vhost_numbers_take(c->numbers, "b");
	assert_int_not_equal(b, a);
	after_s(c, 1);
	assert_int_equal(vhost_numbers_take(c->numbers, "c"), a);
	expect(c, a, 0, 0);
	request(c->links[1], a, 2000);
	expect(c, a, 1, 2000);
	tear_down(c);
}

static void ops_270_requests_that_last_keep_their_number(void **state)
{
	struct counted *c = set_up();
	uint16_t a = vhost_numbers_take(c->numbers, "a");
	counter_add(&c->links[0]->vhosts[a].started, 1);
	vhost_numbers_give(c->numbers, a);
	after_s(c, 600);
	assert_int_not_equal(vhost_numbers_take(c->numbers, "b"), a);
	counter_add(&c->links[0]->vhosts[a].ended[LB_CAUSE_TIMEOUT], 1);
	after_s(c, 600);
	assert_int_equal(vhost_numbers_take(c->numbers, "c"), a);
	expect(c, a, 0, 0);
	tear_down(c);
}

static void ops_271_names_without_a_place_are_counted_until_they_go(void **state)
{
	struct counted *c = set_up();
	char name[16];
	for (int i = 0; i < LB_MAX_COUNTED_VHOSTS; i++) {
		snprintf(name, sizeof(name), "v%d", i);
		assert_int_equal(vhost_numbers_take(c->numbers, name), i + 1);
	}
	assert_int_equal(vhost_numbers_take(c->numbers, "one more"), 0);
	assert_int_equal(vhost_numbers_take(c->numbers, "v7"), 8);
	assert_int_equal(vhost_numbers_left_out(c->numbers), 1);
	vhost_numbers_give(c->numbers, 0);
	assert_int_equal(vhost_numbers_left_out(c->numbers), 0);
	vhost_numbers_give(c->numbers, 1);
	after_s(c, 600);
	assert_int_equal(vhost_numbers_take(c->numbers, "one more"), 1);
	tear_down(c);
}

static void without_memory_a_name_is_left_out(void **state)
{
	struct counted *c = set_up();
	uint16_t number;
	ALLOC_FAIL_EACH(number = vhost_numbers_take(c->numbers, "a"), !number,
		vhost_numbers_give(c->numbers, number));
	while (vhost_numbers_left_out(c->numbers))
		vhost_numbers_give(c->numbers, 0); // of each that failed
	struct vhost_numbers *n;
	ALLOC_FAIL_EACH(n = vhost_numbers_new(c->workers, c->wheel), !n, vhost_numbers_free(n));
	tear_down(c);
}

RUN_SUITE("ctrl/vhost_numbers",
	cmocka_unit_test(ops_270_a_name_has_one_number_as_long_as_anybody_has_it),
	cmocka_unit_test(ops_270_who_gets_anothers_number_begins_at_zero),
	cmocka_unit_test(ops_270_requests_that_last_keep_their_number),
	cmocka_unit_test(ops_271_names_without_a_place_are_counted_until_they_go),
	cmocka_unit_test(without_memory_a_name_is_left_out))
