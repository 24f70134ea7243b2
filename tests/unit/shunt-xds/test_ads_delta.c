// SPDX-License-Identifier: Apache-2.0
// One delta stream as a script (DL-*, the server's view; TP2-S*).
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/shunt-xds/stream_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int setup(void **state)
{
	return script_init(state, ADS_DELTA);
}

static void bring_up(struct script *w)
{
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:blue=1 E:blue=1 L:web=1 R:r=blue");
	peer_subscribe(p, 'L', "+web");
	NEXT(p, "L web=1");
	peer_ack(p, 'L', "");
	assert_int_equal(p->result.kind, ADS_REQUEST_ACK);
	peer_subscribe(p, 'R', "+r");
	NEXT(p, "R r=blue");
	peer_ack(p, 'R', "");
	peer_subscribe(p, 'C', "+blue");
	NEXT(p, "C blue=1");
	peer_ack(p, 'C', "");
	peer_subscribe(p, 'E', "+blue");
	NEXT(p, "E blue=1");
	peer_ack(p, 'E', "");
	NEXT(p, "");
}

// DL-05.
static void only_what_changed_is_sent(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:a=1 C:b=1 C:c=1");
	peer_subscribe(p, 'C', "+a +b");
	NEXT(p, "C a=1 b=1");
	peer_ack(p, 'C', "");
	server_publish(&w->server, "C:a=1 C:b=2 C:c=2");
	NEXT(p, "C b=2");
	peer_ack(p, 'C', "+c");
	NEXT(p, "C c=2");
	server_publish(&w->server, "C:a=1 C:b=2 C:c=2");
	NEXT(p, "");
}

// DL-07, TP2-S03: at once, since nothing else would tell.
static void absent_resource_is_told_at_once(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "E:a=1 R:r=1{env=prod}");
	peer_subscribe(p, 'E', "+a +b");
	NEXT(p, "E a=1 -b");
	peer_subscribe(p, 'R', "+r{env=test}");
	NEXT(p, "R -r");
	NEXT(p, "");
	server_publish(&w->server, "E:a=1 E:b=2 R:r=1{env=prod}");
	NEXT(p, "E b=2");
}

// DL-09.
static void name_that_is_asked_for_again_is_sent_again(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	bring_up(w);
	peer_change(p, 'C', "-blue +blue", "", false);
	NEXT(p, "C blue=1");
	peer_change(p, 'C', "+none", "", false);
	NEXT(p, "C -none");
	peer_change(p, 'C', "+none", "", false);
	NEXT(p, "C -none");
}

static void name_that_is_given_up_is_followed_no_more(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:a=1 C:b=1");
	peer_subscribe(p, 'C', "+a +b");
	NEXT(p, "C a=1 b=1");
	peer_ack(p, 'C', "-a -never");
	server_publish(&w->server, "C:a=2 C:b=1");
	NEXT(p, "");
	server_publish(&w->server, "C:b=1");
	NEXT(p, "");
	peer_change(p, 'C', "-b", "", false);
	server_publish(&w->server, "");
	w->server.now_ns += 60 * NS_PER_SECOND;
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
	peer_ack(p, 'C', "");
	NEXT(p, "");
	peer_ack(p, 'E', "");
	NEXT(p, "L web=2");
	NEXT(p, "R r=2");
	NEXT(p, "");
}

// Envoy asks for the endpoints of new clusters before it accepts the clusters.
static void routes_wait_for_the_endpoints_of_new_clusters(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:blue=1 E:blue=1 R:r=blue");
	peer_subscribe(p, 'C', "+*");
	NEXT(p, "C blue=1");
	peer_subscribe(p, 'R', "+r");
	NEXT(p, "R r=blue"); // replaces nothing
	peer_subscribe(p, 'E', "+blue");
	NEXT(p, "E blue=1");
	peer_ack(p, 'C', "");
	peer_ack(p, 'E', "");
	peer_ack(p, 'R', "");
	server_publish(&w->server, "C:blue=1 C:green=1 E:blue=1 E:green=1 R:r=green");
	NEXT(p, "C green=1");
	NEXT(p, "");
	peer_change(p, 'E', "+green", "", false);
	NEXT(p, "E green=1");
	peer_ack(p, 'C', "");
	NEXT(p, "");
	peer_ack(p, 'E', "");
	NEXT(p, "R r=green");
	peer_ack(p, 'R', "");
	server_publish(&w->server, "C:blue=2 C:green=1 E:blue=1 E:green=1 R:r=blue");
	NEXT(p, "C blue=2");
	NEXT(p, "");
	assert_int_equal(ads_stream_due_ns(p->stream), w->server.now_ns + NS_PER_SECOND);
	w->server.now_ns += NS_PER_SECOND; // no answer is no reason to wait for ever
	NEXT(p, "R r=blue");
	// A client that comes back has something to lose too.
	peer_reopen(p);
	server_publish(&w->server, "C:blue=2 C:green=2 E:blue=1 E:green=1 R:r=green");
	peer_subscribe(p, 'C', "+*");
	peer_subscribe(p, 'R', "+r");
	NEXT(p, "C green=2");
	NEXT(p, "");
	peer_ack(p, 'C', "");
	NEXT(p, "R r=green");
}

