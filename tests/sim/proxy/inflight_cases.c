// SPDX-License-Identifier: Apache-2.0
// What a worker tells of the requests and connections that it has, one situation a test.
#include "dataplane/proxy/proxy.h"
#include "lb/pick/inflight.h"
#include "lb/pick/link.h"
#include "lb/route/filter.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct lb_command look_command = {.kind = LB_COMMAND_INFLIGHT};

static struct lb_inflight_query all(enum lb_inflight_kind kind)
{
	return (struct lb_inflight_query){.kind = kind,
		.limit = LB_INFLIGHT_ROWS,
		.before_ns = UINT64_MAX,
		.states = UINT32_MAX,
		.frontend = LB_INFLIGHT_ANY,
		.cluster = LB_INFLIGHT_ANY};
}

static int by_age(const void *a, const void *b)
{
	uint64_t x = ((const struct lb_inflight_row *)a)->began_ns;
	uint64_t y = ((const struct lb_inflight_row *)b)->began_ns;
	return (x > y) - (x < y);
}

// The rows, the oldest first.
static const struct lb_inflight *ask_with_query(
	struct world *w, const struct lb_inflight_query *query)
{
	struct lb_inflight *f = w->link->inflight;
	lb_inflight_ask(f, query);
	control_command(&w->control, &look_command);
	for (int ms = 0; !lb_inflight_is_free(f); ms++) {
		assert_true(ms < 1000);
		world_run(w, MS);
	}
	qsort(f->rows, f->n_rows, sizeof(f->rows[0]), by_age);
	return f;
}

static const struct lb_inflight *look(struct world *w, enum lb_inflight_kind kind)
{
	const struct lb_inflight_query query = all(kind);
	return ask_with_query(w, &query);
}

static const struct lb_inflight_row *the_request(struct world *w)
{
	const struct lb_inflight *f = look(w, LB_INFLIGHT_REQUESTS);
	assert_int_equal(f->n_all, 1);
	assert_int_equal(f->n_matching, 1);
	assert_int_equal(f->n_rows, 1);
	return &f->rows[0];
}

static void assert_state(struct world *w, enum lb_request_state state)
{
	assert_string_equal(lb_inflight_state_name(LB_INFLIGHT_REQUESTS, the_request(w)->state),
		lb_inflight_state_name(LB_INFLIGHT_REQUESTS, state));
}

static void assert_path(const struct lb_inflight_request *r, const struct ask *of)
{
	char end[32];
	int len = snprintf(end, sizeof(end), "/%u/%u", of->id, of->size);
	assert_true(strlen(r->path) > (size_t)len);
	assert_string_equal(r->path + strlen(r->path) - (size_t)len, end);
}

static void ops_60_a_request_is_told_with_where_it_came_from_and_went(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = world_ask(w, "one", KIND_HANG, 3000);
	a->extra[0] = (struct field){.name = STR("x-request-id"), .value = STR("my-id")};
	uint64_t began_ns = w->wire.now_ns;
	client_ask(&w->clients[0], a);
	world_run(w, SECOND);
	const struct lb_inflight_row *row = the_request(w);
	assert_in_range(row->began_ns, began_ns, began_ns + 20 * MS);
	assert_int_equal(row->state, LB_REQUEST_sent);
	assert_int_equal(row->bytes_in, 3000);
	assert_int_equal(row->bytes_out, 0);
	assert_int_equal(row->frontend, 0);
	assert_int_equal(row->peer.ip.b[14], HOST_CLIENTS);
	assert_int_not_equal(row->peer.port, 0);
	const struct lb_inflight_request *r = &row->request;
	assert_string_equal(r->id, "my-id");
	assert_string_equal(r->method, "POST");
	assert_string_equal(r->authority, "calls.test");
	assert_path(r, a);
	assert_string_equal(r->vhost, "any");
	assert_string_equal(r->route, "first");
	assert_int_equal(r->route_index, 7);
	assert_string_equal(r->cluster, "zero");
	assert_int_equal(r->n_attempts, 1);
	assert_true(r->has_endpoint);
	assert_int_equal(r->endpoint.ip.b[14], HOST_BACKENDS);
	assert_int_equal(r->endpoint.ip.b[15], w->seen[a->id].attempts[0].backend);
	client_cancel(a);
	world_run(w, 100 * MS);
	assert_int_equal(look(w, LB_INFLIGHT_REQUESTS)->n_all, 0);
	world_free(w);
}

