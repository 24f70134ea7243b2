// SPDX-License-Identifier: Apache-2.0
// Backends whose connections begin with a PROXY header (PP-13, PP-14, PP-18 to PP-20): each is of
// one client, and of nobody else.
#include "dataplane/proxy/state.h"
#include "lb/chain_set.h"
#include "lb/pick/cause.h"
#include "lb/pick/check.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static const struct lb_header v1 = {.version = 1}, v2 = {.version = 2};

static struct ask *ask_of(struct world *w, uint32_t client, enum kind kind, uint32_t size)
{
	struct ask *a = world_ask(w, "one", kind, size);
	client_ask(&w->clients[client], a);
	return a;
}

static void assert_own(const struct world *w, const struct ask *a)
{
	const struct seen *s = &w->seen[a->id];
	assert_true(s->n > 0);
	for (uint32_t i = 0; i < s->n; i++)
		assert_true(ip_port_eq(&s->attempts[i].source, &a->from));
}

static uint32_t conn_of(const struct world *w, const struct ask *a)
{
	return w->seen[a->id].attempts[0].conn;
}

static void pp_20_a_connection_begins_with_its_clients_addresses(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct world *w = headed_world(i ? &v2 : &v1, 1);
		const struct ip_port front = {w->frontends[0].address, w->frontends[0].port};
		struct ask *a = ask(w, KIND_ECHO, 100000);
		finish(w);
		assert_ok(w, a);
		assert_own(w, a);
		assert_true(ip_port_eq(&w->seen[a->id].attempts[0].target, &front));
		assert_int_equal(w->backends[0].n_local, i); // of version 1 it has our address
		assert_true(world_counter(w, "headers_sent") >= 3);
		world_free(w);
	}
}

static void pp_13_clients_never_share_a_connection(void **state)
{
	struct world *w = headed_world(&v2, 3);
	struct ask *asks[3][20];
	for (int i = 0; i < 20; i++)
		for (uint32_t c = 0; c < 3; c++) {
			asks[c][i] = ask_of(w, c, i % 2 ? KIND_ECHO : KIND_DOWNLOAD, 5000);
			if (i % 5 == 4)
				world_run(w, 30 * MS);
		}
	finish(w);
	for (uint32_t c = 0; c < 3; c++)
		for (int i = 0; i < 20; i++) {
			assert_ok(w, asks[c][i]);
			assert_own(w, asks[c][i]);
			assert_int_equal(conn_of(w, asks[c][i]), conn_of(w, asks[c][0]));
		}
	assert_int_not_equal(conn_of(w, asks[0][0]), conn_of(w, asks[1][0]));
	assert_int_not_equal(conn_of(w, asks[0][0]), conn_of(w, asks[2][0]));
	assert_int_not_equal(conn_of(w, asks[1][0]), conn_of(w, asks[2][0]));
	assert_int_equal(w->backends[0].n_conns, 4);
	world_free(w);
}

static void pp_13_a_clients_connections_end_when_it_has_gone(void **state)
{
	struct world *w = headed_world(&v2, 2);
	struct ask *a = ask_of(w, 0, KIND_ECHO, 10), *held = ask_of(w, 1, KIND_HANG, 0);
	finish_of(w, a);
	assert_int_equal(w->backends[0].n_conns, 3);
	client_abort(&w->clients[0]);
	world_run(w, SECOND);
	assert_int_equal(w->backends[0].n_conns, 2);
	client_abort(&w->clients[1]); // in the midst of a request
	world_run(w, SECOND);
	assert_true(held->closed);
	assert_int_equal(w->backends[0].n_conns, 1);
	assert_int_equal(w->proxy->client_backends.pool.n_used, 0);
	world_free(w);
}

// One that connects again is another client, be it from the same address.
static void pp_13_a_client_that_comes_back_gets_another_connection(void **state)
{
	struct world *w = headed_world(&v2, 1);
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w);
	client_abort(&w->clients[0]);
	open_client(w);
	struct ask *b = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_ok(w, b);
	assert_own(w, b);
	assert_int_not_equal(conn_of(w, a), conn_of(w, b));
	world_free(w);
}