// What is referred to goes after what refers to it has gone.
static void removals_come_last_and_in_reverse(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	bring_up(w);
	w->server.now_ns += 60 * NS_PER_SECOND;
	server_publish(&w->server, "L:web=2");
	NEXT(p, "L web=2");
	NEXT(p, "");
	assert_int_equal(ads_stream_due_ns(p->stream), UINT64_MAX); // not before the answer
	peer_ack(p, 'L', "");
	NEXT(p, "");
	assert_int_equal(ads_stream_due_ns(p->stream), w->server.now_ns + NS_PER_SECOND);
	w->server.now_ns += NS_PER_SECOND;
	NEXT(p, "R -r");
	NEXT(p, "");
	peer_ack(p, 'R', "");
	w->server.now_ns += NS_PER_SECOND;
	NEXT(p, "C -blue");
	peer_ack(p, 'C', "");
	NEXT(p, "");
	w->server.now_ns += NS_PER_SECOND;
	NEXT(p, "E -blue");
	peer_ack(p, 'E', "");
	NEXT(p, "");
	assert_int_equal(ads_stream_due_ns(p->stream), UINT64_MAX);
}

static void removal_that_is_taken_back_is_not_told(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	bring_up(w);
	server_publish(&w->server, "E:blue=1 L:web=1 R:r=blue");
	NEXT(p, "");
	server_publish(&w->server, "C:blue=1 E:blue=1 L:web=1 R:r=blue");
	w->server.now_ns += 60 * NS_PER_SECOND;
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
	peer_change(p, 'R', "", peer_nonce(p, 'R'), true);
	assert_int_equal(p->result.kind, ADS_REQUEST_NACK);
	w->server.now_ns += 60 * NS_PER_SECOND;
	NEXT(p, "");
	server_publish(&w->server, "E:blue=1 L:web=1 R:r=good");
	NEXT(p, "R r=good");
	peer_ack(p, 'R', "");
	w->server.now_ns += NS_PER_SECOND;
	NEXT(p, "C -blue");
}

static void refused_version_is_not_sent_again_until_it_changes(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:a=1");
	peer_subscribe(p, 'C', "+a");
	NEXT(p, "C a=1");
	peer_change(p, 'C', "", peer_nonce(p, 'C'), true);
	assert_int_equal(p->result.kind, ADS_REQUEST_NACK);
	assert_int_equal(p->result.version, w->server.catalog->types[RESOURCE_CLUSTER].version);
	NEXT(p, "");
	server_publish(&w->server, "C:a=2");
	NEXT(p, "C a=2");
}

// SW-10.
static void subscription_counts_beside_an_old_nonce(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:a=1 C:b=1");
	peer_subscribe(p, 'C', "+a");
	NEXT(p, "C a=1");
	server_publish(&w->server, "C:a=2 C:b=1");
	NEXT(p, "C a=2");
	peer_change(p, 'C', "+b", "1", false);
	assert_int_equal(p->result.kind, ADS_REQUEST_STALE);
	NEXT(p, "C b=1");
	peer_change(p, 'C', "", "1", true); // a late refusal is worth a line too
	assert_int_equal(p->result.kind, ADS_REQUEST_NACK);
}

static void first_request_without_names_is_a_wildcard(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:a=1 C:b=1 E:a=1");
	peer_subscribe(p, 'C', "");
	assert_true(p->result.wildcard);
	NEXT(p, "C a=1 b=1");
	peer_ack(p, 'C', "+b"); // and goes on to be one
	NEXT(p, "C b=1");
	peer_ack(p, 'C', "");
	server_publish(&w->server, "C:b=1 C:c=1 E:a=1");
	NEXT(p, "C c=1 -a");
	peer_ack(p, 'C', "-*");
	assert_int_equal(p->result.n_names, 1);
	server_publish(&w->server, "C:b=2 C:c=2 E:a=1");
	NEXT(p, "C b=2");
	peer_subscribe(p, 'E', "");
	assert_false(p->result.wildcard);
	NEXT(p, "");
}

