// SPDX-License-Identifier: Apache-2.0
// What the commands say of a daemon that has no configuration yet, and that texts of others can't
// spoil it.
#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/load_report.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/base/events.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/caller.h"
#include "ctrl/stats/show.h"
#include "ctrl/stats/stats_server.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/federation.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/pick/failures.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/stats/show_world.h"

#include <event2/buffer.h>
#include <jansson.h>

#include <stdlib.h>
#include <string.h>

static struct stats_follow *no_follow; // of answers that are whole
static const struct stats_caller somebody = {.level = STATS_USER, .uid = 1000, .pid = 7};

#define URI SHOW_WORLD_URI

static const char *text_of(json_t *info, size_t frontend, const char *key)
{
	json_t *row = json_array_get(json_object_get(info, "frontends"), frontend);
	return json_string_value(json_object_get(row, key));
}

static void info_says_what_each_frontend_waits_for(void **state)
{
	struct world *w = *state;
	w->waiting[1] = "cluster blue, endpoints green";
	w->refused = "no match";
	json_t *info = show_world_ask(w, "show info json");
	assert_string_equal(text_of(info, 0, "waiting"), "");
	assert_string_equal(text_of(info, 1, "waiting"), "cluster blue, endpoints green");
	assert_string_equal(text_of(info, 1, "refused"), "no match");
	assert_string_equal(text_of(info, 1, "name"), "api");
	json_decref(info);
	char *text = show_answer(w->show, &somebody, "show info", &no_follow);
	assert_non_null(strstr(text, "cluster blue, endpoints green"));
	free(text);
}

static const char *none(void *ctx, uint32_t port)
{
	return "none";
}

