// SPDX-License-Identifier: Apache-2.0
// The caching proxy as a script (TP2-P*): the server above, the proxy, and clients below.
#include "ctrl/xds/client.h"
#include "ctrl/xds/variants/constraints.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/variants/variants_fixture.h"
#include "tests/unit/shunt-xds/proxy_world.h"
#include "tools/shunt-xds/ads_stream_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world {
	struct proxy_world proxy;
	struct peer a, b; // delta
	struct peer s; // state of the world
};

static int setup_of(void **state, const struct xds_protocol *protocol)
{
	struct world *w = calloc(1, sizeof(*w));
	proxy_init(&w->proxy, protocol);
	peer_open(&w->a, &w->proxy.below, ADS_DELTA);
	peer_open(&w->b, &w->proxy.below, ADS_DELTA);
	peer_open(&w->s, &w->proxy.below, ADS_SOTW);
	*state = w;
	return 0;
}

static int setup(void **state)
{
	return setup_of(state, &xds_protocol_delta);
}

static int setup_sotw(void **state)
{
	return setup_of(state, &xds_protocol_sotw);
}

static int teardown(void **state)
{
	struct world *w = *state;
	peer_close(&w->a);
	peer_close(&w->b);
	peer_close(&w->s);
	proxy_fini(&w->proxy);
	free(w);
	return 0;
}

#define FOUR                                                                                       \
	"R:r=nn{!env=prod&!version=v1} R:r=pn{env=prod&!version=v1} "                              \
	"R:r=nv{!env=prod&version=v1} R:r=pv{env=prod&version=v1}"

// Several variants of a name, each with its constraints, to those whose parameters match.
static void p01_p02_each_client_gets_its_variant_with_the_constraints(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, FOUR);
	peer_subscribe(&w->a, 'R', "+r{env=prod,version=v1}");
	GETS(p, &w->a, "R r=pv{env=prod AND version=v1}");
	peer_subscribe(&w->b, 'R', "+r{env=test,version=v2}");
	GETS(p, &w->b, "R r=nn{NOT env=prod AND NOT version=v1}");
	peer_subscribe(&w->s, 'R', "r{env=prod,version=v2}");
	GETS(p, &w->s, "R r=pn{env=prod AND NOT version=v1}");
	struct xds_variants_counts counts;
	xds_variants_counts(p->below.catalog->types[RESOURCE_ROUTES].cache, &counts);
	assert_int_equal(counts.n_variants, 3);
}

// The constraints of what one client asked for tell whom else it is for.
static void p03_variant_that_comes_for_one_serves_all_whom_it_matches(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "R:r=1{env=prod}");
	peer_subscribe(&w->a, 'R', "+r{env=prod}");
	GETS(p, &w->a, "R r=1{env=prod}");
	p->is_mute = true;
	peer_subscribe(&w->b, 'R', "+r{env=prod,zone=x}"); // another subscription, the same variant
	GETS(p, &w->b, "R r=1{env=prod}");
	ASKED(p, "R:r{env=prod} R:r{env=prod, zone=x}");
}

static void p04_the_server_is_asked_for_each_name_and_parameters_once(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "C:blue=1 C:green=1");
	peer_subscribe(&w->a, 'C', "+blue +green{env=prod}");
	GETS(p, &w->a, "C blue=1 green=1");
	unsigned n_asked = p->n_asked;
	peer_subscribe(&w->b, 'C', "+blue +green{env=prod}");
	GETS(p, &w->b, "C blue=1 green=1");
	peer_subscribe(&w->s, 'C', "blue");
	GETS(p, &w->s, "C blue=1");
	assert_int_equal(p->n_asked, n_asked);
	ASKED(p, "C:blue C:green{env=prod}");
	peer_change(&w->b, 'C', "+green", "", false); // other parameters
	ASKED(p, "C:blue C:green C:green{env=prod}");
}