static void pp_13_one_that_was_idle_is_closed_and_made_anew(void **state)
{
	struct world *w = headed_world(&v2, 1);
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w);
	world_run(w, 25 * SECOND);
	assert_int_equal(w->backends[0].n_conns, 2);
	world_run(w, 10 * SECOND);
	assert_int_equal(w->backends[0].n_conns, 1);
	assert_int_equal(world_counter(w, "upstreams_idled"), 1);
	struct ask *b = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_ok(w, b);
	assert_own(w, b);
	assert_int_not_equal(conn_of(w, a), conn_of(w, b));
	world_free(w);
}

// Whose own connection is full waits alone.
static void pp_13_a_client_waits_for_nobody_elses_stream(void **state)
{
	struct world_conf conf = headed(&v2, 2);
	conf.backend_streams = 1;
	conf.max_conns_per_endpoint = 1;
	struct world *w = ready_world(&conf);
	use_backends(w, 0x1);
	world_open_client(w, 1, 0);
	world_run(w, 50 * MS);
	struct ask *held = ask_of(w, 0, KIND_HANG, 0), *behind = ask_of(w, 0, KIND_ECHO, 10);
	world_run(w, 100 * MS);
	struct ask *a = ask_of(w, 1, KIND_ECHO, 10);
	finish_of(w, a);
	assert_ok(w, a);
	assert_false(behind->closed);
	client_cancel(held);
	finish(w);
	assert_ok(w, behind);
	assert_own(w, behind);
	world_free(w);
}

// PP-01: and where it went.
static void pp_20_an_address_that_a_header_named_is_passed_on(void **state)
{
	static const struct ip_prefix anybody[] = {{{{[10] = 0xff, [11] = 0xff}}, IP_V4_BITS}};
	static const struct {
		struct str header;
		const char *source, *target; // NULL = its own
	} rows[] = {
		{STR("PROXY TCP4 1.2.3.4 5.6.7.8 1000 80\r\n"), "1.2.3.4:1000", "5.6.7.8:80"},
		{STR("PROXY TCP6 2001:db8::7 2001:db8::8 9 0\r\n"), "[2001:db8::7]:9",
			"[2001:db8::8]:0"},
		{STR("PROXY TCP6 ::ffff:1.2.3.4 ::1 9 8\r\n"), "1.2.3.4:9", "[::1]:8"},
		{STR("PROXY UNKNOWN\r\n"), NULL, NULL},
	};
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		struct world_conf conf = headed(i % 2 ? &v1 : &v2, 1);
		conf.header = (struct lb_header_conf){anybody, 1, true, true};
		struct world *w = world_new(&conf);
		w->clients[0].header = rows[i / 2].header;
		use_backends(w, 0x1);
		open_client(w);
		struct ask *a = ask(w, KIND_ECHO, 10);
		finish(w);
		assert_ok(w, a);
		char text[IP_PORT_TEXT_MAX], own[IP_PORT_TEXT_MAX];
		const struct ip_port front = {w->frontends[0].address, w->frontends[0].port};
		assert_string_equal(ip_port_print(&w->seen[a->id].attempts[0].source, text),
			rows[i / 2].source ? rows[i / 2].source : ip_port_print(&a->from, own));
		assert_string_equal(ip_port_print(&w->seen[a->id].attempts[0].target, text),
			rows[i / 2].target ? rows[i / 2].target : ip_port_print(&front, own));
		world_free(w);
	}
}

static void pp_13_a_full_breaker_refuses_before_a_connection_is_made(void **state)
{
	struct world *w = headed_world(&v2, 2);
	w->control.leaves[0].max_requests = 1;
	control_update(&w->control, 0);
	world_run(w, 50 * MS);
	struct ask *held = ask_of(w, 0, KIND_HANG, 0);
	world_run(w, 50 * MS);
	struct ask *a = ask_of(w, 1, KIND_ECHO, 10);
	finish_of(w, a);
	assert_reply(a, 14);
	assert_int_equal(w->backends[0].n_conns, 2);
	client_cancel(held);
	world_run(w, 50 * MS);
	a = ask_of(w, 1, KIND_ECHO, 10);
	finish(w);
	assert_ok(w, a);
	assert_int_equal(w->backends[0].n_conns, 3);
	world_free(w);
}

