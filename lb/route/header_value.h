// SPDX-License-Identifier: Apache-2.0
// Header values as header matchers and hash policies see them: which names are visible (A28-H10,
// A28-H12), and how several fields form one value.
// Thread: any. Pure.
#pragma once

#include "lb/base/str.h"

#include <stdint.h>

struct lb_req;

// The source of a name's value, or why it has none.
enum lb_header_source {
	LB_HEADER_FIELDS,
	LB_HEADER_TRANSPORT, // fields, too
	LB_HEADER_METHOD, // pseudo-headers from here on
	LB_HEADER_SCHEME,
	LB_HEADER_AUTHORITY,
	LB_HEADER_PATH,
	LB_HEADER_NOWHERE, // always absent
};
enum lb_header_source lb_header_source(struct str name); // lower case

// hides_transport: a gRPC request shows only its custom metadata and content-type, unless the
// frontend's switch (D2) says otherwise.
static inline bool lb_header_in_fields(enum lb_header_source source, bool hides_transport)
{
	return source == LB_HEADER_FIELDS || (source == LB_HEADER_TRANSPORT && !hides_transport);
}
// Returns false if it is absent or no pseudo-header.
bool lb_header_pseudo(
	const struct lb_req *, enum lb_header_source, bool hides_transport, struct str *ret);

// The separator between the values of several fields (A28-H08); HTTP/2 clients may split cookies
// (A28-H09).
struct str lb_header_separator(struct str name);
// Appends to *to, in a buffer that ends at `end`; cuts what does not fit.
void lb_header_append(struct str *to, struct str more, const char *end);

// The whole value: a single field's in place, several joined in buf. Returns false if absent.
bool lb_header_find(const struct lb_req *, struct str name, bool hides_transport, char *buf,
	size_t buf_size, struct str *ret);
// The same among the fields alone, whatever its source.
bool lb_header_find_field(
	const struct lb_req *, struct str name, char *buf, size_t buf_size, struct str *ret);
