// SPDX-License-Identifier: Apache-2.0
// What variants.c (names, subscriptions, queries) and variants_change.c (changes) share. Private to
// them.
// Thread: one owner.
#pragma once

#include "ctrl/base/strmap.h"
#include "ctrl/xds/variants/variants.h"
#include "lb/base/container_of.h"

#include <stddef.h>

enum edit_kind { EDIT_SET, EDIT_REMOVE, EDIT_KEEP };

// One variant as a change lists it.
struct xds_variants_edit {
	STAILQ_ENTRY(xds_variants_edit) link;
	enum edit_kind kind;
	struct xds_constraints *constraints; // counted
	struct xds_variant *variant; // SET: counted; NULL once it took effect
	bool is_known; // a variant with these constraints exists already
};

SLIST_HEAD(variant_list, xds_variant);
TAILQ_HEAD(sub_list, xds_sub);
STAILQ_HEAD(edit_list, xds_variants_edit);
TAILQ_HEAD(name_list, xds_variants_name);

// Exists as long as it has variants, subscriptions or edits.
struct xds_variants_name {
	struct strmap_link by_name;
	TAILQ_ENTRY(xds_variants_name) link, touched_link;
	struct variant_list variants; // by encoding, the smallest first
	struct sub_list subs;
	struct edit_list edits;
	uint32_t n_variants, n_edits;
	bool is_touched; // by the change being listed
	bool keeps_rest; // variants not listed stay, although the change is full
	char text[];
};

struct xds_variants {
	struct xds_variants_conf conf;
	struct strmap names;
	struct name_list all;
	struct xds_sub **buckets; // subscriptions by (name, parameters); NULL = none yet
	uint32_t n_buckets; // power of two
	uint32_t n_variants, n_subs;
	struct sub_list changed;
	struct xds_variant *drained; // `before` of the last event; counted
	const char *version; // last set; the next is usually equal; counted
	bool is_changing;
	enum xds_change_kind change;
	struct name_list touched;
	uint64_t n_changes, n_unwanted, n_ambiguous;
	uint64_t n_aged; // changes of earlier streams
};

static inline struct xds_variants_name *xds_variants_name_of(const struct xds_sub *s)
{
	return CONTAINER_OF((char *)(uintptr_t)s->name, struct xds_variants_name, text[0]);
}

// Counts the version. Returns NULL if out of memory.
struct xds_variant *xds_variants_make_variant(struct xds_constraints *, const char *version);
struct xds_variants_name *xds_variants_name_find(const struct xds_variants *, const char *);
// Finds or makes it. Returns NULL if out of memory.
struct xds_variants_name *xds_variants_name_make(struct xds_variants *, const char *);
// Frees it if it is empty.
void xds_variants_name_tidy(struct xds_variants *, struct xds_variants_name *);
// Removes the variant, without updating subscriptions.
void xds_variants_drop(struct xds_variants *, struct xds_variants_name *, struct xds_variant *);
// Frees variants without subscriptions. Returns how many of them change `of` had set.
uint32_t xds_variants_evict(struct xds_variants *, struct xds_variants_name *, uint64_t of);
// The variant for these parameters; prefers in_use (may be NULL, may be removed already).
struct xds_variant *xds_variants_choose(const struct xds_variants *,
	const struct xds_variants_name *, const struct xds_params *,
	const struct xds_variant *in_use, uint32_t *ret_n_matches);
// Releases the `before` of the last event.
void xds_variants_forget_drained(struct xds_variants *);
