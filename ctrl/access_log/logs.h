// SPDX-License-Identifier: Apache-2.0
// The logs that records may go to: shunt.yaml's own and those that listeners ask for (OPS-40). Each
// has a number, its bit in a record, a form and an output; those that are the same are one, and
// those with the same place share its output.
//
// One that no listener wants any more goes in steps: its sets leave the snapshots, and after the
// grace period of the last one (lb/slot.h) no worker tells of it; the writer then says when it has
// been through all rings since, and has closed an output that no other log has; only then its
// number is free. Files of listeners are the writer's to open, too: a disk that hangs holds it
// alone (OPS-36).
// Thread: as said below; numbers are read by any.
#pragma once

#include "ctrl/access_log/collector.h"
#include "ctrl/access_log/operators.h"
#include "ctrl/access_log/output.h"
#include "ctrl/access_log/want.h"
#include "lb/base/time.h"

#include <stdbool.h>
#include <stdint.h>

struct access_format;
struct lb_access_set;

#define ACCESS_LOGS                                                                                \
	(2 + ACCESS_WANTS_MAX) // bits of a record: shunt.yaml's are the first and the last
#define ACCESS_XDS_FILES 32 // of listeners, at a time
#define ACCESS_XDS_COLLECTORS 16 // likewise: each has a connection and a thread of its own

struct access_logs;

// Where a listener's name of a cluster leads.
struct access_cluster {
	const char *name, *address; // HOST:PORT
};
struct access_logs_conf { // borrowed, outlives them
	const struct access_place *own; // shunt.yaml's log; NULL = none
	const char *text_format; // of that; NULL = JSON
	const struct access_place *own_collector; // shunt.yaml's, too; NULL = none
	const char *xds_directory; // where listeners may have files; NULL = nowhere
	bool xds_stdout; // listeners may have the streams
	const struct access_cluster *xds_collectors; // those that listeners may have
	uint32_t n_xds_collectors;
	struct access_node node; // who we are to collectors
	uint64_t seed; // of their pauses
};

// Ctrl:

// 0, -ENOMEM or -EINVAL with reterr.
[[nodiscard]] int access_logs_new(
	const struct access_logs_conf *, struct access_logs **ret, struct lb_err *reterr);
void access_logs_free(struct access_logs *); // the writer has ended; NULL is fine
// The set for a listener, counted; NULL = none of these can be, or no memory. What can't be is left
// out, and tell() is called of it.
struct lb_access_set *access_logs_want(struct access_logs *, const struct access_want *, uint32_t n,
	access_refused_fn *tell, void *ctx);
// Takes a step with those that go. Call every second.
void access_logs_sweep(struct access_logs *);
// The form of shunt.yaml's log; NULL = there is none with lines.
const struct access_format *access_logs_own_format(const struct access_logs *);
void access_logs_each_output(
	const struct access_logs *, void (*fn)(void *ctx, struct access_output *), void *ctx);
struct access_logs_totals {
	uint64_t n_lines, n_cut, n_failed, n_unopened; // of all outputs, closed ones too
	int error, reopen_error; // of one that fails now; 0 = none does
};
struct access_logs_totals access_logs_totals(const struct access_logs *);

// The writer:

struct access_logs_now {
	struct access_output *outputs[ACCESS_LOGS]; // each once
	uint32_t n;
	uint64_t leaving; // bits of those that go, and wait for their last records
};
// What there is when a round through all rings begins.
void access_logs_look(struct access_logs *, struct access_logs_now *ret);
// That round left none of what the rings held when it began: those that were leaving have all their
// lines, and ctrl may free them from now on. Where others share the output, these write what waits
// there; else it is closed first, when nothing waits, it fails, or ACCESS_LAST_NS have passed. *now
// is what there is without them.
#define ACCESS_LAST_NS (5 * NS_PER_SECOND)
void access_logs_let_go(struct access_logs *, struct access_logs_now *now, uint64_t now_ns);
// A line for each log of the view's record. An output without room is flushed, and else loses it.
void access_logs_write(struct access_logs *, const struct access_view *);
