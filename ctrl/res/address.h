// SPDX-License-Identifier: Apache-2.0
// Addresses of a ClusterLoadAssignment: those of endpoints, and of proxies in front of them.
// Thread: ctrl.
#pragma once

#include "ctrl/res/endpoints_wire.h"
#include "lb/base/ip.h"

// A27-V05. 0 or -EINVAL; *ret is untouched on failure.
[[nodiscard]] int res_address_read(
	const struct eds_address *, struct ip_port *ret, struct lb_err *reterr);
// HC-04, HC-05. The same of what metadata names as a proxy; port 0 = none. The error names the
// field of the metadata.
[[nodiscard]] int res_address_read_proxy(
	const struct eds_any *, struct ip_port *ret, struct lb_err *reterr);
