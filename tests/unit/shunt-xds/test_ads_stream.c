// SPDX-License-Identifier: Apache-2.0
// One SotW stream as a script: what is asked, what is due (SW-*, the server's view).
#include "ctrl/xds/variants/params.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/shunt-xds/stream_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int setup(void **state)
{
	return script_init(state, ADS_SOTW);
}

// All four types, subscribed by name, sent and accepted.
static void bring_up(struct script *w)
{
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:blue=1 E:blue=1 L:web=1 R:r=blue");
	peer_subscribe(p, 'L', "web");
	NEXT(p, "L web=1");
	peer_ack(p, 'L', "web");
	peer_subscribe(p, 'R', "r");
	NEXT(p, "R r=blue");
	peer_ack(p, 'R', "r");
	peer_subscribe(p, 'C', "blue");
	NEXT(p, "C blue=1");
	peer_ack(p, 'C', "blue");
	peer_subscribe(p, 'E', "blue");
	NEXT(p, "E blue=1");
	peer_ack(p, 'E', "blue");
	NEXT(p, "");
}

static void first_request_gets_what_it_names(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "L:web=1 L:other=2");
	NEXT(p, "");
	peer_subscribe(p, 'L', "web");
	NEXT(p, "L web=1");
	NEXT(p, "");
	peer_ack(p, 'L', "web");
	assert_int_equal(p->result.kind, ADS_REQUEST_ACK);
	assert_int_equal(p->result.version, w->server.catalog->types[RESOURCE_LISTENER].version);
	NEXT(p, "");
}

// SW-11: with full-state types an empty answer tells of deletions; with the others it says nothing
// (SW-14), so none is given.
static void absent_resources_are_answered_in_full_state_types_only(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	peer_subscribe(p, 'C', "blue");
	NEXT(p, "C");
	peer_subscribe(p, 'E', "blue");
	NEXT(p, "");
	server_publish(&w->server, "E:blue=1"); // SW-15
	NEXT(p, "E blue=1");
}

static void unchanged_content_is_not_sent_again(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	bring_up(w);
	server_publish(&w->server, "C:blue=1 E:blue=1 L:web=1 R:r=blue");
	NEXT(p, "");
	server_publish(&w->server,
		"C:blue=1 C:unwanted=1 E:blue=1 L:web=1 R:r=blue"); // a new version, not for us
	NEXT(p, "");
}

static void changes_come_in_make_before_break_order(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	bring_up(w);
	server_publish(&w->server, "R:r=2 L:web=2 E:blue=2 C:blue=2");
	NEXT(p, "C blue=2");
	NEXT(p, "E blue=2");
	NEXT(p, "");
	peer_ack(p, 'E', "blue");
	NEXT(p, "");
	peer_ask(p, 'C', "blue", peer_nonce(p, 'C'), true); // a refusal is an answer
	NEXT(p, "L web=2");
	NEXT(p, "R r=2");
	NEXT(p, "");
}

static void slow_client_gets_the_latest_only(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	bring_up(w);
	server_publish(&w->server, "C:blue=2 E:blue=1 L:web=1 R:r=blue");
	server_publish(&w->server, "C:blue=3 E:blue=1 L:web=1 R:r=blue");
	server_publish(&w->server, "C:blue=4 E:blue=1 L:web=1 R:r=blue");
	NEXT(p, "C blue=4");
	NEXT(p, "");
}

static void only_changed_endpoints_are_sent(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "E:a=1 E:b=1 E:c=1");
	peer_subscribe(p, 'E', "a b");
	NEXT(p, "E a=1 b=1");
	peer_ack(p, 'E', "a b c");
	NEXT(p, "E c=1");
	server_publish(&w->server, "E:a=1 E:b=2 E:c=1");
	NEXT(p, "E b=2");
	server_publish(&w->server, "E:a=1 E:c=1");
	NEXT(p, ""); // SW-14
	server_publish(&w->server, "E:a=1 E:b=2 E:c=1");
	NEXT(p, ""); // the client never lost it
	server_publish(&w->server, "E:a=1 E:c=1");
	server_publish(&w->server, "E:a=1 E:b=3 E:c=1");
	NEXT(p, "E b=3");
}

