// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/capture.h"
#include "tests/support/check.h"

#include <string.h>

static struct lb_capture *make(uint32_t ring_size, uint32_t snaplen)
{
	struct lb_capture *c = lb_capture_new(ring_size);
	assert_non_null(c);
	c->ask.snaplen = snaplen;
	return c;
}

static void a_frame_is_cut_to_what_is_kept_of_it(void **state)
{
	struct lb_capture *c = make(4096, 100);
	c->now_ns = 77;
	struct lb_capture_record *r = lb_capture_place(c, 3, LB_CAPTURE_TX, 1500);
	assert_int_equal(r->len, 1500);
	assert_int_equal(r->kept, 100);
	assert_int_equal(r->interface, 3);
	assert_int_equal(r->way, LB_CAPTURE_TX);
	assert_int_equal(r->cause.layer, LB_CAPTURE_TAKEN);
	assert_int_equal(lb_capture_place(c, 3, LB_CAPTURE_TX, 60)->kept, 60);
	lb_capture_free(c);
}

static void assert_next(struct lb_capture *c, enum lb_capture_way way, uint64_t at_ns, uint32_t len)
{
	uint64_t at;
	const struct lb_capture_record *r = lb_capture_peek(c, &at);
	assert_non_null(r);
	assert_int_equal(r->way, way);
	assert_int_equal(at, at_ns);
	assert_int_equal(r->len, len);
	record_ring_pass(&c->ring);
}

// OPS-100
static void what_is_received_has_the_turns_begin_and_what_is_sent_its_end(void **state)
{
	struct lb_capture *c = make(4096, 100);
	uint64_t at;
	lb_capture_turn(c, 100);
	lb_capture_place(c, 0, LB_CAPTURE_RX, 1);
	lb_capture_place(c, 0, LB_CAPTURE_TX, 2);
	lb_capture_place(c, 0, LB_CAPTURE_RX, 3);
	lb_capture_place(c, 1, LB_CAPTURE_TX, 4);
	assert_null(lb_capture_peek(c, &at)); // the turn is not over
	lb_capture_turn(c, 107);
	lb_capture_place(c, 0, LB_CAPTURE_RX, 5);
	assert_next(c, LB_CAPTURE_RX, 100, 1);
	assert_next(c, LB_CAPTURE_TX, 107, 2);
	assert_next(c, LB_CAPTURE_RX, 107, 3); // behind what was sent: times do not fall
	assert_next(c, LB_CAPTURE_TX, 107, 4);
	assert_null(lb_capture_peek(c, &at));
	lb_capture_turn(c, 200);
	assert_next(c, LB_CAPTURE_RX, 107, 5);
	lb_capture_free(c);
}

// OPS-100: of 112 bytes, nine fill the ring's 1024 but for 16.
static void a_turn_that_begins_at_the_rings_beginning_has_its_times(void **state)
{
	struct lb_capture *c = make(1024, 200);
	for (uint64_t turn = 0; turn < 100; turn++) {
		lb_capture_turn(c, 10 * turn);
		assert_non_null(lb_capture_place(c, 0, LB_CAPTURE_RX, 72));
		lb_capture_turn(c, 10 * turn + 1);
		assert_next(c, LB_CAPTURE_RX, 10 * turn, 72);
	}
	lb_capture_free(c);
}

// 1024 bytes in records of 128, from a place within the ring on.
static void a_turn_that_fills_the_ring_is_read(void **state)
{
	struct lb_capture *c = make(1024, 200);
	lb_capture_turn(c, 1);
	for (uint32_t i = 0; i < 9; i++) {
		assert_non_null(lb_capture_place(c, 0, LB_CAPTURE_RX, 88));
		if (i == 0) {
			lb_capture_turn(c, 2);
			assert_next(c, LB_CAPTURE_RX, 1, 88);
		}
	}
	assert_null(lb_capture_place(c, 0, LB_CAPTURE_RX, 88));
	lb_capture_turn(c, 3);
	for (uint32_t i = 0; i < 8; i++)
		assert_next(c, LB_CAPTURE_RX, 2, 88);
	lb_capture_free(c);
}

// OPS-103
static void frames_that_find_no_room_are_counted_and_told_with_the_next_one(void **state)
{
	struct lb_capture *c = make(1024, 200);
	uint32_t n = 0, len;
	while (lb_capture_place(c, 1, LB_CAPTURE_RX, 200))
		n++;
	assert_true(n > 1);
	assert_null(lb_capture_place(c, 1, LB_CAPTURE_RX, 200));
	assert_null(lb_capture_place(c, 0, LB_CAPTURE_RX, 200));
	assert_int_equal(c->n_dropped[1], 2);
	assert_int_equal(c->n_dropped[0], 1);
	lb_capture_turn(c, 1);
	for (uint32_t i = 0; i < n; i++) {
		assert_non_null(record_ring_peek(&c->ring, &len));
		record_ring_pass(&c->ring);
	}
	assert_int_equal(lb_capture_place(c, 1, LB_CAPTURE_RX, 200)->n_lost, 2);
	assert_int_equal(lb_capture_place(c, 1, LB_CAPTURE_RX, 200)->n_lost, 0);
	assert_int_equal(lb_capture_place(c, 0, LB_CAPTURE_RX, 200)->n_lost, 1);
	lb_capture_free(c);
}

RUN_SUITE("lb/pick/capture", cmocka_unit_test(a_frame_is_cut_to_what_is_kept_of_it),
	cmocka_unit_test(what_is_received_has_the_turns_begin_and_what_is_sent_its_end),
	cmocka_unit_test(a_turn_that_begins_at_the_rings_beginning_has_its_times),
	cmocka_unit_test(a_turn_that_fills_the_ring_is_read),
	cmocka_unit_test(frames_that_find_no_room_are_counted_and_told_with_the_next_one))
