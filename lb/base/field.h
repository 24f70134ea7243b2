// SPDX-License-Identifier: Apache-2.0
// A header field as HTTP/2 decodes it and routing matches it: borrowed bytes.
// Thread: any.
#pragma once

#include "lb/base/str.h"

#include <stddef.h>

struct field {
	struct str name, value;
	bool never_index; // RFC 7541 7.1.3: must stay so on the next hop
	uint8_t name_id; // number of a name that HTTP/2 knows; 0 = compare the text
};

// The first one of this name; NULL = there is none. Borrowed.
static inline const struct field *field_find(
	const struct field *fields, size_t n_fields, struct str name)
{
	for (size_t i = 0; i < n_fields; i++)
		if (str_eq(fields[i].name, name))
			return &fields[i];
	return NULL;
}
