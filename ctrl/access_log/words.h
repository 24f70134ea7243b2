// SPDX-License-Identifier: Apache-2.0
// What Envoy calls the causes of an end, and the statuses of gRPC.
// Thread: any. Pure.
#pragma once

#include "lb/pick/access.h"
#include "lb/pick/cause.h"

#include <stdbool.h>

// Of RESPONSE_CODE_DETAILS ("via_upstream"), or the cause's own name.
const char *access_details(enum lb_cause);
#define ACCESS_FLAGS_MAX 64
// Of RESPONSE_FLAGS ("DI,FI"), "-" for none; long ones ("DelayInjected,FaultInjected") are those of
// RESPONSE_FLAGS_LONG, or the cause's own name. In room, or constant.
const char *access_flags(
	const struct lb_access_brief *, bool is_long, char room[static ACCESS_FLAGS_MAX]);
// "NotFound", or as constants are written, "NOT_FOUND"; NULL = there is no such status.
const char *access_grpc_name(unsigned status, bool is_snake);
