// SPDX-License-Identifier: Apache-2.0
// Frames with bent bytes: whatever comes in, nothing is read beyond it (a sanitizer's build sees
// that), every bound holds, nothing leaks, and the layer still works afterwards.
#include "dataplane/net/csum.h"
#include "dataplane/net/neigh.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"
#include "tests/unit/net/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEER IP(10, 0, 0, 7)
#define OURS IP(10, 0, 0, 1)
#define ROUNDS 200000

static uint32_t address(struct rand *r)
{
	const uint32_t known[] = {PEER, OURS, IP(10, 0, 0, 9), IP(10, 0, 0, 254), IP(10, 1, 2, 1),
		IP(10, 0, 0, 255), IP(192, 0, 2, 80), 0, UINT32_MAX};
	uint64_t i = rand_below(r, 12);
	return i < 9 ? known[i] : IP(10, 1, 128, 0) + (uint32_t)rand_below(r, 30000);
}

static size_t make_arp(struct rand *r, uint8_t *f)
{
	const uint8_t head[] = {8, 6, 0, 1, 8, 0, 6, 4, 0};
	memset(f, 0, 60);
	memcpy(f, rand_below(r, 2) ? broadcast_mac : world_mac[0], 6);
	memcpy(f + 6, peer_mac, 6);
	memcpy(f + 12, head, sizeof(head));
	f[21] = (uint8_t)(1 + rand_below(r, 2));
	memcpy(f + 22, peer_mac, 6);
	f[27] = (uint8_t)rand_below(r, 4);
	store32(f + 28, address(r));
	store32(f + 38, address(r));
	return 60;
}

static size_t make_icmp(struct rand *r, uint8_t *f)
{
	uint8_t message[64] = {0};
	size_t len = rand_below(r, sizeof(message));
	message[0] = rand_below(r, 2) ? 8 : 3;
	message[1] = (uint8_t)rand_below(r, 5);
	message[8] = 0x45;
	message[11] = 60;
	message[17] = 6;
	store32(message + 20, address(r));
	store32(message + 24, address(r));
	if (len >= 4) {
		uint16_t sum = csum(message, len);
		memcpy(message + 2, &sum, 2);
	}
	uint32_t src = address(r);
	return make_ip(f, src, address(r), 1, message, len);
}

static size_t make_frame(struct rand *r, uint8_t *f)
{
	static const uint8_t segment[40] = {3, 0xe8};
	size_t len;
	switch (rand_below(r, 3)) {
	case 0:
		len = make_arp(r, f);
		break;
	case 1:
		len = make_icmp(r, f);
		break;
	default:;
		uint32_t src = address(r);
		uint8_t protocol = rand_below(r, 4) ? 6 : 17;
		size_t payload = rand_below(r, 41);
		len = make_ip(f, src, address(r), protocol, segment, payload);
	}
	for (uint64_t bends = rand_below(r, 3); bends > 0; bends--)
		f[rand_below(r, len)] = (uint8_t)rand_u64(r);
	if (rand_below(r, 4) == 0 && load16(f + 12) == 0x0800 && (f[14] & 0xf) >= 5 && len >= 74)
		fix_ip_checksum(f);
	return rand_below(r, 8) == 0 ? rand_below(r, len + 1) : len;
}

static void random_frames_break_nothing(void **state)
{
	struct world *w = *state;
	const char *given = getenv("SHUNT_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : 20240607;
	print_message("seed %llu\n", (unsigned long long)seed);
	struct rand r;
	rand_init(&r, seed);
	for (int i = 0; i < ROUNDS; i++) {
		uint8_t f[256];
		size_t len = make_frame(&r, f);
		world_in(w, (uint32_t)rand_below(&r, 2), f, len);
		if (rand_below(&r, 8) == 0)
			world_send(w, OURS, address(&r), "x");
		if (rand_below(&r, 50) == 0)
			world_advance(w, rand_below(&r, 3 * NS_PER_SECOND));
		w->ports[0].starved = rand_below(&r, 10) == 0;
		world_forget(w);
	}
	assert_int_equal(world_count(w, "rx_frames"), ROUNDS);
	w->ports[0].starved = false;
	for (int i = 0; i < 10; i++) // all questions have been given up
		world_advance(w, NS_PER_SECOND);
	world_forget(w);
	assert_true(world_send(w, OURS, PEER, "x"));
	world_resolve(w, 0, PEER, peer_mac);
	assert_true(w->n_sent >= 1); // it may have been known
	assert_int_equal(
		load32(w->sent[0].len == 42 ? w->sent[1].bytes + 30 : w->sent[0].bytes + 30), PEER);
	// Nothing leaked: as many frames can be held as at the beginning.
	uint32_t n = 0;
	for (uint32_t ip = IP(10, 1, 4, 1); ip < IP(10, 1, 4, 1) + 100; ip++)
		for (int i = 0; i < NEIGH_MAX_HELD; i++) {
			n += world_send(w, OURS, ip, "x");
			world_forget(w);
		}
	assert_int_equal(n, NEIGH_MAX_HELD_ALL);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
RUN_SUITE("net/random", CASE(random_frames_break_nothing))
