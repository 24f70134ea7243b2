// SPDX-License-Identifier: Apache-2.0
// Compiled sets of patterns by what is in them, kept while tables use them and a while longer, and
// the one thread that compiles: Hyperscan takes milliseconds a pattern, the control loop never
// waits for it. A list of patterns is cut into small sets such that adding one pattern makes one
// set anew.
// Thread: ctrl; the compiling thread is its own affair.
#pragma once

#include "lb/base/err.h"
#include "lb/base/str.h"
#include "lb/regex/regex.h"

#include <stdbool.h>
#include <stdint.h>

struct regex_cache;

struct regex_cache_conf {
	// Compiles inside ask(): for programs without a loop.
	bool synchronous;
};

// NULL = out of memory, or no thread.
struct regex_cache *regex_cache_new(const struct regex_cache_conf *);
// Waits for the set that is being compiled. NULL is fine.
void regex_cache_free(struct regex_cache *);

// What the patterns are matched with decides how they are cut: of paths, only sets whose literal
// start the path has are looked at. Patterns of different headers do best in calls of their own:
// what is asked together may share a set, and each header's value is then scanned for all of it.
enum regex_cache_use { REGEX_OF_PATHS, REGEX_OF_HEADERS };

// Where each pattern is, in ret[n]; the sets are borrowed until the next sweep: whoever keeps one
// takes a reference. All of them passed lb_regex_check(). 0; -EAGAIN: some are being compiled, ask
// again after poll() said so; -EINVAL and reterr: a set cannot be made (out of memory).
int regex_cache_ask(struct regex_cache *, enum regex_cache_use, const struct str *patterns,
	uint32_t n, struct lb_regex_ref *ret, struct lb_err *reterr);
// Takes in what has been compiled. True = there was something.
bool regex_cache_poll(struct regex_cache *);
// Of the sets that wait for the thread, forgets those that nobody asked for since the last call:
// what is wanted now is not to wait behind what was wanted once.
void regex_cache_forget_unasked(struct regex_cache *);
// Forgets sets that nobody else holds and nobody asked for since the last two sweeps.
void regex_cache_sweep(struct regex_cache *);

struct regex_cache_totals {
	uint32_t n_sets, n_pending;
	size_t n_bytes; // of compiled sets, RE2's not counted
	uint64_t n_compiled; // sets, ever
};
struct regex_cache_totals regex_cache_count(const struct regex_cache *);
