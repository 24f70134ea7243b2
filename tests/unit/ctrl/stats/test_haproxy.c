// SPDX-License-Identifier: Apache-2.0
// What HAProxy's tools are told, and what their commands do.
#include "ctrl/assemble/overrides.h"
#include "ctrl/base/events.h"
#include "ctrl/stats/caller.h"
#include "ctrl/stats/haproxy.h"
#include "ctrl/stats/show.h"
#include "ctrl/stats/stats_server.h"
#include "lb/base/err.h"
#include "lb/base/log.h"
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

#define N_COLUMNS 103 // of HAProxy 2.6, before "-"

static const struct stats_caller somebody = {.level = STATS_USER, .uid = 1000, .pid = 7};
static const struct stats_caller op = {.level = STATS_OPERATOR, .uid = 1000, .pid = 7};
static struct show *show;
static struct haproxy *haproxy;
static char answer_text[1 << 16];

static const struct told_endpoint backends[] = {
	{{{{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}, 80}, LB_LEAF_HEALTHY, 4},
	{{{{[10] = 255, [11] = 255, [12] = 10, [15] = 2}}, 80}, LB_LEAF_DRAINING, 1},
	{{{{[10] = 255, [11] = 255, [12] = 10, [15] = 3}}, 80}, LB_LEAF_HEALTHY, 1}};
static const struct res_vhost vhost = {
	"any", DOMAINS("*"), ROUTES({PREFIX("/"), CLUSTERS({"blue", 1}, {"green", 1})})};

static void give(struct world *w, uint32_t n_blue)
{
	const struct told_locality localities[] = {
		{"", "", "", 1, backends, n_blue}, {"", "", "", 1, backends + 2, 1}};
	const struct told_priority priorities[] = {{&localities[0], 1}, {&localities[1], 1}};
	struct res_endpoints *blue = endpoints_of(&priorities[0], 1);
	struct res_endpoints *green = endpoints_of(&priorities[1], 1);
	apply(w, &vhost, (const char *const[]){"blue", "green"},
		(struct res_endpoints *[]){blue, green}, 2);
	xds_res_put(&blue->base);
	xds_res_put(&green->base);
	turns(w, 1);
}

static void make(struct world *w, const struct slice *slice)
{
	show = show_new(&(struct show_conf){.config = &w->config,
		.workers = w->workers,
		.assembler = w->assembler,
		.started_s = 1700000000,
		.wheel = w->wheel});
	haproxy = haproxy_new(show, slice);
	assert_non_null(haproxy);
}

static int set_up(void **state)
{
	if (world_set_up_both(state))
		return -1;
	give(*state, 2);
	make(*state, &(struct slice){0});
	return 0;
}

static int tear_down(void **state)
{
	haproxy_free(haproxy);
	show_free(show);
	return world_tear_down(state);
}

static unsigned n_slices; // of the last answer

// The whole answer, good until the next one.
static const char *ask_as(const struct stats_caller *who, const char *command)
{
	struct stats_follow *follow = NULL;
	struct evbuffer *out = evbuffer_new();
	char *text = haproxy_answer(haproxy, who, command, &follow);
	assert_non_null(text);
	evbuffer_add(out, text, strlen(text));
	free(text);
	n_slices = 0;
	bool goes_on = follow;
	while (goes_on) {
		goes_on = follow->more(follow, out);
		n_slices++;
	}
	if (follow)
		follow->free(follow);
	assert_true(evbuffer_get_length(out) < sizeof(answer_text));
	ssize_t len = evbuffer_remove(out, answer_text, sizeof(answer_text) - 1);
	answer_text[len > 0 ? len : 0] = 0;
	evbuffer_free(out);
	return answer_text;
}

static const char *ask(const char *command)
{
	return ask_as(&op, command);
}

static unsigned n_lines(const char *text)
{
	unsigned n = 0;
	for (; *text; text++)
		n += *text == '\n';
	return n;
}

// A cell of the row that begins with these two; good until the next call.
static const char *cell(const char *csv, const char *row, const char *column)
{
	static char text[256];
	unsigned place = 0;
	const char *at = csv + 2;
	for (; strncmp(at, column, strlen(column)) || at[strlen(column)] != ','; place++) {
		at = strchr(at, ',') + 1;
		assert_int_not_equal(*at, '-');
	}
	char begin[128];
	snprintf(begin, sizeof(begin), "\n%s,", row);
	at = strstr(csv, begin);
	if (!at)
		fail_msg("no row %s in %s", row, csv);
	for (at++; place; place--)
		at = strchr(at, ',') + 1;
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, ",\n"), at);
	return text;
}

