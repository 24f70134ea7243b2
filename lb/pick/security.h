// SPDX-License-Identifier: Apache-2.0
// How connections to an endpoint are secured. Part of what an endpoint is: clusters that ask for
// other security never share connections (TLS-161). NULL stands for plain text.
// Thread: made and counted by ctrl; workers read it through an endpoint.
#pragma once

#include "lb/base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_security { // immutable but for n_refs
	uint32_t n_refs; // ctrl only
	uint32_t credential; // lb/pick/credential.h; never LB_PLAIN_TEXT
	char server_name[]; // sent as SNI; "" = none is
};

// Count 1. NULL = out of memory.
struct lb_security *lb_security_new(uint32_t credential, struct str server_name);
struct lb_security *lb_security_get(struct lb_security *); // NULL stays NULL
void lb_security_put(struct lb_security *); // NULL is fine
bool lb_security_eq(const struct lb_security *, const struct lb_security *); // NULLs are equal
