// SPDX-License-Identifier: Apache-2.0
// Which of a port's frames belong to the kernel behind it (docs/exception-path.md): what is left
// over when this host has taken its own, and what both have to hear, as an answer of ARP. Asked
// after net_input(), of ports with a kernel only, so that others pay nothing.
// Thread: the owning worker.
#pragma once

#include "dataplane/net/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum net_foreign {
	NET_FOREIGN_TCP, // of no connection and no listener; see net_is_shared()
	NET_FOREIGN_ICMP,
	NET_FOREIGN_NEIGHBORS, // ARP, neighbor discovery, what routers advertise
	NET_FOREIGN_GROUP, // for a multicast group of Ethernet
	NET_FOREIGN_OTHER,
	NET_N_FOREIGN,
	NET_NOT_FOREIGN = NET_N_FOREIGN,
};

// True for an address of a port with a kernel, which has it, too. Those of VIPs are never shared.
bool net_is_shared(const struct net *, const struct ip_addr *);
// Of the frame that net_input() saw last on that port; dropped: what net_take_drop() said of it.
// What TCP drops is not asked here.
enum net_foreign net_foreign_of(
	const struct net *, uint32_t port, const uint8_t *frame, size_t len, int dropped);
// True for what no router of IP passes on, and what none can have: a hop limit of 255 is that of a
// sender on this very link (RFC 5082), as BFD's is (RFC 5881 5). Strangers beyond it can't send it.
bool net_foreign_is_near(const uint8_t *frame, size_t len);
// True for what a second host of the same addresses must hear as well, whatever becomes of it at
// the first: ARP, neighbor discovery and advertisements of routers, and errors of ICMP, which may
// quote what it has sent.
bool net_foreign_is_for_all(const uint8_t *frame, size_t len);
// True if what was dropped so may be answered by that host: echo requests, while this one is
// silent, and other messages of ICMP. dropped: a number in net_counters().
bool net_foreign_is_left(uint8_t dropped);
// Makes the checksum of a TCP segment or UDP datagram whose sender left it to hardware: its field
// has the sum of the pseudo-header. Frames that have none stay as they are.
void net_foreign_make_checksum(uint8_t *frame, size_t len);
// Sends a frame of the kernel's as it is. False = the device has no buffer, or it is too long.
bool net_foreign_send(struct net *, uint32_t port, const uint8_t *frame, size_t len);
