// SPDX-License-Identifier: Apache-2.0
// The arithmetic of outlier detection (gRFC A50; A50-E03 to A50-E10, A75-E11, A50-E12 to A50-E15):
// which endpoints a sweep ejects and which it restores. The caller counts requests, schedules
// sweeps and applies ejections.
// Thread: any. Pure.
#pragma once

#include "lb/base/rand.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_outlier_algorithm {
	bool enabled;
	uint32_t enforcement_percent; // chance that a verdict is carried out (A50-E12)
	// hosts needed with enough requests; with fewer there is no verdict (A50-E06)
	uint32_t minimum_hosts;
	uint64_t request_volume; // requests that are enough
};
struct lb_outlier_conf {
	uint64_t interval_ns; // between sweeps
	uint64_t base_ejection_ns, max_ejection_ns;
	uint32_t max_ejection_percent;
	struct lb_outlier_algorithm success_rate, failure_percentage;
	uint32_t stdev_factor; // of success_rate, in thousandths
	// of failure_percentage; above this a host is an outlier (A50-E08)
	uint32_t threshold_percent;
};

enum lb_outlier_method { LB_OUTLIER_SUCCESS_RATE, LB_OUTLIER_FAILURE_PERCENTAGE, LB_OUTLIER_N };
// What became of the outliers that sweeps found, by what found them (gRFC A91); ejected already,
// they are none.
struct lb_outlier_counts {
	uint64_t enforced;
	uint64_t spared_by_chance, spared_by_limit; // enforcement_percent; max_ejection_percent
	bool was_enabled; // at any time
};

struct lb_outlier_host {
	uint64_t n_ok, n_failed; // of the interval that the sweep ends
	uint64_t ejected_at_ns;
	uint32_t multiplier; // of the ejection time; grows with each ejection
	bool ejected;
	uint8_t method; // enum lb_outlier_method of the last ejection
};

// true if any algorithm is enabled (A50-E01)
bool lb_outlier_counts(const struct lb_outlier_conf *);
// One sweep over all endpoints of a cluster. Changes ejected, ejected_at_ns and multiplier; adds to
// counts.
void lb_outlier_sweep(const struct lb_outlier_conf *, struct lb_outlier_host *hosts, uint32_t n,
	uint64_t now_ns, struct rand *, struct lb_outlier_counts counts[LB_OUTLIER_N]);
// When an ejection ends: the first sweep after this restores the host (A50-E14).
uint64_t lb_outlier_ejected_until(const struct lb_outlier_conf *, const struct lb_outlier_host *);
