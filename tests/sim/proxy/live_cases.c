// SPDX-License-Identifier: Apache-2.0
// OPS-323, OPS-325: frontends that snapshots change, take away and bring (lb/live_frontend.h),
// while there are clients.
#include "lb/live_frontend.h"
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#define DRAIN_NS (20 * SECOND)

// Two clients of frontend 0, one of frontend 1, accepted under generation 1.
static struct world *three_clients(void)
{
	struct world_conf conf = world_conf_default(17);
	conf.listener_drain_ns = DRAIN_NS;
	conf.n_clients = 5;
	conf.n_backends = 2;
	struct world *w = world_new(&conf);
	for (uint32_t i = 0; i < 2; i++)
		control_set_filters(&w->control, i, NULL, 0, LB_NO_TIMEOUT, 1);
	use_backends(w, 0x3);
	for (uint32_t i = 0; i < 3; i++)
		world_open_client(w, i, i / 2);
	world_run(w, 100 * MS);
	return w;
}

static struct ask *ask_of(struct world *w, uint32_t client, enum kind kind, uint32_t size)
{
	struct ask *a = world_ask(w, "one", kind, size);
	client_ask(&w->clients[client], a);
	return a;
}

static uint64_t uses(const struct world *w, uint32_t frontend)
{
	return counter_read(&w->control.link->counters.frontend_uses[frontend]);
}

static uint64_t number;

static void set_live(struct world *w, uint32_t frontend, const struct lb_frontend_conf *conf,
	uint64_t owner, bool is_left)
{
	struct lb_live_frontend *live = lb_live_frontend_new(conf, ++number, owner, is_left);
	assert_non_null(live);
	control_set_live(&w->control, frontend, live);
	lb_live_frontend_put(live);
	world_run(w, 20 * MS);
}

// At the address that this says.
static void open_at(struct world *w, uint32_t i, const struct lb_frontend_conf *conf)
{
	struct lb_frontend_conf was = w->frontends[0];
	w->frontends[0] = *conf;
	world_open_client(w, i, 0);
	w->frontends[0] = was;
	world_run(w, 200 * MS);
}

static void ops_323_one_that_moves_is_where_it_is_now(void **state)
{
	struct world *w = three_clients();
	struct lb_frontend_conf to = w->frontends[0];
	struct ask *busy = ask_of(w, 0, KIND_HANG, 0), *other = ask_of(w, 2, KIND_HANG, 0);
	world_run(w, 20 * MS);
	to.port = 8999;
	control_set_filters(&w->control, 0, NULL, 0, LB_NO_TIMEOUT, 2);
	set_live(w, 0, &to, 0, false);
	assert_int_equal(uses(w, 0), 3);
	open_at(w, 3, &to);
	assert_true(w->clients[3].up);
	open_at(w, 4, &w->frontends[0]);
	assert_true(w->clients[4].over && !w->clients[4].up);
	struct ask *late = ask_of(w, 1, KIND_ECHO, 3000), *new = ask_of(w, 3, KIND_ECHO, 3000);
	world_run(w, DRAIN_NS / 4);
	assert_ok(w, late);
	assert_ok(w, new);
	assert_true(w->clients[0].goaway && w->clients[1].over && !busy->closed);
	world_run(w, DRAIN_NS);
	assert_true(busy->closed && w->clients[0].over);
	assert_false(other->closed || w->clients[2].over || w->clients[3].goaway);
	assert_int_equal(uses(w, 0), 2);
	world_free(w);
}

// Two change their places in one snapshot.
static void ops_323_what_goes_makes_room_for_what_comes(void **state)
{
	struct world *w = three_clients();
	struct lb_frontend_conf a = w->frontends[1], b = w->frontends[0];
	struct lb_live_frontend *first = lb_live_frontend_new(&a, ++number, 0, false);
	struct lb_live_frontend *second = lb_live_frontend_new(&b, ++number, 0, false);
	control_set_live(&w->control, 0, first);
	control_set_live(&w->control, 1, second);
	world_run(w, 20 * MS);
	lb_live_frontend_put(first);
	lb_live_frontend_put(second);
	assert_int_equal(world_counter(w, "vips_refused"), 0);
	uint64_t before = counter_read(&w->link->counters.frontend_connections[1]);
	open_at(w, 3, &b);
	assert_true(w->clients[3].up);
	assert_int_equal(counter_read(&w->link->counters.frontend_connections[1]), before + 1);
	world_free(w);
}

static void ops_323_requests_that_begin_are_treated_as_it_says_now(void **state)
{
	struct world *w = three_clients();
	struct lb_frontend_conf to = w->frontends[0];
	use_backends(w, 0);
	world_run(w, 20 * MS);
	to.wait_for_ready = LB_WAIT_ALWAYS;
	struct ask *before = ask_of(w, 0, KIND_ECHO, 10);
	world_run(w, SECOND);
	bool failed = before->closed;
	set_live(w, 0, &to, 0, false);
	struct ask *waits = ask_of(w, 0, KIND_ECHO, 10);
	world_run(w, SECOND);
	assert_false(waits->closed);
	use_backends(w, 0x3);
	finish_of(w, waits);
	assert_ok(w, waits);
	assert_true(failed || before->closed);
	assert_false(w->clients[0].goaway);
	world_free(w);
}

