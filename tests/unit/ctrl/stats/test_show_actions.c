// SPDX-License-Identifier: Apache-2.0
// Commands that do something: who may, what is told of it, and answers that come later.
#include "ctrl/assemble/drains.h"
#include "ctrl/base/events.h"
#include "ctrl/capture/capture.h"
#include "ctrl/stats/caller.h"
#include "ctrl/stats/stats_server.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/pick/link.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/stats/show_world.h"

#include <event2/buffer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct stats_follow *no_follow; // of answers that are whole
static const struct stats_caller somebody = {.level = STATS_USER, .uid = 1000, .pid = 7};
static const struct stats_caller root = {.level = STATS_ADMIN, .uid = 0, .pid = 77};

// OPS-70
static void an_action_needs_its_level_and_says_which(void **state)
{
	const struct world *w = *state;
	static const struct stats_caller operator_ = {.level = STATS_OPERATOR};
	const struct stats_caller *too_low[] = {&somebody, &operator_};
	for (unsigned i = 0; i < 2; i++) {
		char *text = show_answer(w->show, too_low[i], "reload", &no_follow);
		assert_non_null(strstr(text, "error: 'reload' needs the level admin, and yours"));
		assert_non_null(strstr(text, stats_level_name(too_low[i]->level)));
		free(text);
	}
}

// OPS-71
static void an_action_is_an_event_with_who_did_it(void **state)
{
	struct world *w = *state;
	log_set_sink(events_add, w->events);
	free(show_answer(w->show, &root, "reconnect", &no_follow));
	free(show_answer(w->show, &somebody, "reload", &no_follow)); // refused: not done
	log_set_sink(NULL, NULL);
	json_t *rows = show_world_ask(w, "show events json");
	json_t *last = json_array_get(rows, json_array_size(rows) - 1);
	assert_string_equal(json_string_value(json_object_get(last, "event")), "operator's action");
	const char *details = json_string_value(json_object_get(last, "details"));
	assert_string_equal(details, "user=\"root\" uid=0 pid=77 command=\"reconnect\"");
	json_decref(rows);
}

static void help_names_the_level_of_each_command(void **state)
{
	json_t *rows = show_world_ask(*state, "help json"), *row;
	unsigned n_admin = 0;
	size_t i;
	json_array_foreach(rows, i, row)
	{
		const char *level = json_string_value(json_object_get(row, "level"));
		const char *name = json_string_value(json_object_get(row, "command"));
		n_admin += strcmp(level, "admin") == 0;
		if (strncmp(name, "show ", 5) == 0)
			assert_string_equal(level, "user");
	}
	assert_true(n_admin > 0);
	json_decref(rows);
}

static bool is_given; // the place, to another process

int __wrap_takeover_check_change(const struct takeover *, struct lb_err *);
int __wrap_takeover_check_change(const struct takeover *t, struct lb_err *err)
{
	return is_given ? lb_err_set(err, "ask that one") : 0;
}

// The text of an answer that is whole; good until the next one.
static const char *ask(struct world *w, const char *command)
{
	static char text[1024];
	char *answer = show_answer(w->show, &root, command, &no_follow);
	assert_null(no_follow);
	snprintf(text, sizeof(text), "%s", answer);
	free(answer);
	return text;
}

static const char *state_of(struct world *w, size_t frontend)
{
	static char text[64];
	json_t *info = show_world_ask(w, "show info json");
	json_t *row = json_array_get(json_object_get(info, "frontends"), frontend);
	snprintf(text, sizeof(text), "%s", json_string_value(json_object_get(row, "state")));
	json_decref(info);
	return text;
}

// OPS-72
static void a_drain_is_of_one_frontend_or_all(void **state)
{
	struct world *w = *state;
	w->config.lame_duck_s = 5;
	assert_string_equal(ask(w, "drain frontend api"), "draining: 1\n");
	assert_string_equal(state_of(w, 1), "lame_duck");
	assert_string_not_equal(state_of(w, 0), "lame_duck");
	assert_string_equal(ask(w, "drain"), "draining: 1\n");
	assert_string_equal(state_of(w, 0), "lame_duck");
	assert_string_equal(ask(w, "undrain all"), "serving: 2\n");
	assert_string_not_equal(state_of(w, 0), "lame_duck");
	assert_string_equal(
		ask(w, "drain frontend no"), "error: no frontend is called 'no', try show info\n");
	assert_string_equal(ask(w, "drain web"),
		"error: 'frontend NAME' or 'all' may follow, and nothing else\n");
}

// FL-184: nobody else would know.
static void what_another_process_would_not_know_of_is_refused(void **state)
{
	static const char *const commands[] = {
		"drain", "set endpoint blue/10.0.0.1:80 drain", "unset endpoint blue/10.0.0.1:80"};
	struct world *w = *state;
	for (int i = 0; i < 3; i++) {
		is_given = true;
		assert_string_equal(ask(w, commands[i]), "error: ask that one\n");
		is_given = false;
		assert_null(strstr(ask(w, commands[i]), "error: "));
	}
	assert_string_equal(ask(w, "undrain"), "serving: 2\n");
}

