// SPDX-License-Identifier: Apache-2.0
#include "lb/cluster.h"
#include "lb/pick/picker.h"
#include "lb/route/hash_policy.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <string.h>

static void queue_picker_always_queues(void **state)
{
	(void)state;
	struct lb_pick_ctx ctx = {0};
	struct lb_picker *p = lb_picker_queue();
	struct lb_pick pick = lb_pick(p, &ctx);
	assert_int_equal(pick.kind, LB_PICK_QUEUE);
	assert_null(pick.want);
	assert_ptr_equal(lb_picker_get(p), lb_picker_queue()); // for good, however often it is put
	for (int i = 0; i < 3; i++)
		lb_picker_put(p);
	assert_int_equal(lb_pick(p, &ctx).kind, LB_PICK_QUEUE);
	lb_picker_put(NULL);
}

static void fail_picker_keeps_a_copy_of_its_text(void **state)
{
	(void)state;
	char text[] = "cluster orders: no endpoints";
	struct lb_picker *p = lb_picker_new_fail(text);
	memset(text, 'x', sizeof(text) - 1);
	struct lb_pick_ctx ctx = {0};
	struct lb_pick pick = lb_pick(p, &ctx);
	assert_int_equal(pick.kind, LB_PICK_FAIL);
	assert_string_equal(pick.text, "cluster orders: no endpoints");
	lb_picker_put(p);
}

static void cluster_holds_its_picker(void **state)
{
	(void)state;
	struct lb_pick_ctx ctx = {0};
	struct lb_picker *p = lb_picker_new_fail("down");
	struct lb_cluster *c = lb_cluster_new(7, "orders", LB_TRANSIENT_FAILURE, p);
	lb_picker_put(p);
	assert_ptr_equal(lb_cluster_get(c), c);
	lb_cluster_put(c);
	assert_string_equal(lb_pick(c->picker, &ctx).text, "down");
	assert_string_equal(c->name, "orders");
	lb_cluster_put(c);
	lb_cluster_put(NULL);
}

// HP-06
static void hash_is_made_when_asked_for_and_kept(void **state)
{
	(void)state;
	static const struct field field = {.name = {"user", 4}, .value = {"alice", 5}};
	static const struct lb_hash_policy by_user = {
		.kind = LB_HASH_HEADER, .header = {"user", 4}};
	const struct lb_req with = {.fields = &field, .n_fields = 1}, without = {.n_fields = 0};
	struct rand rand, same;
	rand_init(&rand, 3);
	rand_init(&same, 3);
	struct lb_pick_hash hash = {0};
	char scratch[16];
	struct lb_pick_ctx ctx = {.req = &with,
		.rand = &rand,
		.hash = &hash,
		.recipe = {&by_user, 1, true},
		.scratch = scratch,
		.scratch_size = sizeof(scratch)};
	assert_int_equal(lb_pick_hash(&ctx), UINT64_C(0x73a3ea485f2e6049)); // HP-01
	ctx.req = &without;
	assert_int_equal(lb_pick_hash(&ctx), UINT64_C(0x73a3ea485f2e6049));
	hash.known = false;
	uint64_t drawn = rand_u64(&same);
	assert_int_equal(lb_pick_hash(&ctx), drawn);
	assert_int_equal(lb_pick_hash(&ctx), drawn);
	hash.known = false;
	ctx.recipe = (struct lb_hash_recipe){0};
	assert_int_equal(lb_pick_hash(&ctx), rand_u64(&same));
}

static void each_failed_allocation_is_survived(void **state)
{
	(void)state;
	struct lb_picker *p = NULL;
	ALLOC_FAIL_EACH(p = lb_picker_new_fail("x"), !p, (void)0);
	struct lb_cluster *c = NULL;
	ALLOC_FAIL_EACH(c = lb_cluster_new(1, "x", LB_IDLE, p), !c, lb_cluster_put(c));
	assert_int_equal(p->n_refs, 1);
	lb_picker_put(p);
}

RUN_SUITE("lb/picker", cmocka_unit_test(queue_picker_always_queues),
	cmocka_unit_test(fail_picker_keeps_a_copy_of_its_text),
	cmocka_unit_test(cluster_holds_its_picker),
	cmocka_unit_test(hash_is_made_when_asked_for_and_kept),
	cmocka_unit_test(each_failed_allocation_is_survived))
