// SPDX-License-Identifier: Apache-2.0
// What operators say of endpoints, from the command to what workers are told.
#include "ctrl/stats/caller.h"
#include "ctrl/stats/show.h"
#include "lb/pick/link.h"
#include "lb/pick/picker.h"
#include "lb/route/req.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <stdlib.h>
#include <string.h>

#define BACKEND(last)                                                                              \
	{                                                                                          \
		{{{[10] = 255, [11] = 255, [12] = 10, [15] = (last)}}, 80}, LB_LEAF_HEALTHY, 1     \
	}
static const struct told_endpoint backends[] = {BACKEND(1), BACKEND(2), BACKEND(3)};
static const struct told_locality two = {"r", "z", "s", 1, backends, 2},
				  three = {"r", "z", "s", 1, backends, 3};
static const struct told_priority first_two[] = {{&two, 1}}, all_three[] = {{&three, 1}};
static const struct res_vhost blue = {
	"v", DOMAINS("*"), ROUTES({PREFIX(""), CLUSTERS({"blue", 1})})};

static char *ask(struct world *w, const char *command)
{
	static const struct stats_caller operator_ = {.level = STATS_OPERATOR};
	struct show *show = show_new(&(struct show_conf){.config = &w->config,
		.workers = w->workers,
		.assembler = w->assembler,
		.wheel = w->wheel});
	char *text = show_answer(show, &operator_, command, &(struct stats_follow *){NULL});
	show_free(show);
	return text;
}

static bool says(struct world *w, const char *command, const char *part)
{
	char *text = ask(w, command);
	bool found = strstr(text, part);
	if (!found)
		print_message("%s: %s", command, text);
	free(text);
	settle(w);
	return found;
}

// Endpoints that the worker is to connect are connected; returns how many are let go of.
static unsigned obey(struct world *w)
{
	struct lb_command c;
	unsigned n = 0;
	while (spsc_read(&w->link->commands, &c)) {
		struct lb_event e = {.kind = LB_EVENT_CONNECTED, .endpoint_id = c.endpoint->id};
		if (c.kind == LB_COMMAND_RELEASE) {
			e.kind = LB_EVENT_RELEASED;
			n++;
		}
		assert_true(spsc_write(&w->link->events, &e));
		settle(w);
	}
	return n;
}

static void give(struct world *w, const struct told_priority *priorities)
{
	struct res_endpoints *e = endpoints_of(priorities, 1);
	apply(w, &blue, (const char *[]){"blue"}, &e, 1);
	xds_res_put(&e->base);
	settle(w);
}

// How often each backend is picked of so many times.
static void pick(struct world *w, unsigned n, unsigned ret[4])
{
	struct lb_pick_hash hash = {0};
	memset(ret, 0, 4 * sizeof(ret[0]));
	for (unsigned i = 0; i < n; i++) {
		struct lb_pick p = assembler_pick(w->assembler, "blue", &(struct lb_req){0}, &hash);
		assert_int_equal(p.kind, LB_PICK_ENDPOINT);
		ret[p.cell->endpoint->addr.ip.b[15]]++;
	}
}

// OPS-77, OPS-78
static void a_drained_endpoint_is_picked_no_more_until_that_is_taken_back(void **state)
{
	struct world *w = *state;
	unsigned picks[4];
	give(w, first_two);
	assert_int_equal(obey(w), 0);
	pick(w, 20, picks);
	assert_true(picks[1] && picks[2]);
	assert_true(says(w, "set endpoint blue/10.0.0.1:80 drain", "state: applied"));
	assert_int_equal(obey(w), 1);
	pick(w, 20, picks);
	assert_int_equal(picks[2], 20);
	assert_true(says(w, "show endpoints", "DRAINING"));
	assert_true(says(w, "show overrides", "drain"));
	give(w, all_three); // an update takes nothing back
	assert_int_equal(obey(w), 0);
	pick(w, 20, picks);
	assert_true(!picks[1] && picks[2] && picks[3]);
	assert_true(says(w, "unset endpoint blue/10.0.0.1:80", "unset: drain"));
	(void)obey(w);
	pick(w, 30, picks);
	assert_true(picks[1] && picks[2] && picks[3]);
	assert_true(says(w, "unset endpoint blue/10.0.0.1:80", "error: 'blue/10.0.0.1:80' has no"));
}

