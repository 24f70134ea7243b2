// SPDX-License-Identifier: Apache-2.0
// Opens the sockets that operators and their tools ask: our own, and that of HAProxy's tools if
// shunt.yaml has one.
// Thread: ctrl.
#pragma once

#include "ctrl/base/slice.h"
#include "lb/base/err.h"

#include <stdint.h>

struct config_stats;
struct loop;
struct show;
struct stats_sockets;

// What it is given is borrowed, and outlives it, but for the slice: how much of a long answer a
// turn makes. generation: behind the names of the sockets; 0 = nothing is. NULL with reterr, which
// names the field.
struct stats_sockets *stats_start(const struct config_stats *, struct show *, struct loop *,
	const struct slice *slice, uint32_t generation, struct lb_err *reterr);
// Takes the names without a generation, whoever has them. Returns 0, or -EINVAL with reterr.
[[nodiscard]] int stats_take_names(
	struct stats_sockets *, const struct config_stats *, struct lb_err *reterr);
// Adds the names with the generation: who takes the others leaves us these. Returns likewise.
[[nodiscard]] int stats_share_names(struct stats_sockets *, const struct config_stats *,
	uint32_t generation, struct lb_err *reterr);
// Gives up those without, if nobody has taken them.
void stats_leave_names(struct stats_sockets *, const struct config_stats *);
void stats_stop(struct stats_sockets *); // NULL is fine
