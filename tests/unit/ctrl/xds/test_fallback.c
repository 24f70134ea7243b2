// SPDX-License-Identifier: Apache-2.0
// From one server of an authority to the next and back (gRFC A71, FB-*).
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/federation_fixture.h"

#include <string.h>

#define MS NS_PER_MS
#define TWO "{'xds_servers':[" ADS(0) "," ADS(1) "],'node':{'id':'me'}}"
#define THREE "{'xds_servers':[" ADS(0) "," ADS(1) "," ADS(2) "],'node':{'id':'me'}}"

// The first server has answered, and then went away for good: its next attempt has failed, too.
static void serve_and_die(struct world *w, const char *name, const char *resource)
{
	expect_request(&w->at[0], &toy_cluster, name, "", "");
	respond(&w->at[0], &toy_cluster, "1", "n1", resource, NULL);
	expect_request(&w->at[0], &toy_cluster, name, "1", "n1");
	fake_ads_close(&w->at[0].server, "bye");
	world_pass(w, 2 * S);
	fake_ads_settle(&w->at[0].server);
	w->at[0].server.n_read = w->at[0].server.n_sent; // what it asks for again
	world_refuse(w, 0);
}

static void fb_01_a_server_that_fails_with_a_name_unknown_gives_way_to_the_next(void **state)
{
	struct world w;
	struct ear x;
	world_init(&w, TWO);
	world_listen(&w, &toy_cluster, "x", &x);
	expect_request(&w.at[0], &toy_cluster, "x", "", "");
	assert_false(world_connected(&w, 1));
	world_refuse(&w, 0);
	assert_true(world_connected(&w, 1));
	expect_request(&w.at[1], &toy_cluster, "x", "", "");
	assert_string_equal(heard(&x), ""); // FB-03
	respond(&w.at[1], &toy_cluster, "7", "n1", "x=fallback", NULL);
	expect_request(&w.at[1], &toy_cluster, "x", "7", "n1");
	assert_string_equal(heard(&x), "=fallback");
	assert_string_equal(world_state(&w, "x"), "ACKED 7");
	assert_non_null(strstr(w.logged, "old-style names fall back to xDS server ads:1"));
	world_fini(&w);
}

static void fb_01_all_names_cached_need_no_other_server(void **state)
{
	struct world w;
	struct ear x, late;
	world_init(&w, TWO);
	world_listen(&w, &toy_cluster, "x", &x);
	serve_and_die(&w, "x", "x=1");
	assert_string_equal(heard(&x), "=1 ~14");
	assert_non_null(strstr(x.text, "ads:0"));
	assert_false(world_connected(&w, 1));
	world_listen(&w, &toy_cluster, "x", &late); // cached
	assert_string_equal(heard(&late), "=1 ~14");
	assert_false(world_connected(&w, 1));
	world_fini(&w);
}

static void fb_01_a_name_known_to_be_absent_needs_no_other_server(void **state)
{
	struct world w;
	struct ear x;
	world_init(&w, TWO);
	world_listen(&w, &toy_cluster, "x", &x);
	expect_request(&w.at[0], &toy_cluster, "x", "", "");
	world_pass(&w, 16 * S);
	assert_string_equal(heard(&x), "!5");
	world_refuse(&w, 0);
	assert_false(world_connected(&w, 1));
	world_fini(&w);
}

static void fb_02_the_next_server_is_asked_for_everything_from_scratch(void **state)
{
	struct world w;
	struct ear x, y, e;
	world_init(&w, TWO);
	world_listen(&w, &toy_cluster, "x", &x);
	serve_and_die(&w, "x", "x=1");
	xds_federation_begin(w.federation);
	world_listen(&w, &toy_cluster, "y", &y);
	world_listen(&w, &toy_endpoints, "e", &e);
	xds_federation_end(w.federation);
	expect_request(&w.at[1], &toy_cluster, "x y", "", "");
	expect_request(&w.at[1], &toy_endpoints, "e", "", "");
	world_fini(&w);
}

