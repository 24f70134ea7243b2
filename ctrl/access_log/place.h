// SPDX-License-Identifier: Apache-2.0
// Where an access log may go. What an xDS server asks for is a file below the directory that
// shunt.yaml names for that, or a stream of the process if shunt.yaml permits these: whoever serves
// xDS must not be able to write elsewhere on this machine (OPS-43), nor to have requests told to
// whom it likes (OPS-217).
// Thread: any. Pure, but for place_open().
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum access_place_kind { ACCESS_FILE, ACCESS_STDOUT, ACCESS_STDERR, ACCESS_COLLECTOR };

struct access_place {
	enum access_place_kind kind;
	// FILE; COLLECTOR: HOST:PORT, or of what a listener asks for the name of a cluster.
	const char *path;
	// FILE: a directory, without / at its end, that the path is below; NULL = it may be
	// anywhere. No link is followed below it, and what is there must be a regular file that has
	// no other name and is none of ours.
	const char *below;
	bool is_new; // FILE: one that is there already is refused (EEXIST)
	bool is_private; // FILE, below: for its owner alone, if it is made
	// COLLECTOR: what it is told that the log is called, and when entries are sent: so many
	// bytes of them, or the oldest has waited so long.
	const char *log_name;
	uint32_t batch_bytes;
	uint64_t batch_ns;
};

#define ACCESS_PATH_MAX 1024

// For display: the path, the collector, or "stdout".
const char *access_place_name(const struct access_place *);
bool access_place_eq(const struct access_place *, const struct access_place *);
// Whether a path's own words lead below its directory: 0, or -EINVAL with reterr.
[[nodiscard]] int access_place_check(const struct access_place *, struct lb_err *reterr);
// To be written to, at its end; made if it is not there. A descriptor, or -1 with errno: ENXIO for
// a FIFO without a reader; below a directory EPERM for what is no regular file, EMLINK for one with
// several names, EEXIST for stdout's, stderr's and that of own_fd (-1 = none). Does not wait.
int access_place_open(const struct access_place *, int own_fd);
// What to say of such an errno, or of a status of gRPC below zero. One of strerror()'s, or
// constant.
const char *access_place_error(int error);
