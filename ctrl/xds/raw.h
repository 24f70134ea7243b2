// SPDX-License-Identifier: Apache-2.0
// Resources that are only passed on, of any type: what a caching proxy has of them is their bytes,
// as they came, and their name.
// Thread: any.
#pragma once

#include "ctrl/xds/type.h"

struct proto_field;

// The name that a resource of any type gives itself; its bytes are borrowed, and none = empty.
// False = the bytes are no message.
bool xds_raw_name(const uint8_t *bytes, size_t len, struct proto_field *ret);

// A type of this URL, which is borrowed, as the label is.
struct xds_type xds_raw_type(const char *url, const char *label, bool full_state);
