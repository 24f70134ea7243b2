// SPDX-License-Identifier: Apache-2.0
// What one client wants of one type, and what it was sent last of each. Knows no protocol: SotW and
// delta are two ways to change a subscription and to tell what differs.
// Thread: one owner.
#pragma once

#include "tools/shunt-xds/resource_set.h"

struct subscription_entry {
	char *name;
	bool named; // the client asked for it by name; false: it is here through the wildcard
	struct resource *sent; // counted; NULL = the client has none, as far as it was told
	struct resource *current; // borrowed from the set of the last refresh(); NULL = absent
};

struct subscription {
	struct subscription_entry *entries; // by name
	size_t n;
	bool wildcard;
	bool ever_named; // after a name, an empty list is no wildcard any more (SW-10)
};

void subscription_fini(struct subscription *); // zeroed storage is an empty subscription

// Replaces the list of names, as a SotW request gives it. "*" among the names is the wildcard; so
// is an empty list if empty_is_wildcard (the legacy form of LDS and CDS) and no name was ever
// given. 0 or -ENOMEM (nothing is changed then).
[[nodiscard]] int subscription_set_names(
	struct subscription *, char *const *names, size_t n, bool empty_is_wildcard);

// Looks every entry up in the set, and under the wildcard makes entries of what is new there. The
// set outlives the next refresh(). 0 or -ENOMEM.
[[nodiscard]] int subscription_refresh(
	struct subscription *, const struct resource_set *, enum resource_type);

// Forgets what was sent, so that everything is sent again.
void subscription_forget(struct subscription *);
// Remembers that the client was sent this (NULL: that it was told of the absence).
void subscription_sent(struct subscription_entry *, struct resource *);
