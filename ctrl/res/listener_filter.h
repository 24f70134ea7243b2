// SPDX-License-Identifier: Apache-2.0
// Listener filters of a socket listener: PROXY headers, as Envoy's
// envoy.filters.listener.proxy_protocol has them (PP-12).
// Thread: ctrl.
#pragma once

#include "envoy/config/listener/v3/listener.pb-c.h"

#include <stdbool.h>

struct res_reader;

struct res_proxy_protocol {
	bool on; // connections begin with a header, whoever they come from
	bool v1, v2; // versions that are taken
};

// Of a listener; other filters are passed over. 0, -EINVAL or -ENOMEM.
int res_listener_filters_read(struct res_reader *, const Envoy__Config__Listener__V3__Listener *,
	struct res_proxy_protocol *ret);
