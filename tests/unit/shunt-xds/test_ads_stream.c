// SPDX-License-Identifier: Apache-2.0
// One SotW stream as a script: what is asked, what is due. Resources are "name=body" texts.
#include "google/protobuf/any.pb-c.h"
#include "proto/wire.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tools/shunt-xds/ads_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ull
#define N_NAMES_MAX 8

struct world {
	struct ads_stream *stream;
	struct resource_set *set;
	uint64_t now_ns;
	struct ads_request_result result; // of the last request
	uint64_t nonce[N_RESOURCE_TYPES]; // of the last response of each type
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	w->stream = ads_stream_new();
	w->set = resource_set_new();
	w->now_ns = 100 * SECOND;
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	ads_stream_free(w->stream);
	resource_set_free(w->set);
	free(w);
	return 0;
}

static const char type_letters[N_RESOURCE_TYPES + 1] = "CELR";

static enum resource_type type_of(char letter)
{
	return (enum resource_type)(strchr(type_letters, letter) - type_letters);
}

// The next set, from words like "C:blue=1 E:blue=1 R:r=3".
static void publish(struct world *w, const char *words)
{
	struct resource_set *set = resource_set_new();
	char text[256];
	snprintf(text, sizeof(text), "%s", words);
	char *rest;
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		char *body = strchr(word, '=');
		*body++ = '\0';
		struct resource *r = resource_new(
			type_of(word[0]), word + 2, "file", (const uint8_t *)body, strlen(body));
		assert_int_equal(resource_set_add(set, r), 0);
	}
	assert_int_equal(resource_set_seal(set, w->set, NULL), 0);
	// Freed at once: the stream must not need the set before this one.
	resource_set_free(w->set);
	w->set = set;
}

