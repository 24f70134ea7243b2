// SPDX-License-Identifier: Apache-2.0
// Changes a subscription: merges two sorted lists into a new one, in linear time; discarding it
// undoes the change. Private to the subscription.
// Thread: one owner.
#pragma once

#include "tools/shunt-xds/subscription.h"

// A list of entries under construction. Entries are taken from the old list or made new; the old
// list owns its entries until commit().
struct subscription_merge {
	struct subscription_entry *out;
	size_t n;
};

// Merges old entries with those of the list, which is sorted; marks the list's. Returns 0, or
// -ENOMEM or -E2BIG with nothing to undo.
[[nodiscard]] int subscription_merge_begin(struct subscription_merge *, const struct subscription *,
	const struct catalog_type *, const struct locator *, size_t n);
// Takes effect and requests the named entries from the catalog's source, or on an error changes
// nothing. Returns as the subscription's changes do.
[[nodiscard]] int subscription_merge_finish(
	struct subscription_merge *, struct subscription *, const struct catalog_type *);
// Installs the new list, without entries that are no longer wanted; requests nothing.
void subscription_merge_commit(
	struct subscription_merge *, struct subscription *, const struct catalog_type *);

// By name, then parameters.
int subscription_entry_cmp(const struct subscription_entry *, const struct locator *);
void subscription_entry_fini(struct subscription_entry *, const struct catalog_type *);
