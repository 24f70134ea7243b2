// SPDX-License-Identifier: Apache-2.0
// Two stacks at the ends of a faultlink's two lines, in virtual time: what goodput.c and calls.c
// run on. What becomes of the n-th packet, and so each figure, is the same in every run on every
// machine.
// Thread: the only one. What goes wrong ends the program.
#pragma once

#include "dataplane/tcp/tcp_internal.h"
#include "tests/support/faultlink/frame.h"
#include "tests/support/faultlink/line.h"

#define BED_MAX_CONNS 16

struct bed;
struct bed_side;

// In a faultlink's words.
struct bed_network {
	uint64_t rtt_us;
	unsigned n_conns;
	const char *both, *data, *acks; // faults of both directions, and of what either side sends
	uint64_t turn_us; // both sides look at what has come only so often; 0 = at once
};

struct bed_end {
	struct bed_side *side;
	unsigned number; // both ends of a connection have the same
	struct tcp_conn *conn; // NULL = not open yet
};

struct bed_side {
	struct bed *bed;
	unsigned number; // 0 opens the connections
	struct twheel *wheel;
	struct pool chunks;
	struct tcp_stack *stack;
	struct line *line; // to the other one
	struct bed_end ends[BED_MAX_CONNS];
	uint8_t frame[FRAME_MAX]; // reserved
};

struct bed {
	uint64_t now;
	struct bed_side sides[2];
	unsigned n_conns, n_open;
	uint64_t line_ns; // when the lines began
	uint64_t turn_ns;
	const struct tcp_conn_ops *ops[2]; // of either side's ends, whose `user` is the end
};

// For the ops of either side.
void bed_on_established(struct tcp_conn *, void *end);
void bed_on_eof(struct tcp_conn *, void *end);
void bed_on_closed(struct tcp_conn *, void *end, enum tcp_close_reason);

// Opens the connections over lines that only delay, and then gives the lines their faults. The
// caller frees it by bed_close().
void bed_open(struct bed *, const struct bed_network *, uint64_t seed,
	const struct tcp_conn_ops *const ops[2]);
void bed_close(struct bed *);
// Queues as many zeros as there is room for, and returns their number.
uint64_t bed_send(struct bed_end *, uint64_t n_bytes);
// A turn of both stacks; then it is as late as the next event.
void bed_step(struct bed *);
