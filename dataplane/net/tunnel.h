// SPDX-License-Identifier: Apache-2.0
// What a tunnel's packet carries, and who sent it. Looks at outer headers alone: the packet within
// is looked at as any other one. Private to this folder.
// Thread: any; pure.
#pragma once

#include "dataplane/net/inside.h"
#include "dataplane/net/tunnel_list.h"

#define IP_PROTO_IP4 4
#define IP_PROTO_IP6 41
#define UDP_HEADER 8

// An outer packet, whose IP header is sound, borrowed.
struct tunnel_packet {
	struct ip_addr src, dst;
	uint8_t protocol;
	enum ip_ecn ecn;
	const uint8_t *payload; // behind the IP header and its extensions
	size_t len;
	size_t header_len; // of what stands before the payload
};

struct tunnel_inner {
	const struct net_tunnel *tunnel;
	const uint8_t *ip; // the packet within; nothing of it is checked
	size_t len;
	bool v4; // as the outer headers say
	size_t overhead; // bytes of outer headers
	// GLB's chain of hosts (docs/l4-tier.md): how far behind the UDP header the number of the
	// next one stands, and its address; 0 = none is left.
	size_t next_at;
	uint32_t next_hop;
};

// NET_N_COUNTERS = *ret is set; otherwise the cause to drop it for. NET_ip_unknown_protocol: no
// tunnel is of its kind.
enum net_counter tunnel_find(
	const struct net_tunnels *, const struct tunnel_packet *, struct tunnel_inner *ret);
// The same of a packet that nobody has looked at. False = it is no tunnel's.
bool tunnel_look(
	const struct net_tunnels *, const uint8_t *ip, size_t len, struct tunnel_inner *ret);