static void p04_last_client_gone_ends_the_subscription_after_the_grace(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "E:x=1 E:y=1");
	peer_subscribe(&w->a, 'E', "+x +y");
	GETS(p, &w->a, "E x=1 y=1");
	peer_subscribe(&w->b, 'E', "+y");
	GETS(p, &w->b, "E y=1");
	peer_reopen(&w->a);
	proxy_pass(p, GRACE - NS_PER_SECOND);
	ASKED(p, "E:x E:y");
	proxy_pass(p, 2 * NS_PER_SECOND);
	ASKED(p, "E:y");
	assert_null(catalog_find(p->below.catalog, RESOURCE_ENDPOINTS, "x", NULL));
	assert_non_null(catalog_find(p->below.catalog, RESOURCE_ENDPOINTS, "y", NULL));
	struct upstream_counts counts;
	upstream_counts(p->upstream, &counts);
	assert_int_equal(counts.n_subscriptions, 1);
	assert_int_equal(counts.n_evicted, 1);
}

static void p04_client_that_comes_back_within_the_grace_costs_nothing(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "E:x=1");
	peer_subscribe(&w->s, 'E', "x");
	GETS(p, &w->s, "E x=1");
	unsigned n_asked = p->n_asked;
	peer_reopen(&w->s);
	proxy_pass(p, GRACE / 2);
	peer_subscribe(&w->s, 'E', "x");
	GETS(p, &w->s, "E x=1");
	proxy_pass(p, 2 * GRACE);
	assert_int_equal(p->n_asked, n_asked);
	ASKED(p, "E:x");
}

static void p05_what_is_cached_is_served_while_the_server_is_gone(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "C:blue=1 R:r=blue");
	peer_subscribe(&w->a, 'C', "+blue");
	GETS(p, &w->a, "C blue=1");
	peer_subscribe(&w->a, 'R', "+r");
	GETS(p, &w->a, "R r=blue");
	proxy_cut(p);
	peer_subscribe(&w->b, 'C', "+blue");
	GETS(p, &w->b, "C blue=1");
	peer_subscribe(&w->s, 'R', "r");
	GETS(p, &w->s, "R r=blue");
	proxy_pass(p, 3600 * NS_PER_SECOND);
	GETS(p, &w->a, ""); // nothing is taken away
	server_publish(&p->above, "C:blue=2 R:r=blue");
	proxy_mend(p);
	GETS(p, &w->a, "C blue=2");
	GETS(p, &w->b, "C blue=2");
	GETS(p, &w->s, "");
	ASKED(p, "C:blue R:r");
}

static void p05_what_is_not_known_yet_is_not_absent(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "R:r=1");
	p->is_mute = true;
	peer_subscribe(&w->a, 'R', "+r +none");
	GETS(p, &w->a, "");
	p->is_mute = false;
	GETS(p, &w->a, "R r=1 -none");
	peer_subscribe(&w->b, 'R', "+none"); // known by now
	GETS(p, &w->b, "R -none");
	proxy_publish(p, "R:r=1 R:none=1");
	GETS(p, &w->a, "R none=1");
	GETS(p, &w->b, "R none=1");
}

// A client that brings something along from an earlier proxy would take a list without it for its
// end.
static void p05_full_list_waits_until_it_is_whole_for_a_client_that_may_hold_more(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "C:a=1 C:b=1");
	peer_subscribe(&w->a, 'C', "+a");
	GETS(p, &w->a, "C a=1");
	p->is_mute = true;
	static char url[] = "type.googleapis.com/envoy.config.cluster.v3.Cluster", version[] = "7";
	static char name_a[] = "a", name_b[] = "b";
	char *names[] = {name_a, name_b};
	Envoy__Service__Discovery__V3__DiscoveryRequest m;
	envoy__service__discovery__v3__discovery_request__init(&m);
	m.type_url = url;
	m.version_info = version;
	m.resource_names = names;
	m.n_resource_names = 2;
	struct ads_request_result result;
	assert_int_equal(ads_stream_feed_sotw(w->s.stream, &m, p->below.now_ns, &result), 0);
	GETS(p, &w->s, "");
	p->is_mute = false;
	GETS(p, &w->s, "C a=1 b=1");
}

