// SPDX-License-Identifier: Apache-2.0
// What a tunnel's packet names another host for, and is of no connection here: it goes on.
#include "dataplane/net/csum.h"
#include "tests/support/check.h"
#include "tests/unit/net/world_tunnel.h"

#include <string.h>

// A packet of GLB's with two hosts to go on to.
static struct packet chained(uint8_t next, uint32_t hop, uint8_t flags)
{
	uint8_t gue[16] = {3, 4, 0, 0, 0, 0, next, 2};
	store32(gue + 8 + 4 * (size_t)(next & 1), hop);
	struct packet inner = make_segment(CLIENT, VIP, flags);
	return in_gue(TIER, gue, sizeof(gue), &inner);
}

// FL-38
static void a_segment_that_nobody_knows_goes_to_the_next_hop(void **state)
{
	struct world *w = *state;
	struct packet p = chained(0, HOP, ACK);
	world_resolve(w, 0, HOP, peer_mac);
	assert_taken(w, &p, CLIENT, VIP); // while there is a connection
	w->knows_none = true;
	struct packet syn = chained(0, HOP, SYN);
	assert_taken(w, &syn, CLIENT, VIP);
	world_packet_in(w, &p); // asks for the neighbor, whom nobody was sent to before
	world_resolve(w, 0, HOP, peer_mac);
	const uint8_t *f = w->sent[w->n_sent - 1].bytes;
	assert_int_equal(w->sent[w->n_sent - 1].len, 14 + p.len);
	assert_int_equal(load32(f + 26), IP(10, 0, 0, 1));
	assert_int_equal(load32(f + 30), HOP);
	assert_int_equal(csum(f + 14, 20), 0);
	p.bytes[20 + 8 + 6]++;
	assert_memory_equal(f + 34, p.bytes + 20, p.len - 20);
	assert_int_equal(world_count(w, "tunnel_relayed"), 1);
	assert_int_equal(w->n_segments, 2);
}

// FL-38
static void hops_that_are_none_leave_the_segment_here(void **state)
{
	struct world *w = *state;
	w->knows_none = true;
	struct packet p = chained(2, HOP, ACK); // none is left
	assert_taken(w, &p, CLIENT, VIP);
	p = chained(1, IP(10, 0, 0, 1), ACK); // it is us
	assert_taken(w, &p, CLIENT, VIP);
	p = chained(0, IP(10, 0, 0, 64), ACK); // no configured one
	assert_taken(w, &p, CLIENT, VIP);
	assert_int_equal(world_count(w, "tunnel_hop_refused"), 2);
	p = chained(0, HOP, ACK);
	p.bytes[20 + 8 + 5] = 1; // another type of private data
	assert_taken(w, &p, CLIENT, VIP);
	p = chained(0, HOP, ACK);
	p.bytes[20 + 8 + 7] = 1; // and not as long as it says
	assert_taken(w, &p, CLIENT, VIP);
	world_tunnels.list[1].n_hops = 0;
	p = chained(0, HOP, ACK);
	assert_taken(w, &p, CLIENT, VIP);
	assert_int_equal(world_count(w, "tunnel_relayed"), 0);
	assert_int_equal(w->n_sent, 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, world_tunnel_setup, world_teardown)

RUN_SUITE("net/relay", CASE(a_segment_that_nobody_knows_goes_to_the_next_hop),
	CASE(hops_that_are_none_leave_the_segment_here))
