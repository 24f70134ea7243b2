// SPDX-License-Identifier: Apache-2.0
// Outlier detection as a layer over the members of one leaf cluster, of all of its priorities (gRFC
// A50, A75; A50-E01 to A50-E10, A75-E11, A50-E12 to A50-E18, MC-15): when it sweeps,
// whose counters it looks at, and what becomes of ejections when the configuration or the members
// change. The arithmetic is lb/leaf/outlier.h's; what an ejection does to a member is
// lb/member/member.h's.
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
	// What all workers have counted for this member since the last call for it, each request
	// once (A50-E05).
	void (*harvest)(void *ctx, uint32_t member, uint64_t *ret_ok, uint64_t *ret_failed);
	void *ctx;
};

struct lb_ejection *lb_ejection_new(const struct lb_ejection_env *); // NULL = out of memory
void lb_ejection_free(struct lb_ejection *); // members stay as they are; NULL is fine
// Nobody is ejected any more (A50-E01).
void lb_ejection_end(struct lb_ejection *);
// The conf is copied, and has an algorithm: without one there is no need of an ejection (A50-E01).
void lb_ejection_configure(struct lb_ejection *, const struct lb_outlier_conf *);
// Every member of every priority is to be listed, once (A75-E11); those that stay keep their
// record. 0 or -ENOMEM: as before.
[[nodiscard]] int lb_ejection_update(
	struct lb_ejection *, struct lb_member *const *members, uint32_t n);
uint32_t lb_ejection_n_ejected(const struct lb_ejection *);

// For operators.
struct lb_ejection_record {
	uint32_t multiplier; // of the ejection time
	uint64_t left_ns; // of its ejection; it ends with the first sweep after. 0 = none, or over
};
// False = the member is not listed.
bool lb_ejection_find(
	const struct lb_ejection *, const struct lb_member *, struct lb_ejection_record *ret);
void lb_ejection_dump(const struct lb_ejection *, struct lb_dump *);
