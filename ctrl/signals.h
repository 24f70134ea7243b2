// SPDX-License-Identifier: Apache-2.0
// What signals do. None of those that are commonly sent to daemons ends this one with its clients
// cut off: SIGTERM, SIGINT and SIGQUIT drain, SIGHUP reloads (ctrl/conf/reload.h), SIGUSR1 opens
// the log again (ctrl/log_file.h), SIGUSR2 is ignored. What comes before the loop runs is done once
// it does.
// Thread: ctrl. All others inherit a mask that blocks them.
#pragma once

struct config;
struct loop;

struct signals {
	void (*on_stop)(void *ctx);
	void *ctx;
	struct config *config;
	const char *config_path;
};

// Those that mean no harm are blocked from the program's first moment on; those that end it, too,
// from when there is something to be taken down in order.
void signals_block_harmless(void);
void signals_block(void);
void signals_unblock(void);
// Filled in by the caller, outlives the loop. 0 or -ENOMEM.
[[nodiscard]] int signals_watch(struct signals *, struct loop *);
