// SPDX-License-Identifier: Apache-2.0
// Which clusters have an endpoint, of which there may be hundreds.
#include "ctrl/stats/endpoint_clusters.h"
#include "lb/pick/limits.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>

#define LAST (LB_MAX_ENDPOINTS - 1)

static void assert_named(const struct endpoint_clusters *c, uint32_t id, const char *wanted)
{
	char *text = endpoint_clusters_text(c, id);
	assert_non_null(text);
	assert_string_equal(text, wanted);
	free(text);
}

static void endpoints_that_are_wanted_get_names(void **state)
{
	struct endpoint_clusters *c = endpoint_clusters_new(3);
	endpoint_clusters_want(c, 7);
	endpoint_clusters_want(c, LAST);
	endpoint_clusters_want(c, 7);
	endpoint_clusters_want(c, 0);
	assert_named(c, 7, "");
	endpoint_clusters_add(c, "a green", 7);
	endpoint_clusters_add(c, "a green", 8); // of no interest
	endpoint_clusters_add(c, "a green", 7);
	endpoint_clusters_add(c, "green", 7); // the end of another's name
	endpoint_clusters_add(c, "green", LAST);
	endpoint_clusters_add(c, "green", LAST);
	assert_named(c, 7, "a green, green");
	assert_named(c, LAST, "green");
	assert_named(c, 0, "");
	assert_named(c, 8, "");
	assert_named(c, UINT32_MAX, "");
	endpoint_clusters_free(c);
}

static void after_eight_names_it_says_that_there_are_more(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
	struct endpoint_clusters *c = endpoint_clusters_new(1);
	endpoint_clusters_want(c, 1);
	for (int i = 0; i < 8; i++)
		endpoint_clusters_add(c, names[i], 1);
	endpoint_clusters_add(c, "h", 1); // by its other address
	assert_named(c, 1, "a, b, c, d, e, f, g, h");
	endpoint_clusters_add(c, names[8], 1);
	assert_named(c, 1, "a, b, c, d, e, f, g, h, ...");
	endpoint_clusters_add(c, names[9], 1);
	assert_named(c, 1, "a, b, c, d, e, f, g, h, ...");
	endpoint_clusters_free(c);
}

static void to_add_clusters_takes_no_memory(void **state)
{
	static char names[500][8];
	struct endpoint_clusters *c = endpoint_clusters_new(100);
	for (int i = 0; i < 500; i++)
		snprintf(names[i], sizeof(names[i]), "c%d", i);
	for (uint32_t id = 0; id < 100; id++)
		endpoint_clusters_want(c, id);
	alloc_fail_arm(0);
	for (int i = 0; i < 500; i++)
		for (uint32_t id = 0; id < 200; id++)
			endpoint_clusters_add(c, names[i], id);
	assert_false(alloc_fail_disarm());
	for (uint32_t id = 0; id < 100; id++)
		assert_named(c, id, "c0, c1, c2, c3, c4, c5, c6, c7, ...");
	endpoint_clusters_free(c);
}

RUN_SUITE("ctrl/endpoint_clusters", cmocka_unit_test(endpoints_that_are_wanted_get_names),
	cmocka_unit_test(after_eight_names_it_says_that_there_are_more),
	cmocka_unit_test(to_add_clusters_takes_no_memory))
