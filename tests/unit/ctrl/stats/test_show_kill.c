// SPDX-License-Identifier: Apache-2.0
// `kill`, `ping`, `show tcp`, `show neighbors` and `show addresses`: the words they take, what
// workers are asked, and what is made of their answers.
#include "ctrl/stats/inflight_ask.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/stats/inflight_fixture.h"

#include <stdlib.h>
#include <string.h>

// OPS-194
static void tcp_tells_what_ss_tells_of_the_kernels(void **state)
{
	struct world *w = *state;
	struct stats_follow *follow = begin("show tcp side=backend state=established json");
	assert_null(look(follow));
	struct lb_inflight *f = expect_question(w);
	assert_int_equal(f->query.kind, LB_INFLIGHT_CONNS);
	assert_int_equal(f->query.states, UINT32_MAX);
	tell_conn(f, 1, LB_INFLIGHT_ANY);
	tell_conn(f, 2, ids[1]);
	lb_inflight_done(f);
	json_t *data = end(follow);
	assert_int_equal(json_integer_value(json_object_get(data, "shown")), 1);
	json_t *row = json_array_get(json_object_get(data, "connections"), 0);
	json_object_del(row, "age_s");
	json_object_del(row, "handle");
	json_t *expected = json_pack(
		"{ss ss ss ss ss ss si si si si sn sf sf sn sf si si si si si si si si ss si}",
		"state", "established", "side", "backend", "peer", "10.81.0.1:5000", "local",
		"10.0.0.1:80", "frontend", "", "cluster", "blue, green", "recv_queue", 7,
		"send_queue", 3000, "in_flight", 2920, "cwnd", 14600, "ssthresh", "rtt_ms", 1.5,
		"rttvar_ms", 0.25, "min_rtt_ms", "rto_ms", 200.0, "backoffs", 1, "retransmits", 3,
		"pace_bytes_s", 12000000, "mss", 1460, "send_window", 65536, "recv_window", 262144,
		"send_scale", 7, "recv_scale", 9, "congestion", "cubic", "worker", 0);
	assert_non_null(expected);
	assert_true(json_equal(row, expected));
	json_decref(expected);
	json_decref(data);
}

static const struct stats_caller operator_ = {.level = STATS_OPERATOR};

// The text of an answer at once; from malloc.
static char *refusal(const char *command, const struct stats_caller *caller)
{
	struct stats_follow *follow = NULL;
	char *text = show_answer(show, caller, command, &follow);
	assert_null(follow);
	return text;
}

static struct stats_follow *begin_kill(const char *command)
{
	struct stats_follow *follow = NULL;
	char *text = show_answer(show, &operator_, command, &follow);
	if (text[0])
		fail_msg("%s", text);
	free(text);
	assert_true(follow && follow->is_soon);
	return follow;
}

static uint64_t number(const json_t *data, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(data, key));
}

// OPS-191: conditions of any column, an order and a limit, as of the listing.
static void a_kill_ends_the_rows_that_its_listing_would_tell(void **state)
{
	struct world *w = *state;
	struct stats_follow *follow =
		begin_kill("kill request cluster=blue path~slow sort=-age_s limit=2 json");
	assert_null(look(follow));
	struct lb_inflight *f = expect_question(w);
	assert_int_equal(f->query.limit, LB_INFLIGHT_ROWS);
	for (uint64_t i = 1; i <= 4; i++)
		tell_request(f, i);
	strcpy(f->rows[1].request.path, "/fast");
	lb_inflight_done(f);
	assert_null(look(follow));
	assert_null(look(follow));
	f = expect_question(w);
	assert_true(f->ends);
	for (uint32_t i = 0; i < 4; i++) // the oldest of those whose path it is
		assert_int_equal(f->rows[i].is_marked, i == 0 || i == 2);
	assert_null(look(follow));
	f->n_ended = 1; // the other one had ended meanwhile
	lb_inflight_done(f);
	json_t *data = end(follow);
	assert_int_equal(number(data, "matching"), 4);
	assert_int_equal(number(data, "chosen"), 2);
	assert_int_equal(number(data, "ended"), 1);
	json_decref(data);
}

