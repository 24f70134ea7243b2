// SPDX-License-Identifier: Apache-2.0
// Random worlds: two stacks, and all that a network and its users may do (world.h), by seed. Every
// byte must arrive once and in order, every connection must end, and all memory must come back.
// Each odd seed runs twice, with and without the fast path of fast_path.c, which must change no
// segment and no state. At the end stands what befell the seeds.
// Usage: tcp_sim [seed [count]].
#include "tests/sim/tcp/world.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_SEEDS 300
#define MANY 1000 // seeds, of which not each is named
// Every run must be over by then: tiny segments on a bad path take their hour, what stands still
// never ends.
#define END_NS (36000 * NS_PER_SECOND)

// What befell all seeds together, those with SACK and those without: so one sees what they hold.
static struct tally {
	uint64_t n_seeds, n_conns, n_packets;
	uint64_t counters[TCP_N_COUNTERS], n_with[TCP_N_COUNTERS]; // sums, and seeds that had any
} tallies[2];

static void tally_add(const struct world *w)
{
	struct tally *t = &tallies[w->strip >> 4 & 1];
	t->n_seeds++;
	t->n_conns += w->n_conns;
	t->n_packets += w->n_packets;
	for (unsigned i = 0; i < TCP_N_COUNTERS; i++) {
		uint64_t n = w->stack[0]->counters[i] + w->stack[1]->counters[i];
		t->counters[i] += n;
		t->n_with[i] += n > 0;
	}
}

static void tally_print(void)
{
	static const char *const names[] = {TCP_COUNTERS(COUNTER_NAME)};
	const struct tally *t = tallies;
	printf("%-22s %14s %14s\n", "", "with SACK", "without");
	printf("%-22s %14" PRIu64 " %14" PRIu64 "\n", "seeds", t[0].n_seeds, t[1].n_seeds);
	printf("%-22s %14" PRIu64 " %14" PRIu64 "\n", "connections", t[0].n_conns, t[1].n_conns);
	printf("%-22s %14" PRIu64 " %14" PRIu64 "\n", "packets", t[0].n_packets, t[1].n_packets);
	for (unsigned i = 0; i < TCP_N_COUNTERS; i++)
		printf("%-22s %14" PRIu64 " %14" PRIu64 " in %" PRIu64 " and %" PRIu64 " seeds\n",
			names[i], t[0].counters[i], t[1].counters[i], t[0].n_with[i],
			t[1].n_with[i]);
}

// One seed of sixteen has few connections that say much, over paths good enough for windows that
// grow (docs/decisions/windows.md), and a router whose queue they may fill.
static struct world_sizes go_far(struct world *w)
{
	w->n_conns = 1 + (unsigned)rand_below(&w->rand, 3);
	w->loss = world_chance(w, 500) ? 0 : (unsigned)rand_below(&w->rand, 4);
	w->corrupt = world_chance(w, 700) ? 0 : (unsigned)rand_below(&w->rand, 4);
	w->mark = world_chance(w, 500) ? 0 : (unsigned)rand_below(&w->rand, 4);
	w->jitter_ns = world_chance(w, 500) ? 0 : rand_below(&w->rand, 3) * NS_PER_MS;
	w->late = world_chance(w, 500) ? 0 : w->late;
	w->no_buffer = world_chance(w, 500) ? 0 : w->no_buffer;
	w->stall = 2;
	w->clamp = 0;
	w->chatty = false;
	w->greedy = world_chance(w, 700);
	w->byte_ns = world_chance(w, 500) ? 0 : 8 + rand_below(&w->rand, 72); // 100 to 1000 Mbit/s
	w->queue = 10 + (unsigned)rand_below(&w->rand, 300);
	// A draw a statement: the order within an initializer is the compiler's.
	uint32_t window = UINT32_C(65536) << rand_below(&w->rand, 3);
	uint32_t n_chunks = world_chance(w, 200) ? 1024 : 8192;
	return (struct world_sizes){window, 4 << 20, n_chunks, 4000000};
}