static void fb_03_watchers_hear_when_the_last_server_has_failed(void **state)
{
	struct world w;
	struct ear x;
	world_init(&w, THREE);
	world_listen(&w, &toy_cluster, "x", &x);
	world_refuse(&w, 0);
	world_refuse(&w, 1);
	assert_string_equal(heard(&x), "");
	assert_true(world_connected(&w, 2));
	world_refuse(&w, 2);
	assert_string_equal(heard(&x), "!14");
	assert_non_null(strstr(x.text, "ads:2"));
	// FM-01: once an outage.
	world_pass(&w, 2 * S);
	world_refuse(&w, 2);
	assert_string_equal(heard(&x), "");
	// Any of them may bring the end of it.
	world_pass(&w, 200 * S);
	expect_request(&w.at[1], &toy_cluster, "x", "", "");
	respond(&w.at[1], &toy_cluster, "1", "n1", "x=1", NULL);
	assert_string_equal(heard(&x), "=1");
	world_fini(&w);
}

static void fb_03_values_stay_while_all_servers_fail_and_their_trouble_ends(void **state)
{
	struct world w;
	struct ear x, y;
	world_init(&w, TWO);
	world_listen(&w, &toy_cluster, "x", &x);
	serve_and_die(&w, "x", "x=1");
	assert_string_equal(heard(&x), "=1 ~14");
	world_listen(&w, &toy_cluster, "y", &y);
	world_refuse(&w, 1);
	assert_string_equal(heard(&x), "~14"); // another server, another text
	assert_string_equal(heard(&y), "!14");
	world_pass(&w, 200 * S);
	expect_request(&w.at[1], &toy_cluster, "x y", "", "");
	respond(&w.at[1], &toy_cluster, "1", "n1", "x=1", "y=1", NULL);
	assert_string_equal(heard(&x), "~ok"); // the same content
	assert_string_equal(heard(&y), "=1");
	world_fini(&w);
}

static void fb_04_neither_timers_nor_refusals_change_the_server(void **state)
{
	struct world w;
	struct ear x, y;
	world_init(&w, TWO);
	world_listen(&w, &toy_cluster, "x", &x);
	expect_request(&w.at[0], &toy_cluster, "x", "", "");
	respond(&w.at[0], &toy_cluster, "1", "n1", "x=BAD", NULL);
	expect_nack(&w.at[0], &toy_cluster, "x", "", "n1", "BAD");
	assert_string_equal(heard(&x), "!3");
	world_listen(&w, &toy_endpoints, "y", &y);
	expect_request(&w.at[0], &toy_endpoints, "y", "", "");
	world_pass(&w, 16 * S);
	assert_string_equal(heard(&y), "!5");
	assert_false(world_connected(&w, 1));
	world_fini(&w);
}

static void fb_04_a_stream_that_had_answered_may_end(void **state)
{
	struct world w;
	struct ear x, y;
	world_init(&w, TWO);
	world_listen(&w, &toy_cluster, "x", &x);
	expect_request(&w.at[0], &toy_cluster, "x", "", "");
	respond(&w.at[0], &toy_cluster, "1", "n1", "x=1", NULL);
	world_listen(&w, &toy_endpoints, "y", &y);
	fake_ads_close(&w.at[0].server, "bye"); // FM-02
	assert_false(world_connected(&w, 1));
	assert_string_equal(heard(&x), "=1");
	assert_string_equal(heard(&y), "");
	world_fini(&w);
}

static void fb_05_a_new_name_while_the_server_fails_goes_to_the_next_at_once(void **state)
{
	struct world w;
	struct ear x, y;
	world_init(&w, TWO);
	world_listen(&w, &toy_cluster, "x", &x);
	serve_and_die(&w, "x", "x=1");
	assert_string_equal(heard(&x), "=1 ~14");
	assert_false(world_connected(&w, 1));
	world_listen(&w, &toy_cluster, "y", &y);
	assert_string_equal(heard(&y), ""); // no error while there is a server to wait for
	assert_true(world_connected(&w, 1));
	expect_request(&w.at[1], &toy_cluster, "x y", "", "");
	respond(&w.at[1], &toy_cluster, "1", "n1", "x=2", "y=2", NULL);
	assert_string_equal(heard(&x), "=2"); // FB-07
	assert_string_equal(heard(&y), "=2");
	world_fini(&w);
}

