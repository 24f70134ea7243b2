// SPDX-License-Identifier: Apache-2.0
// Which values of backends' reports a leaf's load reports want (gRFC A85; LR-10).
// Workers tell values by their index here, and only those that are wanted. Immutable, shared by the
// pickers that have it.
// Thread: new/get/put on ctrl; workers read.
#pragma once

#include "lb/base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define LB_METRIC_NONE UINT32_MAX

// The first indexes; those of named ones follow.
enum lb_metric { LB_METRIC_CPU, LB_METRIC_MEM, LB_METRIC_APPLICATION, LB_METRIC_NAMED };

struct lb_metrics {
	uint32_t n_refs; // ctrl only
	uint32_t list; // tells it apart from lists of other times
	uint32_t own; // 1 << each of the first that is wanted
	bool all_named; // also those that have no index: by their names
	uint32_t n_named;
	const char *named[]; // "named_metrics.k", sorted; in one block with their texts
};

// Of the list in the cluster's resource (lrs_report_endpoint_metrics); what is no known value is
// ignored. Count 1; ret NULL = none is wanted. 0 or -ENOMEM.
[[nodiscard]] int lb_metrics_new(
	const char *const *names, uint32_t n, uint32_t list, struct lb_metrics **ret);
struct lb_metrics *lb_metrics_get(struct lb_metrics *); // NULL is fine
void lb_metrics_put(struct lb_metrics *); // NULL is fine
// Of the same values, whatever the list. Both may be NULL.
bool lb_metrics_same(const struct lb_metrics *, const struct lb_metrics *);

static inline bool lb_metrics_has(const struct lb_metrics *m, enum lb_metric own)
{
	return m->own >> own & 1;
}
// The index of a named one, whose name is without the prefix. LB_METRIC_NONE = it has none.
uint32_t lb_metrics_find(const struct lb_metrics *, struct str name);
// As in the list: "cpu_utilization", "named_metrics.k". NULL = there is no such index.
const char *lb_metrics_name(const struct lb_metrics *, uint32_t index);
