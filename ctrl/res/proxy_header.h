// SPDX-License-Identifier: Apache-2.0
// The PROXY header that a cluster's connections begin with (PP-16, PP-17), and which TLVs of
// clients' headers are passed on (PP-21).
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "lb/pick/security.h"

struct Envoy__Config__Core__V3__ProxyProtocolConfig;
struct Envoy__Config__Core__V3__ProxyProtocolPassThroughTLVs;

// NULL is a config without fields. TLVs are in the resource's arena. Returns 0, -ENOMEM, or -EINVAL
// with field and reason.
[[nodiscard]] int res_proxy_header_read(struct res_reader *,
	const struct Envoy__Config__Core__V3__ProxyProtocolConfig *, struct lb_header *ret);
// Which types a pass_through_tlvs means; NULL = none. Returns 0, or -EINVAL with field and reason.
[[nodiscard]] int res_passed_tlvs_read(struct res_reader *,
	const struct Envoy__Config__Core__V3__ProxyProtocolPassThroughTLVs *,
	struct tlv_types *ret);
