// SPDX-License-Identifier: Apache-2.0
// `doctor` of a running daemon: what is planted into what the daemon knows, and what the process
// that examines the host says, or does not.
#include "ctrl/base/show_port.h"
#include "ctrl/base/socket_counts.h"
#include "ctrl/stats/host_look.h"
#include "ctrl/stats/stats_server.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/pick/link.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/stats/show_world.h"

#include <event2/buffer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE 1000 // looks of 10 ms

static const struct stats_caller somebody = {.level = STATS_USER, .uid = 1000, .pid = 7};

enum { GATEWAYS_SILENT, TX_NO_ROUTE, N_NET };
static const char *const net_names[] = {"gateways_silent", "tx_no_route"};
static uint64_t net_values[N_NET];
static uint32_t used, peak;

static struct show_port shown;
static struct config_port ports[1];

// The show anew, with this program to examine the host; NULL = none.
static void begin_with(struct world *w, const char *examiner)
{
	w->conf.examiner = examiner;
	show_free(w->show);
	w->show = show_new(&w->conf);
	assert_non_null(w->show);
}

static int set_up(void **state)
{
	int rc = show_world_set_up(state);
	struct world *w = *state;
	memset(net_values, 0, sizeof(net_values));
	used = peak = 0;
	lb_link_add_group(w->link, "net", (struct counter_set){net_names, net_values, N_NET});
	struct pool_view view = {
		.name = "streams", .size = 1, .n_total = 100, .n_used = &used, .n_peak = &peak};
	pool_list_add_view(&w->link->pools, &view);
	shown = (struct show_port){.link = SHOW_LINK_UP, .error = "", .merged = ""};
	ports[0] = (struct config_port){.device = (char *)(uintptr_t) "eth1",
		.gateway_ips = {ip_from_v4(0x0a0000fe), ip_from_v4(0x0a0000fd)},
		.n_gateway_ips = 1};
	w->config.ports = ports;
	w->config.n_ports = 1;
	w->conf.ports = &shown;
	w->conf.config_path = "/etc/shunt/shunt.yaml";
	begin_with(w, NULL);
	return rc;
}

static struct stats_follow *ask(struct world *w, const char *command)
{
	struct stats_follow *follow = NULL;
	char *text = show_answer(w->show, &somebody, command, &follow);
	assert_string_equal(text, "");
	free(text);
	assert_non_null(follow);
	return follow;
}

// What it says in the end; good until the next call.
static const char *end_of(struct stats_follow *f)
{
	static char text[8192];
	struct evbuffer *out = evbuffer_new();
	for (int i = 0; i < PATIENCE && f->more(f, out); i++)
		usleep(10000);
	ssize_t n = evbuffer_copyout(out, text, sizeof(text) - 1);
	text[n < 0 ? 0 : n] = 0;
	assert_true(n > 0);
	evbuffer_free(out);
	f->free(f);
	return text;
}

static void a_second_later(struct world *w)
{
	twheel_advance(w->wheel, twheel_now(w->wheel) + NS_PER_SECOND);
}

// The whole answer, in text.
static const char *examine(struct world *w)
{
	struct stats_follow *f = ask(w, "doctor");
	a_second_later(w);
	return end_of(f);
}

static void expect(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text);
}

// Both frontends wait for their first configuration.
#define BEGINNING "2 errors, 0 warnings, 0 notes\n"

// OPS-135
static void the_answer_comes_after_a_second_and_names_frontends_that_fail(void **state)
{
	struct world *w = *state;
	struct stats_follow *f = ask(w, "doctor");
	struct evbuffer *out = evbuffer_new();
	assert_true(f->more(f, out));
	assert_int_equal(evbuffer_get_length(out), 0);
	evbuffer_free(out);
	a_second_later(w);
	const char *text = end_of(f);
	expect(text, "error    frontend web fails: ");
	expect(text, "; fix: shuntctl show xds");
	expect(text, BEGINNING);
}