// names: "a b c".
static void request(struct world *w, char letter, const char *names, const char *nonce, bool nack)
{
	Envoy__Service__Discovery__V3__DiscoveryRequest m;
	envoy__service__discovery__v3__discovery_request__init(&m);
	Google__Rpc__Status error;
	google__rpc__status__init(&error);
	char url[128], own_nonce[32], text[64];
	char *list[N_NAMES_MAX], *rest;
	snprintf(url, sizeof(url), "%s", resource_type_info(type_of(letter))->url);
	snprintf(own_nonce, sizeof(own_nonce), "%s", nonce);
	snprintf(text, sizeof(text), "%s", names);
	m.type_url = url;
	m.response_nonce = own_nonce;
	m.resource_names = list;
	for (char *name = strtok_r(text, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
		list[m.n_resource_names++] = name;
	if (nack)
		m.error_detail = &error;
	assert_int_equal(ads_stream_feed(w->stream, &m, w->now_ns, &w->result), 0);
}

static void subscribe(struct world *w, char letter, const char *names)
{
	request(w, letter, names, "", false);
	assert_int_equal(w->result.kind, ADS_REQUEST_SUBSCRIBE);
}

static const char *last_nonce(const struct world *w, char letter)
{
	static char text[32];
	snprintf(text, sizeof(text), "%" PRIu64, w->nonce[type_of(letter)]);
	return text;
}

static void ack(struct world *w, char letter, const char *names)
{
	request(w, letter, names, last_nonce(w, letter), false);
}

// The next response as text: "C2 blue=1 green=2" (type, version, resources); "" = none is due.
static const char *next(struct world *w)
{
	static char text[512];
	struct ads_response r;
	int due = ads_stream_drain(w->stream, w->set, w->now_ns, &r);
	assert_true(due >= 0);
	if (due == 0)
		return "";
	assert_true(r.nonce > w->nonce[r.type]);
	w->nonce[r.type] = r.nonce;
	int n = snprintf(text, sizeof(text), "%c%" PRIu64, type_letters[r.type], r.version);
	for (size_t i = 0; i < r.n; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " %s=%.*s", r.resources[i]->name,
			(int)r.resources[i]->len, (const char *)r.resources[i]->bytes);
	return text;
}

#define NEXT(w, expected) assert_string_equal(next(w), expected)

// All four types, subscribed by name, sent and accepted.
static void bring_up(struct world *w)
{
	publish(w, "C:blue=1 E:blue=1 L:web=1 R:r=blue");
	subscribe(w, 'L', "web");
	NEXT(w, "L1 web=1");
	ack(w, 'L', "web");
	subscribe(w, 'R', "r");
	NEXT(w, "R1 r=blue");
	ack(w, 'R', "r");
	subscribe(w, 'C', "blue");
	NEXT(w, "C1 blue=1");
	ack(w, 'C', "blue");
	subscribe(w, 'E', "blue");
	NEXT(w, "E1 blue=1");
	ack(w, 'E', "blue");
	NEXT(w, "");
}

static void first_request_gets_what_it_names(void **state)
{
	struct world *w = *state;
	publish(w, "L:web=1 L:other=2");
	NEXT(w, "");
	subscribe(w, 'L', "web");
	NEXT(w, "L1 web=1");
	NEXT(w, "");
	ack(w, 'L', "web");
	assert_int_equal(w->result.kind, ADS_REQUEST_ACK);
	assert_int_equal(w->result.version, 1);
	NEXT(w, "");
}

// SW-11: with full-state types an empty answer tells of deletions; with the others it says nothing
// (SW-14), so none is given.
static void absent_resources_are_answered_in_full_state_types_only(void **state)
{
	struct world *w = *state;
	subscribe(w, 'C', "blue");
	NEXT(w, "C0");
	subscribe(w, 'E', "blue");
	NEXT(w, "");
	publish(w, "E:blue=1"); // SW-15
	NEXT(w, "E1 blue=1");
}

static void unchanged_content_is_not_sent_again(void **state)
{
	struct world *w = *state;
	bring_up(w);
	publish(w, "C:blue=1 E:blue=1 L:web=1 R:r=blue");
	NEXT(w, "");
	publish(w, "C:blue=1 C:unwanted=1 E:blue=1 L:web=1 R:r=blue"); // a new version, not for us
	NEXT(w, "");
}

static void changes_come_in_make_before_break_order(void **state)
{
	struct world *w = *state;
	bring_up(w);
	publish(w, "R:r=2 L:web=2 E:blue=2 C:blue=2");
	NEXT(w, "C2 blue=2");
	NEXT(w, "E2 blue=2");
	NEXT(w, "L2 web=2");
	NEXT(w, "R2 r=2");
	NEXT(w, "");
}

static void slow_client_gets_the_latest_only(void **state)
{
	struct world *w = *state;
	bring_up(w);
	publish(w, "C:blue=2 E:blue=1 L:web=1 R:r=blue");
	publish(w, "C:blue=3 E:blue=1 L:web=1 R:r=blue");
	publish(w, "C:blue=4 E:blue=1 L:web=1 R:r=blue");
	NEXT(w, "C4 blue=4");
	NEXT(w, "");
}

static void only_changed_endpoints_are_sent(void **state)
{
	struct world *w = *state;
	publish(w, "E:a=1 E:b=1 E:c=1");
	subscribe(w, 'E', "a b");
	NEXT(w, "E1 a=1 b=1");
	ack(w, 'E', "a b c");
	NEXT(w, "E1 c=1");
	publish(w, "E:a=1 E:b=2 E:c=1");
	NEXT(w, "E2 b=2");
	publish(w, "E:a=1 E:c=1");
	NEXT(w, ""); // SW-14
	publish(w, "E:a=1 E:b=2 E:c=1");
	NEXT(w, "E4 b=2");
}

static void all_clusters_are_sent_when_one_changes(void **state)
{
	struct world *w = *state;
	publish(w, "C:a=1 C:b=1");
	subscribe(w, 'C', "a b");
	NEXT(w, "C1 a=1 b=1");
	ack(w, 'C', "a b");
	publish(w, "C:a=1 C:b=2");
	NEXT(w, "C2 a=1 b=2");
}

// SW-04, SW-05.
static void subscription_change_goes_with_the_last_nonce(void **state)
{
	struct world *w = *state;
	publish(w, "C:a=1 C:b=1");
	subscribe(w, 'C', "a");
	NEXT(w, "C1 a=1");
	ack(w, 'C', "a");
	ack(w, 'C', "a b");
	assert_int_equal(w->result.kind, ADS_REQUEST_SUBSCRIBE);
	NEXT(w, "C1 a=1 b=1");
	ack(w, 'C', "b");
	assert_int_equal(w->result.kind, ADS_REQUEST_ACK);
	NEXT(w, ""); // fewer names need no answer
}

static void stale_nonce_is_ignored(void **state)
{
	struct world *w = *state;
	publish(w, "C:a=1 C:b=1");
	subscribe(w, 'C', "a");
	NEXT(w, "C1 a=1");
	publish(w, "C:a=2 C:b=1");
	NEXT(w, "C2 a=2");
	request(w, 'C', "a b", "1", false);
	assert_int_equal(w->result.kind, ADS_REQUEST_STALE);
	NEXT(w, "");
	request(w, 'C', "a b", "2", false);
	assert_int_equal(w->result.kind, ADS_REQUEST_ACK);
	assert_int_equal(w->result.version, 2);
	NEXT(w, "C2 a=2 b=1");
}

static void nonces_of_types_do_not_mix(void **state)
{
	struct world *w = *state;
	bring_up(w);
	request(w, 'R', "r", last_nonce(w, 'E'), false);
	assert_int_equal(w->result.kind, ADS_REQUEST_STALE);
}

static void refused_version_is_not_sent_again_until_it_changes(void **state)
{
	struct world *w = *state;
	publish(w, "C:a=1");
	subscribe(w, 'C', "a");
	NEXT(w, "C1 a=1");
	request(w, 'C', "a", "1", true);
	assert_int_equal(w->result.kind, ADS_REQUEST_NACK);
	assert_int_equal(w->result.version, 1);
	NEXT(w, "");
	publish(w, "C:a=2");
	NEXT(w, "C2 a=2");
}

static void removed_listener_is_told_by_its_absence(void **state)
{
	struct world *w = *state;
	publish(w, "L:web=1 L:api=1");
	subscribe(w, 'L', "web api");
	NEXT(w, "L1 api=1 web=1");
	ack(w, 'L', "web api");
	publish(w, "L:web=1");
	NEXT(w, "L2 web=1");
	publish(w, "");
	NEXT(w, "L3");
}

static void removed_cluster_alone_is_told_at_once(void **state)
{
	struct world *w = *state;
	bring_up(w);
	w->now_ns += SECOND;
	publish(w, "E:blue=1 L:web=1 R:r=blue");
	NEXT(w, "C2");
}

static void removed_cluster_waits_for_the_routes(void **state)
{
	struct world *w = *state;
	bring_up(w);
	w->now_ns += 60 * SECOND;
	publish(w, "C:green=1 E:green=1 L:web=1 R:r=green");
	NEXT(w, "R2 r=green");
	NEXT(w, "");
	assert_int_equal(ads_stream_due_ns(w->stream), UINT64_MAX); // not before the answer
	w->now_ns += 10 * SECOND;
	NEXT(w, "");
	ack(w, 'R', "r");
	NEXT(w, "");
	assert_int_equal(ads_stream_due_ns(w->stream), w->now_ns + SECOND);
	ack(w, 'C', "blue green");
	NEXT(w, "C2 blue=1 green=1"); // the old one is still there
	ack(w, 'C', "blue green");
	ack(w, 'E', "blue green");
	NEXT(w, "E2 green=1");
	w->now_ns += SECOND;
	NEXT(w, ""); // endpoints are unanswered
	ack(w, 'E', "blue green");
	NEXT(w, "C2 green=1");
	NEXT(w, "");
}

static void removed_cluster_stays_while_the_routes_are_refused(void **state)
{
	struct world *w = *state;
	bring_up(w);
	w->now_ns += 60 * SECOND;
	publish(w, "E:blue=1 L:web=1 R:r=bad");
	NEXT(w, "R2 r=bad");
	request(w, 'R', "r", last_nonce(w, 'R'), true);
	w->now_ns += 60 * SECOND;
	NEXT(w, "");
	assert_int_equal(ads_stream_due_ns(w->stream), UINT64_MAX);
	publish(w, "E:blue=1 L:web=1 R:r=good");
	NEXT(w, "R3 r=good");
	ack(w, 'R', "r");
	w->now_ns += SECOND;
	NEXT(w, "C2");
}

static void client_that_drops_the_name_sees_no_removal(void **state)
{
	struct world *w = *state;
	bring_up(w);
	w->now_ns += 60 * SECOND;
	publish(w, "C:green=1 L:web=1 R:r=green");
	NEXT(w, "R2 r=green");
	ack(w, 'R', "r");
	ack(w, 'C', "green");
	NEXT(w, "C2 green=1");
	ack(w, 'C', "green");
	w->now_ns += 60 * SECOND;
	NEXT(w, "");
}

static void wildcard_gets_all_and_follows(void **state)
{
	struct world *w = *state;
	publish(w, "C:a=1 C:b=1");
	subscribe(w, 'C', "");
	assert_true(w->result.wildcard);
	NEXT(w, "C1 a=1 b=1");
	ack(w, 'C', "");
	publish(w, "C:a=1 C:b=1 C:c=1");
	NEXT(w, "C2 a=1 b=1 c=1");
	ack(w, 'C', "");
	publish(w, "C:b=1 C:c=1");
	NEXT(w, "C3 b=1 c=1");
	ack(w, 'C', "");
	NEXT(w, "");
}

static void wildcard_of_an_empty_set_is_answered(void **state)
{
	struct world *w = *state;
	subscribe(w, 'C', "");
	NEXT(w, "C0");
	NEXT(w, "");
}

static void request_without_nonce_starts_over(void **state)
{
	struct world *w = *state;
	bring_up(w);
	subscribe(w, 'E', "blue");
	NEXT(w, "E1 blue=1");
	subscribe(w, 'C', "blue");
	NEXT(w, "C1 blue=1");
}

static void nonce_of_an_earlier_stream_does_no_harm(void **state)
{
	struct world *w = *state;
	publish(w, "C:a=1");
	request(w, 'C', "a", "77", false);
	assert_int_equal(w->result.kind, ADS_REQUEST_SUBSCRIBE);
	NEXT(w, "C1 a=1");
}

// PC-04.
static void unknown_type_is_not_answered(void **state)
{
	struct world *w = *state;
	Envoy__Service__Discovery__V3__DiscoveryRequest m;
	envoy__service__discovery__v3__discovery_request__init(&m);
	static char url[] = "type.googleapis.com/envoy.api.v2.Cluster";
	m.type_url = url;
	assert_int_equal(ads_stream_feed(w->stream, &m, w->now_ns, &w->result), 0);
	assert_int_equal(w->result.kind, ADS_REQUEST_UNKNOWN_TYPE);
	NEXT(w, "");
}

// TP2-T04: both lists together are the subscription.
static void locators_are_names_too(void **state)
{
	struct world *w = *state;
	publish(w, "C:a=1 C:b=1 C:c=1");
	Envoy__Service__Discovery__V3__DiscoveryRequest m;
	envoy__service__discovery__v3__discovery_request__init(&m);
	Envoy__Service__Discovery__V3__ResourceLocator locator;
	envoy__service__discovery__v3__resource_locator__init(&locator);
	Envoy__Service__Discovery__V3__ResourceLocator *locators[] = {&locator};
	char url[128], a[] = "a", b[] = "b";
	char *names[] = {b};
	snprintf(url, sizeof(url), "%s", resource_type_info(RESOURCE_CLUSTER)->url);
	locator.name = a;
	m.type_url = url;
	m.resource_names = names;
	m.n_resource_names = 1;
	m.resource_locators = locators;
	m.n_resource_locators = 1;
	assert_int_equal(ads_stream_feed(w->stream, &m, w->now_ns, &w->result), 0);
	NEXT(w, "C1 a=1 b=1");
}

static void response_is_encoded_as_clients_expect(void **state)
{
	struct world *w = *state;
	struct ads_response r;
	uint8_t *bytes;
	size_t len;
	publish(w, "C:a=xyz C:b=");
	subscribe(w, 'C', "a b");
	assert_int_equal(ads_stream_drain(w->stream, w->set, w->now_ns, &r), 1);
	assert_int_equal(ads_response_encode(&r, &bytes, &len), 0);
	Envoy__Service__Discovery__V3__DiscoveryResponse *m =
		(Envoy__Service__Discovery__V3__DiscoveryResponse *)proto_unpack(
			&envoy__service__discovery__v3__discovery_response__descriptor, bytes, len,
			NULL);
	free(bytes);
	assert_non_null(m);
	assert_string_equal(m->version_info, "1");
	assert_string_equal(m->nonce, "1");
	assert_string_equal(m->type_url, resource_type_info(RESOURCE_CLUSTER)->url);
	assert_int_equal(m->n_resources, 2);
	assert_string_equal(m->resources[0]->type_url, m->type_url);
	assert_int_equal(m->resources[0]->value.len, 3);
	assert_memory_equal(m->resources[0]->value.data, "xyz", 3);
	assert_int_equal(m->resources[1]->value.len, 0);
	protobuf_c_message_free_unpacked(&m->base, NULL);
}

static void response_without_memory_is_due_still(void **state)
{
	struct world *w = *state;
	struct ads_response r;
	uint8_t *bytes;
	size_t len;
	int due, encoded;
	publish(w, "C:a=1 C:b=1");
	subscribe(w, 'C', "*");
	alloc_fail_arm(0);
	due = ads_stream_drain(w->stream, w->set, w->now_ns, &r);
	assert_true(!alloc_fail_disarm() || due == -ENOMEM);
	if (due < 0)
		due = ads_stream_drain(w->stream, w->set, w->now_ns, &r);
	assert_int_equal(due, 1);
	assert_int_equal(r.n, 2);
	ALLOC_FAIL_EACH(encoded = ads_response_encode(&r, &bytes, &len), encoded < 0, free(bytes));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

RUN_SUITE("shunt-xds/ads_stream", CASE(first_request_gets_what_it_names),
	CASE(absent_resources_are_answered_in_full_state_types_only),
	CASE(unchanged_content_is_not_sent_again), CASE(changes_come_in_make_before_break_order),
	CASE(slow_client_gets_the_latest_only), CASE(only_changed_endpoints_are_sent),
	CASE(all_clusters_are_sent_when_one_changes),
	CASE(subscription_change_goes_with_the_last_nonce), CASE(stale_nonce_is_ignored),
	CASE(nonces_of_types_do_not_mix), CASE(refused_version_is_not_sent_again_until_it_changes),
	CASE(removed_listener_is_told_by_its_absence), CASE(removed_cluster_alone_is_told_at_once),
	CASE(removed_cluster_waits_for_the_routes),
	CASE(removed_cluster_stays_while_the_routes_are_refused),
	CASE(client_that_drops_the_name_sees_no_removal), CASE(wildcard_gets_all_and_follows),
	CASE(wildcard_of_an_empty_set_is_answered), CASE(request_without_nonce_starts_over),
	CASE(nonce_of_an_earlier_stream_does_no_harm), CASE(unknown_type_is_not_answered),
	CASE(locators_are_names_too), CASE(response_is_encoded_as_clients_expect),
	CASE(response_without_memory_is_due_still))