static void one_seed(uint64_t seed, struct twin *twin, bool second)
{
	static struct world world;
	struct world *w = &world;
	memset(w, 0, sizeof(*w));
	rand_init(&w->rand, seed);
	w->seed = seed;
	w->slow_path = second;
	w->twin = twin;
	if (twin)
		twin_begin(twin, second);
	w->congestion = seed & 2 ? &tcp_cc_reno : &tcp_cc_cubic;
	static const uint16_t mtus[] = {1500, 1500, 576, 1280};
	static const uint32_t windows[] = {4096, 20000, 65535, 262144};
	w->delay_ns = rand_below(&w->rand, 40) * NS_PER_MS / 2 + 1;
	w->jitter_ns = world_chance(w, 500) ? 0 : rand_below(&w->rand, 20) * NS_PER_MS;
	w->loss = world_chance(w, 300) ? 0 : (unsigned)rand_below(&w->rand, 80);
	w->late = world_chance(w, 500) ? 0 : 1 + (unsigned)rand_below(&w->rand, 100);
	w->late_ns = 1 + rand_below(&w->rand, 40 * NS_PER_MS);
	w->pause_every_ns =
		world_chance(w, 800) ? 0 : NS_PER_SECOND + rand_below(&w->rand, 3 * NS_PER_SECOND);
	w->pause_ns = 50 * NS_PER_MS + rand_below(&w->rand, 600 * NS_PER_MS);
	w->dup = world_chance(w, 500) ? 0 : (unsigned)rand_below(&w->rand, 50);
	w->corrupt = world_chance(w, 500) ? 0 : (unsigned)rand_below(&w->rand, 30);
	w->no_buffer = world_chance(w, 700) ? 0 : (unsigned)rand_below(&w->rand, 100);
	w->ecn = world_chance(w, 500);
	w->mark = (unsigned)rand_below(&w->rand, 100);
	w->max_stall_ms = world_chance(w, 300) ? 0 : 1 + (uint32_t)rand_below(&w->rand, 300);
	w->stall = 100;
	w->mtu = mtus[rand_below(&w->rand, 4)];
	static const unsigned kinds[] = {2, 3, 4, 8}; // MSS, window scale, SACK, timestamps
	for (unsigned i = 0; i < 4; i++)
		w->strip |= world_chance(w, 250) ? 1u << kinds[i] : 0;
	w->n_conns = 1 + (unsigned)rand_below(&w->rand, WORLD_MAX_CONNS);
	uint32_t window = windows[rand_below(&w->rand, 4)];
	uint32_t window_max = window * (uint32_t)rand_below(&w->rand, 16);
	// Sometimes too few chunks for all, so that data is refused now and then.
	uint32_t n_chunks = world_chance(w, 200) ? 16 * w->n_conns : 4096;
	w->chatty = world_chance(w, 300);
	w->clamp = world_chance(w, 900) ? 0 : (uint16_t)(40 + rand_below(&w->rand, 600));
	static const uint16_t path_mtus[] = {1280, 1400, 600, 552};
	bool is_v6 = world_chance(w, 300);
	w->path_mtu =
		world_chance(w, 700) ? UINT16_MAX : path_mtus[rand_below(&w->rand, is_v6 ? 2 : 4)];
	// A black hole (RFC 2923 2.1), of what is longer than the first guess (TCP-168).
	w->untold = w->path_mtu > 1064 && seed % 16 / 4 == 2 ? 1000 : 300;
	struct world_sizes z = {window, window_max, n_chunks, w->chatty ? 100000 : 300000};
	if (seed % 64 / 4 == 15)
		z = go_far(w);
	world_begin(w, &z, is_v6);
	world_run(w, w->now + END_NS);
	if (!second)
		tally_add(w);
	world_end(w);
}

int main(int argc, char **argv)
{
	struct twin twin = {0};
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t n_seeds = argc > 2 ? strtoull(argv[2], NULL, 0) : argc > 1 ? 1 : N_SEEDS;
	// Of a stack's pools most is never used: libc is to map it anew, not to clear it.
	mallopt(M_MMAP_THRESHOLD, 1 << 17);
	for (uint64_t seed = first; seed < first + n_seeds; seed++) {
		if (n_seeds < MANY || seed % MANY == 0) {
			printf("seed %" PRIu64 "\n", seed);
			fflush(stdout);
		}
		bool twice = seed % 2 || n_seeds == 1;
		one_seed(seed, twice ? &twin : NULL, false);
		if (twice)
			one_seed(seed, &twin, true);
	}
	twin_fini(&twin);
	tally_print();
	return 0;
}
