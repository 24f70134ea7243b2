// SPDX-License-Identifier: Apache-2.0
// Names and the servers of their authorities (FE-*).
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/federation_fixture.h"

#include <stdio.h>
#include <string.h>

// "a" has its own server, "b" shares it, "c" has the top level's.
#define BOOTSTRAP                                                                                  \
	"{'xds_servers':[" ADS(0) "],'node':{'id':'me'},'authorities':{'a':{'xds_servers':[" ADS(  \
		1) "]},'b':{'xds_servers':[" ADS(1) "]},'c':{},'':{'xds_servers':[" ADS(2) "]}}}"
#define C(authority, id) "xdstp://" authority "/toy.Cluster/" id

static void fe_04_the_authority_chooses_the_server(void **state)
{
	struct world w;
	struct ear old, a, c, empty;
	world_init(&w, BOOTSTRAP);
	world_listen(&w, &toy_cluster, "x", &old);
	expect_request(&w.at[0], &toy_cluster, "x", "", "");
	assert_false(world_connected(&w, 1)); // nothing was asked of it
	world_listen(&w, &toy_cluster, C("a", "x"), &a);
	expect_request(&w.at[1], &toy_cluster, C("a", "x"), "", "");
	world_listen(&w, &toy_cluster, C("c", "x"), &c);
	expect_request(&w.at[0], &toy_cluster, "x " C("c", "x"), "", "");
	world_listen(&w, &toy_cluster, C("", "x"), &empty);
	expect_request(&w.at[2], &toy_cluster, C("", "x"), "", "");

	respond(&w.at[1], &toy_cluster, "1", "n1", C("a", "x") "=1", NULL);
	expect_request(&w.at[1], &toy_cluster, C("a", "x"), "1", "n1");
	assert_string_equal(heard(&a), "=1");
	assert_string_equal(heard(&old), "");
	assert_string_equal(world_state(&w, C("a", "x")), "ACKED 1");
	assert_string_equal(world_state(&w, "x"), "REQUESTED ");
	world_fini(&w);
}

static void fe_04_an_unknown_authority_is_an_error_and_nothing_is_sent(void **state)
{
	struct world w;
	struct ear ear;
	world_init(&w, BOOTSTRAP);
	world_listen(&w, &toy_cluster, C("alien", "x"), &ear);
	assert_string_equal(heard(&ear), "!14");
	assert_string_equal(ear.text,
		"cluster \"" C("alien", "x") "\": authority \"alien\" is not in "
					     "the bootstrap (node id \"me\")");
	for (unsigned i = 0; i < 3; i++)
		assert_false(world_connected(&w, i));
	assert_string_equal(world_state(&w, C("alien", "x")), "");
	world_cancel(&w, &ear); // watches nothing, which is fine
	world_fini(&w);
}

static void fe_02_a_name_of_another_type_is_an_error_and_nothing_is_sent(void **state)
{
	struct world w;
	struct ear ear;
	world_init(&w, BOOTSTRAP);
	world_listen(&w, &toy_endpoints, C("a", "x"), &ear);
	assert_string_equal(heard(&ear), "!14");
	assert_non_null(strstr(ear.text, "is the name of a \"toy.Cluster\""));
	world_listen(&w, &toy_cluster, "xdstp://a", &ear);
	assert_string_equal(heard(&ear), "!14");
	assert_non_null(strstr(ear.text, "has no resource type"));
	assert_false(world_connected(&w, 1));
	world_fini(&w);
}

// A config may name it anywhere that it may name a resource. It is no wildcard then.
static void sw_09_a_star_is_no_name_of_a_resource_and_nothing_is_sent(void **state)
{
	struct world w;
	struct ear star, old;
	world_init(&w, BOOTSTRAP);
	world_listen(&w, &toy_cluster, "*", &star);
	assert_string_equal(heard(&star), "!14");
	assert_string_equal(star.text, "cluster \"*\": stands for all resources (node id \"me\")");
	assert_false(world_connected(&w, 0));
	world_listen(&w, &toy_cluster, "x", &old);
	expect_request(&w.at[0], &toy_cluster, "x", "", "");
	respond(&w.at[0], &toy_cluster, "1", "n1", "x=1", NULL);
	respond(&w.at[0], &toy_cluster, "2", "n2", NULL);
	assert_string_equal(heard(&old), "=1 ~5");
	assert_string_equal(heard(&star), "");
	world_fini(&w);
}

// Watches "*", and what comes for it, by one watcher each.
struct all {
	struct ear star; // first member
	struct world *world;
	struct ear of[4];
	char names[4][16];
	unsigned n;
};