static void ports_say_what_became_of_their_device_and_frontends_who_is_reached(void **state)
{
	struct world *w = *state;
	struct config_port ports[2] = {{.device = (char *)"a"}, {.device = (char *)"b"}};
	struct ip_addr ips[2] = {ip_from_v4(0x0a000001), ip_from_v4(0x0a000002)};
	struct show_port shown[2] = {
		{.driver = "x",
			.link = SHOW_LINK_UP,
			.mbps = 2500,
			.since_ns = twheel_now(w->wheel),
			.checksums = "device",
			.gateways = {{LB_GATEWAY_UP, 1, 0}, {LB_GATEWAY_DOWN, 2, 0}},
			.merged = "",
			.error = ""},
		{.driver = "y",
			.link = SHOW_LINK_GONE,
			.since_ns = twheel_now(w->wheel),
			.n_losses = 3,
			.checksums = "software",
			.merged = "gro and lro switched off",
			.error = "no driver has it"}};
	for (int i = 0; i < 2; i++) {
		ports[i].gateway_ips[0] = ip_from_v4(0x0a0000fe);
		ports[i].gateway_ips[1] = ip_from_v4(0x0a0000fd);
		ports[i].n_gateway_ips = 2u * (i == 0);
		ports[i].address_ips = &ips[i];
		ports[i].n_addresses = 1;
		w->frontends[i].address_ip = ips[i];
	}
	char *members[] = {(char *)(uintptr_t) "net_af_packet0,iface=eth1,qpairs=2",
		(char *)(uintptr_t) "0000:01:00.0"};
	struct config_bond bond = {.mode = CONFIG_BOND_8023AD, .members = members, .n_members = 2};
	ports[0].bond = &bond;
	shown[0].n_members = 2;
	shown[0].members[0] = (struct show_member){.driver = "net_x",
		.state = "distributing",
		.carries = true,
		.partner = "02:00:00:00:00:01",
		.mbps = 100,
		.tx_frames = 7};
	shown[0].members[1] = (struct show_member){.driver = "", .state = "down", .n_downs = 3};
	w->config.ports = ports;
	w->config.n_ports = 2;
	struct show_conf conf = w->conf;
	conf.ports = shown;
	conf.steering = none;
	struct show *show = w->show;
	w->show = show_new(&conf);

	json_t *info = show_world_ask(w, "show info json");
	assert_string_not_equal(text_of(info, 0, "state"), "down");
	assert_string_equal(text_of(info, 1, "state"), "down");
	assert_string_equal(
		text_of(info, 1, "error"), "port 1: the device is gone: no driver has it");
	json_decref(info);
	json_t *rows = show_world_ask(w, "show ports json");
	json_t *up = json_array_get(rows, 0), *gone = json_array_get(rows, 1);
	assert_string_equal(json_string_value(json_object_get(up, "link")), "up");
	assert_string_equal(json_string_value(json_object_get(up, "gateways")),
		"10.0.0.254 up, 10.0.0.253 down"); // FL-68
	assert_int_equal(json_integer_value(json_object_get(up, "gateway_downs")), 3);
	assert_string_equal(json_string_value(json_object_get(gone, "gateways")), "");
	// FL-95
	assert_string_equal(json_string_value(json_object_get(up, "bond")), "802.3ad");
	assert_string_equal(json_string_value(json_object_get(up, "members")),
		"net_af_packet0,iface=eth1 distributing; 0000:01:00.0 down");
	assert_int_equal(json_integer_value(json_object_get(up, "member_downs")), 3);
	json_t *first = json_array_get(json_object_get(up, "bond_members"), 0);
	assert_string_equal(
		json_string_value(json_object_get(first, "partner")), "02:00:00:00:00:01");
	assert_int_equal(json_integer_value(json_object_get(first, "speed_mbps")), 100);
	assert_int_equal(json_integer_value(json_object_get(first, "tx_frames")), 7);
	assert_string_equal(json_string_value(json_object_get(gone, "bond")), "");
	assert_int_equal(json_integer_value(json_object_get(up, "speed_mbps")), 2500);
	assert_string_equal(json_string_value(json_object_get(gone, "link")), "gone");
	assert_true(json_is_null(json_object_get(gone, "speed_mbps")));
	assert_int_equal(json_integer_value(json_object_get(gone, "losses")), 3);
	assert_string_equal(
		json_string_value(json_object_get(gone, "merged")), "gro and lro switched off");
	json_decref(rows);
	char *stat = show_answer(w->show, &somebody, "show stat", &no_follow);
	assert_non_null(strstr(stat, "api,FRONTEND"));
	assert_non_null(strstr(strstr(stat, "api,FRONTEND"), "DOWN"));
	free(stat);
	shown[1].link = SHOW_LINK_DOWN;
	info = show_world_ask(w, "show info json");
	assert_string_equal(text_of(info, 1, "error"), "port 1: there is no link");
	json_decref(info);
	show_free(w->show);
	w->show = show;
	w->config.n_ports = 0;
}

static void info_says_how_load_reports_are(void **state)
{
	struct world *w = *state;
	json_t *info = show_world_ask(w, "show info json");
	assert_string_equal(json_string_value(json_object_get(info, "lrs_state")), "IDLE");
	json_decref(info);
	w->server.refuse = true;
	struct load_leaf *leaf = load_leaf_new(w->loads, w->bootstrap->servers, "blue", "");
	load_leaf_begin(leaf);
	assert_true(load_leaf_locality(leaf, "here", "", "") > 0);
	load_leaf_end(leaf);
	info = show_world_ask(w, "show info json");
	assert_string_equal(json_string_value(json_object_get(info, "lrs_state")), "BACKOFF");
	assert_int_not_equal(strlen(json_string_value(json_object_get(info, "lrs_error"))), 0);
	assert_int_equal(json_integer_value(json_object_get(info, "lrs_clusters")), 1);
	assert_int_equal(json_integer_value(json_object_get(info, "lrs_counters")), 1);
	json_decref(info);
	load_leaf_free(leaf);
}

// A row that JSON refuses would be missing from the text, too.
static void frontend_whose_error_is_no_utf8_keeps_its_row(void **state)
{
	struct world *w = *state;
	w->waiting[0] = "cluster gr\xc3";
	assembler_fail(w->assembler, 0, "no such listener \"gr\xc3");
	json_t *info = show_world_ask(w, "show info json");
	assert_string_equal(text_of(info, 0, "state"), "failing");
	assert_string_equal(text_of(info, 0, "waiting"), "cluster gr\uFFFD");
	assert_non_null(strstr(text_of(info, 0, "error"), "gr\uFFFD"));
	json_decref(info);
}

