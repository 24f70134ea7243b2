// SPDX-License-Identifier: Apache-2.0
#include "tests/support/check.h"
#include "tools/shunt-load/plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct plan plan;
static struct lb_err err;

static int fresh(void **state)
{
	return plan_init(&plan, false, "a.test");
}

static int drop(void **state)
{
	plan_fini(&plan);
	return 0;
}

static void add(const char *path)
{
	assert_int_equal(plan_add_path(&plan, path, &err), 0);
}

static void assert_refused(int r, const char *why)
{
	assert_int_equal(r, -EINVAL);
	assert_non_null(strstr(err.text, why));
}

static void paths_are_drawn_by_weight(void **state)
{
	static const double weights[] = {1, 70, 9, 20};
	uint32_t counts[4] = {0};
	struct rand rand;
	add("/one");
	add("70:/most");
	add("9:/few?x=1:2");
	add("20:/some");
	rand_init(&rand, 7);
	for (int i = 0; i < 100000; i++)
		counts[plan_draw(&plan, &rand)]++;
	for (int i = 0; i < 4; i++) // 5 sigma
		assert_true(fabs(counts[i] - 1000 * weights[i]) < 5 * sqrt(1000 * weights[i]));
	assert_true(str_eq(plan.paths[2].text, STR("/few?x=1:2")));
}

static void odd_paths_are_refused(void **state)
{
	assert_refused(plan_add_path(&plan, "a/b", &err), "does not begin with /");
	assert_refused(plan_add_path(&plan, "", &err), "does not begin with /");
	assert_refused(plan_add_path(&plan, "/a b", &err), "odd characters");
	assert_refused(plan_add_path(&plan, "/a#b", &err), "odd characters");
	assert_refused(plan_add_path(&plan, "0:/a", &err), "weight");
	assert_refused(plan_add_path(&plan, "x:/a", &err), "weight");
	assert_refused(plan_add_path(&plan, "-1:/a", &err), "weight");
	assert_refused(plan_add_path(&plan, "3:a", &err), "does not begin with /");
}

static void odd_fields_are_refused(void **state)
{
	assert_refused(plan_add_field(&plan, STR("nothing"), &err), "colon");
	assert_refused(plan_add_field(&plan, STR(":path: /"), &err), "no name");
	assert_refused(plan_add_field(&plan, STR("Upper: x"), &err), "lower-case");
	assert_refused(plan_add_field(&plan, STR("two words: x"), &err), "lower-case");
	assert_refused(plan_add_field(&plan, STR("a: \x01"), &err), "control");
	assert_refused(plan_add_field(&plan, STR("connection: close"), &err), "not to be chosen");
	assert_refused(plan_add_field(&plan, STR("x-load-id: 1"), &err), "not to be chosen");
}

static void too_many_fields_are_refused(void **state)
{
	int r = 0;
	for (int i = 0; r == 0 && i <= PLAN_MAX_FIELDS; i++)
		r = plan_add_field(&plan, STR("a: b"), &err);
	assert_refused(r, "more than");
	assert_int_equal(plan_seal(&plan, PLAN_CHECK_CONTENT, 100, 0), 0);
	assert_true(plan.n_fields <= PLAN_MAX_FIELDS);
}

static void a_file_of_fields_is_read(void **state)
{
	char name[] = "/tmp/shunt-load-XXXXXX";
	static const char text[] = "# of a test\n\n a-b :  one: two \r\nempty:\nlast: x";
	int fd = mkstemp(name);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	size_t before = plan.n_fields;
	int r = plan_read_fields(&plan, name, &err);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, "a: b\n\nBad: x\n", 13, 0), 13);
	int bad = plan_read_fields(&plan, name, &err);
	close(fd);
	unlink(name);
	assert_int_equal(r, 0);
	assert_true(str_eq(plan.fields[before].name, STR("a-b")));
	assert_true(str_eq(plan.fields[before].value, STR("one: two")));
	assert_true(str_eq(plan.fields[before + 1].value, STR("")));
	assert_true(str_eq(plan.fields[before + 2].value, STR("x")));
	assert_refused(bad, ":3: ");
	assert_refused(
		plan_read_fields(&plan, "/nowhere/at/all", &err), "/nowhere/at/all: No such");
}

