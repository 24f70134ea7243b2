// SPDX-License-Identifier: Apache-2.0
// Active health checks over the members of one leaf cluster (AHC-01 to AHC-08): when each is
// checked, and what follows from the results. lb/member/probes.h has the checks done,
// lb/member/member.h has the effect of a verdict, which is none of ejection's
// (lb/leaf/ejection.h).
// Thread: ctrl.
#pragma once

#include "lb/member/member.h"
#include "lb/pick/probe.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_check;
struct lb_dump;
struct lb_health;
struct lb_probes;
struct lb_security;
struct rand;
struct twheel;

// Envoy's health_check.attempt, .success, .failure and .network_failure.
struct lb_health_counts {
	uint64_t attempts, passed, failed;
	uint64_t network_failures; // of those that failed: no connection, or no answer in time
};

struct lb_health_env {
	struct twheel *wheel;
	struct rand *rand;
	struct lb_probes *probes;
	// As lb_member_env.security, with security_ctx.
	int (*security)(void *ctx, const struct ip_port *, struct lb_security **ret);
	void *security_ctx;
	// Whether a request was ever sent to the member. NULL = taken to be so.
	bool (*is_used)(void *ctx, uint32_t member);
	void *ctx;
	const char *cluster; // for log lines
	struct lb_health_counts *counts; // added to, outlives it; NULL = nothing is counted
};

struct lb_health *lb_health_new(const struct lb_health_env *); // NULL = out of memory
// Members keep their verdict; NULL is fine.
void lb_health_free(struct lb_health *);
// There are to be no checks any more: all members serve.
void lb_health_end(struct lb_health *);
// The check to do from now on; counted. Members keep their verdict.
void lb_health_configure(struct lb_health *, struct lb_check *);
// Lists every member of every priority once. Those that stay keep their verdict and their time;
// others serve after their first check, or, if they serve already (AHC-05), until it fails. Returns
// 0, or -ENOMEM with nothing changed.
[[nodiscard]] int lb_health_update(
	struct lb_health *, struct lb_member *const *members, uint32_t n, bool serves_already);

// The verdict of another process on a member that has none here yet, in place of that of its first
// check. False = it has one, or is not listed.
bool lb_health_inherit(struct lb_health *, struct lb_member *, bool serves);

// For display.
struct lb_health_record {
	enum lb_member_health health;
	bool is_checked; // by an active check
	char why[LB_PROBE_WHY_MAX]; // the last failure, if the last check failed; "" = it passed
	uint64_t since_ns; // time since the last result; 0 = none yet
};
// Returns false if the member is not listed.
bool lb_health_find(
	const struct lb_health *, const struct lb_member *, struct lb_health_record *ret);
void lb_health_dump(const struct lb_health *, struct lb_dump *);
