// SPDX-License-Identifier: Apache-2.0
// Scratch space in which one call builds what it passes to the next; nothing in it lives longer.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/forwarded.h"
#include "dataplane/proxy/grpc_timeout.h"
#include "dataplane/proxy/trace_context.h"
#include "lb/base/field.h"

#include <stddef.h>
#include <stdint.h>

struct lb_route_scratch;

// Most fields that an attempt adds to a client's request.
#define PROXY_ADDED_FIELDS (4 + PROXY_TRACE_FIELDS)
// Longer refusal texts are cut.
#define PROXY_REFUSAL_MAX 512

struct proxy_scratch {
	uint8_t *bytes; // a stored request, made contiguous
	size_t size; // of bytes and of pick
	char *pick; // lb_pick_ctx.scratch; separate, since fields to be joined may lie in bytes
	struct field *fields; // [max_fields + PROXY_ADDED_FIELDS]
	uint32_t max_fields; // of a request as its listener wants it
	char timeout_text[PROXY_GRPC_TIMEOUT_MAX], attempts_text[4];
	char trace_text[PROXY_TRACE_TEXT];
	char refusal[PROXY_REFUSAL_MAX]; // proxy_pick.text
	struct lb_route_scratch *route;
	struct proxy_forwarded_room forwarded; // such a request
};

// For header blocks of max_fields and max_header_bytes. Returns 0 or -ENOMEM; call fini either
// way.
[[nodiscard]] int proxy_scratch_init(
	struct proxy_scratch *, uint32_t worker, uint32_t max_fields, size_t max_header_bytes);
void proxy_scratch_fini(struct proxy_scratch *);
