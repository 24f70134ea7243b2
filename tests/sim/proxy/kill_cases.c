// SPDX-License-Identifier: Apache-2.0
// What an operator ends, one situation a test: exactly what was named ends, and each request once.
#include "lb/pick/inflight.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static struct lb_inflight *wait_for_worker(struct world *w)
{
	static const struct lb_command command = {.kind = LB_COMMAND_INFLIGHT};
	struct lb_inflight *f = w->link->inflight;
	control_command(&w->control, &command);
	for (int ms = 0; !lb_inflight_is_free(f); ms++) {
		assert_true(ms < 1000);
		world_run(w, MS);
	}
	return f;
}

static struct lb_inflight_query any(enum lb_inflight_kind kind)
{
	return (struct lb_inflight_query){.kind = kind,
		.limit = LB_INFLIGHT_ROWS,
		.before_ns = UINT64_MAX,
		.states = UINT32_MAX,
		.frontend = LB_INFLIGHT_ANY,
		.cluster = LB_INFLIGHT_ANY};
}

static struct lb_inflight *look(struct world *w, const struct lb_inflight_query *q)
{
	lb_inflight_ask(w->link->inflight, q);
	return wait_for_worker(w);
}

// All that the last answer told. Returns how many have ended.
static uint32_t end_marked(struct world *w)
{
	lb_inflight_end(w->link->inflight);
	return wait_for_worker(w)->n_ended;
}

static void mark_all(struct lb_inflight *f)
{
	for (uint32_t i = 0; i < f->n_rows; i++)
		f->rows[i].is_marked = true;
}

static uint32_t kill_requests(struct world *w)
{
	const struct lb_inflight_query q = any(LB_INFLIGHT_REQUESTS);
	mark_all(look(w, &q));
	return end_marked(w);
}

// Connections of one side.
static uint32_t kill_conns(struct world *w, bool of_clients)
{
	const struct lb_inflight_query q = any(LB_INFLIGHT_CONNS);
	struct lb_inflight *f = look(w, &q);
	for (uint32_t i = 0; i < f->n_rows; i++)
		f->rows[i].is_marked = of_clients == (f->rows[i].conn.endpoint == LB_INFLIGHT_ANY);
	return end_marked(w);
}

static void assert_killed(struct world *w, uint64_t n)
{
	world_run(w, 100 * MS);
	assert_int_equal(world_ended(w, LB_CAUSE_KILLED), n);
}

// OPS-190: with no answer yet, in each state of waiting.
static void a_request_without_an_answer_gets_one_of_ours(void **state)
{
	static const struct {
		uint32_t backends; // 0 = it waits for a pick
		enum kind kind;
		uint32_t size;
		const char *fail;
	} rows[] = {
		{0, KIND_ECHO, 10, NULL}, {3, KIND_HANG, 0, NULL}, {3, KIND_HANG, 10 << 20, NULL}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = a_world();
		if (rows[i].backends)
			use_backends(w, rows[i].backends);
		open_client(w);
		world_run(w, 20 * MS);
		struct ask *a = ask_with(w, rows[i].kind, rows[i].size, NULL, rows[i].fail);
		world_run(w, SECOND);
		assert_int_equal(kill_requests(w), 1);
		assert_killed(w, 1);
		assert_reply(a, 1);
		assert_int_equal(
			w->seen[a->id].n, rows[i].backends ? 1 : 0); // it is not sent again
		if (rows[i].backends) {
			assert_true(w->seen[a->id].ended_by_peer);
			assert_int_equal(w->seen[a->id].end_code, H2_CANCEL);
		}
		if (!rows[i].backends)
			use_backends(w, 0x3);
		finish(w);
		world_free(w);
	}
}

// OPS-190
static void one_that_waits_for_a_retry_is_not_tried_again(void **state)
{
	static const struct lb_route_policy retries = {.retry = {.statuses = 1u << 14 | 1u << 1,
							       .max_attempts = 4,
							       .base_ns = 5 * SECOND,
							       .max_ns = 5 * SECOND}};
	struct world *w = ready_world(NULL);
	control_set_policy(&w->control, ROUTE_ONE, &retries);
	struct ask *a = ask_with(w, KIND_ECHO, 10, NULL, "9 status 14");
	world_run(w, SECOND);
	assert_int_equal(kill_requests(w), 1);
	assert_killed(w, 1);
	assert_reply(a, 1);
	world_run(w, 20 * SECOND);
	assert_int_equal(w->seen[a->id].n, 1);
	finish(w);
	world_free(w);
}

// OPS-190: gRPC's status stands behind whole messages; elsewhere there is RST_STREAM alone.
static void one_that_is_answered_ends_by_trailers_or_a_reset(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *grpc = ask(w, KIND_STALL, 150), *plain = ask(w, KIND_STALL_PLAIN, 150);
	world_run(w, SECOND);
	assert_int_equal(kill_requests(w), 2);
	assert_killed(w, 2);
	assert_true(grpc->closed && grpc->got_end);
	assert_int_equal(grpc->grpc_status, 1);
	assert_int_equal(grpc->received, 150);
	assert_true(plain->closed && !plain->got_end);
	assert_int_equal(plain->code, H2_CANCEL);
	finish(w);
	world_free(w);
}