static void xds_says_what_is_in_which_state_and_since_when(void **state)
{
	struct world *w = *state;
	struct xds_watcher watchers[3] = {
		{show_world_forget_event}, {show_world_forget_event}, {show_world_forget_event}};
	for (unsigned i = 0; i < 3; i++) // a, b, c
		assert_int_equal(xds_federation_watch(w->xds, show_world_cluster_type(),
					 (char[]){(char)('a' + i), 0}, &watchers[i]),
			0);
	show_world_say_clusters(w, "v1", STR(GOOD("a")), STR(GOOD("b")));
	twheel_advance(w->wheel, 3000000000);
	show_world_say_clusters(w, "v2", STR(BAD("a")), STR(GOOD("b")));
	twheel_advance(w->wheel, 5000000000);
	char *text = show_answer(w->show, &somebody, "show xds json", &no_follow);
	json_t *whole = json_loads(text, 0, NULL), *data = json_object_get(whole, "data");
	free(text);
	json_t *rows = json_object_get(data, "resources");
	assert_int_equal(json_array_size(rows), 3);
	static const struct {
		const char *state, *version, *rejected;
		int age_s, bytes, failed_s; // -1 = null
	} wanted[] = {{"NACKED", "v1", "v2", 4, 11, 2}, {"ACKED", "v2", "", 2, 11, -1},
		{"REQUESTED", "", "", -1, -1, -1}};
	for (size_t i = 0; i < 3; i++) {
		const json_t *row = json_array_get(rows, i);
		assert_string_equal(
			json_string_value(json_object_get(row, "state")), wanted[i].state);
		assert_string_equal(
			json_string_value(json_object_get(row, "version")), wanted[i].version);
		assert_string_equal(
			json_string_value(json_object_get(row, "rejected")), wanted[i].rejected);
		const struct {
			const char *key;
			int value;
		} numbers[] = {{"age_s", wanted[i].age_s}, {"bytes", wanted[i].bytes},
			{"failed_s", wanted[i].failed_s}};
		for (size_t j = 0; j < 3; j++) {
			const json_t *number = json_object_get(row, numbers[j].key);
			assert_true(numbers[j].value < 0
					    ? json_is_null(number)
					    : (int)json_number_value(number) == numbers[j].value);
		}
	}
	// CS-09: what serves although it was refused stands apart.
	json_t *counts = json_object_get(data, "counts");
	json_t *expected = json_pack("[{ss ss sb si} {ss ss sb si} {ss ss sb si}]", "type",
		"cluster", "state", "REQUESTED", "serves", 0, "resources", 1, "type", "cluster",
		"state", "ACKED", "serves", 1, "resources", 1, "type", "cluster", "state", "NACKED",
		"serves", 1, "resources", 1);
	assert_true(json_equal(counts, expected));
	json_decref(expected);
	json_decref(whole);
	for (unsigned i = 0; i < 3; i++)
		xds_federation_cancel(w->xds, &watchers[i]);
}

static void expect_line(const char *text, const char *line)
{
	const char *at = strstr(text, line);
	if (!at || (at != text && at[-1] != '\n') || at[strlen(line)] != '\n')
		fail_msg("no line \"%s\" in:\n%s", line, text);
}

#define METRIC "grpc_xds_client_"
#define OF_CLUSTERS "grpc_xds_resource_type=\"envoy.config.cluster.v3.Cluster\""
#define RESOURCES(authority, state)                                                                \
	METRIC "resources{grpc_xds_authority=\"" authority "\",grpc_xds_cache_state=\"" state      \
	       "\"," OF_CLUSTERS "} "

