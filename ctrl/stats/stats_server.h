// SPDX-License-Identifier: Apache-2.0
// The stats socket: accepts, splits lines, writes answers; ctrl/stats/show.h has the commands.
// Memory for slow or many clients is bounded.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct stats_server;

// Answers one command: text without the final empty line, from malloc; NULL = out of memory.
typedef char *(*stats_answer_fn)(void *ctx, const char *command);

// Binds path with this mode; removes a stale socket file of a dead process, but a live one is an
// error. Creates the last directory of the path if it is missing. Returns NULL with reterr on
// error.
struct stats_server *stats_server_new(struct event_base *, const char *path, unsigned mode,
	stats_answer_fn, void *ctx, struct lb_err *reterr);
// Closes clients, removes the socket file. NULL is fine.
void stats_server_free(struct stats_server *);
