// SPDX-License-Identifier: Apache-2.0
// The worker's end of a link.
#include "tests/support/check.h"
#include "tests/support/confined.h"
#include "tlshs/link.h"

static void what_finds_no_room_stays_with_the_worker(void **state)
{
	static uint8_t bytes[5 * TLSHS_SLOT];
	struct tlshs_link l;
	struct tlshs_order o;
	assert_int_equal(tlshs_link_init(&l, 4), 0);
	assert_true(tlshs_link_start(&l, 7, NULL, STR("a.test"), 9));
	assert_int_equal(tlshs_link_send(&l, 7, bytes, TLSHS_SLOT + 10), TLSHS_SLOT + 10);
	assert_int_equal(tlshs_link_send(&l, 7, bytes, sizeof(bytes)), TLSHS_SLOT);
	assert_int_equal(tlshs_link_send(&l, 7, bytes, 1), 0);
	assert_false(tlshs_link_stop(&l, 7));
	assert_false(tlshs_link_start(&l, 8, NULL, STR(""), 9));
	assert_true(spsc_read(&l.orders, &o));
	assert_int_equal(o.kind, TLSHS_START);
	assert_int_equal(o.source, 9);
	assert_int_equal(o.len, 6);
	assert_memory_equal(o.bytes, "a.test", 6);
	assert_true(tlshs_link_stop(&l, 7));
	static const uint16_t lens[] = {TLSHS_SLOT, 10, TLSHS_SLOT, 0};
	for (unsigned i = 0; i < 4; i++) {
		assert_true(spsc_read(&l.orders, &o));
		assert_int_equal(o.id, 7);
		assert_int_equal(o.len, lens[i]);
		assert_int_equal(o.kind, i < 3 ? TLSHS_BYTES : TLSHS_STOP);
	}
	tlshs_link_fini(&l);
}

static void tls_16_a_ticket_finds_room_as_a_whole_or_is_dropped(void **state)
{
	static uint8_t bytes[TLSHS_MAX_TICKET + 1];
	static const struct {
		size_t len;
		unsigned n; // orders; 0 = refused
	} rows[] = {{1, 1}, {TLSHS_SLOT, 1}, {TLSHS_SLOT + 1, 2}, {TLSHS_MAX_TICKET, 4},
		{TLSHS_MAX_TICKET + 1, 0}, {0, 0}};
	struct tlshs_link l;
	static struct tlshs_order o;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	assert_int_equal(tlshs_link_init(&l, 4), 0);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t at = 0, len = rows[i].len;
		assert_int_equal(tlshs_link_ticket(&l, 9, bytes, len), rows[i].n > 0);
		for (unsigned k = 0; k < rows[i].n; k++, at += o.len) {
			assert_true(spsc_read(&l.orders, &o));
			assert_int_equal(o.id, 9);
			assert_int_equal(o.kind, TLSHS_TICKET);
			assert_int_equal(o.n_left, len - at);
			assert_memory_equal(o.bytes, bytes + at, o.len);
		}
		assert_int_equal(at, rows[i].n ? len : 0);
		assert_true(spsc_is_empty(&l.orders));
	}
	assert_true(tlshs_link_stop(&l, 1));
	assert_false(tlshs_link_ticket(&l, 9, bytes, TLSHS_MAX_TICKET));
	assert_true(tlshs_link_ticket(&l, 9, bytes, TLSHS_MAX_TICKET - TLSHS_SLOT));
	assert_false(tlshs_link_ticket(&l, 9, bytes, 1));
	tlshs_link_fini(&l);
}

static void secrets_do_not_stay_in_the_ring(void **state)
{
	static struct tlshs_answer a;
	static const struct tls_secrets zero;
	struct tlshs_link l;
	memset(&a, 0x5a, sizeof(a));
	a.kind = TLSHS_END;
	a.outcome = TLSHS_ok;
	assert_int_equal(tlshs_link_init(&l, 1), 0);
	assert_true(spsc_write(&l.answers, &a));
	const struct tlshs_answer *there = tlshs_link_peek(&l);
	assert_memory_equal(there, &a, sizeof(a));
	tlshs_link_pass(&l);
	assert_null(tlshs_link_peek(&l));
	assert_memory_equal(&there->result.secrets, &zero, sizeof(zero));
	tlshs_link_fini(&l);
}

// False = something went wrong.
static bool work(void *user)
{
	struct tlshs_link *l = user;
	static uint8_t bytes[3 * TLSHS_SLOT];
	static struct tlshs_answer a;
	static struct tlshs_order o;
	for (unsigned i = 0; i < 1000; i++) {
		if (!tlshs_link_start(l, i, NULL, STR("a.test"), i) ||
			tlshs_link_send(l, i, bytes, sizeof(bytes)) != sizeof(bytes) ||
			!tlshs_link_stop(l, i) || !tlshs_link_ticket(l, i, bytes, TLSHS_SLOT + 1) ||
			!spsc_write(&l->answers, &a))
			return false;
		for (unsigned k = 0; k < 7; k++)
			if (!spsc_read(&l->orders, &o))
				return false;
		if (!tlshs_link_peek(l))
			return false;
		tlshs_link_pass(l);
		if (tlshs_link_peek(l))
			return false;
	}
	return true;
}

static void tls_67_a_worker_makes_no_system_call_and_takes_no_memory(void **state)
{
	struct tlshs_link l;
	assert_int_equal(tlshs_link_init(&l, 8), 0);
	assert_true(confined_run(work, &l));
	tlshs_link_fini(&l);
}

RUN_SUITE("tlshs/link", cmocka_unit_test(what_finds_no_room_stays_with_the_worker),
	cmocka_unit_test(tls_16_a_ticket_finds_room_as_a_whole_or_is_dropped),
	cmocka_unit_test(secrets_do_not_stay_in_the_ring),
	cmocka_unit_test(tls_67_a_worker_makes_no_system_call_and_takes_no_memory))
