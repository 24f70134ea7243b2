// SPDX-License-Identifier: Apache-2.0
// Resources written as JSON in tests, with ' for ", turned into protobuf bytes.
// Thread: the test's.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct xds_type;

// The bytes (free); CHECKs that the JSON is right.
uint8_t *res_bytes_from_json(const struct xds_type *, const char *json, size_t *ret_len);