static void ops_60_one_that_waits_for_a_pick_has_no_endpoint(void **state)
{
	struct world *w = a_world();
	open_client(w);
	struct ask *a = ask(w, KIND_ECHO, 10);
	world_run(w, SECOND);
	const struct lb_inflight_row *row = the_request(w);
	assert_int_equal(row->state, LB_REQUEST_picking);
	assert_string_equal(row->request.cluster, "zero");
	assert_path(&row->request, a);
	assert_false(row->request.has_endpoint);
	assert_int_equal(row->request.n_attempts, 0);
	use_backends(w, 1);
	finish(w);
	world_free(w);
}

static void ops_60_one_that_waits_for_a_time_is_paused(void **state)
{
	static const struct lb_route_policy retries = {.retry = {.statuses = 1u << 14,
							       .max_attempts = 4,
							       .base_ns = 5 * SECOND,
							       .max_ns = 5 * SECOND}};
	struct world *w = ready_world(NULL);
	control_set_policy(&w->control, ROUTE_ONE, &retries);
	ask_with(w, KIND_ECHO, 10, NULL, "1 status 14");
	world_run(w, 100 * MS);
	const struct lb_inflight_row *row = the_request(w);
	assert_int_equal(row->state, LB_REQUEST_paused);
	assert_int_equal(row->request.n_attempts, 1);
	finish(w);
	world_free(w);
}

static void ops_60_one_that_waits_for_a_stream_is_queued(void **state)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 1;
	conf.n_backends = 2;
	conf.backend_streams = 1;
	conf.max_conns_per_endpoint = 1;
	struct world *w = ready_world(&conf);
	for (int i = 0; i < 3; i++) {
		ask(w, KIND_HANG, 0);
		world_run(w, 100 * MS);
	}
	const struct lb_inflight *f = look(w, LB_INFLIGHT_REQUESTS);
	assert_int_equal(f->n_rows, 3);
	assert_int_equal(f->rows[0].state, LB_REQUEST_sent);
	assert_int_equal(f->rows[1].state, LB_REQUEST_sent);
	assert_int_equal(f->rows[2].state, LB_REQUEST_queued);
	assert_true(f->rows[2].request.has_endpoint);
	for (int i = 0; i < 3; i++)
		client_cancel(&w->asks[i]);
	finish(w);
	world_free(w);
}

static void ops_60_one_whose_client_still_sends_is_sending(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask(w, KIND_HANG, 10 << 20); // more than windows let through
	world_run(w, SECOND);
	assert_state(w, LB_REQUEST_sending);
	assert_in_range(the_request(w)->bytes_in, 65535, 1 << 20);
	client_cancel(a);
	finish(w);
	world_free(w);
}

// The whole of a short answer lies here, and the rest of a long one is with the backend.
static void ops_60_one_whose_client_does_not_read_is_answering_or_delivering(void **state)
{
	static const struct {
		uint32_t size;
		enum lb_request_state state;
	} rows[] = {{10 << 20, LB_REQUEST_answering}, {66000, LB_REQUEST_delivering}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = ready_world(NULL);
		w->clients[0].slow = true;
		struct ask *a = ask(w, KIND_DOWNLOAD, rows[i].size);
		world_run(w, 5 * SECOND);
		assert_state(w, rows[i].state);
		const struct lb_inflight_row *row = the_request(w);
		assert_int_equal(row->bytes_out, 65535); // the window that it gave
		assert_string_equal(row->request.cluster, "zero");
		assert_int_equal(row->request.has_endpoint, rows[i].state == LB_REQUEST_answering);
		assert_int_equal(row->request.n_attempts, 1);
		const struct lb_inflight *f = look(w, LB_INFLIGHT_CONNS);
		bool found = false;
		for (uint32_t n = 0; n < f->n_rows; n++)
			found |= f->rows[n].conn.endpoint == LB_INFLIGHT_ANY &&
			         f->rows[n].conn.waiting > 400;
		assert_true(found);
		client_cancel(a);
		finish(w);
		world_free(w);
	}
}

