// SPDX-License-Identifier: Apache-2.0
// How long segments may be: what the link, the peer and the path allow, and a guess where a path
// drops what is long and says nothing (RFC 4821, RFC 8899).
//
// Silence alone may have other reasons. So the guess lasts until segments pass again, and then a
// longer one is sent as a probe: one of the whole length first, then of the next of a few common
// lengths. Sizes are MSS, the options included, but for those of segments.
// Thread: the owning worker.
#pragma once

#include <stdint.h>

struct tcp_conn;
struct tcp_flow;
struct tcp_stack;

// Of a peer that says nothing (RFC 9293 3.7.1, MUST-15).
uint16_t tcp_mss_default(const struct tcp_flow *);
uint16_t tcp_mss_of_flow(const struct tcp_stack *, const struct tcp_flow *); // the link's
// The same, with room for the headers of the tunnel that the peer's segments come by.
uint16_t tcp_mss_to_announce(const struct tcp_stack *, const struct tcp_flow *);
// The connection's, with this of its link; or with what the link has now.
void tcp_mss_set(struct tcp_conn *, uint16_t link_mss);
void tcp_mss_refresh(struct tcp_conn *);

// After a timeout, before n_backoff grows. The caller refreshes.
void tcp_mss_timed_out(struct tcp_conn *);
// While guessed_path: did the probe that is out arrive? cwnd is a segment at least then.
void tcp_mss_learn(struct tcp_conn *);
// Likewise: how long the next new segment may be, with so much room in the windows;
// longer than the connection's MSS if it is to be a probe.
uint32_t tcp_mss_piece(struct tcp_conn *, uint32_t room);
void tcp_mss_probed(struct tcp_conn *, uint32_t len, uint32_t end); // it was sent
void tcp_mss_resent(struct tcp_conn *, uint32_t seq); // a segment from here on is sent again
