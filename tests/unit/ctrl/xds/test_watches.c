// SPDX-License-Identifier: Apache-2.0
// Who is told what: the watch rules (WA-*).
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/client_fixture.h"

#include <string.h>
// A client that has cluster a=1, and has sent its ACK.
static void with_a(struct fixture *f, struct ear *a)
{
	fixture_init(f, "");
	listen_to(f, &toy_cluster, "a", a);
	expect_request(f, &toy_cluster, "a", "", "");
	respond(f, &toy_cluster, "v1", "n1", "a=1", NULL);
	expect_request(f, &toy_cluster, "a", "v1", "n1");
	heard(a);
}

// WA-01
static void second_watcher_gets_the_cached_value_and_sends_nothing(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_a(&f, &a);
	listen_to(&f, &toy_cluster, "a", &b);
	assert_string_equal(heard(&b), "=1"); // WA-02
	assert_string_equal(heard(&a), "");
	expect_silence(&f); // WA-01
	fixture_fini(&f);
}

// WA-03
static void late_watcher_hears_the_error_too(void **state)
{
	struct fixture f;
	struct ear a, b, c;
	with_a(&f, &a);
	respond(&f, &toy_cluster, "v2", "n2", "a=BAD", NULL);
	listen_to(&f, &toy_cluster, "a", &b);
	assert_string_equal(heard(&b), "=1 ~3"); // WA-03: value first, then its trouble
	listen_to(&f, &toy_cluster, "c", &c);
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v3", "n3", "a=1", "c=BAD", NULL);
	struct ear d;
	listen_to(&f, &toy_cluster, "c", &d);
	assert_string_equal(heard(&d), "!3"); // WA-03: only an error
	fixture_fini(&f);
}

// WA-04, WA-05, WA-10
static void new_name_is_appended_and_unchanged_resources_tell_nobody(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_a(&f, &a);
	listen_to(&f, &toy_cluster, "b", &b);
	expect_request(&f, &toy_cluster, "a b", "v1", "n1"); // WA-04
	respond(&f, &toy_cluster, "v1", "n2", "a=1", "b=1", NULL);
	expect_request(&f, &toy_cluster, "a b", "v1", "n2");
	assert_string_equal(heard(&a), ""); // WA-05
	assert_string_equal(heard(&b), "=1");
	respond(&f, &toy_cluster, "v2", "n3", "a=1", "b=2", NULL);
	assert_string_equal(heard(&a), ""); // WA-10
	assert_string_equal(heard(&b), "=2");
	fixture_fini(&f);
}

// WA-06
static void cancel_with_others_left_sends_nothing_and_keeps_the_cache(void **state)
{
	struct fixture f;
	struct ear a, b, c;
	with_a(&f, &a);
	listen_to(&f, &toy_cluster, "a", &b);
	xds_client_cancel(f.client, &a.watcher);
	expect_silence(&f); // WA-06
	listen_to(&f, &toy_cluster, "a", &c);
	assert_string_equal(heard(&c), "=1");
	fixture_fini(&f);
}

// WA-07, WA-12, WA-09
static void last_cancel_of_a_name_unsubscribes_and_forgets(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_a(&f, &a);
	listen_to(&f, &toy_cluster, "b", &b);
	expect_request(&f, &toy_cluster, "a b", "v1", "n1");
	xds_client_cancel(f.client, &a.watcher);
	expect_request(&f, &toy_cluster, "b", "v1", "n1"); // WA-07
	assert_string_equal(state_of(&f, "a"), "");
	// WA-12: it comes late, is dropped, and the response is ACKed
	respond(&f, &toy_cluster, "v2", "n2", "a=2", "b=2", NULL);
	expect_request(&f, &toy_cluster, "b", "v2", "n2");
	assert_string_equal(heard(&a), "");
	listen_to(&f, &toy_cluster, "a", &a); // WA-09
	assert_string_equal(heard(&a), "");
	expect_request(&f, &toy_cluster, "b a", "v2", "n2");
	pass_time(&f, 16 * S);
	assert_string_equal(heard(&a), "!5");
	fixture_fini(&f);
}

// WA-08, SW-06
static void last_name_of_a_type_leaves_an_empty_list(void **state)
{
	struct fixture f;
	struct ear a;
	with_a(&f, &a);
	xds_client_cancel(f.client, &a.watcher);
	expect_request(&f, &toy_cluster, "", "v1", "n1"); // WA-08
	xds_client_cancel(f.client, &a.watcher); // WA-11: twice is fine
	expect_silence(&f);
	listen_to(&f, &toy_cluster, "a", &a);
	expect_request(&f, &toy_cluster, "a", "v1", "n1"); // SW-06: the nonce stays
	fixture_fini(&f);
}

