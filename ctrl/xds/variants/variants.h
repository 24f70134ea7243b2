// SPDX-License-Identifier: Apache-2.0
// The resources of one type, each name in several variants, and the subscriptions to them: what
// xRFC TP2 finds to be the same in a server ("a database"), a client and a caching proxy ("a
// cache"). A resource is (this cache, name, constraints) (TP2-T01); a subscription is (name,
// parameters), shared by everybody who has the same (TP2-P04), and sees one variant or none.
//
// Changes come in sets. A set is listed bit by bit, which can fail and be given up, and then takes
// effect whole, which cannot fail: nobody sees half of it, and in which order it was listed makes
// no difference (TP2-T08, TP2-S05). What a subscription sees then is compared with what it saw; if
// that differs, it is told once, from the variant that it was told last to the one of now
// (TP2-S04, TP2-P03). A subscriber that is slow finds one difference, not a queue.
//
// How the three use it:
//   server: `keeps_all`. A folder is one change of XDS_CHANGE_FULL; xds_variants_check() refuses
//     overlaps before it takes effect. Nothing seen = the resource does not exist (TP2-S03).
//   client and proxy: a response is one change, LISTED for delta and for RDS and EDS in SotW, FULL
//     for LDS and CDS in SotW (TP2-T12), where xds_variants_keep() says what was there but was bad
//     (SW-13). Nothing seen is only "not yet" (TP2-P05): whether it is known not to exist, timers
//     and errors are the owner's, who has a pointer in each subscription (TP2-T13). What nobody
//     subscribed to is not taken in (PC-08, TP2-L03), what nobody subscribes to any more is let
//     go. A resource that may not be cached is passed on with xds_variants_each_sub(), not set.
//
// Which variant, when several match (TP2-L04; undefined in TP2): the one in use, else the one of
// the smallest encoding. In SotW for RDS and EDS, where a variant that is gone is not named, a
// later change counts more than an earlier one (`newest_wins`, TP2-T12). So does in any case what a
// stream has said more than what an earlier one did (xds_variants_age()): a server that was not
// there cannot name the variants that it takes the place of.
//
// A change lists at most XDS_VARIANTS_MAX variants of a name, and a name has at most twice as many,
// since whoever sends them decides how much work they are: a change costs (subscriptions to its
// names x their variants), a check (variants squared).
// Not here: bytes, versions' meaning, the wire. No I/O, no clock, no log.
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
	const char *label; // of the type, for errors: "cluster"; static
	bool keeps_all; // a database: what nobody subscribes to stays too
	bool newest_wins; // SotW of a type whose responses name only what is there (SW-14)
	void (*content_put)(void *content); // drops a reference
	// Same content: a variant that is set again so tells nobody, and keeps the older content.
	bool (*content_eq)(const void *, const void *);
};

// Immutable, but for its version.
struct xds_variant {
	uint32_t n_refs;
	bool is_claimed; // the server of a new stream was told that it is held (DL-13)
	bool is_wanted; // the cache's
	struct xds_constraints *constraints; // counted; NULL = none
	const char *version; // as it was set with; counted (version.h); "" = none
	void *content;
	uint64_t change; // number of the change that set it last
	// The cache's.
	void (*content_put)(void *content);
	SLIST_ENTRY(xds_variant) link;
};

struct xds_sub {
	const char *name; // borrowed from the cache's xds_variants_name
	struct xds_params *params; // counted; NULL = none
	struct xds_variant *variant; // what it sees, counted; NULL = none
	void *owner; // the user's; NULL at first
	// Variants among which it was chosen, at most XDS_VARIANTS_MAX twice; more than one =
	// ambiguous.
	uint32_t n_matches : 16;
	// The cache's.
	bool is_changed : 1;
	bool was_ambiguous : 1; // ever
	bool newly_ambiguous : 1; // and not told yet
	uint32_t n_refs;
	struct xds_sub *next_in_bucket;
	TAILQ_ENTRY(xds_sub) link, changed_link;
	struct xds_variant *told; // while it is in the list of changed ones; counted
};

// conf is copied. NULL = out of memory.
struct xds_variants *xds_variants_new(const struct xds_variants_conf *);
void xds_variants_free(struct xds_variants *); // NULL is fine; no subscription is left

// A variant in no cache, without content: what a peer says that it holds. Count 1, the caller's;
// NULL = out of memory.
struct xds_variant *xds_variant_new(struct xds_constraints *, const char *version);
// A variant may outlive its cache. NULL is fine.
struct xds_variant *xds_variant_get(struct xds_variant *);
void xds_variant_put(struct xds_variant *);

// Subscriptions.

// Takes a reference to the subscription (name, params), which is made if there is none: *ret_is_new
// says so. A new one sees at once what is there (TP2-L05, TP2-P05), and no change is told of that.
// 0 or -ENOMEM.
[[nodiscard]] int xds_sub_get(struct xds_variants *, const char *name, struct xds_params *,
	struct xds_sub **ret, bool *ret_is_new);
