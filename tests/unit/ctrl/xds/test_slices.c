// SPDX-License-Identifier: Apache-2.0
// Large responses: taken in bit by bit, bounded, and what nobody wants passed over (TH-57).
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/client_fixture.h"

#include <stdlib.h>
#include <string.h>

#define STEPS 100 // more than any response here takes

// The client takes one step of a response a turn, and none without turn().
static void init_stepwise(struct fixture *f)
{
	setenv("SHUNT_TEST_SLICE", "1", true);
	fixture_init(f, "");
	f->server.wheel = NULL;
	unsetenv("SHUNT_TEST_SLICE");
}

static void turn(struct fixture *f, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		twheel_advance(f->wheel, f->now_ns);
}

static struct xds_server_info info_of(struct fixture *f)
{
	struct xds_server_info info;
	xds_client_server(f->client, &info);
	return info;
}

static void listen_to_both(struct fixture *f, struct ear *a, struct ear *b)
{
	xds_client_begin(f->client);
	listen_to(f, &toy_cluster, "a", a);
	listen_to(f, &toy_cluster, "b", b);
	xds_client_end(f->client);
	expect_request(f, &toy_cluster, "a b", "", "");
}

static void nothing_of_a_response_shows_before_all_of_it(void **state)
{
	struct fixture f;
	struct ear a, b;
	init_stepwise(&f);
	listen_to_both(&f, &a, &b);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=1", NULL);
	for (unsigned n = 0; !f.server.sending; n++) {
		assert_true(n < STEPS);
		assert_string_equal(heard(&a), "");
		assert_string_equal(heard(&b), "");
		assert_string_equal(state_of(&f, "a"), "REQUESTED ");
		assert_string_equal(state_of(&f, "b"), "REQUESTED ");
		assert_false(f.server.reading); // the next response waits
		turn(&f, 1);
	}
	assert_string_equal(heard(&a), "=1");
	assert_string_equal(heard(&b), "=1");
	expect_request(&f, &toy_cluster, "a b", "v1", "n1");
	assert_true(f.server.reading);
	fixture_fini(&f);
}

static void answers_come_in_the_order_of_responses(void **state)
{
	struct fixture f;
	struct ear a, b;
	init_stepwise(&f);
	listen_to_both(&f, &a, &b);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=BAD", NULL);
	turn(&f, STEPS);
	expect_nack(&f, &toy_cluster, "a b", "", "n1", "cluster \"b\"");
	respond(&f, &toy_cluster, "v2", "n2", "a=2", "b=2", NULL);
	turn(&f, STEPS);
	expect_request(&f, &toy_cluster, "a b", "v2", "n2");
	assert_string_equal(heard(&a), "=1 =2");
	assert_string_equal(heard(&b), "!3 =2");
	fixture_fini(&f);
}

static void watches_of_meanwhile_are_asked_for_with_the_answer(void **state)
{
	struct fixture f;
	struct ear a, b, c;
	init_stepwise(&f);
	listen_to_both(&f, &a, &b);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=1", "c=1", NULL);
	turn(&f, 1);
	xds_client_cancel(f.client, &b.watcher);
	listen_to(&f, &toy_cluster, "c", &c);
	expect_silence(&f);
	turn(&f, STEPS);
	expect_request(&f, &toy_cluster, "a c", "v1", "n1");
	assert_string_equal(heard(&a), "=1");
	assert_string_equal(heard(&b), "");
	assert_string_equal(state_of(&f, "b"), "");
	fixture_fini(&f);
}

