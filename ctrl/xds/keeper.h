// SPDX-License-Identifier: Apache-2.0
// Keeps what serves in a directory, for a start without the servers (docs/decisions/cold-start.md):
// reads it once, and writes it when it has changed, from a thread of its own, seldom and whole.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/gather.h"
#include "ctrl/xds/settled.h"

#include <stddef.h>
#include <stdint.h>

struct lb_err;
struct twheel;
struct xds_keeper;

struct xds_keeper_conf {
	const char *directory; // borrowed, as the next
	const struct xds_bootstrap *bootstrap;
	struct twheel *wheel;
	uint64_t (*wall_ns)(void); // since 1970
	// What was read is not written over for so long, since not all who use it may be back.
	uint64_t hold_ns;
	// Another process may have the directory: it is read, and not written before that one lets
	// it go.
	bool waits;
};

// Reads the directory: the one call that waits for the disk. A file that cannot be used is logged,
// and one that is broken set aside. Returns 0, -ENOMEM, or -EWOULDBLOCK if another process has the
// directory (unless it waits), with *ret NULL; reterr says so.
[[nodiscard]] int xds_keeper_new(
	const struct xds_keeper_conf *, struct xds_keeper **ret, struct lb_err *reterr);
// For the clients' conf. Lasts until xds_keeper_free().
const struct xds_state *xds_keeper_state(const struct xds_keeper *);
// The clients to write of, and the hook to be added to them (settled.h).
struct xds_settled *xds_keeper_follow(struct xds_keeper *, xds_each_client_fn, void *of);
// Writes what is not written yet, and waits for that for some seconds at most: while the clients
// still have all they had. NULL is fine.
void xds_keeper_finish(struct xds_keeper *);
void xds_keeper_free(struct xds_keeper *); // after the clients; NULL is fine

struct xds_keeper_info {
	const char *directory;
	uint64_t n_written, n_failed, n_too_large, n_set_aside;
	uint64_t written_ns; // the last time, by the wheel's clock; 0 = never
	size_t len; // of the file, as it was written last
	const char *error; // why the last attempt failed; "" = it did not
	const char
		*read_error; // why the file that was there at the start was not read; "" = it was
	// When that was written which was read at the start, since 1970; 0 = nothing was.
	uint64_t read_s;
};
void xds_keeper_info(const struct xds_keeper *, struct xds_keeper_info *ret);
