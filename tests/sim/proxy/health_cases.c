// SPDX-License-Identifier: Apache-2.0
// Health checks from the control thread's timers to the backends and back.
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <string.h>

#define CASE(f) cmocka_unit_test(f)

#define ID "1000" // of no request

static void set_check(struct world *w, struct lb_check *c)
{
	w->control.leaves[0].check = c;
	control_update(&w->control, 0);
	lb_check_put(c);
	w->control.leaves[0].check = NULL; // the leaf's own from here on
}

static struct world *checking_world(enum lb_check_kind kind, const char *path)
{
	struct world_conf conf = world_conf_default(5);
	conf.n_clients = 1;
	conf.n_backends = 2;
	struct world *w = world_new(&conf);
	w->control.leaves[0].check = a_check(kind, path);
	use_backends(w, 0x3);
	lb_check_put(w->control.leaves[0].check);
	w->control.leaves[0].check = NULL;
	open_client(w);
	return w;
}

static struct lb_health_record record_of(struct world *w, uint32_t backend)
{
	struct lb_leaf_record r;
	struct ip_port a = {w->backends[backend].address, 50051};
	const struct lb_leaf *leaf = w->control.leaves[0].leaf;
	const struct lb_member *m = lb_leaf_member(leaf, &a, 1);
	assert_non_null(m);
	lb_leaf_look(leaf, m, &r);
	return r.health;
}

static void assert_health(
	struct world *w, uint32_t backend, enum lb_member_health health, const char *why)
{
	struct lb_health_record r = record_of(w, backend);
	assert_int_equal(r.health, health);
	assert_string_equal(r.why, why);
}

static struct lb_health_counts counts_of(struct world *w)
{
	return w->control.leaves[0].counts.checks;
}

// That the worker has for checks.
static uint32_t n_connections(const struct world *w)
{
	struct pool_list pools = {0};
	proxy_list_pools(w->proxy, &pools);
	for (uint32_t i = 0; i < pools.n; i++)
		if (strcmp(pools.views[i].name, "health_checks") == 0)
			return *pools.views[i].n_used;
	return UINT32_MAX;
}

// Checks that are under way would count as streams and connections that are left.
static void end(struct world *w)
{
	control_update(&w->control, 0);
	world_run(w, 2 * SECOND);
	assert_int_equal(n_connections(w), 0);
	world_free(w);
}

static void requests_wait_for_the_first_check_and_connections_are_kept(void **state)
{
	struct world *w = checking_world(LB_CHECK_HTTP, "/check/plain/" ID "/100");
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_ok(w, a);
	world_run(w, 10 * SECOND);
	assert_health(w, 0, LB_MEMBER_SERVES, "");
	struct lb_health_counts n = counts_of(w);
	assert_in_range(n.passed, 18, 24);
	assert_int_equal(n.failed, 0);
	assert_int_equal(w->backends[0].n_accepted, 2); // one for requests, one for checks
	assert_int_equal(w->backends[1].n_accepted, 2);
	end(w);
}

static void an_answer_that_is_none_of_the_expected_is_told(void **state)
{
	struct world *w = checking_world(LB_CHECK_GRPC, "/check/trailersonly/" ID "/0");
	world_run(w, SECOND);
	assert_health(w, 0, LB_MEMBER_UNHEALTHY, "grpc-status 5");
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_reply(a, 14); // there is no panic
	end(w);
}

static void a_stream_that_is_reset_counts_as_one_that_failed(void **state)
{
	struct world *w = checking_world(LB_CHECK_HTTP, "/check/reset/" ID "/2");
	world_run(w, SECOND / 2);
	assert_health(w, 0, LB_MEMBER_UNHEALTHY, "stream reset");
	assert_int_equal(counts_of(w).network_failures, 2);
	end(w);
}

static void a_check_that_hangs_ends_in_time(void **state)
{
	struct world *w = checking_world(LB_CHECK_HTTP, "/check/hang/" ID "/0");
	world_run(w, 400 * MS);
	assert_health(w, 0, LB_MEMBER_UNCHECKED, "");
	world_run(w, 200 * MS);
	assert_health(w, 0, LB_MEMBER_UNHEALTHY, "timeout");
	end(w);
}