static void new_client_gets_at_once_what_there_is_of_a_full_list(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "C:a=1 C:b=1");
	peer_subscribe(&w->a, 'C', "+a");
	GETS(p, &w->a, "C a=1");
	p->is_mute = true;
	peer_subscribe(&w->s, 'C', "a b");
	GETS(p, &w->s, "C a=1");
	p->is_mute = false;
	GETS(p, &w->s, "C a=1 b=1");
}

static void p06_swap_of_variants_is_one_response_for_each_client_that_it_concerns(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "R:r=old{env=prod} R:r=test{!env=prod}");
	peer_subscribe(&w->a, 'R', "+r{env=prod,version=v1}");
	GETS(p, &w->a, "R r=old{env=prod}");
	peer_subscribe(&w->b, 'R', "+r{env=test}");
	GETS(p, &w->b, "R r=test{NOT env=prod}");
	peer_subscribe(&w->s, 'R', "r{env=prod}");
	GETS(p, &w->s, "R r=old{env=prod}");
	proxy_publish(
		p, "R:r=v1{env=prod&version=v1} R:r=v2{env=prod&!version=v1} R:r=test{!env=prod}");
	GETS(p, &w->a, "R r=v1{env=prod AND version=v1} -r{env=prod}");
	GETS(p, &w->s, "R r=v2{env=prod AND NOT version=v1}");
	GETS(p, &w->a, "");
	GETS(p, &w->b, "");
	GETS(p, &w->s, "");
}

// The same bytes under other constraints.
static void p06_new_constraints_alone_are_passed_on(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "R:r=1{env=prod}");
	peer_subscribe(&w->a, 'R', "+r{env=prod,version=v1}");
	GETS(p, &w->a, "R r=1{env=prod}");
	proxy_publish(p, "R:r=1{env=prod&version=v1}");
	GETS(p, &w->a, "R r=1{env=prod AND version=v1} -r{env=prod}");
}

static void publish_unkept(struct proxy_world *p, const char *body)
{
	struct lb_err err;
	struct resource *r = resource_new(
		RESOURCE_ENDPOINTS, "x", NULL, (const uint8_t *)body, strlen(body), true);
	catalog_begin(p->above.catalog, XDS_CHANGE_FULL);
	assert_int_equal(catalog_set(p->above.catalog, r, &err), 0);
	catalog_commit(p->above.catalog);
	resource_put(r);
	proxy_run(p);
}

static void p06_what_may_not_be_cached_is_asked_for_anew_by_each_client(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	publish_unkept(p, "x=1");
	peer_subscribe(&w->a, 'E', "+x");
	GETS(p, &w->a, "E x=1");
	p->is_mute = true;
	unsigned n_asked = p->n_asked;
	peer_subscribe(&w->b, 'E', "+x");
	peer_subscribe(&w->s, 'E', "x");
	GETS(p, &w->b, "");
	GETS(p, &w->s, "");
	assert_int_equal(p->n_asked, n_asked + 2);
	p->is_mute = false;
	GETS(p, &w->b, "E x=1");
	GETS(p, &w->s, "E x=1");
	GETS(p, &w->a, "");
	publish_unkept(p, "x=2");
	GETS(p, &w->a, "E x=2");
	GETS(p, &w->b, "E x=2");
	GETS(p, &w->s, "E x=2");
	peer_reopen(&w->a);
	peer_reopen(&w->b);
	peer_reopen(&w->s);
	proxy_pass(p, NS_PER_SECOND); // no grace for what is not kept
	ASKED(p, "");
	assert_null(catalog_find(p->below.catalog, RESOURCE_ENDPOINTS, "x", NULL));
}

