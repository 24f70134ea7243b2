// SPDX-License-Identifier: Apache-2.0
// What is done for requests by the hosts of their cluster, one situation a test: session affinity
// (gRFC A55, A60, A75; SA-*), authorities (A81; AR-*), and the hash (A42; HP-06).
#include "lb/cluster.h"
#include "lb/index/hash.h"
#include "lb/member/connectivity.h"
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "lb/pick/picker.h"
#include "lb/route/filter.h"
#include "lb/route/session.h"
#include "lb/snapshot.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static const struct lb_filter lane = {
	.name = {"s", 1}, .kind = LB_FILTER_SESSION, .session = {true, {"lane", 4}, {"", 0}, 60}};

static void set_filter(struct world *w, struct lb_filter f)
{
	control_set_filters(&w->control, 0, &f, 1, LB_NO_TIMEOUT, 0);
}

static const struct control_host four[] = {
	{1, "", true}, {2, "", true}, {3, "", true}, {4, "", true}};

static void set_hosts(
	struct world *w, uint32_t cluster, const struct control_host *list, uint32_t n)
{
	control_set_hosts(&w->control, cluster, HOST_BACKENDS, list, n);
}

// One client; cluster zero has backends 1 and 2, cluster one 3 and 4, all connected.
static struct world *session_world(void)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 1;
	struct world *w = world_new(&conf);
	control_set_endpoints(&w->control, 0, HOST_BACKENDS, 0x3);
	control_set_endpoints(&w->control, 1, HOST_BACKENDS, 0xc);
	set_hosts(w, 0, four, 2);
	set_hosts(w, 1, four + 2, 2);
	set_filter(w, lane);
	open_client(w);
	world_run(w, 20 * MS);
	return w;
}

// "10.0.2.1:50051,…" of these backends.
static const char *addresses(const char *backends)
{
	static char text[200];
	text[0] = '\0';
	for (const char *b = backends; *b; b++) {
		struct ip_port at = {wire_address(HOST_BACKENDS, (uint32_t)(*b - '0')), 50051};
		char one[IP_PORT_TEXT_MAX];
		sprintf(text + strlen(text), "%s%s", *text ? "," : "", ip_port_print(&at, one));
	}
	return text;
}

// The Set-Cookie for these backends.
static const char *cookie_of(const char *backends, const char *cluster)
{
	static char text[256];
	const struct lb_session_cookie c = {str_from(addresses(backends)), str_from(cluster)};
	text[lb_session_write(&lane.session, &c, text, sizeof(text) - 1)] = '\0';
	return text;
}

static struct ask *ask_as(struct world *w, const char *route, enum kind kind, const char *cookie)
{
	static char values[8][256]; // asks read theirs at once
	static uint32_t n;
	char *value = values[n++ % 8];
	struct ask *a = world_ask(w, route, kind, kind == KIND_ECHO ? 100 : 0);
	snprintf(value, 256, "%.*s", (int)strcspn(cookie, ";"), cookie);
	if (*value)
		a->extra[0] = (struct field){.name = STR("cookie"), .value = str_from(value)};
	client_ask(&w->clients[0], a);
	return a;
}

static uint32_t backend_of(const struct world *w, const struct ask *a)
{
	const struct seen *s = &w->seen[a->id];
	assert_true(s->n > 0);
	return s->attempts[s->n - 1].backend;
}

static void expect_at(struct world *w, const struct ask *a, uint32_t backend)
{
	assert_ok(w, a);
	assert_int_equal(backend_of(w, a), backend);
}

static void expect_bound_to(struct world *w, const struct ask *a, const char *cluster)
{
	char backend[2] = {(char)('0' + backend_of(w, a)), 0};
	assert_int_equal(a->n_set_cookies, 1);
	assert_string_equal(a->set_cookie, cookie_of(backend, cluster));
}

// SA-06, SA-16, SA-17
static void sa_16_first_answer_binds_and_later_ones_are_silent(void **state)
{
	struct world *w = session_world();
	uint32_t n_at[3] = {0};
	for (int i = 0; i < 10; i++) {
		struct ask *first = ask_as(w, "one", KIND_ECHO, "");
		finish(w);
		assert_ok(w, first);
		expect_bound_to(w, first, "zero");
		n_at[backend_of(w, first)]++;
		for (int j = 0; j < 5; j++) {
			struct ask *next = ask_as(w, "one", KIND_ECHO, first->set_cookie);
			finish(w);
			expect_at(w, next, backend_of(w, first));
			assert_int_equal(next->n_set_cookies, 0);
		}
	}
	assert_int_equal(n_at[1], 5); // those without a session still take turns
	assert_int_equal(n_at[2], 5);
	assert_int_equal(world_counter(w, "sessions_set"), 10);
	assert_int_equal(world_counter(w, "sessions_kept"), 50);
	world_free(w);
}

