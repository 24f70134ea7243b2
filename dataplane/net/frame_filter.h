// SPDX-License-Identifier: Apache-2.0
// Whether a frame, as bytes, is one that a packet capture asks for (OPS-101). Bounded: at most two
// VLAN tags and the extension headers that ip6_find_payload() passes over are read.
// Thread: any; pure.
#pragma once

#include "lb/pick/capture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net_tunnels;

// From or to the host, and from or to the port. ARP is of a host if it asks for it or tells of it.
// A fragment that does not begin its packet, and one of IPv6, has no ports; nor has what ICMP
// quotes. What a tunnel brings is of the addresses and ports within as well; tunnels: NULL = none.
bool frame_filter_matches(const struct lb_capture_ask *, const struct net_tunnels *tunnels,
	const uint8_t *frame, size_t len);
