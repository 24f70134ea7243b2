// SPDX-License-Identifier: Apache-2.0
// HyStart++ (RFC 9406): ends slow start when round trips grow longer, which is before the queue in
// the way overflows. If they become shorter again while growth is slowed, it was a false alarm.
// Thread: the owning worker. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tcp_cc_ack;

// All zero = a beginning.
struct tcp_hystart {
	uint32_t round_end; // SND.NXT when the round began: acknowledged, it ends
	uint32_t last_us, least_us; // least round trip of the last round, and of this one; 0 = none
	uint32_t base_us; // least_us when the conservative phase began
	uint8_t n_samples; // of this round
	uint8_t n_slow_rounds; // of the conservative phase, with this one; 0 = not in it
	bool begun;
};

// Returns by how many bytes cwnd grows for this ACK; *ret_done = slow start is over.
uint32_t tcp_hystart_on_ack(struct tcp_hystart *, const struct tcp_cc_ack *, bool *ret_done);
