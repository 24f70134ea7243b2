// SPDX-License-Identifier: Apache-2.0
// TIME_WAIT: the records of connections that wait there, and what ends them.
// Thread: the owning worker.
#pragma once

#include "dataplane/tcp/tcp_internal.h"

// What is left of a connection in TIME_WAIT, or of one that was let go in FIN-WAIT-2; pooled.
struct tcp_tw {
	struct list_link order; // oldest first
	struct tcp_tw *hash_next;
	uint32_t hash;
	uint32_t snd_nxt, rcv_nxt;
	uint32_t ts_recent, ts_offset;
	uint16_t window; // as in the last header
	bool ts_on;
	bool awaits_fin; // FIN-WAIT-2: nobody reads what may come before it
	struct tcp_flow flow;
	uint64_t expires_ns;
	uint64_t challenge_ns;
};

void tcp_tw_add(struct tcp_conn *);
struct tcp_tw *tcp_tw_find(const struct tcp_stack *, const struct tcp_flow *, uint32_t hash);
// True = the segment opens a new connection in place of this record, which is freed; *ret_iss_floor
// is set.
bool tcp_tw_input(
	struct tcp_stack *, struct tcp_tw *, const struct tcp_seg *, uint32_t *ret_iss_floor);
// RFC 7323 B.2: an active open may take the record's place.
bool tcp_tw_may_go(const struct tcp_stack *, const struct tcp_tw *);
void tcp_tw_forget(struct tcp_stack *, struct tcp_tw *);
// Takes the place of a record of the same flow, if there is one.
void tcp_tw_reuse(struct tcp_conn *);
void tcp_tw_fire(struct twheel_timer *);
