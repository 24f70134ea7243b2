// SPDX-License-Identifier: Apache-2.0
// What one client wants of one type, and what it was last sent of each. It knows no protocol: SotW
// and delta are two ways to change a subscription and to report differences.
// Thread: one owner.
#pragma once

#include "tools/shunt-xds/catalog.h"

struct xds_params;

// Limit of a client's entries of a type, named or through wildcards.
#define SUBSCRIPTION_MAX 500000
#define SUBSCRIPTION_WILD_MAX 64 // wildcards, each with parameters of its own

// A name with parameters, or "*": all names with these parameters. Borrowed.
struct locator {
	const char *name;
	struct xds_params *params; // NULL = none
};

struct subscription_entry {
	struct xds_sub *sub; // counted; sub->variant is what the client should have
	struct xds_variant *sent; // counted; what the client has; NULL = nothing
	bool named; // the client subscribes to the name
	bool wild; // it is present through a wildcard
	// If neither: the client may keep its variant for another of its subscriptions, and must be
	// told to drop it when that one sees another (delta).
	bool left;
	bool is_wanted; // requested from the catalog's source
	bool asked; // an answer is due even without a difference; in delta "does not exist" is one
	uint64_t error; // the last one sent (catalog_word()); 0 = none
	uint64_t after; // only a later change of the variant is sent (catalog_word.not_kept)
	bool is_listed, is_new, is_newly_wanted; // used while the list changes
};

struct subscription {
	struct subscription_entry *entries; // by name, then parameters
	size_t n;
	struct xds_sub **wild; // subscriptions to "*", in order; counted, wanted
	size_t n_wild;
	bool ever_named; // once a name was given, an empty list is no wildcard (SW-10)
	bool wild_is_new; // the last SotW list has a wildcard that the one before did not have
	bool wild_is_stale; // check again, even if the catalog is unchanged
	uint64_t wild_generation; // the catalog's, at the last check
};

// Zeroed storage is an empty subscription.
void subscription_fini(struct subscription *, const struct catalog_type *);

// All that may fail return -ENOMEM, -E2BIG above the limit, or -EMSGSIZE if the catalog's source
// has no room, with the reason there; nothing is changed then.

// Replaces the list, as a SotW request does. An empty one is the legacy wildcard if
// empty_is_wildcard and no name was ever given.
[[nodiscard]] int subscription_set(struct subscription *, const struct catalog_type *,
	struct locator *, size_t n, bool empty_is_wildcard);
// Unsubscribes and subscribes, as a delta request does; a name in both lists is requested anew
// (DL-09). Sorts the lists in place.
[[nodiscard]] int subscription_change(struct subscription *, const struct catalog_type *,
	struct locator *add, size_t n_add, struct locator *remove, size_t n_remove);

// A resource that the client claims to have after a reconnect: a name in a version. Ignored if the
// client does not subscribe to it.
struct holding {
	const char *name, *version; // borrowed
};
[[nodiscard]] int subscription_hold(
	struct subscription *, const struct catalog_type *, struct holding *, size_t n);

// Adds entries for new names under the wildcards, and drops those that were deleted and reported.
[[nodiscard]] int subscription_refresh(struct subscription *, struct catalog_type *);

// Forgets what was sent, so that everything is sent again.
void subscription_forget(struct subscription *);
// The client was sent this variant, or its deletion (NULL).
void subscription_told(struct subscription_entry *, struct xds_variant *);
