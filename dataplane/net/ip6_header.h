// SPDX-License-Identifier: Apache-2.0
// The header of an IPv6 packet (RFC 8200 3) as it is written. Private to this folder.
// Thread: the owning worker.
#pragma once

#include "dataplane/net/inside.h"

#define IP6_HEADER 40
#define IP6_HOP_LIMIT 64
#define IP6_HOP_LIMIT_ON_LINK 255 // of neighbor discovery: no router has forwarded it
#define IP_PROTO_ICMP6 58

struct ip6_fields {
	struct ip_addr src, dst;
	uint32_t flow_label;
	uint8_t protocol;
	uint8_t hop_limit;
	enum ip_ecn ecn;
};

static inline bool ip6_is_group(const struct ip_addr *ip)
{
	return ip->b[0] == 0xff;
}

static inline void ip6_write_header(uint8_t *ip, const struct ip6_fields *f, size_t len)
{
	store32(ip, 6u << 28 | (uint32_t)f->ecn << 20 | f->flow_label);
	store16(ip + 4, (uint16_t)len);
	ip[6] = f->protocol;
	ip[7] = f->hop_limit;
	memcpy(ip + 8, f->src.b, sizeof(f->src.b));
	memcpy(ip + 24, f->dst.b, sizeof(f->dst.b));
}
