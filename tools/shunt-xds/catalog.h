// SPDX-License-Identifier: Apache-2.0
// What there is to serve: a cache of variants (ctrl/xds/variants/variants.h) for each type, and
// what streams need to know of a type as a whole. What fills it changes it in sets, which take
// effect whole, for all types at once: a folder, all of which is listed each time, or another
// server, of whose resources only those are there that were asked for. The latter stands behind the
// catalog as its source: it is told what clients want, and says what it knows.
// Thread: one owner.
#pragma once

#include "ctrl/xds/variants/variants.h"
#include "tools/shunt-xds/resource.h"

#define CATALOG_TYPES_MAX 32
// Of one client, beside those of enum resource_type: nobody can use them up for all others.
#define CATALOG_TYPES_A_CLIENT 8
#define CATALOG_URL_MAX 200

struct catalog_source;

struct catalog_type {
	struct resource_type_info info;
	uint32_t index;
	uint32_t n_users; // clients that have opened it, and one more if it stays
	bool stays; // what fills the catalog has had resources of it
	struct catalog_source *source; // borrowed; NULL = what is not here is nowhere
	struct xds_variants *cache; // contents are struct resource
	bool newest_wins; // of variants that match, as ctrl/xds/variants/variants.h says
	const char **names; // catalog_names()
	size_t n_names, names_room;
	bool names_are_stale;
	size_t n; // variants of all names
	uint64_t version; // of all names and versions; 0 = there is nothing
	uint64_t generation; // grows when any subscription may see something else
	// The change that is listed.
	uint64_t next_version;
	size_t n_next;
};

struct catalog {
	struct catalog_type types[CATALOG_TYPES_MAX];
	uint32_t n_types; // the first are those of enum resource_type
	struct catalog_source *source;
	bool newest_wins;
	enum xds_change_kind change;
};

// Without a source. newest_wins: what fills it speaks SotW, so that of a type without full state it
// does not name what is gone (TP2-T12). NULL = out of memory.
struct catalog *catalog_new(bool newest_wins);
void catalog_free(struct catalog *); // NULL is fine; no subscription is left
// Before any subscription. The source outlives the catalog's clients.
void catalog_set_source(struct catalog *, struct catalog_source *);

// The type of this URL; NULL = there is none.
struct catalog_type *catalog_find_type(struct catalog *, const char *url);
// The same, for a client that has n of its own open. A type that is not there is made, as far as
// there is room and the URL, which is untrusted, looks like one; or it takes the place of one that
// nobody needs any more. 0, and *ret is NULL if it is not served, or -ENOMEM.
[[nodiscard]] int catalog_open_type(
	struct catalog *, const char *url, uint32_t n, struct catalog_type **ret);
// The type of this URL, for what fills the catalog: one that is made stays. 0, and *ret is NULL if
// there is no room or the URL doesn't look like one, or -ENOMEM.
[[nodiscard]] int catalog_add_type(struct catalog *, const char *url, struct catalog_type **ret);
// One that was made is not needed by this client any more, which has no subscription of it left.
void catalog_close_type(struct catalog *, struct catalog_type *);
static inline bool catalog_type_is_made(const struct catalog_type *type)
{
	return type->index >= N_RESOURCE_TYPES;
}

// Changes.

void catalog_begin(struct catalog *, enum xds_change_kind);
// Counts the resource. As xds_variants_set().
[[nodiscard]] int catalog_set(struct catalog *, struct resource *, struct lb_err *reterr);
// As xds_variants_remove().
[[nodiscard]] int catalog_remove(struct catalog *, uint32_t type, const char *name,
	struct xds_constraints *, struct lb_err *reterr);
// As xds_variants_check(), for all types; the pair is of *ret_type.
[[nodiscard]] int catalog_check(struct catalog *, enum resource_type *ret_type,
	struct xds_variants_clash *ret, struct lb_err *reterr);
void catalog_commit(struct catalog *);
void catalog_abort(struct catalog *);

// Looking.

// Borrowed; NULL = that name has no such variant.
const struct resource *catalog_find(
	const struct catalog *, uint32_t type, const char *name, const struct xds_constraints *);
static inline const struct resource *catalog_resource(const struct xds_variant *v)
{
	return v->content;
}
// Brings names up to date: all there are, in order, borrowed until the next change. 0 or -ENOMEM.
[[nodiscard]] int catalog_names(struct catalog_type *);

// Sources.

// What a source has to say of a subscription beside what it sees. It is the subscription's owner;
// without one all is said.
struct catalog_word {
	bool is_pending; // nothing is known: that it sees nothing means nothing (TP2-P05)
	// What it sees is not kept for others (TP2-P06): who comes now waits for a later change of
	// its variant than this one; 0 = it is.
	uint64_t not_kept;
	// Why it may see nothing, or nothing newer (TP3): code and text, borrowed; each error has
	// another number, 0 = there is none.
	uint64_t error;
	int32_t code;
	const char *text;
	struct xds_constraints *constraints; // whose trouble it is; NULL = everybody's
};
static inline const struct catalog_word *catalog_word(const struct xds_sub *sub)
{
	return sub->owner;
}
// Words of this type have changed.
static inline void catalog_touch(struct catalog_type *type)
{
	type->generation++;
}

struct catalog_source {
	// What the subscription takes in a request of the source's own.
	size_t (*len)(const struct catalog_source *, const struct xds_sub *);
	// A client wants to have subscriptions of the type that take so much. 0 or -EMSGSIZE.
	int (*admit)(struct catalog_source *, uint32_t type, size_t len);
	// One more client subscribes to it by name, or to "*". 0, -ENOMEM or -EMSGSIZE.
	int (*want)(struct catalog_source *, uint32_t type, struct xds_sub *);
	void (*unwant)(struct catalog_source *, uint32_t type, struct xds_sub *);
	// A type that was made has lost its last client, and others may need its place soon.
	void (*leave)(struct catalog_source *, uint32_t type);
	// A type that was made has no client, and its place is needed. False = something of it is
	// left; else another may have the index.
	bool (*drop)(struct catalog_source *, uint32_t type);
	char refusal[200]; // why it was -EMSGSIZE the last time
};
// Of the source, if there is one; else nothing happens.
[[nodiscard]] int catalog_want(const struct catalog_type *, struct xds_sub *);
void catalog_unwant(const struct catalog_type *, struct xds_sub *);
