// SPDX-License-Identifier: Apache-2.0
// Clients that begin with a PROXY header (PP-01, PP-06..PP-10), on frontends that say so. It is
// read before anything else of the connection, TLS included; the source account (source.h) stays
// with the connection's real other end.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/proxy_header.h"
#include "dataplane/tcp/tcp.h"
#include "lb/base/tlv.h"
#include "lb/base/twheel.h"

#include <stdbool.h>

struct proxy;
struct proxy_listener;

// Of the proxy's pool while a client's header is not complete.
struct proxy_client_header {
	struct proxy_header header;
	struct tlv_types passed; // as it was when the connection began
	struct twheel_timer timer; // fires when it is late
	struct proxy_client *client;
};

// Of another pool: of a client whose header may have TLVs for backends, and from then on of one
// whose header had any.
struct proxy_client_tlvs {
	uint16_t len;
	uint8_t bytes[PROXY_HEADER_TLVS_MAX];
};

// Room for all clients, if any frontend wants headers. 0 or -ENOMEM.
[[nodiscard]] int proxy_client_headers_init(struct proxy *);
// Only for frontends that want a header: may this connection come? Counts those that may not.
bool proxy_client_header_allows(const struct proxy_listener *, const struct tcp_conn *);
// Likewise: a client's connection begins. passed: which TLVs are kept, NULL = none; `ops` are those
// behind its header. Returns the ones to use.
const struct tcp_conn_ops *proxy_client_header_begin(
	struct proxy_client *, const struct tlv_types *passed, const struct tcp_conn_ops *ops);
// No more is wanted of its header, if it was yet to come.
void proxy_client_header_drop(struct proxy_client *);
static inline void proxy_client_header_end(struct proxy_client *c)
{
	if (c->header)
		proxy_client_header_drop(c);
}
// Its TLVs are not needed any more, if it has any.
void proxy_client_tlvs_drop(struct proxy_client *);
static inline void proxy_client_tlvs_end(struct proxy_client *c)
{
	if (c->tlvs)
		proxy_client_tlvs_drop(c);
}
// What backends may be told of its header, beside the addresses: whole entries.
static inline struct str proxy_client_tlvs(const struct proxy_client *c)
{
	const struct proxy_client_tlvs *t = c->tlvs;
	return t ? (struct str){(const char *)t->bytes, t->len} : (struct str){NULL, 0};
}
