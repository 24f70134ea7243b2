// SPDX-License-Identifier: Apache-2.0
// The name of one request or connection in flight, as operators read it in listings and give it to
// `kill`: `0-r2f-1c3a5e7b9d0` is the request at place 2f of worker 0 that began at that time, with
// `c` it is a client's connection, with `b` one to a backend.
// Thread: any; pure.
#pragma once

#include "lb/pick/inflight.h"

#include <stdbool.h>

#define INFLIGHT_HANDLE_MAX 40

// Returns text.
const char *inflight_handle_print(
	enum lb_inflight_kind, const struct lb_inflight_handle *, char text[INFLIGHT_HANDLE_MAX]);
// False = it is no handle of this kind; *ret is then as it was.
bool inflight_handle_parse(enum lb_inflight_kind, const char *, struct lb_inflight_handle *ret);
