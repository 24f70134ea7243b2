// SPDX-License-Identifier: Apache-2.0
// The resolver: one state machine per name, shared by all its watchers. It queries at once, when
// the answer's TTL expires, on request, and after failures with gRPC's backoff; a failure never
// removes an earlier answer (A37-D03). Time comes from the wheel, answers from `lookups`.
// gRPC queries again only on request, at most every 30 s
// (grpc.dns_min_time_between_resolutions_ms); Envoy follows the TTL. Here the interval is the
// longer of gRPC's minimum and the TTL.
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
