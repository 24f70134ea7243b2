// SPDX-License-Identifier: Apache-2.0
// Two stacks over a bad network in virtual time: delay, jitter, loss, packets that others overtake,
// pauses of the whole path, duplication and corruption, random writers, readers that stall,
// half-closes. A byte that is not what the other side said, a connection that does not end and
// memory that does not come back end the program, which says when and in which seed.
// Thread: the only one.
#pragma once

#include "dataplane/tcp/tcp_internal.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "tests/sim/tcp/twin.h"

#define WORLD_MAX_CONNS 12

struct packet;
struct world;

// Of a stack at the network.
struct port {
	struct world *world;
	unsigned side;
};

// One direction's promise: byte i of (connection, side) is known to both.
struct end {
	struct world *world;
	struct tcp_conn *conn; // NULL = closed or not open yet
	unsigned side, number;
	uint64_t to_send, sent, received;
	bool established, eof, shut, closed, early_shut;
	// The listener heard of its SYN, but for too long nothing of what followed (TCP-28): a RST
	// said so to the client.
	bool unheard;
	enum tcp_close_reason reason;
	uint64_t closed_ns;
	struct twheel_timer timer; // writes, resumes
};

// The caller sets what the network and the applications shall do, and n_conns, in a zeroed one.
struct world {
	struct rand rand;
	uint64_t seed, now, n_order;
	struct twheel *wheel[2];
	struct pool chunks[2];
	struct tcp_stack *stack[2];
	size_t n_under_way;
	struct packet *open; // reserved by a stack, not emitted yet
	struct port ports[2];
	struct end ends[2][WORLD_MAX_CONNS];
	unsigned n_conns;
	// The network: probabilities in 1/1000.
	uint64_t delay_ns, jitter_ns;
	unsigned loss, dup, corrupt, no_buffer, late;
	unsigned mark; // of what may be marked
	bool ecn; // both ends know it
	uint64_t late_ns; // at most, beside the others
	uint64_t pause_every_ns, pause_ns; // 0 = never; what is sent meanwhile arrives behind it
	// Of what goes to side 1: the time that a byte takes (0 = none), and the packets that wait.
	uint64_t byte_ns;
	unsigned queue;
	uint64_t free_at_ns; // the link, of what it has taken
	uint64_t gather_ns; // what comes back arrives at multiples of this
	unsigned strip; // bits: kinds of options that a middlebox takes out of SYNs
	uint16_t clamp; // the MSS that it puts there; 0 = it doesn't
	uint16_t mtu, path_mtu; // of the links at both ends, and the least between
	unsigned untold; // how likely nobody says that a packet was too big for that
	bool greedy; // writers fill the send queue whenever they can
	bool chatty; // they mostly write less than a segment, with pauses between
	uint32_t max_stall_ms;
	unsigned stall; // how likely, as above, at each piece
	uint64_t n_packets, n_corrupted;
	const struct tcp_cc_ops *congestion; // NULL = as it is by default
	bool slow_path;
	struct twin *twin; // whose turns are compared; NULL = none
};

// How much there may be of what.
struct world_sizes {
	uint32_t window, window_max, n_chunks;
	uint64_t max_bytes; // that an end sends
};

_Noreturn void world_fail(const struct world *, const char *what);
bool world_chance(struct world *, unsigned per_mille);
// Client ports are 1000 + number.
static inline unsigned world_conn_number(const struct tcp_flow *flow)
{
	return (flow->local_port == 80 ? flow->remote_port : flow->local_port) - 1000u;
}

// Makes both stacks, and connections with random numbers of bytes to send.
void world_begin(struct world *, const struct world_sizes *, bool is_v6);
void world_turn(struct world *); // what is due at w->now
uint64_t world_next_ns(const struct world *); // when something is; UINT64_MAX = never
bool world_all_closed(const struct world *);
// Turn after turn until all are closed, which must be so before end_ns, and as it must be.
void world_run(struct world *, uint64_t end_ns);
// TIME_WAIT ends, what is still under way arrives, and all memory must have come back.
void world_end(struct world *);
