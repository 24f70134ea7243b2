// SPDX-License-Identifier: Apache-2.0
// The commands of the socket that HAProxy's tools speak to (docs/haproxy.md), on a server with
// STATS_HAPROXY.
// Thread: ctrl.
#pragma once

#include "ctrl/base/slice.h"

struct haproxy;
struct show;
struct stats_caller;
struct stats_follow;

// show: what is told of; borrowed, outlives it. slice: how much of an answer a turn makes; copied.
// NULL = out of memory.
struct haproxy *haproxy_new(const struct show *show, const struct slice *slice);
void haproxy_free(struct haproxy *); // NULL is fine
// A stats_answer_fn (ctrl/stats/stats_server.h); ctx is the haproxy.
char *haproxy_answer(void *ctx, const struct stats_caller *, const char *command,
	struct stats_follow **ret_follow);
