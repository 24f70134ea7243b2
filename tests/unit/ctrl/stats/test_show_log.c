// SPDX-License-Identifier: Apache-2.0
// What `log` says of wrong words.
#include "ctrl/access_log/access_log.h"
#include "ctrl/access_log/place.h"
#include "ctrl/loop.h"
#include "ctrl/stats/caller.h"
#include "ctrl/stats/stats_server.h"
#include "lb/pick/access.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/stats/show_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct access_log *access_log;
static struct lb_access *ring;

static int set_up(void **state)
{
	static const struct access_log_frontend fronts[] = {{.name = "web"}, {.name = "api"}};
	const struct lb_access_filter all = {.sample = LB_ACCESS_SAMPLE_ALL};
	const struct access_place nowhere = {.kind = ACCESS_FILE, .path = "/dev/null"};
	struct lb_err err = {.text = ""};
	ring = lb_access_new(&all);
	const struct access_log_conf conf = {
		.logs = {.own = &nowhere, .text_format = "%REQ(:PATH)%"},
		.frontends = fronts,
		.n_frontends = 2,
		.workers = &ring,
		.n_workers = 1,
		.clock_ns = loop_clock_ns,
		.wall_ns = loop_wall_ns,
	};
	assert_int_equal(access_log_new(&conf, &access_log, &err), 0);
	assert_int_equal(show_world_set_up(state), 0);
	struct world *w = *state;
	w->conf.access_log = access_log;
	show_free(w->show);
	w->show = show_new(&w->conf);
	return w->show ? 0 : -1;
}

static int tear_down(void **state)
{
	int rc = show_world_tear_down(state);
	access_log_free(access_log);
	lb_access_free(ring);
	return rc;
}

static void check_answer(struct world *w, const char *command, const char *begin)
{
	static const struct stats_caller somebody = {.level = STATS_USER};
	struct stats_follow *follow = NULL;
	char *text = show_answer(w->show, &somebody, command, &follow);
	assert_non_null(text);
	assert_null(follow);
	if (strncmp(text, begin, strlen(begin)) != 0)
		fail_msg("%s: %s", command, text);
	free(text);
}

// OPS-299
static void a_wrong_condition_is_named_with_what_may_stand_there(void **state)
{
	static const char *const wrong[][2] = {
		{"log cause=zz",
			"error: no cause 'zz', there are ok, no_route, unsupported_action, "},
		{"log cause=", "error: nothing follows cause=\n"},
		{"log -f frontend=zz", "error: no frontend is called 'zz', try show info\n"},
		{"log status=ok", "error: status: 'ok' is not a number up to 999\n"},
		{"log status=1000", "error: status: '1000' is not a number up to 999\n"},
		{"log cause=ok cause=timeout", "error: cause is given twice\n"},
		{"log color=blue", "error: unexpected argument 'color=blue', try help\n"}};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		check_answer(*state, wrong[i][0], wrong[i][1]);
	check_answer(*state, "log cause=killed frontend=web status=200 path=/ cluster=blue", "");
}

// OPS-299
static void a_path_that_is_too_long_is_not_said_to_be_none(void **state)
{
	char command[256];
	snprintf(command, sizeof(command), "log path=/%0127d", 0);
	check_answer(*state, command, "error: path='/000");
	snprintf(command, sizeof(command), "log path=/%0126d", 0);
	check_answer(*state, command, "");
}

// OPS-299: the last one, too.
static void all_names_of_causes_have_room(void **state)
{
	static const struct stats_caller somebody = {.level = STATS_USER};
	struct stats_follow *follow = NULL;
	struct world *w = *state;
	char *text = show_answer(
		w->show, &somebody, "log cause=0123456789012345678901234567890123456789", &follow);
	assert_non_null(strstr(text, ", drained\n"));
	free(text);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
RUN_SUITE("ctrl/show_log", CASE(a_wrong_condition_is_named_with_what_may_stand_there),
	CASE(a_path_that_is_too_long_is_not_said_to_be_none), CASE(all_names_of_causes_have_room))
