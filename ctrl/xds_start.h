// SPDX-License-Identifier: Apache-2.0
// The daemon's xDS client as shunt.yaml wants it, with what is kept of it in state_dir, or came
// from an older process.
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
struct xds_legacy;

struct xds_live {
	const struct xds_bootstrap *bootstrap; // borrowed
	struct xds_federation *federation;
	struct xds_keeper *keeper; // NULL = there is no state_dir
	struct xds_legacy *legacy; // NULL = nothing of use came
};

struct xds_start_conf { // all borrowed, outlives what is made
	const struct config *config;
	const struct xds_bootstrap *bootstrap;
	struct xds_transport_factory transport;
	struct loop *loop;
	struct rand *rand;
	bool state_waits; // another process of ours has the state_dir, for now
	int legacy_fd; // what that has left (xds/legacy.h), taken; 0 = nothing
	uint64_t slice_ns; // of a turn, for a large response
	void (*log)(void *ctx, const char *line); // ctx is NULL
};

// What a response may have.
size_t xds_max_response_len(const struct config *);
// Reads what an older process has left, and the state_dir, if there is one. Returns 0, -ENOMEM, or
// -EWOULDBLOCK if another process has the state_dir; reterr says so. What was made is the caller's
// either way.
[[nodiscard]] int xds_start(
	const struct xds_start_conf *, struct xds_live *ret, struct lb_err *reterr);
// For a newer process: a descriptor, the caller's; -1 = nothing.
[[nodiscard]] int xds_live_bequeath(const struct xds_live *);
// Also of one that is all zero.
void xds_live_fini(struct xds_live *);
