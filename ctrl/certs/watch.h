// SPDX-License-Identifier: Apache-2.0
// inotify on paths that change by having links swapped, as Kubernetes does it: a path is followed
// link by link, and each directory is watched in which a link, the file itself, or the first name
// that is missing stands. What only replaces a directory on the way is not noticed.
// Thread: one owner.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cert_watch_point;

struct cert_watch {
	int fd; // readable when something may have changed
	struct cert_watch_point *list;
	uint32_t n;
};

// 0 or -errno.
[[nodiscard]] int cert_watch_init(struct cert_watch *);
void cert_watch_fini(struct cert_watch *);
// What the source, a number of the owner's, is made of; a path of a directory stands for what it
// holds. forget() first, and add() before the files are read, so that no change is missed. False =
// not all of it is watched: no memory, or the system's limit.
void cert_watch_forget(struct cert_watch *, uint32_t source);
bool cert_watch_add(struct cert_watch *, uint32_t source, const char *path);
// Reads all events; changed[] of the sources that they may concern becomes true. True = some did.
bool cert_watch_drain(struct cert_watch *, bool *changed, uint32_t n_sources);