static void deletion_is_passed_on(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "L:web=1 L:other=1");
	peer_subscribe(&w->a, 'L', "+web");
	GETS(p, &w->a, "L web=1");
	peer_subscribe(&w->s, 'L', "web other");
	GETS(p, &w->s, "L other=1 web=1");
	proxy_publish(p, "L:other=1");
	GETS(p, &w->a, "L -web");
	GETS(p, &w->s, "L other=1");
	proxy_publish(p, "L:web=2 L:other=1");
	GETS(p, &w->a, "L web=2");
	GETS(p, &w->s, "L other=1 web=2");
}

static void p07_nested_constraints_are_understood_and_passed_on(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	struct lb_err err;
	struct xds_constraints *c = constraints_of(
		"{'or_constraints':{'constraints':[{'and_constraints':{'constraints':["
		"{'constraint':{'key':'a','exists':{}}},{'not_constraints':{'or_constraints':"
		"{'constraints':[{'constraint':{'key':'b','value':'1'}},{'constraint':{'key':'b',"
		"'value':'2'}}]}}}]}},{'constraint':{'key':'c','value':'1'}}]}}");
	struct resource *r =
		resource_new(RESOURCE_ROUTES, "r", c, (const uint8_t *)"r=1", 3, false);
	catalog_begin(p->above.catalog, XDS_CHANGE_FULL);
	assert_int_equal(catalog_set(p->above.catalog, r, &err), 0);
	catalog_commit(p->above.catalog);
	resource_put(r);
	peer_subscribe(&w->a, 'R', "+r{a=x,b=3}");
	proxy_run(p);
	assert_memory_equal(peer_next(&w->a), "R r=1{", 6);
	peer_subscribe(&w->b, 'R', "+r{c=1}");
	proxy_run(p);
	assert_memory_equal(peer_next(&w->b), "R r=1{", 6);
	const struct resource *found = catalog_find(p->below.catalog, RESOURCE_ROUTES, "r", c);
	assert_non_null(found);
	peer_change(&w->b, 'R', "+r{a=x,b=2}", "", false);
	GETS(p, &w->b, "R -r");
	xds_constraints_put(c);
}

// Wildcards

static void wildcard_is_passed_on(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "C:a=1 C:b=1");
	peer_subscribe(&w->s, 'C', "");
	GETS(p, &w->s, "C a=1 b=1");
	peer_subscribe(&w->a, 'C', "+*");
	GETS(p, &w->a, "C a=1 b=1");
	ASKED(p, "C:*");
	proxy_publish(p, "C:a=2 C:c=1");
	GETS(p, &w->s, "C a=2 c=1");
	GETS(p, &w->a, "C a=2 c=1 -b");
	struct upstream_counts counts;
	upstream_counts(p->upstream, &counts);
	assert_int_equal(counts.n_by_wildcard, 2);
}

static void wildcard_that_is_not_known_yet_is_not_empty(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "C:a=1 C:b=1");
	peer_subscribe(&w->a, 'C', "+a");
	GETS(p, &w->a, "C a=1");
	p->is_mute = true;
	peer_subscribe(&w->s, 'C', "");
	peer_subscribe(&w->b, 'C', "+*");
	GETS(p, &w->s, "");
	GETS(p, &w->b, "");
	p->is_mute = false;
	GETS(p, &w->s, "C a=1 b=1");
	GETS(p, &w->b, "C a=1 b=1");
}

static void empty_wildcard_is_told_as_such(void **state)
{
	struct world *w = *state;
	peer_subscribe(&w->s, 'C', "");
	GETS(&w->proxy, &w->s, "C");
	peer_subscribe(&w->a, 'C', "+*");
	GETS(&w->proxy, &w->a, "C");
}

static void wildcard_outlives_the_server_and_follows_it_again(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "L:a=1 L:b=1");
	peer_subscribe(&w->a, 'L', "+*");
	GETS(p, &w->a, "L a=1 b=1");
	proxy_cut(p);
	peer_subscribe(&w->s, 'L', "");
	GETS(p, &w->s, "L a=1 b=1");
	server_publish(&p->above, "L:b=2 L:c=1");
	GETS(p, &w->a, "");
	proxy_mend(p);
	GETS(p, &w->a, "L b=2 c=1 -a");
	GETS(p, &w->s, "L b=2 c=1");
}

