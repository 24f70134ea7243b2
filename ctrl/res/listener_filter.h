// SPDX-License-Identifier: Apache-2.0
// Listener filters of a socket listener: PROXY headers and the ClientHello, as Envoy's
// envoy.filters.listener.proxy_protocol and tls_inspector have them (PP-12, A36-38).
// Thread: ctrl.
#pragma once

#include "envoy/config/listener/v3/listener.pb-c.h"
#include "lb/base/tlv.h"
#include "lb/route/chain_match.h"

#include <stdbool.h>

struct res_reader;

struct res_listener_filters {
	bool proxy_protocol; // connections begin with a header, whoever they come from
	struct tlv_types passed; // which of its TLVs are kept for backends (PP-21)
	struct lb_inspector tls_inspector;
};

// Of a listener; other filters are passed over. 0, -EINVAL or -ENOMEM.
[[nodiscard]] int res_listener_filters_read(struct res_reader *,
	const Envoy__Config__Listener__V3__Listener *, struct res_listener_filters *ret);
