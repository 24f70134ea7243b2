// SPDX-License-Identifier: Apache-2.0
// The frontends of a running daemon, each in a place of its own for life: spare places are for
// those that a reload of shunt.yaml brings. Which of them a newer file has, changes or lacks goes
// by names.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct config;
struct config_frontend;

// Of a configuration that a daemon is about to run with: makes room for more frontends.
[[nodiscard]] int config_rows_reserve(struct config *, struct lb_err *reterr);

enum config_change {
	CONFIG_CHANGE_NONE,
	CONFIG_CHANGE_FIELDS,
	CONFIG_CHANGE_NEW,
	CONFIG_CHANGE_FIXED, // it differs, and would need a restart; the running one stays
};
struct config_rows_entry {
	enum config_change change;
	uint32_t row; // of the running configuration; of a new one the spare place that is meant
};
struct config_rows_plan {
	struct config_rows_entry *entries; // [n], by the new file's frontends; owned
	uint32_t n;
	bool *goes; // owned [n_rows], by running ones: it is in the new file no more
	uint32_t n_rows;
	bool is_any; // something is to be done
};
// Calls fn for each field that differs, as the new file names it: a new frontend is "frontends[2]",
// one that is gone "frontends[its name]". Returns 0, or -ENOMEM; call fini() anyway.
[[nodiscard]] int config_rows_plan(struct config_rows_plan *, const struct config *running,
	const struct config *new, void (*fn)(void *ctx, const char *field, bool needs_restart),
	void *ctx);
void config_rows_plan_fini(struct config_rows_plan *); // all zero is fine

// Takes one out of a configuration, which has none there afterwards. NULL = out of memory.
struct config_frontend *config_frontend_take(struct config *, uint32_t index);
// It takes the place of what is there, with its name or another. Takes it over.
void config_rows_put(struct config *, uint32_t row, struct config_frontend *);