// Its endpoint is gone, and another has the id.
static void ops_60_one_that_is_delivered_is_not_told_with_anothers_endpoint(void **state)
{
	struct world *w = a_world();
	use_backends(w, 0x1);
	open_client(w);
	world_run(w, 20 * MS);
	w->clients[0].slow = true;
	struct ask *a = ask(w, KIND_DOWNLOAD, 66000);
	world_run(w, SECOND);
	assert_state(w, LB_REQUEST_delivering);
	use_backends(w, 0);
	world_run(w, SECOND);
	use_backends(w, 0x2);
	world_run(w, SECOND);
	assert_state(w, LB_REQUEST_delivering);
	assert_false(the_request(w)->request.has_endpoint);
	client_cancel(a);
	finish(w);
	world_free(w);
}

// Its client goes on sending what nobody waits for.
static void ops_60_one_that_was_answered_here_is_not_in_flight(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = world_ask(w, "one", KIND_HANG, 10 << 20);
	a->timeout = "500m";
	client_ask(&w->clients[0], a);
	world_run(w, 100 * MS);
	assert_int_equal(the_request(w)->request.n_attempts, 1);
	world_run(w, SECOND);
	assert_reply(a, 4);
	assert_int_equal(look(w, LB_INFLIGHT_REQUESTS)->n_all, 0);
	finish(w);
	world_free(w);
}

static void ops_62_connections_of_both_sides_are_told(void **state)
{
	struct world *w = ready_world(NULL);
	w->wire.delay_ns = 5 * MS;
	struct ask *a = ask(w, KIND_DOWNLOAD, 200000);
	finish(w);
	assert_ok(w, a);
	struct ask *hangs = ask(w, KIND_HANG, 1000);
	world_run(w, SECOND);
	const struct lb_inflight *f = look(w, LB_INFLIGHT_CONNS);
	assert_int_equal(f->n_all, 3);
	assert_int_equal(f->n_rows, 3);
	uint64_t n_streams = 0, n_answers = 0;
	for (uint32_t i = 0; i < 3; i++) {
		const struct lb_inflight_row *row = &f->rows[i];
		const struct lb_inflight_conn *c = &row->conn;
		bool is_client = c->endpoint == LB_INFLIGHT_ANY;
		assert_int_equal(row->peer.ip.b[14], is_client ? HOST_CLIENTS : HOST_BACKENDS);
		assert_int_equal(c->local.ip.b[14], HOST_PROXY);
		assert_int_equal(c->http, 20);
		assert_int_equal(c->tls, 0);
		assert_int_equal(row->state, c->n_streams ? LB_CONN_open : LB_CONN_idle);
		assert_true(row->began_ns + SECOND <= w->wire.now_ns);
		n_streams += c->n_streams;
		if (is_client) {
			assert_in_range(row->bytes_out, 200000, 210000);
			assert_in_range(row->bytes_in, 1000, 2000);
			assert_in_range(c->tcp.rtt_ns, 5 * MS, 40 * MS);
			assert_true(c->tcp.cwnd >= 10000);
		}
		n_answers += !is_client && row->bytes_in >= 200000;
	}
	assert_int_equal(n_streams, 2);
	assert_int_equal(n_answers, 1);
	client_cancel(hangs);
	finish(w);
	world_free(w);
}

static void ops_62_a_connection_that_nobody_answers_is_connecting(void **state)
{
	struct world *w = a_world();
	w->wire.hosts[HOST_BACKENDS].unplugged = true;
	use_backends(w, 1);
	world_run(w, SECOND);
	const struct lb_inflight *f = look(w, LB_INFLIGHT_CONNS);
	assert_int_equal(f->n_rows, 1);
	assert_int_equal(f->rows[0].state, LB_CONN_connecting);
	assert_int_equal(f->rows[0].conn.http, 0);
	w->wire.hosts[HOST_BACKENDS].unplugged = false;
	world_free(w);
}

static void ops_63_segments_sent_again_are_told_for_each_connection(void **state)
{
	struct world *w = ready_world(NULL);
	const struct counter_set tcp = tcp_stack_counters(w->wire.hosts[HOST_PROXY].tcp);
	uint64_t n_all = 0, n_told = 0;
	w->wire.loss = 0.05;
	for (int i = 0; i < 20; i++)
		ask(w, KIND_ECHO, 50000);
	finish(w);
	const struct lb_inflight *f = look(w, LB_INFLIGHT_CONNS);
	assert_int_equal(f->n_rows, 3);
	for (uint32_t i = 0; i < tcp.n; i++)
		if (strcmp(tcp.names[i], "retransmits") == 0)
			n_all = tcp.values[i];
	for (uint32_t i = 0; i < f->n_rows; i++)
		n_told += f->rows[i].conn.tcp.n_resent;
	assert_true(n_all > 10);
	assert_int_equal(n_told, n_all);
	w->wire.loss = 0;
	world_free(w);
}