// SA-18
static void sa_18_cookie_goes_on_the_answers_first_block(void **state)
{
	struct world *w = session_world();
	w->backends[0].sets_cookies = w->backends[1].sets_cookies = true;
	static const enum kind kinds[] = {
		KIND_PLAIN, KIND_HEAD, KIND_TRAILERS_ONLY, KIND_DOWNLOAD, KIND_EARLY};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct ask *a = ask_as(w, "one", kinds[i], "");
		finish(w);
		assert_true(a->got_end);
		expect_bound_to(w, a, "zero");
		// Beside the backend's own; 103 has no cookie of ours.
		assert_int_equal(a->n_backend_cookies, kinds[i] == KIND_PLAIN ? 3 : 1);
	}
	world_free(w);
}

// SA-18: answers of our own have none.
static void sa_18_nobody_is_bound_to_nothing(void **state)
{
	struct world *w = session_world();
	struct ask *failed = ask_as(w, "down", KIND_ECHO, "");
	struct ask *reset = ask_as(w, "one", KIND_RESET, "");
	finish(w);
	assert_int_equal(failed->grpc_status, 14);
	assert_int_equal(failed->n_set_cookies, 0);
	assert_true(reset->closed);
	assert_int_equal(reset->n_set_cookies, 0);
	world_free(w);
}

// SA-09
static void sa_09_a_cookie_that_says_nothing_is_replaced(void **state)
{
	static const char *const bad[] = {
		"lane=", "lane=!!!!", "lane=AAAA", "lane=MTsx", "other=x"};
	struct world *w = session_world();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ask *a = ask_as(w, "one", KIND_ECHO, bad[i]);
		finish(w);
		assert_ok(w, a);
		expect_bound_to(w, a, "zero");
	}
	// SA-16: one without a cluster keeps its endpoint and learns the cluster.
	struct ask *old = ask_as(w, "one", KIND_ECHO, cookie_of("2", ""));
	finish(w);
	expect_at(w, old, 2);
	expect_bound_to(w, old, "zero");
	world_free(w);
}

static void sa_04_other_paths_have_no_sessions(void **state)
{
	struct world *w = session_world();
	struct lb_filter f = lane;
	f.session.path = STR("/two");
	set_filter(w, f);
	uint32_t n_at[3] = {0};
	char cookie[256];
	strcpy(cookie, cookie_of("2", "zero"));
	for (int i = 0; i < 6; i++) {
		struct ask *a = ask_as(w, "one", KIND_ECHO, cookie);
		finish(w);
		assert_ok(w, a);
		assert_int_equal(a->n_set_cookies, 0);
		n_at[backend_of(w, a)]++;
	}
	assert_int_equal(n_at[1], 3);
	struct ask *covered = ask_as(w, "two", KIND_ECHO, cookie);
	finish(w);
	expect_at(w, covered, 2);
	world_free(w);
}

static void sa_19_a_route_turns_it_off(void **state)
{
	struct world *w = session_world();
	struct lb_filter off = lane;
	off.session.enabled = false;
	const struct lb_route_policy policy = {.overrides = {&off, 1}};
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	struct ask *a = ask_as(w, "one", KIND_ECHO, "");
	finish(w);
	assert_ok(w, a);
	assert_int_equal(a->n_set_cookies, 0);
	world_free(w);
}

