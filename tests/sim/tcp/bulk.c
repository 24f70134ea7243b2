// SPDX-License-Identifier: Apache-2.0
// How long one connection takes for many bytes over a world's network, at most.
// Usage: tcp_bulk.
#include "tests/sim/tcp/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bulk {
	uint64_t ns;
	uint32_t max_cwnd;
	uint64_t n_resent, n_timeouts, n_recoveries, n_undone;
};

// What the network of a bulk transfer does.
struct weather {
	unsigned loss, late, strip;
	uint64_t late_ns, pause_every_ns, pause_ns;
	unsigned mbit, queue, gather_ms; // 0 = no bottleneck; else ACKs come in bunches
};

// One connection, one direction, 10 ms each way.
static struct bulk bulk(
	uint64_t bytes, uint32_t window, uint32_t window_max, struct weather weather)
{
	static struct world world;
	struct world *w = &world;
	struct bulk result = {0};
	memset(w, 0, sizeof(*w));
	rand_init(&w->rand, 1);
	w->loss = weather.loss;
	w->strip = weather.strip;
	w->late = weather.late;
	w->late_ns = weather.late_ns;
	w->pause_every_ns = weather.pause_every_ns;
	w->pause_ns = weather.pause_ns;
	w->byte_ns = weather.mbit ? 8000 / weather.mbit : 0;
	w->queue = weather.queue;
	w->gather_ns = weather.gather_ms * NS_PER_MS;
	w->delay_ns = 10 * NS_PER_MS;
	w->mtu = 1500;
	w->path_mtu = UINT16_MAX;
	w->greedy = true;
	w->n_conns = 1;
	world_begin(w, &(struct world_sizes){window, window_max, 1 << 15, 0}, false);
	w->ends[0][0].to_send = bytes;
	w->ends[0][0].early_shut = true;
	uint64_t start = w->now;
	for (;;) {
		world_turn(w);
		struct tcp_conn *c = w->ends[0][0].conn;
		if (c && c->cc.cwnd > result.max_cwnd)
			result.max_cwnd = c->cc.cwnd;
		if (world_all_closed(w))
			break;
		w->now = world_next_ns(w) > w->now ? world_next_ns(w) : w->now;
		if (w->now > start + 60 * NS_PER_SECOND)
			world_fail(w, "too slow");
	}
	result.ns = w->now - start;
	const uint64_t *n = w->stack[0]->counters;
	result.n_resent = n[TCP_retransmits];
	result.n_timeouts = n[TCP_retransmission_timeouts];
	result.n_recoveries = n[TCP_fast_recoveries];
	result.n_undone = n[TCP_recoveries_undone] + n[TCP_timeouts_undone];
	world_end(w);
	printf("bulk: %" PRIu64 " bytes, %u/1000 lost, %u/1000 late, in %" PRIu64
	       " ms; cwnd up to %u, %" PRIu64 " segments sent again, %" PRIu64
	       " recoveries, %" PRIu64 " timeouts, %" PRIu64 " undone\n",
		bytes, weather.loss, weather.late, result.ns / NS_PER_MS, result.max_cwnd,
		result.n_resent, result.n_recoveries, result.n_timeouts, result.n_undone);
	return result;
}

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "tcp_bulk: %s\n", what);
	exit(1);
}

int main(void)
{
	// 20 ms a window: 381 ms, and a dozen round trips to open cwnd up to it.
	struct bulk b = bulk(20000000, 1 << 20, 0, (struct weather){0});
	if (b.ns > 800 * NS_PER_MS || b.max_cwnd < 1 << 19)
		fail("the window did not open");
	if (b.n_resent)
		fail("retransmissions without loss");
	// The same of windows that grow: with those of the start it would be 6 s.
	b = bulk(20000000, 64 << 10, 4 << 20, (struct weather){0});
	if (b.ns > 800 * NS_PER_MS || b.n_resent)
		fail("the windows did not grow");
	// Reno at 1% loss: about 1.22 / sqrt(p) segments a round trip, 0.9 MB/s; with most losses
	// repaired without a timeout.
	b = bulk(5000000, 1 << 20, 0, (struct weather){.loss = 10});
	if (b.ns > 10 * NS_PER_SECOND || b.n_timeouts > 2)
		fail("losses cost too much");
	// NewReno alone, which must wait for the timer now and then.
	b = bulk(5000000, 1 << 20, 0, (struct weather){.loss = 10, .strip = 1 << 4 | 1 << 8});
	if (b.ns > 20 * NS_PER_SECOND || b.n_timeouts > 15)
		fail("losses cost too much without SACK");
	// Nothing is lost: what is overtaken is taken for lost at first, and then waited for.
	b = bulk(20000000, 1 << 20, 0, (struct weather){.late = 50, .late_ns = 4 * NS_PER_MS});
	if (b.ns > 1200 * NS_PER_MS || b.n_timeouts || b.n_recoveries > 5)
		fail("reordering costs too much");
	// Every timeout is too early.
	b = bulk(20000000, 1 << 20, 0,
		(struct weather){.pause_every_ns = NS_PER_SECOND, .pause_ns = 300 * NS_PER_MS});
	if (b.ns > 2 * NS_PER_SECOND || b.n_resent > 50)
		fail("delay costs too much");
	// A short queue, and ACKs that each let a burst out if nothing paces it: 28 s then.
	b = bulk(16 << 20, 1 << 20, 0, (struct weather){.mbit = 50, .queue = 10, .gather_ms = 4});
	if (b.ns > 8 * NS_PER_SECOND)
		fail("bursts overflow a short queue");
	return 0;
}