static void all_clusters_are_sent_when_one_changes(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:a=1 C:b=1");
	peer_subscribe(p, 'C', "a b");
	NEXT(p, "C a=1 b=1");
	peer_ack(p, 'C', "a b");
	server_publish(&w->server, "C:a=1 C:b=2");
	NEXT(p, "C a=1 b=2");
}

// SW-04, SW-05.
static void subscription_change_goes_with_the_last_nonce(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:a=1 C:b=1");
	peer_subscribe(p, 'C', "a");
	NEXT(p, "C a=1");
	peer_ack(p, 'C', "a");
	peer_ack(p, 'C', "a b");
	assert_int_equal(p->result.kind, ADS_REQUEST_SUBSCRIBE);
	NEXT(p, "C a=1 b=1");
	peer_ack(p, 'C', "b");
	assert_int_equal(p->result.kind, ADS_REQUEST_ACK);
	NEXT(p, ""); // fewer names need no answer
}

static void stale_nonce_is_ignored(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:a=1 C:b=1");
	peer_subscribe(p, 'C', "a");
	NEXT(p, "C a=1");
	server_publish(&w->server, "C:a=2 C:b=1");
	NEXT(p, "C a=2");
	peer_ask(p, 'C', "a b", "1", false);
	assert_int_equal(p->result.kind, ADS_REQUEST_STALE);
	NEXT(p, "");
	peer_ask(p, 'C', "a b", "2", false);
	assert_int_equal(p->result.kind, ADS_REQUEST_ACK);
	assert_int_equal(p->result.version, w->server.catalog->types[RESOURCE_CLUSTER].version);
	NEXT(p, "C a=2 b=1");
}

static void nonces_of_types_do_not_mix(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	bring_up(w);
	peer_ask(p, 'R', "r", peer_nonce(p, 'E'), false);
	assert_int_equal(p->result.kind, ADS_REQUEST_STALE);
}

static void refused_version_is_not_sent_again_until_it_changes(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:a=1");
	peer_subscribe(p, 'C', "a");
	NEXT(p, "C a=1");
	peer_ask(p, 'C', "a", "1", true);
	assert_int_equal(p->result.kind, ADS_REQUEST_NACK);
	assert_int_equal(p->result.version, w->server.catalog->types[RESOURCE_CLUSTER].version);
	NEXT(p, "");
	server_publish(&w->server, "C:a=2");
	NEXT(p, "C a=2");
}

static void removed_listener_is_told_by_its_absence(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "L:web=1 L:api=1");
	peer_subscribe(p, 'L', "web api");
	NEXT(p, "L api=1 web=1");
	peer_ack(p, 'L', "web api");
	server_publish(&w->server, "L:web=1");
	NEXT(p, "L web=1");
	server_publish(&w->server, "");
	NEXT(p, "L");
}

// Also when an earlier change of listeners did not have to wait.
static void removed_listener_waits_for_clusters_like_a_change(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	bring_up(w);
	server_publish(&w->server, "C:blue=1 E:blue=1 L:web=2 R:r=blue");
	NEXT(p, "L web=2");
	peer_ack(p, 'L', "web");
	w->server.now_ns += NS_PER_SECOND / 2;
	server_publish(&w->server, "C:blue=2 E:blue=1 R:r=blue");
	NEXT(p, "C blue=2");
	NEXT(p, "");
	assert_int_equal(ads_stream_due_ns(p->stream), w->server.now_ns + NS_PER_SECOND);
	w->server.now_ns += NS_PER_SECOND - 1;
	NEXT(p, "");
	w->server.now_ns++;
	NEXT(p, "L");
	assert_int_equal(ads_stream_due_ns(p->stream), UINT64_MAX);
}

static void removed_cluster_alone_is_told_at_once(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	bring_up(w);
	w->server.now_ns += NS_PER_SECOND;
	server_publish(&w->server, "E:blue=1 L:web=1 R:r=blue");
	NEXT(p, "C");
}

