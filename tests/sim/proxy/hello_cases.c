// SPDX-License-Identifier: Apache-2.0
// Clients whose first bytes a Listener's inspector looks at (A36-40, TLS-221, FL-185).
#include "dataplane/proxy/state.h"
#include "lb/chain_set.h"
#include "lb/pick/link.h"
#include "lb/route/chain_match.h"
#include "lb/vips.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#define LAST_OF_VIP 201

// Of clients that get the routes of frontend 0, whether or not they begin TLS.
static struct lb_chain_set *inspected_chains(const struct lb_inspector *inspector, bool asks)
{
	static const struct lb_chain_conf confs[] = {
		{.transport = LB_TRANSPORT_TLS}, {.transport = LB_TRANSPORT_ANY}};
	static const uint32_t places[] = {0, 0, LB_NO_PLACE};
	uint32_t n = asks ? 2 : 1;
	struct lb_chain_match *match = lb_chain_match_new(confs + 2 - n, n, inspector, NULL);
	assert_non_null(match);
	struct lb_chain_set *chains = lb_chain_set_new(match, n, places + 2 - n, NULL);
	assert_non_null(chains);
	lb_chain_match_put(match);
	return chains;
}

static struct world *inspected_world(const struct lb_inspector *inspector, bool asks)
{
	struct world *w = a_world();
	struct lb_chain_set *chains = inspected_chains(inspector, asks);
	control_set_chains(&w->control, 0, chains);
	lb_chain_set_put(chains);
	use_backends(w, 0x3);
	return w;
}

// At the only place of the table.
static void set_vip(struct world *w, uint32_t last)
{
	static const struct lb_inspector inspector = {.on = true};
	struct lb_chain_set *chains = inspected_chains(&inspector, true);
	control_set_vips(&w->control, &(struct lb_vip){world_vip(last), chains}, 1);
	lb_chain_set_put(chains);
}

// One client that has said nothing yet, of frontend 0 or a vip.
static struct world *world_of_silent(bool at_vip)
{
	static const struct lb_inspector inspector = {.on = true};
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 1;
	conf.n_backends = 2;
	conf.has_vips = true;
	struct world *w = at_vip ? world_new(&conf) : inspected_world(&inspector, true);
	const struct ip_port vip = world_vip(LAST_OF_VIP);
	w->clients[0].silent = true;
	if (at_vip) {
		set_vip(w, LAST_OF_VIP);
		use_backends(w, 0x3);
		world_run(w, 10 * MS);
		world_open_client_at(w, 0, &vip);
	} else {
		open_client(w);
	}
	world_run(w, 10 * MS);
	assert_int_equal(w->proxy->client_hellos.n_used, 1);
	return w;
}