// WA-13
static void rewatch_before_the_server_knows_keeps_the_value(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_a(&f, &a);
	listen_to(&f, &toy_endpoints, "e", &b); // a send is under way
	assert_true(f.server.sending);
	xds_client_cancel(f.client, &a.watcher);
	listen_to(&f, &toy_cluster, "a", &a); // WA-13
	assert_string_equal(heard(&a), "=1");
	expect_request(&f, &toy_endpoints, "e", "", "");
	expect_silence(&f); // the list is as the server knows it
	fixture_fini(&f);
}

static void cancel_and_watch_in_one_go_is_one_request(void **state)
{
	struct fixture f;
	struct ear a, b;
	with_a(&f, &a);
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "b", &b);
	xds_client_cancel(f.client, &a.watcher);
	xds_client_end(f.client);
	expect_request(&f, &toy_cluster, "b", "v1", "n1");
	expect_silence(&f);
	fixture_fini(&f);
}

// A watcher that meddles with the client while it is told.
struct meddler {
	struct ear ear; // first member
	struct fixture *f;
	struct ear *victim; // to be cancelled
	struct ear *friend; // to be started on the same name
	void (*on_event)(struct xds_watcher *, const struct xds_event *);
};

static void meddle(struct xds_watcher *w, const struct xds_event *e)
{
	struct meddler *m = (struct meddler *)w;
	m->on_event(w, e);
	if (m->victim)
		xds_client_cancel(m->f->client, &m->victim->watcher);
	if (m->friend)
		listen_to(m->f, &toy_cluster, "a", m->friend);
	m->friend = NULL;
}

static void start_meddling(struct meddler *m, struct fixture *f)
{
	listen_to(f, &toy_cluster, "a", &m->ear);
	m->f = f;
	m->on_event = m->ear.watcher.on_event;
	m->ear.watcher.on_event = meddle;
}

static void watcher_cancelled_inside_an_event_hears_no_more(void **state)
{
	struct fixture f;
	struct meddler m = {0};
	struct ear a, b;
	fixture_init(&f, "");
	start_meddling(&m, &f);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "a", &b);
	fake_ads_settle(&f.server);
	m.victim = &a;
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL); // WA-11
	assert_string_equal(heard(&m.ear), "=1");
	assert_string_equal(heard(&a), "");
	assert_string_equal(heard(&b), "=1");
	fixture_fini(&f);
}

static void watcher_may_cancel_itself_as_the_last_one(void **state)
{
	struct fixture f;
	struct meddler m = {0};
	fixture_init(&f, "");
	start_meddling(&m, &f);
	m.victim = &m.ear;
	fake_ads_settle(&f.server);
	f.server.n_read = f.server.n_sent;
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	expect_request(&f, &toy_cluster, "", "v1", "n1");
	assert_string_equal(heard(&m.ear), "=1");
	// The same with no stream: the entry goes at once.
	start_meddling(&m, &f);
	m.victim = &m.ear;
	fake_ads_settle(&f.server);
	fake_ads_close(&f.server, "bye");
	pass_time(&f, 2 * S);
	fake_ads_close(&f.server, "refused");
	assert_string_equal(heard(&m.ear), "!14");
	assert_string_equal(state_of(&f, "a"), "");
	fixture_fini(&f);
}

static void watcher_started_inside_an_event_hears_the_value_once(void **state)
{
	struct fixture f;
	struct meddler m = {0};
	struct ear a, b;
	fixture_init(&f, "");
	start_meddling(&m, &f);
	listen_to(&f, &toy_cluster, "a", &a);
	m.friend = &b;
	fake_ads_settle(&f.server);
	respond(&f, &toy_cluster, "v1", "n1", "a=1", NULL);
	assert_string_equal(heard(&a), "=1");
	assert_string_equal(heard(&b), "=1");
	fixture_fini(&f);
}

struct counting_hook {
	struct xds_settled settled; // first member
	struct fixture *f;
	struct xds_settled *victim;
	unsigned n;
};

static void count(struct xds_settled *s)
{
	struct counting_hook *h = (struct counting_hook *)s;
	h->n++;
	if (h->victim)
		xds_client_remove_settled(h->f->client, h->victim);
}