// OPS-191
static void a_kill_by_name_asks_for_that_alone(void **state)
{
	struct world *w = *state;
	struct stats_follow *follow = begin_kill("kill request 3-r2f-1c3a5e json");
	assert_null(look(follow));
	const struct lb_inflight_query *q = &expect_question(w)->query;
	assert_true(q->has_handle);
	assert_int_equal(q->handle.worker, 3);
	assert_int_equal(q->handle.slot, 0x2f);
	assert_int_equal(q->handle.began_ns, 0x1c3a5e);
	lb_inflight_done(w->link->inflight);
	assert_null(look(follow));
	assert_true(spsc_is_empty(&w->link->commands)); // nobody is asked to end nothing
	char *text = look(follow);
	assert_string_equal(text, "error: nothing of that id is in flight, try show requests\n");
	free(text);
	follow->free(follow);
	follow = begin_kill("kill request some-id json");
	assert_null(look(follow));
	q = &expect_question(w)->query;
	assert_false(q->has_handle);
	assert_string_equal(q->id, "some-id");
	follow->free(follow);
	lb_inflight_done(w->link->inflight);
	follow = begin_kill("kill conn 0-b1-2 json");
	assert_null(look(follow));
	q = &expect_question(w)->query;
	assert_true(q->has_handle && q->handle.is_backend);
	assert_int_equal(q->kind, LB_INFLIGHT_CONNS);
	lb_inflight_done(w->link->inflight);
	follow->free(follow);
}

// OPS-191: a condition may hold for nothing, a name is wrong then, unless a worker did not say.
static void only_a_name_that_is_nobodys_is_an_error(void **state)
{
	static const struct {
		const char *command, *answer;
		bool is_silent;
	} rows[] = {{"kill request cluster=blue json", NULL, false},
		{"kill request some-id",
			"error: nothing of that id is in flight, try show requests\n", false},
		{"kill conn 0-b1-2 json",
			"error: nothing of that id is in flight, try show conns\n", false},
		{"kill request some-id json", NULL, true}};
	struct world *w = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stats_follow *follow = begin_kill(rows[i].command);
		assert_null(look(follow));
		struct lb_inflight *f = expect_question(w);
		if (rows[i].is_silent)
			let_pass(w, INFLIGHT_PATIENCE_NS);
		else
			lb_inflight_done(f);
		assert_null(look(follow));
		char *text = rows[i].answer ? look(follow) : NULL;
		if (text) {
			assert_string_equal(text, rows[i].answer);
			free(text);
			follow->free(follow);
			continue;
		}
		json_t *data = end(follow);
		assert_int_equal(number(data, "matching"), 0);
		assert_int_equal(json_array_size(json_object_get(data, "silent_workers")),
			rows[i].is_silent);
		json_decref(data);
	}
}

// Each command, and what its error begins with.
static void assert_refused(const char *const wrong[][2], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *text = refusal(wrong[i][0], &operator_);
		if (strncmp(text, "error: ", 7) != 0 ||
			strncmp(text + 7, wrong[i][1], strlen(wrong[i][1])) != 0)
			fail_msg("%s: %s", wrong[i][0], text);
		free(text);
	}
}

// OPS-191
static void a_kill_that_names_nothing_is_refused(void **state)
{
	static const char *const wrong[][2] = {
		{"kill request", "an id or a condition must follow, not only a limit"},
		{"kill conn limit=5", "an id or a condition must follow"},
		{"kill conn sort=age_s", "an id or a condition must follow"},
		{"kill conn some-id", "'some-id' is no handle, try show conns"},
		{"kill conn 0-r1-2", "'0-r1-2' is no handle"},
		{"kill request a b", "unexpected argument 'b'"},
		{"kill request state=idle", "state: 'idle' is none of"},
		{"kill request colour=blue", "no column 'colour'"},
		{"kill request limit=1001 cluster=blue", "limit: '1001' is not between"}};
	struct world *w = *state;
	assert_refused(wrong, sizeof(wrong) / sizeof(wrong[0]));
	char *text = refusal("kill request some-id", &anybody);
	assert_non_null(strstr(text, "'kill request' needs the level operator"));
	free(text);
	assert_true(spsc_is_empty(&w->link->commands));
}

// OPS-193
static void a_worker_that_does_not_say_what_ended_is_named(void **state)
{
	struct world *w = *state;
	struct stats_follow *follow = begin_kill("kill request frontend=api json");
	assert_null(look(follow));
	struct lb_inflight *f = expect_question(w);
	tell_request(f, 1);
	lb_inflight_done(f);
	assert_null(look(follow));
	assert_null(look(follow));
	assert_true(expect_question(w)->rows[0].is_marked);
	let_pass(w, INFLIGHT_PATIENCE_NS);
	json_t *data = end(follow);
	assert_int_equal(number(data, "chosen"), 1);
	assert_int_equal(number(data, "ended"), 0);
	assert_int_equal(json_array_size(json_object_get(data, "silent_workers")), 1);
	json_decref(data);
}

static void tell_address(struct lb_inflight *f, uint8_t last, uint64_t rival_ns)
{
	struct lb_inflight_row *row = lb_inflight_find_place(f, 0);
	row->peer = (struct ip_port){.ip = ip_from_v4(0x0a000000u + last)};
	row->address = (struct lb_inflight_address){.rival_ns = rival_ns,
		.rival = {2, 0, 0, 0, 0, last},
		.port = 1,
		.kind = LB_ADDRESS_port,
		.bits = 24 + IP_V4_BITS,
		.answers = true};
}