static void pp_13_a_goaway_gets_the_client_another_of_its_own(void **state)
{
	struct world *w = headed_world(&v2, 2);
	struct ask *held[2], *a[2];
	for (uint32_t c = 0; c < 2; c++)
		held[c] = ask_of(w, c, KIND_DOWNLOAD, 300000);
	world_run(w, 10 * MS);
	backend_goaway(&w->backends[0], false);
	world_run(w, 10 * MS);
	for (uint32_t c = 0; c < 2; c++)
		a[c] = ask_of(w, c, KIND_ECHO, 10);
	finish(w);
	for (uint32_t c = 0; c < 2; c++) {
		assert_ok(w, held[c]);
		assert_ok(w, a[c]);
		assert_own(w, held[c]);
		assert_own(w, a[c]);
	}
	world_free(w);
}

// RT-09, RT-11: attempts of a request go over connections of its client, wherever.
static void pp_13_another_attempt_is_its_clients_too(void **state)
{
	struct world *w = headed_world(&v2, 2);
	use_backends(w, 0x3);
	world_run(w, 50 * MS);
	struct ask *refused = ask_of(w, 0, KIND_REFUSE_ONCE, 100), *lost;
	lost = world_ask(w, "one", KIND_PLAIN, 1000);
	lost->fail = "1 lose 0";
	client_ask(&w->clients[1], lost);
	finish(w);
	assert_ok(w, refused);
	assert_int_equal(lost->http_status, 200);
	assert_int_equal(w->seen[refused->id].n, 2);
	assert_int_equal(w->seen[lost->id].n, 2);
	assert_own(w, refused);
	assert_own(w, lost);
	world_free(w);
}

static void pp_18_who_gets_no_connection_is_served_elsewhere(void **state)
{
	struct world_conf conf = headed(&v2, 1);
	struct world *w = ready_world(&conf);
	world_run(w, 100 * MS);
	backend_unlisten(&w->backends[0]); // its one that is there stays
	for (int i = 0; i < 6; i++) {
		struct ask *a = ask(w, KIND_ECHO, 10);
		finish(w);
		assert_ok(w, a);
		assert_int_equal(w->seen[a->id].attempts[0].backend, 2);
	}
	assert_true(world_counter(w, "connect_failures") > 0);
	assert_in_range(world_counter(w, "unconnected_retries"), 3, 6);
	assert_int_equal(world_counter(w, "transparent_retries"), 0);
	world_free(w);
}

static void pp_18_or_told_why(void **state)
{
	struct world_conf conf = headed(&v2, 1);
	conf.max_attempts = 3;
	struct world *w = ready_world(&conf);
	use_backends(w, 0x1);
	world_run(w, 100 * MS);
	backend_unlisten(&w->backends[0]);
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_reply(a, 14);
	assert_string_equal(a->message, "cluster zero: 10.0.2.1:50051: connection refused");
	assert_string_equal(a->cause, "no_healthy");
	// The next one does not knock before the backoff is over.
	uint64_t n = world_counter(w, "connects");
	a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_reply(a, 14);
	assert_in_range(world_counter(w, "connects") - n, 0, 1);
	backend_fini(&w->backends[0]);
	backend_open(&w->backends[0], &w->wire.hosts[HOST_BACKENDS], w->backends[0].address,
		&w->backend_conf);
	world_run(w, 5 * SECOND);
	a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_ok(w, a);
	world_free(w);
}