static void removed_cluster_waits_for_the_routes(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	bring_up(w);
	w->server.now_ns += 60 * NS_PER_SECOND;
	server_publish(&w->server, "C:green=1 E:green=1 L:web=1 R:r=green");
	NEXT(p, "R r=green");
	NEXT(p, "");
	assert_int_equal(ads_stream_due_ns(p->stream), UINT64_MAX); // not before the answer
	w->server.now_ns += 10 * NS_PER_SECOND;
	NEXT(p, "");
	peer_ack(p, 'R', "r");
	NEXT(p, "");
	assert_int_equal(ads_stream_due_ns(p->stream), w->server.now_ns + NS_PER_SECOND);
	peer_ack(p, 'C', "blue green");
	NEXT(p, "C blue=1 green=1"); // the old one is still there
	peer_ack(p, 'C', "blue green");
	peer_ack(p, 'E', "blue green");
	NEXT(p, "E green=1");
	w->server.now_ns += NS_PER_SECOND;
	NEXT(p, ""); // endpoints are unanswered
	peer_ack(p, 'E', "blue green");
	NEXT(p, "C green=1");
	NEXT(p, "");
}

static void removed_cluster_stays_while_the_routes_are_refused(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	bring_up(w);
	w->server.now_ns += 60 * NS_PER_SECOND;
	server_publish(&w->server, "E:blue=1 L:web=1 R:r=bad");
	NEXT(p, "R r=bad");
	peer_ask(p, 'R', "r", peer_nonce(p, 'R'), true);
	w->server.now_ns += 60 * NS_PER_SECOND;
	NEXT(p, "");
	assert_int_equal(ads_stream_due_ns(p->stream), UINT64_MAX);
	server_publish(&w->server, "E:blue=1 L:web=1 R:r=good");
	NEXT(p, "R r=good");
	peer_ack(p, 'R', "r");
	w->server.now_ns += NS_PER_SECOND;
	NEXT(p, "C");
}

static void client_that_drops_the_name_sees_no_removal(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	bring_up(w);
	w->server.now_ns += 60 * NS_PER_SECOND;
	server_publish(&w->server, "C:green=1 L:web=1 R:r=green");
	NEXT(p, "R r=green");
	peer_ack(p, 'R', "r");
	peer_ack(p, 'C', "green");
	NEXT(p, "C green=1");
	peer_ack(p, 'C', "green");
	w->server.now_ns += 60 * NS_PER_SECOND;
	NEXT(p, "");
}

static void wildcard_gets_all_and_follows(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:a=1 C:b=1");
	peer_subscribe(p, 'C', "");
	assert_true(p->result.wildcard);
	NEXT(p, "C a=1 b=1");
	peer_ack(p, 'C', "");
	server_publish(&w->server, "C:a=1 C:b=1 C:c=1");
	NEXT(p, "C a=1 b=1 c=1");
	peer_ack(p, 'C', "");
	server_publish(&w->server, "C:b=1 C:c=1");
	NEXT(p, "C b=1 c=1");
	peer_ack(p, 'C', "");
	NEXT(p, "");
}

// SW-14. The client cannot know otherwise that the wildcard has what it was sent by name, or that
// it has nothing.
static void wildcard_that_is_new_beside_names_is_answered(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:a=1 E:a=1 E:b=1");
	peer_subscribe(p, 'C', "a");
	NEXT(p, "C a=1");
	peer_ack(p, 'C', "a *");
	NEXT(p, "C a=1");
	peer_ack(p, 'C', "a *");
	NEXT(p, "");
	peer_subscribe(p, 'E', "a");
	NEXT(p, "E a=1");
	peer_ack(p, 'E', "a *");
	NEXT(p, "E a=1 b=1");
	peer_ack(p, 'E', "a *");
	NEXT(p, "");
}

static void wildcard_of_an_empty_set_is_answered(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	peer_subscribe(p, 'C', "");
	NEXT(p, "C");
	NEXT(p, "");
}

static void request_without_nonce_starts_over(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	bring_up(w);
	peer_subscribe(p, 'E', "blue");
	NEXT(p, "E blue=1");
	peer_subscribe(p, 'C', "blue");
	NEXT(p, "C blue=1");
}

