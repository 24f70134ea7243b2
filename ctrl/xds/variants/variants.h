// SPDX-License-Identifier: Apache-2.0
// The resources of one type, each name in several variants, and the subscriptions to them: the
// structure that xRFC TP2 describes for a server ("a database"), a client and a caching proxy ("a
// cache"). A resource is (this cache, name, constraints) (TP2-T01); a subscription is (name,
// parameters), shared by all who use the same (TP2-P04), and sees one variant or none.
// Changes come in sets. A set is first listed item by item, which can fail and be abandoned, and
// then takes effect as a whole, which cannot fail: nobody sees half of it, and the order of listing
// has no effect (TP2-T08, TP2-S05). If a subscription then sees another variant than before, it is
// told once, with the variant it was last told and the present one (TP2-S04, TP2-P03). A slow
// subscriber gets one difference, not a queue.
// The three uses:
// - server: `keeps_all`. A folder is one change of XDS_CHANGE_FULL; xds_variants_check() rejects
//   overlaps before it takes effect. A subscription that sees nothing: the resource does not exist
//   (TP2-S03).
// - client and proxy: a response is one change, LISTED for delta and for RDS and EDS in SotW, FULL
//   for LDS and CDS in SotW (TP2-T12), where xds_variants_keep() names resources that were present
//   but invalid (SW-13). A subscription that sees nothing only means "not yet" (TP2-P05): the
//   owner, who has a pointer in each subscription, adds timers and errors (TP2-T13). Resources
//   without a subscription are not stored (PC-08, TP2-L03), and freed when the last one ends. A
//   resource that may not be cached is forwarded with xds_variants_each_sub(), not set.
// If several variants match (TP2-L04; undefined in TP2), a subscription sees the one in use, or
// else the one with the smallest encoding. In SotW for RDS and EDS, where responses do not name
// deleted variants, later changes win over earlier ones (`newest_wins`, TP2-T12). A stream always
// wins over earlier streams (xds_variants_age()): a server that was disconnected cannot name the
// variants that its new ones replace.
// A change lists at most XDS_VARIANTS_MAX variants of a name, and a name has at most twice as many,
// to bound the work that a sender can cause: a change costs (subscriptions to its names x their
// variants), a check (variants squared).
// It does not handle bytes, the meaning of versions, or the wire. No I/O, no clock, no log.
// Thread: one owner.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct xds_constraints;
struct xds_params;
struct xds_variants;
struct xds_variants_name;

#define XDS_VARIANTS_MAX 1000

struct xds_variants_conf {
	const char *label; // of the type, for error texts: "cluster"; static
	bool keeps_all; // a database: keeps resources without subscriptions
	bool newest_wins; // SotW of a type whose responses name only existing resources (SW-14)
	void (*content_put)(void *content); // drops a reference
	// True if contents are equal: setting an equal variant tells nobody, and keeps the older
	// content.
	bool (*content_eq)(const void *, const void *);
};

// Immutable, except its version.
struct xds_variant {
	uint32_t n_refs;
	bool is_claimed; // a new stream's server was told that it is held (DL-13)
	bool is_wanted; // private
	struct xds_constraints *constraints; // counted; NULL = none
	const char *version; // from the last set(); counted (version.h); "" = none
	void *content;
	uint64_t change; // number of the change that last set it
	// Private:
	void (*content_put)(void *content);
	SLIST_ENTRY(xds_variant) link;
};

struct xds_sub {
	const char *name; // borrowed from the cache's xds_variants_name
	struct xds_params *params; // counted; NULL = none
	struct xds_variant *variant; // the one it sees, counted; NULL = none
	void *owner; // the user's; NULL at first
	// Number of variants that matched, at most twice XDS_VARIANTS_MAX; more than one =
	// ambiguous.
	uint32_t n_matches : 16;
	// Private:
	bool is_changed : 1;
	bool was_ambiguous : 1; // at any time
	bool newly_ambiguous : 1; // and not reported yet
	uint32_t n_refs;
	struct xds_sub *next_in_bucket;
	TAILQ_ENTRY(xds_sub) link, changed_link;
	struct xds_variant *told; // while in the list of changed ones; counted
};

// Copies conf. Returns NULL if out of memory.
struct xds_variants *xds_variants_new(const struct xds_variants_conf *);
void xds_variants_free(struct xds_variants *); // NULL is fine; after all subscriptions ended

// A variant outside any cache, without content: what a peer says it has. Count 1, the caller's.
// NULL = out of memory.
struct xds_variant *xds_variant_new(struct xds_constraints *, const char *version);
// A variant may outlive its cache. NULL is fine.
struct xds_variant *xds_variant_get(struct xds_variant *);
void xds_variant_put(struct xds_variant *);

// Subscriptions.

// Takes a reference to the subscription (name, params), and makes it if necessary (*ret_is_new). A
// new one sees present variants at once (TP2-L05, TP2-P05), without a change event. Returns 0 or
// -ENOMEM.
[[nodiscard]] int xds_sub_get(struct xds_variants *, const char *name, struct xds_params *,
	struct xds_sub **ret, bool *ret_is_new);