static void wildcard_that_nobody_wants_any_more_goes_with_all_that_came_by_it(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "C:a=1 C:b=1");
	peer_subscribe(&w->a, 'C', "+*");
	GETS(p, &w->a, "C a=1 b=1");
	peer_subscribe(&w->b, 'C', "+b");
	GETS(p, &w->b, "C b=1");
	peer_reopen(&w->a);
	proxy_pass(p, 2 * GRACE);
	ASKED(p, "C:b");
	assert_null(catalog_find(p->below.catalog, RESOURCE_CLUSTER, "a", NULL));
	assert_non_null(catalog_find(p->below.catalog, RESOURCE_CLUSTER, "b", NULL));
	GETS(p, &w->b, "");
	peer_reopen(&w->b);
	proxy_pass(p, 2 * GRACE);
	ASKED(p, "");
	assert_null(catalog_find(p->below.catalog, RESOURCE_CLUSTER, "b", NULL));
}

static void wildcards_of_different_parameters_see_different_things(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "C:a=1{env=prod} C:a=2{!env=prod} C:b=1{env=test}");
	peer_subscribe(&w->a, 'C', "+*{env=prod}");
	GETS(p, &w->a, "C a=1{env=prod}");
	peer_subscribe(&w->b, 'C', "+*{env=test}");
	GETS(p, &w->b, "C a=2{NOT env=prod} b=1{env=test}");
	ASKED(p, "C:*{env=prod} C:*{env=test}");
	GETS(p, &w->a, "");
}

// Errors

static void say_error(struct proxy_world *p, enum resource_type type, const char *name, int code)
{
	static unsigned n;
	char nonce[16];
	size_t len;
	snprintf(nonce, sizeof(nonce), "e%u", n++);
	const struct fake_resource error = {.wrapper_name = name, .error_code = code};
	uint8_t *bytes = fake_ads_encode_delta(
		resource_type_info(type)->url, nonce, &error, 1, NULL, 0, &len);
	fake_ads_say(&p->fake, bytes, len);
	free(bytes);
	proxy_run(p);
}

static void error_of_the_server_is_passed_on_as_it_is(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	p->is_mute = true;
	peer_subscribe(&w->a, 'R', "+r");
	peer_subscribe(&w->s, 'R', "r");
	GETS(p, &w->a, "");
	say_error(p, RESOURCE_ROUTES, "r", 7);
	GETS(p, &w->a, "R !r=7:not now");
	GETS(p, &w->a, "");
	GETS(p, &w->s, "R !r=7:not now");
	peer_subscribe(&w->b, 'R', "+r"); // a late one hears of it too
	GETS(p, &w->b, "R !r=7:not now");
	say_error(p, RESOURCE_ROUTES, "r", 7); // nothing new
	GETS(p, &w->a, "");
	say_error(p, RESOURCE_ROUTES, "r", 14);
	GETS(p, &w->a, "R !r=14:not now");
}

static void error_leaves_in_use_what_was_there_and_ends_with_its_return(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "C:c=1 C:d=1");
	peer_subscribe(&w->a, 'C', "+c");
	GETS(p, &w->a, "C c=1");
	peer_subscribe(&w->s, 'C', "c d");
	GETS(p, &w->s, "C c=1 d=1");
	say_error(p, RESOURCE_CLUSTER, "c", 14);
	GETS(p, &w->a, "C !c=14:not now");
	GETS(p, &w->s, "C d=1 !c=14:not now"); // the error keeps c from being deleted
	peer_subscribe(&w->b, 'C', "+c"); // first what there is, then what is wrong with it
	GETS(p, &w->b, "C c=1");
	GETS(p, &w->b, "C !c=14:not now");
	GETS(p, &w->b, "");
	proxy_publish(p, "C:c=2 C:d=1");
	GETS(p, &w->a, "C c=2");
	GETS(p, &w->s, "C c=2 d=1");
	GETS(p, &w->b, "C c=2");
	GETS(p, &w->a, "");
}

