// SPDX-License-Identifier: Apache-2.0
// What our TCP makes of a bad network, in virtual time: bodies from one stack to another through
// the lines of a faultlink, which is what tools/badnet has between shuntd and the kernel.
// Usage: tcp_goodput: each scenario brings what it must
//        tcp_goodput RTT_US BYTES CONNECTIONS SEED BOTH [DATA [ACKS [WINDOW]]]: one network, in a
//        faultlink's words; WINDOW bytes of HTTP/2 on each connection
#include "tests/sim/tcp/bed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define UPDATE 13 // bytes of a WINDOW_UPDATE

struct body {
	uint64_t left; // to send
	uint64_t received;
	// With a window of HTTP/2: what the receiver allows beyond what was sent, the part of a
	// WINDOW_UPDATE that has come, and what the receiver has not given back.
	uint64_t room, update, owed;
};

static struct body bodies[BED_MAX_CONNS];
static uint64_t n_bytes; // of each
static uint64_t window; // of HTTP/2, of which quarters are given back; 0 = none
static unsigned n_done;

static void write_all(struct bed_end *e)
{
	struct body *b = &bodies[e->number];
	uint64_t most = window && b->room < b->left ? b->room : b->left;
	uint64_t sent = bed_send(e, most);
	b->left -= sent;
	b->room -= window ? sent : 0;
}

static void on_send_room(struct tcp_conn *c, void *user)
{
	write_all(user);
}

static void on_nothing(struct tcp_conn *c, void *user)
{
}

static size_t on_update(struct tcp_conn *c, void *user, const uint8_t *data, size_t len)
{
	const struct bed_end *e = user;
	struct body *b = &bodies[e->number];
	b->update += len;
	b->room += b->update / UPDATE * (window / 4);
	b->update %= UPDATE;
	write_all(user);
	return len;
}

static size_t on_data(struct tcp_conn *c, void *user, const uint8_t *data, size_t len)
{
	struct bed_end *e = user;
	struct body *b = &bodies[e->number];
	b->received += len;
	b->owed += len;
	n_done += b->received == n_bytes;
	for (; window && b->owed >= window / 4; b->owed -= window / 4)
		CHECK(bed_send(e, UPDATE) == UPDATE);
	return len;
}

static const struct tcp_conn_ops sender = {
	bed_on_established, on_update, on_send_room, bed_on_eof, bed_on_closed};
static const struct tcp_conn_ops receiver = {
	bed_on_established, on_data, on_nothing, bed_on_eof, bed_on_closed};

// Mbit/s of all bodies, from the first byte of the first to the last byte of the last; total: the
// bytes of all together.
static double goodput(const struct bed_network *n, uint64_t total, uint64_t seed)
{
	static struct bed bed;
	n_bytes = total / n->n_conns;
	n_done = 0;
	for (unsigned i = 0; i < n->n_conns; i++)
		bodies[i] = (struct body){.left = n_bytes, .room = window};
	bed_open(&bed, n, seed, (const struct tcp_conn_ops *const[]){&sender, &receiver});
	for (unsigned i = 0; i < n->n_conns; i++)
		write_all(&bed.sides[0].ends[i]);
	while (n_done < n->n_conns)
		bed_step(&bed);
	uint64_t ns = bed.now - bed.line_ns;
	bed_close(&bed);
	return (double)(n_bytes * n->n_conns) * 8000 / (double)ns;
}

// The harmonic mean over the seeds, which a single collapse shows in, is at least `least`. It was a
// fifth more or so when that was written down.
struct scenario {
	const char *name;
	uint64_t bytes; // of all connections together
	struct bed_network network;
	unsigned n_seeds;
	double least;
	uint64_t window; // of HTTP/2
};

#define MIB (1 << 20)