// SA-10, TH-78: route two draws cluster zero by 1 and one by 3.
static void sa_10_cookie_chooses_among_the_routes_clusters(void **state)
{
	struct world *w = session_world();
	for (int i = 0; i < 20; i++) {
		struct ask *a = ask_as(w, "two", KIND_ECHO, cookie_of("2", "zero"));
		struct ask *b = ask_as(w, "two", KIND_ECHO, cookie_of("3", "one"));
		struct ask *spelled = ask_as(w, "two", KIND_ECHO, cookie_of("4", "cluster:one"));
		finish(w);
		expect_at(w, a, 2);
		expect_at(w, b, 3);
		expect_at(w, spelled, 4);
		assert_int_equal(a->n_set_cookies + b->n_set_cookies + spelled->n_set_cookies, 0);
	}
	assert_int_equal(w->link->clusters[0].started, 20);
	assert_int_equal(w->link->clusters[1].started, 40);
	// Not one of route one's: its own cluster, where the addresses are tried all the same.
	struct ask *foreign = ask_as(w, "one", KIND_ECHO, cookie_of("2", "one"));
	struct ask *nowhere = ask_as(w, "one", KIND_ECHO, cookie_of("3", "one"));
	finish(w);
	expect_at(w, foreign, 2);
	expect_bound_to(w, foreign, "zero");
	assert_true(backend_of(w, nowhere) <= 2);
	expect_bound_to(w, nowhere, "zero");
	world_free(w);
}

// A75-O05: a READY one, before one that would have to be connected to. What another cluster has
// connected is nobody's here.
static void a75_o05_a_ready_endpoint_is_preferred(void **state)
{
	struct world *w = session_world();
	set_hosts(w, 0, four, 3); // 3 is of no use to cluster zero's policy
	struct ask *a = ask_as(w, "one", KIND_ECHO, cookie_of("32", "zero"));
	finish(w);
	expect_at(w, a, 2);
	a = ask_as(w, "one", KIND_ECHO, cookie_of("3", "zero"));
	finish(w);
	expect_at(w, a, 3);
	a = ask_as(w, "one", KIND_ECHO, cookie_of("32", "zero"));
	finish(w);
	expect_at(w, a, 3);
	backend_close(&w->backends[2]);
	world_run(w, 20 * MS);
	a = ask_as(w, "one", KIND_ECHO, cookie_of("32", "zero"));
	finish(w);
	expect_at(w, a, 2);
	expect_bound_to(w, a, "zero");
	world_free(w);
}

// SA-11, SA-13, SA-14: an endpoint that the picker does not have is connected to, and waited for.
static void sa_11_an_unconnected_endpoint_is_waited_for(void **state)
{
	struct world *w = session_world();
	set_hosts(w, 0, four, 3);
	control_set_endpoints(&w->control, 1, HOST_BACKENDS, 0x8);
	set_hosts(w, 1, four + 3, 1);
	world_run(w, SECOND);
	backend_abort_conns(&w->backends[2]);
	world_run(w, SECOND);
	assert_int_equal(w->backends[2].n_conns, 0);
	struct ask *connected = ask_as(w, "one", KIND_ECHO, cookie_of("32", "zero"));
	finish(w);
	expect_at(w, connected, 2);
	assert_int_equal(w->backends[2].n_conns, 0);
	struct ask *a = ask_as(w, "one", KIND_ECHO, cookie_of("3", "zero"));
	struct ask *b = ask_as(w, "one", KIND_ECHO, cookie_of("3", "zero"));
	finish(w);
	expect_at(w, a, 3);
	expect_at(w, b, 3);
	assert_int_equal(a->n_set_cookies, 0);
	assert_int_equal(w->backends[2].n_conns, 1);
	for (int i = 0; i < 6; i++) { // SA-13: and nobody else's
		struct ask *other = ask_as(w, "one", KIND_ECHO, "");
		finish(w);
		assert_true(backend_of(w, other) <= 2);
	}
	world_free(w);
}

// Cluster zero alone has backends 3 and 4, for sessions, and no connection to them.
static struct world *draining_world(void)
{
	struct world *w = session_world();
	set_hosts(w, 0, four, 4);
	control_set_endpoints(&w->control, 1, HOST_BACKENDS, 0);
	set_hosts(w, 1, NULL, 0);
	world_run(w, SECOND);
	assert_int_equal(w->backends[2].n_conns + w->backends[3].n_conns, 0);
	return w;
}

// A75-O07, A75-O08: what is being connected to is waited for, before others are connected to.
static void a75_o07_connecting_goes_before_unconnected(void **state)
{
	struct world *w = draining_world();
	struct ask *first = ask_as(w, "one", KIND_ECHO, cookie_of("4", "zero"));
	world_run(w, MS * 4 / 5); // it is there, and nothing has come back
	struct ask *second = ask_as(w, "one", KIND_ECHO, cookie_of("34", "zero"));
	finish(w);
	expect_at(w, first, 4);
	expect_at(w, second, 4);
	assert_int_equal(w->backends[2].n_accepted, 1); // of cluster one, then
	world_free(w);
}

