// SPDX-License-Identifier: Apache-2.0
// An access log service that is there, away, slow or refuses, over loopback, before a server of
// ours; the time is the test's.
#include "ctrl/access_log/access_log.h"
#include "ctrl/access_log/collector.h"
#include "ctrl/access_log/entry.h"
#include "ctrl/access_log/output.h"
#include "ctrl/loop.h"
#include "ctrl/rpc/server.h"
#include "envoy/service/accesslog/v3/als.pb-c.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "proto/wire.h"
#include "tests/support/check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef Envoy__Service__Accesslog__V3__StreamAccessLogsMessage Message;
typedef Envoy__Config__Core__V3__Node Node;
#define MESSAGE (&envoy__service__accesslog__v3__stream_access_logs_message__descriptor)
#define METHOD "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs"
#define PATIENCE_MS 30000
#define BATCH 4096

struct world {
	struct rpc_server *server; // NULL = it is away
	int port;
	struct rpc_call *call; // the newest; NULL = it is over
	bool refuses; // the method is not known
	unsigned n_calls, n_messages, n_entries, n_named;
	char paths[512]; // of entries, as they came
	uint64_t now_ns;
	struct access_output *out;
	uint8_t *node; // owned
	struct access_node who;
	struct access_entry_form *form;
};

static void *on_open(void *ctx, struct rpc_call *c, struct str method, const char *peer)
{
	struct world *w = ctx;
	w->call = c;
	w->n_calls++;
	return str_eq(method, STR(METHOD)) && !w->refuses ? ctx : NULL;
}

static void on_message(void *ctx, const uint8_t *bytes, size_t len)
{
	struct world *w = ctx;
	Message *m = proto_unpack(MESSAGE, bytes, len, NULL);
	assert_non_null(m);
	w->n_messages++;
	if (m->identifier) {
		w->n_named++;
		assert_string_equal(m->identifier->log_name, "edge");
		assert_string_equal(m->identifier->node->id, "me");
	}
	for (size_t i = 0; i < m->http_logs->n_log_entry; i++, w->n_entries++) {
		size_t at = strlen(w->paths);
		snprintf(w->paths + at, sizeof(w->paths) - at, "%s ",
			m->http_logs->log_entry[i]->request->path);
	}
	proto_free(m);
}

static void on_sent(void *ctx)
{
}

static void on_closed(void *ctx)
{
	struct world *w = ctx;
	w->call = NULL;
}

static const struct rpc_events events = {on_open, on_message, on_sent, on_closed, NULL};

static void listen_again(struct world *w)
{
	struct lb_err err = {.text = ""};
	char address[32];
	snprintf(address, sizeof(address), "127.0.0.1:%d", w->port);
	const struct rpc_server_conf conf = {address, 10, 4 << 20};
	if (rpc_server_new(&conf, &events, w, &w->server, &err))
		fail_msg("%s", err.text);
	w->port = rpc_server_port(w->server);
}

static void go_away(struct world *w)
{
	rpc_server_free(w->server);
	w->server = NULL;
}

static int set_up(void **state)
{
	static struct world w;
	struct lb_err err = {.text = ""};
	Node node;
	memset(&w, 0, sizeof(w));
	log_set_level(LOG_LEVEL_ERROR);
	w.now_ns = NS_PER_SECOND;
	envoy__config__core__v3__node__init(&node);
	node.id = (char[]){"me"};
	assert_int_equal(proto_pack(&node.base, &w.node, &w.who.len), 0);
	w.who.bytes = w.node;
	assert_int_equal(access_entry_form_new("", &w.form, &err), 0);
	listen_again(&w);
	char target[32];
	snprintf(target, sizeof(target), "127.0.0.1:%d", w.port);
	const struct access_place place = {.kind = ACCESS_COLLECTOR,
		.path = target,
		.log_name = "edge",
		.batch_bytes = BATCH,
		.batch_ns = NS_PER_SECOND};
	assert_int_equal(access_collector_new(&place, &w.who, 1, &w.out, &err), 0);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	access_output_free(w->out);
	rpc_server_free(w->server);
	access_entry_form_free(w->form);
	free(w->node);
	return 0;
}

