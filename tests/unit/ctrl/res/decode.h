// SPDX-License-Identifier: Apache-2.0
// Resources of tests, decoded.
// Thread: the test's.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct res_route;
struct res_route_config;
struct xds_res;
struct xds_type;

// Accepted, or the test fails. The caller's (xds_res_put).
struct xds_res *res_decode(const struct xds_type *, const char *json);
struct xds_res *res_decode_bytes(const struct xds_type *, const uint8_t *bytes, size_t len);
// Refused with a text that holds `why`, or the test fails.
void res_refuse_bytes(const struct xds_type *, const uint8_t *bytes, size_t len, const char *why);
