// SPDX-License-Identifier: Apache-2.0
// The subscriptions of one type: the cache's entries by name, and which of them the server has been
// asked for. Both protocols build requests from it. What the server has (variants.h) and what
// watchers use may differ: a value may be kept after the server deleted it, or dropped before
// (A88).
// Thread: ctrl.
#pragma once

#include "ctrl/xds/entry.h"
#include "lb/base/list.h"

struct xds_subs {
	struct list_link all; // xds_entry.all
	struct list_link pending; // wanted but not asked for, or asked for but not wanted
	struct list_link in_flight;
	uint32_t n; // wanted names
	// sotw.c's: all wanted names, in request order; owned; NULL = must be rebuilt
	uint8_t *names;
	size_t names_len;
	struct xds_server_updates updates; // received so far
	uint64_t n_skipped; // resources of names without a subscription, so far
	struct xds_variants *variants; // what the server has sent of the wanted names
};

struct xds_protocol;
struct xds_type;

// Returns 0 or -ENOMEM.
[[nodiscard]] int xds_subs_init(
	struct xds_subs *, const struct xds_type *, const struct xds_protocol *);
// Frees the entries and forgets their watchers.
void xds_subs_fini(struct xds_subs *);

// NULL = none.
struct xds_entry *xds_subs_find(
	const struct xds_subs *, const char *name, const struct xds_params *);
// Makes an entry without watchers; the caller must call xds_subs_want(). Returns NULL if out of
// memory.
struct xds_entry *xds_subs_add(struct xds_subs *, struct xds_cache *, uint32_t type,
	const char *name, struct xds_params *);
// The entry has its first watcher that requires asking. ask_again: ask even if the server was not
// told of the end of the last subscription.
void xds_subs_want(struct xds_subs *, struct xds_entry *, bool ask_again);
// The last watcher that requires asking is gone. An entry that the server does not know of is
// dropped at once, if it has no other watchers; any other with the request that unsubscribes. Until
// then the server keeps sending it, and a new watch finds it (WA-13).
void xds_subs_unwant(struct xds_subs *, struct xds_entry *);
// A watcher from a wildcard is gone.
void xds_subs_left(struct xds_subs *, struct xds_entry *);

// A request was made of all pending entries: wanted ones are now in flight, others are dropped
// (WA-09).
void xds_subs_sending(struct xds_subs *);
// The stream ended: the next one begins by asking for everything.
void xds_subs_lost(struct xds_subs *);