static void hooks_run_once_a_response_and_may_be_removed_by_each_other(void **state)
{
	struct fixture f;
	struct ear a, b;
	fixture_init(&f, "");
	struct counting_hook one = {.settled.fn = count}, two = {.settled.fn = count, .f = &f};
	xds_client_add_settled(f.client, &one.settled);
	xds_client_add_settled(f.client, &two.settled); // runs first
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "a", &a);
	listen_to(&f, &toy_cluster, "b", &b);
	xds_client_end(f.client);
	fake_ads_settle(&f.server);
	assert_int_equal(one.n, 0); // nobody was told anything
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=1", NULL);
	fake_ads_settle(&f.server);
	assert_int_equal(one.n, 1);
	assert_int_equal(two.n, 1);
	two.victim = &one.settled;
	respond(&f, &toy_cluster, "v2", "n2", "a=2", "b=2", NULL);
	assert_int_equal(one.n, 1);
	assert_int_equal(two.n, 2);
	fixture_fini(&f);
}

// FM-04: it is asked as by one that has nothing.
static void forgotten_resource_that_does_not_come_again_does_not_exist(void **state)
{
	struct fixture f;
	struct ear e;
	fixture_init(&f, "");
	listen_to(&f, &toy_endpoints, "e", &e);
	expect_request(&f, &toy_endpoints, "e", "", "");
	respond(&f, &toy_endpoints, "v1", "n1", "e=1", NULL);
	expect_request(&f, &toy_endpoints, "e", "v1", "n1");
	assert_string_equal(heard(&e), "=1");
	xds_client_forget(f.client, &e.watcher);
	expect_request(&f, &toy_endpoints, "e", "", "n1");
	assert_string_equal(state_of(&f, "e"), "REQUESTED ");
	pass_time(&f, 16 * S);
	assert_string_equal(heard(&e), "!5");
	fixture_fini(&f);
}

struct wildcard {
	struct xds_watcher watcher; // first member
	unsigned n_names, n_values, n_errors;
};

static int on_name(struct xds_watcher *w, const char *name)
{
	((struct wildcard *)w)->n_names++;
	return 0;
}

static void on_any(struct xds_watcher *w, const struct xds_event *event)
{
	struct wildcard *all = (struct wildcard *)w;
	all->n_values += event->kind == XDS_EVENT_RESOURCE && event->res;
	all->n_errors += event->kind != XDS_EVENT_RESOURCE;
}

// SW-09: a resource of that name would be the value of all of them.
static void resource_that_is_named_as_the_wildcard_is_refused(void **state)
{
	struct fixture f;
	struct ear a;
	struct wildcard all = {.watcher = {.on_event = on_any, .on_name = on_name}};
	fixture_init(&f, "");
	xds_client_begin(f.client);
	listen_to(&f, &toy_cluster, "a", &a);
	assert_int_equal(xds_client_watch(f.client, &toy_cluster, "*", &all.watcher), 0);
	xds_client_end(f.client);
	expect_request(&f, &toy_cluster, "a *", "", "");
	respond(&f, &toy_cluster, "v1", "n1", "a=1", "b=1", NULL);
	expect_request(&f, &toy_cluster, "a *", "v1", "n1");
	assert_int_equal(all.n_names, 2);
	respond(&f, &toy_cluster, "v2", "n2", "*=1", NULL);
	expect_nack(&f, &toy_cluster, "a *", "v1", "n2", "resource 0: is named \"*\"");
	assert_int_equal(all.n_names, 2);
	assert_int_equal(all.n_values, 0);
	assert_int_equal(all.n_errors, 0);
	assert_string_equal(heard(&a), "=1 ~5"); // nor does it stand for one that is missing
	fixture_fini(&f);
}

RUN_SUITE("xds/watches", cmocka_unit_test(second_watcher_gets_the_cached_value_and_sends_nothing),
	cmocka_unit_test(late_watcher_hears_the_error_too),
	cmocka_unit_test(new_name_is_appended_and_unchanged_resources_tell_nobody),
	cmocka_unit_test(cancel_with_others_left_sends_nothing_and_keeps_the_cache),
	cmocka_unit_test(last_cancel_of_a_name_unsubscribes_and_forgets),
	cmocka_unit_test(last_name_of_a_type_leaves_an_empty_list),
	cmocka_unit_test(rewatch_before_the_server_knows_keeps_the_value),
	cmocka_unit_test(cancel_and_watch_in_one_go_is_one_request),
	cmocka_unit_test(watcher_cancelled_inside_an_event_hears_no_more),
	cmocka_unit_test(watcher_may_cancel_itself_as_the_last_one),
	cmocka_unit_test(watcher_started_inside_an_event_hears_the_value_once),
	cmocka_unit_test(forgotten_resource_that_does_not_come_again_does_not_exist),
	cmocka_unit_test(resource_that_is_named_as_the_wildcard_is_refused),
	cmocka_unit_test(hooks_run_once_a_response_and_may_be_removed_by_each_other))
