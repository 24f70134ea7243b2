// SPDX-License-Identifier: Apache-2.0
// Each allocation of the client is failed once, anywhere in a life with good and bad responses,
// cancelled watches and a lost stream: nothing crashes, and once there is memory again the watcher
// has the resource.
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/client_fixture.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CALLS 32

struct tight {
	struct fixture f;
	bool delta;
	unsigned victim; // number of the call in which an allocation fails
	size_t nth; // of its allocations
	unsigned n_calls;
	bool hit;
	unsigned n_said;
};

// One call into the client.
#define TIGHT(t, call)                                                                             \
	do {                                                                                       \
		bool turn = (t)->n_calls++ == (t)->victim;                                         \
		if (turn)                                                                          \
			alloc_fail_arm((t)->nth);                                                  \
		call;                                                                              \
		if (turn)                                                                          \
			(t)->hit = alloc_fail_disarm();                                            \
	} while (0)

static uint8_t *encode(
	struct tight *t, const struct xds_type *type, const char *text, size_t *ret_len)
{
	char tag[] = {'v', (char)('a' + t->n_said++), '\0'}, name[] = {text[0], '\0'};
	struct fake_resource r = {.bytes = (const uint8_t *)text, .len = strlen(text)};
	if (!t->delta)
		return fake_ads_encode(type->url, tag, tag, &r, 1, ret_len);
	const char *removed = "x";
	r.wrapper_name = name;
	r.version = tag;
	return fake_ads_encode_delta(type->url, tag, &r, 1, &removed, 1, ret_len);
}

static void say_tight(struct tight *t, const struct xds_type *type, const char *text)
{
	if (!t->f.server.stream || !t->f.server.reading)
		return;
	size_t len;
	uint8_t *bytes = encode(t, type, text, &len);
	TIGHT(t, fake_ads_say(&t->f.server, bytes, len));
	free(bytes);
}

static void watch_tight(
	struct tight *t, const struct xds_type *type, const char *name, struct ear *ear)
{
	int rc;
	prepare_ear(ear);
	TIGHT(t, rc = xds_client_watch(t->f.client, type, name, &ear->watcher));
	if (rc) {
		assert_true(t->hit);
		listen_to(&t->f, type, name, ear);
	}
}

// False = that call has no so many allocations.
static bool live_with_failure(bool delta, unsigned victim, size_t nth)
{
	struct tight t = {.victim = victim, .nth = nth, .delta = delta};
	struct ear a, b, e;
	if (delta)
		fixture_init_delta(&t.f, "");
	else
		fixture_init(&t.f, "");
	watch_tight(&t, &toy_cluster, "a", &a);
	TIGHT(&t, fake_ads_settle(&t.f.server));
	say_tight(&t, &toy_cluster, "a=1");
	watch_tight(&t, &toy_endpoints, "e", &e);
	watch_tight(&t, &toy_cluster, "b", &b);
	TIGHT(&t, fake_ads_settle(&t.f.server));
	say_tight(&t, &toy_cluster, "b=BAD");
	TIGHT(&t, fake_ads_settle(&t.f.server));
	say_tight(&t, &toy_endpoints, "no name");
	TIGHT(&t, fake_ads_settle(&t.f.server));
	TIGHT(&t, xds_client_cancel(t.f.client, &b.watcher));
	TIGHT(&t, fake_ads_settle(&t.f.server));
	TIGHT(&t, pass_time(&t.f, 16 * S));
	if (t.f.server.stream)
		TIGHT(&t, fake_ads_close(&t.f.server, "bye"));
	TIGHT(&t, pass_time(&t.f, 2 * S));
	if (t.f.server.stream)
		TIGHT(&t, fake_ads_close(&t.f.server, "refused"));

	pass_time(&t.f, 200 * S);
	fake_ads_settle(&t.f.server);
	assert_non_null(t.f.server.stream);
	heard(&a);
	size_t len;
	uint8_t *last = encode(&t, &toy_cluster, "a=2", &len);
	fake_ads_say(&t.f.server, last, len);
	free(last);
	fake_ads_settle(&t.f.server);
	assert_non_null(strstr(heard(&a), "=2"));
	assert_string_equal(state_of(&t.f, "b"), "");
	fixture_fini(&t.f);
	assert_true(t.n_calls < MAX_CALLS);
	return t.hit;
}

static void fail_each(bool delta)
{
	if (!alloc_fail_works())
		skip();
	size_t n_failed = 0;
	for (unsigned victim = 0; victim < MAX_CALLS; victim++)
		for (size_t nth = 0; live_with_failure(delta, victim, nth); nth++)
			n_failed++;
	assert_in_range(n_failed, 50, 10000);
}

static void each_allocation_may_fail(void **state)
{
	fail_each(false);
}

static void each_allocation_may_fail_in_delta(void **state)
{
	fail_each(true);
}

#define OTHER "xdstp://a/toy.Other/x"

// One good resource, and one whose name alone is bad (FE-02). False = there are no so many
// allocations.
static bool respond_without_memory(size_t nth)
{
	struct fixture f;
	struct ear a, other;
	struct xds_server_info info;
	size_t len;
	const struct fake_resource r[] = {
		{.bytes = (const uint8_t *)"a=1", .len = 3},
		{.bytes = (const uint8_t *)"x=1", .len = 3, .wrapper_name = OTHER},
	};
	fixture_init(&f, "");
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, OTHER, &other);
	fake_ads_settle(&f.server);
	uint8_t *bytes = fake_ads_encode(toy_cluster.url, "v1", "n1", r, 2, &len);
	alloc_fail_arm(nth);
	fake_ads_say(&f.server, bytes, len);
	bool hit = alloc_fail_disarm();
	free(bytes);
	assert_null(strstr(heard(&other), "="));
	// All or nothing is applied, and so is it counted: it comes again.
	bool is_applied = strcmp(heard(&a), "=1") == 0;
	xds_client_server(f.client, &info);
	assert_int_equal(info.updates[0].n_valid, is_applied);
	assert_int_equal(info.updates[0].n_invalid, is_applied);
	assert_true(hit || is_applied);
	fixture_fini(&f);
	return hit;
}

static void response_counts_whole_or_not_at_all(void **state)
{
	if (!alloc_fail_works())
		skip();
	size_t nth = 0;
	while (respond_without_memory(nth))
		nth++;
	assert_in_range(nth, 10, 1000);
}

RUN_SUITE("xds/memory", cmocka_unit_test(each_allocation_may_fail),
	cmocka_unit_test(each_allocation_may_fail_in_delta),
	cmocka_unit_test(response_counts_whole_or_not_at_all))