// Other types

static enum ads_request_kind want_s(struct peer *p, const char *url)
{
	char *names[] = {(char[]){"s"}};
	assert_int_equal(peer_want(p, url, names, 1), 0);
	return p->result.kind;
}

// Bytes are data: they come out as they went in, fields that nobody knows too.
static void type_that_nobody_knows_passes_unchanged(void **state)
{
	static const char url[] = "type.googleapis.com/envoy.extensions.x.v3.Secret";
	static const uint8_t bytes[] = {0x0a, 0x01, 's', 0xfa, 0x7f, 0x03, 'x', 0x00, 'y'};
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	struct ads_response r;
	p->is_mute = true;
	assert_int_equal(want_s(&w->a, url), ADS_REQUEST_SUBSCRIBE);
	assert_string_equal(w->a.result.type->info.label, "Secret");
	assert_int_equal(ads_stream_drain(w->a.stream, p->below.now_ns, &r), 0);
	const Envoy__Service__Discovery__V3__DeltaDiscoveryRequest *m =
		fake_ads_next_delta(&p->fake);
	assert_string_equal(m->type_url, url);
	assert_string_equal(m->resource_names_subscribe[0], "s");
	const struct fake_resource s = {
		.bytes = bytes, .len = sizeof(bytes), .wrapper_name = "s", .version = "v9"};
	size_t len;
	uint8_t *response = fake_ads_encode_delta(url, "1", &s, 1, NULL, 0, &len);
	fake_ads_say(&p->fake, response, len);
	free(response);
	assert_true(upstream_settle(p->upstream));
	assert_int_equal(ads_stream_drain(w->a.stream, p->below.now_ns, &r), 1);
	assert_string_equal(r.type->url, url);
	assert_int_equal(r.n, 1);
	assert_string_equal(r.resources[0].variant->version, "v9");
	const struct resource *got = catalog_resource(r.resources[0].variant);
	assert_int_equal(got->len, sizeof(bytes));
	assert_memory_equal(got->bytes, bytes, sizeof(bytes));
}

static void what_is_no_type_url_is_not_passed_on(void **state)
{
	struct world *w = *state;
	char url[300] = "a/";
	memset(url + 2, 'x', sizeof(url) - 3);
	for (const char *const *bad =
			(const char *const[]){"", "x", "a/", "a/b c", "a/\"", url, NULL};
		*bad; bad++)
		assert_int_equal(want_s(&w->a, *bad), ADS_REQUEST_UNKNOWN_TYPE);
}

static void versions_of_the_server_are_passed_on(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "C:a=1");
	peer_subscribe(&w->a, 'C', "+a");
	GETS(p, &w->a, "C a=1");
	const struct resource *above = catalog_find(p->above.catalog, RESOURCE_CLUSTER, "a", NULL);
	assert_string_equal(w->a.held[0].version, above->version);
	peer_reopen(&w->a); // it says what it holds, and that is right
	peer_subscribe(&w->a, 'C', "+a");
	GETS(p, &w->a, "");
}