// OPS-135
static void each_of_the_daemons_faults_is_named(void **state)
{
	struct world *w = *state;
	struct lb_worker_counters *k = &w->link->counters;
	w->waiting[0] = "cluster blue";
	k->beat_ns = twheel_now(w->wheel);
	struct stats_follow *f = ask(w, "doctor");
	twheel_advance(w->wheel, twheel_now(w->wheel) + 2 * NS_PER_SECOND);
	net_values[GATEWAYS_SILENT] = 1;
	net_values[TX_NO_ROUTE] = 7;
	k->long_turns = 30;
	k->ended[LB_CAUSE_NO_HEALTHY] = 5;
	used = 90;
	shown.link = SHOW_LINK_DOWN;
	show_sockets(w->show)->n_cut = 3;
	const char *text = end_of(f);
	expect(text, "gateway 10.0.0.254 does not answer ARP");
	expect(text, "7 within 2.0 s: packets to where no port leads (net.tx_no_route)");
	expect(text, "worker 0 has not finished a turn for 2.0 s");
	expect(text, "30 turns of workers took more than 1 ms within 2.0 s");
	expect(text,
		"5 requests ended with no_healthy within 2.0 s; their clients were told 14/503; "
		"fix: shuntctl show failures cause=no_healthy");
	expect(text, "worker 0 has 90 of 100 of streams in use");
	expect(text, "port 0: eth1 has no link");
	expect(text, "places of the stats socket are taken; 3 connections were closed"); // OPS-235
	expect(text, "frontend web waits for cluster blue");
}

// FL-68
static void a_gateway_that_is_down_is_a_warning_while_another_one_answers(void **state)
{
	struct world *w = *state;
	ports[0].n_gateway_ips = 2;
	shown.gateways[0].state = LB_GATEWAY_UP;
	shown.gateways[1].state = LB_GATEWAY_DOWN;
	const char *text = examine(w);
	expect(text, "warning  gateway 10.0.0.253 does not answer ARP or neighbor discovery; what "
		     "is behind it is reached by another one");
	assert_null(strstr(text, "10.0.0.254"));
	shown.gateways[0].state = LB_GATEWAY_DOWN;
	expect(examine(w), "error    gateway 10.0.0.254 or 10.0.0.253 does not answer ARP or "
			   "neighbor discovery; what is behind it is not reached");
}

static void what_was_lost_before_is_told_no_more(void **state)
{
	struct world *w = *state;
	net_values[TX_NO_ROUTE] = 7;
	w->link->counters.ended[LB_CAUSE_NO_HEALTHY] = 5;
	w->link->counters.long_turns = 30;
	expect(examine(w), BEGINNING);
}

// OPS-272
static void the_daemon_is_examined_in_slices(void **state)
{
	struct world *w = *state;
	w->conf.slice.most = 1;
	begin_with(w, NULL);
	struct stats_follow *f = ask(w, "doctor");
	assert_false(f->is_soon);
	a_second_later(w);
	struct evbuffer *out = evbuffer_new();
	for (int i = 0; i < 10; i++) {
		assert_true(f->more(f, out));
		assert_true(f->is_soon);
		assert_int_equal(evbuffer_get_length(out), 0);
	}
	evbuffer_free(out);
	expect(end_of(f), BEGINNING);
}

static struct xds_watcher watchers[2];

static void watch_two(struct world *w)
{
	for (unsigned i = 0; i < 2; i++) {
		watchers[i] = (struct xds_watcher){show_world_forget_event};
		assert_int_equal(xds_federation_watch(w->xds, show_world_cluster_type(),
					 (char[]){(char)('a' + i), 0}, &watchers[i]),
			0);
	}
}

static void unwatch(struct world *w)
{
	for (unsigned i = 0; i < 2; i++)
		xds_federation_cancel(w->xds, &watchers[i]);
}

// OPS-135
static void a_refused_resource_is_an_error_unless_an_older_one_serves(void **state)
{
	struct world *w = *state;
	watch_two(w);
	show_world_say_clusters(w, "v1", STR(GOOD("a")), STR(BAD("b")));
	expect(examine(w), "error    cluster b is NACKED: ");
	show_world_say_clusters(w, "v2", STR(BAD("a")), STR(GOOD("b")));
	const char *text = examine(w);
	expect(text, "warning  cluster a is NACKED: ");
	expect(text, "its last good version serves");
	assert_null(strstr(text, "cluster b"));
	unwatch(w);
}

static void lose_the_server(struct world *w, const char *why)
{
	watch_two(w);
	fake_ads_settle(&w->server);
	fake_ads_close(&w->server, why);
	fake_ads_settle(&w->server);
}

// OPS-135
static void a_server_that_cannot_be_reached_is_named(void **state)
{
	struct world *w = *state;
	lose_the_server(w, "UNAVAILABLE: connection refused");
	const char *text = examine(w);
	expect(text, "error    xDS server ads:1: UNAVAILABLE: connection refused");
	assert_null(strstr(text, "refuses this node"));
	unwatch(w);
}