static void fb_06_the_first_answer_of_a_higher_server_makes_it_the_active_one(void **state)
{
	struct world w;
	struct ear x, y;
	world_init(&w, THREE);
	xds_federation_begin(w.federation);
	world_listen(&w, &toy_cluster, "x", &x);
	world_listen(&w, &toy_endpoints, "y", &y);
	xds_federation_end(w.federation);
	world_refuse(&w, 0);
	world_refuse(&w, 1);
	expect_request(&w.at[2], &toy_cluster, "x", "", "");
	expect_request(&w.at[2], &toy_endpoints, "y", "", "");
	respond(&w.at[2], &toy_cluster, "1", "n1", "x=c", NULL);
	respond(&w.at[2], &toy_endpoints, "1", "n2", "y=c", NULL);
	assert_string_equal(heard(&x), "=c");
	assert_string_equal(heard(&y), "=c");

	world_pass(&w, 2 * S); // both are tried again
	expect_request(&w.at[0], &toy_cluster, "x", "", "");
	expect_request(&w.at[1], &toy_cluster, "x", "", "");
	respond(&w.at[1], &toy_cluster, "5", "n1", "x=b", NULL);
	assert_string_equal(heard(&x), "=b");
	assert_string_equal(heard(&y), ""); // FB-07: not dropped, although nobody gives it now
	assert_true(world_connected(&w, 0)); // still tried
	world_pass(&w, MS);
	assert_false(world_connected(&w, 2)); // closed
	assert_non_null(strstr(w.logged, "old-style names return to xDS server ads:1"));

	fake_ads_settle(&w.at[0].server);
	respond(&w.at[0], &toy_cluster, "9", "n1", "x=a", NULL);
	assert_string_equal(heard(&x), "=a");
	world_pass(&w, MS);
	assert_false(world_connected(&w, 1));
	respond(&w.at[0], &toy_endpoints, "9", "n2", "y=a", NULL);
	assert_string_equal(heard(&y), "=a");
	world_fini(&w);
}

static void fb_06_the_server_it_returns_to_counts_only_as_it_speaks_again(void **state)
{
	struct world w;
	struct ear x, y, z;
	world_init(&w, TWO);
	xds_federation_begin(w.federation);
	world_listen(&w, &toy_endpoints, "x", &x);
	world_listen(&w, &toy_endpoints, "y", &y);
	xds_federation_end(w.federation);
	expect_request(&w.at[0], &toy_endpoints, "x y", "", "");
	respond(&w.at[0], &toy_endpoints, "1", "n1", "x=old", "y=same", NULL);
	fake_ads_settle(&w.at[0].server);
	fake_ads_close(&w.at[0].server, "bye");
	world_pass(&w, 2 * S);
	world_refuse(&w, 0);
	world_listen(&w, &toy_endpoints, "z", &z);
	fake_ads_settle(&w.at[1].server);
	respond(&w.at[1], &toy_endpoints, "1", "n1", "x=new", "y=same", "z=new", NULL);
	assert_string_equal(heard(&x), "=old ~14 =new");
	assert_string_equal(heard(&y), "=same ~14 ~ok");
	assert_string_equal(heard(&z), "=new");

	world_pass(&w, 5 * S);
	w.at[0].server.n_read = w.at[0].server.n_sent - 1;
	expect_request(&w.at[0], &toy_endpoints, "x y z", "", ""); // it is to say all of it again
	respond(&w.at[0], &toy_endpoints, "2", "n1", "z=a", NULL);
	assert_string_equal(heard(&z), "=a");
	assert_string_equal(heard(&x), ""); // what it said before it failed is out of date
	respond(&w.at[0], &toy_endpoints, "3", "n2", "x=old", NULL);
	assert_string_equal(heard(&x), "=old"); // now it is not
	assert_string_equal(heard(&y), "");
	world_pass(&w, MS);
	assert_false(world_connected(&w, 1));
	world_fini(&w);
}

static void fb_06_a_server_that_fails_again_is_left_again(void **state)
{
	static const char *const NAMES[] = {"x", "y", "z"}; // each round has one that is unknown
	static const char *const ASKED[] = {"x", "x y", "x y z"};
	struct world w;
	struct ear ears[3];
	world_init(&w, TWO);
	for (unsigned round = 0; round < 3; round++) {
		world_listen(&w, &toy_endpoints, NAMES[round], &ears[round]);
		fake_ads_settle(&w.at[0].server);
		world_refuse(&w, 0);
		expect_request(&w.at[1], &toy_endpoints, ASKED[round], "", "");
		respond(&w.at[1], &toy_endpoints, "1", "n1", "x=b", NULL);
		expect_request(&w.at[1], &toy_endpoints, ASKED[round], "1", "n1");
		assert_string_equal(heard(&ears[0]), "=b");
		world_pass(&w, 200 * S);
		fake_ads_settle(&w.at[0].server);
		respond(&w.at[0], &toy_endpoints, "1", "n1", "x=a", NULL);
		assert_string_equal(heard(&ears[0]), "=a");
		expect_request(&w.at[1], &toy_endpoints, "", "1", "n1"); // WA-08
		world_pass(&w, MS);
		assert_false(world_connected(&w, 1));
		fake_ads_close(&w.at[0].server, "bye");
		world_pass(&w, 2 * S);
	}
	world_fini(&w);
}

