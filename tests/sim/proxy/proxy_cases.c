// SPDX-License-Identifier: Apache-2.0
// Single situations, one a test, in the same world as proxy_sim.c. Not who takes or gives too
// little (slow_cases.c), deadlines, retries or leaving, which have files of their own.
#include "lb/member/connectivity.h"
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

// FIFO through one stream at a time.
static void requests_wait_for_the_first_connection_in_order(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	conf.backend_streams = 1;
	conf.max_conns_per_endpoint = 1;
	struct world *w = world_new(&conf);
	open_client(w);
	for (int i = 0; i < 50; i++)
		ask(w, KIND_ECHO, 100);
	world_run(w, 200 * MS);
	assert_int_equal(w->link->clusters[0].queued, 50);
	use_backends(w, 1);
	finish(w);
	for (uint32_t i = 0; i < 50; i++) {
		assert_ok(w, &w->asks[i]);
		assert_int_equal(w->served[i], i);
	}
	assert_int_equal(world_ended(w, LB_CAUSE_OK), 50);
	world_free(w);
}

// TH-22: Q-06
static void more_than_may_wait_fail_at_once(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	conf.max_queued = 10;
	struct world *w = world_new(&conf);
	open_client(w);
	for (int i = 0; i < 30; i++)
		ask(w, i == 29 ? KIND_PLAIN : KIND_ECHO, 10);
	world_run(w, 100 * MS);
	for (int i = 10; i < 29; i++)
		assert_reply(&w->asks[i], 14);
	assert_int_equal(w->asks[29].http_status, 503);
	assert_int_equal(world_ended(w, LB_CAUSE_OVERFLOW), 20);
	assert_int_equal(w->link->clusters[0].queued, 10);
	use_backends(w, 1);
	finish(w);
	for (int i = 0; i < 10; i++)
		assert_ok(w, &w->asks[i]);
	world_free(w);
}

// Q-02, HX-18
static void a_waiting_request_that_is_reset_is_forgotten(void **state)
{
	struct world *w = a_world();
	open_client(w);
	for (int i = 0; i < 3; i++)
		ask(w, KIND_ECHO, 1000);
	world_run(w, 20 * MS);
	client_cancel(&w->asks[1]);
	world_run(w, 20 * MS);
	assert_int_equal(w->link->clusters[0].queued, 2);
	assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_RESET), 1);
	use_backends(w, 1);
	finish(w);
	assert_ok(w, &w->asks[0]);
	assert_ok(w, &w->asks[2]);
	assert_int_equal(w->n_done[1], 0);
	world_free(w);
}

// TH-29, HX-23: no stream is allowed at all; the endpoint's removal sends its requests elsewhere
//
static void requests_wait_for_room_and_leave_a_released_backend(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	conf.n_backends = 2;
	conf.backend_streams = 0;
	struct world *w = world_new(&conf);
	use_backends(w, 1);
	open_client(w);
	world_run(w, 20 * MS);
	for (int i = 0; i < 5; i++)
		ask(w, KIND_ECHO, 5000);
	world_run(w, SECOND);
	assert_int_equal(w->link->clusters[0].queued, 5);
	w->backend_conf.max_concurrent_streams = 100;
	backend_fini(&w->backends[1]);
	backend_open(&w->backends[1], &w->wire.hosts[HOST_BACKENDS], w->backends[1].address,
		&w->backend_conf);
	use_backends(w, 2);
	finish(w);
	for (uint32_t i = 0; i < 5; i++) {
		assert_ok(w, &w->asks[i]);
		assert_int_equal(w->served[i], i);
	}
	world_free(w);
}

// TH-66, HX-21, RT-11: what a GOAWAY leaves unprocessed goes elsewhere, once.
static void requests_above_a_goaway_are_sent_again(void **state)
{
	struct world *w = ready_world(NULL);
	for (int i = 0; i < 40; i++)
		ask(w, KIND_ECHO, i % 2 ? 3000 : 0);
	// They are on the wire when the backend says that it has seen none.
	world_run(w, MS * 6 / 10);
	backend_goaway(&w->backends[0], true);
	finish(w);
	for (int i = 0; i < 40; i++)
		assert_ok(w, &w->asks[i]);
	assert_true(world_counter(w, "transparent_retries") >= 15);
	world_free(w);
}