// NULL = nobody subscribes to this.
struct xds_sub *xds_sub_find(
	const struct xds_variants *, const char *name, const struct xds_params *);
// True = it was the last reference: the subscription is gone, and what only it kept (TP2-P04).
bool xds_sub_put(struct xds_variants *, struct xds_sub *);

// Changes. One at a time; subscriptions may come and go while it is listed.

enum xds_change_kind {
	XDS_CHANGE_LISTED, // what is not listed stays as it is
	XDS_CHANGE_FULL, // what is not listed is gone
};
void xds_variants_begin(struct xds_variants *, enum xds_change_kind);
// 0, -ENOMEM, -EEXIST = this variant was listed in this change already (TP2-T11, DL-12), -E2BIG =
// more variants than a name may have; reterr names it. Constraints and version are copied or
// counted; the content's reference goes to the cache, also when it fails.
[[nodiscard]] int xds_variants_set(struct xds_variants *, const char *name,
	struct xds_constraints *, const char *version, void *content, struct lb_err *reterr);
// Only the variant with just these constraints (TP2-T07); one that is not there is no error.
[[nodiscard]] int xds_variants_remove(
	struct xds_variants *, const char *name, struct xds_constraints *, struct lb_err *reterr);
// A server that comes back was not told of all that is held (TP2-T10). Now it says that the name
// has nothing, or lists all names: what no change since xds_variants_age() has set, nor this one,
// and is not claimed, is gone. 0 or -ENOMEM.
[[nodiscard]] int xds_variants_remove_aged(struct xds_variants *, const char *name);
// It stays as it is, though the change is full.
[[nodiscard]] int xds_variants_keep(
	struct xds_variants *, const char *name, struct xds_constraints *, struct lb_err *reterr);
// All variants of the name stay that are not listed otherwise. 0 or -ENOMEM.
[[nodiscard]] int xds_variants_keep_all(struct xds_variants *, const char *name);
// Two variants of a name that may both match; borrowed from the change.
struct xds_variants_clash {
	const char *name;
	const struct xds_constraints *a, *b;
};
// Would variants overlap (TP2-S06)? Pairs that were there before are not looked at again. 0,
// -ENOMEM, or -EINVAL: reterr names type, name, both constraints, and parameters that match both;
// *ret (which may be NULL) is the pair.
[[nodiscard]] int xds_variants_check(
	struct xds_variants *, struct xds_variants_clash *ret, struct lb_err *reterr);
// It takes effect.
void xds_variants_commit(struct xds_variants *);
// It never was.
void xds_variants_abort(struct xds_variants *);
// The stream is over. What is there stays, until something else that matches is set.
void xds_variants_age(struct xds_variants *);

// A subscription that sees something else than it was told last. `before` and `after` are borrowed
// until the next call into the cache. Content that is the same in both is for the owner to notice:
// a client's watchers then hear nothing, a server's subscribers need to know the constraints.
struct xds_variants_event {
	struct xds_sub *sub;
	const struct xds_variant *before, *after; // NULL = none
	// For the first time in its life: worth a line in the log (TP2-L04). `before` and `after`
	// may be one then.
	bool newly_ambiguous;
};
// In the order in which they first changed. False = there is none.
bool xds_variants_drain(struct xds_variants *, struct xds_variants_event *ret);

// Looking.

// What a subscription with these parameters would see. NULL = nothing. n_matches may be NULL.
const struct xds_variant *xds_variants_match(const struct xds_variants *, const char *name,
	const struct xds_params *, uint32_t *ret_n_matches);
// By identity; NULL = not there.
const struct xds_variant *xds_variants_find(
	const struct xds_variants *, const char *name, const struct xds_constraints *);
// The one variant that a name has; NULL when it has none or several (TP2-T10).
const struct xds_variant *xds_variants_sole(const struct xds_variants *, const char *name);
// Names in order of their making, variants of one by encoding. The cache is not changed meanwhile.
void xds_variants_each(const struct xds_variants *,
	void (*fn)(void *ctx, const char *name, const struct xds_variant *), void *ctx);
// By name, each in order of their making. name NULL = all of them; else those to the name whose
// parameters match the constraints: whom a resource error concerns (TP2-T13), whom a resource
// that is not kept goes to (TP2-P06). fn may put the one it is given.
void xds_variants_each_sub(struct xds_variants *, const char *name, const struct xds_constraints *,
	void (*fn)(void *ctx, struct xds_sub *), void *ctx);

struct xds_variants_counts {
	uint32_t n_names, n_variants, n_subs; // now
	uint64_t n_changes; // that took effect
	uint64_t n_unwanted; // variants that were set and no subscription took (TP2-L03)
	uint64_t n_ambiguous; // times that a subscription became ambiguous
};
void xds_variants_counts(const struct xds_variants *, struct xds_variants_counts *ret);