static void a_stream_that_breaks_in_the_middle_leaves_nothing(void **state)
{
	for (unsigned n = 0; n < 3; n++) {
		struct fixture f;
		struct ear a, b;
		init_stepwise(&f);
		listen_to_both(&f, &a, &b);
		respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=1", "x=1", NULL);
		turn(&f, n);
		fake_ads_close(&f.server, "bye");
		turn(&f, STEPS);
		assert_string_equal(heard(&a), "");
		assert_string_equal(state_of(&f, "a"), "REQUESTED ");
		pass_time(&f, 2 * S);
		expect_request(&f, &toy_cluster, "a b", "", "");
		respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=1", NULL);
		turn(&f, STEPS);
		expect_request(&f, &toy_cluster, "a b", "v1", "n1");
		assert_string_equal(heard(&a), "=1");
		fixture_fini(&f);
	}
}

static void a_client_may_end_in_the_middle(void **state)
{
	struct fixture f;
	struct ear a, b;
	init_stepwise(&f);
	listen_to_both(&f, &a, &b);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=1", NULL);
	turn(&f, 1);
	fixture_fini(&f);
}

static const struct fake_resource some[] = {
	{.bytes = (const uint8_t *)"x=1", .len = 3, .wrapper_name = "x"},
	{.bytes = (const uint8_t *)"a=1", .len = 3, .wrapper_name = "a"},
	{.bytes = (const uint8_t *)"y=BAD", .len = 5, .wrapper_name = "y"},
	{.bytes = (const uint8_t *)"y=1", .len = 3, .wrapper_name = "y"},
};

// PC-08
static void what_nobody_subscribes_to_is_passed_over_undecoded(void **state)
{
	struct fixture f;
	struct ear a;
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	expect_request(&f, &toy_cluster, "a", "", "");
	unsigned before = n_toys_decoded;
	fake_ads_respond(&f.server, CLUSTER_URL, "v1", "n1", some, 4);
	expect_request(&f, &toy_cluster, "a", "v1", "n1");
	assert_string_equal(heard(&a), "=1");
	assert_int_equal(n_toys_decoded - before, 1);
	assert_int_equal(info_of(&f).n_unwanted, 3);
	fixture_fini(&f);
}

// What nobody can pass over is looked at: it may be somebody's.
static void what_does_not_tell_its_name_is_looked_at(void **state)
{
	struct fixture f;
	struct ear a;
	const struct fake_resource list[] = {
		some[1],
		{.bytes = (const uint8_t *)"BAD", .len = 3}, // no name
		{.bytes = (const uint8_t *)"z", .len = 1, .wrapper_name = "*"},
		{.type_url = ENDPOINTS_URL,
			.bytes = (const uint8_t *)"z=1",
			.len = 3,
			.wrapper_name = "z"},
	};
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	expect_request(&f, &toy_cluster, "a", "", "");
	fake_ads_respond(&f.server, CLUSTER_URL, "v1", "n1", list, 4);
	expect_nack(&f, &toy_cluster, "a", "", "n1",
		"resource 1: has no name; resource 2: is named \"*\"");
	assert_string_equal(heard(&a), "=1");
	fixture_fini(&f);
}

static void limited(struct fixture *f, struct ear *a, struct xds_limits limits)
{
	static const struct xds_type *const TYPES[] = {&toy_cluster, &toy_endpoints};
	fixture_init(f, "");
	xds_client_free(f->client);
	f->client = xds_client_new(&(struct xds_client_conf){
		.bootstrap = f->bootstrap,
		.types = TYPES,
		.n_types = 2,
		.transport = fake_ads_factory(&f->server),
		.wheel = f->wheel,
		.rand = &f->rand,
		.user_agent_version = "1",
		.limits = limits,
	});
	assert_non_null(f->client);
	listen_to(f, &toy_cluster, "a", a);
	expect_request(f, &toy_cluster, "a", "", "");
	respond(f, &toy_cluster, "v1", "n1", "a=1", NULL);
	expect_request(f, &toy_cluster, "a", "v1", "n1");
	assert_string_equal(heard(a), "=1");
}

