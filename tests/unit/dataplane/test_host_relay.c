// SPDX-License-Identifier: Apache-2.0
// A worker's part of three processes that follow one another; no device is opened.
#include "dataplane/host_impl.h"
#include "dataplane/port_impl.h"
#include "tests/support/check.h"

#include <string.h>

#define FRAME 60

static const int same[NET_MAX_PORTS] = {0, -1, -1, -1, -1, -1, -1, -1};
static const struct relay_port there = {"net_af_xdp,iface=a", {2}, 1500, 0};

// Between ours and another process's, which is on that side.
static struct relay_end *join(struct relays *ours, enum relay_side side, struct relays *its)
{
	struct relay_memory a, b;
	struct lb_err err = {""};
	struct relay_end *end = relays_end(its, 0);
	assert_int_equal(relay_memory_make(&a, &there, 1, 1, 1, &err), 0);
	assert_int_equal(relay_memory_map(&b, a.fd, &err), 0);
	assert_int_equal(relays_set(ours, side, &a, same), 0);
	assert_int_equal(relays_set(its, side == RELAY_TO_OLDER, &b, same), 0);
	relay_end_follow(end);
	return end;
}

static void fl_125_no_frame_is_lost_when_a_queue_goes_far_that_serves_an_older_process(void **state)
{
	static struct port_queue q = {.far = RELAY_TO_NEWER, .yields = 2};
	static struct host h = {.n_ports = 1, .queues = {&q}};
	struct relays *ours = relays_new(1), *older = relays_new(1), *newer = relays_new(1);
	uint8_t frame[FRAME] = {0};
	enum relay_way way;
	(void)join(ours, RELAY_TO_OLDER, older);
	struct relay_end *end = join(ours, RELAY_TO_NEWER, newer);
	h.relay = relays_end(ours, 0);
	relay_end_follow(h.relay);
	port_queue_set_relay(&q, h.relay, 0);
	assert_true(relay_end_give(end, RELAY_TO_OLDER, 0, RELAY_RECEIVED, false, frame, FRAME));
	assert_false(host_relay_send(&h, 0));
	assert_int_equal(port_queue_far(&q), RELAY_TO_NEWER);
	assert_int_equal(
		relay_end_take(h.relay, RELAY_TO_NEWER, 0, false, frame, FRAME, &way), FRAME);
	relays_free(ours);
	relays_free(older);
	relays_free(newer);
}

RUN_SUITE("dataplane/host_relay",
	cmocka_unit_test(
		fl_125_no_frame_is_lost_when_a_queue_goes_far_that_serves_an_older_process))
