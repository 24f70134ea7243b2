// SPDX-License-Identifier: Apache-2.0
// Handles signals. None of those commonly sent to daemons ends the process with its clients cut
// off: SIGTERM, SIGINT and SIGQUIT drain, SIGHUP reloads (ctrl/conf/reload.h), SIGUSR1 reopens the
// logs (ctrl/base/log_file.h, ctrl/access_log/), SIGUSR2 starts a process that takes over, or is
// ignored where none can. Signals that arrive before the loop runs are handled when it does.
// Thread: ctrl. All others inherit a mask that blocks them.
#pragma once

#include <stdint.h>

struct access_log;
struct loop;
struct reloader;

struct signals {
	void (*on_stop)(void *ctx);
	void *ctx;
	void (*on_follow)(void *ctx); // NULL = nobody can take over
	void *ctx_follow;
	const struct reloader *reloader;
	struct access_log *access_log; // reopened; NULL = there is none
};

// Blocks harmless signals from the program's start; those that end it, once there is something to
// shut down in order.
void signals_block_harmless(void);
void signals_block(void);
void signals_unblock(void);
// The caller fills it in; it outlives the loop. Returns 0 or -ENOMEM.
[[nodiscard]] int signals_watch(struct signals *, struct loop *);
// Of the logs: opens again what could not be, and says what was lost. Call every second.
void signals_look(struct signals *, uint64_t now_ns);
