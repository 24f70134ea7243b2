// SPDX-License-Identifier: Apache-2.0
// What fallback.c (which server is active) and fallback_entry.c (what is known of one name, and who
// has been told) share. Nobody else's.
// Thread: ctrl.
#pragma once

#include "ctrl/base/strmap.h"
#include "ctrl/xds/fallback.h"
#include "ctrl/xds/watchers.h"
#include "lb/base/list.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <stddef.h>

#define XDS_FALLBACK_NO_SOURCE UINT32_MAX
#define XDS_FALLBACK_RETRY_NS NS_PER_SECOND // when there was no memory

// A watch of one name at one server.
struct xds_fallback_inner {
	struct xds_watcher watcher; // first member
	struct xds_fallback_entry *entry;
};

// One name that somebody watches. The value may stand beside an error (A88).
struct xds_fallback_entry {
	struct strmap_link link; // by name, in its type's map
	struct list_link all;
	struct list_link dirty; // a server has said something, or the active one is another
	struct xds_fallback *fallback;
	uint32_t type;
	char *name;
	struct xds_watchers watchers;

	enum xds_status status;
	struct xds_res *value; // counted; NULL = none
	uint32_t source; // the server that gave the value; …_NO_SOURCE = it was left since
	struct twheel_timer ttl; // of a value whose server was left (RS-04)
	uint64_t ttl_ns; // while it is armed: when
	uint32_t left; // that server
	char *version; // of the value; NULL = none
	uint64_t updated_ns;
	char *error; // what the last server to speak of it has against it; NULL = nothing
	enum xds_code error_code;
	bool error_is_data;
	char *error_version; // rejected; NULL = none
	struct xds_refused *refused; // counted; NULL = none
	uint64_t error_ns;
	uint64_t error_serial;

	bool fresh, lost; // the value is new, or was taken away, and the watchers do not know yet
	uint64_t told; // serial of the trouble that the watchers know of; 0 = of none
	unsigned telling; // its watchers are being told, within each other
	bool dead; // dropped meanwhile
	struct xds_fallback_inner inner[]; // by server; those up to the active one watch
};

struct xds_fallback {
	struct xds_fallback_conf conf;
	uint32_t active;
	struct list_link all; // in order of subscription
	struct list_link dirty;
	struct list_link later; // dirty, but there was no memory
	struct twheel_timer retry; // of what there was no memory for
	struct strmap *by_name; // [conf.n_types]
	char *failure; // what the watchers know of the servers; NULL = nothing is wrong
	uint64_t failure_serial;
	uint64_t n_serials; // numbers troubles
	uint64_t n_rounds; // numbers events
};

// Owned texts: NULL stands for "", and one that there is no memory for leaves the old one.
static inline const char *xds_fallback_text(const char *s)
{
	return s ? s : "";
}
void xds_fallback_set_text(char **at, const char *text);

struct xds_client *xds_fallback_client(const struct xds_fallback *, uint32_t server);
// The active server's stream is in trouble.
bool xds_fallback_is_failing(const struct xds_fallback *);
// Something was said of it, or the active server is another: it is merged and told in the next
// xds_fallback_settle().
void xds_fallback_mark(struct xds_fallback_entry *);
// There was no memory: xds_fallback_settle() is asked for in a while.
void xds_fallback_retry_later(struct xds_fallback *);

// Entries. One that nobody watches, at any server. NULL = out of memory.
struct xds_fallback_entry *xds_fallback_entry_new(
	struct xds_fallback *, uint32_t type, const char *name);
void xds_fallback_entry_drop(struct xds_fallback_entry *); // lasts while it is being told
// Watches at the server, if not already. 0 or -ENOMEM: then it is tried again when there is news.
[[nodiscard]] int xds_fallback_entry_watch(struct xds_fallback_entry *, uint32_t server);
void xds_fallback_entry_cancel(struct xds_fallback_entry *, uint32_t server);
// The server that gave its value is left. The value outlives that, but not its TTL (RS-04).
void xds_fallback_entry_leave(struct xds_fallback_entry *);
// Takes in what the active server has said.
void xds_fallback_entry_merge(struct xds_fallback_entry *);
// Serial of the trouble that its watchers are to know of; 0 = none. A name without a value can wait
// while there is a server to wait for.
uint64_t xds_fallback_entry_trouble(const struct xds_fallback_entry *);
// True = there was something to tell.
bool xds_fallback_entry_tell(struct xds_fallback_entry *);
// What a new watcher is to know at once (WA-02, WA-03, FM-10).
void xds_fallback_entry_tell_new(struct xds_fallback_entry *, struct xds_watcher *);
// Texts are valid until the next call.
void xds_fallback_entry_info(const struct xds_fallback_entry *, struct xds_entry_info *ret);
