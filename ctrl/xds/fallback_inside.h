// SPDX-License-Identifier: Apache-2.0
// What fallback.c (which server is active) and fallback_entry.c (the state of one name and its
// watchers) share. Private to them.
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

// One watched name. It may have both a value and an error (A88).
struct xds_fallback_entry {
	struct strmap_link link; // by name, in its type's map
	struct list_link all;
	struct list_link dirty; // a server reported something, or the active server changed
	struct xds_fallback *fallback;
	uint32_t type;
	char *name;
	struct xds_watchers watchers;

	enum xds_status status;
	struct xds_res *value; // counted; NULL = none
	uint32_t source; // the server that gave the value; …_NO_SOURCE = it is no longer in use
	struct twheel_timer ttl; // expiry of a value whose server is no longer in use (RS-04)
	uint64_t ttl_ns; // when ttl fires, while armed
	uint32_t left; // the server no longer in use
	bool left_stale; // and the value was stale
	char *version; // of the value; NULL = none
	uint64_t updated_ns;
	char *error; // the last server's error for it; NULL = none
	enum xds_code error_code;
	bool error_is_data;
	bool is_presumed; // absent, as an earlier run kept it; the server says nothing of it yet
	char *error_version; // rejected; NULL = none
	struct xds_refused *refused; // counted; NULL = none
	uint64_t error_ns;
	uint64_t error_serial;

	bool fresh, lost; // the value is new, or was removed, and the watchers have not been told
	uint64_t told; // serial of the problem that the watchers know of; 0 = none
	unsigned telling; // nesting depth of telling its watchers
	bool dead; // dropped while telling
	struct xds_fallback_inner inner[]; // by server; those up to the active one are watching
};

struct xds_fallback {
	struct xds_fallback_conf conf;
	uint32_t active;
	struct list_link all; // in order of subscription
	struct list_link dirty;
	struct list_link later; // dirty, but out of memory
	struct twheel_timer retry; // retries the entries in later
	struct strmap *by_name; // [conf.n_types]
	char *failure; // the servers' failure that the watchers know of; NULL = none
	uint64_t failure_serial;
	uint64_t n_serials; // counter; numbers problems
	uint64_t n_rounds; // counter; numbers events
};

// Owned texts: NULL stands for ""; out of memory, the old text stays.
static inline const char *xds_fallback_text(const char *s)
{
	return s ? s : "";
}
void xds_fallback_set_text(char **at, const char *text);

struct xds_client *xds_fallback_client(const struct xds_fallback *, uint32_t server);
// The active server's stream has failed.
bool xds_fallback_is_failing(const struct xds_fallback *);
// A server reported something about the entry, or the active server changed: the next
// xds_fallback_settle() handles it.
void xds_fallback_mark(struct xds_fallback_entry *);
// Out of memory: requests a call of xds_fallback_settle() later.
void xds_fallback_retry_later(struct xds_fallback *);

// Makes an entry without watchers and servers. Returns NULL if out of memory.
struct xds_fallback_entry *xds_fallback_entry_new(
	struct xds_fallback *, uint32_t type, const char *name);
void xds_fallback_entry_drop(struct xds_fallback_entry *); // freed when its watchers have been told
// Watches at the server, if it does not yet. Returns 0 or -ENOMEM: it is tried again at the next
// news.
[[nodiscard]] int xds_fallback_entry_watch(struct xds_fallback_entry *, uint32_t server);
void xds_fallback_entry_cancel(struct xds_fallback_entry *, uint32_t server);
// The server that gave its value is no longer in use. The value stays until its TTL expires
// (RS-04).
void xds_fallback_entry_leave(struct xds_fallback_entry *);
// Its value, or that it is absent, was kept by an earlier run, and no server has said anything
// since.
bool xds_fallback_entry_is_stale(const struct xds_fallback_entry *);
// Merges what the active server reported.
void xds_fallback_entry_merge(struct xds_fallback_entry *);
// Serial of the problem that its watchers must know of; 0 = none. A name without a value can wait
// as long as there is a server to wait for.
uint64_t xds_fallback_entry_trouble(const struct xds_fallback_entry *);
// Returns true if there was anything to tell.
bool xds_fallback_entry_tell(struct xds_fallback_entry *);
// Reports the present state to a new watcher (WA-02, WA-03, FM-10).
void xds_fallback_entry_tell_new(struct xds_fallback_entry *, struct xds_watcher *);
// Texts are valid until the next call.
void xds_fallback_entry_info(const struct xds_fallback_entry *, struct xds_entry_info *ret);