// OPS-135
static void a_server_that_refuses_the_node_is_named_as_that(void **state)
{
	struct world *w = *state;
	lose_the_server(w, "PERMISSION_DENIED: unknown node");
	const char *text = examine(w);
	expect(text, "xDS server ads:1 refuses this node: PERMISSION_DENIED: unknown node");
	expect(text, "fix: node (id, cluster, metadata)");
	unwatch(w);
}

// A script in place of shuntd; good until the next one.
static const char *script(const char *lines)
{
	static char path[] = "/tmp/test-doctor-script-XXXXXX";
	strcpy(path + sizeof(path) - 7, "XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	dprintf(fd, "#!/bin/sh\n%s\n", lines);
	assert_int_equal(fchmod(fd, 0700), 0);
	close(fd);
	return path;
}

// OPS-136
static void the_hosts_findings_are_told_with_the_daemons(void **state)
{
	struct world *w = *state;
	// It is asked as an operator asks, and has none of our descriptors.
	assert_int_equal(dup2(1, 200), 200);
	const char *path =
		script("test \"$*\" = '--check --device --json -c /etc/shunt/shunt.yaml' || exit\n"
		       "test ! -e /proc/$$/fd/200 || exit\n"
		       "echo '{\"findings\":[{\"severity\":\"warning\",\"check\":\"files\","
		       "\"what\":\"few files\",\"fix\":\"ulimit\"}]}'; exit 1");
	begin_with(w, path);
	const char *text = examine(w);
	unlink(path);
	close(200);
	expect(text, "warning  few files; fix: ulimit\n2 errors, 1 warning, 0 notes\n");
}

// OPS-136
static void a_host_that_is_not_examined_is_said(void **state)
{
	struct world *w = *state;
	begin_with(w, "/tmp/there/is/no/shuntd");
	expect(examine(w),
		"the host could not be examined: No such file or directory; what is wrong "
		"with it is not told; fix: shuntd --check --device -c "
		"/etc/shunt/shunt.yaml");
	const char *path = script("echo nonsense");
	begin_with(w, path);
	expect(examine(w), "the host could not be examined: it says nothing of use");
	unlink(path);
	path = script("yes");
	begin_with(w, path);
	expect(examine(w), "the host could not be examined: it takes too long, or says too much");
	unlink(path);
}

// OPS-136
static void an_examination_that_hangs_is_ended_and_one_runs_at_a_time(void **state)
{
	struct world *w = *state;
	const char *path = script("exec sleep 1000");
	begin_with(w, path);
	struct stats_follow *first = ask(w, "doctor"), *second = NULL;
	char *text = show_answer(w->show, &somebody, "doctor", &second);
	assert_string_equal(text, "error: another examination is under way, try again\n");
	assert_null(second);
	free(text);
	twheel_advance(w->wheel, twheel_now(w->wheel) + HOST_LOOK_NS);
	expect(end_of(first), "it takes too long");
	// Who goes takes it with him, and the next one may ask.
	first = ask(w, "doctor");
	first->free(first);
	for (int i = 0; i < PATIENCE && !second; i++) {
		free(show_answer(w->show, &somebody, "doctor", &second));
		usleep(10000);
	}
	assert_non_null(second);
	second->free(second);
	unlink(path);
}

// OPS-130
static void in_json_the_status_comes_first(void **state)
{
	struct world *w = *state;
	struct stats_follow *f = ask(w, "doctor json");
	a_second_later(w);
	const char *text = end_of(f);
	static const char begin[] = "{\"schema_version\":1,\"data\":{\"status\":2,\"errors\":2,";
	assert_memory_equal(text, begin, strlen(begin));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, show_world_tear_down)

RUN_SUITE("ctrl/stats/show_doctor",
	TEST(the_answer_comes_after_a_second_and_names_frontends_that_fail),
	TEST(each_of_the_daemons_faults_is_named),
	TEST(a_gateway_that_is_down_is_a_warning_while_another_one_answers),
	TEST(what_was_lost_before_is_told_no_more), TEST(the_daemon_is_examined_in_slices),
	TEST(a_refused_resource_is_an_error_unless_an_older_one_serves),
	TEST(a_server_that_cannot_be_reached_is_named),
	TEST(a_server_that_refuses_the_node_is_named_as_that),
	TEST(the_hosts_findings_are_told_with_the_daemons),
	TEST(a_host_that_is_not_examined_is_said),
	TEST(an_examination_that_hangs_is_ended_and_one_runs_at_a_time),
	TEST(in_json_the_status_comes_first))