//
static void pp_18_who_waits_for_ready_waits_for_its_own(void **state)
{
	struct world_conf conf = headed(&v2, 1);
	struct world *w = ready_world(&conf);
	use_backends(w, 0x1);
	w->frontends[0].wait_for_ready = LB_WAIT_ALWAYS;
	world_run(w, 100 * MS);
	backend_unlisten(&w->backends[0]);
	struct ask *a = ask(w, KIND_ECHO, 10);
	world_run(w, 20 * SECOND);
	assert_false(a->closed);
	assert_in_range(world_counter(w, "connects"), 4, 60);
	backend_fini(&w->backends[0]);
	backend_open(&w->backends[0], &w->wire.hosts[HOST_BACKENDS], w->backends[0].address,
		&w->backend_conf);
	finish(w);
	assert_ok(w, a);
	world_free(w);
}

// UPD-03: streams go on, and the endpoint is released when the last is over.
static void pp_13_an_endpoint_that_goes_lets_its_clients_finish(void **state)
{
	struct world *w = headed_world(&v2, 2);
	struct ask *a = ask_of(w, 0, KIND_ECHO, 10), *held = ask_of(w, 1, KIND_HANG, 0);
	finish_of(w, a);
	use_backends(w, 0x2);
	world_run(w, 2 * SECOND);
	assert_int_equal(w->backends[0].n_conns, 1); // the one with a stream
	assert_non_null(w->proxy->backends[0].proxy);
	a = ask_of(w, 1, KIND_ECHO, 10);
	finish_of(w, a);
	assert_ok(w, a);
	assert_int_equal(w->seen[a->id].attempts[0].backend, 2);
	use_backends(w, 0x3); // and back
	world_run(w, 200 * MS);
	for (int i = 0; i < 4; i++) {
		a = ask_of(w, 1, KIND_ECHO, 10);
		finish_of(w, a);
		assert_ok(w, a);
		assert_own(w, a);
	}
	use_backends(w, 0x2);
	client_cancel(held);
	world_run(w, 2 * SECOND);
	assert_int_equal(w->backends[0].n_conns, 0);
	world_free(w);
}

// PP-19. Of 128 connections 20 may be of single clients.
#define PLACES (128 / PROXY_CLIENT_BACKENDS_PART + PROXY_CLIENT_BACKENDS_MIN)

static void pp_19_idle_ones_make_room_for_others(void **state)
{
	struct world *w = headed_world(&v2, 2 * PLACES);
	assert_int_equal(w->proxy->client_backends.pool.n_total, PLACES);
	for (uint32_t c = 0; c < 2 * PLACES; c++) {
		w->clients[c].source = (uint8_t)(c + 1);
		struct ask *a = ask_of(w, c, KIND_ECHO, 10);
		finish_of(w, a);
		assert_ok(w, a);
		assert_own(w, a);
	}
	assert_in_range(w->backends[0].n_conns, PLACES - 2, PLACES + 1);
	assert_in_range(world_counter(w, "client_backends_evicted"), PLACES - 2, PLACES + 2);
	assert_int_equal(world_counter(w, "client_backends_refused"), 0);
	world_free(w);
}

static struct world *world_of_sources(uint32_t n_clients, uint32_t n_of_first)
{
	struct world_conf conf = headed(&v2, n_clients);
	struct world *w = world_new(&conf);
	use_backends(w, 0x1);
	for (uint32_t c = 0; c < n_clients; c++) {
		w->clients[c].source = (uint8_t)(c < n_of_first ? 1 : c + 2);
		world_open_client(w, c, 0);
	}
	world_run(w, 100 * MS);
	return w;
}

static void pp_19_a_sources_idle_ones_make_room_for_its_own(void **state)
{
	struct world *w = world_of_sources(PLACES + 4, PLACES + 2);
	for (uint32_t c = 0; c < PLACES + 4; c++) {
		struct ask *a = ask_of(w, c, KIND_ECHO, 10);
		finish_of(w, a);
		assert_ok(w, a);
	}
	assert_int_equal(world_counter(w, "client_backends_over_share"), 0);
	assert_in_range(world_counter(w, "client_backends_evicted"), 4, 10);
	world_free(w);
}

