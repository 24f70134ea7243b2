// SPDX-License-Identifier: Apache-2.0
// One ClientStatusResponse (gRFC A40): a snapshot of every watched resource. It is taken at once
// and encoded in slices, so that a large one delays nothing: what it refers to is counted or
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

// A longer response is an error: clients accept less, and protobuf ends at 2 GiB.
#define CSDS_MAX_LEN ((size_t)1 << 30)

struct csds_dump_conf {
	const Envoy__Config__Core__V3__Node *node; // our node (CS-02); outlives it
	bool exclude_contents; // no xds_config (CS-08)
	int64_t wall_offset_ns; // wall-clock time = the wheel's time + this
};

struct csds_dump *csds_dump_new(const struct csds_dump_conf *); // NULL = out of memory
void csds_dump_free(struct csds_dump *); // NULL is fine

// Adds one resource; to be passed to xds_federation_each(). Call before the first step.
void csds_dump_add(void *dump, const struct xds_entry_info *);

// Encodes about `budget` more bytes, at least one resource. Returns 1 = complete, 0 = call again,
// -ENOMEM (also if an add was out of memory), or -E2BIG.
[[nodiscard]] int csds_dump_step(struct csds_dump *, size_t budget);

// The response, after step() returned 1: the caller takes the parts, the list stays the dump's.
size_t csds_dump_take(struct csds_dump *, const struct rpc_part **ret, size_t *ret_len);