static void fb_07_what_the_next_server_has_not_is_kept(void **state)
{
	struct world w;
	struct ear x, y;
	world_init(&w, TWO);
	world_listen(&w, &toy_cluster, "x", &x);
	serve_and_die(&w, "x", "x=1");
	world_listen(&w, &toy_cluster, "y", &y);
	expect_request(&w.at[1], &toy_cluster, "x y", "", "");
	respond(&w.at[1], &toy_cluster, "1", "n1", "y=2", NULL);
	assert_string_equal(heard(&x), "=1 ~14 ~ok"); // the servers are well
	assert_string_equal(heard(&y), "=2");
	world_pass(&w, 16 * S); // FM-05: what is cached waits for no answer
	assert_string_equal(heard(&x), "");
	assert_string_equal(world_state(&w, "x"), "ACKED 1");
	fake_ads_settle(&w.at[1].server);
	respond(&w.at[1], &toy_cluster, "2", "n2", "x=2", "y=2", NULL);
	fake_ads_settle(&w.at[1].server);
	assert_string_equal(heard(&x), "=2");
	respond(&w.at[1], &toy_cluster, "3", "n3", "y=2", NULL); // it deletes what it has given
	assert_string_equal(heard(&x), "~5");
	world_fini(&w);
}

static void fm_05_a_value_from_the_server_before_is_not_awaited_of_one_that_fails_on_data_errors(
	void **state)
{
	struct world w;
	struct ear x, e, y;
	world_init(&w, "{'xds_servers':[" ADS(0) "," ADS_FAILS_ON_DATA_ERRORS(1) "]}");
	world_listen(&w, &toy_endpoints, "e", &e);
	fake_ads_settle(&w.at[0].server);
	respond(&w.at[0], &toy_endpoints, "1", "n1", "e=1", NULL);
	world_listen(&w, &toy_cluster, "x", &x);
	fake_ads_settle(&w.at[0].server);
	respond(&w.at[0], &toy_cluster, "1", "n2", "x=1", NULL);
	fake_ads_settle(&w.at[0].server);
	fake_ads_close(&w.at[0].server, "bye");
	world_pass(&w, 2 * S);
	world_refuse(&w, 0);
	world_listen(&w, &toy_cluster, "y", &y);
	fake_ads_settle(&w.at[1].server);
	respond(&w.at[1], &toy_cluster, "1", "n1", "x=1", "y=1", NULL);
	fake_ads_settle(&w.at[1].server);
	assert_string_equal(heard(&e), "=1 ~14 ~ok");
	world_pass(&w, 16 * S);
	assert_string_equal(heard(&e), "");
	assert_string_equal(world_state(&w, "e"), "ACKED 1");
	world_fini(&w);
}

static void de_04_the_next_server_may_take_a_value_if_it_fails_on_data_errors(void **state)
{
	struct world w;
	struct ear x, y;
	world_init(&w, "{'xds_servers':[" ADS(0) "," ADS_FAILS_ON_DATA_ERRORS(1) "]}");
	world_listen(&w, &toy_cluster, "x", &x);
	serve_and_die(&w, "x", "x=1");
	world_listen(&w, &toy_cluster, "y", &y);
	fake_ads_settle(&w.at[1].server);
	respond(&w.at[1], &toy_cluster, "1", "n1", "y=2", "x=BAD", NULL);
	assert_string_equal(heard(&x), "=1 ~14 !3");
	assert_string_equal(world_state(&w, "x"), "NACKED  with error");
	world_fini(&w);
}

static void respond_for_20_s(struct fixture *f, const char *version, const char *nonce)
{
	Envoy__Service__Discovery__V3__Resource m;
	Google__Protobuf__Any any;
	Google__Protobuf__Duration ttl;
	uint8_t bytes[512];
	envoy__service__discovery__v3__resource__init(&m);
	google__protobuf__any__init(&any);
	google__protobuf__duration__init(&ttl);
	m.name = (char[]){"x"};
	m.version = (char[]){"1"};
	any.type_url = (char[]){CLUSTER_URL};
	any.value = (ProtobufCBinaryData){3, (uint8_t[]){'x', '=', '1'}};
	m.resource = &any;
	ttl.seconds = 20;
	m.ttl = &ttl;
	struct fake_resource r = {
		.type_url = "type.googleapis.com/envoy.service.discovery.v3.Resource",
		.bytes = bytes,
		.len = envoy__service__discovery__v3__resource__pack(&m, bytes),
	};
	fake_ads_respond(&f->server, CLUSTER_URL, version, nonce, &r, 1);
	fake_ads_settle(&f->server);
}