static void pp_19_where_no_place_is_left_requests_are_refused(void **state)
{
	struct world *w = world_of_sources(PLACES + 2, 0);
	for (uint32_t c = 0; c < PLACES; c++)
		ask_of(w, c, KIND_HANG, 0);
	world_run(w, 200 * MS);
	assert_int_equal(w->backends[0].n_conns, PLACES + 1);
	struct ask *a = ask_of(w, PLACES, KIND_ECHO, 10);
	finish_of(w, a);
	assert_reply(a, 14);
	assert_string_equal(a->cause, "overflow");
	assert_int_equal(world_counter(w, "client_backends_refused"), 1);
	a = ask_of(w, 0, KIND_ECHO, 10); // it has its connection
	finish_of(w, a);
	assert_ok(w, a);
	client_abort(&w->clients[1]);
	world_run(w, 100 * MS);
	a = ask_of(w, PLACES, KIND_ECHO, 10);
	finish_of(w, a);
	assert_ok(w, a);
	abandon(w);
}

static void pp_19_one_source_does_not_get_all_places(void **state)
{
	struct world *w = world_of_sources(PLACES + 2, PLACES);
	struct ask *own = NULL;
	for (uint32_t c = 0; c < PLACES; c++)
		own = ask_of(w, c, KIND_HANG, 0);
	world_run(w, 200 * MS);
	assert_true(own->closed);
	assert_string_equal(own->cause, "over_share");
	assert_in_range(world_counter(w, "client_backends_over_share"), 1, PLACES / 2);
	for (uint32_t c = PLACES; c < PLACES + 2; c++) {
		struct ask *a = ask_of(w, c, KIND_ECHO, 10);
		finish_of(w, a);
		assert_ok(w, a);
	}
	abandon(w);
}

static void pp_19_a_second_connection_is_for_when_there_is_room(void **state)
{
	struct world_conf conf = headed(&v2, 6);
	conf.backend_streams = 1;
	conf.max_conns_per_endpoint = 10;
	struct world *w = ready_world(&conf);
	use_backends(w, 0x1);
	for (uint32_t c = 1; c < 6; c++)
		world_open_client(w, c, 0);
	world_run(w, 100 * MS);
	for (uint32_t c = 0; c < 4; c++) {
		for (int i = 0; i < 10; i++)
			ask_of(w, c, KIND_HANG, 0);
		world_run(w, 200 * MS);
	}
	uint32_t n = w->backends[0].n_conns - 1; // its own one besides
	assert_in_range(n, PLACES, PLACES + 4);
	assert_int_equal(w->proxy->client_backends.n_conns, n);
	struct ask *a = ask_of(w, 4, KIND_ECHO, 10);
	finish_of(w, a);
	assert_ok(w, a);
	assert_int_equal(w->proxy->client_backends.n_conns, n + 1);
	client_abort(&w->clients[0]);
	world_run(w, 100 * MS);
	for (int i = 0; i < 3; i++)
		ask_of(w, 5, KIND_HANG, 0);
	world_run(w, 100 * MS);
	assert_int_equal(w->proxy->client_backends.n_conns, n + 1 - 10 + 3);
	abandon(w);
}

// Checks.

static void checked(const struct lb_header *h, enum lb_check_kind kind, uint32_t n_local)
{
	struct world_conf conf = headed(h, 1);
	struct world *w = world_new(&conf);
	struct lb_check *c = a_check(kind, "/check/plain/1000/100");
	struct lb_leaf_record r;
	const struct ip_port at = {wire_address(HOST_BACKENDS, 1), 50051};
	w->control.leaves[0].check = c;
	use_backends(w, 0x1);
	lb_check_put(c);
	w->control.leaves[0].check = NULL; // the leaf's own from here on
	open_client(w);
	world_run(w, 3 * SECOND);
	const struct lb_leaf *leaf = w->control.leaves[0].leaf;
	lb_leaf_look(leaf, lb_leaf_member(leaf, &at, 1), &r);
	assert_int_equal(r.health.health, LB_MEMBER_SERVES);
	assert_true(n_local ? w->backends[0].n_local >= n_local : !w->backends[0].n_local);
	control_update(&w->control, 0);
	world_run(w, 2 * SECOND);
	world_free(w);
}

