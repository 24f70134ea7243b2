// SPDX-License-Identifier: Apache-2.0
// Which values of backends' reports a leaf's load reports want (gRFC A85; LR-10). Workers send only
// those, by their index here. Immutable, shared by pickers.
// Thread: new/get/put on ctrl; workers read.
#pragma once

#include "lb/base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define LB_METRIC_NONE UINT32_MAX

// Indexes of the standard values; named ones follow.
enum lb_metric { LB_METRIC_CPU, LB_METRIC_MEM, LB_METRIC_APPLICATION, LB_METRIC_NAMED };

struct lb_metrics {
	uint32_t n_refs; // ctrl only
	uint32_t list; // number that distinguishes it from earlier lists
	uint32_t own; // bit set of the standard values that are wanted
	bool all_named; // also report named values without an index, by name
	uint32_t n_named;
	const char *named[]; // "named_metrics.k", sorted; texts are in the same block
};

// From the cluster's lrs_report_endpoint_metrics; unknown values are ignored. Count 1; *ret is NULL
// if none is wanted. Returns 0 or -ENOMEM.
[[nodiscard]] int lb_metrics_new(
	const char *const *names, uint32_t n, uint32_t list, struct lb_metrics **ret);
struct lb_metrics *lb_metrics_get(struct lb_metrics *); // NULL is fine
void lb_metrics_put(struct lb_metrics *); // NULL is fine
// True if both want the same values, whatever their list numbers. Both may be NULL.
bool lb_metrics_same(const struct lb_metrics *, const struct lb_metrics *);

static inline bool lb_metrics_has(const struct lb_metrics *m, enum lb_metric own)
{
	return m->own >> own & 1;
}
// Index of a named value, given without the prefix; LB_METRIC_NONE = it has none.
uint32_t lb_metrics_find(const struct lb_metrics *, struct str name);
// The name as in the resource: "cpu_utilization", "named_metrics.k". NULL = no such index.
const char *lb_metrics_name(const struct lb_metrics *, uint32_t index);
