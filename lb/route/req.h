// SPDX-License-Identifier: Apache-2.0
// What routing sees of a request: borrowed views for the time of one call.
// Thread: the caller of one lookup.
#pragma once

#include "lb/base/field.h"

#include <stdint.h>

struct lb_req {
	struct str authority; // as received
	struct str pinned; // used instead of authority to choose the virtual host; empty = not set
	struct str path; // as received; matchers cut '?' and '#' themselves
	struct str method, scheme;
	bool is_grpc;
	// Regular fields in order of arrival, without `host` (it became the authority).
	const struct field *fields;
	size_t n_fields;
	uint64_t connection; // random, one per client connection (HP-08)
};

// True for a gRPC request's content-type (HX-01).
static inline bool lb_content_type_is_grpc(struct str v)
{
	const struct str grpc = STR("application/grpc");
	return str_starts(v, grpc) && (v.len == grpc.len || v.p[grpc.len] == '+');
}

// The authority that chooses the virtual host.
static inline struct str lb_req_host(const struct lb_req *req)
{
	return req->pinned.len ? req->pinned : req->authority;
}