// HX-21: those at or below the last id go on.
static void streams_below_a_goaway_finish(void **state)
{
	struct world *w = ready_world(NULL);
	for (int i = 0; i < 10; i++)
		ask(w, KIND_DOWNLOAD, 200000);
	w->clients[0].slow = true;
	world_run(w, 200 * MS);
	backend_goaway(&w->backends[0], true);
	backend_goaway(&w->backends[1], true);
	world_run(w, 200 * MS);
	w->clients[0].slow = false;
	for (int i = 0; i < 10; i++) {
		assert_false(w->asks[i].closed);
		client_resume(&w->clients[0], &w->asks[i]);
		ask(w, KIND_ECHO, 10);
	}
	finish(w);
	for (int i = 0; i < 20; i++)
		assert_ok(w, &w->asks[i]);
	assert_int_equal(world_counter(w, "upstream_goaways"), 2);
	world_free(w);
}

// TH-64, HX-19, HX-20
static void a_lost_backend_is_told_by_status_or_by_reset(void **state)
{
	struct world *w = ready_world(NULL);
	use_backends(w, 1);
	world_run(w, 20 * MS);
	struct ask *silent = ask(w, KIND_HANG, 0);
	struct ask *download = ask(w, KIND_DOWNLOAD, 10 << 20);
	world_run(w, 20 * MS);
	assert_true(download->received > 0 && !download->closed);
	backend_abort_conns(&w->backends[0]);
	world_run(w, 60 * MS); // the RST may overtake data: the next ACK is answered by another
	assert_reply(silent, 14);
	assert_non_null(strstr(silent->message, "cluster "));
	assert_non_null(strstr(silent->message, ": the backend's connection was lost"));
	assert_true(download->closed && !download->got_end && download->by_peer);
	assert_int_equal(download->code, H2_INTERNAL_ERROR);
	assert_int_equal(world_ended(w, LB_CAUSE_UPSTREAM_LOST), 2);
	finish(w);
	world_free(w);
}

static void a_lost_connection_is_reported_and_made_again(void **state)
{
	struct world *w = ready_world(NULL);
	backend_abort_conns(&w->backends[0]);
	world_run(w, 3 * SECOND);
	assert_int_equal(w->backends[0].n_accepted, 2);
	assert_int_equal(world_counter(w, "upstreams"), 2);
	world_free(w);
}

// A pick from before the release must not bring the connection back: nobody would close it.
static void an_older_snapshot_cannot_take_up_a_released_endpoint(void **state)
{
	struct world *w = ready_world(NULL);
	use_backends(w, 1);
	world_run(w, SECOND);
	w->control.deaf = true;
	struct lb_endpoint_table *t = lb_connectivity_endpoints(w->control.connectivity);
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_RELEASE,
					     .endpoint = lb_endpoint_find(t, 0)});
	ask(w, KIND_ECHO, 10);
	world_run(w, SECOND);
	assert_int_equal(world_counter(w, "upstreams"), 0);
	assert_int_equal(w->link->clusters[0].queued, 1);
	w->control.deaf = false;
	finish(w);
	assert_ok(w, &w->asks[0]);
	world_free(w);
}

// TH-17
static void a_silent_client_is_missed(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask(w, KIND_HANG, 0);
	world_run(w, 20 * MS);
	w->wire.hosts[HOST_CLIENTS].unplugged = true;
	world_run(w, 100 * SECOND);
	assert_false(a->closed);
	assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_LOST), 1);
	assert_int_equal(world_counter(w, "clients"), 0);
	world_free(w);
}

