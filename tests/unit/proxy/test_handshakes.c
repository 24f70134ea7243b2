// SPDX-License-Identifier: Apache-2.0
// A worker's places at two handshake threads that are imagined: the test reads their orders.
#include "dataplane/proxy/handshakes.h"
#include "tests/support/check.h"
#include "tests/support/confined.h"
#include "tlshs/impl.h"

#include <errno.h>

#define MAX 4 // of a link

static struct tlshs_context context; // only its count is looked at
static struct tlshs_link links[2];
static struct tlshs_link *const both[] = {&links[0], &links[1]};
static struct proxy_handshakes hs;
static int users[16];
static uint32_t n_answers, n_rooms;
static void *answered, *rooms[16]; // in order

static void on_answer(void *user, const struct tlshs_answer *a)
{
	n_answers++;
	answered = user;
}

static void on_room(void *user)
{
	rooms[n_rooms++ % 16] = user;
}

static const struct proxy_handshakes_events events = {on_answer, on_room};

static void begin_with(uint32_t max_of_link, uint32_t n_slots)
{
	const struct proxy_handshakes_conf conf = {both, 2, max_of_link};
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(tlshs_link_init(&links[i], n_slots), 0);
	assert_int_equal(proxy_handshakes_init(&hs, &conf, &events), 0);
	context.refs = 1;
	n_answers = n_rooms = 0;
}

static void begin(uint32_t n_slots)
{
	begin_with(MAX, n_slots);
}

static void end(void)
{
	proxy_handshakes_fini(&hs);
	for (unsigned i = 0; i < 2; i++)
		tlshs_link_fini(&links[i]);
}

// Begins it, or it waits.
static struct proxy_handshake *start_from(
	uint64_t source, unsigned user, enum proxy_handshake_side side)
{
	struct proxy_handshake_ask ask = {
		.context = &context, .server_name = STR("a.test"), .source = source};
	struct proxy_handshake *h = proxy_handshake_take(&hs, side, source, &users[user]);
	if (h)
		proxy_handshake_begin(&hs, h, &ask);
	return h;
}

// Each user is a source of its own.
static struct proxy_handshake *start(unsigned user, enum proxy_handshake_side side)
{
	return start_from(user, user, side);
}

static enum tlshs_order_kind next_order(unsigned link)
{
	struct tlshs_order o;
	assert_true(spsc_read(&links[link].orders, &o));
	return o.kind;
}

static void threads_take_turns_and_clients_get_three_quarters(void **state)
{
	struct proxy_handshake *h[2 * MAX];
	struct tlshs_order o;
	begin(8);
	for (unsigned i = 0; i < 6; i++)
		assert_non_null(h[i] = start(i, PROXY_WITH_CLIENT));
	assert_null(start(6, PROXY_WITH_CLIENT));
	assert_non_null(start(6, PROXY_WITH_BACKEND));
	assert_non_null(start(7, PROXY_WITH_BACKEND));
	assert_null(start(8, PROXY_WITH_BACKEND));
	assert_int_equal(context.refs, 9);
	for (unsigned l = 0; l < 2; l++)
		for (unsigned i = 0; i < MAX; i++) {
			assert_true(spsc_read(&links[l].orders, &o));
			assert_int_equal(o.kind, TLSHS_START);
			assert_int_equal((uint32_t)o.id, i);
		}
	proxy_handshake_stop(&hs, h[0]);
	assert_non_null(start(0, PROXY_WITH_CLIENT));
	end();
}

static void a_full_ring_takes_no_reference_and_delays_a_stop(void **state)
{
	struct proxy_handshake *h[3];
	begin(1);
	for (unsigned i = 0; i < 3; i++)
		assert_non_null(h[i] = start(i, PROXY_WITH_CLIENT));
	assert_int_equal(context.refs, 3); // the last one waits
	assert_false(proxy_handshake_has_begun(h[2]));
	assert_int_equal(proxy_handshake_send(&hs, h[2], (const uint8_t *)"x", 1), 0);
	for (unsigned i = 0; i < 3; i++)
		proxy_handshake_stop(&hs, h[i]);
	assert_int_equal(hs.n_open, 0);
	assert_true(proxy_handshakes_are_due(&hs));
	for (unsigned i = 0; i < 2; i++) {
		proxy_handshakes_poll(&hs); // nothing, until there is room
		assert_int_equal(next_order(i), TLSHS_START);
		proxy_handshakes_poll(&hs);
		assert_int_equal(next_order(i), TLSHS_STOP);
	}
	proxy_handshakes_poll(&hs);
	assert_false(proxy_handshakes_are_due(&hs));
	assert_int_equal(n_rooms, 0); // nobody wants it any more
	end();
}