static void assert_cell(const char *row, const char *column, const char *value)
{
	const char *is = cell(ask("show stat"), row, column);
	if (strcmp(is, value) != 0)
		fail_msg("%s %s is '%s', not '%s'", row, column, is, value);
}

static void connect_first(struct world *w)
{
	struct lb_command c;
	while (spsc_read(&w->link->commands, &c)) {
		struct lb_event up = {.kind = LB_EVENT_CONNECTED, .endpoint_id = c.endpoint->id};
		if (c.kind == LB_COMMAND_CONNECT && c.endpoint->addr.ip.b[15] == 1)
			assert_true(spsc_write(&w->link->events, &up));
	}
	turns(w, 1);
}

// OPS-111
static void each_row_has_every_column_and_servers_come_before_their_backend(void **state)
{
	const char *csv = ask("show stat");
	assert_int_equal(strncmp(csv, "# pxname,svname,qcur,", 21), 0);
	assert_int_equal(n_lines(csv), 1 + 2 + 3 + 2);
	for (const char *line = csv; *line; line = strchr(line, '\n') + 1) {
		unsigned n = 0;
		for (const char *c = line; *c != '\n'; c++)
			n += *c == ',';
		assert_int_equal(n, N_COLUMNS + 1);
	}
	const char *server = strstr(csv, "\nblue,10.0.0.2:80,");
	assert_true(server && server < strstr(csv, "\nblue,BACKEND,"));
	assert_null(strstr(csv, "\n\n")); // an empty line ends an answer
}

// OPS-111
static void states_are_haproxys(void **state)
{
	struct world *w = *state;
	assert_cell("web,FRONTEND", "status", "OPEN");
	assert_cell("api,FRONTEND", "status", "STOP"); // it has no configuration
	assert_cell("blue,10.0.0.1:80", "status", "no check");
	connect_first(w);
	assert_cell("blue,10.0.0.1:80", "status", "UP");
	assert_cell("blue,10.0.0.1:80", "check_status", "L4OK");
	assert_cell("blue,10.0.0.2:80", "status", "DRAIN");
	assert_cell("blue,BACKEND", "status", "UP");
	assert_cell("blue,BACKEND", "act", "1");
	assert_cell("blue,BACKEND", "weight", "5");
	assert_cell("blue,10.0.0.1:80", "weight", "4");
	assert_cell("blue,10.0.0.1:80", "addr", "10.0.0.1:80");
}

// OPS-111, OPS-226
static void counts_are_those_of_the_workers(void **state)
{
	struct world *w = *state;
	w->link->counters.frontend_connections[0] = 3;
	w->link->counters.frontend_uses[0] = 3; // of two clients: the worker accepts more
	w->link->counters.frontend_requests[0] = 9;
	w->link->frontends[0].answers[LB_ANSWER_GRPC + 14] = 2;
	w->link->frontends[0].answers[LB_ANSWER_HTTP + 1] = 4;
	w->link->frontends[0].answers[LB_ANSWER_HTTP + 3] = 1;
	w->link->frontends[0].ended[LB_CAUSE_DENIED] = 1;
	assert_cell("web,FRONTEND", "stot", "3");
	assert_cell("web,FRONTEND", "scur", "2");
	assert_cell("web,FRONTEND", "req_tot", "9");
	assert_cell("web,FRONTEND", "hrsp_2xx", "6"); // gRPC's failures, too
	assert_cell("web,FRONTEND", "hrsp_4xx", "1");
	assert_cell("web,FRONTEND", "dreq", "1");
	w->link->frontends[0].bodies = (struct lb_bodies){.in = 70, .out = 8000};
	assert_cell("web,FRONTEND", "bin", "70");
	assert_cell("web,FRONTEND", "bout", "8000");
	assert_cell("blue,BACKEND", "bout", "0");
	assert_cell("blue,10.0.0.1:80", "bout", ""); // nobody counts them
	for (uint32_t i = 0; i < 2; i++) { // blue and green
		w->link->clusters[i].started = 1;
		w->link->times[i].bodies = (struct lb_bodies){.in = 7, .out = 800};
	}
	assert_cell("blue,BACKEND", "bin", "7");
	assert_cell("blue,BACKEND", "bout", "800");
}

