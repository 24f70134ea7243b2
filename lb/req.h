// SPDX-License-Identifier: Apache-2.0
// What routing sees of a request: borrowed views for the time of one call.
// Thread: the caller of one lookup.
#pragma once

#include "lb/base/field.h"

#include <stdint.h>

struct lb_req {
	struct str authority; // of the request, or the frontend's pinned one
	struct str path; // as received; matchers cut '?' and '#' themselves
	struct str method, scheme;
	bool is_grpc;
	// Regular fields in order of arrival; `host` is not among them (it became the authority).
	const struct field *fields;
	size_t n_fields;
	uint64_t connection; // random, one per client connection (routing.md HP-08)
};
