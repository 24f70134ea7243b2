// SPDX-License-Identifier: Apache-2.0
// How a subscription changes: a merge of two sorted lists into a new one, linear, and undone by
// forgetting it. Part of the subscription; nobody else's.
// Thread: one owner.
#pragma once

#include "tools/shunt-xds/subscription.h"

// A list of entries under construction. Entries are moved in from the old list or made new; until
// commit() the old list still owns what was moved.
struct subscription_merge {
	struct subscription_entry *out;
	size_t n;
};

// Old entries and those of the list, which is in order; the list's are marked. 0, -ENOMEM or
// -E2BIG: nothing is left of it.
[[nodiscard]] int subscription_merge_begin(struct subscription_merge *, const struct subscription *,
	const struct catalog_type *, const struct locator *, size_t n);
// Takes effect, with what is named asked of the catalog's source, or was never begun. As the
// subscription's changes.
[[nodiscard]] int subscription_merge_finish(
	struct subscription_merge *, struct subscription *, const struct catalog_type *);
// Puts the new list in place, without the entries that nobody wants; nobody is asked for more.
void subscription_merge_commit(
	struct subscription_merge *, struct subscription *, const struct catalog_type *);

// By name, then parameters.
int subscription_entry_cmp(const struct subscription_entry *, const struct locator *);
void subscription_entry_fini(struct subscription_entry *, const struct catalog_type *);
