// SPDX-License-Identifier: Apache-2.0
#include "ctrl/metrics/metric.h"

const struct metric metrics[N_METRICS] = {
#define X(id, type, name, labels, help) {METRIC_##type, name, labels, help},
	METRICS(X)
#undef X
};

const char *metric_type_name(const struct metric *m)
{
	static const char *const names[] = {"counter", "gauge", "histogram", "info"};
	return names[m->type];
}

const char *metric_suffix(const struct metric *m)
{
	static const char *const suffixes[] = {"_total", "", "", "_info"};
	return suffixes[m->type];
}