static void cs_09_metrics_are_those_of_grpc(void **state)
{
	struct world *w = *state;
	static const char far[] = "xdstp:///envoy.config.cluster.v3.Cluster/d";
	static const char odd[] = "xdstp://q%22%01/envoy.config.cluster.v3.Cluster/e";
	static const char *const names[] = {"a", "b", "c", far, odd};
	struct xds_watcher watchers[5] = {{show_world_forget_event}, {show_world_forget_event},
		{show_world_forget_event}, {show_world_forget_event}, {show_world_forget_event}};
	char *text = show_answer(w->show, &somebody, "show metrics", &no_follow);
	expect_line(text, "# TYPE " METRIC "connected gauge");
	expect_line(text, METRIC "connected{grpc_xds_server=\"" URI "\"} 0");
	expect_line(text, METRIC "server_failure_total{grpc_xds_server=\"" URI "\"} 0");
	assert_null(strstr(text, METRIC "resources{"));
	free(text);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(xds_federation_watch(
					 w->xds, show_world_cluster_type(), names[i], &watchers[i]),
			0);
	show_world_say_clusters(w, "v1", STR(GOOD("a")), STR(GOOD("b")));
	show_world_say_clusters(w, "v2", STR(BAD("a")), STR(GOOD("b")));
	text = show_answer(w->show, &somebody, "show metrics", &no_follow);
	expect_line(text, METRIC "connected{grpc_xds_server=\"" URI "\"} 1");
	expect_line(text, METRIC "resource_updates_valid_total{grpc_xds_server=\"" URI
				 "\"," OF_CLUSTERS "} 3");
	expect_line(text, METRIC "resource_updates_invalid_total{grpc_xds_server=\"" URI
				 "\"," OF_CLUSTERS "} 1");
	expect_line(text, RESOURCES("#old", "nacked_but_cached") "1");
	expect_line(text, RESOURCES("#old", "acked") "1");
	expect_line(text, RESOURCES("#old", "requested") "1");
	expect_line(text, RESOURCES("", "requested") "1");
	expect_line(text, RESOURCES("q\\\"\\\\x01", "requested") "1");
	free(text);
	// One outage is one failure, however many attempts it takes.
	fake_ads_close(&w->server, "bye");
	for (uint64_t s = 1; s < 20; s++) {
		twheel_advance(w->wheel, s * NS_PER_SECOND);
		if (w->server.stream)
			fake_ads_close(&w->server, "no");
	}
	text = show_answer(w->show, &somebody, "show metrics", &no_follow);
	expect_line(text, METRIC "connected{grpc_xds_server=\"" URI "\"} 0");
	expect_line(text, METRIC "server_failure_total{grpc_xds_server=\"" URI "\"} 1");
	expect_line(text, RESOURCES("#old", "acked") "1");
	free(text);
	for (unsigned i = 0; i < 5; i++)
		xds_federation_cancel(w->xds, &watchers[i]);
}

static void fail_at(struct world *w, uint64_t ago_ns, enum lb_cause cause, const char *cluster,
	const char *text)
{
	const struct lb_failure f = {.at_ns = twheel_now(w->wheel) - ago_ns,
		.frontend = 1,
		.cause = (uint8_t)cause,
		.has_backend = cluster[0] != 0,
		.backend = {ip_from_v4(0x0a520101), 8080}};
	const struct str texts[LB_FAILURE_N_TEXTS] = {
		[LB_FAILURE_cluster] = str_from(cluster), [LB_FAILURE_text] = str_from(text)};
	lb_failures_add(w->link->failures, &f, texts);
}

