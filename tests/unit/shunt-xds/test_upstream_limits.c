// SPDX-License-Identifier: Apache-2.0
// What one client of the caching proxy may take from the others: types, and room in the request
// that all of them share.
#include "ctrl/xds/client.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/shunt-xds/proxy_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world {
	struct proxy_world proxy;
	struct peer a, b;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	proxy_init(&w->proxy, &xds_protocol_delta);
	peer_open(&w->a, &w->proxy.below, ADS_DELTA);
	peer_open(&w->b, &w->proxy.below, ADS_DELTA);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	peer_close(&w->a);
	peer_close(&w->b);
	proxy_fini(&w->proxy);
	free(w);
	return 0;
}

// Types

static enum ads_request_kind ask_for_type(struct peer *p, int number)
{
	char url[32], *names[] = {(char[]){"s"}};
	snprintf(url, sizeof(url), "a/type%d", number);
	assert_int_equal(peer_want(p, url, names, 1), 0);
	return p->result.kind;
}

// Peers that ask for all types but ours; the last has none of its own left then.
#define N_GREEDY ((CATALOG_TYPES_MAX - N_RESOURCE_TYPES) / CATALOG_TYPES_A_CLIENT + 1)
static void take_all_types(struct proxy_world *p, struct peer *peers)
{
	int room = CATALOG_TYPES_MAX - N_RESOURCE_TYPES;
	for (int k = 0; k < N_GREEDY; k++) {
		peer_open(&peers[k], &p->below, ADS_DELTA);
		for (int i = 0; i <= CATALOG_TYPES_A_CLIENT; i++) {
			bool has_room = i < CATALOG_TYPES_A_CLIENT && room > 0;
			room -= has_room;
			assert_int_equal(ask_for_type(&peers[k], k * CATALOG_TYPES_A_CLIENT + i),
				has_room ? ADS_REQUEST_SUBSCRIBE : ADS_REQUEST_UNKNOWN_TYPE);
		}
	}
	assert_int_equal(room, 0);
}

static void one_client_does_not_use_up_the_types_of_all(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 2 * CATALOG_TYPES_MAX; i++)
		assert_int_equal(ask_for_type(&w->a, i), i < CATALOG_TYPES_A_CLIENT
								 ? ADS_REQUEST_SUBSCRIBE
								 : ADS_REQUEST_UNKNOWN_TYPE);
	// What it has, and what is served anyway, it has still.
	assert_int_equal(ask_for_type(&w->a, 0), ADS_REQUEST_SUBSCRIBE);
	peer_subscribe(&w->a, 'C', "+a");
	// Others have their own, and may share its.
	assert_int_equal(ask_for_type(&w->b, 0), ADS_REQUEST_SUBSCRIBE);
	assert_int_equal(ask_for_type(&w->b, 1000), ADS_REQUEST_SUBSCRIBE);
}

static void types_that_nobody_has_any_more_make_room(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	struct peer greedy[N_GREEDY];
	for (int round = 0; round < 3; round++) {
		take_all_types(p, greedy);
		proxy_run(p);
		assert_int_equal(ask_for_type(&w->a, 1000), ADS_REQUEST_UNKNOWN_TYPE);
		for (int k = 0; k < N_GREEDY; k++)
			peer_close(&greedy[k]);
		proxy_pass(p, NS_PER_SECOND); // not the grace: room is scarce
		ASKED(p, "");
		for (int i = 1000; i < 1000 + CATALOG_TYPES_A_CLIENT; i++)
			assert_int_equal(ask_for_type(&w->a, i), ADS_REQUEST_SUBSCRIBE);
		peer_reopen(&w->a);
		proxy_pass(p, 2 * NS_PER_SECOND);
	}
}

// -ENOMEM ends the stream, and the client comes again; what is not served it would not ask for any
// more.
static void type_for_which_memory_is_short_is_not_called_unknown(void **state)
{
	struct world *w = *state;
	char *names[] = {(char[]){"s"}};
	bool hit = true;
	for (size_t nth = 0; hit; nth++) {
		peer_reopen(&w->a);
		alloc_fail_arm(nth);
		int rc = peer_want(&w->a, "a/type", names, 1);
		hit = alloc_fail_disarm();
		assert_true(rc == (hit ? -ENOMEM : 0) || w->a.result.kind == ADS_REQUEST_SUBSCRIBE);
	}
}