static void put(struct world *w, const char *path)
{
	struct lb_access_record r;
	lb_access_begin(&r);
	lb_access_put(&r, LB_ACCESS_PATH, str_from(path));
	const struct access_view v = {.record = &r, .frontend = "web"};
	struct access_line line = {.p = w->out->buf + w->out->len, .size = ACCESS_LINE_MAX};
	assert_true(access_output_room(w->out) >= ACCESS_LINE_MAX);
	access_entry_write(w->form, &v, &line);
	w->out->len += line.len;
}

// A round of the writer, and one of the server.
static bool turn(struct world *w)
{
	access_output_open(w->out, w->now_ns);
	bool all = access_output_flush(w->out);
	if (w->server)
		rpc_server_dispatch(w->server);
	return all;
}

// Rounds without a second between them, until it is so. What the server has seen is not yet what
// libgrpc has told us, nor the other way round.
#define UNTIL(w, what)                                                                             \
	do {                                                                                       \
		int left_ms = PATIENCE_MS;                                                         \
		for (turn(w); !(what) && left_ms > 0; left_ms--, turn(w))                          \
			usleep(1000);                                                              \
		assert_true(what);                                                                 \
	} while (0)

static void pass(struct world *w, uint64_t ns)
{
	w->now_ns += ns;
	turn(w);
}

static uint64_t n_lines(const struct world *w)
{
	return counter_read(&w->out->n_lines);
}

static uint64_t n_cut(const struct world *w)
{
	return counter_read(&w->out->n_cut);
}

// OPS-215: who we are is in the first message alone.
static void entries_wait_for_a_batch_and_come_in_order(void **state)
{
	struct world *w = *state;
	put(w, "/1");
	turn(w);
	pass(w, NS_PER_SECOND - 1);
	assert_int_equal(w->n_calls, 0);
	put(w, "/2");
	pass(w, 1);
	UNTIL(w, w->n_entries == 2);
	put(w, "/3");
	turn(w);
	pass(w, NS_PER_SECOND);
	UNTIL(w, w->n_entries == 3);
	assert_string_equal(w->paths, "/1 /2 /3 ");
	assert_int_equal(w->n_calls, 1);
	assert_int_equal(w->n_messages, 2);
	assert_int_equal(w->n_named, 1);
	UNTIL(w, n_lines(w) == 3);
	assert_int_equal(n_cut(w), 0);
}

// OPS-215
static void a_batch_that_is_full_does_not_wait(void **state)
{
	struct world *w = *state;
	while (w->out->len < BATCH)
		put(w, "/");
	unsigned n = (unsigned)access_output_n_waiting(w->out);
	UNTIL(w, w->n_entries == n);
	assert_int_equal(w->n_messages, 1);
	assert_false(access_output_waits(w->out));
}

// OPS-218: nothing is lost that there is room for.
static void a_collector_that_comes_back_has_what_waited(void **state)
{
	struct world *w = *state;
	put(w, "/1");
	turn(w);
	go_away(w);
	pass(w, NS_PER_SECOND);
	UNTIL(w, w->out->error != 0);
	assert_string_equal(access_place_error(w->out->error), "UNAVAILABLE");
	put(w, "/2");
	assert_int_equal(access_output_n_waiting(w->out), 2);
	listen_again(w);
	for (int left = PATIENCE_MS / 10; w->n_entries < 2 && left; left--) {
		pass(w, NS_PER_SECOND);
		usleep(10000);
	}
	assert_string_equal(w->paths, "/1 /2 ");
	pass(w, ACCESS_SURE_NS);
	UNTIL(w, n_lines(w) == 2);
	assert_int_equal(w->out->error, 0);
	assert_int_equal(n_cut(w), 0);
}

