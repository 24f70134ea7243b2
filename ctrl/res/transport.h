// SPDX-License-Identifier: Apache-2.0
// How a cluster's connections are made: its transport_socket, and what stands beside it.
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "lb/pick/security.h"

#include <stdbool.h>

struct Envoy__Config__Cluster__V3__Cluster;
struct res_tls;

struct res_transport {
	const struct res_tls *tls; // in the resource's arena; NULL = plain text
	bool uses_proxies; // of endpoints that name one (gRFC A86)
	struct lb_header header; // of PROXY, that they begin with; its TLVs are in the arena
};

// Returns 0, -ENOMEM, or -EINVAL with field and reason (TLS-120, HC-01 to HC-03, PP-15 to PP-17);
// `reader` must know the bootstrap.
[[nodiscard]] int res_transport_read(struct res_reader *reader,
	const struct Envoy__Config__Cluster__V3__Cluster *, struct res_transport *ret);