// TH-96
static void failures_are_told_the_newest_first(void **state)
{
	struct world *w = *state;
	twheel_advance(w->wheel, 5 * NS_PER_SECOND);
	fail_at(w, 2 * NS_PER_SECOND, LB_CAUSE_NO_ROUTE, "", "no route matches");
	fail_at(w, NS_PER_SECOND, LB_CAUSE_TIMEOUT, "bl\xc3", "deadline exceeded");
	json_t *rows = show_world_ask(w, "show failures json");
	json_t *expected = json_pack("[{sf si ss ss ss ss ss ss} {sf si ss ss ss ss ss ss}]",
		"age_s", 1.0, "worker", 0, "frontend", "api", "cause", "timeout", "cluster",
		"bl\uFFFD", "endpoint", "10.82.1.1:8080", "id", "", "text", "deadline exceeded",
		"age_s", 2.0, "worker", 0, "frontend", "api", "cause", "no_route", "cluster", "",
		"endpoint", "", "id", "", "text", "no route matches");
	assert_true(json_equal(rows, expected));
	json_decref(expected);
	json_decref(rows);
	rows = show_world_ask(w, "show failures 1 json");
	assert_int_equal(json_array_size(rows), 1);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 0), "cause")), "timeout");
	json_decref(rows);
	for (int i = 0; i < LB_FAILURES; i++)
		fail_at(w, 0, LB_CAUSE_DROPPED, "x", "y");
	rows = show_world_ask(w, "show failures 5000 json");
	assert_int_equal(json_array_size(rows), LB_FAILURES);
	json_decref(rows);
	static const char *const wrong[][2] = {
		{"show failures x", "error: unexpected argument 'x'"},
		{"show failures -1", "error: unexpected argument '-1'"},
		{"show failures 1 2", "error: a number is given twice"}, // OPS-237
		{"show failures json 1", "error: unexpected argument 'json'"}};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char *text = show_answer(w->show, &somebody, wrong[i][0], &no_follow);
		assert_int_equal(strncmp(text, wrong[i][1], strlen(wrong[i][1])), 0);
		free(text);
	}
}

static const char *text_at(json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key));
}

// OPS-53
static void failures_are_told_by_cause_cluster_and_frontend(void **state)
{
	struct world *w = *state;
	twheel_advance(w->wheel, 5 * NS_PER_SECOND);
	fail_at(w, 3, LB_CAUSE_TIMEOUT, "blue", "1");
	fail_at(w, 2, LB_CAUSE_TIMEOUT, "green", "2");
	fail_at(w, 1, LB_CAUSE_DROPPED, "blue", "3");
	static const struct {
		const char *command, *first;
		size_t n;
	} cases[] = {{"show failures cause=timeout json", "2", 2},
		{"show errors cluster=blue json", "3", 2},
		{"show errors cause=timeout cluster=blue 5 json", "1", 1},
		{"show failures frontend=api 1 json", "3", 1},
		{"show failures frontend=web json", NULL, 0}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *rows = show_world_ask(w, cases[i].command);
		assert_int_equal(json_array_size(rows), cases[i].n);
		if (cases[i].first)
			assert_string_equal(
				text_at(json_array_get(rows, 0), "text"), cases[i].first);
		json_decref(rows);
	}
	static const char *const wrong[][2] = {
		{"show errors cause=x", "error: no cause 'x', there are answered, no_route, "},
		{"show errors cause!=ok", "error: no cause 'ok', there are answered, "},
		{"show failures frontend=x", "error: no frontend is called 'x', try show info"},
		{"show errors cause=timeout cause=timeout", "error: cause is given twice"},
		{"show errors color=blue", "error: no column 'color', there are age_s, "}};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char *text = show_answer(w->show, &somebody, wrong[i][0], &no_follow);
		assert_int_equal(strncmp(text, wrong[i][1], strlen(wrong[i][1])), 0);
		free(text);
	}
}

// OPS-307: a reload has put it where another one had been.
static void failures_of_one_that_is_gone_are_not_those_of_who_has_its_place(void **state)
{
	struct world *w = *state;
	twheel_advance(w->wheel, 5 * NS_PER_SECOND);
	w->frontends[1].since_ns = 3 * NS_PER_SECOND;
	fail_at(w, 3 * NS_PER_SECOND, LB_CAUSE_TIMEOUT, "blue", "of the other");
	fail_at(w, 2 * NS_PER_SECOND, LB_CAUSE_TIMEOUT, "blue", "its own");
	json_t *rows = show_world_ask(w, "show failures json");
	assert_string_equal(text_at(json_array_get(rows, 0), "frontend"), "api");
	assert_string_equal(text_at(json_array_get(rows, 1), "frontend"), "");
	json_decref(rows);
	rows = show_world_ask(w, "show failures frontend=api json");
	assert_int_equal(json_array_size(rows), 1);
	assert_string_equal(text_at(json_array_get(rows, 0), "text"), "its own");
	json_decref(rows);
}