// OPS-218
static void a_stream_that_the_server_ends_is_followed_by_another(void **state)
{
	struct world *w = *state;
	put(w, "/1");
	turn(w);
	pass(w, NS_PER_SECOND);
	UNTIL(w, w->n_entries == 1);
	rpc_call_finish(w->call);
	UNTIL(w, !w->call && n_lines(w) == 1);
	assert_int_equal(w->out->error, 0);
	put(w, "/2");
	turn(w);
	pass(w, 2 * NS_PER_SECOND); // of a pause, too
	UNTIL(w, w->n_entries == 2);
	assert_int_equal(w->n_calls, 2);
	assert_int_equal(w->n_named, 2);
}

// OPS-218: what such a server was sent is not taken for written.
static void a_server_without_the_service_takes_nothing(void **state)
{
	struct world *w = *state;
	w->refuses = true;
	for (unsigned i = 0; i < 3; i++) {
		put(w, "/1");
		turn(w);
		w->out->error = 0;
		pass(w, 20 * NS_PER_SECOND);
		UNTIL(w, w->out->error != 0);
		assert_string_equal(access_place_error(w->out->error), "UNIMPLEMENTED");
		turn(w);
	}
	assert_int_equal(w->n_calls, 3);
	assert_int_equal(n_lines(w), 0);
	assert_int_equal(counter_read(&w->out->n_failed) + access_output_n_waiting(w->out), 3);
}

// OPS-218
static void without_a_server_memory_is_bounded(void **state)
{
	struct world *w = *state;
	go_away(w);
	unsigned n = 0;
	for (int round = 0; round < 3; round++) {
		for (; access_output_room(w->out) >= ACCESS_LINE_MAX; n++)
			put(w, "/");
		pass(w, NS_PER_SECOND);
	}
	assert_int_equal(access_output_n_waiting(w->out), n);
	assert_true(access_output_room(w->out) < ACCESS_LINE_MAX);
	access_output_close(w->out);
	assert_int_equal(n_cut(w), n);
	assert_int_equal(access_output_n_waiting(w->out), 0);
}

// OPS-218: it reads nothing.
static void a_slow_server_costs_a_message_and_a_buffer(void **state)
{
	struct world *w = *state;
	unsigned n = 0;
	while (n < 200000 && access_output_room(w->out) >= ACCESS_LINE_MAX) {
		for (int i = 0; i < 100 && access_output_room(w->out) >= ACCESS_LINE_MAX; i++, n++)
			put(w, "/");
		w->now_ns += NS_PER_SECOND;
		access_output_open(w->out, w->now_ns);
		assert_true(access_output_flush(w->out)); // the writer has no need to wait
	}
	assert_true(access_output_room(w->out) < ACCESS_LINE_MAX);
	assert_int_equal(n_cut(w), 0);
	UNTIL(w, w->n_entries == n);
	pass(w, ACCESS_SURE_NS);
	UNTIL(w, n_lines(w) == n);
	assert_int_equal(w->n_calls, 1);
}

// OPS-219: one that goes has all of its entries, and the server hears that there are no more.
static void the_last_entries_do_not_wait_and_the_stream_ends(void **state)
{
	struct world *w = *state;
	put(w, "/1");
	access_output_finish(w->out, true);
	assert_true(access_output_waits(w->out));
	UNTIL(w, !access_output_waits(w->out) && !w->call);
	assert_string_equal(w->paths, "/1 ");
	assert_int_equal(n_lines(w), 1);
	assert_int_equal(w->out->error, 0);
	// It is wanted again.
	access_output_finish(w->out, false);
	put(w, "/2");
	turn(w);
	pass(w, NS_PER_SECOND);
	UNTIL(w, w->n_entries == 2);
	assert_int_equal(w->n_named, 2);
}