static void th_110_a_full_ring_holds_up_no_handshake_at_another_thread(void **state)
{
	struct proxy_handshake *h[8];
	begin(2);
	for (unsigned i = 0; i < 4; i++)
		assert_non_null(h[i] = start(i, PROXY_WITH_CLIENT));
	proxy_handshake_stop(&hs, h[0]); // at a thread that has not read yet
	proxy_handshake_stop(&hs, h[1]);
	assert_int_equal(next_order(1), TLSHS_START); // the other one goes on
	assert_int_equal(next_order(1), TLSHS_START);
	proxy_handshakes_poll(&hs);
	assert_int_equal(next_order(1), TLSHS_STOP);
	for (unsigned i = 4; i < 6; i++) {
		assert_non_null(h[i] = start(i, PROXY_WITH_CLIENT));
		assert_true(proxy_handshake_has_begun(h[i]));
		assert_int_equal(next_order(1), TLSHS_START);
	}
	assert_true(proxy_handshakes_are_due(&hs)); // the first one is yet to be stopped
	end();
}

static void th_110_who_waits_for_a_ring_is_called_in_order_as_it_has_room(void **state)
{
	static const uint8_t bytes[2 * TLSHS_SLOT];
	struct proxy_handshake *h[4];
	begin(2);
	for (unsigned i = 0; i < 4; i++) // two at each thread, whose ring the second START fills
		h[i] = start(i, PROXY_WITH_CLIENT);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(proxy_handshake_send(&hs, h[i], bytes, sizeof(bytes)), 0);
	proxy_handshakes_poll(&hs);
	assert_int_equal(n_rooms, 0);
	assert_int_equal(next_order(0), TLSHS_START);
	proxy_handshakes_poll(&hs); // its owner sends nothing now: the next one is called as well
	assert_int_equal(n_rooms, 2);
	assert_ptr_equal(rooms[0], &users[0]);
	assert_ptr_equal(rooms[1], &users[2]);
	assert_int_equal(next_order(1), TLSHS_START);
	assert_int_equal(proxy_handshake_send(&hs, h[1], bytes, sizeof(bytes)), 0); // not yet
	proxy_handshakes_poll(&hs);
	assert_int_equal(n_rooms, 4);
	assert_int_equal(proxy_handshake_send(&hs, h[1], bytes, sizeof(bytes)), TLSHS_SLOT);
	assert_true(proxy_handshakes_are_due(&hs));
	end();
}

static void th_110_backends_go_before_clients_that_wait(void **state)
{
	begin(1);
	for (unsigned i = 0; i < 6; i++) // four of them wait
		assert_non_null(start(i, PROXY_WITH_CLIENT));
	assert_non_null(start(6, PROXY_WITH_BACKEND)); // at link 0
	assert_int_equal(next_order(0), TLSHS_START);
	proxy_handshakes_poll(&hs);
	assert_int_equal(n_rooms, 3);
	assert_ptr_equal(rooms[0], &users[6]);
	assert_ptr_equal(rooms[1], &users[2]);
	assert_ptr_equal(rooms[2], &users[4]);
	end();
}

static void th_111_a_source_leaves_places_for_others(void **state)
{
	struct proxy_handshake *h[8];
	begin(16);
	for (unsigned i = 0; i < 5; i++)
		assert_non_null(h[i] = start_from(1, i, PROXY_WITH_CLIENT));
	assert_null(start_from(1, 5, PROXY_WITH_CLIENT));
	assert_non_null(start_from(2, 5, PROXY_WITH_CLIENT));
	assert_null(start_from(3, 6, PROXY_WITH_CLIENT)); // none is left
	assert_non_null(start_from(1, 6, PROXY_WITH_BACKEND)); // these are ours
	for (unsigned i = 0; i < 3; i++)
		proxy_handshake_stop(&hs, h[i]);
	assert_non_null(start_from(1, 0, PROXY_WITH_CLIENT));
	end();
}

static uint32_t take_all_that_it_may(uint64_t source)
{
	uint32_t n = 0;
	while (proxy_handshake_take(&hs, PROXY_WITH_CLIENT, source, &users[0]))
		n++;
	return n;
}

// Each takes what it may of what the ones before it have left, and lets nothing go. Without a
// reserve six would have all.
static void th_111_sources_that_come_one_after_the_other_leave_some_for_the_next(void **state)
{
	begin_with(1024, 8); // of 1536 places for clients
	for (uint64_t source = 1; source <= 30; source++)
		assert_true(take_all_that_it_may(source) > 0);
	assert_int_equal(take_all_that_it_may(1), 0);
	end();
}

// By hashes that differ in some bits alone.
static void th_111_a_source_does_not_pay_for_one_of_a_hash_like_its_own(void **state)
{
	begin_with(1024, 8);
	assert_true(take_all_that_it_may(1) > 100);
	assert_true(take_all_that_it_may(1 | UINT64_C(1) << 48) > 100);
	end();
}