// TH-57
static void a_response_of_too_many_resources_is_refused_unread_and_the_last_serves(void **state)
{
	struct fixture f;
	struct ear a;
	limited(&f, &a, (struct xds_limits){.n_resources = 2});
	unsigned before = n_toys_decoded;
	respond(&f, &toy_cluster, "v2", "n2", "a=2", "b=1", "c=1", NULL);
	expect_nack(&f, &toy_cluster, "a", "v1", "n2",
		"the response has 3 resources, and xds_resources is 2: nothing of it is used");
	assert_int_equal(n_toys_decoded, before);
	assert_string_equal(heard(&a), "");
	assert_string_equal(state_of(&f, "a"), "ACKED v1");
	assert_int_equal(info_of(&f).n_over_limit, 1);
	respond(&f, &toy_cluster, "v3", "n3", "a=3", "b=1", NULL); // the stream lives
	expect_request(&f, &toy_cluster, "a", "v3", "n3");
	assert_string_equal(heard(&a), "=3");
	fixture_fini(&f);
}

static void a_response_of_too_many_bytes_is_refused_unread(void **state)
{
	struct fixture f;
	struct ear a;
	static char large[3 << 20];
	memset(large, 'x', sizeof(large) - 1);
	memcpy(large, "a=", 2);
	limited(&f, &a, (struct xds_limits){.len = 2 << 20});
	respond(&f, &toy_cluster, "v2", "n2", large, NULL);
	expect_nack(&f, &toy_cluster, "a", "v1", "n2", "bytes, and xds_response_mib is 2");
	assert_string_equal(heard(&a), "");
	assert_int_equal(info_of(&f).n_over_limit, 1);
	fixture_fini(&f);
}

// TH-57: who has nothing yet is told at once, instead of "does not exist" after 15 s.
static void who_waits_for_a_first_word_hears_that_a_response_was_not_read(void **state)
{
	struct fixture f;
	struct ear a, b, other;
	limited(&f, &a, (struct xds_limits){.n_resources = 2});
	listen_to(&f, &toy_endpoints, "e", &other);
	expect_request(&f, &toy_endpoints, "e", "", "");
	listen_to(&f, &toy_cluster, "b", &b);
	expect_request(&f, &toy_cluster, "a b", "v1", "n1");
	respond(&f, &toy_cluster, "v2", "n2", "a=2", "b=1", "c=1", NULL);
	expect_nack(&f, &toy_cluster, "a b", "v1", "n2", "xds_resources is 2");
	assert_string_equal(heard(&a), ""); // serves on
	assert_string_equal(state_of(&f, "a"), "ACKED v1");
	assert_string_equal(heard(&b), "!3");
	assert_non_null(strstr(b.text, "was not read: the response has 3 resources, and "
				       "xds_resources is 2: nothing of it is used"));
	assert_string_equal(heard(&other), ""); // of another type
	pass_time(&f, 20 * NS_PER_SECOND);
	assert_string_equal(heard(&b), "");
	respond(&f, &toy_cluster, "v3", "n3", "a=1", "b=1", NULL);
	expect_request(&f, &toy_cluster, "a b", "v3", "n3");
	assert_string_equal(heard(&b), "=1");
	fixture_fini(&f);
}

RUN_SUITE("xds/slices", cmocka_unit_test(nothing_of_a_response_shows_before_all_of_it),
	cmocka_unit_test(answers_come_in_the_order_of_responses),
	cmocka_unit_test(who_waits_for_a_first_word_hears_that_a_response_was_not_read),
	cmocka_unit_test(watches_of_meanwhile_are_asked_for_with_the_answer),
	cmocka_unit_test(a_stream_that_breaks_in_the_middle_leaves_nothing),
	cmocka_unit_test(a_client_may_end_in_the_middle),
	cmocka_unit_test(what_nobody_subscribes_to_is_passed_over_undecoded),
	cmocka_unit_test(what_does_not_tell_its_name_is_looked_at),
	cmocka_unit_test(a_response_of_too_many_resources_is_refused_unread_and_the_last_serves),
	cmocka_unit_test(a_response_of_too_many_bytes_is_refused_unread))