// A75-O06: of those that nothing is tried for, the first one that had a connection.
static void a75_o06_idle_goes_before_unconnected_and_connecting(void **state)
{
	struct world *w = draining_world();
	ask_as(w, "one", KIND_ECHO, cookie_of("4", "zero"));
	finish(w);
	backend_abort_conns(&w->backends[3]);
	world_run(w, SECOND * 5 / 4); // it may be tried again (BO-02)
	assert_int_equal(w->backends[3].n_conns, 0); // nobody but sessions wants it
	ask_as(w, "one", KIND_ECHO, cookie_of("3", "zero"));
	world_run(w, MS * 4 / 5);
	struct ask *a = ask_as(w, "one", KIND_ECHO, cookie_of("34", "zero"));
	world_run(w, 20 * MS);
	finish(w);
	assert_ok(w, a);
	assert_int_equal(w->backends[2].n_conns, 1);
	assert_int_equal(w->backends[3].n_conns, 1);
	world_free(w);
}

// SA-11: what cannot be connected to is passed over, and for others as soon as that is known.
static void sa_11_a_dead_endpoint_loses_its_sessions(void **state)
{
	struct world *w = session_world();
	backend_close(&w->backends[1]);
	world_run(w, 20 * MS);
	struct ask *a = ask_as(w, "one", KIND_ECHO, cookie_of("2", "zero"));
	finish(w);
	expect_at(w, a, 1);
	expect_bound_to(w, a, "zero");
	struct ask *second = ask_as(w, "one", KIND_ECHO, cookie_of("21", "zero"));
	finish(w);
	expect_at(w, second, 1);
	world_free(w);
}

// A rolling restart: the old connection finishes its streams, and there will be no other.
static void sa_11_an_endpoint_that_only_finishes_streams_loses_its_sessions(void **state)
{
	struct world *w = session_world();
	struct ask *old = ask_as(w, "one", KIND_HANG, cookie_of("2", "zero"));
	world_run(w, 20 * MS);
	backend_goaway(&w->backends[1], true);
	backend_unlisten(&w->backends[1]);
	world_run(w, 20 * MS);
	for (int i = 0; i < 3; i++) {
		struct ask *a = ask_as(w, "one", KIND_ECHO, cookie_of("2", "zero"));
		world_run(w, 3 * SECOND);
		expect_at(w, a, 1);
	}
	assert_false(old->closed);
	client_cancel(old);
	finish(w);
	world_free(w);
}

// Released since the snapshot: nothing may bring its connections back before the next one, and the
// session waits for that (MC-05).
static void mc_05_a_released_endpoints_sessions_wait_for_the_next_snapshot(void **state)
{
	struct world *w = session_world();
	struct lb_endpoint_table *t = lb_connectivity_endpoints(w->control.connectivity);
	w->control.deaf = true;
	for (uint32_t id = 0; id < 2; id++)
		if (lb_endpoint_find(t, id)->addr.ip.b[15] == 2)
			control_command(
				&w->control, &(struct lb_command){.kind = LB_COMMAND_RELEASE,
						     .endpoint = lb_endpoint_find(t, id)});
	world_run(w, 20 * MS);
	struct ask *a = ask_as(w, "one", KIND_ECHO, cookie_of("2", "zero"));
	world_run(w, SECOND);
	assert_false(a->closed);
	assert_int_equal(w->backends[1].n_accepted, 1);
	const struct lb_route_policy none = {0};
	control_set_policy(&w->control, ROUTE_ONE, &none); // another snapshot
	world_run(w, SECOND);
	expect_at(w, a, 2);
	assert_int_equal(w->backends[1].n_accepted, 2);
	w->control.deaf = false;
	world_run(w, SECOND);
	world_free(w);
}

// SA-12
static void sa_12_endpoints_of_other_health_get_no_sessions(void **state)
{
	struct world *w = session_world();
	const struct control_host hosts[] = {{1, "", true}, {2, "", false}};
	set_hosts(w, 0, hosts, 2);
	uint32_t n_at[3] = {0};
	for (int i = 0; i < 6; i++) {
		struct ask *a = ask_as(w, "one", KIND_ECHO, cookie_of("2", "zero"));
		finish(w);
		assert_ok(w, a);
		n_at[backend_of(w, a)]++;
		assert_int_equal(a->n_set_cookies, backend_of(w, a) == 1);
	}
	assert_int_equal(n_at[1], 3);
	world_free(w);
}

