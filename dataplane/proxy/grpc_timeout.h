// SPDX-License-Identifier: Apache-2.0
// The grpc-timeout field (gRPC over HTTP/2, "Timeout"): at most eight digits and a unit.
// Thread: any. Pure.
#pragma once

#include "lb/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Returns false if malformed: there is no deadline then (A31-T10). A value above 64 bits becomes
// LB_NO_TIMEOUT.
bool proxy_grpc_timeout_parse(struct str, uint64_t *ret_ns);

#define PROXY_GRPC_TIMEOUT_MAX 9
// Rounds up to the finest unit that eight digits hold, at least 1n: rounding never makes a
// backend give up before the proxy. Returns the length.
size_t proxy_grpc_timeout_write(uint64_t ns, char out[PROXY_GRPC_TIMEOUT_MAX]);