static const struct scenario scenarios[] = {
	{"clean", 16 * MIB, {20000, 1}, 1, 130},
	{"clean", 16 * MIB, {20000, 8}, 1, 140},
	{"clean", 16 * MIB, {100000, 1}, 1, 50},
	{"clean", 16 * MIB, {100000, 8}, 1, 70},
	{"reordered", 4 * MIB, {20000, 1, "reorder=5%:4ms"}, 20, 85},
	{"reordered", 4 * MIB, {20000, 8, "reorder=5%:4ms"}, 20, 105},
	{"reordered seldom", 4 * MIB, {20000, 1, "reorder=1%:20ms"}, 20, 70},
	{"reordered seldom", 4 * MIB, {20000, 8, "reorder=1%:20ms"}, 20, 105},
	{"doubled", 4 * MIB, {20000, 1, "duplicate=5%"}, 5, 80},
	{"jitter", 4 * MIB, {20000, 1, "jitter=10ms"}, 10, 60},
	{"lost, near", 16 * MIB, {200, 1, "loss=0.5%"}, 10, 150},
	{"lost, near", 16 * MIB, {200, 8, "loss=0.5%"}, 10, 150},
	{"lost, near", 16 * MIB, {200, 1, "loss=1%"}, 10, 150},
	{"lost, near", 16 * MIB, {200, 8, "loss=1%"}, 10, 150},
	// Two turns of 0.5 ms are a round trip: 12.2 segments in each, as below.
	{"lost, slow turns", 16 * MIB, {200, 1, "loss=1%", .turn_us = 500}, 10, 0.9 * 141},
	{"lost, slow turns", 16 * MIB, {200, 8, "loss=1%", .turn_us = 500}, 10, 150},
	{"lost", 4 * MIB, {20000, 1, "loss=1%"}, 20, 9},
	{"lost", 4 * MIB, {20000, 8, "loss=1%"}, 20, 38},
	// By RFC 9438 5.1 the window is sqrt(0.53 * 1.7 / (2 * 0.3 * 0.01)) = 12.2 segments: 7.1
	// Mbit/s each. Slow start is short beside such bodies.
	{"lost, long", 16 * MIB, {20000, 4, "loss=1%"}, 5, 0.9 * 4 * 7.1},
	{"lost, long", 32 * MIB, {20000, 8, "loss=1%"}, 5, 0.9 * 8 * 7.1},
	{"short queue", 8 * MIB, {20000, 1, "rate=50mbit queue=20"}, 1, 36},
	{"short queue", 8 * MIB, {20000, 8, "rate=50mbit queue=20"}, 1, 36},
	{"long queue", 4 * MIB, {20000, 1, "rate=20mbit queue=1000"}, 1, 15},
	{"paused", 8 * MIB, {100000, 1, "rate=20mbit pause=2s:400ms"}, 1, 10},
	// WINDOW_UPDATEs are lone segments of 13 bytes.
	{"window", 4 * MIB, {200, 1, "loss=1%"}, 10, 65, 4096},
	{"window", 4 * MIB, {200, 1, "loss=1%"}, 10, 130, 65536},
	{"window", 4 * MIB, {20000, 1, "loss=1%"}, 10, 7, 262144},
	{"ACKs lost", 4 * MIB, {20000, 1, NULL, NULL, "loss=5%"}, 5, 80},
};

static bool is_met(const struct scenario *s)
{
	const struct bed_network *n = &s->network;
	double times = 0;
	window = s->window;
	for (uint64_t seed = 1; seed <= s->n_seeds; seed++)
		times += 1 / goodput(n, s->bytes, seed);
	double mean = s->n_seeds / times;
	printf("%-20s RTT %5.1f ms, %u connections: %6.1f Mbit/s, wanted %.0f\n", s->name,
		(double)n->rtt_us / 1000, n->n_conns, mean, s->least);
	return mean >= s->least;
}

int main(int argc, char **argv)
{
	bool all_met = true;
	if (argc == 1) {
		for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
			all_met &= is_met(&scenarios[i]);
		return !all_met;
	}
	if (argc < 6 || argc > 9) {
		fputs("usage: tcp_goodput [RTT_US BYTES CONNECTIONS SEED BOTH [DATA [ACKS "
		      "[WINDOW]]]]\n",
			stderr);
		return 2;
	}
	const struct bed_network n = {
		.rtt_us = strtoull(argv[1], NULL, 0),
		.n_conns = (unsigned)strtoul(argv[3], NULL, 0),
		.both = argv[5],
		.data = argc > 6 ? argv[6] : NULL,
		.acks = argc > 7 ? argv[7] : NULL,
	};
	window = argc > 8 ? strtoull(argv[8], NULL, 0) : 0;
	CHECK(n.n_conns && n.n_conns <= BED_MAX_CONNS);
	printf("%.2f Mbit/s\n",
		goodput(&n, strtoull(argv[2], NULL, 0), strtoull(argv[4], NULL, 0)));
	return 0;
}