// Whatever allocation fails while what was heard is put into the catalog: it gets there later.
static void want_of_memory_is_got_over(void **state)
{
	for (size_t nth = 0;; nth++) {
		struct world *w = *state;
		struct proxy_world *p = &w->proxy;
		if (nth > 0) {
			teardown(state);
			setup(state);
			w = *state;
			p = &w->proxy;
		}
		server_publish(&p->above, FOUR " C:a=1 C:b=1");
		peer_subscribe(&w->a, 'R', "+r{env=prod,version=v1} +r{env=test}");
		peer_subscribe(&w->a, 'C', "+*");
		peer_subscribe(&w->b, 'C', "+a +none");
		p->fails = true;
		p->fail_nth = nth;
		proxy_run(p);
		bool has_failed = p->has_failed;
		p->fails = false;
		for (int i = 0; i < 4; i++)
			proxy_pass(p, 60 * NS_PER_SECOND);
		GETS(p, &w->a, "C a=1 b=1");
		GETS(p, &w->a,
			"R r=pv{env=prod AND version=v1} r=nn{NOT env=prod AND NOT version=v1}");
		GETS(p, &w->b, "C a=1 -none");
		if (!has_failed) {
			assert_true(nth > 10 || !alloc_fail_works());
			return;
		}
	}
}

// TP2-T12: of endpoints and routes SotW does not say that a variant is gone, so what came last
// counts, for the proxy's clients as for any.
static void t12_newest_variant_wins_where_the_server_speaks_sotw(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "E:s=1");
	peer_subscribe(&w->a, 'E', "+s");
	peer_subscribe(&w->b, 'E', "+s{env=prod}");
	GETS(p, &w->a, "E s=1");
	GETS(p, &w->b, "E s=1");
	proxy_publish(p, "E:s=2{env=prod}");
	GETS(p, &w->b, "E s=2{env=prod} -s");
	GETS(p, &w->a, "");
	// It came before, and comes again.
	proxy_publish(p, "E:s=1");
	GETS(p, &w->b, "E s=1 -s{env=prod}");
	GETS(p, &w->a, "");
}

// What one client sees still, and another sees again, has become the newest by that.
static void t12_variant_that_comes_again_is_the_newest(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "E:s=1{version=v1}");
	peer_subscribe(&w->a, 'E', "+s{version=v1}");
	peer_subscribe(&w->b, 'E', "+s{env=prod,version=v1}");
	peer_subscribe(&w->s, 'E', "s{env=prod}");
	GETS(p, &w->a, "E s=1{version=v1}");
	GETS(p, &w->b, "E s=1{version=v1}");
	proxy_publish(p, "E:s=2{env=prod}");
	GETS(p, &w->s, "E s=2{env=prod}");
	GETS(p, &w->b, "E s=2{env=prod} -s{version=v1}");
	proxy_publish(p, "E:s=1{version=v1}");
	GETS(p, &w->b, "E s=1{version=v1} -s{env=prod}");
	GETS(p, &w->a, "");
	GETS(p, &w->s, "");
}

// Also when the proxy gets to it only after several responses.
static void t12_responses_of_one_turn_take_effect_in_their_order(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	proxy_publish(p, "E:s=1");
	peer_subscribe(&w->a, 'E', "+s");
	peer_subscribe(&w->b, 'E', "+s{env=prod}");
	GETS(p, &w->a, "E s=1");
	GETS(p, &w->b, "E s=1");
	p->is_unsettled = true;
	proxy_publish(p, "E:s=2");
	proxy_publish(p, "E:s=3{env=prod}");
	p->is_unsettled = false;
	GETS(p, &w->a, "E s=2");
	GETS(p, &w->b, "E s=3{env=prod} -s");
}

#define MANY 600
// A variant for each of many values; the first of them also demand that there is no `x`.
static void publish_many(struct proxy_world *p, int n_others)
{
	struct lb_err err;
	enum resource_type type;
	catalog_begin(p->above.catalog, XDS_CHANGE_FULL);
	for (int i = 0; i < MANY; i++) {
		char json[256];
		snprintf(json, sizeof(json),
			"{'and_constraints':{'constraints':[{'constraint':{'key':'k',"
			"'value':'%d'}}%s]}}",
			i,
			i < n_others ? ",{'not_constraints':{'constraint':{'key':'x',"
				       "'exists':{}}}}"
				     : "");
		struct xds_constraints *c = constraints_of(json);
		struct resource *r =
			resource_new(RESOURCE_ENDPOINTS, "s", c, (const uint8_t *)"s=1", 3, false);
		assert_int_equal(catalog_set(p->above.catalog, r, &err), 0);
		resource_put(r);
		xds_constraints_put(c);
	}
	assert_int_equal(catalog_check(p->above.catalog, &type, NULL, &err), 0);
	catalog_commit(p->above.catalog);
	proxy_run(p);
}

