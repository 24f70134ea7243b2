// SPDX-License-Identifier: Apache-2.0
// Starts what resolves names, with the servers of shunt.yaml or those of the host.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

struct config;
struct dns_lookups;
struct dns_resolver;
struct loop;
struct rand;

// What it is given is borrowed, and outlives both. Returns 0, or -EINVAL with reterr, which names
// the field; what is there by then is the caller's to free.
[[nodiscard]] int dns_start(const struct config *, struct loop *, struct rand *,
	struct dns_lookups **ret_lookups, struct dns_resolver **ret, struct lb_err *reterr);
