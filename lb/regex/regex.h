// SPDX-License-Identifier: Apache-2.0
// Regular expressions as RE2 defines them (RX-01..RX-11): RE2 decides what is valid and what
// matches; Hyperscan runs the patterns for which it gives the same result, a set of patterns in one
// scan. A pattern must always match the whole subject.
// Thread: check() and set_new() on any thread, they take up to milliseconds per pattern; get/put on
// ctrl; match() on the thread that owns the scratch. match() takes no lock and allocates nothing
// unless the subject or a pattern needs RE2 (RX-05, RX-09).
#pragma once

#include "lb/base/err.h"
#include "lb/base/str.h"

#include <stdint.h>

#define LB_REGEX_SET_MAX 64 // patterns of a set: their hits are the bits of a word

struct lb_regex_set;
struct lb_regex_scratches;

// One pattern among those compiled together.
struct lb_regex_ref {
	struct lb_regex_set *set; // NULL = none
	uint32_t bit;
};

// Validates the pattern with RE2. Returns 0, or -EINVAL with the reason.
int lb_regex_check(struct str pattern, struct lb_err *reterr);

// Pattern i becomes bit i. Count 1. Returns NULL if out of memory, or for an invalid pattern.
struct lb_regex_set *lb_regex_set_new(
	const struct str *patterns, uint32_t n, struct lb_err *reterr);
struct lb_regex_set *lb_regex_set_get(struct lb_regex_set *);
void lb_regex_set_put(struct lb_regex_set *); // NULL is fine
bool lb_regex_set_is_shared(const struct lb_regex_set *); // more than one holds it
// The common prefix of all subjects that any of the patterns matches; "" = none.
struct str lb_regex_set_prefix(const struct lb_regex_set *);
size_t lb_regex_set_size(const struct lb_regex_set *); // bytes, RE2's not included
// The patterns that match the whole subject, as a bit set.
uint64_t lb_regex_set_match(const struct lb_regex_set *, struct lb_regex_scratches *,
	uint32_t thread, struct str subject);

// Memory that matching writes to, one per thread: workers 0 to n - 1, and ctrl as number n.
// Immutable as an object, counted by ctrl: a route table holds one that is large enough for all of
// its sets. Returns the old object, counted once more, if it fits the set; otherwise a new one that
// fits both. old may be NULL. NULL = out of memory.
struct lb_regex_scratches *lb_regex_scratches_fit(
	struct lb_regex_scratches *old, uint32_t n_workers, const struct lb_regex_set *);
void lb_regex_scratches_put(struct lb_regex_scratches *); // NULL is fine

// Search and replace (HP-03), RE2 alone: takes locks and allocates.
struct lb_regex_rewrite;
// Returns NULL with the reason: out of memory, or an invalid pattern or substitution.
struct lb_regex_rewrite *lb_regex_rewrite_new(
	struct str pattern, struct str substitution, struct lb_err *reterr);
void lb_regex_rewrite_free(struct lb_regex_rewrite *); // NULL is fine
// Replaces all matches; writes at most `room` bytes of the result to out. Returns how many.
size_t lb_regex_rewrite_apply(
	const struct lb_regex_rewrite *, struct str subject, char *out, size_t room);
