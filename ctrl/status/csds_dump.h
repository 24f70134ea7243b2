// SPDX-License-Identifier: Apache-2.0
// One ClientStatusResponse (gRFC A40): every watched resource at one instant. It is taken at once
// and encoded bit by bit, so that a large one holds up nothing: what it refers to is counted or
// copied. No I/O.
// Thread: ctrl.
#pragma once

#include "ctrl/rpc/server.h"
#include "envoy/config/core/v3/base.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct csds_dump;
struct xds_entry_info;

// Beyond this length a response is refused: clients read less, and protobuf ends at 2 GiB.
#define CSDS_MAX_LEN ((size_t)1 << 30)

struct csds_dump_conf {
	const Envoy__Config__Core__V3__Node *node; // what servers are told (CS-02); outlives it
	bool exclude_contents; // no xds_config (CS-08)
	int64_t wall_offset_ns; // wall-clock time = the wheel's time + this
};

struct csds_dump *csds_dump_new(const struct csds_dump_conf *); // NULL = out of memory
void csds_dump_free(struct csds_dump *); // NULL is fine

// Takes in one resource; the function that xds_federation_each() wants. Before the first step.
void csds_dump_add(void *dump, const struct xds_entry_info *);

// Encodes about `budget` bytes more, at least one resource. 1 = all is encoded, 0 = call again,
// -ENOMEM (also when an add had no memory), -E2BIG.
[[nodiscard]] int csds_dump_step(struct csds_dump *, size_t budget);

// The response, after step() has said 1: the parts go to the caller, the list stays the dump's.
size_t csds_dump_take(struct csds_dump *, const struct rpc_part **ret, size_t *ret_len);
