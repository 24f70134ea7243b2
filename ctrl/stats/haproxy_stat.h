// SPDX-License-Identifier: Apache-2.0
// HAProxy's `show stat`: a row for each frontend, for each endpoint of a cluster (its servers), and
// behind these for the cluster (a backend). docs/haproxy.md says what each column holds here.
// Thread: ctrl.
#pragma once

#include "ctrl/base/slice.h"
#include "ctrl/stats/haproxy_field.h"
#include "lb/base/err.h"

struct haproxy_ids;
struct show;
struct stats_follow;

// Which rows are told, and how.
struct haproxy_ask {
	enum haproxy_form form;
	const char *proxy; // its name or iid; borrowed; NULL = all
	unsigned types; // HAPROXY_FRONTENDS and others, joined
	int64_t sid; // -1 = all
	bool only_up, no_maint; // of servers
};
#define HAPROXY_FRONTENDS 1u
#define HAPROXY_BACKENDS 2u
#define HAPROXY_SERVERS 4u

// words: what stands behind `show stat`; borrowed by ret->proxy. 0, or -EINVAL with reterr.
[[nodiscard]] int haproxy_stat_ask(
	char *const *words, unsigned n, struct haproxy_ask *ret, struct lb_err *reterr);
// The answer, which comes in slices, one a turn. It borrows the first two, and copies the others.
// NULL = out of memory.
struct stats_follow *haproxy_stat_new(const struct show *, struct haproxy_ids *,
	const struct slice *, const struct haproxy_ask *);