static void fail_as(struct world *w, const char *id, const char *text)
{
	const uint64_t now_ns = twheel_now(w->wheel);
	const struct lb_failure f = {.began_ns = now_ns - 30 * NS_PER_MS,
		.at_ns = now_ns,
		.cause = LB_CAUSE_UPSTREAM_LOST,
		.route_index = 2,
		.n_attempts = 7,
		.n_kept = 2,
		.attempts = {{.cause = LB_CAUSE_OK,
				     .grpc_status = 14,
				     .has_backend = true,
				     .backend = {ip_from_v4(0x0a520101), 8080},
				     .after_us = 1500,
				     .took_us = 250},
			{.cause = LB_CAUSE_NO_HEALTHY, .grpc_status = 14, .after_us = 20000}}};
	const struct str texts[LB_FAILURE_N_TEXTS] = {[LB_FAILURE_text] = str_from(text),
		[LB_FAILURE_id] = str_from(id),
		[LB_FAILURE_path] = STR("/a?b"),
		[LB_FAILURE_vhost] = STR("all"),
		[LB_FAILURE_route] = STR("canary")};
	lb_failures_add(w->link->failures, &f, texts);
}

// OPS-50
static void why_tells_all_of_the_newest_with_the_id(void **state)
{
	struct world *w = *state;
	twheel_advance(w->wheel, 5 * NS_PER_SECOND);
	fail_as(w, "a b", "older");
	fail_as(w, "a b", "newer");
	fail_as(w, "other", "other");
	json_t *told = show_world_ask(w, "why \"a b\" json");
	assert_string_equal(text_at(told, "text"), "newer");
	assert_string_equal(text_at(told, "virtual_host"), "all");
	assert_string_equal(text_at(told, "route"), "canary");
	assert_string_equal(text_at(told, "flag"), "UC");
	assert_int_equal(json_integer_value(json_object_get(told, "route_index")), 2);
	assert_int_equal(json_integer_value(json_object_get(told, "n_older")), 1);
	assert_true(json_real_value(json_object_get(told, "took_ms")) == 30);
	json_t *rows = json_object_get(told, "attempts");
	assert_int_equal(json_array_size(rows), 2);
	json_t *first = json_array_get(rows, 0), *second = json_array_get(rows, 1);
	assert_int_equal(json_integer_value(json_object_get(first, "attempt")), 6);
	assert_string_equal(text_at(first, "endpoint"), "10.82.1.1:8080");
	assert_string_equal(text_at(first, "result"), "answered");
	assert_true(json_real_value(json_object_get(first, "after_ms")) == 1.5);
	assert_string_equal(text_at(second, "endpoint"), "");
	assert_string_equal(text_at(second, "result"), "no_healthy");
	json_decref(told);
	char *text = show_answer(w->show, &somebody, "why nobody", &no_follow);
	assert_int_equal(strncmp(text, "error: no request 'nobody'", 26), 0);
	free(text);
	text = show_answer(w->show, &somebody, "why", &no_follow);
	assert_int_equal(strncmp(text, "error: expected one", 19), 0);
	free(text);
}

static void answered(struct world *w, const char *id, uint16_t http, uint8_t grpc, const char *text)
{
	const struct lb_failure f = {.at_ns = twheel_now(w->wheel),
		.cause = LB_CAUSE_OK,
		.http_status = http,
		.grpc_status = grpc,
		.n_attempts = 1,
		.n_kept = 1,
		.attempts = {{.cause = LB_CAUSE_OK, .grpc_status = grpc}}};
	const struct str texts[LB_FAILURE_N_TEXTS] = {
		[LB_FAILURE_text] = str_from(text), [LB_FAILURE_id] = str_from(id)};
	lb_failures_add(w->link->failed_answers, &f, texts);
}

