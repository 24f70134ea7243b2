// SPDX-License-Identifier: Apache-2.0
// Resources that hold for a time only, and the heartbeats that keep them (RS-*).
#include "ctrl/xds/gather.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/client_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Envoy__Service__Discovery__V3__Resource Wrapper;

// One resource or heartbeat. content NULL = a heartbeat; ttl_s -1 = none.
struct beat {
	const char *name, *content, *version;
	int64_t ttl_s;
	int32_t nanos;
};

struct packed {
	Wrapper wrapper;
	Google__Protobuf__Any any;
	Google__Protobuf__Duration ttl;
	char text[64];
};

static void pack(struct packed *p, const struct beat *b)
{
	envoy__service__discovery__v3__resource__init(&p->wrapper);
	google__protobuf__any__init(&p->any);
	google__protobuf__duration__init(&p->ttl);
	p->wrapper.name = (char *)(uintptr_t)b->name;
	p->wrapper.version = (char *)(uintptr_t)b->version;
	if (b->content) {
		int len = snprintf(p->text, sizeof(p->text), "%s=%s", b->name, b->content);
		p->any.type_url = (char *)(uintptr_t)CLUSTER_URL;
		p->any.value = (ProtobufCBinaryData){(size_t)len, (uint8_t *)p->text};
		p->wrapper.resource = &p->any;
	}
	p->ttl.seconds = b->ttl_s;
	p->ttl.nanos = b->nanos;
	if (b->ttl_s != -1)
		p->wrapper.ttl = &p->ttl;
}

static void say_delta(struct fixture *f, const char *nonce, const struct beat *b)
{
	struct packed p;
	uint8_t bytes[512];
	Wrapper *list = &p.wrapper;
	Envoy__Service__Discovery__V3__DeltaDiscoveryResponse m;
	envoy__service__discovery__v3__delta_discovery_response__init(&m);
	pack(&p, b);
	m.type_url = (char *)(uintptr_t)CLUSTER_URL;
	m.nonce = (char *)(uintptr_t)nonce;
	m.resources = &list;
	m.n_resources = 1;
	fake_ads_say(&f->server, bytes,
		envoy__service__discovery__v3__delta_discovery_response__pack(&m, bytes));
}

static void say_sotw(struct fixture *f, const char *version, const char *nonce,
	const struct beat *beats, size_t n)
{
	struct packed p;
	uint8_t bytes[4][256];
	struct fake_resource list[4];
	for (size_t i = 0; i < n; i++) {
		pack(&p, &beats[i]);
		list[i] = (struct fake_resource){
			.type_url = "type.googleapis.com/envoy.service.discovery.v3.Resource",
			.bytes = bytes[i],
			.len = envoy__service__discovery__v3__resource__pack(&p.wrapper, bytes[i]),
		};
	}
	fake_ads_respond(&f->server, CLUSTER_URL, version, nonce, list, n);
}

// An incremental client with cluster a=1 in version v1 for 10 s.
static void with_a(struct fixture *f, struct ear *a)
{
	fixture_init_delta(f, "");
	listen_to(f, &toy_cluster, "a", a);
	expect_delta(f, &toy_cluster, "+a", "");
	say_delta(f, "n1", &(struct beat){"a", "1", "v1", 10});
	expect_delta(f, &toy_cluster, "", "n1");
	assert_string_equal(heard(a), "=1");
}

static void value_is_dropped_when_its_ttl_is_over(void **state)
{
	struct fixture f;
	struct ear a;
	with_a(&f, &a);
	pass_time(&f, 9 * S);
	assert_string_equal(heard(&a), "");
	pass_time(&f, 2 * S);
	assert_string_equal(heard(&a), "!5"); // RS-04
	assert_non_null(strstr(a.text, "expired"));
	assert_string_equal(state_of(&f, "a"), "DOES_NOT_EXIST  with error");
	expect_silence(&f);
	respond_delta(&f, &toy_cluster, "n2", "a=1@v1", NULL);
	assert_string_equal(heard(&a), "=1");
	pass_time(&f, 100 * S);
	assert_string_equal(heard(&a), "");
	fixture_fini(&f);
}

static void each_client(void *of, void (*fn)(void *ctx, struct xds_client *), void *ctx)
{
	fn(ctx, of);
}