static int on_name(struct xds_watcher *w, const char *name)
{
	struct all *all = (struct all *)w;
	struct ear *ear = &all->of[all->n];
	prepare_ear(ear);
	ear->watcher.by_wildcard = true;
	snprintf(all->names[all->n++], sizeof(all->names[0]), "%s", name);
	return xds_federation_watch_all(all->world->federation, &toy_cluster, name, &ear->watcher);
}

static void hear_all(struct xds_watcher *w, const struct xds_event *e)
{
	struct ear *ear = (struct ear *)w;
	snprintf(ear->heard, sizeof(ear->heard), "%s",
		e->kind == XDS_EVENT_RESOURCE && !e->res ? "complete" : "error");
	snprintf(ear->text, sizeof(ear->text), "%s", e->text ? e->text : "");
}

static void watch_all(struct world *w, struct all *all)
{
	*all = (struct all){.world = w};
	prepare_ear(&all->star);
	all->star.watcher.on_event = hear_all;
	all->star.watcher.on_name = on_name;
	assert_int_equal(
		xds_federation_watch_all(w->federation, &toy_cluster, "*", &all->star.watcher), 0);
}

static void a36_64_a_wildcard_is_told_of_each_name_and_of_its_end(void **state)
{
	struct world w;
	struct all all;
	struct ear x;
	world_init_dropping(&w, BOOTSTRAP);
	watch_all(&w, &all);
	expect_request(&w.at[0], &toy_cluster, "*", "", "");
	respond(&w.at[0], &toy_cluster, "1", "n1", "a=1", "b=1", NULL);
	expect_request(&w.at[0], &toy_cluster, "*", "1", "n1"); // names are not asked for
	assert_int_equal(all.n, 2);
	assert_string_equal(all.names[0], "a");
	assert_string_equal(heard(&all.of[0]), "=1");
	assert_string_equal(heard(&all.of[1]), "=1");
	assert_string_equal(heard(&all.star), "complete");
	assert_string_equal(world_state(&w, "b"), "ACKED 1");
	assert_string_equal(world_state(&w, "*"), ""); // no resource

	world_listen(&w, &toy_cluster, "x", &x);
	expect_request(&w.at[0], &toy_cluster, "* x", "1", "n1");
	respond(&w.at[0], &toy_cluster, "2", "n2", "b=2", "c=2", "x=2", NULL);
	expect_request(&w.at[0], &toy_cluster, "* x", "2", "n2");
	assert_int_equal(all.n, 4); // x came for both
	assert_string_equal(heard(&all.of[0]), "!5");
	assert_string_equal(heard(&all.of[1]), "=2");
	assert_string_equal(heard(&all.of[2]), "=2");
	assert_string_equal(heard(&x), "=2");
	for (unsigned i = 0; i < all.n; i++)
		world_cancel(&w, &all.of[i]);
	xds_federation_cancel(w.federation, &all.star.watcher);
	expect_request(&w.at[0], &toy_cluster, "x", "2", "n2");
	world_fini(&w);
}

static void a36_64_a_wildcard_is_told_of_a_name_that_is_refused_until_it_is_gone(void **state)
{
	struct world w;
	struct all all;
	world_init(&w, BOOTSTRAP);
	watch_all(&w, &all);
	expect_request(&w.at[0], &toy_cluster, "*", "", "");
	respond(&w.at[0], &toy_cluster, "1", "n1", "a=BAD", "b=BAD", NULL);
	expect_nack(&w.at[0], &toy_cluster, "*", "", "n1", "content is BAD");
	assert_int_equal(all.n, 2);
	assert_string_equal(heard(&all.star), "complete");
	assert_string_equal(heard(&all.of[0]), "!3");
	assert_string_equal(world_state(&w, "a"), "NACKED  with error");
	respond(&w.at[0], &toy_cluster, "2", "n2", "a=2", "b=BAD", NULL);
	expect_nack(&w.at[0], &toy_cluster, "*", "", "n2", "content is BAD");
	assert_string_equal(heard(&all.of[0]), "=2");
	assert_string_equal(heard(&all.of[1]), "!3 !3");
	respond(&w.at[0], &toy_cluster, "3", "n3", "a=2", NULL);
	expect_request(&w.at[0], &toy_cluster, "*", "3", "n3");
	respond(&w.at[0], &toy_cluster, "4", "n4", "a=2", NULL);
	assert_string_equal(heard(&all.of[0]), "");
	assert_string_equal(heard(&all.of[1]), "!5");
	assert_int_equal(all.n, 2);
	world_fini(&w);
}

