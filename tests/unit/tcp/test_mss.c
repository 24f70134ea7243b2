// SPDX-License-Identifier: Apache-2.0
// The MSS that we announce to who comes by a tunnel.
#include "lb/base/time.h"
#include "tests/unit/tcp/rig.h"

static void assert_sends(size_t len)
{
	rig_write_n(2 * len);
	assert_int_equal(rig_out()->len, len);
	assert_int_equal(rig_out()->len, len);
	NO_OUT();
}

// FL-34
static void who_comes_by_a_tunnel_hears_of_an_mss_with_room_for_its_headers(void **state)
{
	static const struct {
		uint32_t overhead;
		uint16_t mtu, announced, sent;
	} rows[] = {{0, 1500, 1460, 1460}, {20, 1500, 1440, 1460}, {48, 1500, 1412, 1460},
		{40, 600, 536, 560}, {2000, 1500, 536, 1460}, {20, 576, 536, 536}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		rig.mtu = rows[i].mtu;
		rig_restart();
		tcp_stack_set_overhead(rig.stack, rows[i].overhead);
		IN(.flags = SYN, .seq = 0, .opts = PLAIN);
		tcp_stack_set_overhead(rig.stack, 0);
		assert_int_equal(rig_out()->opts.mss, rows[i].announced);
		IN(.flags = ACK, .seq = 1, .ack = 1);
		assert_sends(rows[i].sent);
		assert_int_equal(rig.conn->our_mss, rows[i].announced);
	}
}

// FL-34
static void a_syn_ack_that_comes_again_says_the_same(void **state)
{
	tcp_stack_set_overhead(rig.stack, 20);
	IN(.flags = SYN, .seq = 0, .opts = PLAIN);
	tcp_stack_set_overhead(rig.stack, 0);
	assert_int_equal(rig_out()->opts.mss, 1440);
	rig_after_ms(1500);
	assert_int_equal(rig_out()->opts.mss, 1440);
}

// FL-34
static void a_cookie_says_so_too(void **state)
{
	for (uint16_t port = 1; port <= rig.conf.max_half_open; port++)
		IN(.flags = SYN, .seq = 0, .from = port, .opts = PLAIN);
	rig_skip();
	tcp_stack_set_overhead(rig.stack, 20);
	IN(.flags = SYN, .seq = 0, .opts = PLAIN);
	assert_int_equal(rig_out()->opts.mss, 1440);
	assert_int_equal(rig_count(TCP_cookies_out), 1);
	IN(.flags = ACK, .seq = 1, .ack = 1);
	assert_int_equal(rig_count(TCP_cookies_taken), 1);
	assert_int_equal(rig.conn->our_mss, 1440);
	assert_sends(1460);
}

// FL-34: backends do not answer by the tunnel that a request came by.
static void connections_of_our_own_announce_the_whole(void **state)
{
	tcp_stack_set_overhead(rig.stack, 20);
	rig_begin_connect(NS_PER_SECOND);
	assert_int_equal(rig.conn->our_mss, 1460);
}

RUN_SUITE("tcp/mss", CASE(who_comes_by_a_tunnel_hears_of_an_mss_with_room_for_its_headers),
	CASE(a_syn_ack_that_comes_again_says_the_same), CASE(a_cookie_says_so_too),
	CASE(connections_of_our_own_announce_the_whole))