// OPS-219
static void one_that_is_wanted_after_all_has_another_stream(void **state)
{
	struct world *w = *state;
	put(w, "/1");
	access_output_finish(w->out, true);
	UNTIL(w, w->n_entries == 1 && access_output_n_waiting(w->out) == 0);
	access_output_flush(w->out); // says that none follows
	access_output_finish(w->out, false);
	put(w, "/2");
	turn(w);
	pass(w, 2 * NS_PER_SECOND);
	UNTIL(w, w->n_entries == 2);
	assert_int_equal(w->n_named, 2);
	assert_int_equal(n_cut(w), 0);
}

// A log of shunt.yaml with the service alone, its own thread and clock, and a request in its ring.
struct running {
	struct access_log *log;
	struct lb_access *ring;
};

static struct running run(struct world *w, uint64_t batch_ns)
{
	static const struct access_log_frontend front = {.name = "front"};
	const struct lb_access_filter all = {.sample = LB_ACCESS_SAMPLE_ALL};
	struct running r = {.ring = lb_access_new(&all)};
	struct lb_err err = {.text = ""};
	struct access_place own = w->out->place;
	own.batch_ns = batch_ns;
	const struct access_log_conf conf = {.logs = {.own_collector = &own, .node = w->who},
		.frontends = &front,
		.n_frontends = 1,
		.workers = &r.ring,
		.n_workers = 1,
		.clock_ns = loop_clock_ns,
		.wall_ns = loop_wall_ns};
	assert_non_null(r.ring);
	if (access_log_new(&conf, &r.log, &err))
		fail_msg("%s", err.text);
	struct lb_access_record record;
	lb_access_begin(&record);
	record.logs = LB_ACCESS_OWN;
	lb_access_put(&record, LB_ACCESS_PATH, STR("/1"));
	lb_access_tell(r.ring, &record);
	return r;
}

// It sends what waits, while the server reads.
static void *end_log(void *log)
{
	access_log_free(log);
	return NULL;
}

static void stop(struct world *w, struct running r)
{
	pthread_t ends;
	assert_int_equal(pthread_create(&ends, NULL, end_log, r.log), 0);
	UNTIL(w, !w->call);
	pthread_join(ends, NULL);
	lb_access_free(r.ring);
}

// OPS-215: the writer's rounds send what is due, while the log goes on.
static void a_log_that_goes_on_sends_what_is_due(void **state)
{
	struct world *w = *state;
	struct running r = run(w, NS_PER_MS);
	UNTIL(w, w->n_entries == 1);
	assert_string_equal(w->paths, "/1 ");
	assert_non_null(w->call);
	stop(w, r);
	assert_int_equal(w->n_entries, 1);
}

// OPS-215, OPS-219: what waits goes when the process ends.
static void the_log_of_shunt_yaml_has_entries_that_go_at_its_end(void **state)
{
	struct world *w = *state;
	struct running r = run(w, 3600 * NS_PER_SECOND);
	pthread_t ends;
	assert_int_equal(pthread_create(&ends, NULL, end_log, r.log), 0);
	UNTIL(w, w->n_entries == 1);
	pthread_join(ends, NULL);
	assert_string_equal(w->paths, "/1 ");
	lb_access_free(r.ring);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_SUITE("ctrl/access_log/collector", CASE(entries_wait_for_a_batch_and_come_in_order),
	CASE(a_batch_that_is_full_does_not_wait), CASE(a_collector_that_comes_back_has_what_waited),
	CASE(a_stream_that_the_server_ends_is_followed_by_another),
	CASE(a_server_without_the_service_takes_nothing), CASE(without_a_server_memory_is_bounded),
	CASE(a_slow_server_costs_a_message_and_a_buffer),
	CASE(the_last_entries_do_not_wait_and_the_stream_ends),
	CASE(one_that_is_wanted_after_all_has_another_stream),
	CASE(a_log_that_goes_on_sends_what_is_due),
	CASE(the_log_of_shunt_yaml_has_entries_that_go_at_its_end))