// OPS-196
static void addresses_are_told_once_with_the_newest_claim(void **state)
{
	struct world *w = *state;
	let_pass(w, 10 * NS_PER_SECOND);
	uint64_t now_ns = twheel_now(w->wheel);
	struct stats_follow *follow = begin("show addresses address=10.0.0.0/8 json");
	assert_null(look(follow));
	struct lb_inflight *f = expect_question(w);
	assert_int_equal(f->query.kind, LB_INFLIGHT_ADDRESSES);
	assert_int_equal(f->query.source.bits, 8 + IP_V4_BITS);
	tell_address(f, 7, 0);
	tell_address(f, 8, now_ns - 2 * NS_PER_SECOND);
	tell_address(f, 8, now_ns - NS_PER_SECOND); // as another worker says it
	lb_inflight_done(f);
	json_t *data = end(follow), *rows = json_object_get(data, "addresses");
	assert_int_equal(json_array_size(rows), 2);
	json_t *expected = json_pack("{si ss si ss sb ss ss sf}", "port", 1, "address", "10.0.0.8",
		"bits", 24, "kind", "port", "answers", 1, "frontends", "", "conflict",
		"02:00:00:00:00:08", "conflict_age_s", 1.0);
	assert_true(json_equal(json_array_get(rows, 1), expected));
	assert_true(json_is_null(json_object_get(json_array_get(rows, 0), "conflict_age_s")));
	json_decref(expected);
	json_decref(data);
}

// OPS-195
static void neighbors_are_told_with_what_workers_know(void **state)
{
	struct world *w = *state;
	let_pass(w, 10 * NS_PER_SECOND);
	struct stats_follow *follow = begin("show neighbors state=reachable json");
	assert_null(look(follow));
	struct lb_inflight *f = expect_question(w);
	assert_int_equal(f->query.kind, LB_INFLIGHT_NEIGHBORS);
	struct lb_inflight_row *row =
		lb_inflight_find_place(f, twheel_now(w->wheel) - 3 * NS_PER_SECOND);
	row->peer = (struct ip_port){.ip = ip_from_v4(0x0a000007)};
	row->state = LB_NEIGHBOR_reachable;
	row->neighbor = (struct lb_inflight_neighbor){
		.mac = {2, 0, 0, 0, 0, 0xaa}, .has_mac = true, .is_gateway = true, .n_asks = 1};
	lb_inflight_done(f);
	json_t *data = end(follow);
	json_t *expected = json_pack("{si ss ss ss sf sb ss si si si}", "port", 0, "address",
		"10.0.0.7", "mac", "02:00:00:00:00:aa", "state", "reachable", "age_s", 3.0,
		"gateway", 1, "watch", "up", "asked", 1, "held", 0, "worker", 0);
	assert_true(json_equal(json_array_get(json_object_get(data, "neighbors"), 0), expected));
	json_decref(expected);
	json_decref(data);
}

// A turn of the control thread may take a while, in which a worker answers.
static void what_a_worker_has_just_heard_has_no_age(void **state)
{
	struct world *w = *state;
	uint64_t later_ns = twheel_now(w->wheel) + NS_PER_SECOND;
	struct stats_follow *follow = begin("show neighbors json");
	assert_null(look(follow));
	struct lb_inflight *f = expect_question(w);
	lb_inflight_find_place(f, later_ns)->neighbor.has_mac = true;
	lb_inflight_done(f);
	json_t *data = end(follow), *row = json_array_get(json_object_get(data, "neighbors"), 0);
	assert_true(json_real_value(json_object_get(row, "age_s")) == 0);
	json_decref(data);
	follow = begin("show addresses json");
	assert_null(look(follow));
	f = expect_question(w);
	tell_address(f, 8, later_ns);
	lb_inflight_done(f);
	data = end(follow);
	row = json_array_get(json_object_get(data, "addresses"), 0);
	assert_true(json_real_value(json_object_get(row, "conflict_age_s")) == 0);
	json_decref(data);
}

static struct lb_ping *expect_ping(struct world *w)
{
	struct lb_command c;
	assert_true(spsc_read(&w->link->commands, &c));
	assert_int_equal(c.kind, LB_COMMAND_PING);
	assert_false(lb_ping_is_free(&w->link->ping));
	return &w->link->ping;
}