static void wildcard_of_nothing_is_answered(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	peer_subscribe(p, 'C', "+*");
	NEXT(p, "C");
	NEXT(p, "");
}

// DL-10.
static void name_that_a_wildcard_holds_too_is_answered_when_given_up(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:a=1");
	peer_subscribe(p, 'C', "+* +a +b");
	NEXT(p, "C a=1 -b");
	peer_ack(p, 'C', "-a -b");
	NEXT(p, "C a=1 -b");
	NEXT(p, "");
	server_publish(&w->server, "C:a=2 C:b=2");
	NEXT(p, "C a=2 b=2");
}

// DL-02, DL-13.
static void reconnected_client_gets_only_what_it_lacks(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:a=1 C:b=1 C:c=1");
	peer_subscribe(p, 'C', "+a +b +c +d");
	NEXT(p, "C a=1 b=1 c=1 -d");
	peer_reopen(p);
	peer_change(p, 'C', "+a +b +c +d", "9", false); // a nonce of the stream before
	NEXT(p, "C -d");
	peer_reopen(p);
	server_publish(&w->server, "C:a=1 C:b=2 C:d=1");
	peer_subscribe(p, 'C', "+a +b +c +d");
	NEXT(p, "C b=2 d=1");
	peer_ack(p, 'C', "");
	NEXT(p, "");
	// The routes that end its use may be on their way.
	w->server.now_ns += NS_PER_SECOND;
	NEXT(p, "C -c");
}

static void reconnected_wildcard_is_told_what_is_gone(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:a=1 C:b=1 C:c=1");
	peer_subscribe(p, 'C', "+*");
	NEXT(p, "C a=1 b=1 c=1");
	peer_reopen(p);
	server_publish(&w->server, "C:b=1 C:c=2");
	peer_subscribe(p, 'C', "+*");
	NEXT(p, "C c=2");
	w->server.now_ns += NS_PER_SECOND;
	NEXT(p, "C -a");
	NEXT(p, "");
}

// A version tells the constraints of what is held: the name alone would not (TP2-T10).
static void reconnected_client_loses_the_variant_that_was_replaced(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "R:r=1{env=prod} R:s=1{env=prod}");
	peer_subscribe(p, 'R', "+r{env=prod,version=v1} +s{env=prod}");
	NEXT(p, "R r=1{env=prod} s=1{env=prod}");
	peer_reopen(p);
	server_publish(&w->server, "R:r=1{env=prod&version=v1} R:r=3{!env=prod} R:s=1{env=prod}");
	peer_subscribe(p, 'R', "+r{env=prod,version=v1} +s{env=prod}");
	NEXT(p, "R r=1{env=prod AND version=v1} -r{env=prod}");
	NEXT(p, "");
}

static void versions_that_are_no_versions_do_no_harm(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	static const char *const versions[] = {"", "7", "-", "0123456789abcdef0123456789abcdef-",
		"0123456789abcdef0123456789abcdef-0", "0123456789abcdef0123456789abcdef-zz",
		"0123456789abcdef0123456789abcdef-ff", "0123456789abcdef0123456789abcdef_0a00"};
	server_publish(&w->server, "C:a=1{env=prod}");
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		peer_reopen(p);
		p->n_held = 1;
		p->held[0] = (struct held){.type = RESOURCE_CLUSTER, .name = "a"};
		strcpy(p->held[0].version, versions[i]);
		peer_subscribe(p, 'C', "+a{env=prod}");
		NEXT(p, "C a=1{env=prod} -a");
	}
}

// TP2-S05, TP2-T08: the seed's transition.
static void split_variant_is_replaced_in_one_response(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer, v2;
	peer_open(&v2, &w->server, ADS_DELTA);
	server_publish(&w->server, "R:r=1{env=prod} R:r=2{env=test}");
	peer_subscribe(p, 'R', "+r{env=prod,version=v1}");
	NEXT(p, "R r=1{env=prod}");
	peer_subscribe(&v2, 'R', "+r{env=prod,version=v2}");
	NEXT(&v2, "R r=1{env=prod}");
	server_publish(&w->server,
		"R:r=3{env=prod&version=v1} R:r=4{env=prod&version=v2} R:r=2{env=test}");
	NEXT(p, "R r=3{env=prod AND version=v1} -r{env=prod}");
	NEXT(&v2, "R r=4{env=prod AND version=v2} -r{env=prod}");
	NEXT(p, "");
	// And together again; the unconstrained variant has no other name than the name.
	server_publish(&w->server, "R:r=5");
	NEXT(p, "R r=5 -r{env=prod AND version=v1}");
	server_publish(&w->server, "R:r=1{env=prod} R:r=2{env=test}");
	NEXT(p, "R r=1{env=prod} -r");
	peer_close(&v2);
}

