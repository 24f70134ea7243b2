// SPDX-License-Identifier: Apache-2.0
// A36-72: clients of Listeners' own addresses (lb/vips.h), which come and go while they are there.
#include "lb/chain_set.h"
#include "lb/pick/link.h"
#include "lb/vips.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#define DRAIN_NS (20 * SECOND)
#define FIRST 201 // last bytes of addresses
#define OTHER 202
#define THIRD 203

// What is at each place of the table: the last byte of its address, 0 = nothing, and the frontend
// whose routes its only chain has.
struct row {
	uint32_t last, chain;
};

static void set_vips(struct world *w, const struct row *rows, uint32_t n)
{
	struct lb_vip list[3] = {{.chains = NULL}};
	for (uint32_t i = 0; i < n; i++)
		if (rows[i].last)
			list[i] = (struct lb_vip){world_vip(rows[i].last),
				lb_chain_set_new(NULL, 0, &rows[i].chain, NULL)};
	control_set_vips(&w->control, list, n);
	for (uint32_t i = 0; i < n; i++)
		lb_chain_set_put(list[i].chains);
	world_run(w, 20 * MS);
}

static void open_at(struct world *w, uint32_t i, uint32_t last)
{
	const struct ip_port vip = world_vip(last);
	world_open_client_at(w, i, &vip);
	world_run(w, 200 * MS);
}

// A Listener with two addresses: one client at the first, two at the other.
static struct world *three_clients(void)
{
	struct world_conf conf = world_conf_default(19);
	conf.has_vips = true;
	conf.listener_drain_ns = DRAIN_NS;
	conf.n_clients = 4;
	conf.n_backends = 2;
	struct world *w = world_new(&conf);
	use_backends(w, 0x3);
	set_vips(w, (struct row[]){{FIRST, 0}, {OTHER, 0}}, 2);
	for (uint32_t i = 0; i < 3; i++)
		open_at(w, i, i ? OTHER : FIRST);
	return w;
}

static struct ask *ask_of(struct world *w, uint32_t client, enum kind kind, uint32_t size)
{
	struct ask *a = world_ask(w, "one", kind, size);
	client_ask(&w->clients[client], a);
	return a;
}

// The two at the other address are told, and have their time; the first one hears nothing.
static void a36_72_clients_of_an_address_that_is_lost_are_sent_away(void **state)
{
	struct world *w = three_clients();
	struct ask *stays = ask_of(w, 0, KIND_HANG, 0), *busy = ask_of(w, 1, KIND_HANG, 0);
	world_run(w, 20 * MS);
	set_vips(w, (struct row[]){{FIRST, 0}, {0}}, 2);
	struct ask *late = ask_of(w, 2, KIND_ECHO, 3000);
	world_run(w, DRAIN_NS / 10);
	assert_true(w->clients[1].goaway && w->clients[2].goaway);
	assert_ok(w, late);
	set_vips(w, (struct row[]){{FIRST, 0}, {0}, {THIRD, 0}}, 3); // tells nobody again
	world_run(w, DRAIN_NS / 10);
	assert_true(w->clients[2].over && !busy->closed);
	world_run(w, DRAIN_NS);
	assert_true(busy->closed && w->clients[1].over);
	assert_false(stays->closed || w->clients[0].goaway);
	assert_int_equal(world_counter(w, "clients_drained"), 2);
	world_free(w);
}

// At the same place of the table, and in one snapshot.
static void a36_72_so_are_those_whose_address_becomes_anothers(void **state)
{
	struct world *w = three_clients();
	set_vips(w, (struct row[]){{FIRST, 0}, {OTHER, LAST_FRONTEND}}, 2);
	open_at(w, 3, OTHER);
	world_run(w, DRAIN_NS / 10);
	assert_true(w->clients[1].goaway && w->clients[2].goaway);
	struct ask *new = ask_of(w, 3, KIND_ECHO, 3000);
	world_run(w, DRAIN_NS);
	assert_ok(w, new);
	assert_false(w->clients[0].goaway || w->clients[3].goaway);
	assert_int_equal(world_counter(w, "clients_drained"), 2);
	world_free(w);
}

static void a36_72_nobody_is_sent_away_for_what_others_have(void **state)
{
	struct world *w = three_clients();
	set_vips(w, (struct row[]){{FIRST, 0}, {OTHER, 0}, {THIRD, LAST_FRONTEND}}, 3);
	set_vips(w, (struct row[]){{FIRST, 0}, {OTHER, 0}, {THIRD, 0}}, 3);
	set_vips(w, (struct row[]){{FIRST, 0}, {OTHER, 0}}, 2);
	world_run(w, DRAIN_NS);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(w->clients[i].up && !w->clients[i].goaway);
	world_free(w);
}

// The address may be gone for the network long before an operator's drain ends.
static void a36_72_so_are_those_whom_an_operator_sends_away_later(void **state)
{
	struct world *w = three_clients();
	struct ask *stays = ask_of(w, 0, KIND_HANG, 0), *busy = ask_of(w, 1, KIND_HANG, 0);
	world_run(w, 20 * MS);
	control_command(&w->control, &(struct lb_command){.kind = LB_COMMAND_LEAVE,
					     .frontend = VIPS_FRONTEND,
					     .deadline_ns = w->wire.now_ns + 36000 * SECOND});
	world_run(w, 5 * MS);
	set_vips(w, (struct row[]){{FIRST, 0}, {0}}, 2);
	world_run(w, DRAIN_NS);
	assert_true(busy->closed && w->clients[1].over && w->clients[2].over);
	control_command(&w->control,
		&(struct lb_command){.kind = LB_COMMAND_RETURN, .frontend = VIPS_FRONTEND});
	world_run(w, DRAIN_NS);
	assert_false(stays->closed || w->clients[0].goaway);
	world_free(w);
}

#define CASE(test) cmocka_unit_test(test)

RUN_SUITE("sim/proxy_vip", CASE(a36_72_clients_of_an_address_that_is_lost_are_sent_away),
	CASE(a36_72_so_are_those_whose_address_becomes_anothers),
	CASE(a36_72_nobody_is_sent_away_for_what_others_have),
	CASE(a36_72_so_are_those_whom_an_operator_sends_away_later))
