// SPDX-License-Identifier: Apache-2.0
// The text of session affinity's cookie (gRFC A55, A60; SA-03..SA-09, SA-16, SA-17): base64 of
// "ADDRESS[,ADDRESS…];CLUSTER". It does not choose endpoints.
// Thread: any. Pure.
#pragma once

#include "lb/base/ip.h"
#include "lb/route/filter.h"
#include "lb/route/req.h"

#include <stdbool.h>
#include <stddef.h>

// Limit of addresses tried: the one in use comes first, and the cookie is untrusted.
#define LB_SESSION_MAX_ADDRESSES 16

// From the request's cookie; all "" = no cookie, or an invalid one (SA-09).
struct lb_session_cookie {
	struct str addresses;
	struct str cluster;
};

// True if the filter applies to requests of this path (SA-03, SA-04).
bool lb_session_covers(const struct lb_session *, struct str path);
// The views point into buf, which must be as large as the request's longest cookie field.
struct lb_session_cookie lb_session_read(
	const struct lb_session *, const struct lb_req *, char *buf, size_t buf_size);
// True if the cookie names this cluster, in any of the forms NAME, cluster:NAME or "NAME" (SA-07).
bool lb_session_is_cluster(const struct lb_session_cookie *, struct str name);
// Reads the valid addresses in order. Returns how many.
size_t lb_session_addresses(struct str list, struct ip_port ret[LB_SESSION_MAX_ADDRESSES]);
// Writes the value of a Set-Cookie field. Returns its length; 0 = it does not fit.
size_t lb_session_write(
	const struct lb_session *, const struct lb_session_cookie *, char *out, size_t room);
