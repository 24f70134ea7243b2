// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/credential.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <errno.h>

static char contexts[4]; // stand for contexts of TLS
static uint32_t n_put[4];

static struct tlshs_context *context(int i)
{
	return (struct tlshs_context *)(void *)&contexts[i];
}

static void put(struct tlshs_context *c)
{
	n_put[(char *)c - contexts]++;
}

static struct lb_credential *credential(int i)
{
	n_put[i] = 0;
	return lb_credential_new(context(i), put);
}

static void last_put_gives_the_context_back_once(void **state)
{
	(void)state;
	struct lb_credential *c = credential(0);
	assert_ptr_equal(c->tls, context(0));
	assert_ptr_equal(lb_credential_get(c), c);
	lb_credential_put(c);
	assert_int_equal(n_put[0], 0);
	lb_credential_put(c);
	assert_int_equal(n_put[0], 1);
	lb_credential_put(NULL);
}

static void without_memory_the_context_is_given_back(void **state)
{
	(void)state;
	if (!alloc_fail_works())
		skip();
	n_put[0] = 0;
	alloc_fail_arm(0);
	assert_null(lb_credential_new(context(0), put));
	assert_true(alloc_fail_disarm());
	assert_int_equal(n_put[0], 1);
}

// TLS-160
static void an_id_has_nothing_until_it_is_set_and_after_it_is_removed(void **state)
{
	(void)state;
	struct lb_credentials *all = NULL;
	assert_null(lb_credentials_at(all, 1));
	struct lb_credential *c = credential(0);
	assert_int_equal(lb_credentials_set(&all, 7, c), 0);
	assert_ptr_equal(lb_credentials_at(all, 7), c);
	assert_null(lb_credentials_at(all, 6));
	assert_null(lb_credentials_at(all, LB_PLAIN_TEXT));
	assert_null(lb_credentials_at(all, UINT32_MAX));
	lb_credential_put(c);
	assert_int_equal(lb_credentials_set(&all, 7, NULL), 0);
	assert_int_equal(n_put[0], 1);
	assert_null(lb_credentials_at(all, 7));
	lb_credentials_put(all);
}

static void what_others_hold_does_not_change(void **state)
{
	(void)state;
	struct lb_credential *a = credential(0), *b = credential(1);
	struct lb_credentials *mine = NULL;
	assert_int_equal(lb_credentials_set(&mine, 1, a), 0);
	struct lb_credentials *theirs = lb_credentials_get(mine);
	assert_int_equal(lb_credentials_set(&mine, 1, a), 0); // nothing new
	assert_ptr_equal(mine, theirs);
	assert_int_equal(lb_credentials_set(&mine, 1, b), 0);
	assert_ptr_not_equal(mine, theirs);
	assert_ptr_equal(lb_credentials_at(theirs, 1), a);
	assert_ptr_equal(lb_credentials_at(mine, 1), b);
	lb_credential_put(a);
	lb_credential_put(b);
	assert_int_equal(n_put[0], 0);
	lb_credentials_put(theirs);
	assert_int_equal(n_put[0], 1);
	lb_credentials_put(mine);
	assert_int_equal(n_put[1], 1);
}

static void each_failed_allocation_changes_nothing(void **state)
{
	(void)state;
	struct lb_credential *c = credential(0);
	struct lb_credentials *all = NULL;
	assert_int_equal(lb_credentials_set(&all, 1, c), 0);
	struct lb_credentials *before = all;
	int ret = 0;
	ALLOC_FAIL_EACH(ret = lb_credentials_set(&all, 100, c),
		ret == -ENOMEM && all == before && c->n_refs == 2, (void)0);
	assert_int_equal(c->n_refs, 3);
	lb_credentials_put(all);
	lb_credential_put(c);
	assert_int_equal(n_put[0], 1);
}

RUN_SUITE("lb/credential", cmocka_unit_test(last_put_gives_the_context_back_once),
	cmocka_unit_test(without_memory_the_context_is_given_back),
	cmocka_unit_test(an_id_has_nothing_until_it_is_set_and_after_it_is_removed),
	cmocka_unit_test(what_others_hold_does_not_change),
	cmocka_unit_test(each_failed_allocation_changes_nothing))
