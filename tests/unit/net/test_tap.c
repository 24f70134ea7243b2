// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/tap.h"
#include "tests/support/check.h"
#include "tests/unit/net/world.h"

#include <stdlib.h>
#include <string.h>

#define HERE IP(10, 0, 0, 1)
#define THERE IP(10, 0, 0, 7)
#define TURN_NS 5000

static struct net_tap tap_of(struct lb_capture *to, uint16_t vlan)
{
	struct net_tap tap;
	net_tap_init(&tap, to, NULL, 0, vlan);
	return tap;
}

static struct lb_capture *make_capture(void)
{
	struct lb_capture *c = lb_capture_new(1 << 16);
	c->ask = (struct lb_capture_ask){.snaplen = LB_CAPTURE_SNAPLEN};
	c->now_ns = TURN_NS;
	return c;
}

// The oldest one, once the turn is over.
static const struct lb_capture_record *next(struct lb_capture *c)
{
	uint64_t at_ns;
	lb_capture_turn(c, c->now_ns + TURN_NS);
	return lb_capture_peek(c, &at_ns);
}

// The record of the frame, if it has one.
static struct lb_capture_record *take(struct net_tap *tap, enum lb_capture_way way,
	const uint8_t *frame, uint32_t len, uint32_t full_len)
{
	const struct record_ring *ring = &tap->to->ring;
	uint8_t *at = ring->next;
	net_tap_take(tap, way, frame, len, full_len);
	if (ring->next == at)
		return NULL;
	if (ring->next < at) // there was no room behind
		at = ring->bytes;
	return (struct lb_capture_record *)(at + RECORD_RING_HEADER);
}

static void assert_copy(const struct lb_capture_record *r, enum lb_capture_way way,
	const uint8_t *frame, uint32_t len)
{
	assert_non_null(r);
	assert_int_equal(r->way, way);
	assert_int_equal(r->len, len);
	assert_int_equal(r->kept, len);
	assert_memory_equal(r->bytes, frame, len);
}

// OPS-100
static void a_frame_of_any_length_is_copied_as_it_is(void **state)
{
	struct lb_capture *c = make_capture();
	uint8_t *frame = malloc(2000); // whose end a sanitizer knows
	for (uint32_t i = 0; i < 2000; i++)
		frame[i] = (uint8_t)(i * 7);
	for (uint32_t len = 1; len <= 2000; len++) {
		enum lb_capture_way way = len % 2 ? LB_CAPTURE_RX : LB_CAPTURE_TX;
		// Behind a tap of a VLAN what is sent has its tag.
		struct net_tap tap = tap_of(c, way == LB_CAPTURE_TX && len % 3 ? 300 : 0);
		const uint8_t *from = frame + 2000 - len;
		assert_non_null(take(&tap, way, from, len, len));
		assert_copy(next(c), way, from, len);
		record_ring_pass(&c->ring);
	}
	free(frame);
	lb_capture_free(c);
}

static void what_is_not_wanted_is_not_copied(void **state)
{
	struct lb_capture *c = make_capture();
	uint8_t frame[128];
	uint32_t len = (uint32_t)make_ip(frame, THERE, HERE, 6, "12345678901234567890", 20);
	c->ask.host = ip_from_v4(THERE);
	struct net_tap tap = tap_of(c, 0);
	assert_non_null(take(&tap, LB_CAPTURE_TX, frame, len, len));
	c->ask.host = ip_from_v4(IP(10, 0, 0, 9));
	tap = tap_of(c, 0);
	assert_null(take(&tap, LB_CAPTURE_TX, frame, len, len));
	assert_copy(next(c), LB_CAPTURE_TX, frame, len);
	record_ring_pass(&c->ring);
	c->ask = (struct lb_capture_ask){.snaplen = LB_CAPTURE_SNAPLEN, .port = 1};
	tap = tap_of(c, 0);
	assert_null(take(&tap, LB_CAPTURE_TX, frame, len, len));
	assert_null(take(&tap, LB_CAPTURE_RX, frame, len, len));
	assert_null(next(c));
	lb_capture_free(c);
}

