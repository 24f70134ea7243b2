// SPDX-License-Identifier: Apache-2.0
// The hosts that segments go on to (relay.h): which ones may be sent to, and how long a packet may
// be on the way to each, as routers tell (RFC 2003 5.1). Private to this folder.
// Thread: the owning worker.
#pragma once

#include "dataplane/net/tunnel.h"

// True if the tunnel's segments may go on to this host.
bool relay_hop_allowed(const struct net_tunnel *, const struct ip_addr *);
// The same of any tunnel with that port. Thread: any; pure.
bool relay_hop_among(const struct net_tunnels *, uint16_t port, const struct ip_addr *);
// What a router quotes to our address local, len bytes from an IP header on. Returns the host to
// which we can have sent it on (RFC 5927 4), 0 = none.
uint32_t relay_hop_quoted(const struct net *, uint32_t local, const uint8_t *quoted, size_t len);
// For ten minutes no packet to that host is longer.
void relay_hop_learn(struct net *, uint32_t hop, uint16_t mtu);
// UINT16_MAX = no router has told.
uint16_t relay_hop_mtu(const struct net *, uint32_t hop);
