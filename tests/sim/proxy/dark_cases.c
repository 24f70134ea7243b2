// SPDX-License-Identifier: Apache-2.0
// The path to a side is dark: nothing arrives there, nor comes from there, and nobody says so. How
// long that may last until what is under way is cut (docs/tcp.md has the table).
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#define LONG (3 << 20) // more than is through when the dark begins

static void light(struct world *w, unsigned host, bool on)
{
	w->wire.hosts[host].unplugged = !on;
}

// In the middle of its bodies.
static struct ask *begun(struct world *w, enum kind kind, unsigned dark_host)
{
	struct ask *a = ask(w, kind, kind == KIND_HANG ? 0 : LONG);
	world_run(w, 15 * MS);
	assert_false(a->closed);
	light(w, dark_host, false);
	return a;
}

// TCP-165, TH-65, TH-17: Bytes of either end wait, or of both.
static void a_blackout_of_25_seconds_costs_no_request(void **state)
{
	static const unsigned hosts[] = {HOST_CLIENTS, HOST_BACKENDS}, lengths[] = {1, 5, 15, 25};
	static const enum kind kinds[] = {KIND_ECHO, KIND_DOWNLOAD, KIND_PLAIN};
	for (unsigned i = 0; i < 2 * 4 * 3; i++) {
		struct world *w = ready_world(NULL);
		struct ask *a = begun(w, kinds[i % 3], hosts[i / 12]);
		world_run(w, lengths[i / 3 % 4] * SECOND);
		assert_false(a->closed);
		light(w, hosts[i / 12], true);
		uint64_t begin = w->wire.now_ns;
		finish(w);
		assert_true(w->wire.now_ns - begin < 15 * SECOND);
		assert_int_equal(a->http_status, 200);
		assert_true(a->got_end && !a->broken && a->received == a->size);
		world_free(w);
	}
}

// TCP-165: 30 seconds after bytes went out unanswered, RST.
static void a_client_is_cut_after_30_seconds(void **state)
{
	struct world *w = ready_world(NULL);
	begun(w, KIND_DOWNLOAD, HOST_CLIENTS);
	world_run(w, 29 * SECOND);
	assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_LOST), 0);
	world_run(w, 2 * SECOND);
	assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_LOST), 1);
	world_run(w, 9 * SECOND);
	light(w, HOST_CLIENTS, true);
	client_abort(&w->clients[0]); // which knows nothing of it
	world_free(w);
}

// TCP-69: nothing waits for it, and it is asked after 60 seconds only.
static void a_silent_client_is_cut_after_90_seconds(void **state)
{
	for (unsigned seconds = 40; seconds <= 100; seconds += 30) {
		struct world *w = ready_world(NULL);
		struct ask *a = begun(w, KIND_HANG, HOST_CLIENTS);
		world_run(w, seconds * SECOND);
		assert_int_equal(world_ended(w, LB_CAUSE_CLIENT_LOST), seconds == 100);
		light(w, HOST_CLIENTS, true);
		client_cancel(a);
		world_free(w);
	}
}

// TCP-165: 30 seconds after bytes went out, or 33 where all the proxy's bytes had arrived.
static void a_backend_is_cut_after_30_seconds(void **state)
{
	static const enum kind kinds[] = {KIND_ECHO, KIND_DOWNLOAD, KIND_HANG};
	for (unsigned i = 0; i < 3; i++) {
		struct world *w = ready_world(NULL);
		struct ask *a = begun(w, kinds[i], HOST_BACKENDS);
		world_run(w, 29 * SECOND);
		assert_false(a->closed);
		world_run(w, 5 * SECOND);
		assert_true(a->closed);
		assert_int_equal(world_ended(w, LB_CAUSE_UPSTREAM_LOST), 1);
		world_run(w, 6 * SECOND);
		light(w, HOST_BACKENDS, true);
		world_free(w);
	}
}

// TH-65: from then on they wait for another connection, or another backend.
static void th_65_within_ten_seconds_a_dark_backend_gets_no_new_request(void **state)
{
	static const enum kind kinds[] = {KIND_ECHO, KIND_DOWNLOAD, KIND_HANG};
	for (unsigned i = 0; i < 3; i++) {
		struct world *w = ready_world(NULL);
		struct ask *a = begun(w, kinds[i], HOST_BACKENDS);
		world_run(w, 5 * SECOND);
		assert_int_equal(world_counter(w, "upstreams_unanswered"), 0);
		world_run(w, 5 * SECOND);
		assert_in_range(world_counter(w, "upstreams_unanswered"), 1, 2);
		struct ask *next = ask(w, KIND_ECHO, 10);
		world_run(w, 2 * SECOND);
		assert_false(next->closed || a->closed);
		light(w, HOST_BACKENDS, true);
		finish_of(w, next); // by a new connection
		assert_ok(w, next);
		if (kinds[i] == KIND_HANG)
			client_cancel(a);
		finish(w);
		assert_int_equal(world_ended(w, LB_CAUSE_UPSTREAM_LOST), 0);
		world_free(w);
	}
}

// TCP-166: the clock is the path's own.
static void a_slow_path_is_given_more_time(void **state)
{
	struct world *w = ready_world(NULL);
	w->wire.delay_ns = 2 * SECOND;
	for (int i = 0; i < 3; i++) {
		ask(w, KIND_ECHO, 10);
		finish(w);
	}
	struct ask *a = ask(w, KIND_ECHO, 10);
	world_run(w, SECOND);
	light(w, HOST_BACKENDS, false);
	world_run(w, 45 * SECOND);
	assert_false(a->closed);
	light(w, HOST_BACKENDS, true);
	finish(w);
	assert_ok(w, a);
	world_free(w);
}

// TCP-168, RFC 8899 4.3: whole segments vanish, in both directions.
static void a_path_that_drops_long_segments_is_seen_through(void **state)
{
	static const enum kind kinds[] = {KIND_ECHO, KIND_DOWNLOAD, KIND_PLAIN};
	for (unsigned i = 0; i < 3; i++) {
		struct world *w = ready_world(NULL);
		ask(w, KIND_ECHO, 10);
		finish(w);
		w->wire.silent_mtu = 1300;
		struct ask *a = ask(w, kinds[i], LONG);
		world_run(w, 10 * SECOND);
		assert_true(a->closed && a->got_end && !a->broken && a->received == a->size);
		world_free(w);
	}
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("sim/proxy_dark", CASE(a_blackout_of_25_seconds_costs_no_request),
	CASE(a_client_is_cut_after_30_seconds), CASE(a_silent_client_is_cut_after_90_seconds),
	CASE(a_backend_is_cut_after_30_seconds),
	CASE(th_65_within_ten_seconds_a_dark_backend_gets_no_new_request),
	CASE(a_slow_path_is_given_more_time), CASE(a_path_that_drops_long_segments_is_seen_through))
