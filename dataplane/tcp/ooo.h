// SPDX-License-Identifier: Apache-2.0
// Data beyond a hole: a short ascending list of byte ranges that do not touch. Small segments are
// packed into chunks (buf.h), and the number of ranges, the bytes (by the window) and the time are
// bounded, so a peer cannot pin memory or make the list long (CVE-2018-5390).
// Thread: the owning worker.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tcp_conn;
struct tcp_sack_block;

// *ret_twice, empty before, becomes the first part that was here already. False = not all was kept.
bool tcp_ooo_insert(struct tcp_conn *, uint32_t seq, const uint8_t *data, uint32_t len,
	struct tcp_sack_block *ret_twice);
// Moves data that became contiguous to recvq and advances rcv_nxt.
void tcp_ooo_pull(struct tcp_conn *);
void tcp_ooo_clear(struct tcp_conn *);
void tcp_ooo_late(struct tcp_conn *); // TCP_TIMER_PATIENCE fired
void tcp_ooo_put_first(struct tcp_conn *, uint32_t seq); // the range that has seq, if one has
// Chooses the blocks to report, the latest first (RFC 2018 4), marks them, and returns how many.
unsigned tcp_ooo_blocks(struct tcp_conn *, struct tcp_sack_block *ret, unsigned max);
bool tcp_ooo_unreported(const struct tcp_conn *);