// TH-17
static void a_client_beyond_the_limit_is_turned_away(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 3;
	conf.max_clients = 2;
	struct world *w = ready_world(&conf);
	ask(w, KIND_HANG, 10);
	for (uint32_t i = 1; i < 3; i++) {
		world_open_client(w, i, 0);
		world_run(w, 20 * MS);
		struct ask *a = world_ask(w, "one", KIND_HANG, 10);
		if (!w->clients[i].over)
			client_ask(&w->clients[i], a);
		world_run(w, 20 * MS);
	}
	assert_int_equal(world_counter(w, "clients"), 2);
	assert_int_equal(world_counter(w, "clients_refused"), 1);
	assert_true(!w->clients[0].over && !w->clients[1].over && w->clients[2].over);
	client_abort(&w->clients[0]);
	world_run(w, 20 * MS);
	world_open_client(w, 2, 0);
	world_run(w, 20 * MS);
	assert_false(w->clients[2].over);
	world_free(w);
}

// HX-18
static void a_lost_client_cancels_its_streams(void **state)
{
	struct world *w = ready_world(NULL);
	for (int i = 0; i < 10; i++)
		ask(w, i % 2 ? KIND_HANG : KIND_DOWNLOAD, 1 << 20);
	world_run(w, 5 * MS);
	assert_int_equal(w->link->endpoints[0].active + w->link->endpoints[1].active, 10);
	client_abort(&w->clients[0]);
	world_run(w, 20 * MS);
	assert_int_equal(w->link->endpoints[0].active + w->link->endpoints[1].active, 0);
	assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_LOST), 10);
	assert_int_equal(world_counter(w, "upstreams"), 2); // the connections stay
	world_free(w);
}

// The last of the answer and the client's FIN come in one turn: it is an answered request's end.
static void a_client_that_leaves_with_its_answer_was_answered(void **state)
{
	struct world *w = ready_world(NULL);
	w->wire.jitter_ns = 0;
	struct ask *a = ask(w, KIND_TRAILERS_ONLY, 0);
	while (!w->n_done[a->id])
		wire_step(&w->wire, w->wire.now_ns + MS);
	tcp_conn_shutdown(w->clients[0].tcp);
	tcp_stack_flush(w->clients[0].host->tcp);
	w->wire.now_ns += 10 * MS; // both are there when the proxy's turn comes
	finish(w);
	assert_true(a->closed);
	assert_int_equal(a->grpc_status, 5);
	assert_int_equal(world_ended(w, LB_CAUSE_OK), 1);
	assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_LOST), 0);
	world_free(w);
}

// TH-27, HX-08, HX-03
static void a_malformed_response_is_13_or_502(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask(w, KIND_BAD_LENGTH, 0);
	finish(w);
	assert_reply(a, 13);
	assert_int_equal(world_ended(w, LB_CAUSE_UPSTREAM_PROTOCOL), 1);
	world_free(w);
}

// HX-20: trailers say how it ended, unless they would cut a message.
static void grpc_answers_end_with_a_status_when_their_backend_dies(void **state)
{
	static const uint32_t whole[] = {0, 15, 45}, cut[] = {1, 5, 14, 31};
	struct world *w = ready_world(NULL);
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		ask(w, KIND_STALL, whole[i]);
	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++)
		ask(w, KIND_STALL, cut[i]);
	struct ask *plain = ask(w, KIND_STALL_PLAIN, 15);
	world_run(w, 200 * MS);
	for (uint32_t i = 0; i < w->conf.n_backends; i++)
		backend_close(&w->backends[i]);
	finish(w);
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		const struct ask *a = &w->asks[i];
		assert_true(a->got_end);
		assert_int_equal(a->grpc_status, 14);
		assert_non_null(strstr(a->message, "connection was lost"));
		assert_int_equal(a->received, whole[i]);
	}
	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
		const struct ask *a = &w->asks[3 + i];
		assert_false(a->got_end);
		assert_int_equal(a->code, H2_INTERNAL_ERROR);
		assert_int_equal(a->received, cut[i]);
	}
	assert_false(plain->got_end);
	assert_int_equal(plain->code, H2_INTERNAL_ERROR);
	assert_int_equal(world_ended(w, LB_CAUSE_UPSTREAM_LOST), 8);
	world_free(w);
}

