// SPDX-License-Identifier: Apache-2.0
// Handles SIGHUP, and the command `reload` of the stats socket: reads shunt.yaml again. What a
// running daemon can change takes effect (the log level, drain_s, lame_duck_s); the log names all
// other differences, which need a restart. Nothing of an invalid file is used. The bootstrap is not
// read again.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>

struct config;

struct reload_report {
	bool applied; // something of it
	char needs_restart[400]; // fields that differ, joined by ", "; "" = none
	unsigned n_more; // such fields for which there was no room
	struct lb_err err; // the file is invalid, and nothing of it was used; "" = it is not
};

// path: as given at the start; updates `running`. What became of it is logged, too.
void reload(struct config *running, const char *path, struct reload_report *ret);
// True if a running daemon applies changes of that field of shunt.yaml.
bool reload_applies(const char *field);
