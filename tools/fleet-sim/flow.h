// SPDX-License-Identifier: Apache-2.0
// The connections of a fleet's clients: which flow each is, of a seed and its number alone.
// Thread: any. Pure.
#pragma once

#include "dataplane/tcp/tcp.h"

#include <stdint.h>

// The client's address and port are by chance; who connects again (`attempt`) has another port.
void flow_of(uint64_t seed, uint32_t connection, uint32_t attempt, struct tcp_flow *ret);
// What a router or an L4 tier finds the host by: any uniform hash of the flow.
uint32_t flow_hash(uint64_t seed, const struct tcp_flow *);
