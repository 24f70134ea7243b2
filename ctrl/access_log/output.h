// SPDX-License-Identifier: Apache-2.0
// Where the access log goes: a file, a FIFO or stdout, and the bytes that wait for it. Lines leave
// whole: what could not be written waits, and is written first. Only of a reader that goes in the
// middle of a line is the rest of that line lost.
// Thread: the log's own; the numbers are read by any.
#pragma once

#include "lb/base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ACCESS_BUFFER (1u << 20) // bytes that wait at most

struct access_output {
	const char *path; // borrowed; NULL = stdout
	int fd; // -1 = not open: a FIFO without a reader
	bool is_file; // takes what there is at once
	bool mid_line; // what was written last is not the end of a line
	size_t sent, len; // of buf
	atomic_uint_fast64_t n_lines; // written
	atomic_uint_fast64_t n_cut; // lines of which the rest was lost
	atomic_int error; // errno of what fails now; 0 = nothing
	char buf[ACCESS_BUFFER];
};

// Opens it; all else is zero. 0, or -errno with reterr; a FIFO that nobody reads is no error.
[[nodiscard]] int access_output_init(
	struct access_output *, const char *path, struct lb_err *reterr);
void access_output_fini(struct access_output *);
// Opens the path again, which may be another file now. If that fails, the old one stays.
void access_output_reopen(struct access_output *);

static inline size_t access_output_room(const struct access_output *o)
{
	return sizeof(o->buf) - o->len;
}
static inline bool access_output_waits(const struct access_output *o)
{
	return o->sent < o->len;
}
// For poll(): -1 = nothing to wait for but time.
static inline int access_output_fd(const struct access_output *o)
{
	return o->fd;
}
// Writes what can be written now, without waiting unless the disk does. False = nothing could be.
bool access_output_flush(struct access_output *);