static void rs_04_a_value_of_the_server_before_ends_with_its_ttl(void **state)
{
	struct world w;
	struct ear x, y;
	world_init(&w, TWO);
	world_listen(&w, &toy_cluster, "x", &x);
	fake_ads_settle(&w.at[0].server);
	respond_for_20_s(&w.at[0], "1", "n1");
	fake_ads_close(&w.at[0].server, "bye");
	world_pass(&w, 2 * S);
	world_refuse(&w, 0);
	world_listen(&w, &toy_cluster, "y", &y); // falls back
	fake_ads_settle(&w.at[1].server);
	respond(&w.at[1], &toy_cluster, "1", "n1", "y=1", NULL);
	assert_string_equal(heard(&x), "=1 ~14 ~ok");
	world_pass(&w, 15 * S);
	assert_string_equal(heard(&x), "");
	world_pass(&w, 5 * S);
	assert_string_equal(heard(&x), "!5");
	assert_non_null(strstr(x.text, "ads:0 has expired"));
	assert_string_equal(world_state(&w, "x"), "DOES_NOT_EXIST  with error");
	world_fini(&w);
}

static void rs_04_a_value_of_a_server_that_was_left_ends_with_its_ttl(void **state)
{
	struct world w;
	struct ear x, e;
	world_init(&w, TWO);
	world_listen(&w, &toy_cluster, "x", &x);
	world_listen(&w, &toy_endpoints, "e", &e);
	world_refuse(&w, 0);
	fake_ads_settle(&w.at[1].server);
	respond_for_20_s(&w.at[1], "1", "n1");
	world_pass(&w, 2 * S);
	fake_ads_settle(&w.at[0].server);
	respond(&w.at[0], &toy_endpoints, "1", "n1", "e=1", NULL); // it is the active one again
	assert_string_equal(heard(&x), "=1");
	world_pass(&w, 15 * S);
	assert_false(world_connected(&w, 1));
	assert_string_equal(heard(&x), "");
	world_pass(&w, 5 * S);
	assert_string_equal(heard(&x), "!5");
	assert_non_null(strstr(x.text, "ads:1 has expired"));
	assert_string_equal(world_state(&w, "x"), "DOES_NOT_EXIST  with error");
	world_fini(&w);
}

static void fb_08_other_authorities_stay_where_they_are(void **state)
{
#define A "xdstp://a/toy.Cluster/x"
	struct world w;
	struct ear x, a;
	world_init(&w, "{'xds_servers':[" ADS(0) "," ADS(
			       1) "],'authorities':{'a':{'xds_servers':[" ADS(2) "," ADS(1) "]}}}");
	world_listen(&w, &toy_cluster, "x", &x);
	world_listen(&w, &toy_cluster, A, &a);
	expect_request(&w.at[2], &toy_cluster, A, "", "");
	respond(&w.at[2], &toy_cluster, "1", "n1", A "=2", NULL);
	world_refuse(&w, 0);
	expect_request(&w.at[1], &toy_cluster, "x", "", "");
	fake_ads_close(&w.at[2].server, "bye");
	world_pass(&w, 2 * S);
	world_refuse(&w, 2);
	assert_string_equal(heard(&a), "=2 ~14"); // cached: it asks nobody else
	expect_silence(&w.at[1]);
	respond(&w.at[1], &toy_cluster, "1", "n1", "x=1", NULL);
	assert_string_equal(heard(&x), "=1");
	assert_string_equal(heard(&a), "");
	// FE-07: the second authority shares the server's stream when it comes to it.
	struct ear more;
	world_listen(&w, &toy_cluster, "xdstp://a/toy.Cluster/y", &more);
	expect_request(&w.at[1], &toy_cluster, "x", "1", "n1");
	expect_request(&w.at[1], &toy_cluster, "x " A " xdstp://a/toy.Cluster/y", "1", "n1");
	assert_int_equal(w.at[1].server.n_streams, 1);
	world_fini(&w);
}

