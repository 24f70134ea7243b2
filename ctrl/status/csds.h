// SPDX-License-Identifier: Apache-2.0
// The client status discovery service (CSDS: gRFC A40; CS-*) on top of csds_dump. Its cost is
// bounded: it makes one response at a time, a slice each millisecond or so; few responses wait to
// be read, and not for long; a caller that asks faster than it reads is slowed down.
// Thread: ctrl.
#pragma once

#include "envoy/config/core/v3/base.pb-c.h"

#include <stddef.h>
#include <stdint.h>

struct csds;
struct rpc_call;
struct twheel;
struct xds_entry_info;

struct csds_conf {
	const Envoy__Config__Core__V3__Node *node; // outlives it
	struct twheel *wheel;
	size_t max_unread_len; // if more than this is unread, no response is started
	uint64_t (*wall_ns)(void); // since 1970
	// Calls fn once for every watched resource (xds_client_each).
	void (*each)(void *ctx, void (*fn)(void *, const struct xds_entry_info *), void *fn_ctx);
	void *ctx;
};

struct csds *csds_new(const struct csds_conf *); // NULL = out of memory
// Call after all calls are closed. NULL is fine.
void csds_free(struct csds *);

// Open calls of the two methods; NULL = out of memory.
struct status_call *csds_open_fetch(struct csds *, struct rpc_call *);
struct status_call *csds_open_stream(struct csds *, struct rpc_call *);