static void assert_status(const json_t *told, const char *key, int status)
{
	const json_t *value = json_object_get(told, key);
	assert_true(status ? json_integer_value(value) == status : json_is_null(value));
}

static const char *nth_text(json_t *rows, size_t i)
{
	return text_at(json_array_get(rows, i), "text");
}

static void ops_276_what_backends_answered_is_told_beside_and_moves_nothing_away(void **state)
{
	struct world *w = *state;
	twheel_advance(w->wheel, 5 * NS_PER_SECOND);
	fail_as(w, "ours", "ours");
	for (int i = 0; i < LB_FAILURES; i++)
		answered(w, "many", 503, LB_FAILURE_NO_GRPC, "");
	answered(w, "proxied", 502, 14, "");
	answered(w, "call", 0, 14, "gone");
	static const struct {
		const char *command, *cause;
		int http, grpc;
	} cases[] = {{"why ours json", "upstream_lost", 0, 0},
		{"why many json", "answered", 503, 0}, {"why proxied json", "answered", 502, 14},
		{"why call json", "answered", 0, 14}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *told = show_world_ask(w, cases[i].command);
		assert_string_equal(text_at(told, "cause"), cases[i].cause);
		assert_status(told, "http_status", cases[i].http);
		assert_status(told, "grpc_status", cases[i].grpc);
		if (i)
			assert_status(json_array_get(json_object_get(told, "attempts"), 0),
				"grpc_status", cases[i].grpc);
		json_decref(told);
	}
	json_t *rows = show_world_ask(w, "show errors 2000 cause=answered json");
	assert_int_equal(json_array_size(rows), LB_FAILURES);
	assert_string_equal(nth_text(rows, 0), "gRPC status 14: gone");
	assert_string_equal(nth_text(rows, 1), "HTTP status 502, gRPC status 14");
	assert_string_equal(nth_text(rows, 2), "HTTP status 503");
	json_decref(rows);
	rows = show_world_ask(w, "show errors 1 cause!=answered json");
	assert_int_equal(json_array_size(rows), 1);
	assert_string_equal(nth_text(rows, 0), "ours");
	json_decref(rows);
	rows = show_world_ask(w, "show errors 2000 json");
	assert_int_equal(json_array_size(rows), LB_FAILURES + 1);
	json_decref(rows);
	static const char *const wrong[] = {"show errors cause=ok", "show errors cause!=ok"};
	for (size_t i = 0; i < 2; i++) {
		char *text = show_answer(w->show, &somebody, wrong[i], &no_follow);
		assert_int_equal(strncmp(text, "error: no cause 'ok'", 20), 0);
		free(text);
	}
}

static void assert_added(struct stats_follow *follow, const char *end)
{
	struct evbuffer *out = evbuffer_new();
	char text[512] = "";
	follow->more(follow, out);
	evbuffer_remove(out, text, sizeof(text) - 1);
	evbuffer_free(out);
	assert_true(strlen(text) >= strlen(end));
	assert_string_equal(text + strlen(text) - strlen(end), end);
}

// OPS-54
static void events_are_told_with_their_time(void **state)
{
	struct world *w = *state;
	events_add(w->events, 1500000000 * NS_PER_MS, LOG_LEVEL_WARN, "link down", "port=0");
	events_add(w->events, 0, LOG_LEVEL_INFO, "ready\x1b", "a=\"b\"");
	json_t *rows = show_world_ask(w, "show events json");
	json_t *expected = json_pack("[{ss ss ss ss} {ss ss ss ss}]", "time",
		"1970-01-18T08:40:00.000Z", "level", "warn", "event", "link down", "details",
		"port=0", "time", "1970-01-01T00:00:00.000Z", "level", "info", "event", "ready\x1b",
		"details", "a=\"b\"");
	assert_true(json_equal(rows, expected));
	json_decref(expected);
	json_decref(rows);
	char *text = show_answer(w->show, &somebody, "show events -w -w", &no_follow);
	assert_int_equal(strncmp(text, "error: unexpected argument '-w'", 31), 0);
	assert_null(no_follow);
	free(text);
}