static void pp_14_health_checks_say_that_they_are_nobodys(void **state)
{
	checked(&v2, LB_CHECK_HTTP, 2); // and the worker's own connection
	checked(&v2, LB_CHECK_TCP, 3);
	checked(&v1, LB_CHECK_HTTP, 0);
	checked(&v1, LB_CHECK_TCP, 0);
}

// TLVs of clients.

static const struct ip_prefix anybody[] = {{{{[10] = 0xff, [11] = 0xff}}, IP_V4_BITS}};

#define V2_OF(len, tlvs)                                                                           \
	STR("\r\n\r\n\0\r\nQUIT\n\x21\x11\0" len "\x01\x02\x03\x04\x7f\0\0\1\0\x50\0\x50" tlvs)
#define EA_AND_TWO "\xea\0\1a\2\0\1b"

// Whose clients begin with headers, of which a Listener with filters keeps these types.
static struct world *keeping_world(const struct lb_header *to_backends, struct tlv_types kept)
{
	static const uint32_t places[] = {0};
	struct world_conf conf = headed(to_backends, 2);
	conf.header = (struct lb_header_conf){anybody, 1, true, true};
	struct world *w = world_new(&conf);
	struct lb_chain_set *chains = lb_chain_set_new(NULL, 0, places, &kept);
	assert_non_null(chains);
	control_set_chains(&w->control, 0, chains);
	lb_chain_set_put(chains);
	use_backends(w, 0x1);
	return w;
}