// HX-20: what the backend had sent still comes first.
static void a_status_waits_for_the_messages_before_it(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask(w, KIND_STALL, 90000);
	w->clients[0].slow = true;
	world_run(w, 200 * MS);
	assert_true(a->received < 90000);
	for (uint32_t i = 0; i < w->conf.n_backends; i++)
		backend_close(&w->backends[i]);
	world_run(w, 200 * MS);
	assert_false(a->closed);
	w->clients[0].slow = false;
	client_resume(&w->clients[0], a);
	finish(w);
	assert_true(a->got_end);
	assert_int_equal(a->grpc_status, 14);
	world_free(w);
}

// TH-25, HX-25: whoever shares its connection does not notice.
static void a_response_header_that_is_too_large_fails_its_request_alone(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	conf.max_conns_per_endpoint = 1;
	struct world *w = ready_world(&conf);
	for (int i = 0; i < 20; i++)
		ask(w, KIND_DOWNLOAD, 100000);
	struct ask *a = ask(w, KIND_TRAILERS_ONLY, 18000), *b = ask(w, KIND_HEAD, 18000);
	finish(w);
	assert_reply(a, 8);
	assert_non_null(strstr(a->message, "header or trailers are too large"));
	assert_int_equal(b->http_status, 502);
	assert_int_equal(world_ended(w, LB_CAUSE_UPSTREAM_TOO_LARGE), 2);
	for (int i = 0; i < 20; i++)
		assert_ok(w, &w->asks[i]);
	assert_int_equal(world_ended(w, LB_CAUSE_OK), 20);
	world_free(w);
}

// HX-25
static void too_many_header_bytes_are_431_or_status_13(void **state)
{
	struct world *w = ready_world(NULL);
	for (int i = 0; i < 2; i++) {
		struct ask *a = world_ask(w, "one", i ? KIND_PLAIN : KIND_ECHO, i ? 0 : 100000);
		a->huge = true;
		client_ask(&w->clients[0], a);
	}
	finish(w);
	assert_reply(&w->asks[0], 13);
	assert_int_equal(w->asks[0].code, H2_NO_ERROR); // HX-15: the rest isn't wanted
	assert_int_equal(w->asks[1].http_status, 431);
	assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_PROTOCOL), 2);
	world_free(w);
}

static void each_of_many_frontends_has_its_own_routes(void **state)
{
	struct world *w = a_world();
	use_backends(w, 1);
	world_open_client(w, 0, LAST_FRONTEND);
	while (!w->clients[0].up)
		world_run(w, MS);
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_ok(w, a);
	world_free(w);
}

// TH-56, A28-R08
static void a_frontend_without_routes_says_why(void **state)
{
	struct world *w = a_world();
	world_open_client(w, 0, 2);
	while (!w->clients[0].up)
		world_run(w, MS);
	ask(w, KIND_ECHO, 50000);
	ask(w, KIND_PLAIN, 0);
	ask(w, KIND_HEAD, 0);
	finish(w);
	assert_reply(&w->asks[0], 14);
	assert_string_equal(w->asks[0].message, "not configured");
	assert_int_equal(w->asks[1].http_status, 503);
	assert_int_equal(w->asks[1].received, strlen("not configured"));
	assert_int_equal(w->asks[2].http_status, 503);
	assert_int_equal(w->asks[2].received, 0);
	assert_int_equal(world_ended(w, LB_CAUSE_NO_CONFIG), 3);
	world_free(w);
}