// TP2-P04's client: several parameter sets for a name on one stream.
static void variant_that_another_subscription_sees_stays(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "R:r=1");
	peer_subscribe(p, 'R', "+r +r{env=prod} +r{env=test}");
	NEXT(p, "R r=1");
	peer_ack(p, 'R', "");
	server_publish(&w->server, "R:r=1{!env} R:r=2{env=prod} R:r=3{env=test}");
	NEXT(p, "R r=1{NOT exists(env)} r=2{env=prod} r=3{env=test} -r");
	server_publish(&w->server, "R:r=1{!env} R:r=2{env}");
	NEXT(p, "R r=2{exists(env)} -r{env=prod} -r{env=test}");
	peer_change(p, 'R', "-r{env=prod}", "", false); // TP2-T05
	assert_int_equal(p->result.n_names, 2);
	server_publish(&w->server, "R:r=1{!env} R:r=5{env}");
	NEXT(p, "R r=5{exists(env)}");
}

// One subscription's variant is gone, which would wait; but it would clash with the other's new
// one.
static void variant_is_gone_for_all_when_it_is_replaced_for_one(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "C:c=1{env} L:l=1");
	peer_subscribe(p, 'L', "+l");
	NEXT(p, "L l=1"); // stays unanswered
	peer_subscribe(p, 'C', "+c{env=prod} +c{env=test}");
	NEXT(p, "C c=1{exists(env)}");
	server_publish(&w->server, "C:c=2{env=prod} L:l=1");
	NEXT(p, "C c=2{env=prod} -c{exists(env)}");
	NEXT(p, "");
	server_publish(&w->server, "L:l=1");
	NEXT(p, "");
}

// Found by ads_random: the one that was told of the old variant ends before it is told of the new.
static void variant_goes_though_the_subscription_that_brought_it_has_ended(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "R:r=1{env=prod}");
	peer_subscribe(p, 'R', "+r{env=prod}");
	NEXT(p, "R r=1{env=prod}");
	server_publish(&w->server, "R:r=2{version=v1}");
	peer_change(p, 'R', "+r{env=prod,version=v1}", "", false);
	peer_change(p, 'R', "-r{env=prod}", "", false);
	NEXT(p, "R r=2{version=v1} -r{env=prod}");
}

// What a wildcard keeps of it is not known by name before the list is looked through.
static void variant_goes_though_a_wildcard_took_over_when_its_subscription_ended(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "R:r=1{env=prod} R:s=1");
	peer_subscribe(p, 'R', "+r{env=prod}");
	NEXT(p, "R r=1{env=prod}");
	peer_ack(p, 'R', "+*{env=prod,version=v1}");
	peer_change(p, 'R', "-r{env=prod}", "", false);
	server_publish(&w->server, "R:r=2{env=prod&version=v1} R:s=1");
	NEXT(p, "R r=2{env=prod AND version=v1} s=1 -r{env=prod}");
	NEXT(p, "");
	assert_int_equal(p->n_held, 2);
}

static void variant_goes_with_the_name_that_a_wildcard_had_kept(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	server_publish(&w->server, "R:r=1{env=prod}");
	peer_subscribe(p, 'R', "+r{env=prod}");
	NEXT(p, "R r=1{env=prod}");
	peer_ack(p, 'R', "-r{env=prod} +*{env=prod,version=v1}");
	server_publish(&w->server, "");
	NEXT(p, "R -r{env=prod}");
	NEXT(p, "");
	// What nobody keeps the client has forgotten.
	server_publish(&w->server, "R:r=1{env=prod}");
	NEXT(p, "R r=1{env=prod}");
	peer_ack(p, 'R', "-*{env=prod,version=v1}");
	server_publish(&w->server, "");
	NEXT(p, "");
}

static void change_of_a_variant_goes_only_to_those_it_matches(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer, other;
	peer_open(&other, &w->server, ADS_DELTA);
	server_publish(&w->server, "C:c=1{env=prod} C:c=2{!env=prod}");
	peer_subscribe(p, 'C', "+*{env=prod}");
	NEXT(p, "C c=1{env=prod}");
	peer_subscribe(&other, 'C', "+*");
	NEXT(&other, "C c=2{NOT env=prod}");
	server_publish(&w->server, "C:c=3{env=prod} C:c=2{!env=prod}");
	NEXT(p, "C c=3{env=prod}");
	NEXT(&other, "");
	peer_close(&other);
}

