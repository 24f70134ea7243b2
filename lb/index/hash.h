// SPDX-License-Identifier: Apache-2.0
// One fast hash for tables whose keys come from the configuration: a client can only look up, never
// insert, so collisions cannot be forced and no secret is needed. Not for keys that peers choose
// (those take SipHash).
// Thread: any. Pure.
#pragma once

#include "lb/base/ip.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

uint64_t lb_hash(const void *data, size_t len);
// XXH64 with seed 0: what gRPC and Envoy hash requests and ring entries with (gRFC A42).
uint64_t lb_xxh64(const void *data, size_t len);
uint64_t lb_xxh64_seeded(uint64_t seed, const void *data, size_t len);

// Not seeded: strangers can only look up addresses, and the cost depends on those in the list.
static inline uint64_t lb_address_hash(const struct ip_port *a)
{
	uint64_t low, high;
	memcpy(&low, a->ip.b, 8);
	memcpy(&high, a->ip.b + 8, 8);
	unsigned __int128 m = (unsigned __int128)(low ^ 0x9e3779b97f4a7c15) *
	                      (high ^ a->port ^ 0xd6e8feb86659fd93);
	return (uint64_t)(m >> 64) ^ (uint64_t)m;
}