static void plain_requests_get_http_statuses(void **state)
{
	struct world *w = ready_world(NULL);
	static const struct {
		const char *route;
		int status;
		enum lb_cause cause;
	} rows[] = {{"nowhere", 404, LB_CAUSE_NO_ROUTE}, {"unsupported", 503, LB_CAUSE_NO_ACTION},
		{"down", 503, LB_CAUSE_NO_HEALTHY}};
	for (int i = 0; i < 3; i++) {
		struct ask *a = world_ask(w, rows[i].route, KIND_PLAIN, 0);
		client_ask(&w->clients[0], a);
		finish(w);
		assert_int_equal(a->http_status, rows[i].status);
		assert_true(a->got_end && a->received > 0);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(world_ended(w, rows[i].cause), 1);
	struct ask *grpc = world_ask(w, "unsupported", KIND_ECHO, 0); // A28-V04
	client_ask(&w->clients[0], grpc);
	finish(w);
	assert_reply(grpc, 14);
	assert_int_equal(world_ended(w, LB_CAUSE_NO_ACTION), 2);
	world_free(w);
}

// TH-69, TH-70: each pool runs out; nothing leaks, and it heals.
static void exhausted_pools_fail_requests_and_heal(void **state)
{
	struct world_conf conf = world_conf_default(5);
	conf.n_clients = 1;
	conf.max_requests = 5;
	struct world *w = ready_world(&conf);
	for (int i = 0; i < 20; i++)
		ask(w, KIND_HANG, 0);
	world_run(w, 100 * MS);
	for (int i = 5; i < 20; i++)
		assert_reply(&w->asks[i], 14);
	assert_int_equal(world_ended(w, LB_CAUSE_OVERLOAD), 15);
	for (int i = 0; i < 5; i++)
		client_cancel(&w->asks[i]);
	finish(w);
	struct ask *a = ask(w, KIND_ECHO, 100);
	finish(w);
	assert_ok(w, a);
	world_free(w);
}

// TH-70
static void too_few_chunks_fail_requests_and_heal(void **state)
{
	struct world_conf conf = world_conf_default(5);
	conf.n_clients = 1;
	conf.n_chunks = 60;
	struct world *w = ready_world(&conf);
	for (int i = 0; i < 60; i++)
		ask(w, i % 2 ? KIND_DOWNLOAD : KIND_ECHO, 50000);
	world_run(w, 20 * SECOND);
	for (uint32_t i = 0; i < w->n_asks; i++)
		if (w->asks[i].got_end && w->asks[i].grpc_status == 0)
			assert_ok(w, &w->asks[i]);
	for (uint32_t i = 0; i < w->n_asks; i++)
		client_cancel(&w->asks[i]);
	finish(w);
	if (w->clients[0].over)
		open_client(w);
	world_run(w, SECOND);
	struct ask *a = ask(w, KIND_ECHO, 100);
	finish(w);
	assert_ok(w, a);
	world_free(w);
}

static size_t deaf(struct tcp_conn *c, void *user, const uint8_t *p, size_t len)
{
	return len;
}

static void nothing(struct tcp_conn *c, void *user)
{
}

static void mark(struct tcp_conn *c, void *user, enum tcp_close_reason reason)
{
	*(bool *)user = true;
}

static void mark_eof(struct tcp_conn *c, void *user)
{
	*(bool *)user = true;
	tcp_conn_shutdown(c);
}

// TH-16
static void a_client_that_says_nothing_is_closed(void **state)
{
	static const struct tcp_conn_ops ops = {nothing, deaf, nothing, mark_eof, mark};
	struct world *w = a_world();
	bool closed = false;
	struct tcp_flow flow = {.local = wire_address(HOST_CLIENTS, 9),
		.remote = w->frontends[0].address,
		.remote_port = 80};
	struct host *h = &w->wire.hosts[HOST_CLIENTS];
	assert_non_null(tcp_connect(h->tcp, &flow, SECOND, &ops, &closed));
	h->due = true;
	world_run(w, 9 * SECOND);
	assert_false(closed);
	assert_int_equal(world_counter(w, "clients"), 1);
	world_run(w, 2 * SECOND);
	assert_true(closed);
	world_run(w, 2 * SECOND);
	assert_int_equal(world_counter(w, "clients"), 0);
	assert_int_equal(world_counter(w, "clients_silent"), 1);
	world_free(w);
}

static void begin_header_block(struct tcp_conn *c, void *user)
{
	// Preface, SETTINGS, HEADERS without END_HEADERS: one byte of a block.
	static const char bytes[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
				    "\0\0\0\4\0\0\0\0\0"
				    "\0\0\1\1\0\0\0\0\1\x82";
	struct world *w = user;
	assert_true(buf_append(
		tcp_conn_sendq(c), &w->wire.hosts[HOST_CLIENTS].chunks, bytes, sizeof(bytes) - 1));
	tcp_conn_push(c);
}

static void hang_up(struct tcp_conn *c, void *user)
{
	tcp_conn_shutdown(c);
}

static void forget(struct tcp_conn *c, void *user, enum tcp_close_reason reason)
{
}

// TH-16, VU#421644: a header block may not stay open.
static void a_client_that_never_ends_its_header_block_is_closed(void **state)
{
	static const struct tcp_conn_ops ops = {begin_header_block, deaf, nothing, hang_up, forget};
	struct world *w = a_world();
	struct tcp_flow flow = {.local = wire_address(HOST_CLIENTS, 9),
		.remote = w->frontends[0].address,
		.remote_port = 80};
	struct host *h = &w->wire.hosts[HOST_CLIENTS];
	assert_non_null(tcp_connect(h->tcp, &flow, SECOND, &ops, w));
	h->due = true;
	world_run(w, 9 * SECOND);
	assert_int_equal(world_counter(w, "clients"), 1);
	world_run(w, 3 * SECOND);
	assert_int_equal(world_counter(w, "clients"), 0);
	assert_int_equal(world_counter(w, "clients_in_header"), 1);
	assert_int_equal(world_counter(w, "clients_silent"), 0);
	world_free(w);
}

// MC-04: READY thanks to another worker. This one connects at its first pick.
static void an_endpoint_of_another_worker_is_connected_when_picked(void **state)
{
	struct world_conf conf = world_conf_default(5);
	conf.n_clients = 1;
	conf.n_workers = 2;
	struct world *w = ready_world(&conf);
	// Ids 0 and 1: the second one's anchor is the other worker.
	assert_int_equal(world_counter(w, "upstreams"), 1);
	for (int i = 0; i < 20; i++)
		ask(w, KIND_ECHO, 10);
	finish(w);
	assert_int_equal(world_counter(w, "upstreams"), 2);
	for (int i = 0; i < 40; i++)
		ask(w, KIND_ECHO, 10);
	finish(w);
	for (int i = 0; i < 60; i++)
		assert_ok(w, &w->asks[i]);
	assert_true(w->backends[0].n_served >= 20 && w->backends[1].n_served >= 20);
	world_free(w);
}

// MC-07: a backend that only others reach is not hammered with SYNs.
static void own_attempts_back_off(void **state)
{
	struct world_conf conf = world_conf_default(5);
	conf.n_clients = 1;
	conf.n_workers = 2;
	struct world *w = world_new(&conf);
	backend_close(&w->backends[1]);
	use_backends(w, 0x3);
	world_run(w, 20 * MS);
	use_backends(w, 0x2);
	open_client(w);
	for (int i = 0; i < 20; i++) {
		ask(w, KIND_ECHO, 10);
		world_run(w, SECOND / 2);
	}
	// At 0, 1, 2.6, 5.2 and 9.3 s, each ±20 %.
	assert_in_range(world_counter(w, "connect_failures"), 4, 6);
	assert_int_equal(w->link->clusters[0].queued, 20);
	backend_fini(&w->backends[1]);
	backend_open(&w->backends[1], &w->wire.hosts[HOST_BACKENDS], w->backends[1].address,
		&w->backend_conf);
	finish(w);
	for (int i = 0; i < 20; i++)
		assert_ok(w, &w->asks[i]);
	world_free(w);
}

// MC-19: spare connections come with need and go with time.
static void spare_connections_are_opened_and_closed(void **state)
{
	struct world_conf conf = world_conf_default(5);
	conf.n_clients = 1;
	conf.backend_streams = 2;
	conf.max_conns_per_endpoint = 3;
	struct world *w = world_new(&conf);
	use_backends(w, 1);
	open_client(w);
	for (int i = 0; i < 10; i++)
		ask(w, KIND_HANG, 0);
	world_run(w, SECOND);
	assert_int_equal(world_counter(w, "upstreams"), 3);
	assert_int_equal(w->link->endpoints[0].active, 6);
	assert_int_equal(w->link->clusters[0].queued, 4);
	for (int i = 0; i < 10; i++)
		client_cancel(&w->asks[i]);
	world_run(w, 25 * SECOND);
	assert_int_equal(world_counter(w, "upstreams"), 3);
	world_run(w, 10 * SECOND);
	assert_int_equal(world_counter(w, "upstreams"), 1);
	assert_int_equal(world_counter(w, "upstreams_idled"), 2);
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_ok(w, a);
	world_free(w);
}

// UPD-03
static void a_released_backend_finishes_its_streams_and_may_come_back(void **state)
{
	struct world *w = ready_world(NULL);
	use_backends(w, 1);
	world_run(w, 20 * MS);
	struct ask *slow = ask(w, KIND_HANG, 0);
	world_run(w, 20 * MS);
	use_backends(w, 2);
	world_run(w, SECOND);
	assert_false(slow->closed);
	assert_int_equal(w->backends[0].n_conns, 1);
	use_backends(w, 1); // the same connection serves again
	world_run(w, 20 * MS);
	struct ask *a = ask(w, KIND_ECHO, 10);
	world_run(w, SECOND);
	assert_ok(w, a);
	assert_int_equal(w->backends[0].n_accepted, 1);
	use_backends(w, 2);
	client_cancel(slow);
	world_run(w, SECOND);
	assert_int_equal(w->backends[0].n_conns, 0);
	world_free(w);
}

// The ring is full for a while: what changed is told later, and only what is still true.
static void a_full_event_ring_delays_but_loses_nothing(void **state)
{
	struct world_conf conf = world_conf_default(5);
	conf.n_clients = 1;
	conf.n_backends = 8;
	conf.n_events = 2;
	struct world *w = world_new(&conf);
	w->control.deaf = true;
	use_backends(w, 0xff);
	open_client(w);
	struct ask *a = ask(w, KIND_ECHO, 10);
	world_run(w, SECOND);
	assert_int_equal(world_counter(w, "upstreams"), 8);
	assert_true(world_counter(w, "events_delayed") > 0);
	backend_close(&w->backends[7]);
	world_run(w, SECOND);
	w->control.deaf = false;
	finish(w);
	assert_ok(w, a);
	for (int i = 0; i < 70; i++)
		ask(w, KIND_ECHO, 10);
	finish(w);
	for (int i = 0; i < 7; i++)
		assert_in_range(w->backends[i].n_served, 9, 11);
	world_free(w);
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("sim/proxy", CASE(requests_wait_for_the_first_connection_in_order),
	CASE(more_than_may_wait_fail_at_once), CASE(a_waiting_request_that_is_reset_is_forgotten),
	CASE(requests_wait_for_room_and_leave_a_released_backend),
	CASE(requests_above_a_goaway_are_sent_again), CASE(streams_below_a_goaway_finish),
	CASE(a_lost_backend_is_told_by_status_or_by_reset), CASE(a_lost_client_cancels_its_streams),
	CASE(a_client_that_leaves_with_its_answer_was_answered), CASE(a_silent_client_is_missed),
	CASE(a_client_beyond_the_limit_is_turned_away),
	CASE(a_lost_connection_is_reported_and_made_again),
	CASE(an_older_snapshot_cannot_take_up_a_released_endpoint),
	CASE(a_malformed_response_is_13_or_502), CASE(too_many_header_bytes_are_431_or_status_13),
	CASE(grpc_answers_end_with_a_status_when_their_backend_dies),
	CASE(a_status_waits_for_the_messages_before_it),
	CASE(a_response_header_that_is_too_large_fails_its_request_alone),
	CASE(each_of_many_frontends_has_its_own_routes), CASE(a_frontend_without_routes_says_why),
	CASE(plain_requests_get_http_statuses), CASE(exhausted_pools_fail_requests_and_heal),
	CASE(too_few_chunks_fail_requests_and_heal), CASE(a_client_that_says_nothing_is_closed),
	CASE(a_client_that_never_ends_its_header_block_is_closed),
	CASE(an_endpoint_of_another_worker_is_connected_when_picked), CASE(own_attempts_back_off),
	CASE(spare_connections_are_opened_and_closed),
	CASE(a_released_backend_finishes_its_streams_and_may_come_back),
	CASE(a_full_event_ring_delays_but_loses_nothing))
