// SPDX-License-Identifier: Apache-2.0
// An output that is an access log service: Envoy's ALS by gRPC, a stream of messages that nobody
// answers (OPS-215). Entries wait in the buffer until a batch of them is due, which is a message;
// one is under way at a time, and stays until libgrpc has passed it on. So a collector that is away
// or slow costs two buffers of memory; what goes beyond is dropped and counted (OPS-218).
// Thread: as outputs. Nothing of it waits, but closing for libgrpc to let go.
#pragma once

#include "lb/base/err.h"
#include "lb/base/time.h"

#include <stddef.h>
#include <stdint.h>

struct access_output;
struct access_place;

// Entries of a stream that fails before it has lasted so long are lost: a server that does not know
// the service takes the first message, too.
#define ACCESS_SURE_NS NS_PER_SECOND
#define ACCESS_RETRY_MAX_NS (10 * UINT64_C(1000000000))

// Who sends: a Node in protobuf's form; borrowed, outlives all collectors.
struct access_node {
	const uint8_t *bytes;
	size_t len;
};

// The place is copied. 0 or -ENOMEM with reterr. seed: of its pauses.
[[nodiscard]] int access_collector_new(const struct access_place *, const struct access_node *,
	uint64_t seed, struct access_output **ret, struct lb_err *reterr);
