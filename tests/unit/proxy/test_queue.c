// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/queue.h"
#include "dataplane/proxy/request.h"
#include "tests/support/check.h"

#include <string.h>

#define N 6

static char picked[64]; // names of the requests, in the order of their picks
static struct proxy_queues queues;
static struct proxy_request requests[N]; // "a", "b", …

// None finds a backend.
static bool pick_again(struct proxy_request *r)
{
	const char name[] = {(char)('a' + (r - requests)), '\0'};
	strcat(picked, name);
	return false;
}

static int setup(void **state)
{
	picked[0] = '\0';
	memset(requests, 0, sizeof(requests));
	return proxy_queues_init(&queues, N);
}

static int teardown(void **state)
{
	proxy_queues_fini(&queues);
	return 0;
}

static void append(int from, int to)
{
	for (int i = from; i < to; i++)
		proxy_queue_append(&queues, &requests[i]);
}

static void walk(uint32_t budget)
{
	assert_false(proxy_queues_walk(&queues, &budget, pick_again));
}

// MC-17
static void a_change_picks_all_again_in_order(void **state)
{
	append(0, 4);
	walk(100);
	assert_string_equal(picked, "");
	proxy_queues_changed(&queues);
	walk(100);
	assert_string_equal(picked, "abcd");
	walk(100);
	assert_string_equal(picked, "abcd");
}

static void a_walk_goes_on_where_the_budget_ended(void **state)
{
	append(0, 5);
	proxy_queues_changed(&queues);
	walk(2);
	assert_string_equal(picked, "ab");
	walk(2);
	assert_string_equal(picked, "abcd");
	walk(100);
	assert_string_equal(picked, "abcde");
}

static void a_change_during_a_walk_makes_another_one(void **state)
{
	append(0, 3);
	proxy_queues_changed(&queues);
	walk(2);
	proxy_queues_changed(&queues);
	walk(100);
	assert_string_equal(picked, "abcabc");
}

// it waits at the front, and is picked though nothing else has changed.
static void those_that_come_back_go_first(void **state)
{
	append(0, 2);
	for (int i = 4; i >= 2; i--) // as a backend gives them up, the last one first
		proxy_queue_prepend(&queues, &requests[i]);
	walk(100);
	assert_string_equal(picked, "cdeab");
}

static void one_that_comes_back_during_a_walk_is_not_missed(void **state)
{
	append(0, 3);
	proxy_queues_changed(&queues);
	walk(2);
	proxy_queue_prepend(&queues, &requests[5]);
	walk(100);
	assert_string_equal(picked, "abcfabc");
}

static void a_walk_survives_the_removal_of_its_next(void **state)
{
	append(0, 4);
	proxy_queues_changed(&queues);
	walk(1);
	proxy_queue_remove(&queues, &requests[1]);
	proxy_queue_remove(&queues, &requests[0]);
	walk(100);
	assert_string_equal(picked, "acd");
	proxy_queue_remove(&queues, &requests[2]);
	proxy_queue_remove(&queues, &requests[3]);
	proxy_queues_changed(&queues);
	walk(100);
	assert_string_equal(picked, "acd");
	assert_true(list_empty(&queues.used));
}

static void clusters_are_walked_one_after_the_other(void **state)
{
	append(0, 2);
	requests[2].cluster_id = 1;
	append(2, 3);
	proxy_queues_changed(&queues);
	walk(100);
	assert_int_equal(strlen(picked), 3);
	assert_non_null(strstr(picked, "ab"));
	assert_non_null(strchr(picked, 'c'));
}

//
static void newcomers_wait_behind_those_about_to_be_picked(void **state)
{
	assert_false(proxy_queue_must_wait(&queues, 0));
	append(0, 2);
	assert_false(proxy_queue_must_wait(&queues, 0));
	proxy_queues_changed(&queues);
	assert_true(proxy_queue_must_wait(&queues, 0));
	assert_false(proxy_queue_must_wait(&queues, 1));
	walk(100);
	assert_false(proxy_queue_must_wait(&queues, 0));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
RUN_SUITE("proxy/queue", CASE(a_change_picks_all_again_in_order),
	CASE(a_walk_goes_on_where_the_budget_ended), CASE(a_change_during_a_walk_makes_another_one),
	CASE(those_that_come_back_go_first), CASE(one_that_comes_back_during_a_walk_is_not_missed),
	CASE(a_walk_survives_the_removal_of_its_next),
	CASE(clusters_are_walked_one_after_the_other),
	CASE(newcomers_wait_behind_those_about_to_be_picked))
