// SPDX-License-Identifier: Apache-2.0
// Metrics as text, in the form of Prometheus (0.0.4) or of OpenMetrics (1.0.0).
// Thread: ctrl.
#pragma once

#include "ctrl/metrics/metric.h"

#include <stdbool.h>

struct evbuffer;

struct metric_text {
	struct metric_sink sink;
	struct evbuffer *out; // borrowed
	bool is_open_metrics;
	bool failed; // out of memory; stays
};

void metric_text_init(struct metric_text *, struct evbuffer *out, bool is_open_metrics);
void metric_text_end(struct metric_text *); // after the last sample
// The form that an Accept field asks for. NULL = there is no field.
bool metric_text_wants_open_metrics(const char *accept);
const char *metric_text_content_type(bool is_open_metrics);
