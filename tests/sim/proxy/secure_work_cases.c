// SPDX-License-Identifier: Apache-2.0
// What clients' handshakes and records cost their source of a turn (TH-84,
// dataplane/proxy/work.h).
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/work_turn.h"
#include "dataplane/tls/counters.h"
#include "tests/sim/proxy/secure_rig.h"
#include "tests/support/check.h"

static uint64_t records(const struct rig *r, enum tls_counter counter)
{
	return counter_read(&proxy_tls_counters(r->w->proxy).values[counter]);
}

// What the allowances of all turns lose, for so long or until the request is over.
static uint64_t work_of(struct rig *r, uint64_t for_ns, const struct ask *a)
{
	const struct proxy_work *work = &r->w->proxy->work;
	uint64_t until = r->w->wire.now_ns + for_ns, spent = 0, turn = work->turn;
	while (!(a && a->closed) && r->w->wire.now_ns < until) {
		wire_step(&r->w->wire, until);
		if (work->turn != turn)
			spent += (uint64_t)(PROXY_WORK_TURN - work->allowance);
		turn = work->turn;
	}
	return spent;
}

// *ret_opened: in how many records it came.
static uint64_t work_of_upload(bool front, uint32_t size, uint64_t *ret_opened)
{
	struct rig r;
	rig_begin(&r, &(struct rig_conf){.front = front});
	uint64_t before = records(&r, TLS_C_records_in);
	struct ask *a = ask(r.w, KIND_ECHO, size);
	uint64_t spent = work_of(&r, 20 * SECOND, a);
	*ret_opened = records(&r, TLS_C_records_in) - before;
	finish(r.w);
	assert_ok(r.w, a);
	rig_fini(&r);
	return spent;
}

static void th_84_records_that_are_opened_are_charged_to_their_source(void **state)
{
	const uint32_t size = 200000;
	uint64_t none, opened;
	uint64_t clear = work_of_upload(false, size, &none);
	uint64_t secure = work_of_upload(true, size, &opened);
	uint64_t least = opened * PROXY_WORK_RECORD + size / 2;
	assert_int_equal(none, 0);
	assert_in_range(opened, size / TLS_MAX_PLAIN, size / 1000);
	// Frames are cut elsewhere with TLS, and a few more or less of them come.
	assert_in_range(secure, clear + least - least / 10, clear + 2 * least);
}

static uint64_t work_of_opening(bool front)
{
	struct rig r;
	rig_init(&r, &(struct rig_conf){.front = front});
	world_open_client(r.w, 0, 0);
	uint64_t spent = work_of(&r, 50 * MS, NULL);
	assert_int_equal(rig_shaken(&r, PROXY_WITH_CLIENT, TLSHS_ok), front);
	rig_fini(&r);
	return spent;
}

static void th_84_a_handshake_is_charged_once(void **state)
{
	uint64_t clear = work_of_opening(false);
	assert_in_range(work_of_opening(true), clear + PROXY_WORK_HANDSHAKE,
		clear + 2 * PROXY_WORK_HANDSHAKE - 1);
}

// So many KeyUpdates, a record each.
static void renew_keys(struct client *c, uint32_t n)
{
	struct tls_end *e = &c->secure;
	for (uint32_t i = 0; i < n; i++) {
		tls_conn_update_keys(e->tls, false);
		tls_conn_seal(e->tls, &e->plain, &e->out, 1 << 20);
	}
	c->host->due = true;
}

static void th_84_records_without_data_are_charged_to_their_source(void **state)
{
	const uint32_t n = 20;
	struct rig r;
	rig_begin(&r, &(struct rig_conf){.front = true});
	renew_keys(&r.w->clients[0], n);
	assert_in_range(work_of(&r, 50 * MS, NULL), n * PROXY_WORK_OTHER_RECORD,
		n * PROXY_WORK_OTHER_RECORD * 5 / 4);
	assert_int_equal(records(&r, TLS_C_key_updates_in), n);
	rig_fini(&r);
}

// TH-84: what comes in one turn from one source, within its connections' budgets.
static void th_84_new_keys_in_number_wait_for_their_sources_part(void **state)
{
	const uint32_t victim = MAX_CLIENTS - 1, n_each = 32;
	const uint64_t of_line = PROXY_WORK_LINE + PROXY_WORK_QUANTUM;
	const uint64_t most = (PROXY_WORK_TURN + of_line) / PROXY_WORK_OTHER_RECORD + 3 * n_each;
	struct rig r;
	rig_init(&r, &(struct rig_conf){.front = true, .n_clients = MAX_CLIENTS});
	r.w->wire.jitter_ns = 0;
	use_backends(r.w, 0x3);
	for (uint32_t i = 0; i < MAX_CLIENTS; i++) {
		r.w->clients[i].source = i == victim ? 9 : 8;
		world_open_client(r.w, i, 0);
		world_run(r.w, 20 * MS); // a source has not all places for handshakes (TH-111)
		assert_non_null(r.w->clients[i].secure.tls);
	}
	for (uint32_t i = 0; i < victim; i++)
		renew_keys(&r.w->clients[i], n_each);
	struct ask *a = world_ask(r.w, "one", KIND_ECHO, 100);
	client_ask(&r.w->clients[victim], a);
	uint64_t until = r.w->wire.now_ns + 100 * MS, before = 0, longest = 0;
	while (r.w->wire.now_ns < until) {
		wire_step(&r.w->wire, until);
		uint64_t now = records(&r, TLS_C_key_updates_in);
		longest = now - before > longest ? now - before : longest;
		before = now;
	}
	assert_int_equal(before, victim * n_each); // all were taken
	assert_in_range(longest, most / 2, most);
	assert_true(world_counter(r.w, "inputs_put_off") > 0);
	assert_ok(r.w, a);
	rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(th_84_records_that_are_opened_are_charged_to_their_source),
		cmocka_unit_test(th_84_a_handshake_is_charged_once),
		cmocka_unit_test(th_84_records_without_data_are_charged_to_their_source),
		cmocka_unit_test(th_84_new_keys_in_number_wait_for_their_sources_part),
	};
	return cmocka_run_group_tests_name("proxy/secure_work", tests, rig_setup, rig_teardown);
}