// What the follow adds; good until the next call. *ret_more: whether it goes on.
static const char *more(struct stats_follow *follow, bool *ret_more)
{
	static char text[1024];
	struct evbuffer *out = evbuffer_new();
	*ret_more = follow->more(follow, out);
	ssize_t n = evbuffer_copyout(out, text, sizeof(text) - 1);
	text[n] = 0;
	evbuffer_free(out);
	return text;
}

static struct stats_follow *begin(struct world *w, const char *command)
{
	struct stats_follow *follow = NULL;
	char *text = show_answer(w->show, &root, command, &follow);
	assert_string_equal(text, "");
	free(text);
	assert_non_null(follow);
	return follow;
}

// OPS-76
static void who_waits_for_a_drain_is_told_when_it_is_over(void **state)
{
	struct world *w = *state;
	bool goes_on;
	assert_string_equal(ask(w, "wait drained"), "error: no frontend drains\n");
	w->link->counters.frontend_uses[0] = 3;
	(void)ask(w, "drain frontend web");
	struct stats_follow *f = begin(w, "wait drained json");
	assert_string_equal(more(f, &goes_on), "");
	assert_true(goes_on);
	w->link->counters.frontend_uses[0] = 0;
	twheel_advance(w->wheel, 2 * NS_PER_SECOND);
	assert_string_equal(
		more(f, &goes_on), "{\"schema_version\":1,\"data\":{\"waited_s\":1.0}}\n");
	assert_false(goes_on);
	f->free(f);
	assert_string_equal(ask(w, "wait drained"), "waited_s: 0.00\n");
}

// OPS-76: also in a farewell, before anybody is told of its end, and whatever was drained before.
static void who_waits_for_a_drain_is_told_that_the_daemon_stops(void **state)
{
	static const char stopping[] =
		"error: the daemon is stopping, and ends once it is drained\n";
	struct world *w = *state;
	uint64_t lame_until_ns, gone_by_ns;
	bool goes_on;
	w->link->counters.frontend_uses[0] = 3;
	(void)ask(w, "drain frontend web");
	struct stats_follow *f = begin(w, "wait drained");
	assert_false(drains_stop(w->drains, &lame_until_ns, &gone_by_ns));
	assert_string_equal(more(f, &goes_on), stopping);
	assert_false(goes_on);
	f->free(f);
	w->link->counters.frontend_uses[0] = 0;
	twheel_advance(w->wheel, 2 * NS_PER_SECOND);
	assert_string_equal(ask(w, "wait drained"), stopping); // others are to drain, too
}

// OPS-76
static void who_waits_for_a_drain_that_nobody_began_hears_of_a_stop(void **state)
{
	struct world *w = *state;
	uint64_t lame_until_ns, gone_by_ns;
	assert_false(drains_stop(w->drains, &lame_until_ns, &gone_by_ns));
	assert_string_equal(ask(w, "wait drained"),
		"error: the daemon is stopping, and ends once it is drained\n");
}

// OPS-76
static void who_waits_too_long_is_told_what_is_missing(void **state)
{
	struct world *w = *state;
	bool goes_on;
	w->config.drain_s = 60;
	w->link->counters.frontend_uses[1] = 2;
	(void)ask(w, "drain frontend api");
	w->waiting[0] = "cluster blue";
	struct stats_follow *drained = begin(w, "wait drained 3"),
			    *ready = begin(w, "wait ready 3");
	twheel_advance(w->wheel, 3 * NS_PER_SECOND);
	assert_string_equal(more(drained, &goes_on), "");
	assert_true(goes_on);
	twheel_advance(w->wheel, 5 * NS_PER_SECOND);
	assert_non_null(strstr(more(drained, &goes_on),
		"error: not within 3 s: frontend api is draining: 2 clients are left, and 5"));
	assert_false(goes_on);
	assert_string_equal(more(ready, &goes_on),
		"error: not within 3 s: frontend web waits for cluster blue\n");
	assert_false(goes_on);
	drained->free(drained);
	ready->free(ready);
}

// OPS-76: readiness does not ask for it.
static void who_waits_for_readiness_hears_of_no_next_target(void **state)
{
	struct world *w = *state;
	struct config_frontend next = {.target = NULL};
	bool goes_on;
	w->frontends[0].next = &next;
	w->waiting[0] = "listener other";
	w->waiting[1] = "cluster blue";
	struct stats_follow *f = begin(w, "wait ready 3");
	twheel_advance(w->wheel, 5 * NS_PER_SECOND);
	assert_string_equal(
		more(f, &goes_on), "error: not within 3 s: frontend api waits for cluster blue\n");
	assert_false(goes_on);
	w->waiting[1] = "";
	assert_string_equal(more(f, &goes_on),
		"error: not within 3 s: frontend web: no configuration has been received yet\n");
	f->free(f);
}

