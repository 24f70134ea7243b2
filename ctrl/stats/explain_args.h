// SPDX-License-Identifier: Apache-2.0
// Parses the words of `explain` into the request that they describe.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"
#include "lb/base/field.h"
#include "lb/base/ip.h"

#include <stdbool.h>
#include <stddef.h>

#define EXPLAIN_MAX_FIELDS 128

struct explain_args {
	const char *frontend; // NULL = not said
	struct ip_addr from; // 0.0.0.0 = not said
	struct str authority;
	const char *path, *method; // never NULL
	bool is_grpc;
	bool json;
	struct field fields[EXPLAIN_MAX_FIELDS]; // names in lower case, no `host`
	size_t n_fields;
};

// Modifies the words and keeps pointers into them. Returns 0, or -EINVAL with the reason.
[[nodiscard]] int explain_args_read(
	struct explain_args *, char *const *words, unsigned n, struct lb_err *reterr);
