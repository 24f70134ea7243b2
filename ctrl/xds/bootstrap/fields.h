// SPDX-License-Identifier: Apache-2.0
// Readers of the bootstrap's fields. `at` names the object that holds the field, "" = the top
// level; errors read "xds_servers[0].server_uri: …". A field that is absent leaves *ret alone.
// Thread: any.
#pragma once

#include "lb/base/err.h"

#include <jansson.h>

#include <stdint.h>

// -EINVAL, always.
int xds_field_err(struct lb_err *, const char *at, const char *field, const char *why);
// A copy for the caller, who frees the value before, too. Returns 0, -ENOMEM or -EINVAL.
int xds_field_text(
	const json_t *, const char *at, const char *field, char **ret, struct lb_err *reterr);
// The same of a text that must not be empty.
int xds_field_path(
	const json_t *, const char *at, const char *field, char **ret, struct lb_err *reterr);
// A duration as protobuf writes it in JSON: "600s", "1.5s"; up to nine decimals, not negative.
int xds_field_duration(
	const json_t *, const char *at, const char *field, uint64_t *ret_ns, struct lb_err *reterr);
