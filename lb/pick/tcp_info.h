// SPDX-License-Identifier: Apache-2.0
// A connection as TCP sees it, for operators: what a worker tells the control thread of one.
// Thread: any; plain data.
#pragma once

#include <stdint.h>

// Sizes in bytes.
struct lb_tcp_info {
	const char *state; // of RFC 9293 3.3.2; a constant text
	uint64_t n_received; // in order
	uint64_t rtt_ns, rttvar_ns; // smoothed, and its variation (RFC 6298); 0 = not known yet
	uint64_t min_rtt_ns; // the least that was measured; likewise
	uint64_t rto_ns; // timeout of what is sent next, without doublings
	uint64_t pace; // bytes a second that leave at most, if that applies now; 0 = it does not
	uint64_t send_queue; // accepted of the owner, and not acknowledged
	uint64_t recv_queue; // in order, and not taken by the owner
	uint32_t cwnd; // what congestion control lets be in flight
	uint32_t ssthresh; // UINT32_MAX = none yet: slow start
	uint32_t in_flight; // sequence numbers sent and not acknowledged
	uint32_t n_resent; // segments sent again, for whatever reason; a SYN, too
	uint32_t send_window, recv_window; // that the peer grants, and that we do
	uint16_t mss; // of a full segment
	uint8_t send_scale, recv_scale; // of windows (RFC 7323 2.2); 0 = none
	uint8_t n_backoff; // doublings of the timeout
	const char *congestion; // control's name; a constant text
};