static void a36_64_a_wildcard_is_refused_where_several_servers_stand_for_it(void **state)
{
	struct world w;
	struct all all;
	world_init(&w, "{'xds_servers':[" ADS(0) "," ADS(1) "],'node':{'id':'me'}}");
	watch_all(&w, &all);
	assert_string_equal(heard(&all.star), "error");
	assert_string_equal(all.star.text,
		"cluster \"*\": a wildcard has one xDS server, not several (node id \"me\")");
	assert_false(world_connected(&w, 0));
	world_fini(&w);
}

static void fe_02_a_received_name_of_another_type_is_refused(void **state)
{
	struct world w;
	struct ear ear;
	world_init(&w, BOOTSTRAP);
	world_listen(&w, &toy_cluster, C("a", "x"), &ear);
	expect_request(&w.at[1], &toy_cluster, C("a", "x"), "", "");
	respond(&w.at[1], &toy_cluster, "1", "n1", C("a", "x") "=1", "xdstp://a/toy.Other/x=1",
		NULL);
	expect_nack(&w.at[1], &toy_cluster, C("a", "x"), "", "n1",
		"cluster \"xdstp://a/toy.Other/x\": is the name of a \"toy.Other\"");
	assert_string_equal(heard(&ear), "=1"); // PC-09
	world_fini(&w);
}

static void fe_03_order_of_context_parameters_makes_no_other_resource(void **state)
{
	struct world w;
	struct ear one, two, more;
	world_init(&w, BOOTSTRAP);
	world_listen(&w, &toy_cluster, C("a", "x?b=2&a=1"), &one);
	expect_request(&w.at[1], &toy_cluster, C("a", "x?a=1&b=2"), "", "");
	world_listen(&w, &toy_cluster, C("a", "x?a=1&b=2#f"), &two);
	expect_silence(&w.at[1]);
	world_listen(&w, &toy_cluster, C("a", "x?a=1&b=2&c=3"), &more); // another one
	expect_request(
		&w.at[1], &toy_cluster, C("a", "x?a=1&b=2") " " C("a", "x?a=1&b=2&c=3"), "", "");
	// The toy's content starts at the first "=", so that the name is the wrapper's.
	struct fake_resource r = {
		.bytes = (const uint8_t *)"x=1", .len = 3, .wrapper_name = C("a", "x?b=2&a=1")};
	fake_ads_respond(&w.at[1].server, toy_cluster.url, "1", "n1", &r, 1);
	assert_string_equal(heard(&one), "=1");
	assert_string_equal(heard(&two), "=1");
	assert_string_equal(heard(&more), "");
	world_fini(&w);
}

static void pc_07_the_same_resource_twice_is_found_in_any_spelling(void **state)
{
	struct world w;
	struct ear ear;
	world_init(&w, BOOTSTRAP);
	world_listen(&w, &toy_cluster, C("a", "x?a=1&b=2"), &ear);
	expect_request(&w.at[1], &toy_cluster, C("a", "x?a=1&b=2"), "", "");
	struct fake_resource r[] = {
		{.bytes = (const uint8_t *)"x=1", .len = 3, .wrapper_name = C("a", "x?b=2&a=1")},
		{.bytes = (const uint8_t *)"x=2", .len = 3, .wrapper_name = C("a", "x?a=1&b=2")},
	};
	fake_ads_respond(&w.at[1].server, toy_cluster.url, "1", "n1", r, 2);
	expect_nack(&w.at[1], &toy_cluster, C("a", "x?a=1&b=2"), "", "n1", "more than once");
	world_fini(&w);
}

static void fe_07_authorities_of_one_server_share_its_stream_and_requests(void **state)
{
	struct world w;
	struct ear a, b;
	world_init(&w, BOOTSTRAP);
	xds_federation_begin(w.federation);
	world_listen(&w, &toy_cluster, C("a", "x"), &a);
	world_listen(&w, &toy_cluster, C("b", "x"), &b);
	xds_federation_end(w.federation);
	expect_request(&w.at[1], &toy_cluster, C("a", "x") " " C("b", "x"), "", "");
	expect_silence(&w.at[1]);
	assert_int_equal(w.at[1].server.n_streams, 1);
	respond(&w.at[1], &toy_cluster, "1", "n1", C("a", "x") "=1", C("b", "x") "=2", NULL);
	expect_request(&w.at[1], &toy_cluster, C("a", "x") " " C("b", "x"), "1", "n1");
	assert_string_equal(heard(&a), "=1");
	assert_string_equal(heard(&b), "=2");
	world_fini(&w);
}

