// SPDX-License-Identifier: Apache-2.0
// Opens the sockets that operators and their tools ask: our own, and that of HAProxy's tools if
// shunt.yaml has one.
// Thread: ctrl.
#pragma once

#include "ctrl/base/slice.h"
#include "lb/base/err.h"

struct config_stats;
struct loop;
struct show;
struct stats_sockets;

// What it is given is borrowed, and outlives it, but for the slice: how much of a long answer a
// turn makes. NULL with reterr, which names the field.
struct stats_sockets *stats_start(const struct config_stats *, struct show *, struct loop *,
	const struct slice *slice, struct lb_err *reterr);
void stats_stop(struct stats_sockets *); // NULL is fine
