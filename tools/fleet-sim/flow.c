// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/flow.h"

#include "lb/base/rand.h"
#include "lb/index/hash.h"

#define VIP 0xc6336401 // 198.51.100.1
#define VIP_PORT 443
#define FIRST_PORT 1024

void flow_of(uint64_t seed, uint32_t connection, uint32_t attempt, struct tcp_flow *ret)
{
	struct rand r;
	rand_init(&r, seed + connection);
	uint64_t draw = rand_u64(&r);
	uint32_t port =
		(uint32_t)(draw >> 32) + attempt * 7919; // a prime: no port comes twice soon
	*ret = (struct tcp_flow){
		.local = ip_from_v4(VIP),
		.remote = ip_from_v4((uint32_t)draw),
		.local_port = VIP_PORT,
		.remote_port = (uint16_t)(FIRST_PORT + port % (65536 - FIRST_PORT)),
	};
}

uint32_t flow_hash(uint64_t seed, const struct tcp_flow *f)
{
	const uint32_t ports = (uint32_t)f->remote_port << 16 | f->local_port;
	uint32_t words[3] = {ip_to_v4(&f->remote), ip_to_v4(&f->local), ports};
	return (uint32_t)(lb_xxh64_seeded(seed, words, sizeof(words)) >> 32);
}