static void nonce_of_an_earlier_stream_does_no_harm(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:a=1");
	peer_ask(p, 'C', "a", "77", false);
	assert_int_equal(p->result.kind, ADS_REQUEST_SUBSCRIBE);
	NEXT(p, "C a=1");
}

// PC-04.
static void what_is_no_types_url_is_not_answered(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	Envoy__Service__Discovery__V3__DiscoveryRequest m;
	envoy__service__discovery__v3__discovery_request__init(&m);
	static char url[] = "type.googleapis.com/not a type";
	m.type_url = url;
	assert_int_equal(ads_stream_feed_sotw(p->stream, &m, w->server.now_ns, &p->result), 0);
	assert_int_equal(p->result.kind, ADS_REQUEST_UNKNOWN_TYPE);
	NEXT(p, "");
}

// TP2-T04: both lists together are the subscription.
static void locators_are_names_too(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:a=1 C:b=1 C:c=1");
	peer_subscribe(p, 'C', "b a{env=prod}");
	NEXT(p, "C a=1 b=1");
	peer_ack(p, 'C', "c{env=prod}");
	NEXT(p, "C c=1");
}

// TP2-T14 is a hazard with servers that know no locators; this one does.
static void locators_alone_are_no_wildcard(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "L:a=1 L:b=1");
	peer_subscribe(p, 'L', "a{env=prod}");
	assert_false(p->result.wildcard);
	NEXT(p, "L a=1");
}

// TP2-S01, TP2-S02, TP2-T06.
static void subscriber_gets_its_variant_with_the_constraints(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "R:r=1{env=prod} R:r=2{!env=prod} R:s=3");
	peer_subscribe(p, 'R', "r{env=prod} s{env=prod}");
	NEXT(p, "R r=1{env=prod} s=3");
	peer_ack(p, 'R', "r{env=test} s{env=prod}");
	NEXT(p, "R r=2{NOT env=prod}");
}

// A wrapper says what a client that never heard of it could not read.
static void wrapper_goes_to_clients_that_can_read_it(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "R:r=1{env=prod} R:r=2{!env=prod}");
	peer_subscribe(p, 'R', "r");
	NEXT(p, "R r=2");
	peer_reopen(p);
	p->wraps = true;
	peer_subscribe(p, 'R', "r");
	NEXT(p, "R r=2{NOT env=prod}");
}

// TP2-S03: what matches nobody is not there.
static void nothing_that_matches_is_nothing_there(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:c=1{env=prod} R:r=1{env=prod}");
	peer_subscribe(p, 'C', "c{env=test}");
	NEXT(p, "C");
	peer_subscribe(p, 'R', "r{env=test}");
	NEXT(p, "");
	server_publish(&w->server, "C:c=1{env=prod} R:r=1{env=prod} R:r=2{env=test}");
	NEXT(p, "R r=2{env=test}");
}

// TP2-S05: the old variant is not in the response that brings the new ones.
static void split_variant_is_replaced_in_one_response(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:c=1{env=prod} C:c=2{!env=prod} L:l=1");
	peer_subscribe(p, 'C', "c{env=prod,version=v1} c{env=prod,version=v2} c{env=test}");
	NEXT(p, "C c=1{env=prod} c=2{NOT env=prod}");
	peer_ack(p, 'C', "c{env=prod,version=v1} c{env=prod,version=v2} c{env=test}");
	peer_subscribe(p, 'L', "l");
	NEXT(p, "L l=1"); // unanswered: what is gone would wait
	server_publish(&w->server,
		"C:c=3{env=prod&version=v1} C:c=4{env=prod&!version=v1} C:c=2{!env=prod} L:l=1");
	NEXT(p, "C c=2{NOT env=prod} c=3{env=prod AND version=v1} "
		"c=4{env=prod AND NOT version=v1}");
	NEXT(p, "");
}

