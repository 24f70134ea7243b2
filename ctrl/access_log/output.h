// SPDX-License-Identifier: Apache-2.0
// Where lines of access logs go: a file, a FIFO or a stream, and the bytes that wait for it. Lines
// leave whole: what could not be written waits, and is written first. Only of a reader that goes in
// the middle of a line is the rest of that line lost.
// Thread: made and freed by ctrl, used by the log's own thread in between; the numbers are read by
// any. Opening, writing and closing may take as long as the disk does: of listeners' files that is
// the log's own thread's alone.
#pragma once

#include "ctrl/access_log/place.h"
#include "lb/base/counter.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ACCESS_BUFFER (1u << 20) // bytes that wait at most

struct access_output {
	struct access_place place; // its directory is borrowed
	const struct access_output *own; // shunt.yaml's, whose file this one is not; or NULL
	bool is_late; // the writer opens it, and closes it when it goes
	int fd; // -1 = not open: a FIFO without a reader, or what is late
	uint64_t open_ns; // late: when to try to open it again
	bool is_file; // takes what there is at once
	bool mid_line; // what was written last is not the end of a line
	size_t sent, len; // of buf
	uint64_t n_lines; // written; w: who uses it (relaxed), r: any (relaxed)
	// Lines of which the rest was lost, and those for which there was no room: likewise.
	uint64_t n_cut;
	atomic_int error; // errno of what fails now; 0 = nothing
	// The control thread's: how many logs there are of it, and what was told last.
	uint32_t n_users;
	uint64_t told_cut, told_ns;
	int told_error;
	char *path; // owned; the place has it
	char buf[ACCESS_BUFFER];
};

// Opens the place, whose path is copied and whose directory is borrowed, unless it is late. 0,
// -ENOMEM or -EINVAL with reterr; a FIFO that nobody reads is no error.
[[nodiscard]] int access_output_new(const struct access_place *, bool is_late,
	struct access_output **ret, struct lb_err *reterr);
void access_output_free(struct access_output *); // NULL is fine
// Tries to open what is not open: what is late once a second, a FIFO whenever lines wait.
void access_output_open(struct access_output *, uint64_t now_ns);
// Lines that wait are lost, and counted. It may be opened again.
void access_output_close(struct access_output *);
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
// Writes what can be written now, without waiting unless the disk does. False = nothing could be,
// or it is not open.
bool access_output_flush(struct access_output *);
// Lines that are not written; nobody else uses it.
uint64_t access_output_n_waiting(const struct access_output *);
// A line for which there is no room.
static inline void access_output_drop(struct access_output *o)
{
	counter_add(&o->n_cut, 1);
}