// OPS-76
static void who_waits_for_a_version_hears_of_it_or_of_its_refusal(void **state)
{
	struct world *w = *state;
	bool goes_on;
	struct xds_watcher watchers[2] = {{show_world_forget_event}, {show_world_forget_event}};
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(xds_federation_watch(w->xds, show_world_cluster_type(),
					 (char[]){(char)('a' + i), 0}, &watchers[i]),
			0);
	w->link->counters.snapshot_version = 1; // the one that there is
	struct stats_follow *f = begin(w, "wait config v1"), *bad = begin(w, "wait config v2");
	assert_string_equal(more(f, &goes_on), "");
	show_world_say_clusters(w, "v1", STR(GOOD("a")), STR(GOOD("b")));
	assert_string_equal(more(f, &goes_on), ""); // workers may have it a turn later
	w->link->counters.snapshot_version = 0;
	assert_string_equal(more(f, &goes_on), "");
	assert_true(goes_on);
	w->link->counters.snapshot_version = 1;
	assert_string_equal(more(f, &goes_on), "");
	assert_string_equal(more(f, &goes_on), "waited_s: 0.00\n");
	assert_false(goes_on);
	f->free(f);
	assert_string_equal(more(bad, &goes_on), "");
	show_world_say_clusters(w, "v2", STR(BAD("a")), STR(GOOD("b")));
	assert_non_null(
		strstr(more(bad, &goes_on), "error: cluster a of version v2 was refused: "));
	assert_false(goes_on);
	bad->free(bad);
	for (unsigned i = 0; i < 2; i++)
		xds_federation_cancel(w->xds, &watchers[i]);
}

// OPS-80
static void the_logs_level_is_set_and_reload_knows_of_it(void **state)
{
	struct world *w = *state;
	w->config.log_level = LOG_LEVEL_ERROR;
	assert_string_equal(ask(w, "set log level warn"), "level: warn\nwas: error\n");
	assert_int_equal(w->config.log_level, LOG_LEVEL_WARN); // what a reload compares
	assert_string_equal(
		ask(w, "set log level loud"), "error: error, warn, info or debug must follow\n");
	assert_string_equal(ask(w, "set log level error"), "level: error\nwas: warn\n");
}

// OPS-299: with the range of what it may be.
static void what_is_no_condition_of_a_capture_is_refused(void **state)
{
	static const char *const wrong[][2] = {{"host=nobody", "host: 'nobody' is not an address"},
		{"host=", "host: '' is not an address"},
		{"direction=up", "direction: 'up' is neither rx nor tx"},
		{"port=0", "port: '0' is not between 1 and 65535"},
		{"port=65536", "port: '65536' is not between 1 and 65535"},
		{"interface=2", "interface: '2' is not between 0 and 1"},
		{"snaplen=63", "snaplen: '63' is not between 64 and "},
		{"count=0", "count: '0' is not between 1 and "},
		{"seconds=86401", "seconds: '86401' is not between 1 and 86400"},
		{"size=x", "size: 'x' is not between 1 and "},
		{"rx", "unexpected argument 'rx', try help"},
		{"=", "unexpected argument '=', try help"},
		{"seconds=1 seconds=1", "seconds is given twice"}};
	struct world *w = *state;
	struct config_capture where = {(char *)(uintptr_t) "/nowhere"};
	w->config.capture = &where;
	w->config.n_ports = 2;
	const struct capture_conf conf = {.config = &w->config, .workers = w->workers};
	w->conf.capture = capture_new(&conf);
	show_free(w->show);
	w->show = show_new(&w->conf);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char command[64];
		snprintf(command, sizeof(command), "capture start a %s", wrong[i][0]);
		const char *said = ask(w, command);
		assert_int_equal(strncmp(said, "error: ", 7), 0);
		if (strncmp(said + 7, wrong[i][1], strlen(wrong[i][1])) != 0)
			fail_msg("%s: %s", command, said);
	}
	capture_free(w->conf.capture);
	w->config.capture = NULL;
	w->config.n_ports = 0;
}

static void what_is_no_wait_is_refused(void **state)
{
	static const char *const wrong[] = {"wait", "wait long", "wait config", "wait ready 0",
		"wait ready 3601", "wait drained 5 6", "wait config v1 x", "wait config \"\""};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(strncmp(ask(*state, wrong[i]), "error: '", 8), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, show_world_set_up, show_world_tear_down)
RUN_SUITE("ctrl/show_actions", CASE(an_action_needs_its_level_and_says_which),
	CASE(an_action_is_an_event_with_who_did_it), CASE(help_names_the_level_of_each_command),
	CASE(a_drain_is_of_one_frontend_or_all),
	CASE(what_another_process_would_not_know_of_is_refused),
	CASE(who_waits_for_a_drain_is_told_when_it_is_over),
	CASE(who_waits_for_a_drain_is_told_that_the_daemon_stops),
	CASE(who_waits_for_a_drain_that_nobody_began_hears_of_a_stop),
	CASE(who_waits_too_long_is_told_what_is_missing),
	CASE(who_waits_for_readiness_hears_of_no_next_target),
	CASE(who_waits_for_a_version_hears_of_it_or_of_its_refusal),
	CASE(the_logs_level_is_set_and_reload_knows_of_it), CASE(what_is_no_wait_is_refused),
	CASE(what_is_no_condition_of_a_capture_is_refused))