static struct tlv_types all_types(void)
{
	return (struct tlv_types){{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
}

// Each attempt has them.
static void pp_21_a_clients_tlvs_reach_its_backends_where_both_sides_say_so(void **state)
{
	static const struct tlv_types two = {{1 << 2}};
	const struct tlv_types all = all_types(), none = {0};
	const struct {
		struct tlv_types kept, passed;
		struct str client, added, seen;
	} rows[] = {
		{all, all, V2_OF("\x14", EA_AND_TWO), {0}, STR(EA_AND_TWO)},
		{two, all, V2_OF("\x14", EA_AND_TWO), {0}, STR("\2\0\1b")},
		{all, two, V2_OF("\x14", EA_AND_TWO), {0}, STR("\2\0\1b")},
		{none, all, V2_OF("\x14", EA_AND_TWO), {0}, {0}},
		{all, none, V2_OF("\x14", EA_AND_TWO), {0}, {0}},
		{all, all, V2_OF("\x14", EA_AND_TWO), STR("\2\0\1z"), STR("\2\0\1z\xea\0\1a")},
		{all, all, V2_OF("\x0c", ""), STR("\2\0\1z"), STR("\2\0\1z")},
		{all, all, STR("PROXY TCP4 1.2.3.4 10.0.0.1 1000 80\r\n"), {0}, {0}},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct lb_header h = {
			.tlvs = rows[i].added, .passed = rows[i].passed, .version = 2};
		struct world *w = keeping_world(&h, rows[i].kept);
		w->clients[0].header = rows[i].client;
		open_client(w);
		struct ask *a = ask(w, KIND_REFUSE_ONCE, 100);
		finish_of(w, a);
		assert_ok(w, a);
		const struct seen *s = &w->seen[a->id];
		assert_int_equal(s->n, 2);
		for (uint32_t k = 0; k < s->n; k++) {
			const struct str seen = {
				(const char *)s->attempts[k].tlvs, s->attempts[k].n_tlvs};
			if (!str_eq(seen, rows[i].seen))
				fail_msg("row %zu", i);
		}
		finish(w);
		world_free(w);
	}
}

static void pp_21_tlvs_are_their_clients_own_and_go_with_it(void **state)
{
	const struct lb_header h = {.passed = all_types(), .version = 2};
	struct world *w = keeping_world(&h, all_types());
	w->clients[0].header = V2_OF("\x10", "\xea\0\1a");
	w->clients[1].header = V2_OF("\x0c", "");
	open_client(w);
	world_open_client(w, 1, 0);
	world_run(w, 20 * MS);
	struct ask *a = ask_of(w, 0, KIND_ECHO, 100), *b = ask_of(w, 1, KIND_ECHO, 100);
	finish_of(w, a);
	finish_of(w, b);
	assert_ok(w, a);
	assert_ok(w, b);
	assert_int_equal(w->seen[a->id].attempts[0].n_tlvs, 4);
	assert_int_equal(w->seen[b->id].attempts[0].n_tlvs, 0);
	assert_int_equal(w->proxy->client_tlvs.n_used, 1); // who has none has no place for them
	client_abort(&w->clients[0]);
	world_run(w, SECOND);
	assert_int_equal(w->proxy->client_tlvs.n_used, 0);
	finish(w);
	world_free(w);
}

// Where they are not kept they are not looked at.
static void pp_22_what_should_be_tlvs_and_is_none_ends_the_connection(void **state)
{
	const struct lb_header h = {.passed = all_types(), .version = 2};
	for (int keeps = 0; keeps < 2; keeps++) {
		struct tlv_types kept = keeps ? all_types() : (struct tlv_types){0};
		struct world *w = keeping_world(&h, kept);
		w->clients[0].header = V2_OF("\x10", "\xea\0\2a");
		world_open_client(w, 0, 0);
		world_run(w, SECOND);
		assert_int_equal(w->clients[0].over, keeps);
		assert_int_equal(world_counter(w, "headers_bad_tlvs"), keeps);
		assert_int_equal(world_counter(w, "headers_taken"), !keeps);
		assert_int_equal(w->proxy->client_tlvs.n_used, 0);
		world_free(w);
	}
}

RUN_SUITE("proxy/header", cmocka_unit_test(pp_20_a_connection_begins_with_its_clients_addresses),
	cmocka_unit_test(pp_20_an_address_that_a_header_named_is_passed_on),
	cmocka_unit_test(pp_13_clients_never_share_a_connection),
	cmocka_unit_test(pp_13_a_clients_connections_end_when_it_has_gone),
	cmocka_unit_test(pp_13_a_client_that_comes_back_gets_another_connection),
	cmocka_unit_test(pp_13_one_that_was_idle_is_closed_and_made_anew),
	cmocka_unit_test(pp_13_a_client_waits_for_nobody_elses_stream),
	cmocka_unit_test(pp_13_a_full_breaker_refuses_before_a_connection_is_made),
	cmocka_unit_test(pp_13_a_goaway_gets_the_client_another_of_its_own),
	cmocka_unit_test(pp_13_another_attempt_is_its_clients_too),
	cmocka_unit_test(pp_13_an_endpoint_that_goes_lets_its_clients_finish),
	cmocka_unit_test(pp_18_who_gets_no_connection_is_served_elsewhere),
	cmocka_unit_test(pp_18_or_told_why),
	cmocka_unit_test(pp_18_who_waits_for_ready_waits_for_its_own),
	cmocka_unit_test(pp_19_idle_ones_make_room_for_others),
	cmocka_unit_test(pp_19_a_sources_idle_ones_make_room_for_its_own),
	cmocka_unit_test(pp_19_where_no_place_is_left_requests_are_refused),
	cmocka_unit_test(pp_19_one_source_does_not_get_all_places),
	cmocka_unit_test(pp_19_a_second_connection_is_for_when_there_is_room),
	cmocka_unit_test(pp_14_health_checks_say_that_they_are_nobodys),
	cmocka_unit_test(pp_21_a_clients_tlvs_reach_its_backends_where_both_sides_say_so),
	cmocka_unit_test(pp_21_tlvs_are_their_clients_own_and_go_with_it),
	cmocka_unit_test(pp_22_what_should_be_tlvs_and_is_none_ends_the_connection))
