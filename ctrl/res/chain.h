// SPDX-License-Identifier: Apache-2.0
// What of a socket Listener is not its HttpConnectionManagers: where it listens, and for which
// connections its filter chains are (gRFC A36; A36-01 to A36-15). Not for users of the decoded
// resources.
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "envoy/config/listener/v3/listener.pb-c.h"
#include "lb/route/chain_match.h"

struct res_socket;

// Address and use_original_dst. Return 0, -ENOMEM, or -EINVAL with the field.
[[nodiscard]] int res_socket_read(
	struct res_reader *, const Envoy__Config__Listener__V3__Listener *, struct res_socket *ret);
// *ret borrows from the reader's arena. NULL = the chain has no match. inspects: the listener has
// the tls_inspector, and what a ClientHello may have must be valid (A36-39).
[[nodiscard]] int res_chain_match_read(struct res_reader *,
	const Envoy__Config__Listener__V3__FilterChainMatch *, bool inspects,
	struct lb_chain_conf *ret);
