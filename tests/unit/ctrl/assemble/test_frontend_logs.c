// SPDX-License-Identifier: Apache-2.0
// What listeners ask for in the way of access logs and do not get: when it is asked for again, and
// how often it is told. Who gives them is the test itself.
#include "ctrl/access_log/access_log.h"
#include "ctrl/access_log/want.h"
#include "lb/base/log.h"
#include "lb/pick/access_set.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <string.h>

static uint32_t n_room; // for logs of one listener
static uint32_t n_asked; // times
static uint32_t n_warned;

// The linker's --wrap: what the assembler calls.
struct lb_access_set *__wrap_access_log_want(struct access_log *, const struct access_want *,
	uint32_t n, access_refused_fn *tell, void *ctx);
struct lb_access_set *__wrap_access_log_want(struct access_log *l, const struct access_want *wants,
	uint32_t n, access_refused_fn *tell, void *ctx)
{
	struct lb_access_log logs[8];
	uint32_t n_logs = 0;
	n_asked += n != 0;
	for (uint32_t i = 0; i < n; i++) {
		if (strcmp(wants[i].name, "wrong") == 0)
			tell(ctx, i, "format: it is wrong", false);
		else if (n_logs == n_room)
			tell(ctx, i, "no room", true);
		else
			logs[n_logs++] = (struct lb_access_log){.bit = UINT64_C(2) << i};
	}
	return n_logs ? lb_access_set_new(logs, n_logs) : NULL;
}

static void on_line(
	void *ctx, uint64_t wall_ns, enum log_level level, const char *msg, const char *rest)
{
	n_warned += level == LOG_LEVEL_WARN && strstr(rest, "is ignored");
}

static int set_up(void **state)
{
	n_room = n_asked = n_warned = 0;
	log_set_sink(on_line, NULL);
	return world_set_up_both(state);
}

static int tear_down(void **state)
{
	log_set_sink(NULL, NULL);
	return world_tear_down(state);
}

static const struct res_vhost vhost = {
	"a", DOMAINS("*"), ROUTES({PREFIX("/"), CLUSTERS({"blue", 1})})};

static void give(struct world *w, uint32_t frontend, const char *version,
	const struct access_want *wants, uint32_t n)
{
	static const char *const names[] = {"blue"};
	struct res_listener *l = listener_of(version, NULL, 0);
	struct res_route_config *r = routes_of(&vhost, 1);
	struct res_endpoints *e = endpoints_of(NULL, 0);
	l->access_logs = (struct res_access_logs){wants, n};
	update(w, frontend, config_of(l, r, names, &e, 1));
	xds_res_put(&e->base);
	xds_res_put(&l->base);
	xds_res_put(&r->base);
}

static const struct lb_frontend *published(const struct world *w)
{
	return lb_snapshot_frontend(lb_slot_current(w->slot), 0);
}

static uint32_t n_published(const struct world *w)
{
	const struct lb_access_set *s = published(w)->access;
	return s ? s->n : 0;
}

static const struct access_want two[] = {{.name = "one"}, {.name = "two"}};

// OPS-47
static void what_found_no_room_is_asked_for_again(void **state)
{
	struct world *w = *state;
	give(w, 0, "1", two, 2);
	turns(w, 1);
	assert_int_equal(n_published(w), 0);
	uint64_t generation = published(w)->generation;
	turns(w, 400); // 800 ms
	assert_int_equal(n_asked, 1);
	n_room = 1;
	turns(w, 120);
	assert_int_equal(n_asked, 2);
	settle(w);
	assert_int_equal(n_published(w), 1);
	n_room = 2;
	turns(w, 510);
	settle(w);
	assert_int_equal(n_published(w), 2);
	assert_int_equal(published(w)->generation, generation); // clients stay
	n_asked = 0;
	turns(w, 2 * 500);
	assert_int_equal(n_asked, 0); // it has all
	assert_int_equal(n_warned, 2);
}

static void what_is_wrong_is_not_asked_for_again(void **state)
{
	struct world *w = *state;
	const struct access_want wrong[] = {{.name = "wrong"}, {.name = "one"}};
	n_room = 8;
	give(w, 0, "1", wrong, 2);
	turns(w, 2 * 500);
	assert_int_equal(n_published(w), 1);
	assert_int_equal(n_asked, 1);
}

static void without_a_configuration_nothing_is_asked_for(void **state)
{
	struct world *w = *state;
	give(w, 0, "1", two, 2);
	turns(w, 1);
	assembler_fail(w->assembler, 0, "gone");
	turns(w, 2 * 500);
	assert_int_equal(n_asked, 1);
}

// As other warnings of a resource (log_warnings() in assembled_frontend.c).
static void what_is_refused_is_told_once(void **state)
{
	struct world *w = *state;
	const struct access_want wrong[] = {{.name = "wrong"}, {.name = "wrong"}};
	const struct access_want more[] = {{.name = "wrong"}, {.name = "full"}};
	n_room = 0;
	give(w, 0, "1", wrong, 2);
	assert_int_equal(n_warned, 1);
	give(w, 0, "2", wrong, 2);
	give(w, 0, "3", wrong, 2);
	give(w, 1, "3", wrong, 2); // or another chain of it
	assert_int_equal(n_warned, 1);
	give(w, 0, "4", more, 2);
	assert_int_equal(n_warned, 2);
	turns(w, 2 * 500);
	assert_int_equal(n_warned, 2);
	give(w, 0, "5", NULL, 0);
	give(w, 1, "5", NULL, 0);
	give(w, 0, "6", wrong, 2); // mended, and broken again
	assert_int_equal(n_warned, 3);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_SUITE("ctrl/frontend_logs", CASE(what_found_no_room_is_asked_for_again),
	CASE(what_is_wrong_is_not_asked_for_again),
	CASE(without_a_configuration_nothing_is_asked_for), CASE(what_is_refused_is_told_once))
