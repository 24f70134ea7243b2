// SPDX-License-Identifier: Apache-2.0
// A folder of resources: each file *.json holds one, in protobuf's JSON form with "@type". Hidden
// files are passed over, so that a file may be written beside its place and renamed into it.
// Thread: one owner.
#pragma once

#include "tools/shunt-xds/resource_set.h"

// Called for everything that is wrong with the folder, with the file's name (or that of the
// folder).
typedef void (*folder_complaint)(void *ctx, const char *file, const char *text);

// Reads everything. Either all of it is right, or there is no new set: 0, -EINVAL or -errno of the
// folder (complaints were made, one per bad file), -ENOMEM.
[[nodiscard]] int folder_load(const char *path, const struct resource_set *before, folder_complaint,
	void *ctx, struct resource_set **ret);

// Tells that something has changed. What changes together is meant to become one version, so the
// watch waits until the folder has been quiet for a while, though not for ever.
struct folder_watch {
	const char *path; // borrowed
	int fd; // readable: call folder_watch_feed()
	int wd; // -1 = the folder is gone; its path is tried again and again
	uint64_t first_ns, last_ns; // of the changes that were not yet reported; 0 = none
	uint64_t retry_ns; // when to look for the folder again
};

// 0 or -errno: the folder can't be watched.
[[nodiscard]] int folder_watch_init(struct folder_watch *, const char *path);
void folder_watch_fini(struct folder_watch *);
// Reads what the kernel has to say.
void folder_watch_feed(struct folder_watch *, uint64_t now_ns);
// True, once, when it is time to load again.
[[nodiscard]] bool folder_watch_drain(struct folder_watch *, uint64_t now_ns);
// When drain() should be called next; UINT64_MAX = not before a change.
uint64_t folder_watch_due_ns(const struct folder_watch *);
