// SPDX-License-Identifier: Apache-2.0
// A second decoder of ClusterLoadAssignment, slow and plain, by protobuf-c: what
// ctrl/res/endpoints.c, which reads the bytes itself, is held against.
// Thread: the test's.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct res_endpoints;
struct xds_res;

// NULL = refused. The caller's (xds_res_put).
struct xds_res *eds_oracle_decode(const uint8_t *bytes, size_t len);
// Same content, whatever their bytes.
bool eds_oracle_same(const struct res_endpoints *, const struct res_endpoints *);
