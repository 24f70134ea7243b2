// SPDX-License-Identifier: Apache-2.0
// The headers that are kept of a request until its end, and what is known of its answer's.
// Thread: any. Pure.
#pragma once

#include "lb/base/err.h"
#include "lb/base/str.h"
#include "lb/pick/access.h"

#include <stdbool.h>

enum access_headers { ACCESS_REQUEST, ACCESS_RESPONSE, ACCESS_TRAILERS };

// What a header is: a text of the record, or one of these.
enum {
	ACCESS_NEVER = LB_ACCESS_N_TEXTS, // Envoy's own header, which is not there
	ACCESS_STATUS,
	ACCESS_GRPC_STATUS,
};

// By its name in any case. 0, or -EINVAL with reterr, which names those that are kept.
[[nodiscard]] int access_header_find(
	enum access_headers, struct str name, unsigned char *ret, struct lb_err *reterr);
// "request", "response" or "trailers".
const char *access_header_word(enum access_headers);
// A number of the answer; false = it has none. what: of the response, or of its trailers.
bool access_header_number(const struct lb_access_record *, unsigned char what, unsigned *ret);
