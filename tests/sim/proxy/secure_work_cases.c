// SPDX-License-Identifier: Apache-2.0
// What clients' handshakes and records cost their source of a turn (TH-84,
// dataplane/proxy/work.h).
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/work_turn.h"
#include "dataplane/tls/impl.h"
#include "tests/sim/proxy/secure_rig.h"
#include "tests/support/check.h"
#include "tests/support/tls_forger.h"

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

// So many records with nothing but so much padding.
static void pad(struct client *c, uint32_t n, uint32_t padding)
{
	static uint8_t record[TLS_MAX_PLAIN + TLS_FORGER_OVERHEAD];
	struct tls_end *e = &c->secure;
	struct tls_forger f;
	tls_forger_init(&f, &e->result.secrets, &e->tls->write, &c->host->wire->rand);
	for (uint32_t i = 0; i < n; i++) {
		size_t len = tls_forger_seal(&f, TLS_DATA, "", 0, padding, record);
		assert_true(buf_append(&e->out, e->chunks, record, len));
	}
	e->tls->write.seq = f.d.seq;
	tls_forger_fini(&f);
	c->host->due = true;
}

// Records without data: new keys, or padding.
struct flood {
	uint32_t padding; // of each; 0 = new keys
	uint32_t at_once; // that are opened before anybody looks at what they cost
};

static void send_flood(struct client *c, uint32_t n, const struct flood *f)
{
	if (f->padding)
		pad(c, n, f->padding);
	else
		renew_keys(c, n);
}

static uint64_t work_of_each(const struct flood *f)
{
	return PROXY_WORK_OTHER_RECORD + f->padding / 2;
}

static void th_84_records_without_data_are_charged_to_their_source(void **state)
{
	static const struct flood rows[] = {{.padding = 0}, {.padding = 16000}};
	const uint32_t n = 20;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t least = n * work_of_each(&rows[i]);
		struct rig r;
		rig_begin(&r, &(struct rig_conf){.front = true});
		uint64_t before = records(&r, TLS_C_records_in);
		send_flood(&r.w->clients[0], n, &rows[i]);
		assert_in_range(work_of(&r, 50 * MS, NULL), least, least * 5 / 4);
		assert_int_equal(records(&r, TLS_C_records_in) - before, n);
		rig_fini(&r);
	}
}

#define N_EACH 32 // records without data: what a connection may send at once

// All clients but this one have one source. Those from `silent` on have said nothing yet.
static void rig_begin_crowd(struct rig *r, uint32_t other, uint32_t silent)
{
	rig_init(r, &(struct rig_conf){.front = true, .n_clients = MAX_CLIENTS});
	r->w->wire.jitter_ns = 0; // what is sent at one instant comes in one turn
	use_backends(r->w, 0x3);
	for (uint32_t i = 0; i < MAX_CLIENTS; i++) {
		struct client *c = &r->w->clients[i];
		c->source = i == other ? 9 : 8;
		c->silent = i >= silent;
		world_open_client(r->w, i, 0);
		world_run(r->w, 20 * MS); // a source has not all places for handshakes (TH-111)
		assert_int_equal(c->secure.tls != NULL, i < silent);
	}
}

// The most of a turn, of all that come in one turn from one source, within its connections'
// budgets; another one asks beside it.
static uint64_t most_of_a_turn(const struct flood *f)
{
	const uint32_t victim = MAX_CLIENTS - 1;
	struct rig r;
	rig_begin_crowd(&r, victim, MAX_CLIENTS);
	uint64_t first = records(&r, TLS_C_records_in), before = first, most = 0;
	for (uint32_t i = 0; i < victim; i++)
		send_flood(&r.w->clients[i], N_EACH, f);
	struct ask *a = world_ask(r.w, "one", KIND_ECHO, 100);
	client_ask(&r.w->clients[victim], a);
	uint64_t until = r.w->wire.now_ns + 100 * MS;
	while (r.w->wire.now_ns < until) {
		wire_step(&r.w->wire, until);
		uint64_t now = records(&r, TLS_C_records_in);
		most = now - before > most ? now - before : most;
		before = now;
	}
	// All were taken, and the request beside them.
	assert_in_range(before - first, victim * N_EACH + 1, victim * N_EACH + 8);
	assert_true(world_counter(r.w, "inputs_put_off") > 0);
	assert_ok(r.w, a);
	rig_fini(&r);
	return most;
}

// TH-84: none has a second part of the line for the rest of what it has sent.
static void th_84_records_without_data_in_number_wait_for_their_sources_part(void **state)
{
	static const struct flood rows[] = {
		{.padding = 0, .at_once = N_EACH}, // all lie in a segment
		{.padding = 400, .at_once = BUF_CHUNK_ROOM / 400}, // in seven chunks that TCP keeps
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t most = (PROXY_WORK_TURN + PROXY_WORK_QUANTUM + PROXY_WORK_LINE) /
		                        work_of_each(&rows[i]) +
		                4 * rows[i].at_once;
		assert_in_range(most_of_a_turn(&rows[i]), most / 2, most);
	}
}

// New keys that are taken in the turn in which they come from one half of a source's connections.
// hellos: of the other half, behind them, when the source stands in line.
static uint64_t keys_of_a_turn(bool hellos)
{
	const uint32_t half = MAX_CLIENTS / 2;
	uint64_t taken = 0;
	struct rig r;
	rig_begin_crowd(&r, MAX_CLIENTS, half);
	for (uint32_t i = 0; i < half; i++)
		renew_keys(&r.w->clients[i], N_EACH);
	for (uint32_t i = half; hellos && i < MAX_CLIENTS; i++)
		client_ask(&r.w->clients[i], world_ask(r.w, "one", KIND_ECHO, 100));
	while (!taken && wire_step(&r.w->wire, r.w->wire.now_ns + SECOND))
		taken = records(&r, TLS_C_key_updates_in);
	assert_true(taken < half * N_EACH);
	world_run(r.w, 100 * MS);
	assert_int_equal(records(&r, TLS_C_key_updates_in), half * N_EACH);
	assert_int_equal(rig_shaken(&r, PROXY_WITH_CLIENT, TLSHS_ok), hellos ? 2 * half : half);
	finish(r.w);
	rig_fini(&r);
	return taken;
}

// TH-84: it is served beside the line, and has the less there.
static void th_84_who_stands_in_line_pays_for_handshakes(void **state)
{
	const uint64_t price =
		MAX_CLIENTS / 2 * PROXY_WORK_HANDSHAKE / PROXY_WORK_OTHER_RECORD; // in new keys
	uint64_t without = keys_of_a_turn(false), with = keys_of_a_turn(true);
	// Those of a segment are taken together.
	assert_in_range(without - with, price - N_EACH, price + N_EACH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(th_84_records_that_are_opened_are_charged_to_their_source),
		cmocka_unit_test(th_84_a_handshake_is_charged_once),
		cmocka_unit_test(th_84_records_without_data_are_charged_to_their_source),
		cmocka_unit_test(th_84_records_without_data_in_number_wait_for_their_sources_part),
		cmocka_unit_test(th_84_who_stands_in_line_pays_for_handshakes),
	};
	return cmocka_run_group_tests_name("proxy/secure_work", tests, rig_setup, rig_teardown);
}