static uint64_t n_matching(struct world *w, struct lb_inflight_query query)
{
	const struct lb_inflight *f = ask_with_query(w, &query);
	assert_int_equal(f->n_rows, f->n_matching < query.limit ? f->n_matching : query.limit);
	return f->n_matching;
}

static void ops_64_conditions_choose_requests(void **state)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 2;
	conf.n_backends = 2;
	struct world *w = ready_world(&conf);
	w->clients[1].source = 9;
	world_open_client(w, 1, 1); // the frontend whose authority is pinned
	world_run(w, 100 * MS);
	uint64_t began_ns = w->wire.now_ns;
	for (int i = 0; i < 6; i++) {
		ask(w, KIND_HANG, 0);
		world_run(w, SECOND);
	}
	struct ask *other = world_ask(w, "pinned", KIND_HANG, 0);
	client_ask(&w->clients[1], other);
	world_run(w, SECOND);
	struct lb_inflight_query q = all(LB_INFLIGHT_REQUESTS);
	assert_int_equal(n_matching(w, q), 7);
	q.cluster = 0;
	assert_int_equal(n_matching(w, q), 7);
	q.cluster = 2;
	assert_int_equal(n_matching(w, q), 0);
	q = all(LB_INFLIGHT_REQUESTS);
	q.frontend = 0;
	assert_int_equal(n_matching(w, q), 6);
	q.frontend = 1;
	assert_int_equal(n_matching(w, q), 1);
	q.frontend = 5;
	assert_int_equal(n_matching(w, q), 0);
	q = all(LB_INFLIGHT_REQUESTS);
	q.has_source = true;
	q.source = (struct ip_prefix){wire_address(HOST_CLIENTS, 1), 128};
	assert_int_equal(n_matching(w, q), 6);
	q.source.bits = 120;
	assert_int_equal(n_matching(w, q), 7);
	q = all(LB_INFLIGHT_REQUESTS);
	q.before_ns = began_ns + 2500 * MS;
	assert_int_equal(n_matching(w, q), 3);
	q = all(LB_INFLIGHT_REQUESTS);
	q.states = 1u << LB_REQUEST_sent;
	assert_int_equal(n_matching(w, q), 7);
	q.states = ~q.states;
	assert_int_equal(n_matching(w, q), 0);
	q = all(LB_INFLIGHT_REQUESTS);
	q.limit = 2;
	assert_int_equal(n_matching(w, q), 7);
	assert_path(&w->link->inflight->rows[0].request, &w->asks[0]);
	assert_path(&w->link->inflight->rows[1].request, &w->asks[1]);
	abandon(w);
}

static void ops_64_conditions_choose_connections(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask(w, KIND_HANG, 0);
	world_run(w, 100 * MS);
	uint32_t endpoint = LB_INFLIGHT_ANY;
	const struct lb_inflight *f = look(w, LB_INFLIGHT_CONNS);
	for (uint32_t i = 0; i < f->n_rows; i++)
		if (f->rows[i].conn.endpoint != LB_INFLIGHT_ANY)
			endpoint = f->rows[i].conn.endpoint;
	assert_true(endpoint < LB_MAX_ENDPOINTS);
	struct lb_inflight_query q = all(LB_INFLIGHT_CONNS);
	q.by_endpoint = true;
	assert_int_equal(n_matching(w, q), 0);
	q.endpoints[endpoint / 64] = UINT64_C(1) << endpoint % 64;
	assert_int_equal(n_matching(w, q), 1);
	q = all(LB_INFLIGHT_CONNS);
	q.frontend = 0;
	assert_int_equal(n_matching(w, q), 1);
	q.frontend = 1;
	assert_int_equal(n_matching(w, q), 0);
	q = all(LB_INFLIGHT_CONNS);
	q.has_source = true;
	q.source = (struct ip_prefix){wire_address(HOST_CLIENTS, 1), 128};
	assert_int_equal(n_matching(w, q), 1);
	q.source.ip = wire_address(HOST_BACKENDS, 1);
	assert_int_equal(n_matching(w, q), 0);
	q = all(LB_INFLIGHT_CONNS);
	q.states = 1u << LB_CONN_open;
	assert_int_equal(n_matching(w, q), 2);
	q.states = 1u << LB_CONN_idle;
	assert_int_equal(n_matching(w, q), 1);
	client_cancel(a);
	finish(w);
	world_free(w);
}

