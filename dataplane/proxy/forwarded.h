// SPDX-License-Identifier: Apache-2.0
// Whom a request comes from: the client's address as far as it can be trusted, and the fields that
// tell backends (HX-50..HX-61; lb/route/forwarding.h). The listener's settings are applied once,
// before routing, so that matchers, hashes and every attempt see the same fields.
// Thread: any. Pure: all memory is the caller's.
#pragma once

#include "dataplane/h2/h2.h"
#include "lb/base/ip.h"
#include "lb/base/str.h"
#include "lb/route/forwarding.h"

#include <stdbool.h>
#include <stddef.h>

struct tlshs_peer;

// Most fields that are added, and bytes in all of them but those of the client's own.
#define PROXY_FORWARDED_FIELDS 4
#define PROXY_FORWARDED_BYTES 7168

// What the connection itself says.
struct proxy_forwarded_from {
	struct ip_addr address; // of its other end, or that a PROXY header names (PP-01)
	bool is_tls;
	const struct tlshs_peer *peer; // its verified certificate; NULL = none
	const char *own_uris; // with peer: of our certificate, as struct tlshs_result has them
};

// Room for what is written.
struct proxy_forwarded_room {
	struct field *fields;
	size_t max_fields;
	char *text;
	size_t size;
};

// The client's address: of x-forwarded-for if that names one that is trusted, else the
// connection's (HX-51).
struct ip_addr proxy_forwarded_client(const struct lb_forwarding *, const struct ip_addr *peer,
	const struct field *fields, size_t n_fields);

// Builds in *ret the request as its listener wants it; it points into m and the room. False = too
// little room.
[[nodiscard]] bool proxy_forwarded_write(const struct lb_forwarding *,
	const struct proxy_forwarded_from *, const struct h2_message *m,
	const struct proxy_forwarded_room *, struct h2_message *ret, struct ip_addr *ret_client);
