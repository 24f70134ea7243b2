// SPDX-License-Identifier: Apache-2.0
// Handles SIGHUP, and the command `reload` of the stats socket: reads shunt.yaml again. What a
// running daemon can change takes effect, all of it or nothing; the log names all other
// differences, which need a restart. Nothing of an invalid file is used. The bootstrap is not read
// again.
// Thread: ctrl. Workers see changes by a snapshot (lb/pick/terms.h).
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>

struct config;

// Fields as shunt.yaml names them.
struct reload_fields {
	char text[400]; // joined by ", "; "" = none
	unsigned n_more; // for which there was no room
};

struct reload_report {
	struct reload_fields changed; // took effect
	struct reload_fields needs_restart; // differ, and do not
	struct lb_err err; // nothing of the file was used, and why; "" = it was
};

// What a reload concerns. All borrowed.
struct reloader {
	struct config *config; // that of the running daemon, which is updated
	const char *path; // as given at the start
	// Makes what the new csds asks for and may fail, beside what serves. Returns 0, or negative
	// with reterr, which names the field, and without anything made.
	int (*prepare_csds)(void *ctx, const struct config *new, struct lb_err *reterr);
	// The configuration has changed: what was prepared serves now, workers hear of the rest.
	// has_csds: behind prepare_csds().
	void (*apply)(void *ctx, bool has_csds);
	void *ctx;
};

// by: who asked, as keys and values for the log, "by=SIGHUP". What became of it is logged, too.
void reload(const struct reloader *, const char *by, struct reload_report *ret);
// True if a running daemon applies changes of that field of shunt.yaml.
bool reload_applies(const char *field);