static void wa_02_watchers_of_one_name_share_it_and_the_last_one_ends_it(void **state)
{
	struct world w;
	struct ear one, two;
	world_init(&w, TWO);
	world_listen(&w, &toy_cluster, "x", &one);
	expect_request(&w.at[0], &toy_cluster, "x", "", "");
	world_listen(&w, &toy_cluster, "x", &two);
	expect_silence(&w.at[0]);
	respond(&w.at[0], &toy_cluster, "1", "n1", "x=1", NULL);
	expect_request(&w.at[0], &toy_cluster, "x", "1", "n1");
	assert_string_equal(heard(&one), "=1");
	assert_string_equal(heard(&two), "=1");
	world_cancel(&w, &one);
	expect_silence(&w.at[0]);
	world_cancel(&w, &two);
	world_cancel(&w, &two); // WA-11
	expect_request(&w.at[0], &toy_cluster, "", "1", "n1");
	assert_string_equal(world_state(&w, "x"), "");
	world_fini(&w);
}

// A watcher that cancels another one and itself when it hears anything.
struct quitter {
	struct xds_watcher watcher; // first member
	struct world *world;
	struct xds_watcher *other;
	unsigned n;
};

static void quit(struct xds_watcher *w, const struct xds_event *event)
{
	struct quitter *q = (struct quitter *)w;
	q->n++;
	xds_federation_cancel(q->world->federation, q->other);
	xds_federation_cancel(q->world->federation, w);
}

static void wa_11_watchers_may_cancel_each_other_inside_an_event(void **state)
{
	struct world w;
	struct ear ear;
	world_init(&w, TWO);
	struct quitter q = {.watcher = {.on_event = quit}, .world = &w, .other = &ear.watcher};
	assert_int_equal(xds_federation_watch(w.federation, &toy_cluster, "x", &q.watcher), 0);
	world_listen(&w, &toy_cluster, "x", &ear);
	expect_request(&w.at[0], &toy_cluster, "x", "", "");
	respond(&w.at[0], &toy_cluster, "1", "n1", "x=1", NULL);
	assert_int_equal(q.n, 1);
	assert_string_equal(heard(&ear), "");
	assert_string_equal(world_state(&w, "x"), "");
	world_fini(&w);
}

// A watcher that starts a watch inside the first event of a kind.
struct starter {
	struct ear ear; // first member
	struct world *world;
	enum xds_event_kind kind;
	const struct xds_type *type;
	struct ear *next; // NULL = started
};

static void start_next(struct xds_watcher *w, const struct xds_event *event)
{
	struct starter *s = (struct starter *)w;
	if (event->kind != s->kind || !s->next)
		return;
	struct ear *next = s->next;
	s->next = NULL;
	world_listen(s->world, s->type, "new", next);
}

static void listen_and_start(struct world *w, struct starter *s)
{
	s->world = w;
	s->ear.watcher.on_event = start_next;
	assert_int_equal(
		xds_federation_watch(w->federation, &toy_cluster, "x", &s->ear.watcher), 0);
}

// The watch makes the authority go on to a server that is known to fail: its failure is another.
static void wa_11_the_text_of_an_event_outlives_watches_that_are_started_inside_it(void **state)
{
	struct world w;
	struct ear late, second, other;
	struct starter first = {.kind = XDS_EVENT_AMBIENT, .type = &toy_cluster, .next = &late};
	world_init(&w, "{'xds_servers':[" ADS(0) "," ADS(
			       1) "],'authorities':{'a':{'xds_servers':[" ADS(1) "]}}}");
	listen_and_start(&w, &first);
	world_listen(&w, &toy_cluster, "x", &second);
	world_listen(&w, &toy_cluster, "xdstp://a/toy.Cluster/z", &other);
	world_refuse(&w, 1);
	assert_string_equal(heard(&other), "!14");
	serve_and_die(&w, "x", "x=1");
	assert_null(first.next);
	assert_string_equal(heard(&second), "=1 ~14 ~14"); // of the first server, then the second
	assert_non_null(strstr(second.text, "ads:1"));
	assert_non_null(strstr(heard(&late), "!14"));
	assert_non_null(strstr(late.text, "ads:1"));
	world_fini(&w);
}

