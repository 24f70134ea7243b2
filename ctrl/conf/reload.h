// SPDX-License-Identifier: Apache-2.0
// Handles SIGHUP, and the command `reload` of the stats socket: reads shunt.yaml again. What a
// running daemon can change takes effect, all of it or nothing; the log names all other
// differences, which need a restart. Nothing of an invalid file is used. Of the bootstrap new
// certificate providers are known, even if the rest is refused then: nothing uses them by itself.
// Thread: ctrl. Workers see changes by a snapshot (lb/pick/terms.h).
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>

struct config;
struct config_rows_plan;

// Fields as shunt.yaml, or the bootstrap, names them.
struct reload_fields {
	char text[400]; // joined by ", "; "" = none
	unsigned n_more; // for which there was no room
};

struct reload_report {
	struct reload_fields changed; // took effect, but for what is pending
	struct reload_fields needs_restart; // differ, and do not
	// Names of frontends of which some of that takes effect once it has all that it needs, of
	// this reload or of one before.
	struct reload_fields pending;
	struct lb_err err; // nothing of the file was used, and why; "" = it was
};

// What changes beyond the values that are the configuration's own.
struct reload_parts {
	bool has_csds, has_vips;
	const struct config_rows_plan *frontends; // borrowed
};

// What a reload concerns. All borrowed.
struct reloader {
	struct config *config; // that of the running daemon, which is updated
	const char *path; // as given at the start
	// Makes what the new one asks for and may fail, beside what serves. Returns 0, or negative
	// with reterr, which names the field, and without anything made.
	int (*prepare)(void *ctx, const struct config *new, const struct reload_parts *,
		struct lb_err *reterr);
	// Behind that, and the configuration has changed but for its frontends: takes these out of
	// the new one, which has the vips of before. What was prepared serves now, workers hear of
	// the rest.
	void (*apply)(void *ctx, struct config *new, const struct reload_parts *);
	void *ctx;
	// Whether the file may be read at all now: 0, or negative with reterr. NULL = always.
	int (*check)(void *ctx, struct lb_err *reterr);
	// Once the file has been read, and before prepare(): takes what is new in other files, and
	// notes that, and what needs a restart there. Returns 0, or negative with reterr and
	// nothing taken. NULL = there are none.
	int (*learn)(void *ctx, void (*note)(void *, const char *field, bool needs_restart),
		void *note_ctx, struct lb_err *reterr);
};

// by: who asked, as keys and values for the log, "by=SIGHUP". What became of it is logged, too.
void reload(const struct reloader *, const char *by, struct reload_report *ret);
// True if a running daemon applies changes of that field of shunt.yaml.
bool reload_applies(const char *field);