// AHC-02: what becomes of a connection between two checks says nothing of the endpoint.
static void a_kept_connection_that_is_lost_is_made_again(void **state)
{
	struct world *w = checking_world(LB_CHECK_HTTP, "/check/plain/" ID "/100");
	for (int i = 0; i < 10; i++) {
		world_run(w, 700 * MS);
		if (i % 2)
			backend_abort_conns(&w->backends[0]);
		else
			backend_goaway(&w->backends[0], i % 4 == 0);
	}
	world_run(w, 2 * SECOND);
	assert_health(w, 0, LB_MEMBER_SERVES, "");
	assert_int_equal(counts_of(w).failed, 0);
	assert_true(w->backends[0].n_accepted > 6);
	end(w);
}

// Some backends take so many requests a connection, and say GOAWAY with the last.
static void backends_that_leave_after_each_answer_are_healthy(void **state)
{
	struct world *w = checking_world(LB_CHECK_HTTP, "/check/plain/" ID "/100");
	w->backends[0].leaves_after = 1;
	w->backends[1].leaves_after = 2;
	world_run(w, 10 * SECOND);
	assert_int_equal(counts_of(w).failed, 0);
	assert_true(counts_of(w).passed >= 18);
	end(w);
}

static void a_port_that_closes_and_opens_is_followed(void **state)
{
	struct world *w = checking_world(LB_CHECK_TCP, "");
	world_run(w, 3 * SECOND);
	assert_health(w, 0, LB_MEMBER_SERVES, "");
	backend_close(&w->backends[0]);
	world_run(w, 3 * SECOND);
	assert_health(w, 0, LB_MEMBER_UNHEALTHY, "connection refused");
	assert_health(w, 1, LB_MEMBER_SERVES, "");
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_ok(w, a);
	assert_int_equal(w->seen[a->id].attempts[0].backend, 2);
	end(w);
}

// The preface of HTTP/2 draws SETTINGS, of which a block of zeros is part.
static void bytes_that_come_are_looked_for(void **state)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
	static const struct str found[] = {{"\4\0\0\0\0\0", 6}}, missing[] = {{"+PONG", 5}};
	struct lb_check *c = a_check(LB_CHECK_TCP, "");
	struct world *w = ready_world(NULL);
	c->body = (struct str){preface, sizeof(preface) - 1};
	c->receive = found;
	c->n_receive = 1;
	set_check(w, c);
	world_run(w, 5 * SECOND);
	assert_int_equal(counts_of(w).failed, 0);
	assert_true(counts_of(w).passed >= 8);
	end(w);

	c = a_check(LB_CHECK_TCP, "");
	w = ready_world(NULL);
	c->receive = missing;
	c->n_receive = 1;
	set_check(w, c);
	world_run(w, 4 * SECOND);
	assert_health(w, 0, LB_MEMBER_UNHEALTHY, "timeout");
	end(w);
}

// AHC-06: checks that come to a cluster that serves disturb nothing, nor does their end.
static void checks_may_come_and_go_under_load(void **state)
{
	struct world *w = ready_world(NULL);
	for (int i = 0; i < 20; i++) {
		struct ask *a = ask(w, KIND_ECHO, 1000), *b = ask(w, KIND_DOWNLOAD, 1000);
		if (i % 4 == 1)
			set_check(w, a_check(LB_CHECK_HTTP, "/check/plain/" ID "/5"));
		if (i % 4 == 3)
			control_update(&w->control, 0);
		world_run(w, (uint64_t)i * 30 * MS);
		finish(w);
		assert_ok(w, a);
		assert_ok(w, b);
	}
	end(w);
}

RUN_SUITE("sim/proxy_health", CASE(requests_wait_for_the_first_check_and_connections_are_kept),
	CASE(an_answer_that_is_none_of_the_expected_is_told),
	CASE(a_stream_that_is_reset_counts_as_one_that_failed),
	CASE(a_check_that_hangs_ends_in_time), CASE(a_kept_connection_that_is_lost_is_made_again),
	CASE(backends_that_leave_after_each_answer_are_healthy),
	CASE(a_port_that_closes_and_opens_is_followed), CASE(bytes_that_come_are_looked_for),
	CASE(checks_may_come_and_go_under_load))
