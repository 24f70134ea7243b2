// SPDX-License-Identifier: Apache-2.0
// Two runs of a simulated world, one with and one without the fast path of fast_path.c, which must
// send the same segments and have the same states and counters after each turn. The first run
// writes down what the second one must meet.
// Thread: the only one. A lack of memory ends the program.
#pragma once

#include "dataplane/tcp/tcp_internal.h"

#define TWIN_MAX_CONNS 16

// Of one connection at one end.
struct twin_conn {
	struct tcp_conn seen; // as it was after the last turn
	uint64_t digest; // of that; 0 = there was none
	bool touched; // a segment came or went since
};

struct twin_side {
	uint64_t counters[TCP_N_COUNTERS], digest; // likewise
	struct twin_conn conns[TWIN_MAX_CONNS];
};

struct twin {
	bool second;
	uint64_t sent; // the digest of all segments
	uint64_t states; // those of all connections and counters, one over the other
	struct twin_side sides[2];
	size_t n_turns; // of this run
	uint64_t *turns; // of the first run; owned
	size_t n_first, max_turns;
};

// A run begins, in a zeroed twin or after another run.
void twin_begin(struct twin *, bool second);
void twin_fini(struct twin *);

// A connection's segment, as it was sent.
void twin_sent(struct twin *, unsigned side, unsigned conn, uint64_t now_ns, const void *segment,
	size_t len);
// Something arrived for a connection.
static inline void twin_touch(struct twin *t, unsigned side, unsigned conn)
{
	t->sides[side].conns[conn].touched = true;
}

// A turn is over, of which both stacks' counters and each connection (NULL = none) are to be given.
void twin_counters(struct twin *, unsigned side, const uint64_t counters[]);
void twin_state(struct twin *, unsigned side, unsigned conn, const struct tcp_conn *);
// False = the first run's turn of the same number ended otherwise.
[[nodiscard]] bool twin_turn(struct twin *);
