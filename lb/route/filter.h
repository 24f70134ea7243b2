// SPDX-License-Identifier: Apache-2.0
// HTTP filters of a listener and their overrides in routes (gRFC A39; FLT-05..FLT-07): the most
// specific of weighted cluster, route, virtual host and listener applies as a whole, by the
// filter's name. Chains do not contain the router, which ends each.
// Thread: chains are built, counted and freed on ctrl; workers read.
#pragma once

#include "lb/base/arena.h"
#include "lb/base/err.h"
#include "lb/base/str.h"
#include "lb/route/forwarding.h"
#include "lb/route/timeouts.h"
#include "lb/route/tracing.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_rbac;
struct lb_rbac_conf;
struct lb_route_result;

enum lb_filter_kind {
	LB_FILTER_FAULT,
	LB_FILTER_RBAC,
	LB_FILTER_SESSION,
	LB_FILTER_SWITCH, // an override without a configuration: enables or disables only
};

enum lb_fault_delay { LB_DELAY_NONE, LB_DELAY_FIXED, LB_DELAY_HEADER };
enum lb_fault_abort { LB_ABORT_NONE, LB_ABORT_HTTP, LB_ABORT_GRPC, LB_ABORT_HEADER };

// gRFC A33; FI-01..FI-09.
struct lb_fault {
	enum lb_fault_delay delay;
	enum lb_fault_abort abort;
	uint64_t delay_ns; // FIXED
	uint32_t abort_status; // HTTP or gRPC
	// As configured, since headers may lower the numerator (FI-07); the denominator is 100,
	// 10^4 or 10^6.
	uint32_t delay_numerator, delay_denominator;
	uint32_t abort_numerator, abort_denominator;
	uint32_t max_active; // UINT32_MAX = no limit (FI-08)
};

// gRFC A55, A60; SA-01..SA-19.
struct lb_session {
	bool enabled; // false = this filter does nothing here
	struct str cookie, path; // name; path "" = unset
	uint64_t ttl_s; // 0 = a session cookie
};

struct lb_filter {
	struct str name; // of the instance
	enum lb_filter_kind kind;
	// A listener's filter: unless an override changes it. An override (SWITCH): here.
	bool disabled;
	union {
		struct lb_fault fault;
		struct { // gRFC A41; lb/route/rbac.h
			const struct lb_rbac_conf *conf; // of a decoded resource; else NULL
			struct lb_rbac *compiled; // owned; of a copy; else NULL
		} rbac;
		struct lb_session session;
	};
};

struct lb_filter_overrides {
	const struct lb_filter *list; // names that are in no chain are ignored (FLT-07)
	uint32_t n;
};

// Copies texts into the arena and compiles what is to be compiled; fini() frees that, also after a
// failure. 0, or -EINVAL with the reason (out of memory included).
[[nodiscard]] int lb_overrides_copy(struct lb_arena *, const struct lb_filter_overrides *,
	struct lb_filter_overrides *ret, struct lb_err *reterr);
void lb_overrides_fini(const struct lb_filter_overrides *);

struct lb_filter_chain {
	uint32_t n_refs; // ctrl only
	uint32_t n;
	struct lb_listener_timeouts timeouts;
	const struct lb_filter *filters; // in the arena, texts too
	struct lb_arena arena;
	struct lb_forwarding forwarding; // off, until its maker sets it
	struct lb_tracing tracing; // likewise
};

// Copies everything. Count 1. NULL = out of memory.
struct lb_filter_chain *lb_filter_chain_new(
	const struct lb_filter *, uint32_t n, const struct lb_listener_timeouts *);
struct lb_filter_chain *lb_filter_chain_get(struct lb_filter_chain *);
void lb_filter_chain_put(struct lb_filter_chain *); // NULL is fine
// Filter i as it applies to a request on this route; NULL = disabled. As in Envoy, the most
// specific override enables or disables it; its configuration is the most specific override that
// has one, else the listener's.
const struct lb_filter *lb_filter_effective(
	const struct lb_filter_chain *, uint32_t i, const struct lb_route_result *);
