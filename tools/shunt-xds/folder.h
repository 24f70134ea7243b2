// SPDX-License-Identifier: Apache-2.0
// A folder of resources: each file *.json holds one, in protobuf's JSON form with "@type" (or its
// bytes, proto/json.h), bare or,
// for a variant with constraints (xRFC TP2), in envoy.service.discovery.v3.Resource. Hidden files
// are passed over, so that a file may be written beside its place and renamed into it.
//
// A file that is wrong is complained about, and what it was when it was last right stays. So do
// files that are wrong only together: two with the same variant, or with variants that overlap; of
// those, the ones that changed stay as they were.
// Thread: one owner.
#pragma once

#include "tools/shunt-xds/catalog.h"

#include <sys/queue.h>

struct proto_json_scope;
struct proto_pool;

enum folder_fault {
	FOLDER_WRONG, // it is not taken
	FOLDER_LEFT_OUT, // the rest of it is: nothing here knows this field or type
};
// Called for everything that is wrong with the folder, with the file's name (or that of the
// folder).
typedef void (*folder_complaint)(void *ctx, enum folder_fault, const char *file, const char *text);

// By which a file is known again without reading it.
struct folder_stamp {
	bool is_valid;
	uint64_t dev, ino, size, mtime_ns, ctime_ns;
};

struct folder_file {
	TAILQ_ENTRY(folder_file) link;
	struct resource *good; // what is served of it, counted; NULL = nothing
	struct resource *fresh; // what this load makes of it, counted; NULL = nothing
	struct folder_stamp good_stamp, fresh_stamp; // of the file that they were made of
	bool is_there;
	char name[];
};

struct folder {
	const char *path; // borrowed
	const struct proto_pool *pool; // types beside those that are compiled in; borrowed, or NULL
	bool is_loaded;
	// A file that was younger when it was read may have changed since with the same stamp.
	uint64_t doubt_ns;
	TAILQ_HEAD(, folder_file) files; // by name
};

void folder_init(struct folder *, const char *path);
void folder_fini(struct folder *);

// Reads everything, and what is right takes effect in the catalog at once. The first time all of it
// must be right. 0; -EINVAL = complaints were made (and, but for the first time, the rest has taken
// effect); -errno of the folder (with a complaint) or -ENOMEM = nothing has.
[[nodiscard]] int folder_load(
	struct folder *, struct catalog *, folder_complaint, void *complaint_ctx);

// One file's text, whose type is added to the catalog. 0, and *ret is NULL if the scope was told
// that the type is not known, -ENOMEM or -EINVAL: reterr names the field.
[[nodiscard]] int folder_parse(const struct proto_json_scope *, struct catalog *, const char *text,
	size_t len, struct resource **ret, struct lb_err *reterr);

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
