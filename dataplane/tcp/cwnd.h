// SPDX-License-Identifier: Apache-2.0
// Whether cwnd is in use (RFC 7661): one that holds nothing back says nothing of the path, and must
// not grow. cc.h says by how much it does; output.c and ack.c tell what is sent and acknowledged.
// Thread: the owning worker.
#pragma once

#include <stdint.h>

struct tcp_conn;

// All that is in flight now fills cwnd: its ACKs may make cwnd grow.
void tcp_cwnd_limits(struct tcp_conn *);
// Something was sent: where that leaves more than half of cwnd in flight, slow start goes on.
void tcp_cwnd_use(struct tcp_conn *);
// Before something is sent: shrinks what was not used for long.
void tcp_cwnd_validate(struct tcp_conn *);
// What a loss takes its share of, with so many bytes in flight.
uint32_t tcp_cwnd_in_use(const struct tcp_conn *, uint32_t flight);
// Tells congestion control, where cwnd_limited or cwnd_used, of an ACK that is about to take
// snd_una acked bytes further; rtt_ns: the round trip that it shows, 0 = none.
void tcp_cwnd_grow(struct tcp_conn *, uint32_t acked, uint64_t rtt_ns);