static size_t n_kept_as_absent(struct fixture *f)
{
	struct xds_gathered *g = xds_gather(each_client, f->client, "me", 1700000000, false);
	size_t n = 0;
	assert_non_null(g);
	for (size_t i = 0; i < g->n_parts; i++)
		n += g->list[i].n_absent;
	xds_gathered_free(g);
	return n;
}

static void ops_280_what_has_expired_is_not_kept_as_absent(void **state)
{
	struct fixture f;
	struct ear a, nosuch;
	with_a(&f, &a);
	pass_time(&f, 11 * S);
	assert_string_equal(heard(&a), "!5");
	assert_int_equal(n_kept_as_absent(&f), 0);
	listen_to(&f, &toy_cluster, "nosuch", &nosuch);
	fake_ads_settle(&f.server);
	respond_delta(&f, &toy_cluster, "n2", "-nosuch", NULL);
	assert_int_equal(n_kept_as_absent(&f), 1); // that one
	fixture_fini(&f);
}

// RS-03
static void heartbeat_of_the_same_version_keeps_the_value(void **state)
{
	struct fixture f;
	struct ear a;
	with_a(&f, &a);
	for (int i = 0; i < 5; i++) {
		pass_time(&f, 8 * S);
		say_delta(&f, "n2", &(struct beat){"a", NULL, "v1", 10}); // RS-03
		expect_delta(&f, &toy_cluster, "", "n2");
	}
	assert_string_equal(heard(&a), "");
	assert_string_equal(state_of(&f, "a"), "ACKED v1");
	pass_time(&f, 11 * S);
	assert_string_equal(heard(&a), "!5");
	fixture_fini(&f);
}

// RS-03, WA-12
static void heartbeat_of_another_version_or_of_nothing_is_invalid(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_a(&f, &a);
	say_delta(&f, "n2", &(struct beat){"a", NULL, "v2", 10}); // RS-03
	expect_delta_nack(&f, &toy_cluster, "", "n2", "holds no resource");
	assert_string_equal(heard(&a), "~3");
	listen_to(&f, &toy_cluster, "b", &b);
	expect_delta(&f, &toy_cluster, "+b", "");
	say_delta(&f, "n3", &(struct beat){"b", NULL, "v1", 10});
	expect_delta_nack(&f, &toy_cluster, "", "n3", "holds no resource");
	say_delta(&f, "n4", &(struct beat){"late", NULL, "v1", 10});
	expect_delta(&f, &toy_cluster, "", "n4"); // WA-12
	pass_time(&f, 11 * S);
	assert_string_equal(heard(&a), "!5"); // the refused one kept nothing up
	fixture_fini(&f);
}

static void each_update_arms_disarms_or_changes_the_ttl(void **state)
{
	struct fixture f;
	struct ear a;
	with_a(&f, &a);
	say_delta(&f, "n2", &(struct beat){"a", "1", "v1", 100});
	expect_delta(&f, &toy_cluster, "", "n2");
	pass_time(&f, 90 * S);
	assert_string_equal(heard(&a), "");
	say_delta(&f, "n3", &(struct beat){"a", NULL, "v1", -1}); // RS-04: without
	expect_delta(&f, &toy_cluster, "", "n3");
	pass_time(&f, 1000 * S);
	assert_string_equal(heard(&a), "");
	say_delta(&f, "n4", &(struct beat){"a", "2", "v2", 0, 500000000});
	expect_delta(&f, &toy_cluster, "", "n4");
	pass_time(&f, S);
	assert_string_equal(heard(&a), "=2 !5");
	fixture_fini(&f);
}

// WF-02
static void impossible_ttl_is_invalid_and_a_huge_one_holds(void **state)
{
	struct fixture f;
	struct ear a;
	with_a(&f, &a);
	say_delta(&f, "n2", &(struct beat){"a", "2", "v2", -2}); // WF-02
	expect_delta_nack(&f, &toy_cluster, "", "n2", "ttl is out of range");
	say_delta(&f, "n3", &(struct beat){"a", "2", "v2", 1, 1000000000});
	expect_delta_nack(&f, &toy_cluster, "", "n3", "ttl is out of range");
	say_delta(&f, "n4", &(struct beat){"a", "2", "v2", 315576000001});
	expect_delta_nack(&f, &toy_cluster, "", "n4", "ttl is out of range");
	heard(&a);
	say_delta(&f, "n5", &(struct beat){"a", "2", "v2", 315576000000});
	expect_delta(&f, &toy_cluster, "", "n5");
	pass_time(&f, 1000000 * S);
	assert_string_equal(heard(&a), "=2");
	fixture_fini(&f);
}