// The failure is told name by name, and the watch comes when it is not its name's turn yet.
static void fm_10_trouble_that_is_about_to_be_told_is_told_once(void **state)
{
	struct world w;
	struct ear second, late;
	struct starter first = {.kind = XDS_EVENT_AMBIENT, .type = &toy_cluster, .next = &late};
	world_init(&w, TWO);
	listen_and_start(&w, &first);
	world_listen(&w, &toy_cluster, "new", &second);
	fake_ads_settle(&w.at[0].server);
	respond(&w.at[0], &toy_cluster, "1", "n1", "x=1", "new=1", NULL);
	fake_ads_settle(&w.at[0].server);
	fake_ads_close(&w.at[0].server, "bye");
	world_pass(&w, 2 * S);
	world_refuse(&w, 0);
	assert_null(first.next);
	assert_string_equal(heard(&second), "=1 ~14");
	assert_string_equal(heard(&late), "=1 ~14");
	world_fini(&w);
}

struct hook {
	struct xds_settled settled; // first member
	struct ear *ear;
	unsigned n;
};

static void on_hook(struct xds_settled *settled)
{
	struct hook *h = (struct hook *)settled;
	h->n++;
	assert_string_equal(heard(h->ear), "=1");
}

static void hooks_run_after_all_events_of_a_message_inside_which_a_watch_was_started(void **state)
{
	struct world w;
	struct ear y, late;
	struct starter first = {.kind = XDS_EVENT_RESOURCE, .type = &toy_endpoints, .next = &late};
	world_init(&w, "{'xds_servers':[" ADS(0) "],'authorities':{'a':{'xds_servers':[" ADS(
			       1) "," ADS(2) "]}}}");
	xds_federation_begin(w.federation);
	listen_and_start(&w, &first);
	world_listen(&w, &toy_cluster, "y", &y);
	xds_federation_end(w.federation);
	struct hook hook = {.settled = {.fn = on_hook}, .ear = &y};
	xds_federation_add_settled(w.federation, &hook.settled);
	expect_request(&w.at[0], &toy_cluster, "x y", "", "");
	respond(&w.at[0], &toy_cluster, "1", "n1", "x=1", "y=1", NULL);
	assert_null(first.next);
	assert_int_equal(hook.n, 1);
	expect_request(&w.at[0], &toy_cluster, "x y", "1", "n1");
	expect_request(&w.at[0], &toy_endpoints, "new", "", "");
	xds_federation_remove_settled(w.federation, &hook.settled);
	world_fini(&w);
}

// With a watcher left in each: the first's end is not the second's business.
static void a_federation_of_several_fallbacks_ends_with_watches_left(void **state)
{
	struct world w;
	struct ear x, a;
	world_init(&w, "{'xds_servers':[" ADS(0) "," ADS(
			       1) "],'authorities':{'a':{'xds_servers':[" ADS(1) "," ADS(2) "]}}}");
	world_listen(&w, &toy_cluster, "x", &x);
	world_listen(&w, &toy_cluster, "xdstp://a/toy.Cluster/x", &a);
	world_refuse(&w, 0);
	fake_ads_settle(&w.at[1].server);
	respond(&w.at[1], &toy_cluster, "1", "n1", "x=1", NULL);
	size_t n_sent = w.at[1].server.n_sent;
	heard(&x);
	world_fini(&w);
	assert_string_equal(heard(&x), "");
	assert_string_equal(heard(&a), "");
	assert_int_equal(w.at[1].server.n_sent, n_sent);
}

static void fe_07_a_server_listed_twice_is_one(void **state)
{
	struct world w;
	struct ear x;
	world_init(&w, "{'xds_servers':[" ADS(0) "," ADS(0) "]}");
	world_listen(&w, &toy_cluster, "x", &x);
	world_refuse(&w, 0);
	assert_string_equal(heard(&x), "!14");
	world_fini(&w);
}

static void fb_02_servers_without_credentials_give_way_too(void **state)
{
	struct world w;
	struct ear x;
	world_init(&w, TWO);
	w.at[0].server.refuse = true;
	world_listen(&w, &toy_cluster, "x", &x);
	expect_request(&w.at[1], &toy_cluster, "x", "", "");
	assert_string_equal(heard(&x), "");
	w.at[1].server.refuse = true;
	world_refuse(&w, 1);
	assert_string_equal(heard(&x), "!14");
	world_fini(&w);
}

static void a_federation_gives_up_whole_when_there_is_no_memory(void **state)
{
	struct world w;
	world_init(&w, TWO);
	struct xds_client_conf conf = {
		.bootstrap = w.bootstrap, .wheel = w.wheel, .user_agent_version = "1"};
	struct xds_federation *f;
	ALLOC_FAIL_EACH(f = xds_federation_new(&conf), !f, xds_federation_free(f));
	world_fini(&w);
}

