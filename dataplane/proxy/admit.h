// SPDX-License-Identifier: Apache-2.0
// Which client connections are taken, and by which filter chain of their frontend (A36-30).
// Thread: one worker.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lb_chain_hello;
struct lb_inspector;
struct proxy;
struct proxy_listener;
struct proxy_source;
struct tcp_conn;
struct tlv_types;

// The index of the snapshot's frontend whose routes the connection has from now on. LB_NO_PLACE =
// it is not to come, which is counted. source: NULL = it has no entry. *ret_asks: NULL, or that is
// not known before the client has said something (client_hello.h), at which one looks by this, of
// the turn's own snapshot; until then it has its frontend's.
uint32_t proxy_admit(const struct proxy_listener *, const struct tcp_conn *,
	const struct proxy_source *, const struct lb_inspector **ret_asks);
// Likewise, of one that has said it, in the turn's own snapshot. Counts nothing.
uint32_t proxy_admit_by(
	const struct proxy_listener *, const struct tcp_conn *, const struct lb_chain_hello *);
// Which TLVs of its clients' PROXY headers are kept (PP-21), in the turn's own snapshot. NULL =
// none: no Listener with filters says so.
const struct tlv_types *proxy_admit_passed(const struct proxy_listener *, const struct tcp_conn *);
// Places run short: idle clients are to make room (TH-81).
bool proxy_admit_is_short(const struct proxy *);
