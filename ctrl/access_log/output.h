// SPDX-License-Identifier: Apache-2.0
// Where lines of access logs go, and the bytes that wait for it: a file, a FIFO or a stream
// (ctrl/access_log/file.h), or as entries a collector (ctrl/access_log/collector.h). Lines leave
// whole. What is common to all outputs is here; each kind has its own way to write.
// Thread: made and freed by ctrl, used by the log's own thread in between; the numbers are read by
// any. Opening, writing and closing may take as long as the disk does: of listeners' outputs that
// is the log's own thread's alone.
#pragma once

#include "ctrl/access_log/place.h"
#include "lb/base/counter.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ACCESS_BUFFER (1u << 20) // bytes that wait at most

struct access_output;

struct access_output_kind {
	void (*free)(struct access_output *);
	void (*open)(struct access_output *, uint64_t now_ns);
	void (*close)(struct access_output *);
	void (*reopen)(struct access_output *);
	bool (*waits)(const struct access_output *);
	bool (*flush)(struct access_output *);
	void (*finish)(struct access_output *, bool is_last); // NULL = there is nothing to do
	uint64_t (*n_waiting)(const struct access_output *);
};

struct access_output {
	const struct access_output_kind *kind;
	struct access_place place; // its directory is borrowed, its other texts are owned
	const struct access_output *own; // shunt.yaml's, whose file this one is not; or NULL
	int fd; // -1 = not open
	short events; // what poll() is to look for on it
	size_t len; // of buf
	uint64_t n_lines; // written; w: who uses it (relaxed), r: any (relaxed)
	// Lines of which the rest was lost, and those for which there was no room: likewise.
	uint64_t n_cut;
	uint64_t n_failed; // that a service was sent by a stream which failed: likewise
	uint64_t n_unopened; // tries to open its path again which failed: likewise
	atomic_int error; // of access_place_error(): what fails now; 0 = nothing
	atomic_int reopen_error; // why its path cannot be opened again; 0 = it is what is written
	// The control thread's: how many logs there are of it, and what was told last.
	uint32_t n_users;
	uint64_t told_cut, told_ns;
	int told_error;
	char buf[ACCESS_BUFFER];
};

// For the kinds: the common part of one that is zeroed. 0 or -ENOMEM.
[[nodiscard]] int access_output_init(struct access_output *, const struct access_output_kind *,
	const struct access_place *, struct lb_err *reterr);
void access_output_fini(struct access_output *);

static inline void access_output_free(struct access_output *o) // NULL is fine
{
	if (o)
		o->kind->free(o);
}
// Tries to open what is not open: what is late or moved once a second, a FIFO whenever lines wait;
// takes note of what a collector says. Call in each round.
static inline void access_output_open(struct access_output *o, uint64_t now_ns)
{
	o->kind->open(o, now_ns);
}
// Lines that wait are lost, and counted. It may be opened again.
static inline void access_output_close(struct access_output *o)
{
	o->kind->close(o);
}
// The path may be another file now: the next access_output_open() opens it again, and once a second
// those behind it, until that works. Meanwhile the old one is written.
static inline void access_output_reopen(struct access_output *o)
{
	o->kind->reopen(o);
}
static inline size_t access_output_room(const struct access_output *o)
{
	return sizeof(o->buf) - o->len;
}
// Its end has to wait, for lines that are not written. What is written in batches has none before
// no line follows.
static inline bool access_output_waits(const struct access_output *o)
{
	return o->kind->waits(o);
}
// Writes what can be written now, without waiting unless the disk does; batches that are due. Call
// in each round, whether it waits or not. False = lines wait, and nothing could be written.
static inline bool access_output_flush(struct access_output *o)
{
	return o->kind->flush(o);
}
// Whether no line follows those that it has. Then what is written in batches is so at once.
static inline void access_output_finish(struct access_output *o, bool is_last)
{
	if (o->kind->finish)
		o->kind->finish(o, is_last);
}
// Lines that are not written; nobody else uses it.
static inline uint64_t access_output_n_waiting(const struct access_output *o)
{
	return o->kind->n_waiting(o);
}
static inline void access_output_set_error(struct access_output *o, int error)
{
	atomic_store_explicit(&o->error, error, memory_order_relaxed);
}
// A line for which there is no room.
static inline void access_output_drop(struct access_output *o)
{
	counter_add(&o->n_cut, 1);
}
