// SPDX-License-Identifier: Apache-2.0
// What one client wants of one type, and what it was told last of each. Knows no protocol: SotW and
// delta are two ways to change a subscription and to tell what differs.
// Thread: one owner.
#pragma once

#include "tools/shunt-xds/catalog.h"

struct xds_params;

// Entries of a type that a client may have, itself or through wildcards.
#define SUBSCRIPTION_MAX 500000
#define SUBSCRIPTION_WILD_MAX 64 // wildcards, each with parameters of its own

// A name with parameters, or "*": all names with these parameters. Borrowed.
struct locator {
	const char *name;
	struct xds_params *params; // NULL = none
};

struct subscription_entry {
	struct xds_sub *sub; // counted; what it should have is sub->variant
	struct xds_variant *sent; // counted; what it has, as far as it was told; NULL = nothing
	bool named; // the client asked for it by name
	bool wild; // it is here through a wildcard
	// Neither: but the client may keep what was sent for it for another of its subscriptions,
	// and is to be rid of it when that sees something else (delta).
	bool left;
	bool is_wanted; // of the catalog's source
	bool asked; // an answer is due though nothing differs; in delta "there is none" is one
	uint64_t error; // the last that was told (catalog_word()); 0 = none
	uint64_t after; // only a later change of the variant counts (catalog_word.not_kept)
	bool is_listed, is_new, is_newly_wanted; // while the list changes
};

struct subscription {
	struct subscription_entry *entries; // by name, then parameters
	size_t n;
	struct xds_sub **wild; // to "*", by order; counted, wanted
	size_t n_wild;
	bool ever_named; // after a name, an empty list is no wildcard any more (SW-10)
	bool wild_is_new; // the last list of SotW has a wildcard that the one before had not
	bool wild_is_stale; // look again, though the catalog is the same
	uint64_t wild_generation; // of the catalog, when it was looked through last
};

// Zeroed storage is an empty subscription.
void subscription_fini(struct subscription *, const struct catalog_type *);

// All that may fail: -ENOMEM, -E2BIG = more than those, or -EMSGSIZE = more than the catalog's
// source has room for, which says why; nothing is changed then.

// Replaces the list, as a SotW request does. An empty one is the legacy wildcard if
// empty_is_wildcard and no name was ever given.
[[nodiscard]] int subscription_set(struct subscription *, const struct catalog_type *,
	struct locator *, size_t n, bool empty_is_wildcard);
// Takes away and adds, as a delta request does; what is in both is asked for anew (DL-09). The
// lists are sorted in place.
[[nodiscard]] int subscription_change(struct subscription *, const struct catalog_type *,
	struct locator *add, size_t n_add, struct locator *remove, size_t n_remove);

// What a client says after a reconnect that it has: a name in a version. For what it did not
// subscribe to it means nothing.
struct holding {
	const char *name, *version; // borrowed
};
[[nodiscard]] int subscription_hold(
	struct subscription *, const struct catalog_type *, struct holding *, size_t n);

// Makes entries of what is new under the wildcards, and drops those of what is gone and told.
[[nodiscard]] int subscription_refresh(struct subscription *, struct catalog_type *);

// Forgets what was sent, so that everything is sent again.
void subscription_forget(struct subscription *);
// The client was told: it now has this variant, or nothing (NULL).
void subscription_told(struct subscription_entry *, struct xds_variant *);