// SA-06: the whole list, the address in use first.
static void sa_06_all_addresses_of_the_endpoint_are_listed(void **state)
{
	struct world *w = session_world();
	const struct control_host hosts[] = {{1, "", true, 7}, {2, "", true, 8}};
	set_hosts(w, 0, hosts, 2);
	struct ask *a = ask_as(w, "one", KIND_ECHO, "");
	finish(w);
	assert_string_equal(a->set_cookie, cookie_of(backend_of(w, a) == 1 ? "17" : "28", "zero"));
	struct ask *by_other = ask_as(w, "one", KIND_ECHO, cookie_of("8", "zero"));
	struct ask *same = ask_as(w, "one", KIND_ECHO, cookie_of("28", "zero"));
	finish(w);
	expect_at(w, by_other, 2);
	assert_string_equal(by_other->set_cookie, cookie_of("28", "zero"));
	expect_at(w, same, 2);
	assert_int_equal(same->n_set_cookies, 0);
	world_free(w);
}

static void sa_20_retries_go_where_the_session_is(void **state)
{
	struct world *w = session_world();
	const struct lb_route_policy policy = {
		.retry = {.statuses = 1u << 14, .max_attempts = 4, .base_ns = MS, .max_ns = MS}};
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	struct ask *a = world_ask(w, "one", KIND_ECHO, 5000);
	char cookie[256];
	strcpy(cookie, cookie_of("2", "zero"));
	*strchr(cookie, ';') = '\0';
	a->extra[0] = (struct field){.name = STR("cookie"), .value = str_from(cookie)};
	a->fail = "3 status 14";
	client_ask(&w->clients[0], a);
	finish(w);
	expect_at(w, a, 2);
	assert_int_equal(w->seen[a->id].n, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(w->seen[a->id].attempts[i].backend, 2);
	assert_int_equal(a->n_set_cookies, 0);
	// The answer's cookie is of the attempt that was answered.
	for (int i = 0; i < 4; i++) {
		struct ask *fresh = world_ask(w, "one", KIND_ECHO, 10);
		fresh->fail = "1 status 14";
		client_ask(&w->clients[0], fresh);
		finish(w);
		expect_bound_to(w, fresh, "zero");
	}
	world_free(w);
}

static void session_waits_for_a_stream_of_its_backend(void **state)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 1;
	conf.n_backends = 2;
	conf.backend_streams = 1;
	conf.max_conns_per_endpoint = 1;
	struct world *w = ready_world(&conf);
	set_hosts(w, 0, four, 2);
	set_filter(w, lane);
	for (int i = 0; i < 20; i++)
		ask_as(w, "one", KIND_ECHO, cookie_of("2", "zero"));
	finish(w);
	for (uint32_t i = 0; i < 20; i++)
		expect_at(w, &w->asks[i], 2);
	world_free(w);
}

static const struct control_host named[] = {{1, "one.backend:80", true}, {2, "", true}};

static void expect_authorities(struct world *w, const char *of_1, const char *of_2)
{
	for (int i = 0; i < 4; i++) {
		struct ask *a = ask(w, i % 2 ? KIND_PLAIN : KIND_ECHO, 100);
		finish(w);
		assert_string_equal(
			w->seen[a->id].attempts[0].authority, backend_of(w, a) == 1 ? of_1 : of_2);
	}
}

// AR-01
static void ar_01_authority_is_the_hosts_name_where_asked_for(void **state)
{
	struct world *w = ready_world(NULL);
	set_hosts(w, 0, named, 2);
	expect_authorities(w, "calls.test", "calls.test");
	set_filter(w, lane); // which knows the host, too
	expect_authorities(w, "calls.test", "calls.test");
	const struct lb_route_policy policy = {.auto_host_rewrite = true};
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	expect_authorities(w, "one.backend:80", "calls.test"); // AR-04
	set_hosts(w, 0, NULL, 0);
	expect_authorities(w, "calls.test", "calls.test");
	world_free(w);
}

