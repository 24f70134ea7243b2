// SPDX-License-Identifier: Apache-2.0
// The grpc-timeout field (gRPC over HTTP/2, "Timeout"): at most eight digits and a unit.
// Thread: any. Pure.
#pragma once

#include "lb/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// False = malformed: there is no deadline (A31-T10). Beyond 64 bits, LB_NO_TIMEOUT.
bool proxy_grpc_timeout_parse(struct str, uint64_t *ret_ns);

#define PROXY_GRPC_TIMEOUT_MAX 9
// Rounded up to the finest unit that eight digits hold, at least 1n: a backend never gives up
// before the proxy does for want of digits. Returns the length.
size_t proxy_grpc_timeout_write(uint64_t ns, char out[PROXY_GRPC_TIMEOUT_MAX]);