// OPS-197
static void a_ping_tells_what_came_of_each_request(void **state)
{
	struct world *w = *state;
	struct stats_follow *follow = begin_kill("ping 10.0.0.7 count 3 json");
	struct lb_ping *p = expect_ping(w);
	assert_int_equal(p->count, 3);
	assert_int_equal(p->port, LB_PING_ANY_PORT);
	char *text = refusal("ping 10.0.0.8", &operator_); // OPS-198
	assert_string_equal(text, "error: another ping is under way, try again\n");
	free(text);
	assert_null(look(follow));
	p->source = ip_from_v4(0x0a000001);
	p->hop = ip_from_v4(0x0a0000fe);
	p->replies[0] =
		(struct lb_ping_reply){.result = LB_PING_ANSWERED, .rtt_ns = 1500 * NS_PER_US};
	p->replies[1] = (struct lb_ping_reply){
		.result = LB_PING_UNREACHABLE, .code = 1, .from = ip_from_v4(0x0a000009)};
	p->replies[2] = (struct lb_ping_reply){.result = LB_PING_NO_NEIGHBOR};
	lb_ping_done(p);
	json_t *data = end(follow), *rows = json_object_get(data, "replies");
	static const char *const wanted[][3] = {{"answered", "10.0.0.7", ""},
		{"unreachable", "10.0.0.9", "host"},
		{"no answer to ARP or neighbor discovery", "10.0.0.254", ""}};
	for (size_t i = 0; i < 3; i++) {
		json_t *row = json_array_get(rows, i);
		assert_string_equal(
			json_string_value(json_object_get(row, "result")), wanted[i][0]);
		assert_string_equal(json_string_value(json_object_get(row, "from")), wanted[i][1]);
		assert_string_equal(
			json_string_value(json_object_get(row, "reason")), wanted[i][2]);
	}
	assert_int_equal(number(data, "answered"), 1);
	assert_true(json_real_value(json_object_get(data, "mean_ms")) == 1.5);
	json_decref(data);
}

// OPS-198
static void a_ping_is_bounded_and_an_operators(void **state)
{
	static const char *const wrong[][2] = {{"ping", "an IPv4 or IPv6 address must follow"},
		{"ping example.com", "an IPv4 or IPv6 address must follow"},
		{"ping 10.0.0.7 count 21", "count: '21' is not between 1 and 20"},
		{"ping 10.0.0.7 count", "count: '' is not"},
		{"ping 10.0.0.7 port 9", "port: '9' is none of the"},
		{"ping 10.0.0.7 fast", "unexpected argument 'fast'"},
		{"ping fe80::1", "a link-local address is known on one link"}};
	struct world *w = *state;
	assert_refused(wrong, sizeof(wrong) / sizeof(wrong[0]));
	char *text = refusal("ping 10.0.0.7", &anybody);
	assert_non_null(strstr(text, "'ping' needs the level operator"));
	free(text);
	assert_true(spsc_is_empty(&w->link->commands));
	struct stats_follow *follow = begin_kill("ping 10.0.0.7");
	assert_null(look(follow));
	let_pass(w, 10 * NS_PER_SECOND); // a worker that hangs
	text = look(follow);
	assert_string_equal(text, "error: worker 0 says nothing, try show workers\n");
	free(text);
	follow->free(follow);
}

// OPS-198: the worker is free before the answer is read.
static void a_ping_waits_until_the_answer_of_the_last_one_is_read(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 2; i++) {
		struct stats_follow *follow = begin_kill("ping 10.0.0.7 count 1 json");
		struct lb_ping *p = expect_ping(w);
		p->replies[0] = (struct lb_ping_reply){.result = LB_PING_TIMEOUT};
		lb_ping_done(p);
		char *text = refusal("ping 10.0.0.8 count 2", &operator_);
		assert_string_equal(text, "error: another ping is under way, try again\n");
		free(text);
		if (i) {
			follow->free(follow); // who goes leaves room, too
			continue;
		}
		json_t *data = end(follow);
		assert_string_equal(
			json_string_value(json_object_get(data, "address")), "10.0.0.7");
		json_decref(data);
	}
	struct stats_follow *next = begin_kill("ping 10.0.0.8");
	lb_ping_done(expect_ping(w));
	next->free(next);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, inflight_set_up, inflight_tear_down)

RUN_SUITE("ctrl/show_kill", CASE(tcp_tells_what_ss_tells_of_the_kernels),
	CASE(a_kill_ends_the_rows_that_its_listing_would_tell),
	CASE(a_kill_by_name_asks_for_that_alone), CASE(a_kill_that_names_nothing_is_refused),
	CASE(only_a_name_that_is_nobodys_is_an_error),
	CASE(a_worker_that_does_not_say_what_ended_is_named),
	CASE(addresses_are_told_once_with_the_newest_claim),
	CASE(neighbors_are_told_with_what_workers_know),
	CASE(what_a_worker_has_just_heard_has_no_age), CASE(a_ping_tells_what_came_of_each_request),
	CASE(a_ping_is_bounded_and_an_operators),
	CASE(a_ping_waits_until_the_answer_of_the_last_one_is_read))
