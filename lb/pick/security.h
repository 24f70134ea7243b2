// SPDX-License-Identifier: Apache-2.0
// How connections to an endpoint are secured, and through which proxy they go. Part of what an
// endpoint is: clusters that ask for something else never share connections (TLS-161, HC-07). NULL
// stands for plain text without a proxy.
// Thread: made and counted by ctrl; workers read it through an endpoint.
#pragma once

#include "lb/base/ip.h"
#include "lb/base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_security { // immutable but for n_refs
	uint32_t n_refs; // ctrl only
	uint32_t credential; // lb/pick/credential.h; LB_PLAIN_TEXT only with a proxy
	struct ip_port proxy; // that is asked for the connection (gRFC A86); port 0 = none is
	char server_name[]; // sent as SNI; "" = none is
};

// Count 1. NULL = out of memory.
struct lb_security *lb_security_new(uint32_t credential, struct str server_name);
// The same through a proxy: credential may be LB_PLAIN_TEXT.
struct lb_security *lb_security_new_through(
	const struct ip_port *proxy, uint32_t credential, struct str server_name);
struct lb_security *lb_security_get(struct lb_security *); // NULL stays NULL
void lb_security_put(struct lb_security *); // NULL is fine
bool lb_security_eq(const struct lb_security *, const struct lb_security *); // NULLs are equal
// NULL = none. NULL is fine.
static inline const struct ip_port *lb_security_proxy(const struct lb_security *s)
{
	return s && s->proxy.port ? &s->proxy : NULL;
}