static void fe_08_a_response_deletes_only_what_its_server_gave(void **state)
{
	struct world w;
	struct ear old, a;
	world_init(&w, BOOTSTRAP);
	world_listen(&w, &toy_cluster, "x", &old);
	world_listen(&w, &toy_cluster, C("a", "x"), &a);
	expect_request(&w.at[0], &toy_cluster, "x", "", "");
	expect_request(&w.at[1], &toy_cluster, C("a", "x"), "", "");
	respond(&w.at[0], &toy_cluster, "1", "n1", "x=1", NULL);
	respond(&w.at[1], &toy_cluster, "1", "n1", C("a", "x") "=1", NULL);
	assert_string_equal(heard(&old), "=1");
	assert_string_equal(heard(&a), "=1");
	expect_request(&w.at[1], &toy_cluster, C("a", "x"), "1", "n1");
	respond(&w.at[1], &toy_cluster, "2", "n2", NULL);
	assert_string_equal(heard(&a), "~5"); // A88: the value stays
	assert_string_equal(heard(&old), "");
	world_fini(&w);
}

static void fm_01_a_failing_server_is_told_to_its_authorities_alone(void **state)
{
	struct world w;
	struct ear old, a;
	world_init(&w, BOOTSTRAP);
	world_listen(&w, &toy_cluster, "x", &old);
	world_listen(&w, &toy_cluster, C("a", "x"), &a);
	world_refuse(&w, 1);
	assert_string_equal(heard(&a), "!14");
	assert_non_null(strstr(a.text, "ads:1"));
	assert_string_equal(heard(&old), "");
	world_fini(&w);
}

struct counter {
	struct xds_settled settled; // first member
	unsigned n;
};

static void count(struct xds_settled *s)
{
	((struct counter *)s)->n++;
}

static void hooks_run_once_for_a_turn_whatever_servers_spoke(void **state)
{
	struct world w;
	struct ear old, a;
	struct counter counter = {.settled = {.fn = count}};
	world_init(&w, BOOTSTRAP);
	xds_federation_add_settled(w.federation, &counter.settled);
	world_listen(&w, &toy_cluster, "x", &old);
	world_listen(&w, &toy_cluster, C("a", "x"), &a);
	fake_ads_settle(&w.at[0].server);
	fake_ads_settle(&w.at[1].server);
	counter.n = 0;
	respond(&w.at[0], &toy_cluster, "1", "n1", "x=1", NULL);
	assert_int_equal(counter.n, 1);
	respond(&w.at[1], &toy_cluster, "1", "n1", C("a", "x") "=1", NULL);
	assert_int_equal(counter.n, 2);
	xds_federation_remove_settled(w.federation, &counter.settled);
	world_fini(&w);
}

static void on_server(void *ctx, const struct xds_server_info *info)
{
	strcat(ctx, info->uri);
	strcat(ctx, " ");
	strcat(ctx, xds_server_state_name(info->state));
	strcat(ctx, " ");
}

static void operators_see_each_server_once(void **state)
{
	struct world w;
	struct ear ear;
	char text[128] = "";
	world_init(&w, BOOTSTRAP);
	world_listen(&w, &toy_cluster, C("b", "x"), &ear);
	xds_federation_each_server(w.federation, on_server, text);
	assert_string_equal(text, "ads:0 IDLE ads:1 CONNECTING ads:2 IDLE ");
	world_fini(&w);
}

RUN_SUITE("xds/federation", cmocka_unit_test(fe_04_the_authority_chooses_the_server),
	cmocka_unit_test(fe_04_an_unknown_authority_is_an_error_and_nothing_is_sent),
	cmocka_unit_test(fe_02_a_name_of_another_type_is_an_error_and_nothing_is_sent),
	cmocka_unit_test(sw_09_a_star_is_no_name_of_a_resource_and_nothing_is_sent),
	cmocka_unit_test(a36_64_a_wildcard_is_told_of_each_name_and_of_its_end),
	cmocka_unit_test(a36_64_a_wildcard_is_told_of_a_name_that_is_refused_until_it_is_gone),
	cmocka_unit_test(a36_64_a_wildcard_is_refused_where_several_servers_stand_for_it),
	cmocka_unit_test(fe_02_a_received_name_of_another_type_is_refused),
	cmocka_unit_test(fe_03_order_of_context_parameters_makes_no_other_resource),
	cmocka_unit_test(pc_07_the_same_resource_twice_is_found_in_any_spelling),
	cmocka_unit_test(fe_07_authorities_of_one_server_share_its_stream_and_requests),
	cmocka_unit_test(fe_08_a_response_deletes_only_what_its_server_gave),
	cmocka_unit_test(fm_01_a_failing_server_is_told_to_its_authorities_alone),
	cmocka_unit_test(hooks_run_once_for_a_turn_whatever_servers_spoke),
	cmocka_unit_test(operators_see_each_server_once))