// TP2-S04.
static void change_of_a_variant_goes_only_to_those_it_matches(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer, other;
	peer_open(&other, &w->server, ADS_SOTW);
	server_publish(&w->server, "C:c=1{env=prod} C:c=2{!env=prod}");
	peer_subscribe(p, 'C', "c{env=prod}");
	NEXT(p, "C c=1{env=prod}");
	peer_subscribe(&other, 'C', "*{env=test}");
	assert_true(other.result.wildcard);
	NEXT(&other, "C c=2{NOT env=prod}");
	server_publish(&w->server, "C:c=3{env=prod} C:c=2{!env=prod}");
	NEXT(p, "C c=3{env=prod}");
	NEXT(&other, "");
	peer_close(&other);
}

static void too_many_wildcards_are_refused(void **state)
{
	struct script *w = *state;
	struct locator list[SUBSCRIPTION_WILD_MAX + 1];
	struct subscription s = {0};
	const struct catalog_type *type = &w->server.catalog->types[RESOURCE_CLUSTER];
	for (size_t i = 0; i <= SUBSCRIPTION_WILD_MAX; i++) {
		char value[8];
		struct xds_param param = {"n", value};
		snprintf(value, sizeof(value), "%zu", i);
		list[i].name = "*";
		assert_int_equal(xds_params_new(&param, 1, &list[i].params), 0);
	}
	assert_int_equal(subscription_set(&s, type, list, SUBSCRIPTION_WILD_MAX + 1, true), -E2BIG);
	assert_int_equal(subscription_set(&s, type, list, SUBSCRIPTION_WILD_MAX, true), 0);
	for (size_t i = 0; i <= SUBSCRIPTION_WILD_MAX; i++)
		xds_params_put(list[i].params);
	subscription_fini(&s, type);
}

static void response_without_memory_is_due_still(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	struct ads_response r;
	uint8_t *bytes;
	size_t len;
	int due, encoded;
	server_publish(&w->server, "C:a=1 C:b=1");
	peer_subscribe(p, 'C', "*");
	alloc_fail_arm(0);
	due = ads_stream_drain(p->stream, w->server.now_ns, &r);
	assert_true(!alloc_fail_disarm() || due == -ENOMEM);
	if (due < 0)
		due = ads_stream_drain(p->stream, w->server.now_ns, &r);
	assert_int_equal(due, 1);
	assert_int_equal(r.n, 2);
	ALLOC_FAIL_EACH(encoded = ads_response_encode(&r, &bytes, &len), encoded < 0, free(bytes));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, script_fini)

RUN_SUITE("shunt-xds/ads_stream", CASE(first_request_gets_what_it_names),
	CASE(absent_resources_are_answered_in_full_state_types_only),
	CASE(unchanged_content_is_not_sent_again), CASE(changes_come_in_make_before_break_order),
	CASE(slow_client_gets_the_latest_only), CASE(only_changed_endpoints_are_sent),
	CASE(all_clusters_are_sent_when_one_changes),
	CASE(subscription_change_goes_with_the_last_nonce), CASE(stale_nonce_is_ignored),
	CASE(nonces_of_types_do_not_mix), CASE(refused_version_is_not_sent_again_until_it_changes),
	CASE(removed_listener_is_told_by_its_absence),
	CASE(removed_listener_waits_for_clusters_like_a_change),
	CASE(removed_cluster_alone_is_told_at_once), CASE(removed_cluster_waits_for_the_routes),
	CASE(removed_cluster_stays_while_the_routes_are_refused),
	CASE(client_that_drops_the_name_sees_no_removal), CASE(wildcard_gets_all_and_follows),
	CASE(wildcard_that_is_new_beside_names_is_answered),
	CASE(wildcard_of_an_empty_set_is_answered), CASE(request_without_nonce_starts_over),
	CASE(nonce_of_an_earlier_stream_does_no_harm), CASE(what_is_no_types_url_is_not_answered),
	CASE(locators_are_names_too), CASE(locators_alone_are_no_wildcard),
	CASE(subscriber_gets_its_variant_with_the_constraints),
	CASE(wrapper_goes_to_clients_that_can_read_it), CASE(nothing_that_matches_is_nothing_there),
	CASE(split_variant_is_replaced_in_one_response),
	CASE(change_of_a_variant_goes_only_to_those_it_matches),
	CASE(too_many_wildcards_are_refused), CASE(response_without_memory_is_due_still))