// OPS-101
static void a_copy_has_the_tag_that_the_port_takes_out(void **state)
{
	static const uint8_t tag[] = {0x81, 0x00, 0x01, 0x2c};
	struct lb_capture *c = make_capture();
	uint8_t frame[128];
	size_t len = make_ip(frame, THERE, HERE, 6, "12345678901234567890", 20);
	for (uint32_t snaplen = 1; snaplen < 40; snaplen++) {
		c->ask.snaplen = snaplen;
		struct net_tap tap = tap_of(c, 300);
		struct lb_capture_record *r =
			take(&tap, LB_CAPTURE_RX, frame, (uint32_t)len, (uint32_t)len);
		uint8_t whole[128 + sizeof(tag)];
		memcpy(whole, frame, 12);
		memcpy(whole + 12, tag, sizeof(tag));
		memcpy(whole + 16, frame + 12, len - 12);
		assert_int_equal(r->len, len + 4);
		assert_int_equal(r->kept, snaplen);
		assert_memory_equal(r->bytes, whole, snaplen);
	}
	lb_capture_free(c);
}

// OPS-103
static void after_frames_that_were_lost_the_next_one_of_the_port_tells_it(void **state)
{
	static const uint8_t frame[1500];
	struct lb_capture *c = make_capture();
	struct net_tap taps[2];
	uint32_t n[2] = {0}, len;
	for (uint32_t port = 0; port < 2; port++)
		net_tap_init(&taps[port], c, NULL, port, 0);
	while (take(&taps[0], LB_CAPTURE_RX, frame, 1500, 1500))
		n[0]++;
	assert_null(take(&taps[0], LB_CAPTURE_TX, frame, 1500, 1500));
	assert_null(take(&taps[1], LB_CAPTURE_RX, frame, 1500, 1500));
	assert_int_equal(c->n_dropped[0], 2);
	assert_int_equal(c->n_dropped[1], 1);
	lb_capture_turn(c, c->now_ns + TURN_NS);
	for (; record_ring_peek(&c->ring, &len); n[1]++)
		record_ring_pass(&c->ring);
	assert_int_equal(n[1], n[0]);
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t port = 0; port < 2; port++) {
			struct lb_capture_record *r =
				take(&taps[port], LB_CAPTURE_TX, frame, 60, 60);
			assert_int_equal(r->n_lost, i ? 0 : 2 - port);
			assert_int_equal(r->interface, port);
			assert_int_equal(r->way, LB_CAPTURE_TX);
			assert_int_equal(r->cause.layer, LB_CAPTURE_TAKEN);
		}
	lb_capture_free(c);
}

static void a_frame_that_is_not_all_here_has_its_length(void **state)
{
	struct lb_capture *c = make_capture();
	struct net_tap tap = tap_of(c, 0);
	static const uint8_t frame[60];
	struct lb_capture_record *r = take(&tap, LB_CAPTURE_RX, frame, 60, 9000);
	assert_ptr_equal(tap.received, r);
	assert_int_equal(r->len, 9000);
	assert_int_equal(r->kept, 60);
	lb_capture_free(c);
}

// OPS-102
static void why_a_frame_was_dropped_is_told_once(void **state)
{
	struct world *w = *state;
	static uint8_t mark; // outlives net
	uint8_t frame[128];
	size_t len = make_ip(frame, THERE, IP(10, 0, 0, 99), 6, "x", 1);
	assert_int_equal(net_take_drop(w->net), -1);
	net_set_drop_mark(w->net, &mark);
	world_in(w, 0, frame, len);
	assert_int_not_equal(mark, 0);
	int why = net_take_drop(w->net);
	assert_true(why >= 0);
	assert_string_equal(net_counters(w->net).names[why], "ip_not_ours");
	assert_int_equal(net_take_drop(w->net), -1);
	len = make_ip(frame, THERE, HERE, 6, "12345678901234567890", 20);
	world_in(w, 0, frame, len);
	assert_int_equal(w->n_segments, 1);
	assert_int_equal(net_take_drop(w->net), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
RUN_SUITE("net/tap", TEST(a_frame_of_any_length_is_copied_as_it_is),
	TEST(what_is_not_wanted_is_not_copied), TEST(a_copy_has_the_tag_that_the_port_takes_out),
	TEST(after_frames_that_were_lost_the_next_one_of_the_port_tells_it),
	TEST(a_frame_that_is_not_all_here_has_its_length),
	TEST(why_a_frame_was_dropped_is_told_once))
