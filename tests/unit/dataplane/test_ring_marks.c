// SPDX-License-Identifier: Apache-2.0
// The marks of frames in a ring that the test lays out as the kernel does. The real kernel's are in
// tests/integ/test_devices.py.
#include "dataplane/ring_marks.h"
#include "tests/support/check.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <string.h>

#define FRAME 2048
#define N 8

static uint8_t ring[2 * N * FRAME] __attribute__((aligned(16)));

static void put(uint32_t at, uint32_t status, uint32_t len, uint32_t there)
{
	struct tpacket2_hdr *h = (void *)(ring + (size_t)at * FRAME);
	*h = (struct tpacket2_hdr){.tp_status = status, .tp_len = len, .tp_snaplen = there};
}

static struct ring_marks marks_of_ring(void)
{
	memset(ring, 0, sizeof(ring));
	return (struct ring_marks){
		.map = ring, .len = sizeof(ring), .frame_size = FRAME, .n_frames = N};
}

// NET-34
static void a_checksum_that_was_not_made_is_seen_of_its_frame_alone(void **state)
{
	struct ring_marks r = marks_of_ring();
	put(0, TP_STATUS_USER, 60, 60);
	put(1, TP_STATUS_USER | TP_STATUS_CSUMNOTREADY, 1514, 1514);
	put(2, TP_STATUS_USER | TP_STATUS_CSUM_VALID, 1514, 1514);
	put(4, TP_STATUS_USER | TP_STATUS_CSUMNOTREADY, 60, 60); // behind one that is the kernel's
	struct ring_look look = ring_marks_look(&r, RING_MARKS_MAX);
	assert_int_equal(look.n, 3);
	assert_int_equal(look.unmade, 2);
	assert_int_equal(look.cut, 0);
	assert_int_equal(ring_marks_look(&r, 1).n, 1);
}

// NET-35
static void a_frame_longer_than_its_place_is_seen(void **state)
{
	struct ring_marks r = marks_of_ring();
	put(0, TP_STATUS_USER | TP_STATUS_CSUMNOTREADY, 65226, 1982);
	put(1, TP_STATUS_USER, 1982, 1982);
	struct ring_look look = ring_marks_look(&r, RING_MARKS_MAX);
	assert_int_equal(look.n, 2);
	assert_int_equal(look.unmade, 1);
	assert_int_equal(look.cut, 1);
}

static void the_ring_is_read_round_and_round(void **state)
{
	struct ring_marks r = marks_of_ring();
	for (uint32_t i = 0; i < N; i++)
		put(i, TP_STATUS_USER | (i == 2 ? TP_STATUS_CSUMNOTREADY : 0), 60, 60);
	assert_int_equal(ring_marks_look(&r, RING_MARKS_MAX).n, N); // never one twice
	ring_marks_pass(&r, 6);
	put(3, 0, 0, 0);
	struct ring_look look = ring_marks_look(&r, RING_MARKS_MAX);
	assert_int_equal(look.n, 5); // 6, 7, 0, 1, 2
	assert_int_equal(look.unmade, 1 << 4);
	ring_marks_pass(&r, 5);
	assert_int_equal(ring_marks_look(&r, RING_MARKS_MAX).n, 0);
}

static void a_ring_that_cannot_be_as_told_is_refused(void **state)
{
	static const char *const odd[] = {"net_af_packet0,iface=x,framesz=8", "x,framecnt=0",
		"x,blocksz=65536,framesz=3000,framecnt=4096",
		"x,blocksz=65536,framesz=2048,framecnt=33"};
	struct ring_marks r = {0};
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		assert_int_equal(ring_marks_open(&r, -1, odd[i]), -EINVAL);
	assert_int_equal(ring_marks_open(&r, -1, "x,framecnt=4096"), -EBADF);
	assert_null(r.map);
	ring_marks_close(&r);
}

RUN_SUITE("dataplane/ring_marks",
	cmocka_unit_test(a_checksum_that_was_not_made_is_seen_of_its_frame_alone),
	cmocka_unit_test(a_frame_longer_than_its_place_is_seen),
	cmocka_unit_test(the_ring_is_read_round_and_round),
	cmocka_unit_test(a_ring_that_cannot_be_as_told_is_refused))
