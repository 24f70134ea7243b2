// SPDX-License-Identifier: Apache-2.0
// What routing sees of a request: borrowed views for the time of one call.
// Thread: the caller of one lookup.
#pragma once

#include "lb/base/str.h"

struct lb_req {
	struct str authority; // of the request, or the frontend's pinned one
	struct str path; // as received; matchers cut '?' and '#' themselves
	struct str method;
	bool is_grpc;
};
