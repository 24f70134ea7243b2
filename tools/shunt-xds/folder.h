// SPDX-License-Identifier: Apache-2.0
// A folder of resources: each file *.json contains one, in protobuf's JSON form with "@type" (or
// its bytes, proto/json.h), either bare or, for a variant with constraints (xRFC TP2), in
// envoy.service.discovery.v3.Resource. Hidden files are skipped, so that a file can be written
// under a hidden name and then renamed.
// An invalid file is reported, and its last valid content stays in use. The same applies to files
// that are invalid only in combination: two with the same variant, or with overlapping variants; of
// those, the changed ones keep their last content.
// Thread: one owner.
#pragma once

#include "tools/shunt-xds/catalog.h"

#include <sys/queue.h>

struct proto_json_scope;
struct proto_pool;

enum folder_fault {
	FOLDER_WRONG, // the file is not used
	FOLDER_LEFT_OUT, // the file is used without this field or type, which is unknown
};
// Called for each problem of the folder, with the name of the file or of the folder.
typedef void (*folder_complaint)(void *ctx, enum folder_fault, const char *file, const char *text);

// Identifies an unchanged file without reading it.
struct folder_stamp {
	bool is_valid;
	uint64_t dev, ino, size, mtime_ns, ctime_ns;
};

struct folder_file {
	TAILQ_ENTRY(folder_file) link;
	struct resource *good; // the content being served, counted; NULL = none
	struct resource *fresh; // the content read in this load, counted; NULL = none
	struct folder_stamp good_stamp, fresh_stamp; // of the files they were read from
	bool is_there;
	char name[];
};

struct folder {
	const char *path; // borrowed
	const struct proto_pool *pool; // types besides the compiled-in ones; borrowed, or NULL
	bool is_loaded;
	// A file younger than this when read may have changed since without a change of its stamp.
	uint64_t doubt_ns;
	TAILQ_HEAD(, folder_file) files; // by name
};

void folder_init(struct folder *, const char *path);
void folder_fini(struct folder *);

// Reads everything; valid content takes effect in the catalog at once. The first time all files
// must be valid. Returns 0; -EINVAL = problems were reported (and, except for the first time, the
// rest has taken effect); -errno of the folder (reported) or -ENOMEM = nothing changed.
[[nodiscard]] int folder_load(
	struct folder *, struct catalog *, folder_complaint, void *complaint_ctx);

// Parses one file's text and adds its type to the catalog. Returns 0, with *ret NULL if the type is
// unknown (reported to the scope), -ENOMEM, or -EINVAL with reterr naming the field.
[[nodiscard]] int folder_parse(const struct proto_json_scope *, struct catalog *, const char *text,
	size_t len, struct resource **ret, struct lb_err *reterr);

// Watches for changes. Related changes should become one version, so it waits until the folder has
// been quiet for a while, up to a limit.
struct folder_watch {
	const char *path; // borrowed
	int fd; // readable: call folder_watch_feed()
	int wd; // -1 = the folder does not exist; retried
	uint64_t first_ns, last_ns; // of unreported changes; 0 = none
	uint64_t retry_ns; // when to look for the folder again
};

// 0 or -errno: the folder can't be watched.
[[nodiscard]] int folder_watch_init(struct folder_watch *, const char *path);
void folder_watch_fini(struct folder_watch *);
// Reads the kernel's events.
void folder_watch_feed(struct folder_watch *, uint64_t now_ns);
// Returns true once when it is time to load again.
[[nodiscard]] bool folder_watch_drain(struct folder_watch *, uint64_t now_ns);
// When drain() should be called next; UINT64_MAX = not before a change.
uint64_t folder_watch_due_ns(const struct folder_watch *);
