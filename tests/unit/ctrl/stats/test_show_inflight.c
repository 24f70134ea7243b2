// SPDX-License-Identifier: Apache-2.0
// `show requests`, `show conns`, `show tcp` and `kill`: the words they take, what workers are
// asked, and what is made of their answers. The test plays the worker.
#include "ctrl/assemble/workers.h"
#include "ctrl/stats/endpoint_clusters.h"
#include "ctrl/stats/inflight_ask.h"
#include "ctrl/stats/inflight_handle.h"
#include "ctrl/stats/show.h"
#include "ctrl/stats/stats_server.h"
#include "lb/base/twheel.h"
#include "lb/pick/link.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <event2/buffer.h>
#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct stats_caller anybody = {.level = STATS_USER};
static struct show *show;
static uint32_t ids[2]; // of the endpoints 10.0.0.1 and 10.0.0.2

static const struct told_endpoint backends[] = {
	{{{{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}, 80}, LB_LEAF_HEALTHY, 1},
	{{{{[10] = 255, [11] = 255, [12] = 10, [15] = 2}}, 80}, LB_LEAF_HEALTHY, 1}};

static const struct res_vhost vhost = {
	"any", DOMAINS("*"), ROUTES({PREFIX("/"), CLUSTERS({"blue", 1}, {"green", 1})})};

static int set_up(void **state)
{
	if (world_set_up_both(state))
		return -1;
	struct world *w = *state;
	w->config.n_frontends = 2;
	static const struct told_locality localities[] = {
		{"", "", "", 1, backends, 2}, {"", "", "", 1, backends + 1, 1}};
	static const struct told_priority priorities[] = {{&localities[0], 1}, {&localities[1], 1}};
	struct res_endpoints *both = endpoints_of(&priorities[0], 1);
	struct res_endpoints *one = endpoints_of(&priorities[1], 1);
	apply(w, &vhost, (const char *const[]){"blue", "green"},
		(struct res_endpoints *[]){both, one}, 2);
	xds_res_put(&both->base);
	xds_res_put(&one->base);
	turns(w, 1);
	for (int i = 0; i < 2; i++) {
		struct lb_command c;
		assert_true(spsc_read(&w->link->commands, &c));
		assert_int_equal(c.kind, LB_COMMAND_CONNECT);
		ids[c.endpoint->addr.ip.b[15] - 1] = c.endpoint->id;
	}
	show = show_new(&(struct show_conf){.config = &w->config,
		.workers = w->workers,
		.assembler = w->assembler,
		.wheel = w->wheel});
	return show ? 0 : -1;
}

static int tear_down(void **state)
{
	show_free(show);
	return world_tear_down(state);
}

static struct stats_follow *begin(const char *command)
{
	struct stats_follow *follow = NULL;
	char *text = show_answer(show, &anybody, command, &follow);
	if (text[0])
		fail_msg("%s", text);
	free(text);
	assert_true(follow && follow->is_soon);
	return follow;
}

// What has come; NULL = it is yet to come.
static char *look(struct stats_follow *follow)
{
	struct evbuffer *out = evbuffer_new();
	bool is_all = !follow->more(follow, out);
	size_t len = evbuffer_get_length(out);
	char *text = is_all ? calloc(1, len + 1) : NULL;
	if (is_all)
		evbuffer_remove(out, text, len);
	else
		assert_int_equal(len, 0);
	evbuffer_free(out);
	return text;
}

static struct lb_inflight *expect_question(struct world *w)
{
	struct lb_command c;
	assert_true(spsc_read(&w->link->commands, &c));
	assert_int_equal(c.kind, LB_COMMAND_INFLIGHT);
	assert_false(lb_inflight_is_free(w->link->inflight));
	return w->link->inflight;
}

static json_t *end(struct stats_follow *follow)
{
	char *text = look(follow);
	assert_non_null(text);
	json_t *whole = json_loads(text, 0, NULL);
	json_t *data = json_incref(json_object_get(whole, "data"));
	if (!data)
		fail_msg("%s", text);
	json_decref(whole);
	free(text);
	follow->free(follow);
	return data;
}

static void let_pass(struct world *w, uint64_t ns)
{
	twheel_advance(w->wheel, twheel_now(w->wheel) + ns);
}

static const struct lb_inflight_request a_request = {
	.endpoint = {{{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}, 80},
	.has_endpoint = true,
	.route_index = 3,
	.n_attempts = 2,
	.id = "my id",
	.method = "GET",
	.authority = "a.example",
	.path = "/slow\n",
	.vhost = "any",
	.route = "canary",
	.cluster = "blue",
};

static void tell_request(struct lb_inflight *f, uint64_t began_ns)
{
	struct lb_inflight_row *row = lb_inflight_find_place(f, began_ns);
	row->bytes_in = 10;
	row->bytes_out = 20;
	row->peer = (struct ip_port){ip_from_v4(0x0a510001), 5000};
	row->frontend = 1;
	row->state = LB_REQUEST_sent;
	row->slot = 5;
	row->request = a_request;
}

static const char *handle_of(uint64_t began_ns)
{
	static char text[INFLIGHT_HANDLE_MAX];
	const struct lb_inflight_handle h = {.began_ns = began_ns, .slot = 5};
	return inflight_handle_print(LB_INFLIGHT_REQUESTS, &h, text);
}

// OPS-60, OPS-61
static void requests_are_told_with_all_that_workers_say_the_oldest_first(void **state)
{
	struct world *w = *state;
	let_pass(w, 10 * NS_PER_SECOND);
	uint64_t now_ns = twheel_now(w->wheel);
	struct stats_follow *follow = begin("show requests json");
	assert_null(look(follow));
	struct lb_inflight *f = expect_question(w);
	assert_int_equal(f->query.kind, LB_INFLIGHT_REQUESTS);
	assert_int_equal(f->query.limit, 100);
	assert_int_equal(f->query.frontend, LB_INFLIGHT_ANY);
	assert_int_equal(f->query.cluster, LB_INFLIGHT_ANY);
	assert_null(look(follow));
	f->n_all = 7;
	tell_request(f, now_ns - NS_PER_SECOND);
	tell_request(f, now_ns - 4 * NS_PER_SECOND);
	lb_inflight_done(f);
	json_t *data = end(follow);
	json_t *expected = json_pack("{sf ss ss ss ss ss ss ss ss si ss ss si si si ss si ss}",
		"age_s", 4.0, "state", "sent", "frontend", "api", "client", "10.81.0.1:5000",
		"method", "GET", "authority", "a.example", "path", "/slow\n", "virtual_host", "any",
		"route", "canary", "route_index", 3, "cluster", "blue", "endpoint", "10.0.0.1:80",
		"attempts", 2, "bytes_in", 10, "bytes_out", 20, "id", "my id", "worker", 0,
		"handle", handle_of(now_ns - 4 * NS_PER_SECOND));
	json_t *rows = json_object_get(data, "requests");
	assert_true(json_equal(json_array_get(rows, 0), expected));
	assert_int_equal(json_array_size(rows), 2);
	assert_int_equal(json_integer_value(json_object_get(data, "in_flight")), 7);
	assert_int_equal(json_integer_value(json_object_get(data, "matching")), 2);
	assert_int_equal(json_integer_value(json_object_get(data, "shown")), 2);
	assert_int_equal(json_array_size(json_object_get(data, "silent_workers")), 0);
	json_decref(expected);
	json_decref(data);
	follow = begin("show requests");
	assert_null(look(follow));
	tell_request(expect_question(w), now_ns);
	lb_inflight_done(w->link->inflight);
	char *text = look(follow);
	assert_non_null(strstr(text, "requests:\n  age_s"));
	assert_non_null(strstr(text, "/slow\\n"));
	assert_null(strstr(text, "\n\n"));
	free(text);
	follow->free(follow);
}

static void tell_conn(struct lb_inflight *f, uint64_t began_ns, uint32_t endpoint)
{
	struct lb_inflight_row *row = lb_inflight_find_place(f, began_ns);
	row->peer = (struct ip_port){ip_from_v4(0x0a510001), 5000};
	row->state = LB_CONN_open;
	row->conn = (struct lb_inflight_conn){.local = {ip_from_v4(0x0a000001), 80},
		.endpoint = endpoint,
		.n_streams = 2,
		.tcp = {.state = "established",
			.rtt_ns = 1500 * NS_PER_US,
			.rttvar_ns = 250 * NS_PER_US,
			.rto_ns = 200 * NS_PER_MS,
			.pace = 12000000,
			.send_queue = 3000,
			.recv_queue = 7,
			.cwnd = 14600,
			.ssthresh = UINT32_MAX,
			.in_flight = 2920,
			.n_resent = 3,
			.send_window = 65536,
			.recv_window = 262144,
			.mss = 1460,
			.send_scale = 7,
			.recv_scale = 9,
			.n_backoff = 1,
			.congestion = "cubic"},
		.tls = 0x0304,
		.http = 20};
}

// OPS-62
static void connections_are_told_with_their_frontend_or_all_clusters(void **state)
{
	struct world *w = *state;
	struct stats_follow *follow = begin("show conns json");
	assert_null(look(follow));
	struct lb_inflight *f = expect_question(w);
	assert_false(f->query.by_endpoint);
	tell_conn(f, 1, LB_INFLIGHT_ANY);
	tell_conn(f, 2, ids[0]);
	tell_conn(f, 3, ids[1]);
	lb_inflight_done(f);
	json_t *data = end(follow);
	static const char *const wanted[][3] = {
		{"client", "web", ""}, {"backend", "", "blue"}, {"backend", "", "blue, green"}};
	for (size_t i = 0; i < 3; i++) {
		json_t *row = json_array_get(json_object_get(data, "connections"), i);
		assert_string_equal(json_string_value(json_object_get(row, "side")), wanted[i][0]);
		assert_string_equal(
			json_string_value(json_object_get(row, "frontend")), wanted[i][1]);
		assert_string_equal(
			json_string_value(json_object_get(row, "cluster")), wanted[i][2]);
		assert_string_equal(json_string_value(json_object_get(row, "http")), "2");
		assert_string_equal(json_string_value(json_object_get(row, "tls")), "1.3");
		assert_true(json_real_value(json_object_get(row, "rtt_ms")) == 1.5);
		assert_int_equal(json_integer_value(json_object_get(row, "retransmits")), 3);
	}
	json_decref(data);
}

#define N_SHARING 500
#define N_ROWS 1000

// Which the set-up's clusters have, too.
static void let_clusters_share_the_endpoints(struct world *w)
{
	static char texts[N_SHARING][8];
	static const char *names[N_SHARING + 2] = {"blue", "green"};
	static struct res_endpoints *lists[N_SHARING + 2];
	static const struct told_locality here = {"", "", "", 1, backends, 2};
	static const struct told_priority priority = {&here, 1};
	for (int i = 0; i < N_SHARING; i++) {
		snprintf(texts[i], sizeof(texts[i]), "c%03d", i);
		names[i + 2] = texts[i];
	}
	for (int i = 0; i < N_SHARING + 2; i++)
		lists[i] = endpoints_of(&priority, 1);
	apply(w, &vhost, names, lists, N_SHARING + 2);
	for (int i = 0; i < N_SHARING + 2; i++)
		xds_res_put(&lists[i]->base);
	turns(w, 1);
}

static uint32_t n_commas(const char *text)
{
	uint32_t n = 0;
	for (; *text; text++)
		n += *text == ',';
	return n;
}

// OPS-62: hundreds of clusters may share their endpoints, and anybody may ask.
static void of_many_clusters_some_are_named(void **state)
{
	struct world *w = *state;
	let_clusters_share_the_endpoints(w);
	struct stats_follow *follow = begin("show conns limit=1000 json");
	assert_null(look(follow));
	struct lb_inflight *f = expect_question(w);
	for (uint64_t i = 0; i < N_ROWS; i++)
		tell_conn(f, i, ids[i % 2]);
	lb_inflight_done(f);
	json_t *data = end(follow), *row;
	json_t *rows = json_object_get(data, "connections");
	size_t i;
	assert_int_equal(json_array_size(rows), N_ROWS);
	json_array_foreach(rows, i, row)
	{
		const char *text = json_string_value(json_object_get(row, "cluster"));
		size_t len = strlen(text);
		assert_int_equal(n_commas(text), ENDPOINT_CLUSTERS_NAMED);
		assert_true(len > 5 && strcmp(text + len - 5, ", ...") == 0);
		assert_non_null(strstr(text, "blue, "));
	}
	json_decref(data);
}

static struct lb_inflight_query *query_of(struct world *w, const char *command)
{
	struct stats_follow *follow = begin(command);
	assert_null(look(follow));
	struct lb_inflight *f = expect_question(w);
	lb_inflight_done(f);
	json_decref(end(follow));
	return &f->query;
}

// OPS-64
static void conditions_become_the_workers_question(void **state)
{
	struct world *w = *state;
	struct assembler_cluster_info green;
	assert_true(assembler_find_cluster(w->assembler, "green", &green));
	let_pass(w, 10 * NS_PER_SECOND);
	const struct lb_inflight_query *q = query_of(w,
		"show requests cluster=green frontend=api source=10.1.0.0/16 state=sent older=2.5 "
		"limit=7 json");
	assert_int_equal(q->cluster, green.id);
	assert_false(q->by_endpoint);
	assert_int_equal(q->frontend, 1);
	assert_true(q->has_source);
	assert_int_equal(q->source.bits, 16 + IP_V4_BITS);
	assert_int_equal(q->states, 1u << LB_REQUEST_sent);
	assert_int_equal(q->before_ns, twheel_now(w->wheel) - 2500 * NS_PER_MS);
	assert_int_equal(q->limit, 7);
	q = query_of(w, "show conns cluster=green source=fd00::1 state=idle older=99999 json");
	assert_true(q->by_endpoint);
	for (uint32_t id = 0; id < LB_MAX_ENDPOINTS; id++)
		assert_int_equal(q->endpoints[id / 64] >> id % 64 & 1, id == ids[1]);
	assert_int_equal(q->source.bits, 128);
	assert_int_equal(q->states, 1u << LB_CONN_idle);
	assert_int_equal(q->before_ns, 0);
	q = query_of(w, "show conns source=10.0.0.9 json");
	assert_int_equal(q->source.bits, 128);
	assert_int_equal(q->before_ns, UINT64_MAX);
}

// OPS-64
static void wrong_conditions_get_a_clear_error_and_nobody_is_asked(void **state)
{
	static const char *const wrong[][2] = {
		{"show requests cluster=red", "no cluster 'red', try show clusters"},
		{"show requests frontend=red", "no frontend 'red', try show info"},
		{"show conns source=10.0.0", "source: '10.0.0' is not an address"},
		{"show conns source=10.0.0.1/33", "source: '10.0.0.1/33' is not an address"},
		{"show conns source=10.0.0.1/", "source: '10.0.0.1/' is not an address"},
		{"show requests state=idle",
			"state: 'idle' is none of paused, picking, connecting, queued, sending, "
			"sent, answering, delivering"},
		{"show conns state=sent", "state: 'sent' is none of connecting, header"},
		{"show requests older=", "older: '' is not a number of seconds"},
		{"show requests older=-1", "older: '-1' is not a number"},
		{"show requests older=nan", "older: 'nan' is not a number"},
		{"show requests limit=0", "limit: '0' is not between 1 and 1000"},
		{"show requests limit=1001", "limit: '1001' is not between"},
		{"show requests limit=1 limit=2", "unexpected argument 'limit=2', try help"},
		{"show requests colour", "unexpected argument 'colour'"},
		{"show requests colour=blue", "no column 'colour', there are age_s, state,"},
		{"show conns cluster!=blue sort=path", "no column 'path', there are age_s, "},
		{"show conns json json", "unexpected argument 'json'"}};
	struct world *w = *state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct stats_follow *follow = NULL;
		char *text = show_answer(show, &anybody, wrong[i][0], &follow);
		assert_null(follow);
		assert_int_equal(strncmp(text, "error: ", 7), 0);
		if (strncmp(text + 7, wrong[i][1], strlen(wrong[i][1])) != 0)
			fail_msg("%s: %s", wrong[i][0], text);
		free(text);
	}
	assert_true(spsc_is_empty(&w->link->commands));
}

// OPS-65
static void a_worker_that_says_nothing_is_left_out_and_named(void **state)
{
	struct world *w = *state;
	struct stats_follow *follow = begin("show requests json");
	assert_null(look(follow));
	struct lb_inflight *f = expect_question(w);
	let_pass(w, INFLIGHT_PATIENCE_NS - NS_PER_MS);
	assert_null(look(follow));
	let_pass(w, NS_PER_MS);
	json_t *data = end(follow);
	json_t *silent = json_object_get(data, "silent_workers");
	assert_int_equal(json_array_size(silent), 1);
	assert_int_equal(json_integer_value(json_array_get(silent, 0)), 0);
	json_decref(data);
	// It answers the old question before it gets the next one.
	follow = begin("show conns json");
	assert_null(look(follow));
	assert_true(spsc_is_empty(&w->link->commands));
	f->n_all = 99;
	lb_inflight_done(f);
	assert_null(look(follow));
	f = expect_question(w);
	assert_int_equal(f->query.kind, LB_INFLIGHT_CONNS);
	assert_int_equal(f->n_all, 0);
	lb_inflight_done(f);
	json_decref(end(follow));
}

// OPS-65
static void questions_wait_for_each_other(void **state)
{
	struct world *w = *state;
	struct stats_follow *first = begin("show requests limit=1 json");
	struct stats_follow *second = begin("show requests limit=2 json");
	struct stats_follow *third = begin("show requests limit=3 json");
	assert_null(look(first));
	assert_null(look(second));
	assert_int_equal(expect_question(w)->query.limit, 1);
	lb_inflight_done(w->link->inflight);
	assert_null(look(second));
	assert_true(spsc_is_empty(&w->link->commands));
	json_decref(end(first));
	assert_null(look(second));
	assert_int_equal(expect_question(w)->query.limit, 2);
	second->free(second); // whoever asked is gone
	assert_null(look(third));
	assert_true(spsc_is_empty(&w->link->commands));
	lb_inflight_done(w->link->inflight);
	assert_null(look(third));
	assert_int_equal(expect_question(w)->query.limit, 3);
	lb_inflight_done(w->link->inflight);
	json_decref(end(third));
}

static void assert_told_to_try_again(struct stats_follow *follow)
{
	char *text = look(follow);
	assert_non_null(text);
	assert_string_equal(text, "error: others are asking, try again\n");
	free(text);
	follow->free(follow);
}

// OPS-65: of workers that were not asked nothing is said.
static void who_waits_long_for_others_is_told_so(void **state)
{
	struct world *w = *state;
	struct stats_follow *first = begin("show requests json");
	assert_null(look(first));
	struct lb_inflight *f = expect_question(w);
	struct stats_follow *second = begin("show requests json");
	let_pass(w, 2 * NS_PER_SECOND);
	struct stats_follow *third = begin("show requests json");
	let_pass(w, INFLIGHT_QUEUE_NS - 2 * NS_PER_SECOND - NS_PER_MS);
	assert_null(look(second));
	let_pass(w, NS_PER_MS);
	assert_null(look(first));
	assert_null(look(third));
	assert_told_to_try_again(second);
	let_pass(w, INFLIGHT_PATIENCE_NS - INFLIGHT_QUEUE_NS);
	json_t *data = end(first);
	assert_int_equal(json_array_size(json_object_get(data, "silent_workers")), 1);
	json_decref(data);
	// The third one's time begins only now.
	assert_null(look(third));
	let_pass(w, INFLIGHT_PATIENCE_NS - NS_PER_MS);
	assert_null(look(third));
	lb_inflight_done(f); // at last
	assert_null(look(third));
	tell_request(expect_question(w), 0);
	f->n_all = 1;
	lb_inflight_done(f);
	data = end(third);
	assert_int_equal(json_array_size(json_object_get(data, "silent_workers")), 0);
	assert_int_equal(json_integer_value(json_object_get(data, "in_flight")), 1);
	json_decref(data);
}

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
	json_t *data = end(follow);
	assert_int_equal(number(data, "ended"), 0);
	json_decref(data);
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
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char *text = refusal(wrong[i][0], &operator_);
		if (strncmp(text, "error: ", 7) != 0 ||
			strncmp(text + 7, wrong[i][1], strlen(wrong[i][1])) != 0)
			fail_msg("%s: %s", wrong[i][0], text);
		free(text);
	}
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

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_SUITE("ctrl/show_inflight", CASE(requests_are_told_with_all_that_workers_say_the_oldest_first),
	CASE(connections_are_told_with_their_frontend_or_all_clusters),
	CASE(of_many_clusters_some_are_named), CASE(conditions_become_the_workers_question),
	CASE(wrong_conditions_get_a_clear_error_and_nobody_is_asked),
	CASE(a_worker_that_says_nothing_is_left_out_and_named), CASE(questions_wait_for_each_other),
	CASE(who_waits_long_for_others_is_told_so), CASE(tcp_tells_what_ss_tells_of_the_kernels),
	CASE(a_kill_ends_the_rows_that_its_listing_would_tell),
	CASE(a_kill_by_name_asks_for_that_alone), CASE(a_kill_that_names_nothing_is_refused),
	CASE(a_worker_that_does_not_say_what_ended_is_named))
