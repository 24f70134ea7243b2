// SPDX-License-Identifier: Apache-2.0
// What Envoy calls the causes of an end, and the statuses of gRPC.
// Thread: any. Pure.
#pragma once

#include "lb/pick/cause.h"

#include <stdbool.h>

// Of RESPONSE_CODE_DETAILS ("via_upstream"), or the cause's own name.
const char *access_details(enum lb_cause);
// Of RESPONSE_FLAGS_LONG ("NoRouteFound"), "-" for none, or the cause's own name.
const char *access_flag_long(enum lb_cause);
// "NotFound", or as constants are written, "NOT_FOUND"; NULL = there is no such status.
const char *access_grpc_name(unsigned status, bool is_snake);
