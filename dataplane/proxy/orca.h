// SPDX-License-Identifier: Apache-2.0
// Reads a backend's load report from the fields of its answer: xds.data.orca.v3.OrcaLoadReport
// as protobuf in base64 (`endpoint-load-metrics-bin`, gRPC's), or Envoy's
// `endpoint-load-metrics`: the same after `BIN `, or `TEXT name=value,name=value`. Its `JSON `
// form is not read.
// Thread: the owning worker. Pure; allocates nothing. Its input is untrusted.
#pragma once

#include "lb/base/field.h"
#include "lb/pick/orca.h"

#include <stddef.h>

struct proxy_orca {
	struct lb_orca_report report;
	double mem_utilization;
};
enum proxy_orca_kind { PROXY_ORCA_NONE, PROXY_ORCA_READ, PROXY_ORCA_BAD };

// Called for each entry of named_metrics, once the whole report is found valid.
struct proxy_orca_listener {
	void (*named)(void *ctx, struct str name, double value);
	void *ctx;
};

// Decodes base64 into scratch. A field too long for scratch, and a value that is not a finite
// number, make the report bad. Missing values are 0. listener may be NULL.
enum proxy_orca_kind proxy_orca_read(const struct field *, size_t n, char *scratch,
	size_t scratch_size, struct proxy_orca *ret, const struct proxy_orca_listener *);