// OPS-77
static void an_endpoint_that_is_down_is_up_again_by_word(void **state)
{
	struct world *w = *state;
	unsigned picks[4];
	give(w, first_two);
	(void)obey(w);
	assert_true(says(w, "set endpoint blue/10.0.0.2:80 down", "override: down"));
	assert_int_equal(obey(w), 1);
	pick(w, 10, picks);
	assert_int_equal(picks[1], 10);
	assert_true(says(w, "show endpoints", "UNHEALTHY"));
	assert_true(says(w, "set endpoint blue/10.0.0.2:80 up", "override: up"));
	(void)obey(w);
	pick(w, 10, picks);
	assert_true(picks[1] && picks[2]);
}

static unsigned n_ready(const struct world *w)
{
	struct assembler_cluster_info info;
	assert_true(assembler_find_cluster(w->assembler, "blue", &info));
	assert_int_equal(info.n_failing, 0); // what an operator says is no fault
	return info.n_ready;
}

// OPS-239: the last one's connection is kept, but no request may reach it.
static void what_an_operator_takes_out_is_not_counted_as_ready(void **state)
{
	struct world *w = *state;
	give(w, first_two);
	(void)obey(w);
	assert_int_equal(n_ready(w), 2);
	assert_true(says(w, "set endpoint blue/10.0.0.1:80 drain", "state: applied"));
	(void)obey(w);
	assert_int_equal(n_ready(w), 1);
	assert_true(says(w, "set endpoint blue/10.0.0.1:80 down", "state: applied"));
	assert_true(says(w, "set endpoint blue/10.0.0.2:80 down", "state: applied"));
	(void)obey(w);
	assert_int_equal(n_ready(w), 0);
	assert_true(says(w, "unset endpoint blue/10.0.0.2:80", "unset: down"));
	(void)obey(w);
	assert_int_equal(n_ready(w), 1);
}

// OPS-79
static void an_override_waits_for_its_endpoint_and_says_so(void **state)
{
	struct world *w = *state;
	unsigned picks[4];
	assert_true(says(w, "set endpoint blue/10.0.0.3:80 drain", "state: waits for the cluster"));
	give(w, first_two);
	(void)obey(w);
	assert_true(says(w, "show overrides", "waits for the endpoint"));
	give(w, all_three);
	(void)obey(w);
	assert_true(says(w, "show overrides", "applied"));
	pick(w, 20, picks);
	assert_true(picks[1] && picks[2] && !picks[3]);
}

// OPS-295: round robin's, by which this cluster balances.
static void a_weight_that_no_policy_looks_at_says_so(void **state)
{
	static const char note[] = "note: its policy weighs no endpoints";
	struct world *w = *state;
	give(w, first_two);
	(void)obey(w);
	assert_true(says(w, "set endpoint blue/10.0.0.1:80 weight 9", note));
	assert_true(says(w, "show overrides", note + strlen("note: ")));
	assert_true(says(w, "set endpoint blue/10.0.0.2:80 drain", "note: \n"));
	assert_true(says(w, "set endpoint absent/10.0.0.1:80 weight 9", "note: \n"));
}

static void what_is_no_override_is_refused(void **state)
{
	static const char *const wrong[] = {"set endpoint", "set endpoint blue/10.0.0.1:80",
		"set endpoint blue drain", "set endpoint blue/10.0.0.1 drain",
		"set endpoint /10.0.0.1:80 drain", "set endpoint blue/10.0.0.1:80 off",
		"set endpoint blue/10.0.0.1:80 drain now", "set endpoint blue/10.0.0.1:80 weight",
		"set endpoint blue/10.0.0.1:80 weight 0",
		"set endpoint blue/10.0.0.1:80 weight 1000001", "unset endpoint"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_true(says(*state, wrong[i], "error: "));
	assert_true(says(*state, "show overrides json", "\"data\":[]"));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, world_set_up, world_tear_down)
RUN_SUITE("ctrl/assemble_overrides",
	CASE(a_drained_endpoint_is_picked_no_more_until_that_is_taken_back),
	CASE(an_endpoint_that_is_down_is_up_again_by_word),
	CASE(what_an_operator_takes_out_is_not_counted_as_ready),
	CASE(an_override_waits_for_its_endpoint_and_says_so),
	CASE(a_weight_that_no_policy_looks_at_says_so), CASE(what_is_no_override_is_refused))