// OPS-190: its answer is here as a whole, and its client does not take it.
static void one_that_is_delivered_is_reset(void **state)
{
	struct world *w = ready_world(NULL);
	w->clients[0].slow = true;
	struct ask *a = ask(w, KIND_DOWNLOAD, 66000);
	world_run(w, 5 * SECOND);
	assert_int_equal(kill_requests(w), 1);
	assert_killed(w, 1);
	assert_int_equal(world_ended(w, LB_CAUSE_OK), 0);
	assert_true(a->closed && !a->got_end);
	finish(w);
	world_free(w);
}

// OPS-191
static void only_what_is_marked_and_still_there_ends(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *asks[4];
	for (int i = 0; i < 4; i++)
		asks[i] = ask(w, KIND_HANG, 0);
	world_run(w, 100 * MS);
	const struct lb_inflight_query q = any(LB_INFLIGHT_REQUESTS);
	struct lb_inflight *f = look(w, &q);
	assert_int_equal(f->n_rows, 4);
	for (uint32_t i = 0; i < 4; i++) {
		char end[16];
		const char *path = f->rows[i].request.path;
		snprintf(end, sizeof(end), "/%u/0", asks[2]->id);
		f->rows[i].is_marked = strcmp(path + strlen(path) - strlen(end), end) == 0;
		snprintf(end, sizeof(end), "/%u/0", asks[1]->id);
		f->rows[i].is_marked |= strcmp(path + strlen(path) - strlen(end), end) == 0;
	}
	client_cancel(asks[1]);
	world_run(w, 20 * MS);
	struct ask *next = ask(w, KIND_HANG, 0); // in its place
	world_run(w, 20 * MS);
	assert_int_equal(end_marked(w), 1);
	assert_killed(w, 1);
	assert_reply(asks[2], 1);
	assert_false(asks[0]->closed || asks[3]->closed || next->closed);
	abandon(w);
}

// OPS-191
static void a_handle_and_an_id_name_one_request(void **state)
{
	struct world *w = ready_world(NULL);
	for (int i = 0; i < 3; i++) {
		struct ask *a = world_ask(w, "one", KIND_HANG, 0);
		a->extra[0] = (struct field){.name = STR("x-request-id"),
			.value = i == 1 ? STR("the-one") : STR("another")};
		client_ask(&w->clients[0], a);
		world_run(w, 20 * MS);
	}
	struct lb_inflight_query q = any(LB_INFLIGHT_REQUESTS);
	strcpy(q.id, "the-one");
	const struct lb_inflight *f = look(w, &q);
	assert_int_equal(f->n_all, 3);
	assert_int_equal(f->n_matching, 1);
	assert_string_equal(f->rows[0].request.id, "the-one");
	q = any(LB_INFLIGHT_REQUESTS);
	q.has_handle = true;
	q.handle = (struct lb_inflight_handle){
		.began_ns = f->rows[0].began_ns, .slot = f->rows[0].slot};
	assert_int_equal(look(w, &q)->n_matching, 1);
	assert_string_equal(f->rows[0].request.id, "the-one");
	q.handle.worker = 1;
	assert_int_equal(look(w, &q)->n_matching, 0);
	q.handle.worker = 0;
	q.handle.began_ns++;
	assert_int_equal(look(w, &q)->n_matching, 0);
	abandon(w);
}

// OPS-192
static void a_client_gets_answers_goaway_and_fin(void **state)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 2;
	conf.n_backends = 2;
	struct world *w = ready_world(&conf);
	world_open_client(w, 1, 0);
	world_run(w, 100 * MS);
	struct ask *a = ask(w, KIND_HANG, 0), *b = ask(w, KIND_STALL, 150);
	world_run(w, SECOND);
	struct lb_inflight_query q = any(LB_INFLIGHT_CONNS);
	q.states = 1u << LB_CONN_open;
	q.frontend = 0;
	mark_all(look(w, &q));
	assert_int_equal(end_marked(w), 1);
	assert_killed(w, 2);
	assert_reply(a, 1);
	assert_int_equal(b->grpc_status, 1);
	assert_true(w->clients[0].goaway && w->clients[0].over);
	assert_int_equal(world_counter(w, "clients_killed"), 1);
	assert_false(w->clients[1].goaway || w->clients[1].over);
	struct ask *other = world_ask(w, "one", KIND_ECHO, 1000);
	client_ask(&w->clients[1], other);
	finish(w);
	assert_ok(w, other);
	world_free(w);
}

