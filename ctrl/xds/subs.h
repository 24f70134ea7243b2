// SPDX-License-Identifier: Apache-2.0
// The subscriptions of one type: the entries of the cache by name, and what of them the server has
// been asked for. Both protocols read here what a request has to say. What the server has is one
// thing (variants.h), what the watchers use another: it may be kept though the server has it no
// more, or be dropped though it has (A88).
// Thread: ctrl.
#pragma once

#include "ctrl/xds/entry.h"
#include "lb/base/list.h"

struct xds_subs {
	struct list_link all; // xds_entry.all
	struct list_link pending; // wanted but not asked for, or asked for but not wanted
	struct list_link in_flight;
	uint32_t n; // wanted, by name
	// sotw.c's: all of those as requests list them; owned; NULL = to be made anew.
	uint8_t *names;
	size_t names_len;
	struct xds_server_updates updates; // so far
	struct xds_variants *variants; // what the server has, as far as it was said and is wanted
};

struct xds_protocol;
struct xds_type;

// 0 or -ENOMEM.
[[nodiscard]] int xds_subs_init(
	struct xds_subs *, const struct xds_type *, const struct xds_protocol *);
// Frees the entries; their watchers are forgotten.
void xds_subs_fini(struct xds_subs *);

// NULL = none
struct xds_entry *xds_subs_find(
	const struct xds_subs *, const char *name, const struct xds_params *);
// An entry that nobody wants yet: xds_subs_want() follows. NULL = out of memory.
struct xds_entry *xds_subs_add(struct xds_subs *, struct xds_cache *, uint32_t type,
	const char *name, struct xds_params *);
// The first watcher that asks has come. ask_again: also if the server has not been told of the end
// of the last subscription.
void xds_subs_want(struct xds_subs *, struct xds_entry *, bool ask_again);
// The last watcher that asks has gone. What the server does not know of is dropped at once, if
// nobody else watches it, the rest with the request that says so: until then the server goes on
// sending it, and a watch finds it (WA-13).
void xds_subs_unwant(struct xds_subs *, struct xds_entry *);
// A watcher that came by a wildcard has gone.
void xds_subs_left(struct xds_subs *, struct xds_entry *);

// A request has been made of all that is pending: what is wanted is in flight now, what is not is
// dropped (WA-09).
void xds_subs_sending(struct xds_subs *);
// The stream is over: the next one starts with asking for everything.
void xds_subs_lost(struct xds_subs *);
