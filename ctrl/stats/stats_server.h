// SPDX-License-Identifier: Apache-2.0
// The stats socket: accepts, splits lines, writes answers. What the commands say is not here but in
// ctrl/stats/show.h. Slow or many clients cost the control thread a bounded amount of memory.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct stats_server;

// Answers one command: text without the final empty line, from malloc; NULL = out of memory.
typedef char *(*stats_answer_fn)(void *ctx, const char *command);

// Binds path (a stale socket file of a dead process is removed, a live one is an error) with this
// mode; makes the last directory of the path when it is missing. NULL = error, with reterr.
struct stats_server *stats_server_new(struct event_base *, const char *path, unsigned mode,
	stats_answer_fn, void *ctx, struct lb_err *reterr);
// Closes clients, removes the socket file. NULL is fine.
void stats_server_free(struct stats_server *);
