// SPDX-License-Identifier: Apache-2.0
// Room in which one call lays out what it hands to the next one: nothing in it outlives that.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/grpc_timeout.h"
#include "lb/base/field.h"

#include <stddef.h>
#include <stdint.h>

struct lb_route_scratch;

// Most fields that a request gets on top of the client's.
#define PROXY_ADDED_FIELDS 4
// Longer texts of refusals are cut.
#define PROXY_REFUSAL_MAX 512

struct proxy_scratch {
	uint8_t *bytes; // a stored request, laid out flat
	size_t size; // of both
	char *pick; // lb_pick_ctx.scratch: what is joined there may lie in the other one
	struct field *fields; // [max_fields + PROXY_ADDED_FIELDS]
	uint32_t max_fields;
	char timeout_text[PROXY_GRPC_TIMEOUT_MAX], attempts_text[4];
	char refusal[PROXY_REFUSAL_MAX]; // proxy_pick.text
	struct lb_route_scratch *route;
};

// For header blocks of so many fields and bytes. 0 or -ENOMEM, which leaves it to be freed.
[[nodiscard]] int proxy_scratch_init(
	struct proxy_scratch *, uint32_t worker, uint32_t max_fields, size_t max_header_bytes);
void proxy_scratch_fini(struct proxy_scratch *);
