// SPDX-License-Identifier: Apache-2.0
// What the server has: a cache of variants (ctrl/xds/variants.h) for each type, and what streams
// need to know of a type as a whole. A change lists everything that is there from then on and takes
// effect whole, for all types at once.
// Thread: one owner.
#pragma once

#include "ctrl/xds/variants.h"
#include "tools/shunt-xds/resource.h"

struct catalog_type {
	struct xds_variants *cache; // contents are struct resource
	struct resource **names; // one resource of each name, by name; counted
	size_t n_names;
	size_t n; // variants of all names
	uint64_t version; // made of all names and versions; 0 = there is nothing
	uint64_t generation; // grows when any subscription may see something else
	// The change that is listed.
	struct resource **next;
	size_t n_next, room;
};

struct catalog {
	struct catalog_type types[N_RESOURCE_TYPES];
};

// NULL = no memory.
struct catalog *catalog_new(void);
void catalog_free(struct catalog *); // NULL is fine; no subscription is left

void catalog_begin(struct catalog *);
// Counts the resource. As xds_variants_set().
[[nodiscard]] int catalog_set(struct catalog *, struct resource *, struct lb_err *reterr);
// As xds_variants_check(), for all types; the pair is of *ret_type.
[[nodiscard]] int catalog_check(struct catalog *, enum resource_type *ret_type,
	struct xds_variants_clash *ret, struct lb_err *reterr);
void catalog_commit(struct catalog *);
void catalog_abort(struct catalog *);

// Borrowed; NULL = that name has no such variant.
const struct resource *catalog_find(const struct catalog *, enum resource_type, const char *name,
	const struct xds_constraints *);
static inline const struct resource *catalog_resource(const struct xds_variant *v)
{
	return v->content;
}
