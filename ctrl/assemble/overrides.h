// SPDX-License-Identifier: Apache-2.0
// What operators say of endpoints, in place of what the endpoints' resource says (OPS-77 to
// OPS-79): a health, a weight, or both. It stays until it is taken back or the process ends,
// whatever updates say, and waits where there is no such endpoint. By cluster (of an aggregate by
// the leaf) and by address.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"
#include "lb/base/ip.h"
#include "lb/pick/leaf_endpoints.h"

#include <stdbool.h>
#include <stdint.h>

struct overrides;

#define OVERRIDES_MAX 1024
#define OVERRIDE_MAX_WEIGHT 1000000
#define OVERRIDE_MAX_CLUSTER 1024 // bytes of its name

struct override { // all zero = none
	bool has_health;
	enum lb_leaf_health health;
	uint32_t weight; // 0 = the resource's
};

struct overrides *overrides_new(void); // NULL = out of memory
void overrides_free(struct overrides *); // NULL is fine

// Sets it in place of the one that there is; all zero takes that away. 0, or -EINVAL with reterr:
// too many, or out of memory.
[[nodiscard]] int overrides_set(struct overrides *, const char *cluster, const struct ip_port *,
	struct override, struct lb_err *reterr);
// Of an endpoint, by any of its addresses: of n overrides of the cluster it looks at log2 n. All
// zero = none.
struct override overrides_find(const struct overrides *, const char *cluster,
	const struct ip_port *addresses, uint32_t n_addresses);
// Another number for each other set of overrides of the cluster; 0 = it has none.
uint64_t overrides_revision(const struct overrides *, const char *cluster);
// The endpoints as they are with the overrides: a reference to the same ones, or to others. NULL =
// out of memory.
struct lb_leaf_endpoints *overrides_apply(
	const struct overrides *, const char *cluster, struct lb_leaf_endpoints *);

#define OVERRIDE_TEXT_MAX 32
// "drain", "down weight 5", ""; returns text.
const char *override_print(const struct override *, char text[OVERRIDE_TEXT_MAX]);
void overrides_each(const struct overrides *,
	void (*fn)(void *ctx, const char *cluster, const struct ip_port *, const struct override *),
	void *ctx);