// AR-03: of each attempt its own; a waiting request's, too.
static void ar_03_each_attempt_has_its_own_authority(void **state)
{
	struct world *w = a_world();
	struct control_leaf *zero = &w->control.leaves[0];
	memcpy(zero->hosts, named, sizeof(named));
	zero->n_hosts = 2;
	const struct lb_route_policy policy = {.auto_host_rewrite = true,
		.retry = {.statuses = 1u << 14, .max_attempts = 3, .base_ns = MS, .max_ns = MS}};
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	open_client(w);
	uint32_t n_at[3] = {0};
	for (int i = 0; i < 4; i++) {
		struct ask *a = ask_with(w, KIND_ECHO, 5000, NULL, "2 status 14");
		world_run(w, 20 * MS);
		if (i == 0)
			use_backends(w, 0x3); // the first request waited for them
		finish(w);
		assert_ok(w, a);
		const struct seen *s = &w->seen[a->id];
		assert_int_equal(s->n, 3);
		for (int j = 0; j < 3; j++) {
			assert_string_equal(s->attempts[j].authority,
				s->attempts[j].backend == 1 ? "one.backend:80" : "calls.test");
			n_at[s->attempts[j].backend]++;
		}
	}
	assert_true(n_at[1] >= 4 && n_at[2] >= 4);
	world_free(w);
}

// A picker that asks for the hash, and notes it.
static struct {
	struct lb_cell cells[2];
	uint64_t hashes[64];
	uint32_t n;
} hashed;

static const struct lb_cell *pick_hashed(const struct lb_picker *p, struct lb_pick_ctx *ctx)
{
	uint64_t hash = lb_pick_hash(ctx);
	assert_int_equal(lb_pick_hash(ctx), hash);
	hashed.hashes[hashed.n++] = hash;
	return &hashed.cells[hash & 1];
}

static void not_freed(struct lb_picker *p)
{
}

static struct lb_picker hash_picker = {1, pick_hashed, not_freed};

static struct ask *ask_user(struct world *w, const char *user, const char *fail)
{
	struct ask *a = world_ask(w, "one", KIND_ECHO, 10);
	if (user)
		a->extra[0] = (struct field){.name = STR("user"), .value = str_from(user)};
	a->fail = fail;
	client_ask(&w->clients[0], a);
	finish(w);
	assert_ok(w, a);
	return a;
}

static const struct lb_hash_policy by_user = {.kind = LB_HASH_HEADER, .header = {"user", 4}};

static void use_picker(struct world *w, struct lb_picker *picker)
{
	struct lb_cluster *c = lb_cluster_new(0, "zero", LB_READY, picker);
	assert_non_null(c);
	control_set_cluster(&w->control, c);
	lb_cluster_put(c);
}

// Two clients, the second one of the pinned frontend; the cluster's picker is the one that asks.
static struct world *hash_world(void)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = conf.n_backends = 2;
	struct world *w = ready_world(&conf);
	world_open_client(w, 1, 1);
	world_run(w, 20 * MS);
	struct lb_endpoint_table *t = lb_connectivity_endpoints(w->control.connectivity);
	hashed.n = 0;
	for (uint32_t i = 0; i < 2; i++)
		hashed.cells[i] =
			(struct lb_cell){.endpoint = lb_endpoint_find(t, i), .endpoint_id = i};
	use_picker(w, &hash_picker);
	return w;
}