// More than one change of a name may have: the rest comes with the next, at once.
static void changes_beyond_what_one_takes_come_with_the_next(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	const struct catalog_type *type = &p->below.catalog->types[RESOURCE_ENDPOINTS];
	for (int i = 0; i < MANY; i += 10) {
		char text[256] = "";
		for (int k = i; k < i + 10; k++) {
			size_t len = strlen(text);
			snprintf(text + len, sizeof(text) - len, " +s{k=%d}", k);
		}
		peer_change(&w->a, 'E', text, "", false);
	}
	publish_many(p, 0);
	assert_int_equal(type->n, MANY);
	p->is_unsettled = true;
	publish_many(p, MANY / 2);
	publish_many(p, MANY);
	p->is_unsettled = false;
	proxy_run(p);
	assert_int_equal(type->n, MANY);
	size_t n_cut = 0;
	for (size_t i = 0; i < w->a.stream->types[RESOURCE_ENDPOINTS].sub.n; i++) {
		char text[96];
		const struct xds_variant *v =
			w->a.stream->types[RESOURCE_ENDPOINTS].sub.entries[i].sub->variant;
		assert_non_null(v);
		xds_constraints_print(v->constraints, text, sizeof(text));
		n_cut += strstr(text, "NOT") != NULL;
	}
	assert_int_equal(n_cut, MANY);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define SOTW(name) cmocka_unit_test_setup_teardown(name, setup_sotw, teardown)
	const struct CMUnitTest tests[] = {
		T(p01_p02_each_client_gets_its_variant_with_the_constraints),
		T(p03_variant_that_comes_for_one_serves_all_whom_it_matches),
		T(p04_the_server_is_asked_for_each_name_and_parameters_once),
		T(p04_last_client_gone_ends_the_subscription_after_the_grace),
		T(p04_client_that_comes_back_within_the_grace_costs_nothing),
		T(p05_what_is_cached_is_served_while_the_server_is_gone),
		T(p05_what_is_not_known_yet_is_not_absent),
		T(p05_full_list_waits_until_it_is_whole_for_a_client_that_may_hold_more),
		T(new_client_gets_at_once_what_there_is_of_a_full_list),
		T(p06_swap_of_variants_is_one_response_for_each_client_that_it_concerns),
		T(p06_new_constraints_alone_are_passed_on),
		T(p06_what_may_not_be_cached_is_asked_for_anew_by_each_client),
		T(deletion_is_passed_on),
		T(p07_nested_constraints_are_understood_and_passed_on),
		T(wildcard_is_passed_on),
		T(wildcard_that_is_not_known_yet_is_not_empty),
		T(empty_wildcard_is_told_as_such),
		T(wildcard_outlives_the_server_and_follows_it_again),
		T(wildcard_that_nobody_wants_any_more_goes_with_all_that_came_by_it),
		T(wildcards_of_different_parameters_see_different_things),
		T(error_of_the_server_is_passed_on_as_it_is),
		T(error_leaves_in_use_what_was_there_and_ends_with_its_return),
		T(type_that_nobody_knows_passes_unchanged),
		T(what_is_no_type_url_is_not_passed_on),
		T(versions_of_the_server_are_passed_on),
		T(want_of_memory_is_got_over),
		T(changes_beyond_what_one_takes_come_with_the_next),
		SOTW(t12_newest_variant_wins_where_the_server_speaks_sotw),
		SOTW(t12_variant_that_comes_again_is_the_newest),
		SOTW(t12_responses_of_one_turn_take_effect_in_their_order),
	};
	return cmocka_run_group_tests_name("shunt-xds/upstream", tests, NULL, NULL);
}
