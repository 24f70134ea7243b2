// SPDX-License-Identifier: Apache-2.0
// The resources to be served: a cache of variants (ctrl/xds/variants/variants.h) per type, and what
// streams need to know about each type. It is changed in sets, which take effect as a whole for all
// types: by a folder, which lists everything each time, or by another server, of which only the
// requested resources are present. Such a server is the catalog's source: it is told what clients
// want, and reports what it knows.
// Thread: one owner.
#pragma once

#include "ctrl/xds/variants/variants.h"
#include "tools/shunt-xds/resource.h"

#define CATALOG_TYPES_MAX 32
// Limit per client, besides those of enum resource_type, so that no client can use them all up.
#define CATALOG_TYPES_A_CLIENT 8
#define CATALOG_URL_MAX 200

struct catalog_source;

struct catalog_type {
	struct resource_type_info info;
	uint32_t index;
	uint32_t n_users; // clients that have opened it, plus one if it stays
	bool stays; // its resources have been added to the catalog
	struct catalog_source *source; // borrowed; NULL = what is not in the catalog does not exist
	struct xds_variants *cache; // contents are struct resource
	bool newest_wins; // among matching variants, see ctrl/xds/variants/variants.h
	const char **names; // catalog_names()
	size_t n_names, names_room;
	bool names_are_stale;
	size_t n; // variants in total
	uint64_t version; // of all names and versions; 0 = empty
	uint64_t generation; // increases when any subscription may see a change
	// The change being listed.
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

// Without a source. newest_wins: it is filled by SotW, which does not name deleted resources of
// types without full state (TP2-T12). Returns NULL if out of memory.
struct catalog *catalog_new(bool newest_wins);
void catalog_free(struct catalog *); // NULL is fine; no subscription is left
// Call before any subscription. The source outlives the catalog's clients.
void catalog_set_source(struct catalog *, struct catalog_source *);

// The type with this URL; NULL = none.
struct catalog_type *catalog_find_type(struct catalog *, const char *url);
// The same, for a client that has opened n types besides. Makes a missing type if there is room, or
// replaces an unused one, and if the URL, which is untrusted, looks like one. Returns 0, with *ret
// NULL if the type is not served, or -ENOMEM.
[[nodiscard]] int catalog_open_type(
	struct catalog *, const char *url, uint32_t n, struct catalog_type **ret);
// The type with this URL, for filling the catalog: a type made here stays. Returns 0, with *ret
// NULL if there is no room or the URL does not look like one, or -ENOMEM.
[[nodiscard]] int catalog_add_type(struct catalog *, const char *url, struct catalog_type **ret);
// The client no longer needs this type, and has no subscription of it.
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

// Queries.

// Borrowed; NULL = that name has no such variant.
const struct resource *catalog_find(
	const struct catalog *, uint32_t type, const char *name, const struct xds_constraints *);
static inline const struct resource *catalog_resource(const struct xds_variant *v)
{
	return v->content;
}
// Updates names: all names in order, borrowed until the next change. Returns 0 or -ENOMEM.
[[nodiscard]] int catalog_names(struct catalog_type *);

// Sources.

// A source's word on a subscription, besides the variant that it sees; the subscription's owner.
// NULL = no further word.
struct catalog_word {
	bool is_pending; // nothing is known: seeing no variant means nothing (TP2-P05)
	// Its variant is not kept for others (TP2-P06): a new subscriber waits for a later change
	// of the variant than this one; 0 = it is kept.
	uint64_t not_kept;
	// Why it sees no variant, or no newer one (TP3): code and text, borrowed; each error has
	// its own number, 0 = none.
	uint64_t error;
	int32_t code;
	const char *text;
	struct xds_constraints *constraints; // the parameters concerned; NULL = all
};
static inline const struct catalog_word *catalog_word(const struct xds_sub *sub)
{
	return sub->owner;
}
// Words on this type have changed.
static inline void catalog_touch(struct catalog_type *type)
{
	type->generation++;
}

struct catalog_source {
	// The bytes of the subscription in a request of the source.
	size_t (*len)(const struct catalog_source *, const struct xds_sub *);
	// A client is about to subscribe to this many bytes of the type. Returns 0 or -EMSGSIZE.
	int (*admit)(struct catalog_source *, uint32_t type, size_t len);
	// One more client subscribes to it by name, or to "*". Returns 0, -ENOMEM or -EMSGSIZE.
	int (*want)(struct catalog_source *, uint32_t type, struct xds_sub *);
	void (*unwant)(struct catalog_source *, uint32_t type, struct xds_sub *);
	// A type that was made for clients has lost its last client; its place may be needed soon.
	void (*leave)(struct catalog_source *, uint32_t type);
	// The place of a type without clients is needed. Returns false if some of it is still in
	// use; otherwise the index may be reused.
	bool (*drop)(struct catalog_source *, uint32_t type);
	char refusal[200]; // the reason of the last -EMSGSIZE
};
// Call the source, if there is one.
[[nodiscard]] int catalog_want(const struct catalog_type *, struct xds_sub *);
void catalog_unwant(const struct catalog_type *, struct xds_sub *);
