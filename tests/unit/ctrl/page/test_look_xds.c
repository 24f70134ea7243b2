// SPDX-License-Identifier: Apache-2.0
// What the status page says of the xDS server, and what it finds wrong.
#include "ctrl/page/look.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/stats/show_world.h"

#include <stdlib.h>
#include <string.h>

static uint64_t wall_ns(void)
{
	return UINT64_C(1800000000) * NS_PER_SECOND;
}

static int set_up(void **state)
{
	int rc = show_world_set_up(state);
	struct world *w = *state;
	w->conf.wall_ns = wall_ns;
	show_free(w->show);
	w->show = show_new(&w->conf);
	assert_non_null(w->show);
	return rc;
}

static char *look(struct world *w, char **ret_title)
{
	struct look *l = look_new(w->show, NULL, NULL);
	size_t len;
	int more;
	do
		more = look_step(l);
	while (more > 0);
	assert_int_equal(more, 0);
	char *text = look_take_text(l, &len);
	*ret_title = look_take_title(l);
	look_free(l);
	return text;
}

static void expect(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text);
}

static void what_is_wrong_stands_first_with_what_mends_it(void **state)
{
	struct world *w = *state;
	char *title, *text = look(w, &title);
	assert_int_equal(strncmp(title, "starting, with 2 errors \u00b7 ", 20), 0);
	expect(text, "starting, with 2 errors");
	expect(text, "frontend web fails: ");
	expect(text, "Look at: shuntctl show xds, shuntctl show certs");
	assert_true(strstr(text, "id=\"wrong\"") < strstr(text, "id=\"frontends\""));
	free(title);
	free(text);
}

// OPS-173
static void ops_173_refused_resources_are_told_with_their_errors(void **state)
{
	struct world *w = *state;
	struct xds_watcher a = {.on_event = show_world_forget_event};
	struct xds_watcher b = {.on_event = show_world_forget_event};
	assert_int_equal(xds_federation_watch(w->xds, show_world_cluster_type(), "a", &a), 0);
	assert_int_equal(xds_federation_watch(w->xds, show_world_cluster_type(), "b", &b), 0);
	show_world_say_clusters(w, "1", STR(GOOD("a")), STR(BAD("b")));
	char *title, *text = look(w, &title);
	const char *resources = strstr(text, "id=\"resources\"");
	assert_non_null(resources);
	expect(resources, "NACKED");
	expect(resources, "eds_cluster_config");
	expect(text, SHOW_WORLD_URI);
	expect(text, "1 acked");
	expect(text, "1 nacked");
	free(title);
	free(text);
	xds_federation_cancel(w->xds, &a);
	xds_federation_cancel(w->xds, &b);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, show_world_tear_down)
RUN_SUITE("ctrl/page/look_xds", CASE(what_is_wrong_stands_first_with_what_mends_it),
	CASE(ops_173_refused_resources_are_told_with_their_errors))