// OPS-192: one that takes nothing does not keep it.
static void a_client_that_is_closing_is_reset_by_the_next(void **state)
{
	struct world *w = ready_world(NULL);
	w->clients[0].deaf = true;
	struct ask *a = ask(w, KIND_DOWNLOAD, 4 << 20);
	world_run(w, SECOND);
	assert_int_equal(kill_conns(w, true), 1);
	assert_killed(w, 1);
	const struct lb_inflight_query q = any(LB_INFLIGHT_CONNS);
	const struct lb_inflight *f = look(w, &q);
	bool is_closing = false;
	for (uint32_t i = 0; i < f->n_rows; i++)
		is_closing |= f->rows[i].state == LB_CONN_closing;
	assert_true(is_closing);
	kill_conns(w, true);
	world_run(w, 100 * MS);
	assert_true(w->clients[0].over && a->closed);
	world_free(w);
}

// OPS-192: requests on it end, others wait for or have another one.
static void a_backends_connection_ends_with_its_requests_alone(void **state)
{
	struct world *w = a_world();
	use_backends(w, 0x1);
	open_client(w);
	world_run(w, 20 * MS);
	struct ask *hangs = ask(w, KIND_HANG, 0), *stalls = ask(w, KIND_STALL, 150);
	world_run(w, SECOND);
	uint32_t n_accepted = w->backends[0].n_accepted;
	assert_int_equal(kill_conns(w, false), 1);
	struct ask *next = ask(w, KIND_ECHO, 1000);
	assert_killed(w, 2);
	assert_reply(hangs, 1);
	assert_int_equal(stalls->grpc_status, 1);
	assert_int_equal(w->seen[hangs->id].n, 1);
	finish(w);
	assert_ok(w, next);
	assert_int_equal(w->backends[0].n_accepted, n_accepted + 1);
	assert_int_equal(world_counter(w, "upstreams_killed"), 1);
	assert_false(w->clients[0].goaway);
	world_free(w);
}

// OPS-192: that it was short is not its backend's doing, so that another one is tried at once.
static void a_young_connection_is_replaced_at_once(void **state)
{
	struct world *w = a_world();
	use_backends(w, 0x1);
	open_client(w);
	world_run(w, 20 * MS);
	assert_int_equal(kill_conns(w, false), 1);
	struct ask *a = ask(w, KIND_ECHO, 100);
	finish(w);
	assert_ok(w, a);
	assert_true(took_ns(a) < 200 * MS);
	world_free(w);
}

// OPS-192
static void one_that_is_being_opened_is_tried_again(void **state)
{
	struct world *w = a_world();
	w->wire.hosts[HOST_BACKENDS].unplugged = true;
	use_backends(w, 0x1);
	open_client(w);
	struct ask *a = ask(w, KIND_ECHO, 100);
	world_run(w, 100 * MS);
	assert_int_equal(kill_conns(w, false), 1);
	w->wire.hosts[HOST_BACKENDS].unplugged = false;
	world_run(w, 10 * SECOND);
	finish(w);
	assert_true(a->closed);
	struct ask *later = ask(w, KIND_ECHO, 100);
	finish(w);
	assert_ok(w, later);
	world_free(w);
}

// OPS-193
static void many_end_in_many_parts_and_each_once(void **state)
{
	struct world *w = world_of_hanging(600);
	const struct lb_inflight_query q = any(LB_INFLIGHT_REQUESTS);
	mark_all(look(w, &q));
	struct lb_inflight *f = w->link->inflight;
	static const struct lb_command command = {.kind = LB_COMMAND_INFLIGHT};
	uint32_t most = 0, n_parts = 0;
	lb_inflight_end(f);
	control_command(&w->control, &command);
	for (; !lb_inflight_is_free(f); n_parts++) {
		uint32_t before = f->n_ended;
		world_run(w, MS);
		most = f->n_ended - before > most ? f->n_ended - before : most;
	}
	assert_int_equal(f->n_ended, 600);
	assert_in_range(most, 1, 2 * 32);
	assert_true(n_parts >= 600 / 64);
	assert_killed(w, 600);
	finish(w);
	for (uint32_t i = 0; i < w->n_asks; i++)
		assert_reply(&w->asks[i], 1);
	world_free(w);
}

RUN_SUITE("proxy/kill", cmocka_unit_test(a_request_without_an_answer_gets_one_of_ours),
	cmocka_unit_test(one_that_waits_for_a_retry_is_not_tried_again),
	cmocka_unit_test(one_that_is_answered_ends_by_trailers_or_a_reset),
	cmocka_unit_test(one_that_is_delivered_is_reset),
	cmocka_unit_test(only_what_is_marked_and_still_there_ends),
	cmocka_unit_test(a_handle_and_an_id_name_one_request),
	cmocka_unit_test(a_client_gets_answers_goaway_and_fin),
	cmocka_unit_test(a_client_that_is_closing_is_reset_by_the_next),
	cmocka_unit_test(a_backends_connection_ends_with_its_requests_alone),
	cmocka_unit_test(a_young_connection_is_replaced_at_once),
	cmocka_unit_test(one_that_is_being_opened_is_tried_again),
	cmocka_unit_test(many_end_in_many_parts_and_each_once))