// OPS-66: it takes a part of each millisecond, whatever there is.
static void ops_66_many_are_looked_at_in_many_parts(void **state)
{
	struct world *w = world_of_hanging(1500);
	const struct lb_inflight_query query = all(LB_INFLIGHT_REQUESTS);
	struct lb_inflight *f = w->link->inflight;
	uint32_t n_parts = 0, most = 0;
	lb_inflight_ask(f, &query);
	control_command(&w->control, &look_command);
	for (; !lb_inflight_is_free(f); n_parts++) {
		uint32_t before = f->n_rows;
		world_run(w, MS);
		most = f->n_rows - before > most ? f->n_rows - before : most;
		assert_true(n_parts < 1000);
	}
	assert_int_equal(f->n_all, 1500);
	assert_int_equal(f->n_rows, LB_INFLIGHT_ROWS);
	assert_in_range(most, 1, 2 * 32); // two parts may come in a millisecond of the world
	assert_in_range(n_parts, 16, 100);
	abandon(w);
}

// OPS-66: what comes and goes meanwhile is told or not, but never as something else.
static void ops_66_requests_may_end_while_they_are_looked_at(void **state)
{
	struct world_conf conf = world_conf_default(5);
	conf.n_clients = 4;
	conf.n_backends = 2;
	struct world *w = ready_world(&conf);
	for (uint32_t i = 1; i < 4; i++)
		world_open_client(w, i, 0);
	world_run(w, 100 * MS);
	uint64_t n_told = 0;
	for (uint32_t round = 0; round < 60; round++) {
		for (uint32_t i = 0; i < 60; i++) {
			struct ask *a = world_ask(w, "one", i % 3 ? KIND_ECHO : KIND_HANG, 100);
			client_ask(&w->clients[i % 4], a);
			if (w->n_asks > 200)
				client_cancel(&w->asks[w->n_asks - 200]);
		}
		const struct lb_inflight *f = look(w, LB_INFLIGHT_REQUESTS);
		n_told += f->n_rows;
		for (uint32_t i = 0; i < f->n_rows; i++) {
			const struct lb_inflight_request *r = &f->rows[i].request;
			unsigned id, size;
			const char *at = strchr(r->path + 1, '/');
			assert_non_null(at);
			assert_int_equal(sscanf(strchr(at + 1, '/'), "/%u/%u", &id, &size), 2);
			assert_true(id < w->n_asks && size == 100);
			assert_string_equal(r->cluster, "zero");
		}
		look(w, LB_INFLIGHT_CONNS);
	}
	assert_true(n_told > 60);
	abandon(w);
}

RUN_SUITE("proxy/inflight",
	cmocka_unit_test(ops_60_a_request_is_told_with_where_it_came_from_and_went),
	cmocka_unit_test(ops_60_one_that_waits_for_a_pick_has_no_endpoint),
	cmocka_unit_test(ops_60_one_that_waits_for_a_time_is_paused),
	cmocka_unit_test(ops_60_one_that_waits_for_a_stream_is_queued),
	cmocka_unit_test(ops_60_one_whose_client_still_sends_is_sending),
	cmocka_unit_test(ops_60_one_whose_client_does_not_read_is_answering_or_delivering),
	cmocka_unit_test(ops_60_one_that_is_delivered_is_not_told_with_anothers_endpoint),
	cmocka_unit_test(ops_60_one_that_was_answered_here_is_not_in_flight),
	cmocka_unit_test(ops_62_connections_of_both_sides_are_told),
	cmocka_unit_test(ops_62_a_connection_that_nobody_answers_is_connecting),
	cmocka_unit_test(ops_63_segments_sent_again_are_told_for_each_connection),
	cmocka_unit_test(ops_64_conditions_choose_requests),
	cmocka_unit_test(ops_64_conditions_choose_connections),
	cmocka_unit_test(ops_66_many_are_looked_at_in_many_parts),
	cmocka_unit_test(ops_66_requests_may_end_while_they_are_looked_at))