static const struct field *find(const struct h2_message *m, const char *name)
{
	for (size_t i = 0; i < m->n_fields; i++)
		if (str_eq(m->fields[i].name, str_from(name)))
			return &m->fields[i];
	return NULL;
}

static void an_id_travels_in_a_field_when_the_body_has_no_room(void **state)
{
	struct field fields[PLAN_MAX_FIELDS + 1];
	char id[16];
	struct h2_message m;
	assert_int_equal(plan_add_field(&plan, STR("mine: yes"), &err), 0);
	assert_int_equal(plan_seal(&plan, PLAN_CHECK_CONTENT, 0, 64), 0);
	plan_request(&plan, 0, 0xabc, fields, id, &m);
	assert_true(str_eq(m.method, STR("GET")) && m.end_stream);
	assert_true(str_eq(m.path, STR("/")) && str_eq(m.authority, STR("a.test")));
	assert_true(str_eq(find(&m, "x-load-id")->value, STR("0000000000000abc")));
	assert_true(find(&m, "x-load-id")->never_index);
	assert_true(str_eq(find(&m, "x-load-answer")->value, STR("64")));
	assert_true(str_eq(find(&m, "mine")->value, STR("yes")));
}

static void a_body_that_holds_the_id_needs_no_field(void **state)
{
	struct field fields[PLAN_MAX_FIELDS + 1];
	char id[16];
	struct h2_message m;
	assert_int_equal(plan_seal(&plan, PLAN_CHECK_CONTENT, 8, 8), 0);
	plan_request(&plan, 0, 1, fields, id, &m);
	assert_null(find(&m, "x-load-id"));
	assert_true(str_eq(m.method, STR("POST")) && !m.end_stream);
	assert_true(str_eq(find(&m, "content-length")->value, STR("8")));
}

static void requests_are_all_alike_when_contents_are_not_checked(void **state)
{
	struct field fields[PLAN_MAX_FIELDS + 1];
	char id[16];
	struct h2_message m;
	assert_int_equal(plan_seal(&plan, PLAN_CHECK_SAME, 0, 0), 0);
	plan_request(&plan, 0, 1, fields, id, &m);
	assert_int_equal(m.n_fields, 1);
	assert_non_null(find(&m, "user-agent"));
}

static void grpc_has_its_fields(void **state)
{
	struct field fields[PLAN_MAX_FIELDS + 1];
	char id[16];
	struct h2_message m;
	plan_fini(&plan);
	assert_int_equal(plan_init(&plan, true, "a.test"), 0);
	assert_int_equal(plan_seal(&plan, PLAN_CHECK_CONTENT, 0, 0), 0);
	plan_request(&plan, 0, 1, fields, id, &m);
	assert_true(str_eq(m.method, STR("POST")) && !m.end_stream);
	assert_true(str_eq(find(&m, "content-type")->value, STR("application/grpc")));
	assert_true(str_eq(find(&m, "te")->value, STR("trailers")));
	assert_null(find(&m, "content-length"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, fresh, drop)
RUN_SUITE("shunt-load/plan", CASE(paths_are_drawn_by_weight), CASE(odd_paths_are_refused),
	CASE(odd_fields_are_refused), CASE(too_many_fields_are_refused),
	CASE(a_file_of_fields_is_read), CASE(an_id_travels_in_a_field_when_the_body_has_no_room),
	CASE(a_body_that_holds_the_id_needs_no_field),
	CASE(requests_are_all_alike_when_contents_are_not_checked), CASE(grpc_has_its_fields))