static void a36_40_plain_text_is_hung_up_on_only_where_the_listener_says_so(void **state)
{
	static const struct {
		struct lb_inspector inspector;
		bool asks, looks, is_closed;
	} rows[] = {
		{{.on = false}, true, false, false},
		{{.on = true}, false, false, false},
		{{.on = true}, true, true, false},
		{{.on = true, .closes = true}, false, true, true},
		{{.on = true, .closes = true}, true, true, true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = inspected_world(&rows[i].inspector, rows[i].asks);
		w->clients[0].silent = true;
		open_client(w);
		world_run(w, 100 * MS);
		assert_int_equal(w->proxy->client_hellos.n_used, rows[i].looks);
		struct ask *a = ask(w, KIND_ECHO, 100);
		finish(w);
		assert_int_equal(a->conn_lost, rows[i].is_closed);
		if (!rows[i].is_closed)
			assert_ok(w, a);
		assert_int_equal(world_counter(w, "hellos_malformed"), rows[i].is_closed);
		assert_int_equal(world_counter(w, "hellos_too_large"), 0);
		assert_int_equal(w->proxy->client_hellos.n_used, 0);
		world_free(w);
	}
}

static void tls_221_a_hello_beyond_the_listeners_bound_is_hung_up_on(void **state)
{
	static const struct {
		struct lb_inspector inspector;
		bool is_closed;
	} rows[] = {
		{{.on = true, .max_hello = 516}, true},
		{{.on = true, .max_hello = 516, .closes = true}, true},
		{{.on = true, .max_hello = 517}, false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = inspected_world(&rows[i].inspector, false);
		w->clients[0].header = STR("\x16\3\1\2\0\1\0\1\xfc"); // of 512 bytes, and a head
		open_client(w);
		world_run(w, 100 * MS);
		assert_int_equal(world_counter(w, "hellos_too_large"), rows[i].is_closed);
		assert_int_equal(w->clients[0].over, rows[i].is_closed);
		assert_int_equal(w->proxy->client_hellos.n_used, !rows[i].is_closed);
		assert_int_equal(world_counter(w, "hellos_malformed"), 0);
		world_free(w);
	}
}

static void th_70_half_a_hello_takes_none_of_the_last_chunks(void **state)
{
	static const struct lb_inspector inspector = {.on = true, .max_hello = 517};
	static const uint8_t chunk[BUF_CHUNK_ROOM];
	struct world *w = inspected_world(&inspector, false);
	struct pool *chunks = &w->wire.hosts[HOST_PROXY].chunks;
	struct buf hog = {0};
	w->clients[0].header = STR("\x16\3\1\2\0\1\0\1\xfc");
	while (pool_left(chunks) > BUF_LAST_CHUNKS)
		assert_true(buf_append(&hog, chunks, chunk, sizeof(chunk)));
	open_client(w);
	world_run(w, 100 * MS);
	assert_true(w->clients[0].over);
	assert_int_equal(world_counter(w, "clients_refused"), 1);
	buf_clear(&hog, chunks);
	world_free(w);
}

// As SIGTERM and a takeover do, or an operator.
static void fl_185_a_hello_on_its_way_at_a_drain_still_chooses_its_chain(void **state)
{
	for (int i = 0; i < 4; i++) {
		bool at_vip = i & 1, drains = i & 2;
		struct world *w = world_of_silent(at_vip);
		control_command(&w->control,
			&(struct lb_command){.kind = drains ? LB_COMMAND_DRAIN : LB_COMMAND_LEAVE,
				.frontend = at_vip ? VIPS_FRONTEND : 0,
				.deadline_ns = w->wire.now_ns + 30 * SECOND});
		world_run(w, 100 * MS);
		struct ask *a = ask(w, KIND_ECHO, 100);
		finish(w);
		assert_ok(w, a);
		assert_int_equal(world_counter(w, "clients_unmatched"), 0);
		world_run(w, 5 * SECOND);
		assert_true(w->clients[0].goaway && w->clients[0].over);
		assert_int_equal(w->control.drained, drains);
		world_free(w);
	}
}

// Whose chains are another Listener's.
static void fl_185_a_hello_to_an_address_that_has_moved_is_hung_up_on(void **state)
{
	struct world *w = world_of_silent(true);
	set_vip(w, LAST_OF_VIP + 1);
	world_run(w, 10 * MS);
	struct ask *a = ask(w, KIND_ECHO, 100);
	finish(w);
	assert_true(a->conn_lost && w->clients[0].was_reset);
	assert_int_equal(world_counter(w, "clients_unmatched"), 1);
	world_free(w);
}

RUN_SUITE("proxy/hello_cases",
	cmocka_unit_test(a36_40_plain_text_is_hung_up_on_only_where_the_listener_says_so),
	cmocka_unit_test(tls_221_a_hello_beyond_the_listeners_bound_is_hung_up_on),
	cmocka_unit_test(th_70_half_a_hello_takes_none_of_the_last_chunks),
	cmocka_unit_test(fl_185_a_hello_on_its_way_at_a_drain_still_chooses_its_chain),
	cmocka_unit_test(fl_185_a_hello_to_an_address_that_has_moved_is_hung_up_on))