// OPS-111
static void rates_are_of_the_time_since_the_last_reading(void **state)
{
	struct world *w = *state;
	assert_cell("web,FRONTEND", "rate", "");
	w->link->counters.frontend_connections[0] = 40;
	twheel_advance(w->wheel, w->now += 500 * MS);
	assert_cell("web,FRONTEND", "rate", ""); // too soon
	twheel_advance(w->wheel, w->now += 3500 * MS);
	assert_cell("web,FRONTEND", "rate", "10");
	twheel_advance(w->wheel, w->now += 100 * MS);
	assert_cell("web,FRONTEND", "rate", "10");
	twheel_advance(w->wheel, w->now += 2000 * MS);
	assert_cell("web,FRONTEND", "rate", "0");
}

// OPS-112
static void a_number_is_never_another_rows(void **state)
{
	struct world *w = *state;
	char blue[32], second[32], third[32];
	snprintf(blue, sizeof(blue), "%s", cell(ask("show stat"), "blue,BACKEND", "iid"));
	snprintf(second, sizeof(second), "%s", cell(ask("show stat"), "blue,10.0.0.2:80", "sid"));
	assert_cell("blue,10.0.0.1:80", "iid", blue);
	give(w, 3);
	snprintf(third, sizeof(third), "%s", cell(ask("show stat"), "blue,10.0.0.3:80", "sid"));
	give(w, 1); // the others go,
	ask("show stat");
	give(w, 3); // and come back
	assert_cell("blue,BACKEND", "iid", blue);
	assert_cell("blue,10.0.0.2:80", "sid", second);
	assert_cell("blue,10.0.0.3:80", "sid", third);
	assert_string_not_equal(second, third);
	assert_string_not_equal(cell(ask("show stat"), "green,BACKEND", "iid"), blue);
}

static void rows_are_chosen_by_proxy_type_and_number(void **state)
{
	assert_int_equal(n_lines(ask("show stat -1 2 -1")), 1 + 2);
	assert_int_equal(n_lines(ask("show stat -1 1 -1")), 1 + 2);
	assert_int_equal(n_lines(ask("show stat blue 4 -1")), 1 + 2);
	assert_int_equal(n_lines(ask("show stat blue 6 -1")), 1 + 3);
	assert_int_equal(n_lines(ask("show stat domain proxy blue -1 -1")), 1 + 3);
	char command[64], iid[16], sid[16];
	snprintf(iid, sizeof(iid), "%s", cell(ask("show stat"), "green,BACKEND", "iid"));
	snprintf(sid, sizeof(sid), "%s", cell(ask("show stat"), "green,10.0.0.3:80", "sid"));
	snprintf(command, sizeof(command), "show stat %s -1 %s", iid, sid);
	assert_int_equal(n_lines(ask(command)), 1 + 1);
	assert_non_null(strstr(ask(command), "\ngreen,10.0.0.3:80,"));
	ask("disable server blue/10.0.0.1:80");
	turns(*state, 1);
	assert_int_equal(n_lines(ask("show stat blue 4 -1 no-maint")), 1 + 1);
	assert_string_equal(ask("show stat nonsense"), "unexpected argument 'nonsense'\n");
	assert_string_equal(ask("show stat domain dns"), "there is no domain but proxy\n");
}

// OPS-113
static void values_are_told_with_what_they_are(void **state)
{
	const char *typed = ask("show stat blue 2 -1 typed");
	assert_int_equal(strncmp(typed, "B.", 2), 0);
	assert_non_null(strstr(typed, ".0.1.svname.1:KNS:str:BACKEND\n"));
	assert_non_null(strstr(typed, ".0.32.type.1:CGS:u32:1\n"));
	json_t *rows = json_loads(ask("show stat json"), 0, NULL);
	assert_int_equal(json_array_size(rows), 7);
	json_t *first = json_array_get(json_array_get(rows, 0), 0);
	const char *type, *name, *origin, *kind, *value;
	int pos;
	assert_int_equal(json_unpack(first, "{ss s{si ss} s{ss} s{ss ss}}", "objType", &type,
				 "field", "pos", &pos, "name", &name, "tags", "origin", &origin,
				 "value", "type", &kind, "value", &value),
		0);
	assert_string_equal(type, "Frontend");
	assert_string_equal(name, "pxname");
	assert_int_equal(pos, 0);
	assert_string_equal(origin, "Key");
	assert_string_equal(kind, "str");
	assert_string_equal(value, "web");
	json_decref(rows);
	assert_non_null(strstr(ask("show info typed"), "\n4.Nbproc.1:CGS:u32:1\n"));
	json_t *info = json_loads(ask("show info json"), 0, NULL);
	assert_true(json_array_size(info) > 10);
	json_decref(info);
}