static void ttl_goes_on_without_a_server_and_ends_with_the_watch(void **state)
{
	struct fixture f;
	struct ear a;
	with_a(&f, &a);
	fake_ads_close(&f.server, "bye");
	pass_time(&f, 11 * S);
	assert_string_equal(heard(&a), "!5");
	expect_delta(&f, &toy_cluster, "+a a@v1", ""); // it was held when the stream began
	say_delta(&f, "n1", &(struct beat){"a", "1", "v1", 10});
	expect_delta(&f, &toy_cluster, "", "n1");
	xds_client_cancel(f.client, &a.watcher);
	fake_ads_settle(&f.server);
	heard(&a);
	pass_time(&f, 20 * S);
	assert_string_equal(heard(&a), "");
	fixture_fini(&f);
}

// RS-03
static void heartbeats_in_state_of_the_world_delete_nothing(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init(&f, "");
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	xds_client_end(f.client);
	expect_request(&f, &toy_cluster, "a b", "", "");
	const struct beat both[] = {{"a", "1", "", 10}, {"b", "1", "", -1}};
	say_sotw(&f, "v1", "n1", both, 2);
	expect_request(&f, &toy_cluster, "a b", "v1", "n1");
	assert_string_equal(heard(&a), "=1");
	assert_string_equal(heard(&b), "=1");
	const struct beat pulse = {"a", NULL, "", 10};
	pass_time(&f, 8 * S);
	say_sotw(&f, "v1", "n2", &pulse, 1); // RS-03: of the response's version
	expect_request(&f, &toy_cluster, "a b", "v1", "n2");
	assert_string_equal(heard(&b), ""); // SW-11 does not apply
	pass_time(&f, 8 * S);
	assert_string_equal(heard(&a), "");
	say_sotw(&f, "v2", "n3", &pulse, 1);
	expect_nack(&f, &toy_cluster, "a b", "v1", "n3", "holds no resource");
	pass_time(&f, 8 * S);
	assert_string_equal(heard(&a), "~3 !5");
	fixture_fini(&f);
}

// A server that says nothing again of what it is told is held (DL-13). False = there are no so many
// allocations.
static bool hold_without_memory(size_t nth)
{
	struct fixture f;
	struct ear a;
	fixture_init_delta(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	expect_delta(&f, &toy_cluster, "+a", "");
	alloc_fail_arm(nth);
	say_delta(&f, "n1", &(struct beat){"a", "1", "v1", 10});
	bool hit = alloc_fail_disarm();
	pass_time(&f, 3 * S);
	for (int i = 0; i < 2; i++) { // what is said on the stream, and on the next one
		const Envoy__Service__Discovery__V3__DeltaDiscoveryRequest *m =
			fake_ads_next_delta(&f.server);
		if (m && m->n_resource_names_subscribe && !m->n_initial_resource_versions)
			say_delta(&f, "n2", &(struct beat){"a", "1", "v1", 10});
	}
	bool has_value = strstr(heard(&a), "=1"); // not if there was none even to read it
	assert_true(has_value || hit);
	pass_time(&f, 20 * S);
	if (has_value)
		assert_string_equal(heard(&a), "!5");
	fixture_fini(&f);
	return hit;
}

static void value_does_not_outlive_its_ttl_for_want_of_memory(void **state)
{
	size_t nth = 0;
	while (hold_without_memory(nth))
		nth++;
	if (alloc_fail_works())
		assert_in_range(nth, 5, 1000);
}

RUN_SUITE("xds/ttl", cmocka_unit_test(value_is_dropped_when_its_ttl_is_over),
	cmocka_unit_test(ops_280_what_has_expired_is_not_kept_as_absent),
	cmocka_unit_test(heartbeat_of_the_same_version_keeps_the_value),
	cmocka_unit_test(heartbeat_of_another_version_or_of_nothing_is_invalid),
	cmocka_unit_test(each_update_arms_disarms_or_changes_the_ttl),
	cmocka_unit_test(impossible_ttl_is_invalid_and_a_huge_one_holds),
	cmocka_unit_test(ttl_goes_on_without_a_server_and_ends_with_the_watch),
	cmocka_unit_test(heartbeats_in_state_of_the_world_delete_nothing),
	cmocka_unit_test(value_does_not_outlive_its_ttl_for_want_of_memory))
