// SPDX-License-Identifier: Apache-2.0
// Outlier detection over the members of one leaf cluster, in all of its priorities (gRFC A50, A75;
// A50-E01 to A50-E10, A75-E11, A50-E12 to A50-E18, MC-15): when it sweeps, whose counters it reads,
// and what happens to ejections when the configuration or the members change. Ejections and their
// ends are lines of the log, and where they are too many a number (OPS-275). lb/leaf/outlier.h has
// the arithmetic, lb/member/member.h the effect of an ejection on a member.
// Thread: ctrl.
#pragma once

#include "lb/leaf/outlier.h"

struct lb_dump;
struct lb_ejection;
struct lb_member;
struct twheel;

struct lb_ejection_env {
	struct twheel *wheel;
	struct rand *rand;
	// Returns what all workers have counted for this member since the last call for it; each
	// request counts once (A50-E05).
	void (*harvest)(void *ctx, uint32_t member, uint64_t *ret_ok, uint64_t *ret_failed);
	void *ctx;
	struct lb_outlier_counts *counts; // [LB_OUTLIER_N], added to, outlives it
	const char *cluster; // named in the log; outlives it
};

struct lb_ejection *lb_ejection_new(const struct lb_ejection_env *); // NULL = out of memory
void lb_ejection_free(struct lb_ejection *); // members keep their ejection; NULL is fine
// Ends all ejections (A50-E01).
void lb_ejection_end(struct lb_ejection *);
// Copies conf, which has an algorithm: without one, no lb_ejection is made (A50-E01).
void lb_ejection_configure(struct lb_ejection *, const struct lb_outlier_conf *);
// Lists every member of every priority once (A75-E11); members that stay keep their record. Returns
// 0, or -ENOMEM with nothing changed.
[[nodiscard]] int lb_ejection_update(
	struct lb_ejection *, struct lb_member *const *members, uint32_t n);
uint32_t lb_ejection_n_ejected(const struct lb_ejection *);

// For display.
struct lb_ejection_record {
	uint32_t multiplier; // of the ejection time
	// time left of its ejection; the first sweep after it ends the ejection. 0 = none or over
	uint64_t left_ns;
};
// Returns false if the member is not listed.
bool lb_ejection_find(
	const struct lb_ejection *, const struct lb_member *, struct lb_ejection_record *ret);

// What is known of a member, as another process can go on with it.
struct lb_ejection_bequest { // zero = nothing
	uint32_t multiplier;
	bool is_ejected;
	uint64_t ago_ns; // since it was ejected
};
// Zero if the member is not listed.
void lb_ejection_bequeath(
	const struct lb_ejection *, const struct lb_member *, struct lb_ejection_bequest *ret);
// As if it had been ejected here. False = the member is not listed.
bool lb_ejection_inherit(
	struct lb_ejection *, struct lb_member *, const struct lb_ejection_bequest *);
void lb_ejection_dump(const struct lb_ejection *, struct lb_dump *);