// PC-04.
static void what_is_no_types_url_is_not_answered(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	Envoy__Service__Discovery__V3__DeltaDiscoveryRequest m;
	envoy__service__discovery__v3__delta_discovery_request__init(&m);
	static char url[] = "type.googleapis.com/not a type";
	m.type_url = url;
	assert_int_equal(ads_stream_feed_delta(p->stream, &m, w->server.now_ns, &p->result), 0);
	assert_int_equal(p->result.kind, ADS_REQUEST_UNKNOWN_TYPE);
	NEXT(p, "");
}

static void do_not_cache_is_passed_on(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	struct lb_err err;
	struct ads_response r;
	uint8_t *bytes;
	size_t len;
	struct resource *resource =
		resource_new(RESOURCE_CLUSTER, "a", NULL, (const uint8_t *)"a", 1, true);
	catalog_begin(w->server.catalog, XDS_CHANGE_FULL);
	assert_int_equal(catalog_set(w->server.catalog, resource, &err), 0);
	catalog_commit(w->server.catalog);
	resource_put(resource);
	peer_subscribe(p, 'C', "+a");
	assert_int_equal(ads_stream_drain(p->stream, w->server.now_ns, &r), 1);
	assert_int_equal(ads_response_encode(&r, &bytes, &len), 0);
	// cache_control 7 {do_not_cache 1: true}
	assert_non_null(memmem(bytes, len, "\x3a\x02\x08\x01", 4));
	free(bytes);
}

// Each allocation of a whole life failed once: nothing leaks, and what was due is due still.
static void response_without_memory_is_due_still(void **state)
{
	struct script *w = *state;
	struct peer *p = &w->peer;
	struct ads_response r;
	uint8_t *bytes;
	size_t len;
	int due = 0, encoded;
	server_publish(&w->server, "C:a=1 C:b=1{env=prod} C:b=2{!env=prod}");
	peer_subscribe(p, 'C', "+*{env=prod} +b +b{env=test}");
	for (size_t nth = 0;; nth++) {
		alloc_fail_arm(nth);
		due = ads_stream_drain(p->stream, w->server.now_ns, &r);
		if (!alloc_fail_disarm())
			break;
		assert_int_equal(due, -ENOMEM);
	}
	assert_int_equal(due, 1);
	assert_int_equal(r.n, 3);
	ALLOC_FAIL_EACH(encoded = ads_response_encode(&r, &bytes, &len), encoded < 0, free(bytes));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, script_fini)

RUN_SUITE("shunt-xds/ads_delta", CASE(only_what_changed_is_sent),
	CASE(absent_resource_is_told_at_once), CASE(name_that_is_asked_for_again_is_sent_again),
	CASE(name_that_is_given_up_is_followed_no_more),
	CASE(changes_come_in_make_before_break_order),
	CASE(routes_wait_for_the_endpoints_of_new_clusters),
	CASE(removals_come_last_and_in_reverse), CASE(removal_that_is_taken_back_is_not_told),
	CASE(removed_cluster_stays_while_the_routes_are_refused),
	CASE(refused_version_is_not_sent_again_until_it_changes),
	CASE(subscription_counts_beside_an_old_nonce),
	CASE(first_request_without_names_is_a_wildcard), CASE(wildcard_of_nothing_is_answered),
	CASE(name_that_a_wildcard_holds_too_is_answered_when_given_up),
	CASE(reconnected_client_gets_only_what_it_lacks),
	CASE(reconnected_wildcard_is_told_what_is_gone),
	CASE(reconnected_client_loses_the_variant_that_was_replaced),
	CASE(versions_that_are_no_versions_do_no_harm),
	CASE(split_variant_is_replaced_in_one_response),
	CASE(variant_that_another_subscription_sees_stays),
	CASE(variant_goes_though_a_wildcard_took_over_when_its_subscription_ended),
	CASE(variant_goes_with_the_name_that_a_wildcard_had_kept),
	CASE(variant_is_gone_for_all_when_it_is_replaced_for_one),
	CASE(variant_goes_though_the_subscription_that_brought_it_has_ended),
	CASE(change_of_a_variant_goes_only_to_those_it_matches),
	CASE(what_is_no_types_url_is_not_answered), CASE(do_not_cache_is_passed_on),
	CASE(response_without_memory_is_due_still))