// OPS-114
static void info_has_what_readers_look_for(void **state)
{
	struct world *w = *state;
	static const char *const keys[] = {"Version", "Release_date", "Nbproc", "Process_num",
		"Pid", "Uptime", "Maxconn", "CurrConns", "Maxpipes", "PipesUsed", "Tasks",
		"Run_queue", "node", "Idle_pct", "CumConns", "CumReq", "ConnRate"};
	w->link->counters.requests = 7;
	twheel_advance(w->wheel, w->now += 93784 * NS_PER_SECOND);
	const char *text = ask("show info");
	assert_int_equal(strncmp(text, "Name: Shunt\n", 12), 0);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		char line[64];
		snprintf(line, sizeof(line), "\n%s: ", keys[i]);
		if (!strstr(text, line) || strstr(text, line)[strlen(line)] == '\n')
			fail_msg("no %s in %s", keys[i], text);
	}
	assert_non_null(strstr(text, "\nUptime: 1d 2h03m04s\n"));
	assert_non_null(strstr(text, "\nCumReq: 7\n"));
	assert_non_null(strstr(text, "\nTasks: 7\n"));
}

// OPS-115
static void a_server_is_disabled_drained_weighed_and_taken_back(void **state)
{
	struct world *w = *state;
	static const char *const rows[][3] = {
		{"disable server blue/10.0.0.1:80", "MAINT", "4"},
		{"enable server blue/10.0.0.1:80", "no check", "4"},
		{"set server blue/10.0.0.1:80 state drain", "DRAIN", "4"},
		{"set weight blue/10.0.0.1:80 9", "DRAIN", "9"},
		{"set server blue/10.0.0.1:80 state ready", "no check", "9"},
		{"set weight blue/10.0.0.1:80 100%", "no check", "4"},
		{"set server blue/10.0.0.1:80 weight 50%", "no check", "2"},
		{"set server blue/10.0.0.1:80 state maint", "MAINT", "2"},
		{"  enable   server blue/10.0.0.1:80 ", "no check", "2"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_string_equal(ask(rows[i][0]), "");
		turns(w, 1);
		assert_cell("blue,10.0.0.1:80", "status", rows[i][1]);
		assert_cell("blue,10.0.0.1:80", "weight", rows[i][2]);
	}
}

static bool is_given; // the place, to another process

int __wrap_takeover_check_change(const struct takeover *, struct lb_err *);
int __wrap_takeover_check_change(const struct takeover *t, struct lb_err *err)
{
	return is_given ? lb_err_set(err, "ask that one") : 0;
}

// FL-184
static void what_another_process_would_not_know_of_is_refused(void **state)
{
	is_given = true;
	assert_string_equal(ask("disable server blue/10.0.0.1:80"), "ask that one\n");
	assert_string_equal(ask("clear counters"), "");
	is_given = false;
	assert_cell("blue,10.0.0.1:80", "status", "no check");
}

// OPS-115
static void who_only_looks_changes_nothing(void **state)
{
	assert_string_equal(ask_as(&somebody, "disable server blue/10.0.0.1:80"),
		"Permission denied: 'disable server' needs the level operator, and yours is "
		"user.\n");
	assert_cell("blue,10.0.0.1:80", "status", "no check");
	assert_non_null(strstr(ask_as(&somebody, "show stat"), "blue,BACKEND"));
}

// OPS-238: maxima alone, as HAProxy's.
static void maxima_are_cleared_by_who_may(void **state)
{
	assert_string_equal(ask_as(&somebody, "clear counters"),
		"Permission denied: 'clear counters' needs the level operator, and yours is "
		"user.\n");
	assert_string_equal(ask("clear counters"), "");
	assert_int_equal(strncmp(ask("clear counters all"), "Counters are never cleared", 26), 0);
}

static unsigned n_told;
static void count_action(
	void *ctx, uint64_t wall_ns, enum log_level level, const char *event, const char *details)
{
	n_told += strcmp(event, "operator's action") == 0 &&
	          strstr(details, "command=\"disable server blue/10.0.0.1:80\"");
}

// OPS-115, OPS-71
static void an_action_is_an_event(void **state)
{
	n_told = 0;
	log_set_level(LOG_LEVEL_ERROR);
	log_set_sink(count_action, NULL);
	ask("disable server blue/10.0.0.1:80");
	ask_as(&somebody, "disable server blue/10.0.0.1:80");
	ask("disable server blue/10.0.0.9:80");
	log_set_sink(NULL, NULL);
	assert_int_equal(n_told, 1);
}

// OPS-116
static void what_is_not_known_is_said(void **state)
{
	static const char *const rows[][2] = {
		{"show tables", "Unknown command: 'show tables'."},
		{"shutdown sessions server x/y", "Unknown command: "},
		{"show", "Unknown command: "},
		{"disable frontend web", "Unknown command: "},
		{"clear counters worker", "unexpected argument 'worker'"},
		{"clear counters all", "Counters are never cleared"},
		{"disable server blue", "Require 'backend/server'."},
		{"disable server", "Require 'backend/server'."},
		{"disable server red/10.0.0.1:80", "No such backend."},
		{"disable server blue/10.0.0.9:80", "No such server."},
		{"disable server blue/name", "No such server: "},
		{"set weight blue/10.0.0.1:80 0", "A weight of 0 is not known here"},
		{"set weight blue/10.0.0.1:80 x", "'x' is not a weight"},
		{"set weight blue/10.0.0.1:80", "BACKEND/SERVER and a weight must follow."},
		{"set server blue/10.0.0.1:80 addr 10.0.0.7", "'set server BACKEND/SERVER' knows"},
		{"set server blue/10.0.0.1:80", "'set server BACKEND/SERVER' knows"},
		{"show\\ info", "Unknown command: "},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strncmp(ask(rows[i][0]), rows[i][1], strlen(rows[i][1])) != 0)
			fail_msg("%s: %s", rows[i][0], answer_text);
	char longest[5000];
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	assert_string_equal(ask(longest), "The command is too long.\n");
	assert_int_equal(strncmp(ask("help"), "Of HAProxy's commands", 21), 0);
	assert_string_equal(ask("set timeout cli 60"), "");
}

// OPS-117
static void a_listing_comes_in_slices_and_says_the_same(void **state)
{
	char *whole = strdup(ask("show stat"));
	assert_int_equal(n_slices, 1);
	haproxy_free(haproxy);
	show_free(show);
	make(*state, &(struct slice){.most = 1});
	assert_string_equal(ask("show stat"), whole);
	assert_true(n_slices > 6);
	free(whole);
}

static void who_goes_amid_a_listing_is_forgotten(void **state)
{
	haproxy_free(haproxy);
	show_free(show);
	make(*state, &(struct slice){.most = 1});
	struct stats_follow *follow = NULL;
	struct evbuffer *out = evbuffer_new();
	free(haproxy_answer(haproxy, &op, "show stat blue -1 -1", &follow));
	assert_true(follow->more(follow, out));
	follow->free(follow);
	evbuffer_free(out);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
RUN_SUITE("ctrl/haproxy", CASE(each_row_has_every_column_and_servers_come_before_their_backend),
	CASE(states_are_haproxys), CASE(counts_are_those_of_the_workers),
	CASE(rates_are_of_the_time_since_the_last_reading), CASE(a_number_is_never_another_rows),
	CASE(rows_are_chosen_by_proxy_type_and_number), CASE(values_are_told_with_what_they_are),
	CASE(info_has_what_readers_look_for),
	CASE(a_server_is_disabled_drained_weighed_and_taken_back),
	CASE(what_another_process_would_not_know_of_is_refused),
	CASE(who_only_looks_changes_nothing), CASE(maxima_are_cleared_by_who_may),
	CASE(an_action_is_an_event), CASE(what_is_not_known_is_said),
	CASE(a_listing_comes_in_slices_and_says_the_same),
	CASE(who_goes_amid_a_listing_is_forgotten))
