// SPDX-License-Identifier: Apache-2.0
// The cookie of session affinity as text (gRFC A55, A60; SA-03..SA-09, SA-16, SA-17):
// base64 of "ADDRESS[,ADDRESS…];CLUSTER". Who is chosen by it is not said here.
// Thread: any. Pure.
#pragma once

#include "lb/base/ip.h"
#include "lb/route/filter.h"
#include "lb/route/req.h"

#include <stdbool.h>
#include <stddef.h>

// Of the addresses in a cookie so many are tried: the one in use comes first, and clients write
// what they want.
#define LB_SESSION_MAX_ADDRESSES 16

// As the request's cookie has it; all "" = no cookie, or one that says nothing (SA-09).
struct lb_session_cookie {
	struct str addresses;
	struct str cluster;
};

// The filter does something with requests of this path (SA-03, SA-04).
bool lb_session_covers(const struct lb_session *, struct str path);
// The views are into buf, which needs to be as large as the request's longest cookie field.
struct lb_session_cookie lb_session_read(
	const struct lb_session *, const struct lb_req *, char *buf, size_t buf_size);
// The cookie means this cluster, however it writes it: NAME, cluster:NAME or "NAME" (SA-07).
bool lb_session_is_cluster(const struct lb_session_cookie *, struct str name);
// The addresses in order, those that are none left out. Returns how many.
size_t lb_session_addresses(struct str list, struct ip_port ret[LB_SESSION_MAX_ADDRESSES]);
// The value of a Set-Cookie field with this content. Returns its length, 0 = it does not fit.
size_t lb_session_write(
	const struct lb_session *, const struct lb_session_cookie *, char *out, size_t room);
