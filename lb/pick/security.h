// SPDX-License-Identifier: Apache-2.0
// How connections to an endpoint are secured, through which proxy they go, and with which PROXY
// header they begin. Part of what an endpoint is: clusters that ask for something else never share
// connections (TLS-161, HC-07, PP-13). NULL stands for plain text without any of that.
// Thread: made and counted by ctrl; workers read it through an endpoint.
#pragma once

#include "lb/base/ip.h"
#include "lb/base/str.h"
#include "lb/base/tlv.h"

#include <stdbool.h>
#include <stdint.h>

// The PROXY header that a connection begins with (PP-20); version 0 = none.
struct lb_header {
	struct str tlvs; // of version 2, encoded: what follows the addresses
	struct tlv_types passed; // likewise: which of its client's own come behind them (PP-21)
	uint8_t version; // 1, 2
};
#define LB_HEADER_TLVS_MAX 1024 // PP-16

struct lb_security { // immutable but for n_refs
	uint32_t n_refs; // ctrl only
	uint32_t credential; // lb/pick/credential.h; LB_PLAIN_TEXT = no TLS
	struct ip_port proxy; // that is asked for the connection (gRFC A86); port 0 = none is
	struct lb_header header; // its TLVs lie behind the name
	char server_name[]; // sent as SNI; "" = none is
};

struct lb_security_conf { // all is copied
	uint32_t credential;
	struct str server_name;
	const struct ip_port *proxy; // NULL = none
	struct lb_header header;
};

// Count 1. NULL = out of memory.
struct lb_security *lb_security_new(uint32_t credential, struct str server_name);
// The same with a proxy, a header or both: credential may be LB_PLAIN_TEXT.
struct lb_security *lb_security_new_as(const struct lb_security_conf *);
// It was made of this, or of what is equal.
bool lb_security_is(const struct lb_security *, const struct lb_security_conf *);
struct lb_security *lb_security_get(struct lb_security *); // NULL stays NULL
void lb_security_put(struct lb_security *); // NULL is fine
bool lb_security_eq(const struct lb_security *, const struct lb_security *); // NULLs are equal
// NULL = none. NULL is fine.
static inline const struct ip_port *lb_security_proxy(const struct lb_security *s)
{
	return s && s->proxy.port ? &s->proxy : NULL;
}
// NULL = none. NULL is fine.
static inline const struct lb_header *lb_security_header(const struct lb_security *s)
{
	return s && s->header.version ? &s->header : NULL;
}
