// SPDX-License-Identifier: Apache-2.0
// Which values of backends' reports a cluster wants in its load reports (gRFC A85). Immutable.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct load_metrics;

// Of the list in the cluster's resource (lrs_report_endpoint_metrics); what is no known value is
// ignored. ret NULL = none is wanted. 0 or -ENOMEM.
[[nodiscard]] int load_metrics_new(const char *const *names, uint32_t n, struct load_metrics **ret);
void load_metrics_free(struct load_metrics *); // NULL is fine
// The name as in the list: "cpu_utilization", "named_metrics.k". NULL has none.
bool load_metrics_has(const struct load_metrics *, const char *name);