// A place is another type's: of the one before nothing is left.
static void type_in_the_place_of_another_is_served_as_any(void **state)
{
	static const uint8_t bytes[] = {0x0a, 0x01, 's'};
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	struct peer greedy[N_GREEDY];
	struct ads_response r;
	take_all_types(p, greedy);
	proxy_run(p);
	for (int k = 0; k < N_GREEDY; k++)
		peer_close(&greedy[k]);
	proxy_pass(p, NS_PER_SECOND);
	p->is_mute = true;
	assert_int_equal(ask_for_type(&w->a, 1000), ADS_REQUEST_SUBSCRIBE);
	const Envoy__Service__Discovery__V3__DeltaDiscoveryRequest *m =
		fake_ads_next_delta(&p->fake);
	assert_string_equal(m->type_url, "a/type1000");
	assert_string_equal(m->response_nonce, "");
	assert_int_equal(m->n_resource_names_subscribe, 1);
	// What is under way of the old type is nobody's.
	for (int i = 0; i < 2; i++) {
		const struct fake_resource s = {
			.bytes = bytes, .len = sizeof(bytes), .wrapper_name = "s", .version = "v"};
		size_t len;
		uint8_t *response = fake_ads_encode_delta(
			i ? "a/type1000" : "a/type0", i ? "1" : "7", &s, 1, NULL, 0, &len);
		fake_ads_say(&p->fake, response, len);
		free(response);
		assert_int_equal(upstream_settle(p->upstream), i);
	}
	assert_int_equal(ads_stream_drain(w->a.stream, p->below.now_ns, &r), 1);
	assert_string_equal(r.type->url, "a/type1000");
	assert_int_equal(r.n, 1);
}

// Requests that are not too long

#define NAME_LEN 1000 // twice that in a request, since it may have to say what is held
static int ask_for_names(struct peer *p, int first, size_t n)
{
	static const char url[] =
		"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
	char **names = malloc(n * sizeof(*names));
	for (size_t i = 0; i < n; i++)
		assert_true(asprintf(&names[i], "%0*d", NAME_LEN, first + (int)i) > 0);
	int rc = peer_want(p, url, names, n);
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return rc;
}

static void client_has_no_more_names_than_half_a_request(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	struct upstream_counts counts;
	proxy_publish(p, "E:e=1");
	assert_int_equal(ask_for_names(&w->a, 0, 260), -EMSGSIZE);
	assert_non_null(strstr(p->below.catalog->source->refusal, "its names"));
	assert_non_null(strstr(p->below.catalog->source->refusal, "500000 are the limit"));
	upstream_counts(p->upstream, &counts);
	assert_int_equal(counts.n_subscriptions, 0); // none of them has gone up
	assert_int_equal(counts.n_refused, 1);
	peer_subscribe(&w->b, 'E', "+e");
	GETS(p, &w->b, "E e=1");
	ASKED(p, "E:e");
	// Also in several requests; what is there already is there.
	assert_int_equal(ask_for_names(&w->b, 0, 200), 0);
	assert_int_equal(ask_for_names(&w->b, 0, 200), 0);
	assert_int_equal(ask_for_names(&w->b, 200, 60), -EMSGSIZE);
}

static void clients_have_no_more_names_than_a_request(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	struct peer late;
	peer_open(&late, &p->below, ADS_DELTA);
	proxy_publish(p, "E:e=1");
	assert_int_equal(ask_for_names(&w->a, 0, 200), 0);
	assert_int_equal(ask_for_names(&w->b, 1000, 200), 0);
	assert_int_equal(ask_for_names(&late, 2000, 100), -EMSGSIZE);
	assert_non_null(strstr(p->below.catalog->source->refusal, "1000000 are the limit"));
	assert_int_equal(ask_for_names(&late, 0, 200), 0); // the same as others costs nothing
	peer_close(&late);
	peer_open(&late, &p->below, ADS_DELTA);
	// What clients have left makes room at once.
	peer_close(&w->b);
	peer_open(&w->b, &p->below, ADS_DELTA);
	assert_int_equal(ask_for_names(&late, 2000, 200), 0);
	peer_subscribe(&w->b, 'E', "+e");
	GETS(p, &w->b, "E e=1");
	peer_close(&late);
}

// All of it, lest each name of many looks for one.
static void what_nobody_wants_goes_at_once_when_room_is_short(void **state)
{
	struct world *w = *state;
	struct proxy_world *p = &w->proxy;
	struct upstream_counts counts;
	proxy_publish(p, "C:c=1");
	peer_subscribe(&w->a, 'C', "+c");
	GETS(p, &w->a, "C c=1");
	peer_change(&w->a, 'C', "-c", "", false);
	assert_int_equal(ask_for_names(&w->a, 0, 200), 0);
	assert_int_equal(ask_for_names(&w->b, 1000, 200), 0);
	peer_close(&w->b);
	peer_open(&w->b, &p->below, ADS_DELTA);
	upstream_counts(p->upstream, &counts);
	assert_int_equal(counts.n_idle, 201);
	assert_int_equal(ask_for_names(&w->b, 2000, 100), 0);
	upstream_counts(p->upstream, &counts);
	assert_int_equal(counts.n_idle, 1); // another type's
	assert_int_equal(counts.n_evicted, 200);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

RUN_SUITE("shunt-xds/upstream_limits", T(one_client_does_not_use_up_the_types_of_all),
	T(types_that_nobody_has_any_more_make_room),
	T(type_for_which_memory_is_short_is_not_called_unknown),
	T(type_in_the_place_of_another_is_served_as_any),
	T(client_has_no_more_names_than_half_a_request),
	T(clients_have_no_more_names_than_a_request),
	T(what_nobody_wants_goes_at_once_when_room_is_short))
