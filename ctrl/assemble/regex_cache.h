// SPDX-License-Identifier: Apache-2.0
// Compiled sets of patterns by content, kept while tables use them and for some time after, and the
// thread that compiles them: Hyperscan takes milliseconds per pattern, and the control loop must
// not wait. A list of patterns is divided into small sets such that adding a pattern recompiles
// only one.
// Thread: ctrl; the compiling thread is internal.
#pragma once

#include "lb/base/err.h"
#include "lb/base/str.h"
#include "lb/regex/regex.h"

#include <stdbool.h>
#include <stdint.h>

struct regex_cache;

struct regex_cache_conf {
	// Compile inside ask(): for programs without a loop.
	bool synchronous;
};

// Returns NULL if out of memory or if no thread can be started.
struct regex_cache *regex_cache_new(const struct regex_cache_conf *);
// Waits for the set being compiled. NULL is fine.
void regex_cache_free(struct regex_cache *);

// The input of the patterns decides how they are divided: for paths, a lookup searches only sets
// whose literal prefix matches. Ask for patterns of different headers in separate calls: patterns
// asked for together may share a set, and each header's value is scanned for the whole set.
enum regex_cache_use { REGEX_OF_PATHS, REGEX_OF_HEADERS };

// Stores the place of each pattern in ret[n]; the sets are borrowed until the next sweep: to keep
// one, count a reference. All patterns must have passed lb_regex_check(). Returns 0; -EAGAIN: some
// are being compiled, ask again after poll() returns true; -EINVAL with reterr: a set cannot be
// compiled (out of memory).
int regex_cache_ask(struct regex_cache *, enum regex_cache_use, const struct str *patterns,
	uint32_t n, struct lb_regex_ref *ret, struct lb_err *reterr);
// Collects the compiled sets. True = there were some.
bool regex_cache_poll(struct regex_cache *);
// Forgets the queued sets that were not asked for since the last call, so that they do not delay
// others.
void regex_cache_forget_unasked(struct regex_cache *);
// Forgets sets without other references that were not asked for since the last two sweeps.
void regex_cache_sweep(struct regex_cache *);

struct regex_cache_totals {
	uint32_t n_sets, n_pending;
	size_t n_bytes; // of compiled sets, without RE2's
	uint64_t n_compiled; // sets, in total
};
struct regex_cache_totals regex_cache_count(const struct regex_cache *);
