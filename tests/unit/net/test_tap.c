// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/tap.h"
#include "tests/support/check.h"
#include "tests/unit/net/world.h"

#include <string.h>

#define HERE IP(10, 0, 0, 1)
#define THERE IP(10, 0, 0, 7)

static struct net_tap tap_of(struct world *w, struct lb_capture *to, uint16_t vlan)
{
	return (struct net_tap){.to = to, .port = 0, .vlan = vlan, .device = world_device(w, 0)};
}

static struct lb_capture *make_capture(void)
{
	struct lb_capture *c = lb_capture_new(1 << 16);
	c->ask = (struct lb_capture_ask){.snaplen = LB_CAPTURE_SNAPLEN};
	return c;
}

static const struct lb_capture_record *next(struct lb_capture *c)
{
	uint32_t len;
	lb_capture_publish(c);
	return record_ring_peek(&c->ring, &len);
}

// OPS-100
static void what_is_sent_is_copied_and_sent(void **state)
{
	struct world *w = *state;
	struct lb_capture *c = make_capture();
	struct net_tap tap = tap_of(w, c, 0);
	struct net_device device = net_tap_device(&tap);
	assert_true(world_send(w, HERE, THERE, "asks"));
	world_resolve(w, 0, THERE, peer_mac);
	net_set_device(w->net, 0, &device);
	world_forget(w);
	assert_true(world_send(w, HERE, THERE, "hello"));
	assert_int_equal(w->n_sent, 1);
	const struct lb_capture_record *r = next(c);
	assert_non_null(r);
	assert_int_equal(r->way, LB_CAPTURE_TX);
	assert_int_equal(r->len, w->sent[0].len);
	assert_int_equal(r->kept, w->sent[0].len);
	assert_memory_equal(r->bytes, w->sent[0].bytes, r->kept);
	record_ring_pass(&c->ring);
	device = tap.device;
	net_set_device(w->net, 0, &device);
	assert_true(world_send(w, HERE, THERE, "later"));
	assert_int_equal(w->n_sent, 2);
	assert_null(next(c));
	lb_capture_free(c);
}

static void what_is_not_wanted_is_sent_alone(void **state)
{
	struct world *w = *state;
	struct lb_capture *c = make_capture();
	struct net_tap tap = tap_of(w, c, 0);
	struct net_device device = net_tap_device(&tap);
	c->ask.port = 1;
	assert_true(world_send(w, HERE, THERE, "asks"));
	world_resolve(w, 0, THERE, peer_mac);
	net_set_device(w->net, 0, &device);
	world_forget(w);
	assert_true(world_send(w, HERE, THERE, "hello"));
	assert_int_equal(w->n_sent, 1);
	assert_null(next(c));
	assert_int_equal(c->n_frames[0], 0);
	lb_capture_free(c);
}

// OPS-101
static void a_copy_has_the_tag_that_the_port_takes_out(void **state)
{
	static const uint8_t tag[] = {0x81, 0x00, 0x01, 0x2c};
	struct world *w = *state;
	struct lb_capture *c = make_capture();
	struct net_tap tap = tap_of(w, c, 300);
	uint8_t frame[128];
	size_t len = make_ip(frame, THERE, HERE, 6, "12345678901234567890", 20);
	for (uint32_t snaplen = 1; snaplen < 40; snaplen++) {
		c->ask.snaplen = snaplen;
		struct lb_capture_record *r =
			net_tap_take(&tap, LB_CAPTURE_RX, frame, (uint32_t)len, (uint32_t)len);
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

static void a_frame_that_is_not_all_here_has_its_length(void **state)
{
	struct world *w = *state;
	struct lb_capture *c = make_capture();
	struct net_tap tap = tap_of(w, c, 0);
	static const uint8_t frame[60];
	struct lb_capture_record *r = net_tap_take(&tap, LB_CAPTURE_RX, frame, 60, 9000);
	assert_int_equal(r->len, 9000);
	assert_int_equal(r->kept, 60);
	lb_capture_free(c);
}

// OPS-102
static void why_a_frame_was_dropped_is_told_once(void **state)
{
	struct world *w = *state;
	uint8_t frame[128];
	size_t len = make_ip(frame, THERE, IP(10, 0, 0, 99), 6, "x", 1);
	assert_int_equal(net_take_drop(w->net), -1);
	world_in(w, 0, frame, len);
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
RUN_SUITE("net/tap", TEST(what_is_sent_is_copied_and_sent), TEST(what_is_not_wanted_is_sent_alone),
	TEST(a_copy_has_the_tag_that_the_port_takes_out),
	TEST(a_frame_that_is_not_all_here_has_its_length),
	TEST(why_a_frame_was_dropped_is_told_once))
