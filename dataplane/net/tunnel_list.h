// SPDX-License-Identifier: Apache-2.0
// Tunnels that end here, as shunt.yaml lists them: who may send packets within others, and how.
// Thread: any; constant once workers run.
#pragma once

#include "lb/base/ip.h"

#include <stdint.h>

#define NET_MAX_TUNNELS 16
#define NET_MAX_TUNNEL_PREFIXES 16 // of one: sources, and hops

enum net_tunnel_kind {
	NET_TUNNEL_IPIP, // IPv4 or IPv6 in either of both (RFC 2003, RFC 2473, RFC 4213)
	NET_TUNNEL_GUE, // the same within UDP (draft-ietf-intarea-gue-09, both variants)
};

struct net_tunnel {
	enum net_tunnel_kind kind;
	uint16_t port; // of UDP; GUE alone has one
	struct ip_prefix from[NET_MAX_TUNNEL_PREFIXES]; // sources of the outer packets
	uint32_t n_from;
	// Hosts that may get a segment of no connection of ours, if its packet names them as the
	// next ones to be asked; GUE alone has such packets.
	struct ip_prefix hops[NET_MAX_TUNNEL_PREFIXES];
	uint32_t n_hops;
};

struct net_tunnels {
	struct net_tunnel list[NET_MAX_TUNNELS];
	uint32_t n;
};