static void ops_325_who_is_gone_takes_nobody_and_ends_what_it_has(void **state)
{
	struct world *w = three_clients();
	struct ask *busy = ask_of(w, 0, KIND_HANG, 0), *other = ask_of(w, 2, KIND_HANG, 0);
	world_run(w, 20 * MS);
	set_live(w, 0, &w->frontends[0], 0, true);
	struct ask *late = ask_of(w, 1, KIND_ECHO, 3000);
	open_at(w, 3, &w->frontends[0]);
	assert_true(w->clients[3].over && !w->clients[3].up);
	world_run(w, DRAIN_NS / 4);
	assert_ok(w, late);
	assert_true(w->clients[1].over && w->clients[0].goaway && !busy->closed);
	assert_int_equal(uses(w, 0), 1);
	control_command(
		&w->control, &(struct lb_command){.kind = LB_COMMAND_RETURN, .frontend = 0});
	open_at(w, 3, &w->frontends[0]); // nothing brings it back
	assert_true(w->clients[3].over && !w->clients[3].up);
	world_run(w, DRAIN_NS);
	assert_true(busy->closed);
	assert_int_equal(uses(w, 0), 0);
	assert_false(other->closed || w->clients[2].goaway);
	world_free(w);
}

static void ops_325_another_in_its_place_begins_with_nothing_counted(void **state)
{
	struct world *w = three_clients();
	struct ask *a = ask_of(w, 0, KIND_ECHO, 10);
	finish_of(w, a);
	set_live(w, 0, &w->frontends[0], 0, true);
	world_run(w, 2 * DRAIN_NS);
	assert_int_equal(uses(w, 0), 0);
	assert_int_equal(counter_read(&w->link->counters.frontend_requests[0]), 1);
	struct lb_frontend_conf to = w->frontends[0];
	to.port = 8999;
	set_live(w, 0, &to, ++number, false);
	assert_int_equal(uses(w, 0), 1);
	assert_int_equal(counter_read(&w->link->counters.frontend_requests[0]), 0);
	assert_int_equal(counter_read(&w->link->frontends[0].ended[LB_CAUSE_OK]), 0);
	open_at(w, 3, &to);
	assert_true(w->clients[3].up);
	struct ask *b = ask_of(w, 3, KIND_ECHO, 10);
	finish_of(w, b);
	assert_ok(w, b);
	assert_int_equal(counter_read(&w->link->frontends[0].ended[LB_CAUSE_OK]), 1);
	world_free(w);
}

// One that operators drain, and that then is gone, or has another address.
static void ops_325_who_drains_already_may_go_or_change(void **state)
{
	struct world *w = three_clients();
	struct lb_frontend_conf to = w->frontends[0];
	to.port = 8999;
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_LEAVE,
					     .frontend = 0,
					     .deadline_ns = w->wire.now_ns + SECOND});
	world_run(w, 2 * SECOND);
	assert_int_equal(uses(w, 0), 0);
	set_live(w, 0, &to, 0, false);
	open_at(w, 3, &to);
	assert_false(w->clients[3].up);
	control_command(
		&w->control, &(struct lb_command){.kind = LB_COMMAND_RETURN, .frontend = 0});
	open_at(w, 3, &to);
	assert_true(w->clients[3].up);
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_LEAVE,
					     .frontend = 0,
					     .deadline_ns = w->wire.now_ns + SECOND});
	world_run(w, 2 * SECOND);
	set_live(w, 0, &to, 0, true);
	assert_int_equal(uses(w, 0), 0);
	set_live(w, 0, &to, ++number, false);
	open_at(w, 4, &to);
	assert_true(w->clients[4].up);
	assert_int_equal(uses(w, 0), 2);
	world_free(w);
}

static void ops_325_who_drains_already_has_no_longer_for_being_removed(void **state)
{
	struct world *w = three_clients();
	struct ask *busy = ask_of(w, 0, KIND_HANG, 0);
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_LEAVE,
					     .frontend = 0,
					     .deadline_ns = w->wire.now_ns + DRAIN_NS / 4});
	world_run(w, 20 * MS);
	set_live(w, 0, &w->frontends[0], 0, true);
	assert_false(busy->closed);
	world_run(w, DRAIN_NS / 2);
	assert_true(busy->closed && w->clients[0].over);
	world_free(w);
}

// The end of everything takes what comes, and listens nowhere.
static void ops_323_a_proxy_that_drains_listens_to_nobody_new(void **state)
{
	struct world *w = three_clients();
	struct lb_frontend_conf to = w->frontends[0];
	struct ask *busy = ask_of(w, 0, KIND_HANG, 0);
	to.port = 8999;
	to.authority = "other";
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_DRAIN,
					     .deadline_ns = w->wire.now_ns + 10 * SECOND});
	world_run(w, 20 * MS);
	set_live(w, 0, &to, 0, false);
	open_at(w, 3, &to);
	assert_false(w->clients[3].up);
	world_run(w, 12 * SECOND);
	assert_true(busy->closed && w->control.drained);
	world_free(w);
}

#define CASE(test) cmocka_unit_test(test)

RUN_SUITE("sim/proxy_live", CASE(ops_323_one_that_moves_is_where_it_is_now),
	CASE(ops_323_what_goes_makes_room_for_what_comes),
	CASE(ops_323_requests_that_begin_are_treated_as_it_says_now),
	CASE(ops_325_who_is_gone_takes_nobody_and_ends_what_it_has),
	CASE(ops_325_another_in_its_place_begins_with_nothing_counted),
	CASE(ops_325_who_drains_already_may_go_or_change),
	CASE(ops_325_who_drains_already_has_no_longer_for_being_removed),
	CASE(ops_323_a_proxy_that_drains_listens_to_nobody_new))
