// SPDX-License-Identifier: Apache-2.0
// Resources of any type that are only forwarded: a caching proxy keeps their bytes as received, and
// their name.
// Thread: any.
#pragma once

#include "ctrl/xds/type.h"

struct proto_field;

// Finds the name inside a resource of any type; borrows from its bytes; "" if it has none. Returns
// false if the bytes are no protobuf message.
bool xds_raw_name(const uint8_t *bytes, size_t len, struct proto_field *ret);

// Makes a type with this URL; borrows URL and label.
struct xds_type xds_raw_type(const char *url, const char *label, bool full_state);