// HP-06: the hash is the request's, also when a picker asks for it only in a later turn.
static void hp_06_whoever_waits_has_its_hash_when_asked(void **state)
{
	struct world *w = hash_world();
	const struct lb_route_policy policy = {.hash = &by_user, .n_hash = 1};
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	struct lb_picker *queue = lb_picker_queue();
	use_picker(w, queue);
	lb_picker_put(queue);
	struct ask *a = world_ask(w, "one", KIND_ECHO, 10);
	a->extra[0] = (struct field){.name = STR("user"), .value = STR("alice")};
	client_ask(&w->clients[0], a);
	world_run(w, 20 * MS);
	assert_false(a->closed);
	use_picker(w, &hash_picker);
	finish(w);
	assert_ok(w, a);
	struct lb_filter f = {.name = STR("f"),
		.kind = LB_FILTER_FAULT,
		.fault = {.delay = LB_DELAY_FIXED,
			.delay_ns = 20 * MS,
			.delay_numerator = 100,
			.delay_denominator = 100,
			.abort_denominator = 100,
			.max_active = 10}};
	set_filter(w, f);
	ask_user(w, "alice", NULL);
	assert_int_equal(hashed.n, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(hashed.hashes[i], UINT64_C(0x73a3ea485f2e6049));
	use_backends(w, 0x1);
	world_free(w);
}

// A28-H15: the pin chooses the virtual host; everything else sees what the client sent.
static void a28_h15_a_pinned_authority_hides_nothing(void **state)
{
	struct world *w = hash_world();
	const struct lb_hash_policy by_host = {.kind = LB_HASH_HEADER, .header = STR(":authority")};
	const struct lb_route_policy policy = {.hash = &by_host, .n_hash = 1};
	control_set_policy(&w->control, ROUTE_PINNED, &policy);
	struct ask *a = world_ask(w, "one", KIND_PLAIN, 10);
	client_ask(&w->clients[1], a);
	finish(w);
	assert_int_equal(a->http_status, 200);
	assert_int_equal(hashed.n, 1);
	assert_int_equal(hashed.hashes[0], lb_xxh64("calls.test", 10));
	use_backends(w, 0x1);
	world_free(w);
}

static void hp_06_a_request_keeps_its_hash_and_others_have_their_own(void **state)
{
	struct world *w = hash_world();
	const struct lb_route_policy policy = {.hash = &by_user,
		.n_hash = 1,
		.retry = {.statuses = 1u << 14, .max_attempts = 3, .base_ns = MS, .max_ns = MS}};
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	ask_user(w, "alice", NULL);
	ask_user(w, "alice", "2 status 14");
	for (int i = 0; i < 4; i++)
		assert_int_equal(hashed.hashes[i], UINT64_C(0x73a3ea485f2e6049)); // HP-01
	ask_user(w, NULL, "2 status 14");
	assert_int_equal(hashed.n, 7);
	assert_int_equal(hashed.hashes[4], hashed.hashes[5]);
	assert_int_equal(hashed.hashes[4], hashed.hashes[6]);
	for (int i = 0; i < 20; i++)
		ask_user(w, NULL, NULL);
	for (uint32_t i = 7; i < hashed.n; i++)
		for (uint32_t j = 3; j < i; j++)
			assert_true(hashed.hashes[i] != hashed.hashes[j]);
	use_backends(w, 0x1); // the picker's endpoints go
	world_free(w);
}

RUN_SUITE("proxy/session_cases",
	cmocka_unit_test(sa_16_first_answer_binds_and_later_ones_are_silent),
	cmocka_unit_test(sa_18_cookie_goes_on_the_answers_first_block),
	cmocka_unit_test(sa_18_nobody_is_bound_to_nothing),
	cmocka_unit_test(sa_09_a_cookie_that_says_nothing_is_replaced),
	cmocka_unit_test(sa_04_other_paths_have_no_sessions),
	cmocka_unit_test(sa_19_a_route_turns_it_off),
	cmocka_unit_test(sa_10_cookie_chooses_among_the_routes_clusters),
	cmocka_unit_test(a75_o05_a_ready_endpoint_is_preferred),
	cmocka_unit_test(sa_11_an_unconnected_endpoint_is_waited_for),
	cmocka_unit_test(a75_o07_connecting_goes_before_unconnected),
	cmocka_unit_test(a75_o06_idle_goes_before_unconnected_and_connecting),
	cmocka_unit_test(sa_11_a_dead_endpoint_loses_its_sessions),
	cmocka_unit_test(sa_11_an_endpoint_that_only_finishes_streams_loses_its_sessions),
	cmocka_unit_test(mc_05_a_released_endpoints_sessions_wait_for_the_next_snapshot),
	cmocka_unit_test(sa_12_endpoints_of_other_health_get_no_sessions),
	cmocka_unit_test(sa_06_all_addresses_of_the_endpoint_are_listed),
	cmocka_unit_test(sa_20_retries_go_where_the_session_is),
	cmocka_unit_test(session_waits_for_a_stream_of_its_backend),
	cmocka_unit_test(ar_01_authority_is_the_hosts_name_where_asked_for),
	cmocka_unit_test(ar_03_each_attempt_has_its_own_authority),
	cmocka_unit_test(hp_06_a_request_keeps_its_hash_and_others_have_their_own),
	cmocka_unit_test(hp_06_whoever_waits_has_its_hash_when_asked),
	cmocka_unit_test(a28_h15_a_pinned_authority_hides_nothing))