// Who begins and goes, faster than threads take orders, holds places until the threads know.
static void th_111_places_to_be_stopped_count_for_their_source(void **state)
{
	unsigned n = 0;
	begin(1); // full after the first one
	for (struct proxy_handshake *h; (h = start_from(1, 0, PROXY_WITH_CLIENT)); n++)
		proxy_handshake_stop(&hs, h);
	assert_int_equal(n, 5);
	assert_int_equal(hs.n_open, 0);
	assert_non_null(start_from(2, 1, PROXY_WITH_CLIENT));
	assert_non_null(start(2, PROXY_WITH_BACKEND));
	while (proxy_handshakes_are_due(&hs) && n--)
		for (unsigned i = 0; i < 2; i++) {
			struct tlshs_order o;
			(void)!spsc_read(&links[i].orders, &o);
			proxy_handshakes_poll(&hs);
		}
	assert_int_equal(hs.n_with_clients, 1);
	end();
}

static void answers_of_a_handshake_that_was_stopped_are_dropped(void **state)
{
	static struct tlshs_answer a;
	struct proxy_handshake *h[2 * MAX];
	struct tlshs_order o;
	begin(16);
	for (unsigned i = 0; i < 2 * MAX; i++)
		h[i] = start(i, i < 6 ? PROXY_WITH_CLIENT : PROXY_WITH_BACKEND);
	assert_true(spsc_read(&links[0].orders, &o));
	a.id = o.id;
	a.kind = TLSHS_REST;
	assert_true(spsc_write(&links[0].answers, &a));
	proxy_handshakes_poll(&hs);
	assert_int_equal(n_answers, 1);
	assert_ptr_equal(answered, &users[0]);
	proxy_handshake_stop(&hs, h[0]);
	assert_non_null(start(9, PROXY_WITH_CLIENT)); // in the same place
	assert_true(spsc_write(&links[0].answers, &a));
	assert_true(proxy_handshakes_are_due(&hs));
	proxy_handshakes_poll(&hs);
	assert_int_equal(n_answers, 1);
	end();
}

// Its peer may say nothing for as long as it likes.
static void tls_270_what_a_thread_has_done_with_is_not_due(void **state)
{
	static struct tlshs_answer a;
	struct tlshs_order o;
	begin(8);
	struct proxy_handshake *h = start(0, PROXY_WITH_CLIENT);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(proxy_handshakes_are_due(&hs));
		assert_true(spsc_read(&links[0].orders, &o));
		assert_true(proxy_handshakes_are_due(&hs));
		a.id = o.id;
		assert_true(spsc_write(&links[0].answers, &a));
		tlshs_link_rest(&links[0]);
		assert_true(proxy_handshakes_are_due(&hs)); // to be read
		proxy_handshakes_poll(&hs);
		assert_int_equal(n_answers, i + 1);
		assert_false(proxy_handshakes_are_due(&hs));
		assert_int_equal(proxy_handshake_send(&hs, h, (const uint8_t *)"x", 1), 1);
	}
	a.kind = TLSHS_END; // by its deadline
	assert_true(spsc_write(&links[0].answers, &a));
	assert_true(proxy_handshakes_are_due(&hs));
	end();
}

// False = something went wrong.
static bool work(void *user)
{
	static struct tlshs_answer a;
	static struct tlshs_order o;
	static const uint8_t bytes[5000];
	for (unsigned i = 0; i < 1000; i++) {
		struct proxy_handshake *h = start(1, PROXY_WITH_CLIENT);
		if (!h || proxy_handshake_send(&hs, h, bytes, sizeof(bytes)) != sizeof(bytes))
			return false;
		struct tlshs_link *l = both[i % 2];
		if (!spsc_read(&l->orders, &o))
			return false;
		a.id = o.id;
		if (!spsc_write(&l->answers, &a))
			return false;
		proxy_handshakes_poll(&hs);
		proxy_handshake_stop(&hs, h);
		while (spsc_read(&l->orders, &o))
			;
	}
	return n_answers == 1000;
}

static void tls_67_places_take_no_memory_and_no_system_call(void **state)
{
	begin(8);
	assert_true(confined_run(work, NULL));
	end();
}

RUN_SUITE("proxy/handshakes", cmocka_unit_test(threads_take_turns_and_clients_get_three_quarters),
	cmocka_unit_test(a_full_ring_takes_no_reference_and_delays_a_stop),
	cmocka_unit_test(th_110_a_full_ring_holds_up_no_handshake_at_another_thread),
	cmocka_unit_test(th_110_who_waits_for_a_ring_is_called_in_order_as_it_has_room),
	cmocka_unit_test(th_110_backends_go_before_clients_that_wait),
	cmocka_unit_test(th_111_a_source_leaves_places_for_others),
	cmocka_unit_test(th_111_sources_that_come_one_after_the_other_leave_some_for_the_next),
	cmocka_unit_test(th_111_a_source_does_not_pay_for_one_of_a_hash_like_its_own),
	cmocka_unit_test(th_111_places_to_be_stopped_count_for_their_source),
	cmocka_unit_test(answers_of_a_handshake_that_was_stopped_are_dropped),
	cmocka_unit_test(tls_270_what_a_thread_has_done_with_is_not_due),
	cmocka_unit_test(tls_67_places_take_no_memory_and_no_system_call))
