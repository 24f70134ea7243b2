// SPDX-License-Identifier: Apache-2.0
// What a backend says of its load in an answer's fields: xds.data.orca.v3.OrcaLoadReport as
// protobuf in base64 (`endpoint-load-metrics-bin`, gRPC's), or Envoy's `endpoint-load-metrics` with
// the same behind `BIN `, or with `TEXT name=value,name=value`. Its `JSON ` is not read.
// Thread: the owning worker. Pure; allocates nothing. Its input is a backend's, of any shape.
#pragma once

#include "lb/base/field.h"
#include "lb/pick/orca.h"

#include <stddef.h>

struct proxy_orca {
	struct lb_orca_report report;
	double mem_utilization;
};
enum proxy_orca_kind { PROXY_ORCA_NONE, PROXY_ORCA_READ, PROXY_ORCA_BAD };

// Told of each of named_metrics, of reports that are good as a whole.
struct proxy_orca_listener {
	void (*named)(void *ctx, struct str name, double value);
	void *ctx;
};

// A field with base64 is laid out in scratch; one that is too long for it is bad, as is a value
// that is no finite number. What is left out is 0. listener may be NULL.
enum proxy_orca_kind proxy_orca_read(const struct field *, size_t n, char *scratch,
	size_t scratch_size, struct proxy_orca *ret, const struct proxy_orca_listener *);
