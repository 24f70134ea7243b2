// SPDX-License-Identifier: Apache-2.0
// A socket for operators and their tools: accepts, finds commands in what comes, writes answers.
// ctrl/stats/show.h has the commands of the stats socket, ctrl/stats/haproxy.h those of HAProxy's.
// Memory for slow or many clients is bounded: who comes when all places are taken gets that of
// another one (ctrl/stats/places.h), who is told so in a last line.
// Thread: ctrl.
#pragma once

#include "ctrl/stats/caller.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct socket_counts;
struct stats_server;

struct evbuffer;

// What goes on behind an answer, for as long as its reader stays, or an answer that is yet to come:
// meanwhile no further command is taken on the connection.
struct stats_follow {
	// Adds what came since. Called several times a second, not while the reader has more than
	// STATS_FOLLOW_UNREAD bytes to read: it is told what it missed. False = that was all: the
	// answer ends with an empty line.
	bool (*more)(struct stats_follow *, struct evbuffer *out);
	void (*free)(struct stats_follow *);
	bool is_soon; // somebody waits for it to end: it is called every few milliseconds
};
#define STATS_FOLLOW_UNREAD ((size_t)256 << 10)

// Answers one command of this caller: text without the final empty line, from malloc; NULL = out of
// memory. May set *ret_follow, which the server owns then: the text is what comes before it.
typedef char *(*stats_answer_fn)(void *ctx, const struct stats_caller *, const char *command,
	struct stats_follow **ret_follow);

// Where commands begin and end, and who closes.
enum stats_framing {
	// docs/stats.md: a command is a line, an answer ends with an empty line, and the client
	// closes.
	STATS_LINES,
	// HAProxy's management guide, 9.3: a line is commands with `;` between them, each answer
	// ends with an empty line, and the server closes behind the first line. `prompt` changes
	// that: each answer then ends with "> ", and lines may follow until `quit` or another
	// `prompt`. A backslash keeps the `;` behind it from ending a command, and stays.
	STATS_HAPROXY,
};

struct stats_server_conf {
	struct event_base *base; // borrowed, outlives it
	enum stats_framing framing;
	const char *path;
	unsigned mode; // of the socket's file
	struct stats_groups groups; // who may do more than look
	stats_answer_fn answer;
	void *ctx;
	struct socket_counts *counts; // borrowed, outlives it; servers may share them
};

// Binds path with this mode; removes a stale socket file of a dead process, but a live one is an
// error. Creates the last directory of the path if it is missing. Returns NULL with reterr on
// error.
struct stats_server *stats_server_new(const struct stats_server_conf *, struct lb_err *reterr);
// Another path from now on, in place of what is there; who is connected stays. Returns 0, or
// -EINVAL with reterr.
[[nodiscard]] int stats_server_rename(
	struct stats_server *, const char *path, struct lb_err *reterr);
// Likewise, but the path that it had leads to it as well, until somebody takes it or
// stats_server_leave().
[[nodiscard]] int stats_server_share(
	struct stats_server *, const char *path, struct lb_err *reterr);
// Gives up a path that it had, unless that is another process's by now.
void stats_server_leave(struct stats_server *, const char *path);
// Closes clients, and removes the socket file, unless another process has the name by now. NULL is
// fine.
void stats_server_free(struct stats_server *);