// NULL = there is no such subscription.
struct xds_sub *xds_sub_find(
	const struct xds_variants *, const char *name, const struct xds_params *);
// True = it was the last reference: frees the subscription, and what only it kept (TP2-P04).
bool xds_sub_put(struct xds_variants *, struct xds_sub *);

// Changes. One at a time; subscriptions may be added and removed while it is listed.

enum xds_change_kind {
	XDS_CHANGE_LISTED, // variants that are not listed stay
	XDS_CHANGE_FULL, // variants that are not listed are deleted
};
void xds_variants_begin(struct xds_variants *, enum xds_change_kind);
// Makes the change that is being listed XDS_CHANGE_FULL.
void xds_variants_set_full(struct xds_variants *);
// Returns 0, -ENOMEM, -EEXIST if this change already lists the variant (TP2-T11, DL-12), or -E2BIG
// if a name would have too many variants; reterr names it. Constraints and version are copied or
// counted; the cache takes over the content's reference, even on failure.
[[nodiscard]] int xds_variants_set(struct xds_variants *, const char *name,
	struct xds_constraints *, const char *version, void *content, struct lb_err *reterr);
// Deletes the variant with exactly these constraints (TP2-T07); a missing one is no error.
[[nodiscard]] int xds_variants_remove(
	struct xds_variants *, const char *name, struct xds_constraints *, struct lb_err *reterr);
// A server that comes back was not told everything that is held (TP2-T10). Now it says that the
// name has nothing, or lists all names: deletes variants that no change since xds_variants_age(),
// including this one, has set, and that are not claimed. Returns 0 or -ENOMEM.
[[nodiscard]] int xds_variants_remove_aged(struct xds_variants *, const char *name);
// The variant stays, although the change is full.
[[nodiscard]] int xds_variants_keep(
	struct xds_variants *, const char *name, struct xds_constraints *, struct lb_err *reterr);
// All variants of the name that the change does not list stay. Returns 0 or -ENOMEM.
[[nodiscard]] int xds_variants_keep_all(struct xds_variants *, const char *name);
// Two variants of a name that may both match; borrowed from the change.
struct xds_variants_clash {
	const char *name;
	const struct xds_constraints *a, *b;
};
// Checks for overlapping variants (TP2-S06), except in pairs that existed before. Returns 0,
// -ENOMEM, or -EINVAL: reterr names type, name, both constraints, and parameters that match both;
// *ret (ret may be NULL) is the pair.
[[nodiscard]] int xds_variants_check(
	struct xds_variants *, struct xds_variants_clash *ret, struct lb_err *reterr);
// The change takes effect.
void xds_variants_commit(struct xds_variants *);
// Abandons the change.
void xds_variants_abort(struct xds_variants *);
// The stream ended. Variants stay until another one that matches is set.
void xds_variants_age(struct xds_variants *);

// A subscription that sees another variant than it was last told. `before` and `after` are borrowed
// until the next call into the cache. The owner checks for equal content: a client's watchers are
// then not told, while a server's subscribers need the constraints.
struct xds_variants_event {
	struct xds_sub *sub;
	const struct xds_variant *before, *after; // NULL = none
	// The subscription became ambiguous for the first time: worth a log line (TP2-L04).
	// `before` and `after` may then be the same.
	bool newly_ambiguous;
};
// In the order in which they first changed. Returns false if there is none.
bool xds_variants_drain(struct xds_variants *, struct xds_variants_event *ret);

// Queries.

// The name is subscribed to, or has variants.
bool xds_variants_knows(const struct xds_variants *, const char *name);
// What a subscription with these parameters would see. NULL = nothing. n_matches may be NULL.
const struct xds_variant *xds_variants_match(const struct xds_variants *, const char *name,
	const struct xds_params *, uint32_t *ret_n_matches);
// By identity; NULL = none.
const struct xds_variant *xds_variants_find(
	const struct xds_variants *, const char *name, const struct xds_constraints *);
// The only variant of a name; NULL if it has none or several (TP2-T10).
const struct xds_variant *xds_variants_sole(const struct xds_variants *, const char *name);
// Names in order of creation, variants of a name by encoding. The cache must not change meanwhile.
void xds_variants_each(const struct xds_variants *,
	void (*fn)(void *ctx, const char *name, const struct xds_variant *), void *ctx);
// By name, each in order of creation. name NULL = all; otherwise those to the name whose parameters
// match the constraints: whom a resource error concerns (TP2-T13), or who gets a resource that is
// not kept (TP2-P06). fn may put the subscription it is given.
void xds_variants_each_sub(struct xds_variants *, const char *name, const struct xds_constraints *,
	void (*fn)(void *ctx, struct xds_sub *), void *ctx);

struct xds_variants_counts {
	uint32_t n_names, n_variants, n_subs; // now
	uint64_t n_changes; // that took effect
	uint64_t n_unwanted; // variants set but not stored, for lack of a subscription (TP2-L03)
	uint64_t n_ambiguous; // times that a subscription became ambiguous
};
void xds_variants_counts(const struct xds_variants *, struct xds_variants_counts *ret);
