// SPDX-License-Identifier: Apache-2.0
// Versions, sharing and lookup of resource sets.
#include "lb/base/err.h"
#include "tests/support/check.h"
#include "tools/shunt-xds/resource_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void add(
	struct resource_set *set, enum resource_type type, const char *name, const char *body)
{
	struct resource *r = resource_new(type, name, "file", (const uint8_t *)body, strlen(body));
	assert_non_null(r);
	assert_int_equal(resource_set_add(set, r), 0);
}

static void seal(struct resource_set *set, const struct resource_set *before)
{
	struct lb_err err;
	assert_int_equal(resource_set_seal(set, before, &err), 0);
}

static void type_urls_are_found(void **state)
{
	for (int t = 0; t < N_RESOURCE_TYPES; t++)
		assert_int_equal(resource_type_find(str_from(resource_type_info(t)->url)), t);
	assert_int_equal(resource_type_find(STR("type.googleapis.com/envoy.api.v2.Cluster")),
		N_RESOURCE_TYPES);
	assert_int_equal(resource_type_find(STR("")), N_RESOURCE_TYPES);
}

static void resources_are_found_by_type_and_name(void **state)
{
	struct resource_set *set = resource_set_new();
	char name[16];
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "c%d", (i * 37) % 100);
		add(set, RESOURCE_CLUSTER, name, "x");
	}
	add(set, RESOURCE_ROUTES, "r", "x");
	seal(set, NULL);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		assert_string_equal(resource_set_find(set, RESOURCE_CLUSTER, name)->name, name);
	}
	assert_null(resource_set_find(set, RESOURCE_CLUSTER, "r"));
	assert_null(resource_set_find(set, RESOURCE_CLUSTER, "c100"));
	assert_null(resource_set_find(set, RESOURCE_LISTENER, "c1"));
	resource_set_free(set);
}

static void version_grows_with_the_content_of_its_type_alone(void **state)
{
	struct resource_set *a = resource_set_new();
	add(a, RESOURCE_CLUSTER, "blue", "1");
	add(a, RESOURCE_CLUSTER, "green", "1");
	add(a, RESOURCE_ROUTES, "r", "1");
	seal(a, NULL);
	assert_int_equal(a->types[RESOURCE_CLUSTER].version, 1);
	assert_int_equal(a->types[RESOURCE_LISTENER].version, 0);

	struct resource_set *b = resource_set_new(); // one changed, one the same
	add(b, RESOURCE_CLUSTER, "green", "2");
	add(b, RESOURCE_CLUSTER, "blue", "1");
	add(b, RESOURCE_ROUTES, "r", "1");
	seal(b, a);
	assert_int_equal(b->types[RESOURCE_CLUSTER].version, 2);
	assert_int_equal(b->types[RESOURCE_ROUTES].version, 1);
	assert_int_equal(resource_set_find(b, RESOURCE_CLUSTER, "blue")->version, 1);
	assert_int_equal(resource_set_find(b, RESOURCE_CLUSTER, "green")->version, 2);
	assert_ptr_equal(resource_set_find(b, RESOURCE_CLUSTER, "blue"),
		resource_set_find(a, RESOURCE_CLUSTER, "blue"));

	struct resource_set *c = resource_set_new(); // only a removal, only an addition
	add(c, RESOURCE_CLUSTER, "blue", "1");
	add(c, RESOURCE_ROUTES, "r", "1");
	add(c, RESOURCE_ROUTES, "s", "1");
	seal(c, b);
	assert_int_equal(c->types[RESOURCE_CLUSTER].version, 3);
	assert_int_equal(c->types[RESOURCE_ROUTES].version, 2);

	struct resource_set *d = resource_set_new(); // what comes back is new
	add(d, RESOURCE_CLUSTER, "green", "2");
	add(d, RESOURCE_CLUSTER, "blue", "1");
	seal(d, c);
	assert_int_equal(resource_set_find(d, RESOURCE_CLUSTER, "green")->version, 4);
	assert_int_equal(d->types[RESOURCE_ROUTES].version, 3);
	resource_set_free(a);
	resource_set_free(b);
	resource_set_free(c);
	resource_set_free(d);
}

static void two_of_one_name_are_refused(void **state)
{
	struct resource_set *set = resource_set_new();
	struct lb_err err;
	static const char *const files[] = {"a.json", "b.json"};
	for (int i = 0; i < 2; i++)
		assert_int_equal(resource_set_add(set,
					 resource_new(RESOURCE_CLUSTER, "blue", files[i], NULL, 0)),
			0);
	add(set, RESOURCE_LISTENER, "blue", ""); // another type is another name
	assert_int_equal(resource_set_seal(set, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cluster \"blue\" stands in both"));
	assert_non_null(strstr(err.text, "a.json"));
	assert_non_null(strstr(err.text, "b.json"));
	resource_set_free(set);
}

RUN_SUITE("shunt-xds/resource_set", cmocka_unit_test(type_urls_are_found),
	cmocka_unit_test(resources_are_found_by_type_and_name),
	cmocka_unit_test(version_grows_with_the_content_of_its_type_alone),
	cmocka_unit_test(two_of_one_name_are_refused))
