// SPDX-License-Identifier: Apache-2.0
// The access logs (docs/access-log.md), that of shunt.yaml and those of listeners: a thread of its
// own takes the records of all workers' rings, makes lines of them and writes them. When the disk
// or the reader is slow, it is this thread alone that waits: rings fill, and workers count what
// they drop (OPS-36).
// Thread: ctrl, but for that thread.
#pragma once

#include "ctrl/access_log/logs.h"
#include "ctrl/access_log/want.h"
#include "lb/base/err.h"
#include "lb/base/ip.h"

#include <stdbool.h>
#include <stdint.h>

struct access_line;
struct access_log;
struct access_recent;
struct access_recent_entry;
struct lb_access;
struct lb_access_set;

struct access_log_frontend {
	const char *name;
	struct ip_port local;
};
struct access_log_conf { // what is borrowed outlives the log
	struct access_logs_conf logs; // lists and the node are copied
	const struct access_log_frontend *frontends; // copied
	uint32_t n_frontends;
	struct lb_access *const *workers; // copied; by worker
	uint32_t n_workers;
	uint64_t (*clock_ns)(void); // the workers'
	uint64_t (*wall_ns)(void); // since 1970
};

// 0, or negative with reterr, which names the path or the operator.
[[nodiscard]] int access_log_new(
	const struct access_log_conf *, struct access_log **ret, struct lb_err *reterr);
// Writes what the rings hold, if that is done within two seconds. Workers have stopped; their rings
// are freed later. NULL is fine.
void access_log_free(struct access_log *);
// The frontend goes by this from now on; the name is borrowed for the log's life. NULL is fine.
void access_log_rename(struct access_log *, uint32_t frontend, const struct access_log_frontend *);
// The set that a listener asks for, counted, to be put into snapshots; NULL = none of these can be.
// Logs that can't be are left out, and tell() is called of them: without an access log, of all.
struct lb_access_set *access_log_want(struct access_log *, const struct access_want *, uint32_t n,
	access_refused_fn *tell, void *ctx);
// Files may have been renamed: their paths are opened again, until that works. NULL is fine.
void access_log_reopen(struct access_log *);
// Lets go of what no listener wants any more; logs what was dropped and what fails, of each output
// at most once in ten seconds. Call every second; NULL is fine.
void access_log_look(struct access_log *, uint64_t now_ns);

// What it told last; its own.
struct access_recent *access_log_recent(const struct access_log *);
// A line of it with its newline: as the format of shunt.yaml's log has it, or JSON.
void access_log_print(const struct access_log *, const struct access_recent_entry *, bool json,
	struct access_line *);

struct access_log_numbers {
	uint64_t n_lines; // written
	uint64_t n_ring; // records dropped by workers: their ring was full
	// Lines lost with the reader that had their beginning, or since one output was full while
	// others were not.
	uint64_t n_cut;
	uint64_t n_failed; // entries that a service was sent by a stream which failed at once
	uint64_t n_unopened; // tries to open a renamed file's path again which failed
	int error; // of access_place_error(): what fails now; 0 = nothing
	// Likewise, why a path cannot be opened again: lines go on into the file that had it.
	int reopen_error;
};
struct access_log_numbers access_log_numbers(const struct access_log *);
