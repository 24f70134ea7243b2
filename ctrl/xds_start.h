// SPDX-License-Identifier: Apache-2.0
// The daemon's xDS client as shunt.yaml wants it, with what is kept of it in state_dir.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct lb_err;
struct loop;
struct rand;
struct xds_bootstrap;
struct xds_federation;
struct xds_keeper;

struct xds_start_conf { // all borrowed, outlives both
	const struct config *config;
	const struct xds_bootstrap *bootstrap;
	struct xds_transport_factory transport;
	struct loop *loop;
	struct rand *rand;
	bool state_waits; // another process of ours has the state_dir, for now
	uint64_t slice_ns; // of a turn, for a large response
	void (*log)(void *ctx, const char *line); // ctx is NULL
};

// What a response may have.
size_t xds_max_response_len(const struct config *);
// Reads the state_dir, if there is one. Returns 0, with *ret_keeper NULL if there is none,
// -ENOMEM, or -EWOULDBLOCK if another process has the state_dir; reterr says so. Both are the
// caller's either way. The client is freed before the keeper.
[[nodiscard]] int xds_start(const struct xds_start_conf *, struct xds_federation **ret,
	struct xds_keeper **ret_keeper, struct lb_err *reterr);