// OPS-55
static void events_are_followed_and_lost_ones_counted(void **state)
{
	struct world *w = *state;
	struct stats_follow *follow = NULL;
	events_add(w->events, 0, LOG_LEVEL_INFO, "before", "");
	events_add(w->events, 0, LOG_LEVEL_INFO, "ready\x1b", "a=\"b\"");
	char *text = show_answer(w->show, &somebody, "show events 1 -w", &follow);
	assert_string_equal(text, "1970-01-01T00:00:00.000Z info  ready\\x1b  a=\"b\"\n");
	free(text);
	assert_non_null(follow);
	assert_added(follow, "");
	events_add(w->events, 0, LOG_LEVEL_ERROR, "device gone", "port=1");
	assert_added(follow, "error  device gone  port=1\n");
	for (int i = 0; i < EVENTS + 3; i++)
		events_add(w->events, 0, LOG_LEVEL_INFO, "n", "");
	struct evbuffer *out = evbuffer_new();
	follow->more(follow, out);
	char *line = evbuffer_readln(out, NULL, EVBUFFER_EOL_LF);
	assert_string_equal(line, "# 3 events were lost");
	free(line);
	evbuffer_free(out);
	follow->free(follow);
}

// An empty line ends an answer (ctrl/base/stats_proto.h).
static void no_text_of_a_server_ends_an_answer_early(void **state)
{
	static const char *const commands[] = {"help", "show info", "show stat", "show clusters",
		"show xds", "show metrics", "show workers", "show failures"};
	struct world *w = *state;
	w->waiting[0] = "cluster a\n\nb";
	assembler_fail(w->assembler, 0, "refused:\n\nxds_state: connected\x1b[2J");
	fail_at(w, 0, LB_CAUSE_TIMEOUT, "a\n\nb", "c\n\nd\x1b[2J");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		char *text = show_answer(w->show, &somebody, commands[i], &no_follow);
		assert_null(strstr(text, "\n\n"));
		assert_null(strchr(text, '\x1b'));
		assert_int_equal(text[strlen(text) - 1], '\n');
		if (strcmp(commands[i], "show info") == 0)
			assert_non_null(strstr(text, "refused:\\n\\nxds_state: connected\\x1b[2J"));
		free(text);
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, show_world_set_up, show_world_tear_down)

static void pools_are_told_with_what_is_free_in_each(void **state)
{
	struct world *w = *state;
	struct pool p;
	assert_int_equal(pool_init(&p, 48, 10), 0);
	pool_list_add(&w->link->pools, "clients", &p);
	void *out[] = {pool_take(&p), pool_take(&p), pool_take(&p)};
	pool_put(&p, out[2]);
	json_t *rows = show_world_ask(w, "show pools json");
	json_t *expected = json_pack("[{si ss si si si si si}]", "worker", 0, "pool", "clients",
		"bytes", 48, "total", 10, "free", 8, "used", 2, "peak", 3);
	assert_true(json_equal(rows, expected));
	json_decref(expected);
	json_decref(rows);
	pool_fini(&p);
}

RUN_SUITE("ctrl/show", CASE(info_says_what_each_frontend_waits_for),
	CASE(ports_say_what_became_of_their_device_and_frontends_who_is_reached),
	CASE(info_says_how_load_reports_are), CASE(frontend_whose_error_is_no_utf8_keeps_its_row),
	CASE(no_text_of_a_server_ends_an_answer_early), CASE(cs_09_metrics_are_those_of_grpc),
	CASE(xds_says_what_is_in_which_state_and_since_when),
	CASE(pools_are_told_with_what_is_free_in_each), CASE(failures_are_told_the_newest_first),
	CASE(failures_are_told_by_cause_cluster_and_frontend),
	CASE(failures_of_one_that_is_gone_are_not_those_of_who_has_its_place),
	CASE(ops_276_what_backends_answered_is_told_beside_and_moves_nothing_away),
	CASE(why_tells_all_of_the_newest_with_the_id), CASE(events_are_told_with_their_time),
	CASE(events_are_followed_and_lost_ones_counted))