// Both names come from the second server although allocation number `nth` of the change to it has
// failed. False = it has fewer.
static bool fall_without_memory(size_t nth)
{
	struct world w;
	struct ear x, y;
	world_init(&w, TWO);
	world_listen(&w, &toy_cluster, "x", &x);
	world_listen(&w, &toy_cluster, "y", &y);
	alloc_fail_arm(nth);
	world_refuse(&w, 0);
	bool hit = alloc_fail_disarm();
	for (int i = 0; i < 4; i++) { // what there was no memory for is tried again
		world_pass(&w, 2 * S);
		if (world_connected(&w, 0))
			world_refuse(&w, 0);
	}
	assert_true(world_connected(&w, 1));
	fake_ads_settle(&w.at[1].server);
	const Envoy__Service__Discovery__V3__DiscoveryRequest *r = NULL, *next;
	while ((next = fake_ads_next(&w.at[1].server)))
		r = next;
	assert_non_null(r);
	assert_int_equal(r->n_resource_names, 2);
	if (*heard(&x)) // FB-03: no more than that the last server could not be reached
		assert_non_null(strstr(x.text, "ads:1"));
	if (*heard(&y))
		assert_non_null(strstr(y.text, "ads:1"));
	respond(&w.at[1], &toy_cluster, "7", "n1", "x=1", "y=2", NULL);
	assert_string_equal(heard(&x), "=1");
	assert_string_equal(heard(&y), "=2");
	world_fini(&w);
	return hit;
}

static void fb_02_a_change_without_memory_is_made_up_for(void **state)
{
	size_t nth = 0;
	if (!alloc_fail_works())
		skip();
	while (fall_without_memory(nth))
		nth++;
	assert_true(nth > 8);
}

RUN_SUITE("xds/fallback", cmocka_unit_test(a_federation_gives_up_whole_when_there_is_no_memory),
	cmocka_unit_test(fb_01_a_server_that_fails_with_a_name_unknown_gives_way_to_the_next),
	cmocka_unit_test(fb_01_all_names_cached_need_no_other_server),
	cmocka_unit_test(fb_01_a_name_known_to_be_absent_needs_no_other_server),
	cmocka_unit_test(fb_02_the_next_server_is_asked_for_everything_from_scratch),
	cmocka_unit_test(fb_02_servers_without_credentials_give_way_too),
	cmocka_unit_test(fb_02_a_change_without_memory_is_made_up_for),
	cmocka_unit_test(fb_03_watchers_hear_when_the_last_server_has_failed),
	cmocka_unit_test(fb_03_values_stay_while_all_servers_fail_and_their_trouble_ends),
	cmocka_unit_test(fb_04_neither_timers_nor_refusals_change_the_server),
	cmocka_unit_test(fb_04_a_stream_that_had_answered_may_end),
	cmocka_unit_test(fb_05_a_new_name_while_the_server_fails_goes_to_the_next_at_once),
	cmocka_unit_test(fb_06_the_first_answer_of_a_higher_server_makes_it_the_active_one),
	cmocka_unit_test(fb_06_the_server_it_returns_to_counts_only_as_it_speaks_again),
	cmocka_unit_test(fb_06_a_server_that_fails_again_is_left_again),
	cmocka_unit_test(fb_07_what_the_next_server_has_not_is_kept),
	cmocka_unit_test(
		fm_05_a_value_from_the_server_before_is_not_awaited_of_one_that_fails_on_data_errors),
	cmocka_unit_test(de_04_the_next_server_may_take_a_value_if_it_fails_on_data_errors),
	cmocka_unit_test(rs_04_a_value_of_the_server_before_ends_with_its_ttl),
	cmocka_unit_test(rs_04_a_value_of_a_server_that_was_left_ends_with_its_ttl),
	cmocka_unit_test(fb_08_other_authorities_stay_where_they_are),
	cmocka_unit_test(wa_02_watchers_of_one_name_share_it_and_the_last_one_ends_it),
	cmocka_unit_test(wa_11_watchers_may_cancel_each_other_inside_an_event),
	cmocka_unit_test(wa_11_the_text_of_an_event_outlives_watches_that_are_started_inside_it),
	cmocka_unit_test(fm_10_trouble_that_is_about_to_be_told_is_told_once),
	cmocka_unit_test(hooks_run_after_all_events_of_a_message_inside_which_a_watch_was_started),
	cmocka_unit_test(a_federation_of_several_fallbacks_ends_with_watches_left),
	cmocka_unit_test(fe_07_a_server_listed_twice_is_one))
