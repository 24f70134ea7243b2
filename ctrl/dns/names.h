// SPDX-License-Identifier: Apache-2.0
// The resolver: one state machine a name, shared by all who watch it. It asks at once, asks again
// when the answer's TTL is over, on request, and after failures with gRPC's backoff; a failure
// never takes an earlier answer away (A37-D03). Time comes from the wheel, answers from `lookups`.
//
// gRPC asks again only on request, and not within 30 s of the last time
// (grpc.dns_min_time_between_resolutions_ms); Envoy goes by the TTL. Here both hold: the least time
// is gRPC's, the TTL makes it longer.
// Thread: ctrl.
#pragma once

#include "ctrl/dns/resolver.h"

struct dns_lookups;
struct rand;
struct twheel;

struct dns_names_conf {
	struct twheel *wheel;
	struct rand *rand; // jitter
	struct dns_lookups *lookups; // borrowed, outlives the resolver
};

// NULL = out of memory.
struct dns_resolver *dns_names_new(const struct dns_names_conf *);
